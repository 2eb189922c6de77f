"""Profiling of the private table for its owner; nothing of it is released."""
