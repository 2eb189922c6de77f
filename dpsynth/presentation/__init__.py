"""Presentation for readers: figures in words, the templates of reports, and shares of work on a terminal."""
