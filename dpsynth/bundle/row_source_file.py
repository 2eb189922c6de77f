"""Storage of what makes rows of a model: targets of refinement, zeros, densities, public marginals.

The file stands beside the model's. It holds the targets with their posterior variances, so that whoever has
the bundle can refine longer samples to the same marginals as the released table.

Invariant: a file that is loaded suits the model, the layout and the rules that are given with it; any other
file is refused with one error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.bundle.row_source import Densities, RowSource
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.joint_density import JointDensity
from dpsynth.columns.layout import Layout
from dpsynth.columns.public_marginals import Contradiction, PublicMarginal, PublicMarginals
from dpsynth.columns.rules import Rules
from dpsynth.model import Bounds, MarkovRandomField, Wanted
from dpsynth.model.array_file import AnyArray, Member, opened, require, save_arrays

FORMAT = "dpsynth row source"
VERSION = 1

_KEYS = {
    "format", "version", "total", "pairs", "measured", "variances", "values_of", "fixed", "zeros",
    "densities", "joint_densities", "public_marginals",
}  # fmt: skip
_PAIR, _WIDEST = 2, 3
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
    arrays: dict[str, AnyArray] = {}
    arrays |= {f"counts_{i}": counts for i, counts in enumerate(wanted.counts.values())}
    arrays |= {f"zeros_{i}": closed for i, closed in enumerate(zeros.values())}
    arrays |= {f"density_{i}": counts for i, (counts, _) in enumerate(densities.values())}
    arrays |= {f"joint_density_{i}": density.counts for i, density in enumerate(joint)}
    arrays |= {f"public_{i}": m.numbers for i, m in enumerate(marginals)}
    save_arrays(path, header, arrays)


def load_row_source(path: str | Path, model: MarkovRandomField, layout: Layout, rules: Rules) -> RowSource:
    """The source of rows that a file completes.

    Args:
        path: a file that ``save_row_source`` wrote.
        model: the model of the same bundle.
        layout: its layout, without densities.
        rules: its constraints.

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
    wanted = Wanted(header.pairs, counts, header.variances, header.values_of, header.total)
    bounds = Bounds(frozenset(header.fixed), zeros)
    dense = replace(layout.with_density(densities), joint=joint)
    return RowSource(model, dense, rules, known, wanted, bounds, densities)


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

    @classmethod
    def of(cls, header: Any, domain: Domain, layout: Layout) -> _Header:
        """The header that a JSON value is."""
        require(isinstance(header, dict) and header.get("format") == FORMAT, f"its format is not '{FORMAT}'")
        version = header.get("version")
        require(version == VERSION, f"its version is {version!r}; this program reads version {VERSION}")
        require(header.keys() == _KEYS, f"its header must have {', '.join(sorted(_KEYS))}, nothing else")
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
        sound = len(pairs) <= _MOST_PAIRS and all(_PAIR <= len(p) <= _WIDEST for p in pairs)
        require(sound, "its pairs are not sets of two or three columns")
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
        )

    def members(self, domain: Domain, layout: Layout) -> list[Member]:
        """The arrays of the file."""
        sizes = {c.name: c.size for c in layout.columns}
        bins = {c.name: len(c.codec.labels) for c in layout.columns}
        return [
            *(Member(f"counts_{i}", domain.shape(pair), "<f8") for i, pair in enumerate(self.measured)),
            *(Member(f"zeros_{i}", domain.shape(clique), "|b1") for i, clique in enumerate(self.zeros)),
            *(Member(f"density_{i}", (sizes[column],), "<f8") for i, column in enumerate(self.densities)),
            *(
                Member(f"joint_density_{i}", (bins[first], bins[second]), "<f8")
                for i, (first, second) in enumerate(self.joint)
            ),
            *(
                Member(f"public_{i}", domain.shape(clique), "<f8")
                for i, (clique, _) in enumerate(self.public)
            ),
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
    """Lists of columns of the model, each of them once."""
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
