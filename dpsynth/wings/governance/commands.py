"""``dpsynth request``, ``approve``, ``withdraw``, and ``dpsynth ledger policy``.

Invariant: no command opens a private table. What is printed is in the ledger, or goes into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.ledger_commands import Head, Url, address_of
from dpsynth.cli.printing import write_page
from dpsynth.errors import ConfigError, spelt_out

if TYPE_CHECKING:
    from dpsynth.bundle.signature import SigningKey
    from dpsynth.config import Spec
    from dpsynth.ledger.balance import Reservation
    from dpsynth.ledger.ledger import Ledger, Reading
    from dpsynth.wings.governance.governed import Governed, Request

Config = Annotated[Path, typer.Argument(help="The release's YAML file.")]
Key = Annotated[
    Path | None, typer.Option(help="The file of your key, as dpsynth keygen makes; left out: DPSYNTH_KEY's.")
]


def request(
    config: Config,
    purpose: Annotated[str, typer.Option(help="What the release is for, for those who approve it.")],
    key: Key = None,
    period: Annotated[
        str | None, typer.Option(help="The only period that it is for, such as 2026-03; left out: any.")
    ] = None,
    occasions: Annotated[
        int | None,
        typer.Option(min=1, help="For how many releases; left out: 1, or with --until any number."),
    ] = None,
    until: Annotated[str | None, typer.Option(help="The last day of its use, such as 2027-06-30.")] = None,
    source: Annotated[str | None, typer.Option(help="A table to use in place of the config's.")] = None,
) -> None:
    """Ask for approval of a release; the last line printed is the name of the request."""
    from dpsynth.config import load
    from dpsynth.ledger.ledger import Ledger
    from dpsynth.wings.governance.asking import Uses, ask, governed_by, reservation_for

    now, last = datetime.now(UTC), _day(until)
    spec = load(config, source=source)
    uses = Uses(period, occasions if occasions is not None or last is not None else 1, last)
    wanted = reservation_for(spec, now, period)
    ledger = Ledger(spec.ledger.url, spec.ledger.head)
    made = ask(ledger, wanted, uses, _key(key), purpose, now)
    for sentence in _request_in_words(made):
        print(sentence)
    found = governed_by(ledger.read())
    print(
        f"Approvals lacking: {found.lacking(made):,}. Each approver: dpsynth approve {made.id} "
        f"--config {config} --key FILE"
    )
    print(made.id)


def approve(
    request_id: Annotated[str, typer.Argument(metavar="REQUEST", help="The name of the request.")],
    key: Key = None,
    config: Annotated[
        Path | None,
        typer.Option(help="The release's YAML file: whose ledger it is, and what the request must be for."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="A table to use in place of the config's.")] = None,
    take_back: Annotated[
        bool,
        typer.Option("--revoke", help="Take your approval back, for good, for all that isn't released yet."),
    ] = False,
    ledger: Url = None,
    head: Head = None,
) -> None:
    """Approve a request, and sign it with your key; or take that back."""
    from dpsynth.config import load
    from dpsynth.wings.governance.asking import approve as approved
    from dpsynth.wings.governance.asking import governed_by, reservation_for, revoke

    spec = None if config is None else load(config, source=source)

    def seen(found: Request, policy: Governed, page: Reading) -> None:
        del policy
        for sentence in _request_in_words(found):
            print(sentence)
        if spec is None or found.policy is not None:
            return
        _check_same(found, page.named(reservation_for(spec, datetime.now(UTC), None)), config)

    if take_back:
        book = _ledger(spec, ledger, head)
        taken = revoke(book, request_id, _key(key))
        lacking = governed_by(book.read()).lacking(taken)
        print(f"Your approval is taken back. Approvals lacking: {lacking:,}.")
        return
    made, lacking = approved(_ledger(spec, ledger, head), request_id, _key(key), seen)
    print(f"Approved by {made.approved_by[-1]}. Approvals lacking: {lacking:,}.")
    if not lacking and made.policy is not None:
        print("Put the policy in force with the command by which it was asked for.")


def choose(
    configs: Annotated[list[Path], typer.Argument(metavar="CONFIG...", help="Two configurations or more.")],
    out: Annotated[Path, typer.Option(help="A new file for the one that is chosen.")],
    on: Annotated[
        str | None,
        typer.Option(help="A CSV file that stands in for the private table; left out: a made-up table."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often each is run.")] = 3,
) -> None:
    """Choose among configurations by running each on a stand-in for the private table, for nothing."""
    from dpsynth.api.releasing import note
    from dpsynth.wings.governance.choosing import choose as chosen

    if out.exists():
        raise ConfigError(f"{out} exists already. Give a new name with --out.")
    found = chosen(configs, on, runs=runs, tell=note)
    text = found.written()
    print(found.in_words)
    write_page(out, text.encode())


def review(
    target: Annotated[
        str,
        typer.Argument(metavar="REQUEST|BUNDLE", help="The name of a request, or the folder of a release."),
    ],
    config: Annotated[
        Path | None,
        typer.Option(help="The release's YAML file: of a request its own, of a bundle that of its ledger."),
    ] = None,
    source: Annotated[str | None, typer.Option(help="A table to use in place of the config's.")] = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("review.html"),
    attacks: Annotated[
        bool,
        typer.Option("--attacks", help="Attack a rehearsal on made-up rows, or a table drawn of the bundle."),
    ] = False,
    ledger: Url = None,
    head: Head = None,
) -> None:
    """Write one page for those who decide on a release, to read or to print; no table is opened."""
    from dpsynth.bundle.manifest import MANIFEST, Manifest
    from dpsynth.bundle.recipient.opened import no_bundle
    from dpsynth.config import load
    from dpsynth.wings.governance import reviewing
    from dpsynth.wings.governance.asking import governed_by, reservation_for

    spec = None if config is None else load(config, source=source)
    page = None if config is None and ledger is None else _ledger(spec, ledger, head).read()
    folder = next((f for f in (Path(target, "public"), Path(target)) if (f / MANIFEST).is_file()), None)
    if folder is not None:
        made = reviewing.review_of_bundle(folder, Manifest.read(folder), page)
    elif Path(target).is_dir():
        raise no_bundle(Path(target))
    elif spec is None or page is None:
        raise ConfigError(
            f"{target} is no folder with a bundle. For the review of a request, name its configuration: "
            f"dpsynth review {target} --config CONFIG"
        )
    else:
        found = governed_by(page).requests.get(target)
        if found is None or found.policy is not None:
            raise ConfigError(f"The ledger {page.name} has no request {target} for a release.")
        _check_same(found, page.named(reservation_for(spec, datetime.now(UTC), None)), config)
        made = reviewing.review_of_request(found, spec, page)
    if attacks and (on := folder or config) is not None:
        made = replace(made, attacks=reviewing.ATTACKS.needed("--attacks")(on))
    write_page(out, reviewing.review_html(made).encode())


def _check_same(found: Request, wanted: Reservation, config: Path | None) -> None:
    from dpsynth.ledger.contents import of_reservation
    from dpsynth.wings.governance.governed import terms_of

    if changed := found.differs(terms_of(of_reservation(wanted, governed=True), wanted.dataset)):
        raise ConfigError(
            f"Request {found.id} is not for {config} as it is now: what differs is {changed}. Nothing was "
            "done."
        )


def withdraw(  # noqa: PLR0913 (options of a command)
    release: Annotated[str, typer.Argument(help="The id of the release, such as 20261123-483d962e.")],
    reason: Annotated[str, typer.Option(help="Why, for those who have the bundle.")],
    replaced_by: Annotated[
        str | None, typer.Option(help="The id of the release to use in its place.")
    ] = None,
    erratum: Annotated[
        bool, typer.Option("--erratum", help="It has an error, and may be used further.")
    ] = False,
    key: Key = None,
    out: Annotated[Path, typer.Option(help="Folder for bundles.")] = Path("outputs"),
    config: Annotated[Path | None, typer.Option(help="The release's YAML file, whose ledger it is.")] = None,
    ledger: Url = None,
    head: Head = None,
) -> None:
    """Withdraw a release, or make an error known; the last line printed is the file of its notices."""
    from dpsynth.config import load
    from dpsynth.wings.governance.withdrawing import withdraw as withdrawn

    spec = None if config is None else load(config)
    kind = "erratum" if erratum else "withdrawn"
    signing = _key(key, None if spec is None else spec.publish.sign)
    book = _ledger(spec, ledger, head)
    path = withdrawn(book, release, kind, reason, replaced_by, signing, out)
    what = "has an erratum" if erratum else "is withdrawn"
    print(f"Release {release} {what}. Its privacy stays spent, and counts under the cap as before.")
    print("Put this file where the bundle is published, beside it, and tell those who have it:")
    print(path)


def publish(release: Annotated[Path, typer.Argument(help="The folder of a release under embargo.")]) -> None:
    """Open a sealed release once its embargo has ended; the last line printed is its folder."""
    from dpsynth.wings.governance.sealing import publish as opened

    done = opened(release)
    print("Published." if done else "It is published already; nothing was changed.")
    print(release)


def policy(book: Ledger, file: Path | None, key: Path | None, purpose: str) -> None:
    """Show the policy of a ledger and its requests, or set it."""
    from dpsynth.config.document import checked, read_yaml
    from dpsynth.wings.governance.asking import governed_by, set_policy
    from dpsynth.wings.governance.policy import DOES, Policy

    if file is not None:
        document = read_yaml(file)
        for role in DOES:
            if document.values.get(role) == []:
                raise ConfigError(f"{file}: {role} lists nobody. List public keys, or leave {role} out.")
        wanted = checked(Policy, document.values, document)
        made = set_policy(book, wanted, _key(key), purpose, datetime.now(UTC))
        if made is not None:
            for sentence in _request_in_words(made):
                print(sentence)
            print(
                "The present policy stays in force until it is approved: dpsynth approve "
                f"{made.id} --key FILE. Then give this command once more."
            )
            print(made.id)
            return
    page = book.read()
    found = governed_by(page)
    if found.policy is None:
        print(f"The ledger {book.name} has no policy: whoever can write to it may release.")
        return
    for sentence in found.policy.in_words():
        print(sentence)
    for made in found.requests.values():
        print(
            f"{made.id} ({made.created}): {_state(made, found, page)}. "
            f"{spelt_out(str(made.content['purpose']))}"
        )
    refused = sum(row.kind == "refused" for row in page.rows)
    print(f"Attempts that were refused: {refused:,}.")


def _state(made: Request, found: Governed, page: Reading) -> str:
    if made.done:
        return "in force" if made.policy == found.policy else "was in force"
    if lacking := found.lacking(made):
        return f"approvals lacking: {lacking:,}"
    if made.policy is not None:
        return "approved"
    of = "" if made.most is None else f" of {made.most:,}"
    return f"approved, used {made.used(page.release):,}{of} times"


def _request_in_words(made: Request) -> Iterator[str]:
    content, asked = made.content, made.policy
    yield f"Request {made.id}, by {made.by} on {made.created}: {spelt_out(str(content['purpose']))}"
    if asked is not None:
        yield "It asks for this policy:"
        yield from asked.in_words()
        return
    from dpsynth.wings.governance.asking import Uses

    terms = made.terms
    cost = terms["cost"]
    assert isinstance(cost, dict)
    about = f"of {spelt_out(str(terms['source']))}" if terms["source"] else "of a table without a path"
    yield (
        f"It asks for {Uses(_text(content['occasion']), made.most, made.until).in_words()}: "
        f"'{spelt_out(str(terms['release']))}' {about}, counted in the account "
        f"'{spelt_out(str(terms['dataset']))}'."
    )
    yield (
        f"Price of each: ε = {_decimal(cost['epsilon'])}, δ = {_decimal(cost['delta'])} for "
        f"{spelt_out(str(terms['unit']))} ({spelt_out(str(terms['neighbours']))})."
    )
    yield f"Digests: configuration {terms['config']}, plan {terms['plan']}, request {made.digest}."


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _decimal(figure: object) -> str:
    from fractions import Fraction

    from dpsynth.accounting.amount import digits

    return digits(Fraction(str(figure)), up=True)


def _ledger(spec: Spec | None, url: str | None, head: Path | None) -> Ledger:
    from dpsynth.ledger.ledger import Ledger

    return Ledger(*address_of(spec, url, head))


def _key(given: Path | None, otherwise: str | None = None) -> SigningKey:
    from dpsynth.wings.governance.signed import given_key

    return given_key(given or (None if otherwise is None else Path(otherwise)))


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--until must be a day, such as 2027-06-30, and is {text!r}.") from None
