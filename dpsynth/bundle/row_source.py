"""The source of synthetic rows, which a finished release keeps and a bundle holds, and its file.

The file stands beside the model's. It holds the targets of refinement with their posterior variances, so that
whoever has the bundle can refine longer samples to the same marginals as the released table; and zeros,
densities and public marginals.

Invariant: all of it is public. Rows are post-processing: they cost nothing, however many are drawn. A file
that is loaded suits the model, the layout and the rules; any other file is refused with one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.identifier import Surrogates
from dpsynth.columns.joint_density import JointDensity
from dpsynth.columns.layout import DrawnRows, Layout, in_order
from dpsynth.columns.measurement import NO_PUBLIC_MARGINALS, Contradiction, PublicMarginal, PublicMarginals
from dpsynth.columns.rules import Drawing, RuleRepairs, Rules, Tied
from dpsynth.columns.sequences import Sequences
from dpsynth.model import (
    Bounds,
    Effort,
    MarkovRandomField,
    TableTarget,
    Wanted,
    chunk_draws,
    permuted,
    raked_rows,
    refined_rows,
    sample,
)
from dpsynth.model.refinement import WIDEST
from dpsynth.model.storage import AnyArray, Member, opened, require, save_arrays
from dpsynth.wing import Point

PIECE = 1 << 19
"""Rows that are drawn, refined and decoded together; a longer table is made of such pieces."""

DISTINCT = 1 << 20
"""Rows that are drawn and refined. Further whole pieces have the cells of these, in another order."""

ENOUGH = 0.02
"""The end of the refinement of a piece, as ``Effort.enough`` has it. So many rows have little error by their
draw, and further laps would follow the errors of the targets."""

_USUAL = Effort()

_PIECES_AT_ONCE = 2
"""Pieces that are in memory, and threads that make them."""

Integers = Mapping[str, NDArray[np.integer]]
"""Codes of the rows of a piece, by column."""

Made = tuple[Integers, RuleRepairs]
"""Codes of the rows of a piece, in cells that obey the rules, and what was changed so that they do."""

Make = Callable[[np.random.Generator], Made]
"""Maker of the codes of one piece."""

Allowed = Mapping[str, NDArray[np.bool_]]
"""For some columns of a model, the codes that rows may have, bool[codes]."""

Densities = Mapping[str, tuple[NDArray[np.float64], float]]
"""Noisy counts of the codes of a column, and their standard deviation: the densities inside its bins."""


@dataclass(frozen=True, eq=False)
class RowSource:
    """The source of synthetic rows: a fitted model, with all that makes rows of its codes. It is public.

    Attributes:
        public_marginals: public counts that the rows agree with.
        wanted: the marginals that rows are refined to.
        bounds: what refinement leaves as it is.
        densities: the counts from which the layout has the densities inside bins.
        chain: the model of a row given the one before; None where each row stands by itself.
    """

    model: MarkovRandomField
    layout: Layout
    rules: Rules
    public_marginals: PublicMarginals
    wanted: Wanted
    bounds: Bounds
    densities: Densities = field(default_factory=dict)
    chain: Chain | None = None

    def pieces(self, number: int, rng: np.random.Generator, piece: int = PIECE) -> Iterator[DrawnRows]:
        """A table: rows drawn from the model, refined and decoded by piece, all within the rules.

        A table of one piece is drawn by ``rng`` alone. Of a longer one, the whole pieces of the first
        ``DISTINCT`` rows and a shorter last piece are drawn, together as one rounded sample of the model, and
        refined, each by itself. All others have the cells of a refined one in another order, and values of
        their own inside bins. Threads make them, each with a generator of its own, so the rows follow from
        the generator and the size of a piece alone. Memory: that of two pieces, and a byte or two for each
        refined cell.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        if number > piece:
            yield from self._stream(number, int(rng.integers(1 << 62)), piece, 0)
            return
        tied = self._tied()
        yield self._piece(tied, self._made(tied, number, rng), 0, rng)

    def tables(
        self, number: int, seed: int | None, piece: int = PIECE, before: int = 0
    ) -> Iterator[pa.Table]:
        """Rows in pieces, made as ``pieces`` makes them.

        Args:
            number: number of all rows.
            seed: repeats the rows, for the same size of a piece; without one they are new each time.
            piece: number of rows of each piece but the last.
            before: number of rows after whose identifiers these go on.

        Raises:
            DpsynthError: no row that obeys the rules was found.
        """
        first = int(np.random.default_rng(seed).integers(1 << 62))
        return (rows.table for rows in self._stream(number, first, piece, before))

    def _stream(self, number: int, seed: int, piece: int, before: int) -> Iterator[DrawnRows]:
        sizes = [min(piece, number - begin) for begin in range(0, number, piece)]
        tied = self._tied()
        if self.rules.written:
            # Before any thread begins: all pieces have the same.
            _ = tied.pins, tied.obedience.components

        def work(turn: int, make: Make) -> Callable[[], DrawnRows]:
            rng = _generator(seed, 1, turn)
            return lambda: self._piece(tied, make(rng), before + turn * piece, rng)

        makers = enumerate(self._makers(tied, sizes, seed))
        return in_order((work(turn, make) for turn, make in makers), _PIECES_AT_ONCE)

    def _tied(self) -> Tied:
        """The rules with what all pieces have in common."""
        names = self.wanted.values_of
        measured = {
            frozenset((names.get(a, a), names.get(b, b)))
            for clique in self.wanted.counts
            for a, b in combinations(clique, 2)
        }
        shut = {c: closed for (c, *more), closed in self.bounds.zeros.items() if not more}
        return Tied(
            self.rules,
            self.layout,
            self.model.marginal,
            frozenset(measured),
            {column.name: shut[column.name] for column in self.layout.columns if column.name in shut},
        )

    def _made(self, tied: Tied, number: int, rng: np.random.Generator) -> Made:
        if self.chain is None:
            return self._obeying(tied, self.codes(number, rng), rng)
        codes, unit = self.chain.drawn(number, rng, self.wanted.targets(self.model, number))
        sequences = self.chain.sequences(unit)
        obeying, repairs = self._obeying(tied, sequences.cells(codes, self.layout.columns), rng, sequences)
        return {**obeying, UNITS: unit}, repairs

    def _obeying(self, tied: Tied, codes: Integers, rng: np.random.Generator, *of: Sequences) -> Made:
        return tied.repaired(codes, rng, *of) if self.rules.written else (codes, RuleRepairs())

    def _makers(self, tied: Tied, sizes: Sequence[int], seed: int) -> Iterator[Make]:
        if self.chain is not None:
            yield from (partial(self._made, tied, size) for size in sizes)
            return
        first = -(-DISTINCT // sizes[0])
        again = max(sum(size == sizes[0] for size in sizes) - first, 0)
        drawn = [*sizes[:first], *sizes[first + again :]]
        targets = {size: self.wanted.targets(self.model, size) for size in set(drawn)}
        effort = replace(_USUAL, enough=ENOUGH)
        draws = chunk_draws(self.model, sum(drawn), seed, chunk=sizes[0])

        def refined(draw: Callable[[], dict[str, Codes]], size: int) -> Make:
            return lambda rng: self._obeying(tied, self._refined(draw(), rng, targets[size], effort), rng)

        makers = (refined(draw, size) for draw, size in zip(draws, drawn, strict=True))
        if again:
            begun = (partial(make, _generator(seed, 2, n)) for n, make in enumerate(islice(makers, first)))
            kept = [(self._narrow(codes), done) for codes, done in in_order(begun, _PIECES_AT_ONCE)]
            yield from (partial(_as_they_are, made) for made in kept)
            yield from (partial(_in_random_order, kept[number % first]) for number in range(again))
        yield from makers

    def _narrow(self, codes: Integers) -> Integers:
        return {column.name: codes[column.name].astype(column.code_type) for column in self.layout.columns}

    def _piece(self, tied: Tied, made: Made, before: int, rng: np.random.Generator) -> DrawnRows:
        plain, (refined, repairs) = not self.rules.written, made
        codes: dict[str, Codes] = {}
        for column in self.layout.columns:
            own = refined[column.name]
            narrow = plain and column.one_text_a_code
            codes[column.name] = cast("Codes", own) if narrow else own.astype(np.int64, copy=False)
        sequences = None if self.chain is None else self.chain.sequences(refined[UNITS])
        if plain:
            drawn = DrawnRows(self.layout.following(before).decode(codes, rng, sequences), codes)
        else:
            drawing = Drawing(tied, lambda more: sample(self.model, more, rng), rng, sequences)
            drawn = drawing.rows(codes, repairs, before)
        return drawn if sequences is None else self._in_order(drawn, refined[UNITS], before)

    def _in_order(self, drawn: DrawnRows, unit: NDArray[np.integer], before: int) -> DrawnRows:
        """Rows with the numbers of their units, in the order of their values within each unit."""
        assert self.chain is not None
        places = pc.rank(drawn.table[self.chain.order], sort_keys="ascending", tiebreaker="dense")
        order = np.lexsort((places.to_numpy(), drawn.codes[self.chain.order], unit))
        table, names = drawn.table.take(pa.array(order)), drawn.table.column_names
        for part in self.layout.following(before).parts:
            if isinstance(part, Surrogates):
                numbers = part.values(int(unit.max(initial=-1)) + 1).take(pa.array(unit[order]))
                table = table.set_column(names.index(part.name), part.name, numbers)
        ordered = {column: own[order] for column, own in drawn.codes.items()}
        return replace(drawn, table=table, codes=ordered, units=unit[order].astype(np.int64))

    def codes(self, number: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Codes of rows drawn from the model and refined together, int64[rows] of the model's columns."""
        return self._refined(sample(self.model, number, rng), rng)

    def _refined(
        self,
        drawn: Mapping[str, Codes],
        rng: np.random.Generator,
        targets: Sequence[TableTarget] | None = None,
        effort: Effort = _USUAL,
    ) -> dict[str, Codes]:
        raked = raked_rows(self.model, self.public_marginals, drawn, rng)
        return refined_rows(self.model, self.wanted, raked, rng, self.bounds, targets, effort)

    def table(self, number: int, rng: np.random.Generator) -> pa.Table:
        return pa.concat_tables(rows.table for rows in self.pieces(number, rng))

    def seeded(self, number: int, seed: int | None) -> pa.Table:
        if not number:
            return self.table(0, np.random.default_rng(0))
        return pa.concat_tables(self.tables(number, seed))

    def given(self, allowed: Allowed) -> RowSource:
        """The source of rows that have some codes only.

        A target that holds such a column keeps the allowed cells. A target of any other columns is the
        marginal of the conditional model, as no answer counts those rows alone.

        Raises:
            ZeroProbability: the model gives probability zero to these codes.
        """
        if not allowed:
            return self
        model, wanted, zeros = self.model.given(dict(allowed)), self.wanted, dict(self.bounds.zeros)
        held = dict(allowed)
        for groups, column in wanted.values_of.items():
            if column in allowed:
                held[groups] = model.marginal((groups,)) > 0
        for column, codes in held.items():
            zeros[(column,)] = ~codes | zeros.get((column,), np.zeros(codes.shape, np.bool_))
        kept = {
            clique: _kept(counts, clique, held)
            for clique, counts in wanted.counts.items()
            if not held.keys().isdisjoint(clique)
        }
        counts = {c: left * (model.total / left.sum()) for c, left in kept.items() if left.sum() > 0}
        return replace(
            self,
            model=model,
            public_marginals=NO_PUBLIC_MARGINALS,
            wanted=replace(wanted, counts=counts, total=model.total),
            chain=None,
            bounds=replace(self.bounds, zeros=zeros),
        )


def _kept(counts: NDArray[np.float64], clique: Clique, allowed: Allowed) -> NDArray[np.float64]:
    masks = [allowed.get(c, np.ones(size, np.bool_)) for c, size in zip(clique, counts.shape, strict=True)]
    return counts * reduce(np.logical_and.outer, masks)


class Chain(Protocol):
    """A model of a row given the one before it in its person's order; it is public."""

    @property
    def order(self) -> str:
        """The column that rows are ordered by."""

    def sequences(self, unit: NDArray[np.integer]) -> Sequences:
        """The rows of persons by the number of each row's person, which never falls."""

    def drawn(
        self, rows: int, rng: np.random.Generator, targets: Sequence[TableTarget]
    ) -> tuple[dict[str, Codes], Codes]:
        """Rows of new persons, int64[rows] codes of the columns, and each row's person; near the targets."""

    def save(self, folder: Path) -> None:
        """Write its files into the folder of a bundle; OSError where they can't be written."""


CHAINS: Point[Callable[[Path], Chain]] = Point("chains", "histories")
"""Loads the chain of a bundle's folder; ``ModelFileError`` if its files can't be used."""

CHAIN_FILES = ("history.npz", "history_steps.npz")

UNITS = ""
"""The name under which codes of rows hold the unit of each."""


def _as_they_are(made: Made, rng: np.random.Generator) -> Made:
    del rng
    return made


def _in_random_order(made: Made, rng: np.random.Generator) -> Made:
    codes, repairs = made
    order = permuted(len(next(iter(codes.values()))), rng)
    return {column: own[order] for column, own in codes.items()}, repairs


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(3, *key))))


