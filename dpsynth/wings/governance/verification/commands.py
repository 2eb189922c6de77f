"""``dpsynth question``, ``dpsynth answer`` and ``dpsynth check-answer``.

Invariant: a question is asked of a bundle, and an answer is checked, without a private table; only
``dpsynth answer`` opens one, through a release.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.errors import ConfigError, DpsynthError, spelt_out

if TYPE_CHECKING:
    from dpsynth.columns.section import Value
    from dpsynth.wings.governance.verification.papers import Verified

Config = Annotated[Path, typer.Argument(help="The config of the release that it is about.")]


def question(
    bundle: Annotated[Path, typer.Argument(help="The folder of a bundle.")],
    text: Annotated[str, typer.Argument(help='As for dpsynth query: "mean(cost) by sex where age >= 65".')],
    within: Annotated[str, typer.Option(help="How far off a figure may be, such as 5% of the true one.")],
    out: Annotated[Path, typer.Option(help="A new file for the question.")],
) -> None:
    """Write a question for the owner: is what this bundle says near the private table? It costs nothing."""
    from dpsynth.cli.recipient_commands import opened_bundle
    from dpsynth.wings.governance.verification.papers import ask, write

    asked, found = ask(opened_bundle(bundle), text, _share(within))
    write(out, asked)
    print(found)
    print(f"The question is in {out}. Its figures are those of the bundle; send it to the bundle's owner.")


def answer(  # noqa: PLR0913 (options of a command)
    config: Config,
    asked: Annotated[Path, typer.Argument(metavar="QUESTION", help="The file of the question.")],
    out: Annotated[Path | None, typer.Option(help="A new file for the answer.")] = None,
    key: Annotated[Path | None, typer.Option(help="The key that signs, or DPSYNTH_SIGNING_KEY's.")] = None,
    period: Annotated[str | None, typer.Option(help="The slice of the table, as for dpsynth run.")] = None,
    resume: Annotated[str | None, typer.Option(help="Finish the interrupted release of this id.")] = None,
    outputs: Annotated[Path, typer.Option(help="The folder of bundles.")] = Path("outputs"),
    config_only: Annotated[
        Path | None, typer.Option(help="Only write, to a new file, the config that would answer.")
    ] = None,
) -> None:
    """Answer a recipient's question by a small release, from the budget for questions."""
    from dpsynth.api.releasing import note
    from dpsynth.bundle.recipient import open_bundle
    from dpsynth.bundle.recipient.query import answered
    from dpsynth.bundle.signature import key_in
    from dpsynth.config import compiled, from_mapping, load
    from dpsynth.config.document import read_yaml
    from dpsynth.pipeline.beginning import Request
    from dpsynth.pipeline.inputs import SIGNING_KEY
    from dpsynth.pipeline.spine import run
    from dpsynth.wings.governance.verification.answering import config_of, verification_of
    from dpsynth.wings.governance.verification.papers import Question, read, tell, write
    from dpsynth.wings.governance.verification.regression import coefficients

    paper, _ = read(asked, Question)
    spec = load(config)
    allowed = verification_of(spec)
    plain = config_of(spec, read_yaml(config).values, paper.question)
    if config_only is not None:
        _write_yaml(config_only, plain)
        print(f"The config of the release that answers is in {config_only}. Nothing was asked.")
        return
    if out is None:
        raise ConfigError("--out is missing: name a new file for the answer, such as --out answer.json.")
    if out.exists():
        raise DpsynthError(f"{out} exists already. Give a new name.")
    signer = key_in(key, SIGNING_KEY)
    request = Request(outputs, resume, period, allowance=Fraction(allowed.epsilon))
    made = run(from_mapping(plain, name=str(config)), request, tell=note)
    opened = open_bundle(made.folder)
    guarantee = opened.facts.guarantee
    told = tell(
        paper,
        coefficients(opened, paper.question, compiled(spec).layout) or answered(opened, paper.question),
        (guarantee.epsilon, guarantee.delta, guarantee.unit),
        opened.facts.release_id,
    )
    write(out, told, signer)
    _show(told)
    print(f"The answer is in {out}. It is public, like a bundle; it is charged to the ledger.")


def check_answer(
    path: Annotated[Path, typer.Argument(metavar="ANSWER", help="The file of an answer.")],
    key: Annotated[str | None, typer.Option(help="The owner's public key, ed25519:…")] = None,
) -> None:
    """Check that an answer follows from its own limits, and who signed it; exit code 1 if it is not good."""
    from dpsynth.wings.governance.verification.papers import Verified, read, signed_by

    told, content = read(path, Verified)
    signer = signed_by(path, content)
    faults = told.faults()
    if key is not None and signer != key:
        faults.append(f"It is not signed by {key}.")
    if faults:
        raise DpsynthError(f"{path} is not good. {' '.join(faults)}")
    _show(told)
    print(f"Signed by {signer}." if signer else "There is no signature: anybody may have written it.")


def _show(told: Verified) -> None:
    for one in told.told:
        group = ", ".join(f"{name} = {value}" for name, value in one.group.items()) or "all rows"
        limits = "no limits" if one.low is None or one.high is None else f"{one.low:,.6g} to {one.high:,.6g}"
        print(spelt_out(f"{group}: {one.figure:,.6g} {one.outcome} ({limits})"))
    found = Counter(one.outcome for one in told.told)
    print(
        spelt_out(
            f"{told.question.question}, to within {100 * told.question.within:g} %: "
            f"{', '.join(f'{number:,} {word}' for word, number in found.items())}. A word on one figure is "
            f"false with a probability of at most {100 * told.odds:g} %."
        )
    )
    print(spelt_out(f"ε = {told.epsilon:g}, δ = {told.delta:g} for {told.unit}."))


def _share(written: str) -> float:
    number = written.strip().removesuffix("%")
    try:
        share = float(number) / (100 if number != written.strip() else 1)
    except ValueError:
        share = float("nan")
    if not 0 < share < 1:
        raise ConfigError("--within must be a share above 0 and below 100 %, such as 5% or 0.05.")
    return share


def _write_yaml(path: Path, values: dict[str, Value]) -> None:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Every text in quotes, and numbers in digits alone: PyYAML gives those with an exponent a tag."""

    def plain(to: yaml.SafeDumper, number: Decimal) -> yaml.ScalarNode:
        whole = number == number.to_integral_value()
        text = str(int(number)) if whole else f"{number:f}"
        return to.represent_scalar(f"{tag}:{'int' if whole else 'float'}", text)

    tag = "tag:yaml.org,2002"
    Dumper.add_representer(str, lambda to, text: to.represent_scalar(f"{tag}:str", text, '"'))
    Dumper.add_representer(Decimal, plain)
    Dumper.add_multi_representer(int, lambda to, number: to.represent_int(int(number)))
    try:
        with path.open("x", encoding="utf-8") as file:
            yaml.dump(values, file, Dumper, sort_keys=False, allow_unicode=True, width=100)
    except FileExistsError:
        raise DpsynthError(f"{path} exists already. Give a new name.") from None
    except OSError as error:
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from None
