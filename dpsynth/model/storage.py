"""Storage of a model in one file of arrays: one for each clique, and a header with the tree.

Invariant: a model that ``load`` returns satisfies the invariants of ``MarkovRandomField``; any
other file is refused with one error.
"""

from __future__ import annotations

from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from dpsynth.columns.domain import Domain
from dpsynth.errors import ModelFileError
from dpsynth.model.array_file import Member, dtype_of, opened, require, save_arrays
from dpsynth.model.factor import sum_in_order
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import MarkovRandomField

__all__ = ["ModelFileError", "load", "save"]

FORMAT = "dpsynth Markov random field"
VERSION = 1

_TOLERANCES = {"<f8": 1e-6, "<f4": 1e-3}
"""Disagreement of neighbouring cliques that rounding may cause, as a share of the total."""
_KEYS = {"format", "version", "total", "columns", "cliques", "edges", "dtypes"}


def save(model: MarkovRandomField, path: str | Path) -> None:
    """Write a model to a file. The file appears whole or not at all.

    The same model gives the same bytes, on any machine.

    Args:
        model: the model; its arrays keep their precision, float32 or float64.
        path: the file; an existing one is replaced.

    Raises:
        ModelFileError: if the model breaks an invariant of its type.
        OSError: if the file can't be written.
    """
    _check(model)
    tree = model.tree
    header = {
        "format": FORMAT,
        "version": VERSION,
        "total": float(model.total),
        "columns": [[column, int(size)] for column, size in tree.domain.sizes.items()],
        "cliques": [list(clique) for clique in tree.cliques],
        "edges": [[e.child, e.parent] for e in tree.edges],
        "dtypes": [dtype_of(b) for b in model.beliefs],
    }
    save_arrays(path, header, {f"belief_{i}": belief for i, belief in enumerate(model.beliefs)})


def load(path: str | Path) -> MarkovRandomField:
    """The model of a file that ``save`` wrote, after all checks.

    Memory: the model's arrays; no member is read before its size is known to be right.

    Raises:
        ModelFileError: if the file can't be opened, is damaged, of another version, or holds
            anything but a model.
    """
    with opened(path, "a model") as content:
        tree, dtypes, total = _described(content.header)
        promised = [
            Member(f"belief_{i}", tree.domain.shape(clique), dtype)
            for i, (clique, dtype) in enumerate(zip(tree.cliques, dtypes, strict=True))
        ]
        model = MarkovRandomField(tree, content.arrays(promised), total)
        _check(model)
    return model


def _described(header: Any) -> tuple[JunctionTree, list[str], float]:
    """The tree, the dtypes and the total that a header describes."""
    require(isinstance(header, dict) and header.get("format") == FORMAT, f"its format is not '{FORMAT}'")
    version = header.get("version")
    require(version == VERSION, f"its version is {version!r}; this program reads version {VERSION}")
    require(header.keys() == _KEYS, f"its header must have {', '.join(sorted(_KEYS))}, nothing else")
    total, dtypes = header["total"], header["dtypes"]
    require(isinstance(total, float), "its total is not a number")
    for key, kinds in (("columns", (str, int)), ("edges", (int, int))):
        listed = isinstance(header[key], list) and all(
            isinstance(pair, list) and [type(part) for part in pair] == list(kinds) for pair in header[key]
        )
        require(listed, f"its {key} are not pairs of {kinds[0].__name__} and {kinds[1].__name__}")
    named = isinstance(header["cliques"], list) and all(
        isinstance(clique, list) and all(isinstance(column, str) for column in clique)
        for clique in header["cliques"]
    )
    require(named, "its cliques are not lists of names")
    cliques = tuple(tuple(clique) for clique in header["cliques"])
    known = isinstance(dtypes, list) and all(isinstance(d, str) and d in _TOLERANCES for d in dtypes)
    require(known and len(dtypes) == len(cliques), "its dtypes are not one of <f4 and <f8 a clique")
    domain = Domain(dict(header["columns"]))
    require(len(domain.sizes) == len(header["columns"]), "it names a column twice")
    edges = []
    for child, parent in header["edges"]:
        require(min(child, parent) >= 0 and max(child, parent) < len(cliques), "an edge has no clique")
        edges.append(Edge(child, parent, domain.canonical(set(cliques[child]) & set(cliques[parent]))))
    tree = JunctionTree(domain, cliques, tuple(edges))
    _check_tree(tree)
    return tree, dtypes, total


def _check_tree(tree: JunctionTree) -> None:
    """Refuse a tree that is not a junction tree over the whole domain."""
    domain, cliques = tree.domain, tree.cliques
    require(bool(cliques) and bool(domain.sizes), "it has no columns")
    require(all(size >= 1 for size in domain.sizes.values()), "a column has no values")
    for clique in cliques:
        require(domain.canonical(clique) == clique, f"the clique {clique} is not in the domain's order")
    met = {0}
    for edge in tree.edges:
        require(edge.parent in met and edge.child not in met, "its edges are not a tree, parents first")
        shared = domain.canonical(set(cliques[edge.child]) & set(cliques[edge.parent]))
        require(edge.separator == shared, "a separator is not what its cliques share")
        met.add(edge.child)
    require(len(met) == len(cliques), "its edges do not join all cliques")
    holders = Counter(column for clique in cliques for column in clique)
    holders.subtract(Counter(column for edge in tree.edges for column in edge.separator))
    for column in domain.sizes:
        require(holders[column] == 1, f"the cliques that hold {column!r} do not hang together")


def _check(model: MarkovRandomField) -> None:
    """Refuse a model that breaks an invariant of its type."""
    tree, total = model.tree, model.total
    _check_tree(tree)
    require(isfinite(total) and total > 0, f"its total is {total}, not a positive number")
    require(len(model.beliefs) == len(tree.cliques), "it has not one array a clique")
    for clique, belief in zip(tree.cliques, model.beliefs, strict=True):
        require(dtype_of(belief) in _TOLERANCES, f"the array of {clique} is of {belief.dtype}")
        require(belief.shape == tree.domain.shape(clique), f"the array of {clique} has a wrong shape")
        require(bool(belief.min() >= 0), f"the array of {clique} has a cell that is negative or no number")
        excess = abs(float(sum_in_order(belief, clique, ())) - total)
        require(
            excess <= _TOLERANCES[dtype_of(belief)] * total,
            f"the array of {clique} does not sum to the total",
        )
    for edge in tree.edges:
        child, parent = (
            sum_in_order(model.beliefs[i], tree.cliques[i], edge.separator) for i in (edge.child, edge.parent)
        )
        worst = max(_TOLERANCES[dtype_of(model.beliefs[i])] for i in (edge.child, edge.parent))
        agree = bool(np.abs(child - parent).max() <= worst * total)
        require(agree, f"neighbouring cliques disagree on {edge.separator}")
