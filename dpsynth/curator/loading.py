"""Loading: batches of text become coded rows of a slice and, with contribution bounding, the private table.

A slice is public. Each row is taken by its own cell alone, never by other rows, their order, or the
dates in the table. So tables that differ in one unit differ in at most that unit's rows within the slice:
sensitivities under add_remove stay the same, and a contribution bound that is enforced afterwards holds
within the slice.

Invariant: after loading, only rows of the slice are left, at most ``max_rows`` of each person. No message
quotes a cell; a cell that is no date, or no value, is in no slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator.contribution_bounding import Person, nobody, person_codes, rows_kept
from dpsynth.curator.table import PrivateTable, Texts, steps_in
from dpsynth.curator.unit_sample import UnitSample
from dpsynth.domain.column import Column, codes_of, domain_of, each_once
from dpsynth.domain.domain import Domain
from dpsynth.domain.slices import Slice

_TIME = (
    r"[T ]([01][0-9]|2[0-4])(:[0-5][0-9](:[0-6][0-9]([.,][0-9]+)?)?)?"
    r" ?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?$"
)
_DATED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}" + _TIME


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRows:
    """All rows of the slice, before contribution bounding. Only the curator holds them.

    Attributes:
        domain: the public domain of the columns that are coded.
        codes: column to unsigned codes[rows], see ``PrivateTable``.
        texts: the cells of each column whose domain is to be found.
        persons: uint64[rows], the person of each row; None where each row is a unit.
        steps: column to int32[rows], see ``PrivateTable``.
        summed: names of the columns that are summed.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    texts: Mapping[str, Texts]
    persons: Person | None
    steps: Mapping[str, NDArray[np.int32]] = field(default_factory=dict)
    summed: frozenset[str] = frozenset()

    def bounded(self, max_rows: int, key: bytes) -> PrivateTable:
        """The private table after contribution bounding.

        Args:
            max_rows: the bound; no row is left out if each row is a unit.
            key: secret bytes that decide which rows of a person are kept.
        """
        codes, texts, steps, everyone = self.codes, self.texts, self.steps, self.persons
        unit: NDArray[np.int32] | None = None
        if everyone is not None:
            kept = rows_kept(everyone, max_rows, key)
            codes = {name: c[kept] for name, c in codes.items()}
            texts = {name: t.of_rows(kept) for name, t in texts.items()}
            steps = {name: s[kept] for name, s in steps.items()}
            most = np.unique(everyone[kept], return_counts=True)[1]
            if len(most) and most.max() > max_rows:
                raise RuntimeError("contribution bounding failed")
            if texts:
                unit = np.unique(everyone[kept], return_inverse=True)[1].astype(np.int32)
        held = [*codes.values(), *(t.index for t in texts.values())]
        rows = len(held[0]) if held else 0
        return PrivateTable(self.domain, codes, rows, texts, unit, steps, self.summed)


def load_rows(
    batches: Iterable[Mapping[str, pa.StringArray]],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
    summed: frozenset[str] = frozenset(),
    sample: UnitSample | None = None,
) -> LoadedRows:
    """Coded rows of the slice, before contribution bounding.

    A row is left out by its own cells alone, so tables that differ in one unit still differ in at most
    that unit's rows.

    Args:
        batches: text columns by name, the person's and the slice's included where there are any.
        columns: the public description of the table.
        neighbours: relation and unit; its ``nameless`` decides on rows without an id.
        key: secret bytes from which the code of each person follows.
        part: the slice that the release is about; None for all rows.
        summed: names of the columns whose numbers are kept to be summed.
        sample: the sample of units, drawn before anything else; None for all units.
    """
    parts: dict[str, list[NDArray[np.unsignedinteger]]] = {c.name: [] for c in columns if not c.kept_as_text}
    steps: dict[str, list[NDArray[np.int32]]] = {name: [] for name in parts if name in summed}
    texts: dict[str, list[pa.DictionaryArray]] = {c.name: [] for c in columns if c.kept_as_text}
    persons: list[Person] = []
    for every in batches if sample is None else _sampled(batches, neighbours, key, sample):
        batch = dict(every) if part is None else rows_within(every, part)
        if neighbours.person is not None:
            people = person_codes(batch[neighbours.person], key)
            if neighbours.nameless == "left_out":
                named = people != nobody(key)
                batch = {name: cells.filter(pa.array(named)) for name, cells in batch.items()}
                people = people[named]
            persons.append(people)
        for column in columns:
            if column.kept_as_text:
                texts[column.name].append(coded_texts(batch[column.name]))
            else:
                parts[column.name].append(each_once(partial(codes_of, column), batch[column.name]))
            if column.name in steps:
                steps[column.name].append(each_once(partial(steps_in, column), batch[column.name]))
    return LoadedRows(
        domain_of(c for c in columns if not c.kept_as_text),
        {name: np.concatenate(p) if p else np.zeros(0, np.uint8) for name, p in parts.items()},
        {name: gathered(t) for name, t in texts.items()},
        None if neighbours.person is None else np.concatenate([np.zeros(0, np.uint64), *persons]),
        {name: np.concatenate([np.zeros(0, np.int32), *s]) for name, s in steps.items()},
        summed,
    )


