"""The verification of a bundle by a stranger who holds its public folder and this package, and nothing else.

Seven checks: files against their checksums, the manifest against its JSON Schema, statistics rebuilt from the
measurements, views against the synthetic table, the guarantee recomputed from the mechanisms, the verdict
from counts, rows and exam, and the signature. Without a signature, a bundle that somebody has changed and
given new checksums is found only if it contradicts itself.

Invariant: a finding names the file at fault. No damaged or hostile file ends a verification with anything but
findings. What can't be recomputed or rebuilt is said, never passed over.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isclose, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from dpsynth.accounting.amount import float_up
from dpsynth.accounting.calibration import noise_named
from dpsynth.accounting.composition import amount_of, compose, of_groups, of_other_deltas, of_recognition
from dpsynth.accounting.events import Guarantee, RecordedEvent, from_json
from dpsynth.accounting.measures import measure_named
from dpsynth.accounting.neighbours import Neighbours, neighbours_in_words
from dpsynth.accounting.subsampling import Sampling
from dpsynth.bundle import compute_statistics
from dpsynth.bundle.manifest import (
    MANIFEST,
    BundleRefused,
    ContributionBounding,
    Facts,
    Manifest,
    Mechanism,
    StatedGuarantee,
    check_format,
    manifest_text,
    read_values,
    schema_faults,
)
from dpsynth.bundle.publication import JUDGE
from dpsynth.bundle.recipient.opened import (
    NOTICES,
    NOTICES_FILE,
    Notice,
    OpenedBundle,
    no_bundle,
    synthetic_codes,
    synthetic_texts,
)
from dpsynth.bundle.row_files import table_names
from dpsynth.bundle.signature import (
    CHECKSUMS,
    SIGNATURE,
    UNLISTED,
    checksums_text,
    is_public_key,
    public_files,
    sha256_of,
    signer_of,
)
from dpsynth.columns.column import domain_of
from dpsynth.columns.domain import Clique, row_before
from dpsynth.columns.measurement import Examined, Kind, NoisyDistances, UnitsByRows, pooled_counts
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.statistics.cut_off import CutOff, Kept
from dpsynth.statistics.exam import FILE, Basis, Exam
from dpsynth.statistics.measured_figures import FINER, SUMS
from dpsynth.statistics.sampled_estimates import SampledUnits
from dpsynth.statistics.verdict import Finished, Judged, Judgement, Verdict
from dpsynth.wing import Point

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


MEASUREMENTS = "measurements.parquet"

_WEIGHTS = "weights"

_FILES = {
    "marginal": MEASUREMENTS,
    "count": MEASUREMENTS,
    "marginal by weights": _WEIGHTS,
    "count by weights": _WEIGHTS,
    "marginal by surplus": _WEIGHTS,
    "sums": SUMS,
    "finer counts": FINER,
    "exam": "exam",
    "classified": "classified",
}
"""The file with the answers to each kind of question; of those in the manifest, the kind."""

_SAME_LOSS = 1e-9

_NOISES = {"discrete Gaussian": "gaussian", "discrete Laplace": "laplace"}

_COUNTED = ("epsilon", "delta", "rho", "mu", "approximate_delta")

_OF_RESPONDENTS = (
    "The guarantee is each respondent's own, who randomised the reports; a bundle can't prove that, nor can "
    "anybody but them."
)

Fault = tuple[str, str]
"""A file and a sentence on what is wrong with it."""


def guarantee_findings(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    """Sentences on the guarantee recomputed from the manifest's mechanisms, and faults.

    The cost of a mechanism follows from its parameters alone; the costs in the manifest are compared with it,
    never taken.
    """
    mechanisms, published = bundle.facts.mechanisms, bundle.facts.guarantee
    if not bundle.facts.central:
        return [_OF_RESPONDENTS], []
    try:
        events = [from_json({"mechanism": m.mechanism, **m.parameters}) for m in mechanisms]
        faults = [(MANIFEST, fault) for fault in _costs(mechanisms, events)]
        again = _composed(events, published, bundle.facts.sampling)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return [], [(MANIFEST, "lists mechanisms that add up to no guarantee.")]
    for key in _COUNTED:
        stated, found = getattr(published, key), getattr(again, key)
        if not _equal(found, stated):
            faults.append((MANIFEST, f"states {key} = {stated}; its mechanisms add up to {found}."))
    curves: Mapping[str, Callable[[Guarantee], Sequence[Mapping[str, float | None]]]] = {
        "profile": of_other_deltas,
        "recognition": of_recognition,
        "groups": of_groups,
    }
    for what, curve in curves.items():
        told, lines = [one.model_dump() for one in getattr(published, what)], curve(again)
        both = [(line[key], one[key]) for one, line in zip(told, lines, strict=False) for key in line]
        if told and (len(told) != len(lines) or not all(_equal(*figures) for figures in both)):
            faults.append((MANIFEST, f"states another guarantee.{what} than its mechanisms give."))
    faults += _uncharged(bundle, mechanisms)
    if faults:
        return [], faults
    return [
        f"The guarantee, epsilon = {again.epsilon:.6g} and delta = {again.delta:.6g}, is what the "
        f"{len(events)} mechanisms listed add up to, and each measurement is charged among them."
    ], []


def _costs(mechanisms: Sequence[Mechanism], events: Sequence[RecordedEvent]) -> Iterator[str]:
    for number, (mechanism, event) in enumerate(zip(mechanisms, events, strict=True)):
        costs = {
            "epsilon": None if event.epsilon is None else float_up(event.epsilon),
            "rho": float_up(event.rho),
            "delta": float_up(event.delta),
        }
        for key, cost in costs.items():
            stated = getattr(mechanism, key)
            if not _equal(cost, stated):
                yield f"states {key} = {stated} for mechanism {number}, whose parameters cost {cost}."


def _composed(
    events: Sequence[RecordedEvent], published: StatedGuarantee, sampled: SampledUnits | None
) -> Guarantee:
    measure = measure_named(published.accountant)
    delta, set_aside = _decimal(published.delta), _decimal(published.approximate_delta)
    # Only the unit's words depend on more than the relation, and they are not compared.
    near = Neighbours(published.neighbours)
    if sampled is None:
        return compose(events, measure, delta or None, near, set_aside)
    sampling = Sampling(_decimal(sampled.rate))
    asked = delta / sampling.rate or None
    of_sample = compose(events, measure, asked, near, set_aside)
    return sampling.of_whole(of_sample, amount_of(events, measure, asked, set_aside).epsilon, delta)


def _decimal(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _SAME_LOSS * max(abs(one), abs(other))


def _uncharged(bundle: OpenedBundle, mechanisms: Sequence[Mechanism]) -> Iterator[Fault]:
    """Noisy answers that no mechanism of the same columns, noise and scale pays for."""
    paid = Counter(
        (_FILES[m.question], frozenset(m.columns or ()), _NOISES.get(m.mechanism), m.scale)
        for m in mechanisms
        if m.question in _FILES
    )
    answers = (*bundle.answers.singles, *bundle.answers.answers)
    given = [(MEASUREMENTS, MEASUREMENTS, a.clique, a.noise, a.scale) for a in answers if a.noise != "none"]
    given += [(MEASUREMENTS, _WEIGHTS, a.clique, a.noise, a.scale) for a in bundle.answers.weights]
    for file, earlier in bundle.earlier_answers:
        given += [(file, MEASUREMENTS, a.clique, a.noise, a.scale) for a in earlier.answers]
    given += [(SUMS, SUMS, s.clique, s.noise, s.scale) for s in bundle.sums]
    given += [(FINER, FINER, f.clique, f.noise, f.scale) for f in bundle.finer]
    if exam := bundle.facts.exam:
        given += [(MANIFEST, "exam", (), exam.noise, exam.scale)] * exam.answered
        given += [(MANIFEST, "classified", (c.target,), c.noise, c.scale) for c in exam.classified]
    for file, kind, clique, noise, scale in given:
        key = (kind, frozenset(clique), noise, scale)
        if paid[key] <= 0:
            what = ", ".join(clique) or "all rows"
            yield file, f"holds an answer about {what} that no mechanism of {MANIFEST} is for."
        paid[key] -= 1


_NEAR = 1e-9

_MOST = 5

_NO_COUNTS = (
    "The verdict rests on counts of all reports together, which the bundle lacks: it was not recomputed."
)

_TIERS = "The verdict rests on another audience's answers, and no exam says on which: it was not recomputed."


def verdict_findings(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    """Sentences on the verdict recomputed from noisy counts, rows and exam, and faults.

    One thing is taken from the manifest: the share of a column's cells that rules changed as rows were drawn,
    which the finished rows don't show. It changes no verdict, only a sentence.
    """
    if not bundle.facts.central:
        return [_NO_COUNTS], []
    try:
        cut, of_rows = _cut_off(bundle)
    except (KeyError, TypeError, ValueError, AttributeError):
        return [], [(MANIFEST, "has no figures of the rows that were cut off that can be read.")]
    if of_rows:
        return [], of_rows
    if bundle.earlier_answers and bundle.errors.empty:
        return [_TIERS], []
    stated = bundle.verdict
    try:
        again, (_, exam) = _recomputed(bundle, stated, cut), _exam(bundle)
        other = [] if exam is None else _differences(bundle.errors, exam.table, (), measured=True)
    except (KeyError, TypeError, ValueError, IndexError, ConfigError):
        return [], [(MANIFEST, "has a verdict on other columns or files than the bundle has.")]
    faults = [(MANIFEST, words) for words in _verdict_differences(stated, again)]
    faults += [(FILE, words) for words in other]
    if not faults and bundle.facts.verdict.in_words != again.lines:
        faults.append((MANIFEST, "says the verdict in other words than it follows from."))
    if faults:
        return [], faults[:_MOST]
    judged = f", and the {len(again.criteria)} criteria," if again.criteria else ""
    return [
        f"The verdicts on {len(again.columns)} columns and {len(again.pairs)} pairs{judged} are what the "
        "noisy counts, the synthetic rows and the exam give."
    ], []


def _cut_off(bundle: OpenedBundle) -> tuple[CutOff | None, list[Fault]]:
    """The rows that were cut off by the manifest's noisy numbers, and a fault if it says otherwise."""
    stated, guarantee = bundle.facts.contribution_bounding, bundle.facts.guarantee
    if stated is None:
        return None, []
    near = neighbours_in_words(guarantee.neighbours, guarantee.unit)
    noisy = stated.units_by_rows
    units = UnitsByRows(
        noisy.from_rows, np.array(noisy.units, dtype=np.int64), noise_named(noisy.noise).name, noisy.scale
    )
    if len(noisy.units) != len(noisy.from_rows) or near.max_rows + 1 not in noisy.from_rows:
        raise ValueError("no numbers of units by their rows")
    found = CutOff(units, near, Kept.of(bundle.answers.singles))
    asked = [m.scale for m in bundle.facts.mechanisms if m.question == "rows"]
    if asked[-1:] != [found.units.scale]:
        return found, [
            (MANIFEST, "states other noise of the numbers of persons by their rows than it charges.")
        ]
    if stated != ContributionBounding.model_validate(found.to_json()):
        return found, [(MANIFEST, "says other of the rows that were cut off than its noisy numbers give.")]
    return found, []


