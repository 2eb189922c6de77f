"""The covering arrays of thinned products."""

from itertools import combinations, product

import pytest

from tests.thinned import covering, some, thinned


@pytest.mark.parametrize("sizes", [(4, 3, 2, 5), (2, 2, 2, 2, 2), (1, 7), (3, 3, 3)])
@pytest.mark.parametrize("strength", [1, 2])
def test_every_pair_of_values_is_in_a_quick_case(sizes: tuple[int, ...], strength: int) -> None:
    cases = list(product(*map(range, sizes)))
    quick = [cases[i] for i in covering(cases, strength)]
    for axes in combinations(range(len(sizes)), strength):
        wanted = set(product(*(range(sizes[i]) for i in axes)))
        assert {tuple(case[i] for i in axes) for case in quick} == wanted
    largest = sorted(sizes)[-strength:]
    assert len(quick) <= 1.5 * largest[0] * largest[-1] if strength == 2 else len(quick) == max(sizes)


def test_what_is_not_quick_is_slow_and_nothing_is_lost() -> None:
    found = thinned(
        "ab", range(3), (None, "x"), possible=lambda letter, number, _: (letter, number) != ("a", 0)
    )
    assert len(found) == 10
    assert {tuple(case.values) for case in found} == {
        case for case in product("ab", range(3), (None, "x")) if case[:2] != ("a", 0)
    }
    slow = [case for case in found if case.marks]
    assert 0 < len(slow) <= 5 and all(mark.name == "slow" for case in slow for mark in case.marks)


def test_of_some_cases_the_first_and_others_far_apart_are_quick_and_the_rest_slow() -> None:
    cases = some([(i, -i) for i in range(9)] + [pytest.param(9, -9, id="last")], 3)
    assert [case.values for case in cases] == [(i, -i) for i in range(10)]
    assert [case.values[0] for case in cases if not case.marks] == [0, 3, 6]
    assert cases[-1].id == "last" and [mark.name for mark in cases[-1].marks] == ["slow"]
    fewer = some(cases, 2)
    assert [case.values[0] for case in fewer if not case.marks] == [0, 3]
    assert all(len(case.marks) <= 1 for case in fewer)
    with pytest.raises(AssertionError, match="nothing would be tried"):
        some([1], 0)
