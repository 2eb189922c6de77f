"""Numbers and pages as people read them: figures in words, and the templates of reports."""