def _recomputed(bundle: OpenedBundle, stated: Verdict, cut: CutOff | None) -> Verdict:
    counts = {c: (values, sqrt(v)) for (c,), (values, v) in pooled_counts(bundle.answers.singles).items()}
    columns, coded = bundle.layout.modelled, synthetic_codes(bundle)
    basis, exam = _exam(bundle)
    exact = [int(a.values) for a in bundle.answers.singles if not a.clique and a.noise == "none"]
    found = Judged.of(
        bundle.layout,
        {name: np.bincount(codes, minlength=columns[name].size) for name, codes in coded.items()},
        counts,
        rows=exact[0] if exact else round(bundle.model.total),
        basis=basis,
        exam=exam,
        changed={one.name: one.changed for one in stated.columns if one.name in columns},
    ).verdict()
    found = found.beside(cut)
    if not stated.criteria:
        return found
    asked = [s for s in bundle.facts.statistics if s.kind != "one_way"]
    finished = Finished(
        found,
        exam,
        domain_of(bundle.layout.columns),
        [s.request for s in asked if s.request is not None],
        [bundle.statistics[s.title] for s in asked],
        lambda: iter([coded]),
    )
    judge = JUDGE.needed("The criteria of this bundle")
    return replace(found, criteria=judge([one.asked for one in stated.criteria], finished))


