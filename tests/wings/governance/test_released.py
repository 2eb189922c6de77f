"""Whole releases under a policy: by command, Python and Prefect, killed, copied, and without the wing."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dpsynth
from dpsynth.errors import ConfigError, Interrupted, NotApproved
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.steps import Step
from dpsynth.wings.governance.signed import KEY
from tests.cli.here import Command, Ended
from tests.release.canaries import CANARIES, forms
from tests.release.canaries import table as canary_table
from tests.release.place import CONFIG, HEADER, changed, people
from tests.release.stopping import stopped_at
from tests.test_wings import EACH, run

PEOPLE = ("anna", "boris", "clara")
SMALL = changed(
    CONFIG, {"columns": {"age": None, "city": None, "income": None}, "publish": {"statistics": []}}
)


class Board:
    """A folder with a table, a config, three keys and a policy, and the commands in it."""

    def __init__(self, command: Command) -> None:
        """Begin the ledger with its policy."""
        self.run, self.folder = command, command.folder
        self.public = {name: command("keygen", f"{name}.key").out.split()[-1] for name in PEOPLE}
        self.table(people(300))
        self.configure()
        policy = {
            "approvals": 2,
            "approvers": [self.public["boris"], self.public["clara"]],
            "may_request": [self.public["anna"]],
        }
        (self.folder / "policy.yaml").write_text(json.dumps(policy))
        done = self.run(
            *("ledger", "policy", "--config", "config.yaml", "--set", "policy.yaml"),
            *("--key", "boris.key", "--purpose", "agreed by the board"),
        )
        assert done.code == 0, done

    def table(self, rows: list[tuple[str, ...]], name: str = "people.csv") -> None:
        """Write a private table."""
        lines = [",".join(f'"{cell}"' for cell in row) for row in (HEADER, *rows)]
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def configure(self, **changes: object) -> None:
        """Write the config."""
        config = changed(SMALL, {"ledger": {"head": "ledger.head"}, **changes})
        (self.folder / "config.yaml").write_text(json.dumps(config))

    def asked(self, *more: str) -> str:
        """Ask for the release; the name of the request."""
        done = self.run("request", "config.yaml", "--purpose", "open data", "--key", "anna.key", *more)
        assert done.code == 0, done
        return done.out.splitlines()[-1]

    def approved(self, request: str, *names: str) -> None:
        """Approve a request by some people."""
        for name in names:
            done = self.run("approve", request, "--config", "config.yaml", "--key", f"{name}.key")
            assert done.code == 0, done

    def granted(self, *more: str) -> str:
        """A request that was approved."""
        request = self.asked(*more)
        self.approved(request, "boris", "clara")
        return request

    @property
    def ledger(self) -> Ledger:
        """The ledger."""
        return Ledger("sqlite:///ledger.db", "ledger.head")

    @property
    def kinds(self) -> list[str]:
        """The kinds of the ledger's rows."""
        return [row.kind for row in self.ledger.rows()]


@pytest.fixture
def board(dpsynth: Command, monkeypatch: pytest.MonkeyPatch) -> Board:
    """A board in an empty folder."""
    monkeypatch.delenv(KEY, raising=False)
    return Board(dpsynth)


def refused(done: Ended, words: str) -> bool:
    """Whether a command ended with exit code 3 and one paragraph with some words."""
    said = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    return done.code == 3 and len(said) == 1 and words in said[0] and "Traceback" not in done.err


def test_a_release_goes_out_once_two_people_have_approved_it(board: Board) -> None:
    assert refused(
        board.run("run", "config.yaml", "--plain"), "nobody has asked for this one. Ask with: dpsynth request"
    )
    request = board.asked()
    assert refused(board.run("run", "config.yaml", "--plain"), f"request {request} has 0 of 2 approvals")
    board.approved(request, "boris")
    assert refused(board.run("run", "config.yaml", "--plain"), board.public["clara"])
    # Nothing was begun: no journal, no folder.
    assert not any(name.startswith("outputs") for name in board.run.files)
    board.approved(request, "clara")
    done = board.run("run", "config.yaml", "--plain")
    assert done.code == 0, done
    assert refused(board.run("run", "config.yaml", "--plain"), "is used up")
    assert board.kinds == [
        "policy", "refused", "requested", "refused", "approved", "refused", "approved", "dataset", "reserved",
        "closed", "refused",
    ]  # fmt: skip
    shown = board.run("ledger", "policy", "--config", "config.yaml").out
    assert f"{request} (" in shown and "approved, used 1 of 1 times. open data" in shown
    assert "Attempts that were refused: 4." in shown
    assert board.run("ledger", "verify", "--config", "config.yaml").code == 0
    assert board.run("ledger", "show", "--config", "config.yaml").code == 0


