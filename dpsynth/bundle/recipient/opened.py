"""A published bundle, opened by whoever holds its public folder.

Invariant: nothing but the public folder is read, and nothing of it is trusted: a file that is damaged,
missing or hostile is refused with one plain error.
Texts are those before ``neutralise``, whichever file they come from.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dpsynth.bundle.manifest import MANIFEST, BundleRefused, Manifest, Statistic, manifest_text
from dpsynth.bundle.pages import InlinePage
from dpsynth.bundle.publication import file_of
from dpsynth.bundle.report_source import REPORT, ReportSource, report_source
from dpsynth.bundle.row_files import frame_of, restore, table_names
from dpsynth.bundle.row_source import RowSource, load_row_source
from dpsynth.columns.column import Column, codes_of, domain_of, each_once
from dpsynth.columns.domain import Domain
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import Observation, PublicMarginals
from dpsynth.columns.public_schema import UnknownColumn
from dpsynth.columns.rules import RuleRefused, Rules, rules_of
from dpsynth.columns.sums import FinerCounts, MeasuredSums
from dpsynth.errors import ModelFileError
from dpsynth.model import Expansion, LeastSquares, MarkovRandomField, load, public_counts
from dpsynth.model.measurement_file import Answered, UnusableMeasurements, read_measurements
from dpsynth.statistics import exam
from dpsynth.statistics.estimates import Unbiased
from dpsynth.statistics.exam import Distance
from dpsynth.statistics.measured_figures import FINER, SUMS, finer_counts_in, sums_in, tilts_of
from dpsynth.statistics.sources import Sources
from dpsynth.statistics.verdict import Verdict
from dpsynth.wing import Point

if TYPE_CHECKING:
    import pandas as pd

    from dpsynth.accounting.events import Guarantee


def measured_counts(
    answers: Answered, layout: Layout, public: PublicMarginals, earlier: Sequence[Answered] = ()
) -> LeastSquares:
    """The estimates of every marginal within a measured one, over values rather than groups."""
    domain = domain_of(layout.columns)
    singles: Sequence[Observation] = answers.singles
    joint: Sequence[Observation] = ()
    if public.rows is not None:
        one_way, joint = public_counts(public, public.rows)
        singles = (*singles, *one_way)
    expansion = Expansion(domain, answers.compression, tuple(singles))
    told = [
        m for tier in earlier for m in Expansion(domain, tier.compression, tier.singles).direct(tier.answers)
    ]
    return LeastSquares(domain, (*expansion.direct(answers.answers), *joint, *told))


WITHOUT_CURATOR: Point[Callable[[Mapping[str, Any], Domain, Sequence[Observation]], Unbiased]] = Point(
    "answers without a curator"
)
"""From what a manifest states of a collection, the columns and the measurements to reconciled estimates."""


class Notice(NamedTuple):
    """A notice of a bundle by its owner, made after it was published, as a sentence.

    Attributes:
        withdrawn: True if the bundle is not to be used any more.
        fault: True if the notice itself can't be relied on.
    """

    sentence: str
    withdrawn: bool = False
    fault: bool = False


NOTICES_FILE = "notices.json"

NOTICES: Point[Callable[[Path, str, str | None, str | None, str | None], tuple[Notice, ...]]] = Point(
    "notices of a bundle", "governance"
)
"""From a public folder, the release's id, its signer, a file of notices and a known key to the notices."""


def notices_beside(folder: Path, release_id: str, signed_by: str | None = None) -> tuple[Notice, ...]:
    """The notices of a release in the file beside its public folder, the gravest first; () without one."""
    read = NOTICES.filled() if (folder.parent / NOTICES_FILE).is_file() else None
    return read(folder, release_id, signed_by, None, None) if read else ()


_LEAST_FIGURES = ("estimate", "standard_error", "low", "high")

_ERRORS = ("cells", "distance", "error", "standard_error", "low", "high")

T = TypeVar("T")


SEALED: Point[Callable[[Path], str]] = Point("sealed bundle", "governance")
"""From a folder to a sentence that says until when its bundle is sealed; "" if it is not."""