FORMAT = "dpsynth row source"

VERSION = 1

_KEYS = {
    "format", "version", "total", "pairs", "measured", "variances", "values_of", "fixed", "zeros",
    "densities", "joint_densities", "public_marginals",
}  # fmt: skip

_PAIR = 2

_MOST_PAIRS = 1 << 20

_LARGEST = float(1 << 53)


def save_row_source(source: RowSource, path: str | Path) -> None:
    """Write all of a source but its model, its layout and its rules, which a bundle has elsewhere.

    Raises:
        OSError: the file can't be written.
    """
    wanted, zeros = source.wanted, source.bounds.zeros
    densities = {
        c.name: source.densities[c.name]
        for c in source.layout.columns
        if c.name in source.densities and c.codec.continuous and not c.uniform
    }
    marginals, joint = source.public_marginals.marginals, source.layout.joint
    header = {
        "format": FORMAT,
        "version": VERSION,
        "total": float(wanted.total),
        "pairs": [list(pair) for pair in wanted.pairs],
        "measured": [list(pair) for pair in wanted.counts],
        "variances": [[*pair, float(variance)] for pair, variance in wanted.variances.items()],
        "values_of": dict(wanted.values_of),
        "fixed": sorted(source.bounds.fixed),
        "zeros": [list(clique) for clique in zeros],
        "densities": {column: float(stddev) for column, (_, stddev) in densities.items()},
        "joint_densities": [[density.first, density.second] for density in joint],
        "public_marginals": [{"columns": list(m.clique), "counted": m.counted} for m in marginals],
    }
    arrays: Mapping[str, Iterable[AnyArray]] = {
        "counts": wanted.counts.values(),
        "zeros": zeros.values(),
        "density": (counts for counts, _ in densities.values()),
        "joint_density": (density.counts for density in joint),
        "public": (m.numbers for m in marginals),
    }
    if source.chain is not None:
        header["history"] = True
        source.chain.save(Path(path).parent)
    named = {f"{kind}_{i}": values for kind, found in arrays.items() for i, values in enumerate(found)}
    save_arrays(path, header, named)