def planned(board: Board) -> str:
    """The line of the plan that is about approval."""
    done = board.run("plan", "config.yaml")
    (line,) = [line for line in done.out.splitlines() if line.startswith("Approval: ")]
    stated = json.loads(board.run("plan", "config.yaml", "--json").out)["approval"]
    assert line == f"Approval: {stated}"
    return line


def test_a_plan_says_who_has_approved_and_who_must_still(board: Board) -> None:
    before = len(board.kinds)
    assert "would refuse this release: its policy asks for 2 approvals" in planned(board)
    request = board.asked("--occasions", "3", "--until", "2099-01-31")
    board.approved(request, "clara")
    assert f"request {request} has 1 of 2 approvals. Still to approve: 1 of {board.public['boris']}" in (
        planned(board)
    )
    board.approved(request, "boris")
    assert board.run("run", "config.yaml", "--plain").code == 0
    keys = f"{board.public['boris']}, {board.public['clara']}"
    assert planned(board) == (
        f"Approval: request {request} is approved by {keys}. Used 1 of 3 times. Until 2099-01-31."
    )
    another_epsilon(board)
    assert f"request {request} was made before the configuration, the plan" in planned(board)
    # A plan is no attempt: it enters nothing.
    assert board.kinds[before:] == ["requested", "approved", "approved", "dataset", "reserved", "closed"]


def test_a_ledger_without_a_policy_has_no_such_line_in_a_plan(dpsynth: Command) -> None:
    (dpsynth.folder / "config.yaml").write_text(json.dumps(SMALL))
    done = dpsynth("plan", "config.yaml")
    assert done.code == 0 and "Approval" not in done.out


def test_one_period_is_approved_whether_periods_add_up_or_not(board: Board) -> None:
    rows = [(*row, "2026-03-15") for row in people(300)]
    lines = [",".join(row) for row in ((*HEADER, "visited"), *rows)]
    (board.folder / "people.csv").write_text("\n".join(lines) + "\n")
    board.configure(period={"column": "visited", "every": "month", "composition": "parallel"})
    request = board.granted("--period", "2026-03")
    assert f"request {request} is approved by" in planned(board) and " For 2026-03 alone." in planned(board)
    assert refused(board.run("run", "config.yaml", "--plain", "--period", "2026-02"), "is for 2026-03")
    assert board.run("run", "config.yaml", "--plain", "--period", "2026-03").code == 0


def test_an_approver_may_change_their_mind_until_it_is_released(board: Board) -> None:
    request = board.granted()
    done = board.run("approve", request, "--revoke", "--config", "config.yaml", "--key", "clara.key")
    assert done.code == 0 and done.out == "Your approval is taken back. Approvals lacking: 1.\n"
    assert refused(board.run("run", "config.yaml", "--plain"), f"request {request} has 1 of 2 approvals")
    assert board.kinds[-2:] == ["revoked", "refused"] and board.ledger.verify().problems == ()


def another_epsilon(board: Board) -> list[str]:
    board.configure(privacy={"epsilon": 1.5})
    return []


def another_column(board: Board) -> list[str]:
    board.configure(columns={"sex": {"type": "category", "values": ["F", "M", "X"]}})
    return []


def another_statistic(board: Board) -> list[str]:
    board.configure(publish={"statistics": [{"crosstab": ["sex", "smoker"]}]})
    return []


def another_table(board: Board) -> list[str]:
    board.table(people(300, seed=2), "others.csv")
    return ["--source", "others.csv"]


def no_head_file(board: Board) -> list[str]:
    board.configure(ledger={"head": None})
    return []


def a_higher_cap(board: Board) -> list[str]:
    board.configure(ledger={"cap": {"epsilon": 2000}})
    return []


def weaker_criteria(board: Board) -> list[str]:
    board.configure(accept={"criteria": [{"error_of": "pairs", "at_most": 0.9}]})
    return []


@pytest.mark.parametrize(
    "change",
    [
        weaker_criteria,
        another_epsilon,
        another_column,
        another_statistic,
        another_table,
        no_head_file,
        a_higher_cap,
    ],
    ids=lambda change: change.__name__,
)
def test_what_changed_since_it_was_approved_is_refused(
    board: Board, change: Callable[[Board], list[str]]
) -> None:
    request = board.granted()
    more = change(board)
    done = board.run("run", "config.yaml", "--plain", *more)
    assert refused(done, f"request {request} was made before "), done
    assert board.kinds[-1] == "refused" and "reserved" not in board.kinds
    # Whoever approves with a config at hand isn't told to sign another one.
    fresh = board.run("approve", request, "--config", "config.yaml", "--key", "anna.key", *more)
    assert fresh.code == 3


