"""Pairs of columns as hypothesis draws them."""

from itertools import combinations

from hypothesis import strategies as st


def forest(columns, draw, of):
    """Some pairs without a cycle: of those that make none, one in so many."""
    part = {c: c for c in columns}
    found = []
    for a, b in combinations(columns, 2):
        if part[a] != part[b] and draw(st.integers(0, of - 1)) == 0:
            found.append((a, b))
            part = {c: part[a] if p == part[b] else p for c, p in part.items()}
    return tuple(found)
