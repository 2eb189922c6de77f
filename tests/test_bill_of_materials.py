"""The bill of materials lists all that the lock file pins, and what is said of advisories is plain."""

import hashlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from releasing.advisories import verdict
from releasing.bill_of_materials import bill_of, pinned

# Of a lock file in which nothing is needed by dpsynth itself.
pytestmark = pytest.mark.filterwarnings("ignore:The Component this BOM is describing")

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dist") / "dpsynth-0.1.0-py3-none-any.whl"
    path.write_bytes(b"a wheel")
    return path


@pytest.fixture(scope="module")
def bill(wheel: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(bill_of(wheel, LOCK.read_text(encoding="utf-8")))
    return read


def hashes_by_name(bill: dict[str, Any]) -> dict[str, set[str]]:
    return {
        f"{part['name']}=={part['version']}": {
            held["content"]
            for reference in part["externalReferences"]
            for held in reference.get("hashes", ())
        }
        for part in bill["components"]
    }


def test_every_pinned_package_is_listed_with_its_version_and_hashes(bill: dict[str, Any]) -> None:
    expected: dict[str, set[str]] = {}
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"(\S+==[^\s;\\]+)", line):
            name = found[1]
            expected[name] = set()
        elif found := re.search(r"--hash=sha256:(\w+)", line):
            expected[name].add(found[1])
    assert hashes_by_name(bill) == expected
    assert len(expected) > 100 and all(expected.values())
    assert all(part["purl"].startswith("pkg:pypi/") for part in bill["components"])


def test_the_bill_names_the_wheel_and_what_it_needs(bill: dict[str, Any], wheel: Path) -> None:
    whole = bill["metadata"]["component"]
    assert (whole["name"], whole["version"]) == ("dpsynth", "0.1.0")
    assert whole["hashes"][0]["content"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in bill["dependencies"]}
    assert {name.split("==")[0] for name in needs["dpsynth"]} >= {
        "opendp",
        "numpy",
        "prefect",
        "dp-accounting",
    }
    reached, open_ = set(), ["dpsynth"]
    while open_:
        reached.add(ref := open_.pop())
        open_ += set(needs[ref]) - reached
    assert reached == {"dpsynth"} | {part["bom-ref"] for part in bill["components"]}


def test_the_same_wheel_has_the_same_bill_and_another_one_has_not(wheel: Path, tmp_path: Path) -> None:
    lock = "\n".join(LOCK.read_text(encoding="utf-8").splitlines()[:10]) + "\n"
    assert bill_of(wheel, lock) == bill_of(wheel, lock)
    other = tmp_path / wheel.name
    other.write_bytes(b"another wheel")
    assert bill_of(other, lock) != bill_of(wheel, lock)


def test_a_package_without_hashes_would_be_seen(wheel: Path) -> None:
    """The planted fault: an entry that the parser overlooks, or reads without its hashes."""
    lock = (
        'one==1.0 ; python_version < "3.12" \\\n    --hash=sha256:' + 64 * "a" + "\n    # via two\ntwo==2.0\n"
    )
    assert [(p.name, p.version, len(p.hashes), p.wanted_by) for p in pinned(lock)] == [
        ("one", "1.0", 1, ("two",)),
        ("two", "2.0", 0, ()),
    ]
    assert hashes_by_name(json.loads(bill_of(wheel, lock))) == {"one==1.0": {64 * "a"}, "two==2.0": set()}


@pytest.mark.slow
def test_the_bill_is_valid_by_its_schema(bill: dict[str, Any]) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is None
    del bill["components"][0]["name"]
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill)) is not None


def test_packages_that_nobody_could_look_up_are_no_good_news() -> None:
    skipped = {"name": "one", "skip_reason": "not found"}
    good = {"name": "two", "version": "2", "vulns": []}
    bad = {"name": "three", "version": "3", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"]}]}
    assert verdict([good])[0] == 0
    code, lines = verdict([skipped])
    assert code == 2 and "nothing was checked" in lines[0]
    assert verdict([])[0] == 2 and verdict([good, skipped])[0] == 2
    code, lines = verdict([good, bad, skipped])
    assert code == 1 and "PYSEC-1" in lines[0]


@pytest.mark.slow
def test_release_files_that_openssl_signs_are_verified_and_changed_ones_are_not(
    wheel: Path, tmp_path: Path
) -> None:
    """The commands of SECURITY.md, with a key that `dpsynth keygen` makes."""
    from dpsynth.bundle.signature import make_key

    make_key(tmp_path / "release-key.pem")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")

    def openssl(*arguments: str) -> int:
        done = subprocess.run(["openssl", *arguments], cwd=tmp_path, capture_output=True, check=False)
        return done.returncode

    try:
        assert openssl("pkey", "-in", "release-key.pem", "-pubout", "-out", "release-key.pub.pem") == 0
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    signed = ("-rawin", "-in", "SHA256SUMS")
    assert openssl("pkeyutl", "-sign", "-inkey", "release-key.pem", *signed, "-out", "SHA256SUMS.sig") == 0
    verify = ("pkeyutl", "-verify", "-pubin", "-inkey", "release-key.pub.pem", *signed)
    assert openssl(*verify, "-sigfile", "SHA256SUMS.sig") == 0
    sums.write_text(sums.read_text().replace("0", "1"))
    assert openssl(*verify, "-sigfile", "SHA256SUMS.sig") != 0