def test_an_approver_who_names_a_config_signs_no_request_of_another(board: Board) -> None:
    request = board.asked()
    board.configure(privacy={"epsilon": 5})
    done = board.run("approve", request, "--config", "config.yaml", "--key", "boris.key")
    assert done.code == 2
    assert "as it is now: what differs is the configuration, the plan and the price." in done.err
    assert "Nothing was done" in done.err and board.kinds[-1] == "requested"


def test_another_version_that_plans_otherwise_needs_another_approval(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = board.granted()
    from dpsynth.plan import plan

    monkeypatch.setattr(plan, "EXAM_SHARE", plan.EXAM_SHARE * 2)
    done = board.run("run", "config.yaml", "--plain")
    assert refused(done, f"request {request} was made before the plan changed"), done


def test_a_release_that_was_interrupted_needs_no_second_approval(board: Board) -> None:
    board.granted()
    spec = dpsynth.load("config.yaml")
    with stopped_at(Step.SELECT, KeyboardInterrupt()), pytest.raises(Interrupted):
        dpsynth.release(spec)
    (entry,) = board.ledger.balances()[0].releases
    # Under another config, or with another table, it doesn't go on.
    board.table(people(300, seed=2), "others.csv")
    stolen = board.run(
        "run", "config.yaml", "--plain", "--resume", entry.release_id, "--source", "others.csv"
    )
    assert refused(stolen, "refuses to go on with release"), stolen
    done = board.run("run", "config.yaml", "--plain", "--resume", entry.release_id)
    assert done.code == 0, done
    assert board.kinds.count("reserved") == 1 and board.ledger.state(entry.release_id) == "closed"


def test_a_release_that_was_killed_needs_no_second_approval(board: Board) -> None:
    board.granted()
    command = [sys.executable, "-m", "dpsynth", "run", "config.yaml", "--plain"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(f"Step: {Step.SELECT}"):
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL
    (entry,) = board.ledger.balances()[0].releases
    assert entry.state == "reserved"
    assert refused(board.run("run", "config.yaml", "--plain"), "is used up")
    assert board.run("run", "config.yaml", "--plain", "--resume", entry.release_id).code == 0
    assert board.kinds.count("reserved") == 1 and board.ledger.verify().problems == ()


def test_a_stolen_partial_folder_is_no_approval_elsewhere(board: Board, tmp_path: Path) -> None:
    """A copy of an unfinished release, resumed over a ledger of the same policy that doesn't have it."""
    board.granted()
    with stopped_at(Step.SELECT, KeyboardInterrupt()), pytest.raises(Interrupted):
        dpsynth.release(dpsynth.load("config.yaml"))
    (entry,) = board.ledger.balances()[0].releases
    (board.folder / "ledger.db").unlink()
    (board.folder / "ledger.head").unlink()
    policy = ("ledger", "policy", "--config", "config.yaml", "--set", "policy.yaml", "--key", "boris.key")
    assert board.run(*policy, "--purpose", "once more").code == 0
    done = board.run("run", "config.yaml", "--plain", "--resume", entry.release_id)
    assert refused(done, "nobody has asked for this one"), done


def test_python_is_refused_and_asks_like_the_command_line(board: Board) -> None:
    spec = dpsynth.load("config.yaml")
    with pytest.raises(NotApproved, match="nobody has asked"):
        dpsynth.release(spec)
    board.approved(dpsynth.request(spec, purpose="open data", key="anna.key"), "boris", "clara")
    assert dpsynth.release(spec).folder.is_dir()


def test_a_table_in_memory_needs_an_approval_of_its_own(board: Board) -> None:
    import pandas as pd

    spec, frame = dpsynth.load("config.yaml"), pd.read_csv("people.csv", dtype=str)
    board.granted()
    with pytest.raises(NotApproved, match=r"before .*the source"):
        dpsynth.release(frame, spec)
    request = dpsynth.request(spec, purpose="open data", key="anna.key", in_memory=True)
    for name in ("boris", "clara"):
        done = board.run(
            "approve",
            request,
            "--ledger",
            "sqlite:///ledger.db",
            "--head",
            "ledger.head",
            "--key",
            f"{name}.key",
        )
        assert done.code == 0 and "of a table without a path" in done.out
    assert dpsynth.release(frame, spec).folder.is_dir()


def test_an_answer_to_a_recipient_needs_an_approval_of_its_own(board: Board) -> None:
    board.configure(verification={"epsilon": 2, "question": 0.5})
    board.granted()
    bundle = board.run("run", "config.yaml", "--plain").out.splitlines()[-1]
    words = ("--within", "10%", "--out", "question.json")
    assert board.run("question", bundle, "count by sex", *words).code == 0
    answer = ("answer", "config.yaml", "question.json")
    assert refused(board.run(*answer, "--out", "answer.json"), "nobody has asked for this one")
    assert board.run(*answer, "--config-only", "question.yaml").code == 0
    asked = board.run("request", "question.yaml", "--purpose", "a question", "--key", "anna.key")
    for name in ("boris", "clara"):
        board.run("approve", asked.out.splitlines()[-1], "--config", "question.yaml", "--key", f"{name}.key")
    done = board.run(*answer, "--out", "answer.json")
    assert done.code == 0 and Path("answer.json").is_file(), done
    assert board.ledger.verify().problems == ()


def test_prefect_is_refused_before_a_server_is_started(board: Board) -> None:
    done = board.run("run", "config.yaml", "--prefect")
    assert refused(done, "nobody has asked"), done
    assert "Loading Prefect" not in done.err and board.kinds == ["policy", "refused"]


@pytest.mark.slow
def test_a_flow_of_a_schedule_or_a_deployment_is_refused(board: Board) -> None:
    """The flow as a worker runs it, which checks nothing beforehand."""
    program = (
        "from flows.release import release\n"
        "state = release(config='config.yaml', source=None, out='outputs', resume=None, period=None, "
        "return_state=True)\n"
        "error = state.result(raise_on_failure=False)\n"
        "print(state.name, type(error).__name__, error.exit_code)\n"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    kept |= {"PREFECT_HOME": str(board.folder / "prefect"), "PREFECT_LOGGING_LEVEL": "CRITICAL"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=board.folder,
        env=kept,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines()[-1] == "Refused NotApproved 3", done
    assert board.kinds == ["policy", "refused"]


def test_without_the_wing_a_ledger_with_a_policy_is_refused(board: Board) -> None:
    ignored = shutil.ignore_patterns("governance")
    shutil.copytree(Path(dpsynth.__file__).parent, board.folder / "package" / "dpsynth", ignore=ignored)
    board.granted()
    done = run(board.folder, EACH, "run|config.yaml|--plain", "ledger|show", "ledger|policy")
    assert done.stdout.count("Ended: 2") == done.stderr.count("needs the wing governance") == 3, done
    assert "reserved" not in board.kinds


def test_nothing_of_the_table_is_in_a_request_or_a_refusal_and_no_table_is_opened(board: Board) -> None:
    board.table(canary_table())
    board.run("run", "config.yaml", "--plain")
    request = board.asked()
    (board.folder / "people.csv").rename(board.folder / "away.csv")
    board.asked()
    board.approved(request, "boris", "clara")
    (board.folder / "away.csv").rename(board.folder / "people.csv")
    assert board.run("run", "config.yaml", "--plain").code == 0
    release = board.ledger.balances()[0].releases[0].release_id
    done = board.run(
        *("withdraw", release, "--reason", "read in months", "--config", "config.yaml", "--key", "boris.key")
    )
    assert done.code == 0, done
    left = [(board.folder / "ledger.db").read_bytes(), done.out.encode(), done.err.encode()]
    left += [path.read_bytes() for path in board.folder.rglob("notices.json")]
    left += [path.read_bytes() for path in board.folder.rglob("index.html")]
    assert len(left) == 5
    for canary in CANARIES.values():
        assert not any(form in content for form in forms(canary) for content in left), canary


def test_a_key_that_is_missing_or_none_is_said_in_a_paragraph(board: Board) -> None:
    done = board.run("request", "config.yaml", "--purpose", "open data")
    assert (
        done.code == 2
        and f"name the file of your key with --key, or with the environment variable {KEY}" in done.err
    )
    (board.folder / "policy.yaml").write_text("approvals: 2\napprovers: [anna]\n")
    done = board.run("ledger", "policy", "--set", "policy.yaml", "--key", "anna.key", "--purpose", "x")
    assert done.code == 2 and "approvers must be a list of public keys" in done.err
    with pytest.raises(ConfigError, match="occasions must be"):
        dpsynth.request(dpsynth.load("config.yaml"), purpose="x", key="anna.key", occasions=0)