def _basis(bundle: OpenedBundle, examined: Mapping[Clique, str]) -> Basis:
    """The marginals that the rows rest on: those of the files of answers, and others as the manifest says.

    Of the answers of earlier audiences a model may leave some aside; the exam says of which pairs.
    """
    earlier = [{*answer.clique} for _, answered in bundle.earlier_answers for answer in answered.answers]
    held = [
        clique
        for clique, basis in examined.items()
        if basis == "measured" and any(columns.issuperset(clique) for columns in earlier)
    ]
    stated = bundle.facts.relations
    answers = (*bundle.answers.answers, *(a for a in bundle.answers.weights if a.clique))
    links = [c for c, basis in examined.items() if basis == "measured" and c[-1] == row_before(c[0])]
    return Basis([*(a.clique for a in answers), *held, *links], stated.public, stated.earlier)


def _exam(bundle: OpenedBundle) -> tuple[Basis, Exam | None]:
    facts, table = bundle.facts.exam, bundle.errors
    kinds, bases = ([*table[name]] if len(table) else [] for name in ("kind", "basis"))
    cells = table[[name for name in table.columns if name.startswith("column_")]].itertuples(index=False)
    cliques = [tuple(c for c in row if isinstance(c, str) and c) for row in cells]
    basis = _basis(bundle, dict(zip(cliques, bases, strict=True)))
    if facts is None:
        return basis, None
    examined = [Examined(cast(Kind, kind), clique) for kind, clique in zip(kinds, cliques, strict=True)]
    distances = None
    if facts.answered:
        values = table["distance"].to_numpy(dtype=np.int64)
        distances = NoisyDistances(tuple(cliques), values, facts.noise, facts.scale)
    domain = domain_of(bundle.layout.columns).with_rows_before
    return basis, Exam(examined, distances, facts.rows, domain, basis, facts.classified)


