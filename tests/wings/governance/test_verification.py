"""Questions of recipients: judged rightly, charged as a release, bounded by a standing budget, and signed."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from dpsynth.bundle.recipient import open_bundle
from dpsynth.bundle.recipient.query import QuestionRefused, answered
from dpsynth.bundle.signature import make_key
from dpsynth.columns.numeric import NumericCodec
from dpsynth.config import compiled, from_mapping, load
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, NotApproved
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline import beginning
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run
from dpsynth.wings.governance.asking import ask, reservation_for
from dpsynth.wings.governance.verification import commands
from dpsynth.wings.governance.verification.answering import config_of
from dpsynth.wings.governance.verification.papers import Claim, Question, Verified, outcome, read
from tests.bundle.recipient.conftest import COLUMNS, released, table
from tests.ledger.reservations import asking, cost
from tests.seeded_noise import seed_noise
from tests.wings.governance import boards


@pytest.mark.parametrize("claimed", [-2.0, -0.5, 0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("within", [0.01, 0.1, 0.5, 0.9])
def test_an_outcome_is_what_every_figure_between_the_limits_says(claimed, within):
    ends = np.linspace(-3, 3, 25)
    for low in ends:
        for high in ends[ends >= low]:
            between = np.unique(np.r_[np.linspace(low, high, 2001), np.clip(claimed, low, high)])
            near = np.abs(claimed - between) <= within * np.abs(between)
            expected = "holds" if near.all() else "can't be told" if near.any() else "does not hold"
            found = outcome(claimed, low, high, within)
            # A grid misses the few figures at the very edge of being near; then nothing can be told.
            assert found == expected or (found == "can't be told" and expected == "does not hold"), (
                low,
                high,
            )
    assert outcome(claimed, None, None, within) == "can't be told"


def values(folder: Path, **changes: object) -> dict[str, object]:
    if not (folder / "people.csv").exists():
        table(folder / "people.csv")
    return {
        "release": "people",
        "source": {"path": str(folder / "people.csv")},
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "on_empty": "go"},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
        "columns": COLUMNS,
        "verification": {"epsilon": 2.5, "question": 1},
    } | changes


def plain(mapping: object) -> object:
    return load_yaml(yaml.safe_dump(mapping))


def load_yaml(text: str) -> object:
    from dpsynth.config.document import parse_yaml

    return parse_yaml(text, "test").values


def sub(folder: Path, question: str, **changes: object) -> dict[str, object]:
    written = plain(values(folder, **changes))
    return config_of(from_mapping(written), written, question)


def test_the_release_that_answers_is_of_the_columns_that_are_named_and_of_the_price_of_a_question(tmp_path):
    found = sub(tmp_path, "mean(age) by sex, city", constraints=["age < 20 implies not smoker"])
    assert {*found["columns"]} == {"age", "sex", "city"} and found["release"] == "people-questions"
    assert found["structure"]["cliques"] == [["sex", "city", "age"]] and "constraints" not in found
    assert found["publish"]["statistics"] == [{"mean": "age", "by": ["sex", "city"]}]
    spec = from_mapping(found)
    assert spec.privacy.epsilon == 1 and spec.privacy.exam == 0 and spec.verification is None
    alone = sub(tmp_path, "median(age)")
    assert alone["structure"] == "independent" and [*alone["columns"]] == ["age"]


@pytest.mark.parametrize(
    ("question", "edges"),
    [
        ("share(smoker) by sex where age >= 40", [0, 40, 89]),
        ("share(age < 20) by sex where age >= 10", [0, 10, 20, 89]),
        ("count where age >= 30 and age < 60", [0, 30, 60, 89]),
    ],
)
def test_a_condition_is_counted_in_the_cells_that_it_tells_apart(tmp_path, question, edges):
    found = sub(tmp_path, question)
    assert found["columns"]["age"]["bins"] == edges
    (age,) = (c for c in compiled(from_mapping(found)).columns if c.name == "age")
    assert isinstance(age.codec, NumericCodec) and age.size == len(edges) - 1


@pytest.mark.parametrize("question", ["mean(age) where age >= 40", "count by age where sex == 'F'"])
def test_a_column_whose_values_count_keeps_its_bins(tmp_path, question):
    assert sub(tmp_path, question)["columns"]["age"] == plain(COLUMNS["age"])


def test_the_order_of_a_persons_rows_is_not_asked_about_and_linked_tables_have_no_questions(tmp_path):
    unit = {"column": "id", "max_rows": 3, "history": {"order_by": "age"}}
    columns = {**COLUMNS, "id": {"type": "identifier", "surrogates": True}}
    found = sub(
        tmp_path, "count by sex", privacy={"epsilon": 3, "delta": 1e-6, "unit": unit}, columns=columns
    )
    assert from_mapping(found).privacy.protected.max_rows == 3 and "history" not in found["privacy"]["unit"]
    child = {"source": {"path": "b.csv"}, "parent": {"table": "a", "key": "k", "max_children": 2}}
    root = {"source": {"path": "a.csv"}, "key": "k", "columns": {"sex": COLUMNS["sex"]}}
    tables = {"a": root, "b": {**child, "columns": {"city": COLUMNS["city"]}}}
    linked = values(tmp_path, tables=tables, ledger={"dataset": "two"})
    linked = plain({key: value for key, value in linked.items() if key not in ("source", "columns")})
    with pytest.raises(ConfigError, match="Questions about linked tables aren't answered"):
        config_of(from_mapping(linked), linked, "count")


def test_questions_that_can_not_be_answered_are_refused_before_anything_is_charged(tmp_path):
    with pytest.raises(ConfigError, match="no section verification"):
        sub(tmp_path, "count", verification=None)
    with pytest.raises(QuestionRefused, match="did you mean 'age'"):
        sub(tmp_path, "mean(agee)")
    with pytest.raises(ConfigError, match=r"must be at most verification\.epsilon"):
        from_mapping(plain(values(tmp_path, verification={"epsilon": 0.5, "question": 1})))
    assert not (tmp_path / "ledger.db").exists()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """A bundle of which all that is asked here has figures: about one in thirty leaves a mean undefined."""
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, 1)
        return Path(released(tmp_path_factory.mktemp("made")).folder)


def asked(bundle: Path, folder: Path, text: str, name: str = "q.json") -> Path:
    path = folder / name
    commands.question(bundle, text, "20%", path)
    return path


def configured(folder: Path, **changes: object) -> Path:
    path = folder / "people.yaml"
    path.write_text(yaml.safe_dump(values(folder, **changes), allow_unicode=True), encoding="utf-8")
    return path


def test_a_question_goes_to_the_owner_and_comes_back_answered_charged_and_signed(bundle, tmp_path, capsys):
    key = make_key(tmp_path / "key.pem").public
    path, config = asked(bundle, tmp_path, "share(smoker) by sex where age >= 20"), configured(tmp_path)
    before = json.loads(path.read_text())
    assert [one["group"] for one in before["claims"]] == [{"sex": "F"}, {"sex": "M"}]
    out = tmp_path / "a.json"
    commands.answer(config, path, out=out, key=tmp_path / "key.pem", outputs=tmp_path / "outputs")
    told, _ = read(out, Verified)
    (made,) = (tmp_path / "outputs/people-questions").glob("2*")
    # The outcome rests on the limits of the release that was made for it, and on nothing else.
    again = answered(open_bundle(made), before["question"])
    assert [(one.low, one.high) for one in told.told] == [
        (row.estimate.low, row.estimate.high) for row in again.rows
    ]
    assert [one.figure for one in told.told] == [one["figure"] for one in before["claims"]]
    assert all(one.low is not None and one.low < 0.3 < one.high + 0.2 for one in told.told)
    (entry,) = Ledger(f"sqlite:///{tmp_path}/ledger.db").read().balances()[0].releases
    assert (entry.release, entry.release_id, entry.state) == ("people-questions", told.answered_by, "closed")
    assert 0.9 < told.epsilon <= 1 and told.unit == "one row"
    capsys.readouterr()
    commands.check_answer(out, key)
    assert f"Signed by {key}." in capsys.readouterr().out
    with pytest.raises(DpsynthError, match="It is not signed by ed25519:0"):
        commands.check_answer(out, f"ed25519:{'0' * 64}")


def test_the_standing_budget_refuses_and_a_resumed_answer_is_not_another(bundle, tmp_path):
    config, path = configured(tmp_path), asked(bundle, tmp_path, "count by sex")
    for number in range(2):
        commands.answer(config, path, out=tmp_path / f"a{number}.json", outputs=tmp_path / "outputs")
    with pytest.raises(BudgetRefused, match=r"allows all releases .* given ε = 2, and"):
        commands.answer(config, path, out=tmp_path / "a2.json", outputs=tmp_path / "outputs")
    assert not (tmp_path / "a2.json").exists()
    last = read(tmp_path / "a1.json", Verified)[0]
    commands.answer(
        config, path, out=tmp_path / "a2.json", resume=last.answered_by, outputs=tmp_path / "outputs"
    )
    assert read(tmp_path / "a2.json", Verified)[0] == last
    assert len(Ledger(f"sqlite:///{tmp_path}/ledger.db").read().balances()[0].releases) == 2


def test_an_answer_that_another_came_before_is_refused_and_leaves_nothing(bundle, tmp_path, monkeypatch):
    """The other reserves after this one has looked, and before it has reserved."""
    config = configured(tmp_path, verification={"epsilon": 1.5, "question": 1})
    path = asked(bundle, tmp_path, "count by sex")
    accept, began = beginning.accept_source, []

    def overtaken(*arguments: object) -> None:
        accept(*arguments)
        if not began:
            began.append(True)
            commands.answer(config, path, out=tmp_path / "b.json", outputs=tmp_path / "outputs")

    monkeypatch.setattr(beginning, "accept_source", overtaken)
    with pytest.raises(BudgetRefused, match="The standing budget for questions is spent"):
        commands.answer(config, path, out=tmp_path / "a.json", outputs=tmp_path / "outputs")
    assert read(tmp_path / "b.json", Verified)[0].told and not (tmp_path / "a.json").exists()
    (entry,) = Ledger(f"sqlite:///{tmp_path}/ledger.db").read().balances()[0].releases
    assert [p.name for p in (tmp_path / "outputs/people-questions").glob("*2*")] == [entry.release_id]


def test_the_standing_budget_is_a_sum_of_prices_and_one_that_cost_nothing_gives_its_own_back(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    ledger.reserve(asking("r1", "0.3", allowance=Fraction(1, 2)))
    with pytest.raises(BudgetRefused, match=r"given ε = 0\.3, and this one asks for ε = 0\.25"):
        ledger.reserve(asking("r2", "0.25", allowance=Fraction(1, 2)))
    ledger.reserve(asking("other", "0.25", release="another", allowance=Fraction(1, 2)))
    ledger.reserve(asking("r2", "0.2", allowance=Fraction(1, 2)))
    ledger.abandon("r1", cost("0"), [])
    ledger.reserve(asking("r3", "0.3", allowance=Fraction(1, 2)))


def test_several_questions_about_one_period_are_answered_and_the_same_one_is_shown_again(tmp_path, capsys):
    table(tmp_path / "rows.csv")
    head, *rows = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    dated = [f"{head},visited", *(f"{row},2026-0{1 + i % 2}-15" for i, row in enumerate(rows))]
    (tmp_path / "people.csv").write_text("\n".join(dated) + "\n", encoding="utf-8")
    period = {"column": "visited", "every": "month"}
    config = configured(tmp_path, period=period)
    spec = load(config)
    run(spec, Request(tmp_path / "outputs", period="2026-02"))
    (folder,) = (tmp_path / "outputs/people").glob("2*")
    first, second = asked(folder, tmp_path, "count by sex"), asked(folder, tmp_path, "mean(age)", "r.json")
    told = []
    for number, path in enumerate((first, second, first)):
        out = tmp_path / f"a{number}.json"
        commands.answer(config, path, out=out, period="2026-02", outputs=tmp_path / "outputs")
        told.append(read(out, Verified)[0])
    assert told[0] == told[2] and told[0].answered_by != told[1].answered_by
    third = asked(folder, tmp_path, "count by smoker", "s.json")
    with pytest.raises(BudgetRefused, match="The standing budget for questions is spent"):
        commands.answer(
            config, third, out=tmp_path / "b.json", period="2026-02", outputs=tmp_path / "outputs"
        )
    releases = Ledger(f"sqlite:///{tmp_path}/ledger.db").read().balances()[0].releases
    assert [r.release for r in releases] == ["people", "people-questions", "people-questions"]


def test_the_config_that_would_answer_is_that_of_the_release_that_does(bundle, tmp_path):
    config, path = configured(tmp_path), asked(bundle, tmp_path, "mean(`=pay ü`) by city")
    written = tmp_path / "answers.yaml"
    commands.answer(config, path, config_only=written)
    text = json.loads(path.read_text())["question"]
    written_out = load_yaml(config.read_text(encoding="utf-8"))
    by_hand = from_mapping(config_of(load(config), written_out, text))
    assert compiled(load(written)).whole_fingerprint == compiled(by_hand).whole_fingerprint
    assert not (tmp_path / "ledger.db").exists()


def test_an_answer_that_does_not_follow_from_itself_is_not_good(bundle, tmp_path):
    config, path = configured(tmp_path), asked(bundle, tmp_path, "count by sex")
    out, key = tmp_path / "a.json", make_key(tmp_path / "key.pem")
    commands.answer(config, path, out=out, key=tmp_path / "key.pem", outputs=tmp_path / "outputs")
    good = json.loads(out.read_text())

    def forged(change) -> str:
        bad = json.loads(json.dumps(good))
        change(bad)
        changed = tmp_path / "forged.json"
        changed.write_text(json.dumps(bad))
        with pytest.raises(DpsynthError) as refusal:
            commands.check_answer(changed)
        return str(refusal.value)

    def other_word(bad) -> None:
        bad["told"][0]["outcome"] = next(
            word for word in ("holds", "does not hold") if word != bad["told"][0]["outcome"]
        )

    def other_figure(bad) -> None:
        bad["told"][0]["figure"] = 1.0

    def other_question(bad) -> None:
        bad["question"]["within"] = 0.9

    assert "its own limits say something else" in forged(other_word)
    assert "other figures than were asked about" in forged(other_figure)
    assert "about another question" in forged(other_question)
    out.write_text(out.read_text() + " ")
    with pytest.raises(DpsynthError, match="is not the signature of"):
        commands.check_answer(out, key.public)


@pytest.mark.parametrize(
    "content", ["", "{}", "[1]", '{"format": "dpsynth question 1"}', "\x00\xff", '{"format": NaN}']
)
def test_a_file_that_is_no_question_is_refused_in_one_sentence(tmp_path, content):
    path, config = tmp_path / "q.json", configured(tmp_path)
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"q.json is no question that dpsynth question has written\."):
        commands.answer(config, path, out=tmp_path / "a.json")
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("share", ["0", "0%", "100%", "1", "-5%", "five", "nan"])
def test_a_share_that_is_none_is_refused(bundle, tmp_path, share):
    with pytest.raises(ConfigError, match="--within must be a share above 0 and below 100 %"):
        commands.question(bundle, "count", share, tmp_path / "q.json")


def test_a_claim_about_a_group_that_there_is_not_can_not_be_told(bundle, tmp_path):
    config, path = configured(tmp_path), asked(bundle, tmp_path, "count by sex")
    paper, _ = read(path, Question)
    made_up = paper.model_copy(update={"claims": [Claim(group={"sex": "X"}, figure=3.0), *paper.claims]})
    path.write_text(made_up.text)
    commands.answer(config, path, out=tmp_path / "a.json", outputs=tmp_path / "outputs")
    told = read(tmp_path / "a.json", Verified)[0]
    assert (told.told[0].outcome, told.told[0].low) == ("can't be told", None) and not told.faults()


def test_under_a_policy_an_answer_needs_the_approval_of_the_config_that_answers(bundle, tmp_path):
    url = f"sqlite:///{tmp_path}/ledger.db"
    ledger = boards.governed(url)
    config, path = configured(tmp_path), asked(bundle, tmp_path, "count by sex")
    with pytest.raises(NotApproved):
        commands.answer(config, path, out=tmp_path / "a.json", outputs=tmp_path / "outputs")
    written = tmp_path / "answers.yaml"
    commands.answer(config, path, config_only=written)
    wanted = reservation_for(load(written), boards.now(), None)
    request = ask(ledger, wanted, boards.ONCE, boards.key("anna"), "a question", boards.now())
    assert boards.approved(ledger, request, "boris", "clara") == 0
    commands.answer(config, path, out=tmp_path / "a.json", outputs=tmp_path / "outputs")
    assert not read(tmp_path / "a.json", Verified)[0].faults()
    with pytest.raises(NotApproved):
        commands.answer(config, path, out=tmp_path / "b.json", outputs=tmp_path / "outputs")
