"""The relay between pieces of a table: each is refined so that it makes up for those before it.

Draws and decoding of pieces take their time side by side; only refinements follow one another.

Invariant: what a piece is refined to follows from the pieces before it, whatever threads make them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from threading import Condition
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.codec import Codes
from dpsynth.model import Effort, Refined, TableTarget, following

Refine = Callable[[Sequence[TableTarget] | None, Effort], Refined]

_ONE_LAP = Effort(scores=0.0)
"""The refinement of each piece but one. Errors don't add up, as the next piece makes up for them."""


@dataclass(eq=False)
class Relay:
    """The rows that the pieces so far have beyond their targets, handed on in the order of the pieces.

    Attributes:
        thorough: number of the piece, counted from 0, that has all the work that a short table has: the last
            one that isn't much smaller than those before, whose errors it makes up for.
    """

    thorough: int
    _turn: int = 0
    _carried: Sequence[NDArray[np.float64]] = ()
    _broken: bool = False
    _changed: Condition = field(default_factory=Condition)

    def refined(self, turn: int, targets: Sequence[TableTarget], refine: Refine) -> dict[str, Codes]:
        """A refined piece, when those before it are refined.

        Args:
            turn: number of the piece, counted from 0.
            targets: the targets of a piece that stands by itself.
            refine: refines it to targets.

        Raises:
            RuntimeError: a piece before it failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._broken or self._turn == turn)
            if self._broken:
                raise RuntimeError("a piece of the table before this one failed")
        now = following(targets, self._carried) if self._carried else targets
        found = refine(now, Effort() if turn == self.thorough else _ONE_LAP)
        carried = self._carried or [np.zeros(t.counts.shape) for t in targets]
        each = zip(found.excess, now, targets, carried, strict=False)
        self._carried = [off + (own.counts - alone.counts) + before for off, own, alone, before in each]
        with self._changed:
            self._turn += 1
            self._changed.notify_all()
        return found.codes

    def watched(self) -> AbstractContextManager[None]:
        """A context that tells later pieces if this one fails, so that they don't wait for it."""
        return _Watched(self)

    def broken(self) -> None:
        """A piece failed."""
        with self._changed:
            self._broken = True
            self._changed.notify_all()


@dataclass(frozen=True, eq=False)
class _Watched(AbstractContextManager[None]):
    relay: Relay

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.relay.broken()