def no_bundle(path: Path) -> BundleRefused:
    """The refusal of a folder without a bundle; of a release for several audiences it names their folders."""
    sealed = SEALED.filled()
    if sealed is not None and (said := sealed(path)):
        return BundleRefused(said)
    names = sorted(found.parent.name for found in path.glob(f"*/{MANIFEST}"))
    advice = (
        f"It holds bundles of several audiences: give the folder of one of them, {' or '.join(names)}."
        if names
        else "Give the folder of a release, or its folder public."
    )
    return BundleRefused(f"{path} is no bundle: it has no {MANIFEST}. {advice}")


def public_folder(path: Path) -> Path:
    """The public folder of a release, which may be named itself; ``BundleRefused`` if there is none."""
    for found in (path / "public", path):
        if (found / MANIFEST).is_file():
            return found
    raise no_bundle(path)


@dataclass(frozen=True, eq=False, repr=False)
class OpenedBundle:
    """A published bundle. Files are read when they are needed first.

    Attributes:
        folder: the public folder.
    """

    folder: Path
    facts: Manifest

    @cached_property
    def notices(self) -> tuple[Notice, ...]:
        """The notices of the bundle in the file beside it, the gravest first; () without such a file."""
        return notices_beside(self.folder, self.facts.release_id, self.facts.signed_by)

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """The content of ``manifest.json`` as JSON values."""
        values: Mapping[str, Any] = json.loads(manifest_text(self.facts.values))
        return values

    def _read(self, what: str, read: Callable[[], T]) -> T:
        """A part of the bundle.

        Raises:
            BundleRefused: it is damaged or missing.
        """
        try:
            return read()
        except (BundleRefused, ModelFileError):
            raise
        except OSError as error:
            words = f"can't be opened: {error.strerror or type(error).__name__}"
        except (UnknownColumn, RuleRefused, UnusableMeasurements) as error:
            words = f"can't be used: {Exception.__str__(error)}"
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException) as bad:
            words = f"is damaged ({type(bad).__name__})"
        raise BundleRefused(f"{self.folder / what} {words}. `dpsynth verify` says which files were changed.")

    @cached_property
    def layout(self) -> Layout:
        """The columns of the table, without densities inside bins."""
        return self._read(MANIFEST, lambda: self.facts.layout)

    @cached_property
    def rules(self) -> Rules:
        """The constraints that every row obeys."""
        written = [stated.rule for stated in self.facts.constraints.rules]
        return self._read(MANIFEST, lambda: rules_of(written, self.layout))

    @cached_property
    def model(self) -> MarkovRandomField:
        """The fitted model, over codes of values."""
        model = load(self.folder / "model.npz")
        sizes = model.tree.domain.sizes
        if any(sizes.get(column.name) != column.size for column in self.layout.columns):
            raise BundleRefused(f"{self.folder / 'model.npz'} is the model of other columns.")
        return model

    @cached_property
    def rows(self) -> RowSource:
        """The source of more rows: the model, with the targets that rows are refined to.

        Numbers lie inside their bins as the measured means have them.
        """
        if not self.sums:
            return self._rows_of_file
        layout = self._rows_of_file.layout
        tilts = tilts_of(self.sums, layout.modelled, self.model, self.measured, self.rules.named)
        return replace(self._rows_of_file, layout=replace(layout, tilts=tilts))

    @cached_property
    def _rows_of_file(self) -> RowSource:
        path = self.folder / "rows.npz"
        return self._read("rows.npz", lambda: load_row_source(path, self.model, self.layout, self.rules))

    @cached_property
    def answers(self) -> Answered:
        """The noisy answers from which all else was made."""
        path = self.folder / "measurements.parquet"
        return self._read(path.name, lambda: read_measurements(path, self.layout.columns))

    @cached_property
    def earlier_answers(self) -> tuple[tuple[str, Answered], ...]:
        """Joint answers of audiences of smaller epsilons, each with the name of its file."""
        listed = () if self.facts.audience is None else self.facts.audience.answers_of

        def read(name: str) -> Answered:
            return read_measurements(self.folder / file_of(name), self.layout.columns)

        return tuple((file_of(name), self._read(file_of(name), partial(read, name))) for name in listed)

    @cached_property
    def measured(self) -> Unbiased:
        """The measured counts, reconciled: unbiased estimates with exact variances."""
        local = self.facts.local
        if local is not None:
            answers = (*self.answers.singles, *self.answers.answers)
            stated_answers = WITHOUT_CURATOR.filled()
            if stated_answers is None:
                raise BundleRefused(f"{self.folder} is of the local model, and needs the wing local.")
            return self._read(
                MANIFEST, lambda: stated_answers(local, domain_of(self.layout.columns), answers)
            )
        earlier = [answered for _, answered in self.earlier_answers]
        rows = self._rows_of_file
        return measured_counts(self.answers, rows.layout, rows.public_marginals, earlier)

    @cached_property
    def sources(self) -> Sources:
        return Sources(
            self.rows.layout.columns,
            self.measured,
            self.model,
            public_marginals=self.rows.public_marginals,
            sums=self.sums,
            finer=self.finer,
            distances=self.distances,
            sampled=self.facts.sampling,
        )

    def _listed(self, name: str, read: Callable[[Any, Mapping[str, Column]], tuple[T, ...]]) -> tuple[T, ...]:
        path = self.folder / name
        if not path.is_file():
            return ()
        return self._read(
            name, lambda: read(json.loads(path.read_text(encoding="utf-8")), self.layout.modelled)
        )

    @cached_property
    def sums(self) -> tuple[MeasuredSums, ...]:
        """The noisy sums from which means were made; () where none was measured."""
        return self._listed(SUMS, sums_in)

    @cached_property
    def finer(self) -> tuple[FinerCounts, ...]:
        """The counts of pieces of bins from which quantiles were made; () where none was measured."""
        return self._listed(FINER, finer_counts_in)

    @cached_property
    def errors(self) -> pd.DataFrame:
        """The measured errors of the synthetic table as they stand in ``exam.csv``; empty without an exam."""
        import pandas as pd

        path = self.folder / exam.FILE
        return self._read(path.name, lambda: _read_csv(path, _ERRORS)) if path.is_file() else pd.DataFrame()

    @cached_property
    def verdict(self) -> Verdict:
        return self.facts.verdict.verdict

    @cached_property
    def shown(self) -> ReportSource:
        return self._read(MANIFEST, lambda: report_source(self.folder, self.facts, self.facts.files))

    @property
    def guarantee(self) -> Guarantee:
        return self.facts.composed

    def report(self, height: int = 700) -> InlinePage:
        """The release's report, which a notebook shows in place.

        Args:
            height: height of its frame, in pixels.
        """
        return InlinePage(self.folder / REPORT, height)

    @cached_property
    def distances(self) -> Mapping[frozenset[str], Distance]:
        """For the columns of each examined marginal the distance that intervals rest on, in rows."""
        stated = self.facts.exam
        if stated is None or self.errors.empty:
            return {}
        return self._read(
            exam.FILE,
            lambda: exam.distances_in(
                self.errors,
                rows=stated.rows,
                standard_error=stated.standard_error,
                noise=stated.noise,
                scale=stated.scale,
            ),
        )

    @cached_property
    def measurements(self) -> pd.DataFrame:
        """The noisy numbers as they stand in ``measurements.parquet``, a row a cell."""
        path = self.folder / "measurements.parquet"
        frame: pd.DataFrame = self._read(path.name, lambda: pq.read_table(path).to_pandas())
        return frame

    @cached_property
    def synthetic(self) -> pd.DataFrame:
        """The synthetic rows; of a bundle without a Parquet file, as pandas reads the CSV file."""
        path = self.folder / "synthetic.parquet"
        if path.exists():
            return self._read(path.name, lambda: frame_of(pq.read_table(path)))
        texts = [*table_names(sorted(p.name for p in self.folder.iterdir())), "synthetic.csv"]
        return self._read(texts[0], lambda: _read_csv(self.folder / texts[0], ()))

    @cached_property
    def statistics(self) -> Mapping[str, pd.DataFrame]:
        """The published tables with error bars, by title; each has a row a cell."""
        listed = self.facts.statistics
        return {s.title: self._read(s.file, partial(self._statistic, s)) for s in listed}

    def _statistic(self, stated: Statistic) -> pd.DataFrame:
        path = (self.folder / stated.file).resolve()
        if self.folder.resolve() not in path.parents:
            raise BundleRefused(f"{self.folder / MANIFEST} names a file outside of the bundle.")
        frame = _read_csv(path, _LEAST_FIGURES)
        frame.attrs = {
            "title": stated.title,
            "kind": stated.kind,
            "columns": list(stated.columns),
            "measured": stated.measured,
        }
        return frame