def load_row_source(path: str | Path, model: MarkovRandomField, layout: Layout, rules: Rules) -> RowSource:
    """The source of rows that a file completes.

    Raises:
        ModelFileError: the file can't be opened, is damaged, of another version, or is about another model.
    """
    with opened(path, "a source of rows") as content:
        header = _Header.of(content.header, model.tree.domain, layout)
        arrays = iter(content.arrays(header.members(model.tree.domain, layout)))
        counts = {pair: _counts(next(arrays), pair) for pair in header.measured}
        zeros = {clique: _closed(next(arrays)) for clique in header.zeros}
        densities: Densities = {
            column: (_counts(next(arrays), (column,), least=-_LARGEST), stddev)
            for column, stddev in header.densities.items()
        }
        joint = tuple(JointDensity(*pair, _counts(next(arrays), pair)) for pair in header.joint)
        known = _public(header.public, arrays)
    chain = CHAINS.needed("A bundle of histories")(Path(path).parent) if header.history else None
    wanted = Wanted(header.pairs, counts, header.variances, header.values_of, header.total)
    bounds = Bounds(frozenset(header.fixed), zeros)
    dense = replace(layout.with_density(densities), joint=joint)
    return RowSource(model, dense, rules, known, wanted, bounds, densities, chain)


@dataclass(frozen=True)
class _Header:
    """The header of a file, checked against the model's domain."""

    total: float
    pairs: tuple[Clique, ...]
    measured: tuple[Clique, ...]
    variances: Mapping[Clique, float]
    values_of: Mapping[str, str]
    fixed: tuple[str, ...]
    zeros: tuple[Clique, ...]
    densities: Mapping[str, float]
    joint: tuple[tuple[str, str], ...]
    public: tuple[tuple[Clique, bool], ...]
    history: bool = False

    @classmethod
    def of(cls, header: Any, domain: Domain, layout: Layout) -> _Header:
        require(isinstance(header, dict) and header.get("format") == FORMAT, f"its format is not '{FORMAT}'")
        version = header.get("version")
        require(version == VERSION, f"its version is {version!r}; this program reads version {VERSION}")
        require(
            header.keys() - {"history"} == _KEYS,
            f"its header must have {', '.join(sorted(_KEYS))}, nothing else",
        )
        require(_positive(header["total"]), "its total is not a number of rows")
        variances = _listed(header["variances"], "variances")
        weighed = all(isinstance(v, list) and v and _positive(v[-1]) for v in variances)
        require(weighed, "its variances are not numbers above 0")
        values_of = _mapping(header["values_of"], "values_of", lambda v: v in domain.sizes)
        require(values_of.keys() <= domain.sizes.keys(), "its values_of name no columns of the model")
        for groups, column in values_of.items():
            require(
                domain.cells((groups, column)) <= _LARGEST and groups != column, "its groups are too many"
            )
        densities = _mapping(header["densities"], "densities", _positive)
        dense = {c.name for c in layout.columns if c.codec.continuous}
        require(densities.keys() <= dense, "its densities are not those of columns of numbers")
        pairs = _cliques(header["pairs"], "pairs", domain)
        sound = len(pairs) <= _MOST_PAIRS and all(_PAIR <= len(p) <= WIDEST for p in pairs)
        require(sound, "its pairs are not sets of two to five columns")
        measured = _cliques(header["measured"], "measured", domain)
        require(set(measured) <= set(pairs), "its measured pairs are not among its pairs")
        joint = _cliques(header["joint_densities"], "joint_densities", domain)
        ordered = {c.name for c in layout.columns if c.codec.ordered}
        sound = all(len(p) == _PAIR and set(p) <= ordered for p in joint)
        require(sound, "its joint densities are not of pairs of columns in order")
        public = _listed(header["public_marginals"], "public_marginals")
        described = all(isinstance(p, dict) and p.keys() == {"columns", "counted"} for p in public)
        require(described, "its public_marginals are not described")
        return cls(
            header["total"],
            pairs,
            measured,
            {_cliques([v[:-1]], "variances", domain)[0]: float(v[-1]) for v in variances},
            values_of,
            _cliques([header["fixed"]], "fixed", domain)[0],
            _cliques(header["zeros"], "zeros", domain),
            {column: float(stddev) for column, stddev in densities.items()},
            tuple((first, second) for first, second in joint),
            tuple((_cliques([p["columns"]], "public", domain)[0], p["counted"] is True) for p in public),
            header.get("history") is True,
        )

    def members(self, domain: Domain, layout: Layout) -> list[Member]:
        columns = layout.modelled
        shapes: Mapping[str, Iterable[tuple[int, ...]]] = {
            "counts": map(domain.shape, self.measured),
            "zeros": map(domain.shape, self.zeros),
            "density": ((columns[name].size,) for name in self.densities),
            "joint_density": (tuple(len(columns[name].codec.labels) for name in pair) for pair in self.joint),
            "public": (domain.shape(clique) for clique, _ in self.public),
        }
        return [
            Member(f"{kind}_{i}", shape, "|b1" if kind == "zeros" else "<f8")
            for kind, found in shapes.items()
            for i, shape in enumerate(found)
        ]


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST


