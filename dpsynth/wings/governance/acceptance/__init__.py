"""Acceptance criteria: declared before a release, judged from its noisy answers and its finished table."""
