"""The secret sample of units: each is in it by a coin of its own, whole or not at all.

A coin has 64 bits, which follow from the release's secret key by a keyed hash. The key is 256 bits from the
operating system's cryptographic source, and stands in the journal alone. So a resumed release has the same
sample, another release has another one, and nobody without the key can tell a coin from one that was tossed.
A unit is in the sample if its coin, as a whole number, is below a threshold: no float decides.

Invariant: the coin of a person follows from her id alone, and that of a row from its place in the file alone.
So whoever else is in the table, units are in the sample independently of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b, shake_256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.subsampling import COIN_BITS
from dpsynth.curator.cell_texts import Batch, of_rows
from dpsynth.curator.contribution_bounding import person_codes

_BLOCK = 1 << 16
"""Number of rows whose coins are tossed together, whatever the batches are."""
_BYTES = COIN_BITS // 8
_PERSONS, _ROWS = b"sample persons", b"sample rows"


@dataclass(frozen=True, repr=False)
class UnitSample:
    """A secret sample. Its repr shows nothing.

    Attributes:
        threshold: number of coins, of 2^64, with which a unit is in the sample.
        key: the release's secret.
    """

    threshold: int
    key: bytes

    def of(self, batches: Iterable[Batch], near: Neighbours, start: int = 0) -> Iterator[Batch]:
        """The rows of the units in the sample, batch by batch.

        Args:
            batches: rows in their order, the person's column included where persons are the units.
            near: the unit.
            start: the place of the first of them in the table, from 0.
        """
        for batch in batches:
            number = len(next(iter(batch.values())))
            if near.person is None:
                chosen = self.rows(start, number)
            else:
                chosen = self.persons(person_codes(batch[near.person], self.key))
            start += number
            yield of_rows(batch, pa.array(chosen))

    def persons(self, codes: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """True for each row whose person is in the sample.

        Args:
            codes: uint64[rows], the code of each row's person.
        """
        distinct, place = np.unique(codes, return_inverse=True)
        coins = (
            blake2b(code, digest_size=_BYTES, key=self.key, person=_PERSONS).digest()
            for code in (int(c).to_bytes(_BYTES, "big") for c in distinct)
        )
        chosen = np.fromiter(
            (int.from_bytes(coin, "big") < self.threshold for coin in coins), np.bool_, len(distinct)
        )
        return np.asarray(chosen[place], dtype=np.bool_)

    def rows(self, start: int, number: int) -> NDArray[np.bool_]:
        """True for each of some rows that is in the sample.

        Args:
            start: the place of the first of them in the file, from 0.
            number: number of rows.
        """
        if not number:
            return np.zeros(0, np.bool_)
        first, last = start // _BLOCK, (start + number - 1) // _BLOCK
        coins = np.concatenate([*self._coins(first, last)])
        at = start - first * _BLOCK
        return np.asarray(coins[at : at + number] < np.uint64(self.threshold), dtype=np.bool_)

    def _coins(self, first: int, last: int) -> Iterator[NDArray[np.uint64]]:
        for block in range(first, last + 1):
            drawn = shake_256(self.key + _ROWS + block.to_bytes(_BYTES, "big")).digest(_BYTES * _BLOCK)
            yield np.frombuffer(drawn, dtype=">u8").astype(np.uint64)