def _verdict_differences(stated: Verdict, again: Verdict) -> Iterator[str]:
    for one, two in ((stated.columns, again.columns), (stated.pairs, again.pairs)):
        if [j.columns for j in one] != [j.columns for j in two]:
            yield "has verdicts on other columns than the bundle has."
            continue
        for said, found in zip(one, two, strict=True):
            if said.verdict != found.verdict:
                yield f"says {said.verdict} of {said.name}; its files give {found.verdict}."
            elif not _alike(said, found):
                yield f"gives other reasons for its verdict on {said.name} than its files."
    for told, judged in zip(stated.criteria, again.criteria, strict=True):
        if told != judged:
            yield f"says {told.outcome} of the criterion '{judged.words}'; its files give {judged.outcome}."


def _alike(said: Judgement, found: Judgement) -> bool:
    if (said.why, said.basis) != (found.why, found.basis) or (said.error is None) != (found.error is None):
        return False
    numbers = ((said.error or 0.0, found.error or 0.0), (said.beyond_noise, found.beyond_noise))
    return all(isclose(a, b, rel_tol=_NEAR, abs_tol=_NEAR) for a, b in numbers)


_CLOSE = 1e-6
"""Largest difference, as a part of the largest number of a column: files have nine digits."""


def rebuilt(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    """Sentences on the published tables rebuilt from the measurements, or from the model, and faults.

    A table of columns that were measured together follows from the answers: each of its numbers is compared.
    A table by the model has errors from random refits; its estimates are compared where they are the model's
    own, which they are unless some answers lie beside the model's tree.
    """
    listed = bundle.facts.statistics
    if bundle.facts.earlier_releases is not None or bundle.facts.public_table is not None:
        return [
            "The statistics rest on earlier releases or on a public table as well, so they can't be rebuilt "
            "from this bundle alone; only their checksums were compared."
        ], []
    try:
        requests = [r for s in listed if s.kind != "one_way" and (r := s.request) is not None]
        tables = compute_statistics(requests, bundle.sources)
    except ConfigError as error:
        return [], [(MANIFEST, f"lists statistics that can't be made: {error}")]
    again = {(t.kind, t.columns, _text_of(t.asked)): t for t in tables}
    own = _in_the_tree(bundle)
    faults: list[Fault] = []
    compared = by_model = left = 0
    for (title, frame), stated in zip(bundle.statistics.items(), listed, strict=True):
        table = again.get((stated.kind, stated.columns, _text_of(stated.asked)))
        if table is None or (not table.measured and not own):
            left += 1
            continue
        if table.measured is not stated.measured:
            faults.append((MANIFEST, f"calls the statistic {title} measured, or by the model, wrongly."))
            continue
        by_model += not table.measured
        compared += table.measured
        differ = _differences(frame, table.table, table.label_names, table.measured)
        faults += [(stated.file, words) for words in differ]
    return _told(compared, by_model, left), faults


def _told(compared: int, by_model: int, left: int) -> list[str]:
    found = [f"{compared} tables of statistics are what measurements.parquet gives, number by number."]
    if by_model:
        found.append(
            f"The estimates of {by_model} more are those of model.npz; their errors are random refits."
        )
    if left:
        found.append(
            f"{left} tables follow from the model and further answers by random draws; only their "
            "checksums were compared."
        )
    return found


def _text_of(asked: Mapping[str, Any] | None) -> str:
    return "" if asked is None else json.dumps(asked, sort_keys=True)


def _in_the_tree(bundle: OpenedBundle) -> bool:
    names = {column: groups for groups, column in bundle.rows.wanted.values_of.items()}
    answers = (*bundle.answers.answers, *bundle.answers.weights)
    return all(bundle.model.tree.home([names.get(c, c) for c in a.clique]) is not None for a in answers)


def _differences(frame: pd.DataFrame, table: pa.Table, labels: Clique, measured: bool) -> list[str]:
    import pandas as pd

    made = table.to_pandas()
    if list(frame.columns) != list(made.columns) or len(frame) != len(made):
        return ["has other rows or columns than the measurements give."]
    found = []
    for name in made.columns:
        # Without refits a figure by the model has no interval to claim anything of.
        if name in labels or name == "basis" or (name == "limits" and measured):
            if frame[name].astype(str).tolist() != made[name].astype(str).tolist():
                found.append(f"has other texts in the column {name} than the measurements give.")
        elif measured or name == "estimate":
            numbers = [pd.to_numeric(f[name], errors="coerce") for f in (frame, made)]
            one, two = (own.to_numpy(dtype=np.float64, na_value=np.nan) for own in numbers)
            largest = max(float(np.nanmax(np.abs(two), initial=0.0)), 1.0)
            if not np.allclose(one, two, rtol=0.0, atol=_CLOSE * largest, equal_nan=True):
                found.append(f"has other numbers in the column {name} than the measurements give.")
    return found


_LONGEST = 1 << 24

CHECKED_TABLES: Point[Callable[[OpenedBundle], tuple[list[str], list[Fault]]]] = Point(
    "checked tables", "tables"
)
"""The same of linked tables."""

CHECKED_VIEWS: Point[Callable[[OpenedBundle], tuple[list[str], list[Fault]]]] = Point("checked views")
"""Facts about the views of a bundle that hold, and faults, each a file and a sentence."""


@dataclass(frozen=True)
class Finding:
    """A fault of a bundle: the file at fault, and a sentence on it."""

    file: str
    sentence: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        findings: what is wrong; empty for a good bundle.
        proven: sentences on what was found to be right.
        cautions: sentences on what can't be proven.
        signed_by: the public key of a valid signature; None without one.
        notices: what its owner made known of it since, the gravest first.
    """

    findings: tuple[Finding, ...]
    proven: tuple[str, ...]
    cautions: tuple[str, ...]
    signed_by: str | None
    notices: tuple[Notice, ...] = ()

    @property
    def withdrawn(self) -> bool:
        return any(notice.withdrawn for notice in self.notices)

    def to_json(self) -> dict[str, object]:
        return {
            **({"notices": [notice._asdict() for notice in self.notices]} if self.notices else {}),
            "good": self.good,
            "signed_by": self.signed_by,
            "findings": [{"file": f.file, "sentence": f.sentence} for f in self.findings],
            "proven": list(self.proven),
            "cautions": list(self.cautions),
        }

    @property
    def good(self) -> bool:
        return not self.findings


def verified(path: str | Path, key: str | None = None, notices: str | Path | None = None) -> Verification:
    """The verification of a bundle: the folder of a release, or its ``public`` folder.

    Args:
        key: the public key that must have signed it, known from elsewhere; None takes any key, or none.
        notices: a file of what its owner made known of it since, or its URL; None takes the one beside it.

    Raises:
        BundleRefused: there is no bundle, or one of another format; or ``key`` is no public key.
    """
    if key is not None and not is_public_key(key):
        raise BundleRefused(f"{key!r} is no public key: it must be ed25519: and 64 hexadecimal digits.")
    given = Path(path)
    marks = (MANIFEST, CHECKSUMS)
    folder = next((f for f in (given / "public", given) if any((f / m).is_file() for m in marks)), None)
    if folder is None:
        raise no_bundle(given)
    found, read = _verified(folder, key), NOTICES.needed("--notices") if notices else NOTICES.filled()
    with suppress(BundleRefused):
        name, file = str(read_values(folder).get("release_id")), None if notices is None else str(notices)
        said = read(folder, name, found.signed_by, file, key) if read else ()
        forged = tuple(Finding(NOTICES_FILE, n.sentence) for n in said if n.fault)
        none = (f"No notice in {notices} is about this bundle.",) if notices and not said else ()
        return replace(found, notices=said, findings=found.findings + forged, proven=found.proven + none)
    return found


def _verified(folder: Path, key: str | None) -> Verification:
    # To open a pipe, or a device, may take for ever.
    if odd := [name for name in public_files(folder) if not (folder / name).is_file()]:
        return _refuted([(name, "is no file that can be read.") for name in odd], None)
    faults = list(_changed(folder))
    signed_by, of_signature = _signature(folder, key)
    faults += of_signature
    if faults:
        _refuse_other_format(folder)
        return _refuted(faults, signed_by)
    values = read_values(folder)
    check_format(values, folder)
    try:
        faults += _manifest_faults(folder, values)
        if faults:
            return _refuted(faults, signed_by)
        bundle = OpenedBundle(folder, Manifest.read(folder))
        if bundle.facts.signed_by not in (None, signed_by):
            faults.append((MANIFEST, "names another key than the one that signed the bundle."))
        checks = (guarantee_findings, rebuilt, _views, _tables, verdict_findings)
        found = [check(bundle) for check in checks]
    except DpsynthError as error:
        named = next((name for name in public_files(folder) if name in str(error)), MANIFEST)
        return _refuted([(named, str(error))], signed_by)
    faults += [fault for _, faults_of in found for fault in faults_of]
    proven = [
        f"{len(public_files(folder))} files are as they were when their checksums were written.",
        f"{MANIFEST} keeps to its schema.",
        *([] if key is None else [f"The checksums are signed by {signed_by}, the key that was given."]),
        *(sentence for said, _ in found for sentence in said),
    ]
    findings = (Finding(*fault) for fault in (*faults, *_unreadable(bundle)))
    return Verification(tuple(findings), tuple(proven), () if key else (_caution(signed_by),), signed_by)


def _refuted(faults: Sequence[Fault], signed_by: str | None) -> Verification:
    return Verification(tuple(Finding(*fault) for fault in faults), (), (), signed_by)


def _views(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    if bundle.facts.views is None:
        return [], []
    check = CHECKED_VIEWS.filled()
    if check is None:
        return [], [(MANIFEST, "lists views, and the wing proof, which checks them, is not installed here.")]
    return check(bundle)


def _tables(bundle: OpenedBundle) -> tuple[list[str], list[Fault]]:
    check = None if bundle.facts.tables is None else CHECKED_TABLES.needed("A bundle of linked tables")
    return ([], []) if check is None else check(bundle)


def _refuse_other_format(folder: Path) -> None:
    """Refuse a bundle of an earlier format by name, in place of what it lacks."""
    try:
        values = read_values(folder)
    except BundleRefused:
        return
    if isinstance(values.get("format"), str) and not (folder / CHECKSUMS).exists():
        check_format(values, folder)


def _changed(folder: Path) -> Iterator[Fault]:
    try:
        with (folder / CHECKSUMS).open("rb") as file:
            written = file.read(_LONGEST).decode("ascii")
    except (OSError, UnicodeDecodeError):
        yield CHECKSUMS, "is missing or can't be read."
        return
    files = [name for name in public_files(folder) if name not in UNLISTED]
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in written.splitlines())}
    for name in sorted(listed.keys() - set(files)):
        yield name, f"is named in {CHECKSUMS} and is not there."
    found: dict[str, str] = {}
    for name in files:
        try:
            found[name] = sha256_of(folder / name)
        except OSError:
            yield name, "can't be read."
            return
        if name not in listed:
            yield name, f"is not named in {CHECKSUMS}."
        elif found[name] != listed[name]:
            yield name, f"is not what {CHECKSUMS} says."
    if written != checksums_text(listed):
        yield CHECKSUMS, "is not as dpsynth writes it."


def _signature(folder: Path, key: str | None) -> tuple[str | None, list[Fault]]:
    path = folder / SIGNATURE
    if not path.is_file():
        try:
            promised = read_values(folder).get("signed_by")
        except BundleRefused:
            promised = None
        if promised is not None or key is not None:
            return None, [(SIGNATURE, "is missing: the bundle has no signature.")]
        return None, []
    try:
        content = (folder / CHECKSUMS).read_bytes()
        with path.open("rb") as file:
            signer = signer_of(content, file.read(_LONGEST).decode("ascii", "replace"))
    except OSError:
        signer = None
    if signer is None:
        return None, [(SIGNATURE, f"is no signature of {CHECKSUMS}.")]
    if key is not None and signer != key:
        return signer, [(SIGNATURE, f"is by the key {signer}, not by {key}.")]
    return signer, []


def _caution(signed_by: str | None) -> str:
    if signed_by is None:
        return (
            "There is no signature: somebody who changed files and their checksums together, without "
            "contradicting the bundle, is not found."
        )
    return (
        f"The checksums are signed by {signed_by}. Compare it with the key that the publisher has made known "
        "elsewhere, or give that one with --key."
    )


def _manifest_faults(folder: Path, values: Facts) -> Iterator[Fault]:
    faults = schema_faults(values)
    for words in faults[:10]:
        yield MANIFEST, f"doesn't keep to its schema: {words}."
    if faults:
        return
    if manifest_text(values) != (folder / MANIFEST).read_text(encoding="utf-8"):
        yield MANIFEST, "is not as dpsynth writes it."
    files = {name for name in public_files(folder) if name not in UNLISTED and name != MANIFEST}
    listed = values["files"]
    for name in sorted(files ^ listed.keys()):
        yield MANIFEST, f"and the folder disagree on the file {name}."
    for name in sorted(files & listed.keys()):
        path = folder / name
        facts = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        if facts != listed[name]:
            yield name, f"is not what {MANIFEST} says."


def _unreadable(bundle: OpenedBundle) -> Iterator[Fault]:
    parts: Mapping[str, Callable[[], object]] = {
        "model.npz": lambda: bundle.model,
        "rows.npz": lambda: bundle.rows,
        "synthetic": lambda: _check_synthetic(bundle),
    }
    for name, part in parts.items():
        try:
            part()
        except DpsynthError as error:
            yield name, str(error)


def _check_synthetic(bundle: OpenedBundle) -> None:
    frame, names = bundle.synthetic, {part.name for part in bundle.layout.parts}
    if len(frame) != bundle.facts.synthetic_rows or not names <= set(map(str, frame.columns)):
        raise DpsynthError("The synthetic table has other rows or columns than the manifest says.")
    *others, last = table_names(public_files(bundle.folder))
    for file in others:
        if synthetic_texts(bundle, file) != synthetic_texts(bundle, last):
            raise DpsynthError(f"{file} and {last} have different rows.")