def _listed(value: object, what: str) -> list[Any]:
    require(isinstance(value, list), f"its {what} are not a list")
    assert isinstance(value, list)
    return value


def _mapping(value: object, what: str, sound: Callable[[Any], bool]) -> dict[str, Any]:
    require(isinstance(value, dict), f"its {what} are not a mapping")
    assert isinstance(value, dict)
    hashable = all(isinstance(v, str | int | float) for v in value.values())
    require(hashable and all(map(sound, value.values())), f"its {what} are wrong")
    return value


def _cliques(value: object, what: str, domain: Domain) -> tuple[Clique, ...]:
    listed = _listed(value, what)
    named = all(isinstance(c, list) and all(isinstance(name, str) for name in c) for c in listed)
    require(named, f"its {what} are not lists of names")
    found = tuple(map(tuple, listed))
    sound = all(set(c) <= domain.sizes.keys() and len(set(c)) == len(c) for c in found)
    require(sound and len(set(found)) == len(found), f"its {what} name no columns of the model, or one twice")
    return found


def _counts(values: AnyArray, clique: Clique, least: float = 0.0) -> NDArray[np.float64]:
    sound = bool(np.isfinite(values).all() and (values >= least).all() and (values <= _LARGEST).all())
    require(sound, f"the counts of {', '.join(clique)} are no counts")
    return np.asarray(values, dtype=np.float64)


def _closed(values: AnyArray) -> NDArray[np.bool_]:
    require(bool((values.view(np.uint8) <= 1).all()), "its zeros are not truth values")
    return np.asarray(values, dtype=np.bool_)


def _public(described: Iterable[tuple[Clique, bool]], arrays: Iterable[AnyArray]) -> PublicMarginals:
    marginals = []
    for (clique, counted), numbers in zip(described, arrays, strict=True):
        counts = _counts(numbers, clique)
        require(bool(counts.any()), f"the public marginal of {', '.join(clique)} is empty")
        marginals.append(PublicMarginal(clique, counts, counted))
    try:
        PublicMarginals.of(marginals)
    except Contradiction as error:
        require(False, f"a public marginal {error}")
    return PublicMarginals(tuple(marginals))
