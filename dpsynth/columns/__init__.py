"""Columns, their cells and codes, and noisy counts of them: public facts only."""
