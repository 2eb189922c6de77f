"""A look at the private table for its owner's own eyes; nothing of it is released."""