def _sampled(
    batches: Iterable[Mapping[str, pa.StringArray]], neighbours: Neighbours, key: bytes, sample: UnitSample
) -> Iterator[Mapping[str, pa.StringArray]]:
    """The rows of the units in the sample."""
    start = 0
    for batch in batches:
        number = len(next(iter(batch.values())))
        if neighbours.person is None:
            chosen = sample.rows(start, number)
        else:
            chosen = sample.persons(person_codes(batch[neighbours.person], key))
        start += number
        yield {name: cells.filter(pa.array(chosen)) for name, cells in batch.items()}


def load_table(
    batches: Iterable[Mapping[str, pa.StringArray]],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
) -> PrivateTable:
    """The private table: coded rows of the slice after contribution bounding.

    Args:
        batches: text columns by name, the person's and the slice's included where there are any.
        columns: the public description of the table.
        neighbours: relation and unit; ``max_rows`` is enforced here, on the rows of the slice.
        key: secret bytes that decide which rows of a person are kept.
        part: the slice that the release is about; None for all rows.
    """
    return load_rows(batches, columns, neighbours, key, part).bounded(neighbours.max_rows, key)


def rows_within(batch: Mapping[str, pa.StringArray], part: Slice) -> dict[str, pa.StringArray]:
    """The rows of a batch that lie in a slice.

    Args:
        batch: text columns by name, the slice's among them.
        part: the slice.
    """
    inside = in_slice(batch[part.column], part)
    return {name: cells.filter(inside) for name, cells in batch.items()}


def in_slice(cells: pa.StringArray, part: Slice) -> pa.BooleanArray:
    """Membership of each row in a slice, by the text of its cell; each distinct day or value is read once.

    The date of a cell with a date and a time is the one written there, whatever the time zone.
    """
    texts = pc.utf8_trim_whitespace(cells)
    if part.start is not None:
        dated = pc.match_substring_regex(texts, _DATED)
        texts = pc.if_else(dated, pc.utf8_slice_codeunits(texts, 0, 10), texts)
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    known = coded.dictionary.to_pylist()
    held = pa.array([text is not None and part.holds(text) for text in known], pa.bool_())
    return held.take(coded.indices)


def coded_texts(cells: pa.StringArray) -> pa.DictionaryArray:
    """The cells of a batch without blanks around them, each distinct text once."""
    stripped = pc.fill_null(pc.utf8_trim_whitespace(cells), "")
    return pc.dictionary_encode(pc.cast(stripped, pa.large_string()))


def gathered(batches: Iterable[pa.DictionaryArray]) -> Texts:
    """The texts of all batches, in their order."""
    kind = pa.dictionary(pa.int32(), pa.large_string())
    whole = pa.chunked_array([*batches, pa.array([], kind)], kind).unify_dictionaries()
    index = np.concatenate([part.indices.to_numpy() for part in whole.chunks])
    return Texts(whole.chunks[0].dictionary, index.astype(np.int32, copy=False))
