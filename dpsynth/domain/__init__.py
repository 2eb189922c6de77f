"""Columns, their places and codes, and noisy counts of them: public facts only."""
