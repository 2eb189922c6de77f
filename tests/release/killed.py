"""What must hold of a release at every moment, and when it has ended, however often it was killed."""

import json
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path

from dpsynth.curator.marginals import TOGETHER
from dpsynth.pipeline.steps import Step
from tests.release import evidence
from tests.release.keeper import Keeper, Stop
from tests.release.place import Ended, Place

EPSILON, DELTA = 1, "1e-6"
BY_ROW = evidence.Protection()
DIED = -signal.SIGKILL
FEW_COLUMNS: dict[str, object] = {
    "columns": {"age": None, "city": None},
    "publish": {"statistics": [{"mean": "income"}]},
}
WITH_HEAD: dict[str, object] = {**FEW_COLUMNS, "ledger": {"head": "ledger.head"}}
LEDGER = {"ledger entry", "ledger taking", "ledger settlement", "ledger row", "ledger commit"}
UNUSUAL = {Step.PUBLIC_TABLE, Step.BOUND, Step.FIND_DOMAINS, Step.NEXT_AUDIENCE}
"""Steps that the usual config has no use for."""
LOCAL = {Step.READ_REPORTS, Step.HOLD_ANSWERS, Step.BEGIN_BUNDLE, Step.ENTER}
STEPS = [f"begin {step}" for step in Step if step not in UNUSUAL | LOCAL]


def spent_by(found: Sequence[evidence.Record], apart: Fraction = Fraction(0)) -> Fraction:
    """Epsilon that a journal's charges add up to; ``apart`` of delta was kept for naming values."""
    paid = evidence.charges(found)
    half_mu_squared, approximate_delta = (
        sum(map(figure, paid), Fraction(0)) for figure in (BY_ROW.half_mu_squared, BY_ROW.approximate_delta)
    )
    return _epsilon(half_mu_squared, Fraction(DELTA) - max(apart, approximate_delta))


@cache
def _epsilon(half_mu_squared: Fraction, delta: Fraction) -> Fraction:
    """Kept, since most journals here add up to the same, and the digits take time."""
    return Fraction(evidence.gdp_epsilon(half_mu_squared, delta))


@dataclass
class Watch:
    """Looks at a place after each kill and after the end."""

    place: Place
    kept: dict[str, bytes] = field(default_factory=dict)
    """Journal of each release at the last look, without what a kill left of its last line."""

    @property
    def begun(self) -> list[str]:
        """Ids of releases that have a journal with its first line whole."""
        return sorted(name for name, journal in self._journals().items() if evidence.records(journal))

    @property
    def charges(self) -> Counter[str]:
        """How often each question was charged, over all releases here."""
        found = [r for journal in self._journals().values() for r in evidence.records(journal)]
        return Counter(evidence.named(r["question"]) for r in evidence.charges(found))

    @property
    def lost(self) -> Counter[str]:
        """How many charged questions stay without an answer, by release."""
        found = {name: evidence.records(journal) for name, journal in self._journals().items()}
        return Counter({n: sum(r["kind"] == "lost" for r in lines) for n, lines in found.items()})

    @property
    def draws(self) -> Counter[str]:
        """How often noise was drawn for each question, over all releases here."""
        log = self.place.home / "draws"
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(evidence.named(json.loads(line)) for line in lines)

    def _journals(self) -> dict[str, Path]:
        found = (self.place.folder / "outputs").glob("people/*/private/journal.jsonl")
        return {p.parents[1].name.strip(".").removesuffix(".partial"): p for p in found}

    def look(self) -> None:
        """At any moment: every draw was charged before, the ledger covers it, nothing is rewritten."""
        assert not self.draws - self.charges, "drawn more often than charged"
        balance = self.place.balance
        assert balance is None or self._sound()
        counted = {r.release_id: r for r in balance.releases} if balance else {}
        reserved = {name for name, entry in counted.items() if entry.state == "reserved"}
        assert reserved <= set(self._journals()), "reserved without a journal"
        for name, journal in self._journals().items():
            whole = journal.read_bytes().rpartition(b"\n")[0]
            assert whole.startswith(self.kept.get(name, b"")), "the journal's past has changed"
            self.kept[name] = whole
            found = evidence.records(journal)
            if evidence.charges(found):
                spent = spent_by(found)
                assert spent <= EPSILON, "more than the plan"
                amount = counted[name].cost.amount
                assert amount.epsilon >= spent, "the ledger counts for less than was asked"
                assert amount.delta == Fraction(DELTA)

    def _sound(self) -> bool:
        return self.place.ledger.verify().problems == ()

    def ended(self, folder: Path, deaths: int) -> None:
        """When a release is done: whole, published as journalled, closed, and nothing left lying about."""
        self.look()
        folder = self.place.folder / folder
        manifest = evidence.assert_whole(folder)
        assert not list(folder.parent.glob(f".{folder.name}*"))
        found = evidence.records(folder / "private" / "journal.jsonl")
        lost = [r for r in found if r["kind"] == "lost"]
        assert len(lost) <= deaths * TOGETHER
        answered = [r for r in found if r["kind"] == "answer"]
        assert len(evidence.charges(found)) == len(answered) + len(lost)
        assert evidence.published_answers(folder / "public") == evidence.answers(found)
        guarantee = manifest["guarantee"]
        assert isinstance(guarantee, dict)
        # Half of delta is set apart for naming values, and stays so whatever naming took of it.
        named = any(charge["question"]["ask"] == "values" for charge in evidence.charges(found))  # type: ignore[index]
        spent = spent_by(found, Fraction(DELTA) / 2 if named else Fraction(0))
        assert spent <= Fraction(guarantee["epsilon"]) <= spent * (1 + Fraction(1, 10**9))
        assert self.place.ledger.state(folder.name) == "closed"
        balance = self.place.balance
        assert balance is not None
        (entry,) = [r for r in balance.releases if r.release_id == folder.name]
        charged = entry.cost.amount.epsilon
        assert spent <= charged + Fraction(1, 10**12) and charged <= EPSILON


_PASSED: dict[tuple[str, str], list[Stop]] = {}
"""Places that a run passes, by its config and the kind of its ledger's database: the same ones each time."""


def passed(keeper: Keeper, place: Place) -> list[Stop]:
    """Every place that an undisturbed run passes, in order."""
    config = (place.folder / "config.yaml").read_text().replace(place.url, "")
    key = (place.url.partition(":")[0], config)
    if key not in _PASSED:
        _PASSED[key] = traced(keeper, place)
    return list(_PASSED[key])


def traced(keeper: Keeper, place: Place) -> list[Stop]:
    """Every place that an undisturbed run passes, in order, by such a run."""
    assert keeper.run(place).code == 0
    return [(name, count) for name, count in json.loads((place.home / "trace").read_text())]


def apart(stops: list[Stop]) -> list[Stop]:
    """Without places at which nothing has happened since the place before, or nothing that lasts."""
    stops = [(name, count) for name, count in stops if name != "end ledger row"]
    idle = [name == "begin sync file" or name in STEPS for name, _ in stops]
    after_an_end = [False, *(name.startswith("end ") for name, _ in stops[:-1])]
    return [s for s, dull, late in zip(stops, idle, after_an_end, strict=True) if not (dull and late)]


def finished(keeper: Keeper, place: Place, watch: Watch, deaths: int) -> Ended:
    """Resume what was begun, or begin again where nothing was, and check all that must hold."""
    begun = watch.begun
    done = keeper.run(place, *(("--resume", begun[-1]) if begun else ()))
    assert done.code == 0, (done, begun)
    watch.ended(done.folder, deaths)
    return done
