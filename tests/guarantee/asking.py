"""Everything that a curator can be asked, once, each question chosen from the answers before it."""

from fractions import Fraction
from pathlib import Path

import numpy as np

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique, Compression, Domain
from dpsynth.curator import Curator, Journal, Terms
from dpsynth.curator.table import PrivateTable
from dpsynth.wings.proof.audit.replay import Transcript, observers

DOMAIN = Domain({"a": 3, "b": 2, "c": 4})
PAIRS: list[Clique] = [("a", "b"), ("a", "c"), ("b", "c")]
SIXTH = Fraction(1, 6)

Rows = list[tuple[int, int, int]]


class Guess:
    """The same number of rows in every cell, from a public total."""

    def __init__(self, domain: Domain, total: int) -> None:
        self._domain, self._total = domain, total

    def marginal(self, clique: Clique) -> np.ndarray:
        return np.full(self._domain.shape(clique), self._total / self._domain.cells(clique))

    def fingerprint(self) -> str:
        return f"{self._total} over {dict(self._domain.sizes)}"


def ask_everything(curator: Curator) -> list[object]:
    """Ask all kinds of questions at a price of 1/6 each of a budget of 1 or more; the answers."""
    count = curator.count(SIXTH)
    (single,) = curator.marginals([("c",)], SIXTH)
    guess = Guess(DOMAIN, int(count.values))
    told: list[object] = [count.values.tolist(), single.values.tolist()]
    told.append(curator.choose(PAIRS, guess, SIXTH, [1, 0, 2], [1, 3, 2]))
    anyone = np.ones(3, dtype=bool)
    told.append(curator.choose_in_turn(PAIRS, guess, SIXTH / 2, 2, lambda _: anyone, (), [2, 1, 1]))
    # The rarest value by its noisy count joins the next one.
    rarest = int(np.argmin(single.values))
    compression = Compression({"c": np.array([i - (i > min(rarest, 2)) for i in range(4)])})
    coarse = curator.grouped(compression)
    distances, stddev = coarse.errors(PAIRS, Guess(compression.coarse(DOMAIN), int(count.values)), SIXTH)
    told += [distances.tolist(), stddev]
    farthest = PAIRS[int(np.argmax(distances))]
    answers = coarse.marginals([farthest], SIXTH)
    answers += coarse.singles(["c"], SIXTH)
    answers += curator.marginals([("a", "b", "c")], curator.remaining)
    return [*told, *(m.values.tolist() for m in answers)]


def observed(
    rows: Rows, near: Neighbours, measure: str, kind: str, path: Path
) -> tuple[Transcript, list[object]]:
    """Ask everything of a table, with a journal that is replayed if it is there."""
    codes = np.array(rows, dtype=np.uint8).reshape(len(rows), 3)
    table = PrivateTable(DOMAIN, {c: codes[:, i] for i, c in enumerate("abc")}, len(rows))
    journal = Journal.open(path) if path.exists() else Journal.create(path, {"id": "x"})
    transcript = Transcript()
    curator, _ = observers(transcript)
    try:
        terms = Terms(near, measure, Fraction(2), kind)
        return transcript, ask_everything(curator(table, terms, journal))
    finally:
        journal.close()
