"""Wings."""
