"""Workbooks and archives with wrong bytes in them end in rows or in one plain paragraph."""

import datetime as dt
import random
from collections import Counter

import pytest

from dpsynth.config.files import FileForm
from dpsynth.config.files.form import COMPRESSIONS
from dpsynth.curator import read_batches
from dpsynth.errors import SourceError
from tests.config.files.test_forms import CANARY, packed
from tests.config.files.workbooks import parts_of, write_parts, write_workbook

WRONG = (b"9" * 30, b"-", b"e999", b"<c", b"/>", b"&#0;", b"NaN", b"ZZZZ9999999", b'"', b"\xff", b"1", b"<")


def mutated(data: bytes, chance: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(chance.choice((1, 3, 20))):
        spot = chance.choice((chance.randrange(len(found)), chance.randrange(min(60, len(found)))))
        found[spot : spot + chance.choice((0, 1, 1, 40))] = chance.choice((*WRONG, chance.randbytes(3)))
    return bytes(found)


def outcome(path, form, capfd) -> str:
    try:
        sum(len(batch["a"]) for batch in read_batches(path, ["a", "b"], form, keep_broken=True))
    except SourceError as error:
        told = str(error)
        assert told.isprintable() and CANARY not in told and error.__cause__ is None
        return "refused"
    finally:
        # A library may write on its own, past Python.
        assert capfd.readouterr() == ("", "")
    return "read"


def test_a_workbook_with_wrong_bytes_in_any_part_is_read_or_refused(tmp_path, capfd):
    path, chance = tmp_path / "t.xlsx", random.Random(5)
    days = [[i, dt.datetime(2020, 1, 1) + dt.timedelta(hours=i)] for i in range(30)]
    write_workbook(path, {"S": [["a", "b"], *days, [CANARY, "#N/A"], [True, "é"]]})
    parts = parts_of(path)
    found: Counter[str] = Counter()
    for _ in range(80):
        broken = chance.choice(list(parts))
        write_parts(path, {**parts, broken: mutated(parts[broken], chance)})
        found[outcome(path, FileForm("xlsx"), capfd)] += 1
    assert min(found["read"], found["refused"]) > 10


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_an_archive_with_wrong_bytes_is_read_or_refused(tmp_path, capfd, compression):
    path, chance = tmp_path / "t", random.Random(compression)
    packed(path, b"a,b\n" + b"".join(b'%d,"K4N4RY %d"\n' % (i, i * i) for i in range(900)), compression)
    sound = path.read_bytes()
    found: Counter[str] = Counter()
    for _ in range(60):
        path.write_bytes(mutated(sound, chance))
        found[outcome(path, FileForm(compression=compression), capfd)] += 1
    assert found["refused"] > 30