def _read_csv(path: Path, figures: tuple[str, ...]) -> pd.DataFrame:
    """A CSV file of the bundle, with texts as they were before ``neutralise``.

    Args:
        figures: names that begin the numbers: the columns before the first of them are labels.
    """
    import pandas as pd

    names = pd.read_csv(path, nrows=0).columns
    labels = names[: names.get_loc(figures[0])] if figures else ()
    frame = pd.read_csv(path, dtype=dict.fromkeys(labels, "str"), keep_default_na=not figures, na_values=[""])
    for name, column in frame.items():
        if column.dtype.kind == "O" or isinstance(column.dtype, pd.StringDtype):
            texts = pa.array(column.where(column.notna(), None), pa.string(), from_pandas=True)
            frame[name] = restore(texts).to_pandas()
    frame.columns = restore(pa.array([str(n) for n in frame.columns], pa.string())).to_pylist()
    return frame


def csv_texts(path: Path) -> Mapping[str, pa.StringArray]:
    """The columns of a CSV file by name, all as texts; by its ending it is compressed.

    Raises:
        OSError, pa.ArrowException: it can't be read.
    """
    # An empty text in quotes and one without are the same.
    header = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(autogenerate_column_names=True, block_size=1 << 26),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types={f"f{number}": pa.string() for number in range(_width(path))},
            strings_can_be_null=False,
        ),
    )
    names = [column[0].as_py() for column in header.columns]
    cells = [restore(column.combine_chunks().slice(1)) for column in header.columns]
    return dict(zip(restore(pa.array(names, pa.string())).to_pylist(), cells, strict=True))


