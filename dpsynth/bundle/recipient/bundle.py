"""A published bundle with all that a recipient does with it: read, plot, sample, query, verify.

Invariant: nothing but the public folder is read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from dpsynth.bundle.manifest import Manifest
from dpsynth.bundle.recipient.opened import OpenedBundle, public_folder
from dpsynth.bundle.row_files import frame_of
from dpsynth.wing import Point

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.bundle.recipient.more_rows import Given
    from dpsynth.bundle.recipient.query import Answer
    from dpsynth.bundle.recipient.verification import Verification


class Picture(Protocol):
    """A picture of a bundle."""

    @property
    def svg(self) -> str: ...

    def save(self, path: str | Path) -> Path:
        """Write it to a file, such as ``age.svg``; the path of that file."""


PICTURE: Point[Callable[[OpenedBundle, Sequence[str]], Picture]] = Point("picture", "notebooks")
"""The picture of a column, of a pair, or of the verdict if no column is named."""
OPENED_TABLES: Point[Callable[[OpenedBundle], dict[str, pa.Table]]] = Point("opened tables", "tables")
"""The linked tables of a bundle, by name."""
JOINED: Point[Callable[[OpenedBundle, Mapping[str, pd.DataFrame], str, str | None], pd.DataFrame]] = Point(
    "joined tables", "tables"
)
"""The rows of a linked table with those above, from the tables, its name and the last one above."""
SAMPLED: Point[Callable[[OpenedBundle, int, Given, int | None, Path | None], dict[str, pa.Table]]] = Point(
    "sampled tables", "tables"
)
"""New rows at the root with all below, drawn as by ``more_rows``; written to a folder if one is named."""


def open_bundle(path: str | Path) -> Bundle:
    """The bundle in a folder.

    Args:
        path: the folder of a release, or its ``public`` folder.

    What its owner made known of it since, by a file of notices beside it, is a warning.

    Raises:
        BundleRefused: there is no bundle, or it is of another version.
    """
    folder = public_folder(Path(path))
    bundle = Bundle(folder, Manifest.read(folder))
    for notice in bundle.notices:
        warnings.warn(notice.sentence, stacklevel=2)
    return bundle


class Bundle(OpenedBundle):
    """A published bundle; frames, answers and rows are made when they are asked for."""

    def plot(self, *columns: str) -> Picture:
        """A picture that a notebook shows in place, and ``save`` writes to a file.

        Args:
            columns: one column: its estimated rows, with intervals, and those of the synthetic table. Two
                columns: the estimated rows of each pair of values. None: all verdicts.

        Raises:
            DpsynthError: a column is unknown, or a file of the bundle can't be used.
        """
        return PICTURE.needed("A picture")(self, columns)

    def sample(self, n: int, *, given: Given = None, seed: int | None = None) -> pd.DataFrame:
        """More synthetic rows, refined to the same targets as ``synthetic``; they cost no privacy.

        Args:
            given: what each row must have: ``{"sex": "F"}``, ``"age >= 65"``, or several such conditions.
            seed: makes the rows repeatable. Left out: new rows each time.

        Raises:
            DpsynthError: no row has what is given, or a file of the bundle can't be used.
        """
        from dpsynth.bundle.recipient.more_rows import more_rows

        return frame_of(pa.concat_tables(more_rows(self, n, given, seed)))

    def query(self, question: str) -> Answer:
        """The answer to a question such as ``mean(cost) by sex where age >= 65``; it costs no privacy.

        Raises:
            DpsynthError: the question can't be read, or a file of the bundle can't be used.
        """
        from dpsynth.bundle.recipient.query import answered

        notices = tuple(notice.sentence for notice in self.notices)
        return replace(answered(self, question), notices=notices, terms=self.facts.terms or "")

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The linked tables that the synthetic rows stand for, by name; none where there is one table.

        Raises:
            DpsynthError: a file of the bundle can't be used.
        """
        if self.facts.tables is None:
            return {}
        read = OPENED_TABLES.needed("A bundle of linked tables")
        found = self._read("tables", lambda: read(self))
        return {name: frame_of(table) for name, table in found.items()}

    def join(self, table: str, onto: str | None = None) -> pd.DataFrame:
        """The rows of a linked table, each with the columns of the rows above that it belongs to.

        A column that one below has the name of gets its table's name in front: ``households.rent``.

        Args:
            onto: the last table above whose columns are joined; None: the one at the root.
        """
        join = JOINED.needed("A bundle of linked tables")
        return self._read("tables", lambda: join(self, self.tables, table, onto))

    def sample_tables(
        self, n: int, *, given: Given = None, seed: int | None = None, out: str | Path | None = None
    ) -> dict[str, pd.DataFrame]:
        """New rows of the linked table at the root, with all rows below; as ``sample`` draws them.

        Args:
            out: a new folder, to which they are written too.
        """
        draw = SAMPLED.needed("A bundle of linked tables")
        to = None if out is None else Path(out)
        found = self._read("tables", lambda: draw(self, n, given, seed, to))
        return {name: frame_of(table) for name, table in found.items()}

    def verify(self, key: str | None = None, notices: str | Path | None = None) -> Verification:
        """The verification of the bundle: its checksums, manifest, statistics, guarantee and signature.

        Args:
            key: the public key that must have signed it, known from elsewhere; None takes any key, or none.
            notices: a file of notices, or its URL; None takes the one beside the bundle, if there is one.
        """
        from dpsynth.bundle.recipient.verification import verified

        return verified(self.folder, key, notices)

    def __repr__(self) -> str:
        """The name of the bundle, after the notices of it."""
        said = "".join(f"{notice.sentence}\n" for notice in self.notices)
        return f"{said}<Bundle of release {self.facts.release} {self.facts.release_id} in {self.folder}>"
