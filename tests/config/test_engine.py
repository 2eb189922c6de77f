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


@pytest.mark.parametrize(
    "address", ["local", "tcp://127.0.0.1:8786", "tcp://localhost:8786", "tcp://[::1]:9"]
)
def test_a_cluster_of_this_machine_needs_no_certificates(load_with, address: str) -> None:
    assert load_with(f"engine: {{dask: '{address}'}}\n").engine.dask == address


def test_rows_go_to_another_machine_by_tls_alone(load_with) -> None:
    for address in ("tcp://cluster:8786", "tcp://10.0.0.7:8786", "tcp://127.0.0.1.evil.org:8786"):
        with pytest.raises(ConfigError, match=r"engine\.dask would send rows .* unencrypted: .* tls://"):
            load_with(f"engine: {{dask: '{address}'}}\n")
    with pytest.raises(ConfigError, match=r"engine\.tls is needed for a tls:// address"):
        load_with("engine: {dask: 'tls://cluster:8786'}\n")
    files = "tls: {ca: ca.pem, cert: me.pem, key: me.key}"
    assert load_with(f"engine: {{dask: 'tls://cluster:8786', {files}}}\n").engine.tls is not None
    with pytest.raises(ConfigError, match=r"engine\.tls is for a tls:// address"):
        load_with(f"engine: {{dask: local, {files}}}\n")


@pytest.mark.parametrize("words", ["cluster:8786", "http://cluster:8786", "tls://cluster", "true", "Local"])
def test_an_address_that_is_none_is_refused_with_what_may_stand_there(load_with, words: str) -> None:
    with pytest.raises(ConfigError, match=r"engine\.dask (must be local|has no value)"):
        load_with(f"engine: {{dask: {words}}}\n")