def _width(path: Path) -> int:
    with pa.input_stream(str(path)) as file, io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
        return text.readline().count(",") + 1


def synthetic_texts(bundle: OpenedBundle, file: str | None = None) -> Mapping[str, pa.StringArray]:
    """The synthetic table as it stands, or would stand, in synthetic.csv; from its best file, or a named one.

    Raises:
        BundleRefused: it can't be read.
    """
    folder = bundle.folder
    try:
        # A Parquet file or folder is the last.
        path = folder / (file or table_names(sorted(found.name for found in folder.iterdir()))[-1])
        return bundle.layout.texts(pq.read_table(path)) if path.suffix == ".parquet" else csv_texts(path)
    except (OSError, LookupError, ValueError, pa.ArrowException) as error:
        raise BundleRefused(f"{folder}: the synthetic table is damaged ({type(error).__name__}).") from None


def synthetic_codes(bundle: OpenedBundle) -> Mapping[str, NDArray[np.unsignedinteger]]:
    """The codes of the synthetic rows, unsigned[rows] for each column that the model has.

    Raises:
        BundleRefused: the synthetic table can't be read, or lacks a column.
    """
    texts = synthetic_texts(bundle)
    columns = bundle.layout.columns
    missing = [column.source for column in columns if column.source not in texts]
    if missing:
        raise BundleRefused(f"{bundle.folder}: the synthetic table has no column {missing[0]}.")
    return {column.name: each_once(partial(codes_of, column), texts[column.source]) for column in columns}
