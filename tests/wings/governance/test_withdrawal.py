"""A release is withdrawn: in the ledger, beside the bundle, and wherever somebody opens it."""

import json
import os
import shutil
import signal
import warnings
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import dpsynth
from dpsynth.bundle.recipient.opened import NOTICES_FILE as FILE
from dpsynth.bundle.recipient.opened import notices_beside
from dpsynth.bundle.signature import make_key
from dpsynth.ledger.ledger import Ledger
from dpsynth.wings.governance import withdrawing
from dpsynth.wings.governance.signed import KEY
from tests.cli.here import Command, Ended
from tests.ledger.test_ledger_processes import forked, lines
from tests.wings.governance.boards import public
from tests.wings.governance.test_released import Board

ASK = "count by sex"


class Office:
    """A folder with two signed releases in a ledger that has no policy."""

    def __init__(self, command: Command) -> None:
        """Release twice."""
        self.run, self.folder = command, command.folder
        self.public = command("keygen", "owner.key").out.split()[-1]
        command("keygen", "other.key")
        rows = "".join(f"{i * 7 % 90},{'FM'[i % 2]}\n" for i in range(1000))
        (self.folder / "visits.csv").write_text("age,sex\n" + rows)
        self.configure()
        self.first, self.second = (self.released() for _ in range(2))

    def configure(self, **more: object) -> None:
        """Write the config."""
        config = {
            "release": "visits",
            "source": {"path": "visits.csv"},
            "privacy": {"epsilon": 2, "delta": 1e-6, "unit": "row", "neighbours": "add_remove"},
            "ledger": {"dataset": "visits", "cap": {"epsilon": 50, "delta": 1e-4}},
            "columns": {
                "age": {"type": "integer", "min": 0, "max": 89, "bins": 18, "missing": False},
                "sex": {"type": "category", "values": ["F", "M"], "missing": False},
            },
            "publish": {"sign": "owner.key"},
        }
        (self.folder / "visits.yaml").write_text(json.dumps(config | more))

    def released(self) -> Path:
        """Another release; its folder."""
        done = self.run("run", "visits.yaml", "--plain")
        assert done.code == 0, done
        return Path(done.out.splitlines()[-1])

    def withdrawn(self, release: Path, *more: str) -> Ended:
        """Withdraw a release with the key of the config, unless another one is given."""
        words = ("withdraw", release.name, "--reason", "Ages were read in months", "--config", "visits.yaml")
        return self.run(*words, *more)


