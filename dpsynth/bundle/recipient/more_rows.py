"""More rows of a bundle's model, of all kinds or with some values given, piece by piece.

Rows with values given are drawn from the model conditioned on the cells that allow them, refined, decoded,
and kept if they satisfy what is given. So each row does, whatever constraints and values inside bins have
done to it.

Invariant: every row obeys the constraints, and what is given. Memory is that of one piece, and a file appears
whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from math import ceil
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.bundle.recipient.opened import OpenedBundle
from dpsynth.bundle.recipient.query import QuestionRefused, checked_condition
from dpsynth.bundle.row_files import SUFFIXES, CsvFile, row_file
from dpsynth.bundle.row_source import PIECE, RowSource
from dpsynth.columns.column import Column
from dpsynth.columns.conditions import true_rows
from dpsynth.columns.expression import Call, Expression, Literal, Operand, Reader, Reference
from dpsynth.columns.layout import Layout
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.model import ZeroProbability
from dpsynth.statistics.grouped_counts import condition_of


def print_rows(tables: Iterable[pa.Table], layout: Layout) -> None:
    """Write rows to standard output, as CSV, as long as somebody reads."""
    out = CsvFile(sys.stdout.buffer, layout)
    try:
        for table in tables:
            out.write(table)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has enough; what Python would still flush at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_rows(tables: Iterable[pa.Table], layout: Layout, path: Path) -> int:
    """Write rows to a new file, and count them.

    Raises:
        ConfigError: the name ends in none of ``SUFFIXES``.
        DpsynthError: the file exists, or can't be written.
    """
    suffix = next((suffix for suffix in SUFFIXES if path.name.endswith(suffix)), None)
    if suffix is None:
        raise ConfigError(
            f"{path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, which says how rows are "
            "written."
        )
    if path.exists():
        raise DpsynthError(f"{path} exists already. Give a new name.")
    part = path.with_name(f".{secrets.token_hex(6)}.{path.name}")
    rows = 0
    try:
        with closing(row_file(part, layout)) as file:
            for table in tables:
                file.write(table)
                rows += table.num_rows
        part.replace(path)
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)
    return rows


Given = str | Sequence[str] | Mapping[str, object] | None
"""Requirements of rows: conditions such as ``sex=F`` or ``age >= 65``, or values by column."""

Part = TypeVar("Part")

_LARGEST = 1 << 36
"""Largest number of rows of a sample."""

_MOST_TIMES = 200
"""Bound on all drawn rows, in multiples of the wanted rows; ``_SOME`` rows more are allowed."""

_SOME = 1_000_000


@dataclass(frozen=True, eq=False)
class Wish:
    """Requirements of every row.

    Attributes:
        codes: for some columns the codes that rows may have, bool[codes].
        formula: a condition beside that; None without one.
    """

    codes: Mapping[str, NDArray[np.bool_]]
    formula: Expression | None


def more_rows(
    bundle: OpenedBundle, number: int, given: Given | Wish = None, seed: int | None = None, chunk: int = PIECE
) -> Iterator[pa.Table]:
    """Rows in pieces of at most ``chunk``, typed as the synthetic table.

    Raises:
        DpsynthError: the number or the conditions can't be used, or no row has what is given.
    """
    if not 0 <= number <= _LARGEST:
        raise DpsynthError(f"The number of rows must be from 0 to {_LARGEST:,}, not {number:,}.")
    wish = given if isinstance(given, Wish) else wish_of(given, bundle)
    source = source_given(wish, bundle)
    if not number:
        return iter([bundle.rows.table(0, np.random.default_rng(0))])
    if source is bundle.rows:
        return source.tables(number, seed, chunk)

    def having(table: pa.Table, most: int) -> tuple[pa.Table, int]:
        rows = having_rows(wish, source.layout, table)[:most]
        return (table if rows.size == table.num_rows else table.take(pa.array(rows))), rows.size

    return (table for table in kept(source, number, seed, chunk, having) if table.num_rows)


def _nobody() -> DpsynthError:
    return DpsynthError(
        "The model has no row with what is given. Give less, or ask `dpsynth query` for counts."
    )


def kept(
    source: RowSource,
    number: int,
    seed: int | None,
    chunk: int,
    part: Callable[[pa.Table, int], tuple[Part, int]],
) -> Iterator[Part]:
    """Parts of pieces of rows, until they have ``number`` rows; DpsynthError if very many rows are too few.

    ``part`` takes a piece and the most rows to keep of it, and returns these with their number.
    """
    rng, most = np.random.default_rng(seed), _MOST_TIMES * number + _SOME
    drawn = done = 0
    while done < number:
        if drawn > most:
            some = f"{done:,} of {drawn:,} rows that were drawn have what is given: ask for at most {done:,}."
            none = f"None of {drawn:,} rows that were drawn has what is given. Give less."
            raise DpsynthError(some if done else none)
        left = number - done
        # Rows are drawn for those that will be left out, as far as is known by now.
        wanted = left if not drawn else min(ceil(1.05 * left * drawn / max(done, 1)) + 10, most + 1 - drawn)
        for table in source.tables(wanted, int(rng.integers(1 << 62)), chunk, before=drawn):
            drawn += table.num_rows
            found, rows = part(table, number - done)
            done += rows
            yield found
            if done == number:
                return


def having_rows(wish: Wish, layout: Layout, table: pa.Table) -> NDArray[np.int64]:
    """The rows of a table that have what is wished for, by number."""
    texts = layout.texts(table)
    found = np.ones(table.num_rows, dtype=np.bool_)
    columns = layout.modelled
    for name, mask in wish.codes.items():
        found &= mask[columns[name].encode(texts[columns[name].source])]
    if wish.formula is not None:
        operands = {
            part.name: Operand(
                layout.kinds[part.name], _array(table, part.name), _present(table, texts, part.name)
            )
            for part in layout.parts
        }
        found &= true_rows(wish.formula, layout, operands, table.num_rows)
    return np.flatnonzero(found)


def _array(table: pa.Table, name: str) -> pa.Array:
    column = table[name].combine_chunks()
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _present(table: pa.Table, texts: Mapping[str, pa.StringArray], name: str) -> pa.StringArray:
    import pyarrow.compute as pc

    return pc.if_else(_array(table, name).is_valid(), texts[name], pa.scalar(None, pa.string()))


def source_given(wish: Wish, bundle: OpenedBundle) -> RowSource:
    """The bundle's source of rows that may have what is wished for; DpsynthError if no row can."""
    found, source = dict(wish.codes), bundle.rows
    condition = condition_of(wish.formula, source.layout)
    masks = [*condition.masks.items()]
    for factor in condition.factors:
        for axis, column in enumerate(factor.columns):
            others = tuple(i for i in range(len(factor.columns)) if i != axis)
            masks.append((column, np.asarray(factor.most.any(axis=others))))
    for column, mask in masks:
        found[column] = found.get(column, np.True_) & mask
    if any(not mask.any() for mask in found.values()):
        raise _nobody()
    try:
        return source.given(found)
    except ZeroProbability:
        raise _nobody() from None


