"""Sampling of a table of codes whose marginals follow the model's.

The method is randomised rounding down the junction tree. Within the rows that share a separator's value,
each cell of the clique gets the floor or the ceiling of its expected number of rows, with
the right expectation (systematic sampling in random row order). The error of a marginal is
far below that of independent draws. Columns that share no clique depend on each other only through
the separators between them, as in the model: rows are shuffled anew within each group.

Invariant: each single row has exactly the model's distribution (given the fixed values), up to multiples
of 2^-52.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Domain
from dpsynth.model.completion import Completion, Message, at, ranked
from dpsynth.model.conditioning import ImpossibleEvidence
from dpsynth.model.factor import Array, spread
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.rounding import Codes, NoWeight, codes_of, drawn_cells, position_of

METHODS = ("rounding", "independent")

_EVIDENCE_CELLS = 1 << 24
"""Cells of messages about fixed values that are in memory at a time: 128 MB."""

Fixed = Mapping[str, int | NDArray[np.integer]]
"""Codes of some columns: one for all rows, or one for each row."""


def sample(
    model: MarkovRandomField,
    rows: int,
    rng: np.random.Generator,
    *,
    method: str = "rounding",
    given: Fixed | None = None,
) -> dict[str, Codes]:
    """A table drawn from a model.

    Only the raw words of the bit generator of ``rng`` are used, so a saved model and a seed give the same
    table on every machine. Memory: 8 bytes a row and column, some 50 bytes a row, and 16 bytes
    a cell of the largest conditional distribution of a clique given its separator. The model's
    arrays are not copied.

    Args:
        model: the Markov random field.
        rows: number of rows to draw.
        rng: generator for this post-processing step; it decides nothing private.
        method: "rounding", or "independent" for rows independent of each other.
        given: codes of some columns, for all rows or for each row; every row's other columns
            follow the model's exact distribution given them, wherever they lie in the tree.

    Returns:
        int64[rows] codes of every column of the domain, in table order.

    Raises:
        ImpossibleEvidence: if the model gives probability zero to the values fixed in a row.
        ValueError: for an unknown method or column, or codes of a wrong shape or outside the domain.
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if rows < 0:
        raise ValueError(f"rows must not be negative, not {rows}")
    domain = model.tree.domain
    fixed = {c: _fixed_codes(domain, c, value, rows) for c, value in (given or {}).items()}
    if not rows:
        return {c: np.empty(0, dtype=np.int64) for c in domain.columns}
    completion = Completion(model.tree, model.beliefs, tuple(fixed))
    which, first = ranked([(v, domain.sizes[c]) for c, v in fixed.items() if v.ndim], rows)
    distinct = {c: v[first] if v.ndim else np.broadcast_to(v, len(first)) for c, v in fixed.items()}
    step = max(1, _EVIDENCE_CELLS // max(1, completion.cells()))
    if len(first) <= step:
        drawn = _completed(model, completion, which, distinct, rng, method)
        return {c: drawn[c] for c in domain.columns}
    found: dict[str, Codes] = {c: np.empty(rows, dtype=np.int64) for c in domain.columns}
    by_piece = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))[step - 1 : -1 : step]
    for begin, part in zip(range(0, len(first), step), np.split(by_piece, ends), strict=True):
        values = {c: v[begin : begin + step] for c, v in distinct.items()}
        for column, codes in _completed(model, completion, which[part] - begin, values, rng, method).items():
            found[column][part] = codes
    return found


def _fixed_codes(domain: Domain, column: str, value: int | NDArray[np.integer], rows: int) -> Codes:
    """The fixed codes of a column: int64, of shape () or (rows,)."""
    if column not in domain.sizes:
        raise ValueError(f"the model has no column {column!r}")
    codes = np.asarray(value)
    if not np.issubdtype(codes.dtype, np.integer) or codes.shape not in {(), (rows,)}:
        raise ValueError(f"column {column!r} must be fixed to one integer code or to {rows}, one a row")
    if codes.size and not 0 <= codes.min() <= codes.max() < domain.sizes[column]:
        raise ValueError(f"a code of {column!r} is outside 0 to {domain.sizes[column] - 1}")
    return codes.astype(np.int64)


def _completed(
    model: MarkovRandomField,
    completion: Completion,
    which: Codes,
    fixed: Mapping[str, Codes],
    rng: np.random.Generator,
    method: str,
) -> dict[str, Codes]:
    """Rows with all columns, drawn given the fixed codes of each row's piece of evidence.

    Args:
        model: the model.
        completion: the upward pass for the fixed columns.
        which: int64[rows], the piece of evidence of each row.
        fixed: int64[pieces] codes of each fixed column.
        rng: generator.
        method: "rounding" or "independent".
    """
    messages = completion.messages(fixed)
    drawn = {column: codes[which] for column, codes in fixed.items()}
    try:
        for index in (0, *(e.child for e in model.tree.edges)):
            clique = model.tree.cliques[index]
            known = tuple(c for c in clique if c in drawn)
            if len(known) < len(clique):
                incoming = completion.incoming(index, messages, known)
                drawn |= _extension(model, index, drawn, which, incoming, rng, method)
    except NoWeight:
        if fixed:
            raise ImpossibleEvidence("the model gives probability zero to a row's fixed values") from None
        raise
    return drawn


def _extension(
    model: MarkovRandomField,
    index: int,
    drawn: Mapping[str, Codes],
    which: Codes,
    incoming: Sequence[Message],
    rng: np.random.Generator,
    method: str,
) -> dict[str, Codes]:
    """The columns of a clique that are not drawn yet, given those that are and the evidence below it."""
    domain, clique = model.tree.domain, model.tree.cliques[index]
    known, new = tuple(c for c in clique if c in drawn), tuple(c for c in clique if c not in drawn)
    table = model.beliefs[index].transpose([clique.index(c) for c in (*known, *new)])
    cells = domain.cells(new)
    group = position_of(drawn, known, domain, len(which))
    piece, first = ranked(
        [(m.piece, len(m.values)) for m in incoming], len(incoming[0].piece) if incoming else 1
    )
    pieces = len(first)
    if incoming:
        group *= pieces
        group += piece[which]

    def weights_of(groups: Codes) -> Array:
        codes = codes_of(groups // pieces, known, domain)
        weights = at(table, tuple(codes.values()), len(groups))
        for message in incoming:
            values, free = message.given(first[groups % pieces], codes)
            weights *= spread(values, ("", *free), ("", *new))
        return weights.reshape(len(groups), cells)

    cell = drawn_cells(group, domain.cells(known) * pieces, cells, weights_of, rng, method)
    return codes_of(cell, new, domain)
