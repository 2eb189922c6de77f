"""Short names for long lists of cliques: thousands of them in each question would swell the journal.

Invariant: public; two lists have the same name only if they hold the same cliques with the same
numbers in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique


class Listing:
    """Names lists; the digest of a clique is worked out once."""

    def __init__(self) -> None:
        """Start with no digest known."""
        self._known: dict[Clique, bytes] = {}

    def of(self, cliques: Sequence[Clique], *numbers: NDArray[np.int64]) -> Mapping[str, object]:
        """How many cliques there are, and a SHA-256 of them and of lists of numbers, one a clique each."""
        try:
            digests = b"".join(map(self._known.__getitem__, cliques))
        except KeyError:
            self._known |= {c: sha256(json.dumps(c).encode()).digest() for c in cliques}
            digests = b"".join(map(self._known.__getitem__, cliques))
        # Digests and numbers have a fixed length, so what was joined can be told apart again.
        joined = b"".join([digests, *(n.astype("<i8").tobytes() for n in numbers)])
        return {"number": len(cliques), "sha256": sha256(joined).hexdigest()}


def selected(named: Mapping[str, object], at: NDArray[np.intp]) -> Mapping[str, object]:
    """The name of a part of a list, from the name of the whole and the places of the part."""
    whole = str(named["sha256"]).encode()
    return {"number": len(at), "sha256": sha256(whole + at.astype("<i8").tobytes()).hexdigest()}
