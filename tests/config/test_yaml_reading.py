"""YAML is read as people expect it, exactly, and every failure is a ConfigError with a line."""

from decimal import Decimal

import pytest

from dpsynth.config.document import MAX_BYTES, OddInteger, parse_yaml, read_yaml
from dpsynth.errors import ConfigError


def read(text):
    return parse_yaml(text, "c.yaml")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1e-6", Decimal("1e-6")),
        ("1E3", Decimal(1000)),
        (".5", Decimal("0.5")),
        ("0.1", Decimal("0.1")),
        ("-7", -7),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2020-01-01", "2020-01-01"),
        ("NO", "NO"),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("'true'", "true"),
        ("'1'", "1"),
        ("", None),
        ("~", None),
        ("null", None),
        ("'?'", "?"),
        ("a?", "a?"),
        ("=", "="),
        ("<=50K", "<=50K"),
    ],
)
def test_a_scalar_is_what_yaml_1_2_says(written, meant):
    value = read(f"key: {written}").values["key"]
    assert value == meant
    assert isinstance(value, type(meant))


def test_numbers_keep_their_exact_decimals():
    value = read("a: 0.1\nb: 1.0e-9\nc: 0.30000000000000000001").values
    assert value["a"] * 10 == 1
    assert value["b"] * 10**9 == 1
    assert str(value["c"]) == "0.30000000000000000001"


def test_an_integer_with_an_odd_spelling_is_marked():
    values = read("a: 010\nb: 10\nc: +5\nd: -0").values
    assert [type(values[k]) for k in "abcd"] == [OddInteger, int, OddInteger, OddInteger]


def test_keys_are_texts_whatever_they_look_like():
    assert list(read("2020: 1\nNO: 2\nnull: 3\ntrue: 4").values) == ["2020", "NO", "null", "true"]


def test_lines_of_keys_and_items_are_remembered():
    document = read("a: 1\n\nb:\n  c: [1,\n    2]\n  d:\n    - x\n    - y: 3\n")
    assert document.line(("b", "c")) == 4
    assert document.line(("b", "c", 1)) == 5
    assert document.line(("b", "d", 1, "y")) == 8
    assert document.line(("b", "d", 1, "unknown", "deeper")) == 8
    assert document.line(("nowhere",)) == 1


def test_aliases_share_values_and_keep_lines():
    document = read("a: &x {k: [1, 2]}\nb: *x\n")
    assert document.values["b"] == document.values["a"] == {"k": [1, 2]}
    assert document.line(("b", "k")) == 1


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 10)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "the key a is given twice (first on line 1)"),
        ("a:\n  b: 1\n  b: 2\n", 3, "the key a.b is given twice"),
        ("1: a\n'1': b\n", 2, "given twice"),
        ("v:\n  - a\n  - ?\n", 3, "put it in quotes: '?'"),
        ("v: [a, ?]\n", 1, "put it in quotes: '?'"),
        ("v: ?\n", 1, "put it in quotes: '?'"),
        ("? a\n: b\n", 1, "question mark"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "tags"),
        ("a: !!int 5\n", 1, "tags"),
        ("a: !secret x\n", 1, "tags"),
        ("a: 1\n\tb: 2\n", 2, "Indent with spaces"),
        ("a:\n\t- 1\n", 2, "Indent with spaces"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: b: c\n", 1, "in quotes"),
        ("a: @x\n", 1, "in quotes"),
        ("a: 'x\n", 2, "not valid YAML"),
        ("a: *nowhere\n", 1, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "one document"),
        ("a: &x [*x]\n", 1, "contains it"),
        ("a: &x\n  b: *x\n", None, "contains it"),
        (BOMB, None, "more than 100,000 values"),
        ("a: 1\n<<: {b: 2}\n", 2, "merge keys"),
        ("[a, b]: 1\n", 1, "a key must be a plain text"),
        ("- a\n- b\n", 1, "the top level must be a mapping"),
        ("\njust text\n", 2, "the top level must be a mapping"),
        ("a: 1\nb: \x07\n", 2, "control character"),
        ("a: " + "9" * 5000, 1, "more than 60 characters"),
        ("a: 1e9999999999999999999999\n", 1, "out of range"),
        ("a: " + "[" * 60 + "]" * 60, 1, "nested too deeply"),
        ("a: " + "[" * 20000, None, "nested too deeply"),
    ],
)
def test_what_is_no_plain_mapping_is_refused_with_its_line(text, line, words):
    with pytest.raises(ConfigError) as caught:
        read(text)
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert message.startswith("c.yaml")
    if line is not None:
        assert f"line {line}" in message


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "\n\n"])
def test_an_empty_file_is_refused(text):
    with pytest.raises(ConfigError, match="is empty"):
        read(text)


def test_a_file_that_can_not_be_read_is_refused_by_name(tmp_path):
    latin, large = tmp_path / "latin.yaml", tmp_path / "large.yaml"
    latin.write_bytes("a: 1\nb: caf\xe9\n".encode("latin-1"))
    large.write_bytes(b"#" * (MAX_BYTES + 1))
    for path, words in [
        (tmp_path / "nowhere.yaml", "There is no file"),
        (tmp_path, "is a folder"),
        (latin, "line 2: this is not UTF-8"),
        (large, "too large"),
        ("nul\0.yaml", "can't be read"),
    ]:
        with pytest.raises(ConfigError) as caught:
            read_yaml(path)
        assert words in str(caught.value)
        assert str(path).replace("\0", r"\x00") in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_yaml(path).values == {"a": 1, "b": 2}


def test_a_syntax_error_does_not_quote_the_line():
    with pytest.raises(ConfigError) as caught:
        read("ledger: {url: 'postgresql://me:hunter2@db'\nb: : 3\n")
    assert "hunter2" not in str(caught.value)