@pytest.fixture
def office(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office in an empty folder."""
    monkeypatch.delenv(KEY, raising=False)
    return Office(dpsynth)


def test_a_withdrawn_release_says_so_first_wherever_it_is_opened(office: Office) -> None:
    spent = Ledger("sqlite:///ledger.db").balances()[0].epsilon_used
    before = {path: path.read_bytes() for path in office.first.rglob("*") if path.is_file()}
    done = office.withdrawn(office.first, "--replaced-by", office.second.name)
    assert done.code == 0 and done.out.splitlines()[-1] == str(office.first / FILE), done
    assert "Its privacy stays spent" in done.out
    # The bundle is as it was, and so is what it costs.
    assert all(path.read_bytes() == content for path, content in before.items())
    ledger = Ledger("sqlite:///ledger.db")
    assert ledger.balances()[0].epsilon_used == spent and ledger.verify().problems == ()
    assert ledger.rows()[-1].kind == "withdrawn"

    day = ledger.rows()[-1].created
    said = (
        f"WITHDRAWN on {day}: Ages were read in months. Don't use it any more. Use release "
        f"{office.second.name} in its place. Its privacy stays spent: what it told can't be taken back, and "
        f"it counts under the cap as before. Signed by {office.public}, the key that signed the bundle."
    )
    verified = office.run("verify", office.first)
    assert verified.code == 1 and verified.out.splitlines()[0] == said
    assert verified.out.splitlines()[-1] == "The bundle is good. It is WITHDRAWN."
    assert office.run("query", office.first, ASK).out.splitlines()[0] == said
    asked = office.run("question", office.first, ASK, "--within", "5%", "--out", "q.json")
    assert asked.err.splitlines() == [said]
    as_json = office.run("query", office.first, ASK, "--json")
    assert json.loads(as_json.out)["notices"] == [said] and as_json.err.splitlines()[0] == said
    as_csv = office.run("query", office.first, ASK, "--csv")
    assert as_csv.out.startswith("sex,") and as_csv.err.splitlines()[0] == said
    sample = office.run("sample", office.first, "--rows", "2")
    assert sample.out.startswith("age,sex\n") and sample.err.splitlines()[0] == said
    with pytest.warns(UserWarning, match="WITHDRAWN on"):
        opened = dpsynth.open_bundle(office.first)
    assert repr(opened).splitlines()[0] == said
    assert repr(opened.query(ASK)).splitlines()[0] == said
    page = (office.first.parent / "index.html").read_text()
    assert page.count('<span class="tag">withdrawn</span>') == 1 and "Ages were read in months" in page
    # The other one says nothing.
    assert office.run("verify", office.second).code == 0
    assert "WITHDRAWN" not in office.run("query", office.second, ASK).out
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "WITHDRAWN" not in repr(dpsynth.open_bundle(office.second))


def test_an_erratum_leaves_a_release_in_use(office: Office) -> None:
    assert office.withdrawn(office.first, "--erratum").code == 0
    verified = office.run("verify", office.first)
    assert verified.code == 0 and verified.out.startswith("ERRATUM of ")
    assert verified.out.splitlines()[-1] == "The bundle is good."
    assert office.withdrawn(office.first).code == 0
    first, second, *_ = office.run("verify", office.first).out.splitlines()
    assert first.startswith("WITHDRAWN on ") and second.startswith("ERRATUM of ")


def test_a_copy_of_the_public_folder_is_verified_with_the_file_of_notices(office: Office) -> None:
    assert office.withdrawn(office.first).code == 0
    shutil.copytree(office.first / "public", "copies/bundle")
    shutil.copy(office.first / FILE, "told.json")
    assert office.run("verify", "copies/bundle").code == 0
    with_file = office.run("verify", "copies/bundle", "--notices", "told.json", "--key", office.public)
    assert with_file.code == 1 and with_file.out.startswith("WITHDRAWN on")
    assert "the key that was given." in with_file.out.splitlines()[0]
    other = office.run("verify", office.second, "--notices", "told.json")
    assert other.code == 0 and "No notice in told.json is about this bundle." in other.out
    shutil.move("told.json", "copies/notices.json")
    assert office.run("verify", "copies/bundle").code == 1
    as_json = json.loads(office.run("verify", "copies/bundle", "--json").out)
    assert as_json["good"] and as_json["notices"][0]["withdrawn"]


def test_notices_are_read_where_they_are_published(office: Office) -> None:
    assert office.withdrawn(office.first).code == 0
    served = partial(SimpleHTTPRequestHandler, directory=str(office.first))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        shutil.copytree(office.first / "public", "copies/bundle")
        found = office.run("verify", "copies/bundle", "--notices", f"{address}/{FILE}")
        lost = office.run("verify", "copies/bundle", "--notices", f"{address}/nowhere.json")
        server.shutdown()
    assert found.code == 1 and found.out.startswith("WITHDRAWN on")
    closed = office.run("verify", "copies/bundle", "--notices", f"{address}/{FILE}")
    for ended in (lost, closed):
        assert ended.code == 1 and "can't be read; ask where the bundle was published" in ended.out
        assert ended.out.splitlines()[-1] == "The bundle is NOT good."


def altered(notice: dict[str, object]) -> None:
    notice["reason"] = "Nothing is wrong with it"


def renamed(notice: dict[str, object]) -> None:
    notice["kind"] = "erratum"


def signed_by_nobody(notice: dict[str, object]) -> None:
    del notice["signature"]


def in_the_name_of_another(notice: dict[str, object]) -> None:
    notice["by"] = public("eve")[0]


@pytest.mark.parametrize(
    "forge", [altered, renamed, signed_by_nobody, in_the_name_of_another], ids=lambda forge: forge.__name__
)
def test_a_forged_notice_is_said_to_be_one(
    office: Office, forge: Callable[[dict[str, object]], None]
) -> None:
    assert office.withdrawn(office.first).code == 0
    values = json.loads((office.first / FILE).read_text())
    forge(values["notices"][0])
    (office.first / FILE).write_text(json.dumps(values))
    done = office.run("verify", office.first)
    assert done.code == 1 and "its signature doesn't fit: somebody changed or forged it" in done.out
    assert done.out.splitlines()[-1] == "The bundle is NOT good."
    assert "forged" in office.run("query", office.first, ASK).out.splitlines()[0]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 2, "notices": []}', '{"format": 1, "notices": [1]}']
)
def test_a_damaged_file_of_notices_is_said_and_ends_nothing(office: Office, content: str) -> None:
    (office.first / FILE).write_text(content)
    done = office.run("verify", office.first)
    assert done.code == 1 and "can't be read; ask where the bundle was published" in done.out.splitlines()[0]
    assert office.run("sample", office.first, "--rows", "1").code == 0
    assert office.run("verify", office.second, "--notices", "nowhere.json").code == 1


def test_a_notice_by_somebody_else_withdraws_nothing_for_whoever_knows_the_owners_key(office: Office) -> None:
    assert office.withdrawn(office.first, "--key", "other.key").code == 0
    known = office.run("verify", office.first, "--key", office.public)
    assert known.code == 0 and known.out.startswith("A notice by ed25519:")
    assert "which is not the key that was given" in known.out.splitlines()[0]
    unknown = office.run("verify", office.first)
    assert unknown.code == 1
    assert "which did not sign this bundle: ask where it was published." in unknown.out.splitlines()[0]


def test_what_can_not_be_withdrawn_is_refused_in_a_paragraph(office: Office, tmp_path: Path) -> None:
    for words, code, said in (
        (("20260101-00000000",), 2, "has no finished release 20260101-00000000"),
        ((office.first.name, "--out", "elsewhere"), 2, "Name the folder for bundles with --out"),
        ((office.first.name, "--replaced-by", office.first.name), 2, "has no other finished release"),
        ((office.first.name, "--reason", "a\nb"), 2, "takes a reason"),
    ):
        done = office.run(
            "withdraw", *words, *(() if "--reason" in words else ("--reason", "x")), "--key", "owner.key"
        )
        assert done.code == code and said in done.err, done
    done = office.run("withdraw", office.first.name, "--reason", "x")
    assert done.code == 2 and "Who you are is missing" in done.err
    assert office.withdrawn(office.first).code == 0
    again = office.run("withdraw", office.first.name, "--reason", "another", "--key", "owner.key")
    assert again.code == 3 and "it was withdrawn already" in again.err
    assert [row.kind for row in Ledger("sqlite:///ledger.db").rows()].count("withdrawn") == 1


def test_a_withdrawal_that_was_killed_before_its_file_is_finished_by_the_same_command(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(tell: Callable[[str], None]) -> None:
        def die(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        withdrawing.write_notices = die  # type: ignore[assignment]
        office.withdrawn(office.first)
        tell("lived")

    with forked(run) as (_, reader):
        assert lines(reader) == []
    assert Ledger("sqlite:///ledger.db").rows()[-1].kind == "withdrawn" and not (office.first / FILE).exists()
    assert office.withdrawn(office.first).code == 0
    (notice,) = notices_beside(office.first / "public", office.first.name)
    assert notice.withdrawn
    assert [row.kind for row in Ledger("sqlite:///ledger.db").rows()].count("withdrawn") == 1


def test_answers_of_a_withdrawn_release_are_used_no_more(office: Office) -> None:
    office.configure(reuse={"earlier_periods": True})
    assert office.withdrawn(office.first).code == 0
    done = office.run("run", "visits.yaml", "--plain")
    assert (
        done.code == 0
        and f"Release {office.first.name} is not used as evidence: it was withdrawn." in done.err
    )
    manifest = json.loads((Path(done.out.splitlines()[-1]) / "public" / "manifest.json").read_text())
    assert office.second.name in json.dumps(
        manifest["earlier_releases"]
    ) and office.first.name not in json.dumps(manifest["earlier_releases"])


def test_under_a_policy_only_those_who_may_withdraw(
    dpsynth: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY, raising=False)
    board = Board(dpsynth)
    board.granted()
    assert board.run("run", "config.yaml", "--plain").code == 0
    release = board.ledger.balances()[0].releases[0].release_id
    words = ("withdraw", release, "--reason", "read in months", "--config", "config.yaml", "--key")
    make_key(Path("eve.key"))
    for key in ("eve.key", "anna.key"):
        done = board.run(*words, key)
        assert done.code == 3 and "may not withdraw a release, by the policy" in done.err
    assert board.run(*words, "clara.key").code == 0
    assert board.kinds[-3:] == ["refused", "refused", "withdrawn"] and board.ledger.verify().problems == ()
