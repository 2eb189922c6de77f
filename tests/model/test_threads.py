"""Two threads do what one does, under the floating-point rules of the caller."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import factor as threads
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.junction_tree import junction_tree


@pytest.mark.parametrize("two", [False, True])
def test_potentials_that_move_far_give_no_warning_in_either_thread(
    monkeypatch: pytest.MonkeyPatch, two: bool
) -> None:
    """Sums by the last peaks overflow then, and are computed anew; numpy must not speak of them."""
    monkeypatch.setattr(threads, "_TWO", two)
    monkeypatch.setattr(threads, "_PAYS", 64)
    sizes = {"a": 40, "b": 20, "c": 40}
    scopes = [("b", "a"), ("b", "c")]
    propagation = BeliefPropagation(junction_tree(Domain(sizes), scopes), scopes)
    propagation.calibrate([np.zeros(800), np.zeros(800)])
    far = np.repeat(np.linspace(-900.0, 900.0, 20), 40)
    with np.errstate(all="raise"):
        found, log_partition = propagation.calibrate([far, far])
    assert log_partition == pytest.approx(1800 + 2 * np.log(40))
    assert [f.reshape(20, 40)[-1].sum() for f in found] == pytest.approx([1.0, 1.0])


def test_an_error_in_the_second_thread_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_TWO", True)

    def work(part: slice) -> None:
        np.float64(1.0) / np.arange(part.start - 2, part.stop - 2)

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        threads.in_halves(3, threads._PAYS, work)
