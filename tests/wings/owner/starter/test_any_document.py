"""Whatever a description holds, it ends in a starter that loads or in one plain error."""

import copy
import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wings.owner.starter import FORMATS, draft_of, sketch, starter_text
from dpsynth.wings.owner.starter.writing import values_of
from tests.examples import examples
from tests.thinned import some
from tests.wings.owner.starter import described
from tests.wings.owner.starter.reviewing import filled

QUICK, MANY = 15, 1_000
WEIRD = [
    None, True, False, -1, 0, 10**18, 10**40, 0.5, -1e300, float("nan"), float("inf"), "", " ", "x", "1e999",
    "é\u202e", "\ud800", "\x00", "a\nb: c", "%Q", "[0-9", "[0-9]{64}", "2020-02-30", [], [[]], [None],
    [1, "1"],
        [{}], ["a"] * 3, list(range(10_001)), {}, {"a": 1}, {"type": "integer"}, {"value": [1]}, "x" * 500,
]  # fmt: skip
LINE = "\n\r\u2028\u2029\x85"

Values = dict[str, object]


def parsed(document: str) -> Values:
    return json.loads(json.dumps(parse_yaml(document, "d").values, default=float))


def spots(node: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from spots(value, (*path, key))


def mutated(document: Values, rng: random.Random) -> object:
    """A document in which one value or more is replaced, deleted, doubled or moved."""
    found: object = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 3])):
        path = rng.choice(list(spots(found)))
        if not path:
            continue
        parent: object = found
        for key in path[:-1]:
            parent = parent[key]  # type: ignore[index]
        kind = rng.randrange(5)
        if kind == 0 and isinstance(parent, dict | list):
            del parent[path[-1]]  # type: ignore[arg-type]
        elif kind == 1 and isinstance(parent, dict):
            parent[str(rng.choice(WEIRD))] = parent[path[-1]]  # type: ignore[index]
        elif kind == 2 and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[path[-1]]))  # type: ignore[index]
        elif kind == 3:
            parent[path[-1]] = {"a": parent[path[-1]]}  # type: ignore[index]
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(WEIRD))  # type: ignore[index]
    return found


def ends_well(path, **options) -> bool:
    """Whether a description gave a starter that loads once filled; False where it was refused plainly."""
    try:
        draft = draft_of(path, **options)
        starter_text(draft, "t", "schemas", "dpsynth init")
    except ConfigError as error:
        assert str(error) and not set(str(error)) & set(LINE)
        return False
    columns = values_of(draft)
    if any(declared["type"] != "identifier" for declared in columns.values()):
        assert len(filled(columns).columns) == len(columns)
    return True


@pytest.mark.parametrize("times", [QUICK, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", some(described.ALL, 5))
def test_a_mutated_description_of_each_format_never_ends_in_a_traceback(name, times, tmp_path):
    document, rng = parsed(described.ALL[name]), random.Random(name)
    path, ended = tmp_path / "d.json", []
    for _ in range(times):
        path.write_text(json.dumps(mutated(document, rng)))
        form = rng.choice([None, None, name.split()[0] if name.split()[0] in FORMATS else None])
        ended.append(ends_well(path, form=form, pick=rng.choice([None, "visits", "guests"])))
    # A few mutations may all be harmless.
    assert any(ended) and (times < MANY or not all(ended))


@pytest.mark.parametrize("times", [QUICK // 6, pytest.param(MANY // 6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", described.ALL)
def test_a_description_with_broken_bytes_never_ends_in_a_traceback(name, times, tmp_path):
    rng = random.Random(name)
    for suffix, document in (
        (".yaml", described.ALL[name]),
        (".json", json.dumps(parsed(described.ALL[name]))),
    ):
        path, data = tmp_path / f"d{suffix}", bytearray(document.encode())
        for _ in range(times):
            broken = bytearray(data)
            for _ in range(rng.choice([1, 2, 5])):
                spot = rng.randrange(len(broken))
                broken[spot : spot + rng.choice([0, 1, 9])] = rng.choice(
                    [b"", b"\x00", b"\xff", b"{", b"]", b'"', b"\n", b": ", b"\t", b"&a ", b"*a", b"!!x "]
                )  # fmt: skip
            path.write_bytes(broken)
            ends_well(path)


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(
                    ["fields", "name", "type", "columns", "sdtype", "dtype", "checks", "a", "schema"]
                ),
                inner,
                max_size=4,
            ),
        ),
        max_leaves=12,
    )
)
@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_document_read_as_any_format_ends_well(tmp_path_factory, document):
    path = tmp_path_factory.mktemp("any") / "d.json"
    path.write_text(json.dumps(document))
    for form in (None, *FORMATS):
        ends_well(path, form=form)


def test_a_reader_that_trusts_its_document_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(sketch, "_problem", lambda declared: None)
    with pytest.raises((AssertionError, DpsynthError, ValueError)):
        test_a_mutated_description_of_each_format_never_ends_in_a_traceback("table-schema", 100, tmp_path)
