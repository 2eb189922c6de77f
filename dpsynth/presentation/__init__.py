"""Presentation for readers: figures in words, and the templates of reports."""
