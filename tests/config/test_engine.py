"""The engine section says amounts of memory in words that can't be misread, and decides no question."""

import pytest

from dpsynth.config import compiled
from dpsynth.errors import ConfigError


@pytest.mark.parametrize(
    ("words", "size"),
    [("2 GB", 2 * 10**9), ("500mb", 5 * 10**8), ("1.5 gb", 1_500_000_000), ("1 TB", 10**12)],
)
def test_an_amount_is_read_in_its_unit(load_with, words: str, size: int) -> None:
    spec = load_with(f"engine: {{memory: {words}}}\n")
    assert spec.engine.memory == size
    assert compiled(spec).whole_fingerprint == compiled(load_with()).whole_fingerprint


@pytest.mark.parametrize("words", ["2", "2 GiB", "0 GB", "1 KB", "-1 GB", "lots", "[1 GB]", "null"])
def test_what_is_no_amount_is_refused_with_an_example(load_with, words: str) -> None:
    with pytest.raises(ConfigError, match=r"engine\.memory.*(2 GB|no value)"):
        load_with(f"engine: {{memory: {words}}}\n")


def test_the_local_model_has_no_use_for_it(load_with) -> None:
    with pytest.raises(ConfigError, match="engine has no use with trust: local"):
        load_with("engine: {memory: 2 GB}\ntrust: local\n", replace=("source: {path: data/table.csv}\n", ""))