def wish_of(given: Given, bundle: OpenedBundle) -> Wish:
    """Requirements of every row, as codes and a condition.

    Raises:
        QuestionRefused: a condition can't be read, or a column or a value is unknown.
    """
    layout = bundle.rows.layout
    pairs: list[tuple[Column, str]] = []
    formulas: list[Expression] = []
    if isinstance(given, Mapping):
        columns = layout.modelled
        for name, value in given.items():
            if name not in columns:
                raise _no_column(name, layout)
            pairs.append((columns[name], str(value).lower() if isinstance(value, bool) else str(value)))
    else:
        for text in [] if given is None else [given] if isinstance(given, str) else given:
            pair = _pair(text, layout)
            if pair is None:
                formulas.append(_formula(text, layout))
            else:
                pairs.append(pair)
    codes: dict[str, NDArray[np.bool_]] = {}
    for column, value in pairs:
        if value in column.labels:
            mask = np.array([label == value for label in column.labels])
            codes[column.name] = codes.get(column.name, np.True_) & mask
        else:
            formulas.append(_equal(column, value, bundle))
    together = reduce(lambda a, b: Call("and", (a, b)), formulas) if formulas else None
    return Wish(codes, together)


def _no_column(name: str, layout: Layout) -> QuestionRefused:
    return QuestionRefused(f"'{name}' is no column that the model holds: {_some([*layout.modelled])}.")


def _pair(text: str, layout: Layout) -> tuple[Column, str] | None:
    """The column and the value of a text such as ``sex=F``; None of a formula."""
    for column in sorted(layout.columns, key=lambda c: -len(c.name)):
        rest = text.strip().removeprefix(column.name).lstrip()
        if text.strip().startswith(column.name) and rest.startswith("=") and not rest.startswith("=="):
            return column, rest[1:].strip()
    return None


def _formula(text: str, layout: Layout) -> Expression:
    try:
        reader = Reader(text)
        found = reader.formula()
        reader.end()
    except ValueError as error:
        name, equals, _ = map(str.strip, text.partition("="))
        if equals and name.isidentifier() and name not in layout.named:
            raise _no_column(name, layout) from None
        raise QuestionRefused(
            f"What is given, '{text}', {error}. Write a value, such as sex=F, or a condition, such as "
            "age >= 65. One in words of linked tables is for tables: name a new folder with --out."
        ) from None
    return checked_condition(found, layout)


def _equal(column: Column, value: str, bundle: OpenedBundle) -> Expression:
    """The condition that a column has a value that is no label."""
    layout = bundle.rows.layout
    unknown = QuestionRefused(
        f"'{column.name}' has no value '{value}'; its values are labelled {_some(column.labels)}."
    )
    literal = Literal(value)
    if column.codec.kind.word == "number":
        try:
            literal = Literal(Decimal(value))
        except InvalidOperation:
            raise unknown from None
    try:
        found = checked_condition(Call("==", (Reference(column.name), literal)), layout)
    except (QuestionRefused, ValueError, OverflowError):
        raise unknown from None
    condition = condition_of(found, layout)
    if not all(mask.any() for mask in condition.masks.values()):
        raise unknown
    return found


def _some(labels: Sequence[str], most: int = 20) -> str:
    return ", ".join(labels[:most]) + (f" … ({len(labels)} in all)" if len(labels) > most else "")
