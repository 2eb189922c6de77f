"""The ledger on the command line: accounts as text, and changes of them.

Invariant: these commands never open a private table. Each change (of a cap, or the end of a release)
goes into the ledger's chain with its reason. No name or reason can steer the terminal, whatever it holds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpsynth.cli.printing import json_text
from dpsynth.errors import ConfigError, DpsynthError
from dpsynth.wing import Point

if TYPE_CHECKING:
    from rich.console import Console

    from dpsynth.config import Spec
    from dpsynth.ledger.balance import Balance, Runway, Ticks
    from dpsynth.ledger.ledger import Ledger
    from dpsynth.ledger.views import Accountants, AccountView
    from dpsynth.pipeline.release_run import Ending

app = typer.Typer(no_args_is_help=True, help="What was spent on each dataset, and what is left.")

PAGE: Point[Callable[[Sequence[AccountView], Ledger, date], str]] = Point("page of the ledger", "owner")
"""One page of HTML for some accounts of a ledger, as of a day."""

ACCOUNTANTS: Point[Accountants] = Point("accountants of releases")

POLICY: Point[Callable[[Ledger, Path | None, Path | None, str], None]] = Point(
    "policy on the command line", "governance"
)
"""Shows the policy of a ledger, or puts that of a file in force."""

Dataset = Annotated[str | None, typer.Argument(help="Only this one; left out: the config's, or all.")]
One = Annotated[str, typer.Argument(help="The dataset's name in the ledger.")]
Url = Annotated[
    str | None, typer.Option(help="The ledger's database; left out: the config's, or sqlite:///ledger.db.")
]
Head = Annotated[
    Path | None, typer.Option(help="The file that remembers the ledger's last row; left out: the config's.")
]
Config = Annotated[Path | None, typer.Option(help="A release's YAML file, whose ledger and dataset it is.")]
Reason = Annotated[str, typer.Option(help="Why, for those who read the ledger later.")]


@dataclass(frozen=True)
class _Place:
    url: str
    head: str | Path | None
    named: str | None
    spec: Spec | None

    def dataset(self, book: Ledger) -> str | None:
        """The dataset that is meant: the one named, else that of the config's table; None without both."""
        if self.named is not None or self.spec is None:
            return self.named
        from dpsynth.pipeline.reservation import table_of

        return book.read().dataset_of(table_of(self.spec))

    def open(self) -> Ledger:
        from dpsynth.ledger.ledger import Ledger

        return Ledger(self.url, self.head)


def _place(ledger: str | None, head: Path | None, config: Path | None, dataset: str | None = None) -> _Place:
    spec = None
    if config is not None:
        from dpsynth.config import load

        spec = load(config)
    return _Place(*address_of(spec, ledger, head), dataset, spec)


def address_of(spec: Spec | None, url: str | None, head: Path | None) -> tuple[str, str | Path | None]:
    """The database and the head file that were given, or else those of a config."""
    section = None if spec is None else spec.ledger
    return (
        url or (section.url if section else "sqlite:///ledger.db"),
        head or (section.head if section else None),
    )


@app.command()
def show(
    dataset: Dataset = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Show ε and δ of each release, and of all by each accountant.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """Show what was spent on each dataset, and how long its cap lasts; of a dataset named, each release."""
    found = _views(_place(ledger, head, config, dataset))
    if as_json:
        from dpsynth.ledger.views import facts

        print(json_text([facts(view) for view in found]))
        return
    out = console()
    for number, view in enumerate(found):
        if number:
            out.print()
        if detail or dataset is not None:
            print_account(out, view, detail=detail)
        else:
            print_summary(out, view)
    if not detail and out.is_terminal:
        out.print("\nMore with dpsynth ledger show DATASET, or --detail.", style="dim")


@app.command()
def verify(ledger: Url = None, head: Head = None, config: Config = None) -> None:
    """Check every row of the ledger against its hash, and the last against the head file."""
    place = _place(ledger, head, config)
    book = place.open()
    found = book.verify()
    for problem in found.problems:
        print(problem)
    if found.problems:
        raise typer.Exit(1)
    if not found.rows:
        raise _nothing(book)
    print(f"{found.rows:,} rows, intact, head {found.hash}")
    if place.head is None:
        print(
            "Keep a head file (dpsynth ledger head --head PATH), or compare the hash with one noted down "
            "elsewhere. Without either, nobody can see if the ledger was put back from an older copy, or "
            "written anew as a whole."
        )


@app.command()
def export(
    out: Annotated[Path | None, typer.Option(help="File to write; left out: standard output.")] = None,
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """Write every row as a line of JSON, so that anyone can recompute the chain."""
    book = _place(ledger, head, config).open()
    rows = book.rows()
    if not rows:
        raise _nothing(book)
    lines = "".join(json.dumps(row.to_json()) + "\n" for row in rows)
    if out is None:
        sys.stdout.write(lines)
    else:
        _write(out, lines)
        print(f"{len(rows):,} rows in {out}")


@app.command()
def cap(  # noqa: PLR0913 (one parameter for each option of the command)
    dataset: One,
    reason: Reason,
    epsilon: Annotated[str | None, typer.Option(help="The new cap; left out: as it is.")] = None,
    delta: Annotated[str | None, typer.Option(help="The new cap; left out: as it is.")] = None,
    approximate_share: Annotated[
        str | None,
        typer.Option(help="The share of delta that is kept for finding values; left out: as it is."),
    ] = None,
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """Change a dataset's cap; recorded with the reason."""
    book = _place(ledger, head, config).open()
    before = _balance(book, dataset)
    if epsilon is None and delta is None and approximate_share is None:
        raise ConfigError("What the cap shall be is missing: give --epsilon, --delta or --approximate-share.")
    wanted = replace(
        before.cap,
        epsilon=before.cap.epsilon if epsilon is None else _figure(epsilon, "--epsilon", None),
        delta=before.cap.delta if delta is None else _figure(delta, "--delta", 1),
    )
    share = None if approximate_share is None else _figure(approximate_share, "--approximate-share", 1)
    after = book.change_cap(dataset, wanted, _said(reason), share)
    old, new = (account.caps[-1].shown() for account in (before, after))
    print(f"The cap of dataset '{dataset}' was {old} and is {new}.")
    road = _road(before)
    print(f"{_releases_left(after)}, and {0 if road is None else road.fits:,} before.")
    if after.share_used > 1:
        print("It is below what is counted already: every further release is refused.")
    elif not wanted.within(before.cap):
        print("A config with a lower ledger.cap holds its own releases to that: change it there too.")


@app.command()
def unit(
    config: Annotated[Path, typer.Option(help="A release's YAML file, whose unit is the one from now on.")],
    most_rows: Annotated[
        str, typer.Option(help="Most rows of one person in any release so far, or unknown if nobody knows.")
    ],
    reason: Reason,
    dataset: Dataset = None,
    ledger: Url = None,
    head: Head = None,
) -> None:
    """Go on with persons in an account that protected rows; recorded with the reason."""
    from dpsynth.ledger.views import unit_change_in_words

    place = _place(ledger, head, config, dataset)
    assert place.spec is not None
    if most_rows != "unknown" and not (most_rows.isascii() and most_rows.isdigit() and len(most_rows) < 9):
        raise ConfigError("--most-rows must be a whole number, or unknown.")
    book = place.open()
    name = place.dataset(book)
    assert name is not None
    most = None if most_rows == "unknown" else int(most_rows)
    after = book.change_unit(name, place.spec.protected, most, _said(reason))
    print(f"Dataset '{name}' protects {after.unit}, from now on.")
    for sentence in unit_change_in_words(after):
        print(sentence)
    if after.share_used > 1:
        print("That is more than the cap: every further release is refused, unless the cap is raised.")


@app.command()
def abandon(  # noqa: PLR0913 (one parameter for each option of the command)
    release_id: Annotated[str, typer.Argument(help="The release to give up.")],
    reason: Reason,
    journal: Annotated[Path | None, typer.Option(help="Its journal.jsonl, if it was moved.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for bundles, where its journal is.")] = Path("outputs"),
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """End a release that will not be finished, charged with its journal, or in full if that is no bound."""
    place = _place(ledger, head, config)
    why = _said(reason)
    from dpsynth.pipeline.release_run import Ending

    ending = Ending.of(
        place.url, place.head, release_id, lambda: journal or _journal(place.spec, out, release_id)
    )
    print(ending.sentence)
    if not yes and not _agreed():
        print("Nothing was changed.")
        raise typer.Exit(1)
    _enter(ending, why)


def abandon_of(config: Path, out: Path, release_id: str) -> None:
    """End an unfinished release of a config, charged as ``Ending`` says: ``dpsynth run --abandon``.

    Raises:
        ConfigError: the release has no journal in the folder, or isn't unfinished.
    """
    place = _place(None, None, config)

    def found() -> Path:
        path = _journal(place.spec, out, release_id)
        if path is None:
            raise ConfigError(
                f"There is no journal of release {release_id} under {out}, so nobody knows what it asked. "
                "Name the folder in which it ran with --out. If it is lost, the release can be charged all "
                f'that it reserved: dpsynth ledger abandon {release_id} --config CONFIG --reason "..."'
            )
        return path

    from dpsynth.pipeline.release_run import Ending

    ending = Ending.of(place.url, place.head, release_id, found)
    print(ending.sentence)
    _enter(ending, "given up with dpsynth run --abandon")


def _enter(ending: Ending, why: str) -> None:
    ending.enter(why)
    left = _releases_left(_balance(ending.book, ending.entry.dataset))
    print(f"Release {ending.entry.release_id} is abandoned. {left}.")


@app.command()
def policy(
    file: Annotated[
        Path | None,
        typer.Option(
            "--set", help="The YAML file of a policy to put in force; left out: the policy is shown."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(help="With --set: the file of your key; left out: that of DPSYNTH_KEY.")
    ] = None,
    purpose: Annotated[str, typer.Option(help="With --set: why, for those who approve it.")] = "",
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """Show who may ask for, approve, run and withdraw releases, and what was asked; or set it."""
    POLICY.needed("dpsynth ledger policy")(_place(ledger, head, config).open(), file, key, purpose)


@app.command(name="head")
def begin_head(ledger: Url = None, head: Head = None, config: Config = None) -> None:
    """Start a head file, which names the ledger's last row and so reveals a restored older copy."""
    place = _place(ledger, head, config)
    if place.head is None:
        raise ConfigError(
            "Where the head file shall be is missing: give --head, or ledger.head in the config."
        )
    book = place.open()
    book.begin_head()
    found = book.verify()
    print(f"{place.head} stands at row {found.rows:,}, {found.hash}. Name it in each config as ledger.head.")


@app.command()
def report(
    dataset: Dataset = None,
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("ledger.html"),
    ledger: Url = None,
    head: Head = None,
    config: Config = None,
) -> None:
    """Write one page for the data owner: budgets over time, what each release cost, how long caps last."""
    place = _place(ledger, head, config, dataset)
    page = PAGE.needed("dpsynth ledger report")
    _write(out, page(_views(place), place.open(), datetime.now(UTC).date()))
    print("For the data owner; it is no part of a public bundle.")
    print(out)


def _views(place: _Place) -> list[AccountView]:
    from dpsynth.ledger.views import account_view

    book = place.open()
    accounts = book.balances()
    if not accounts:
        raise _nothing(book)
    chosen = place.dataset(book)
    if chosen is not None:
        accounts = (_balance(book, chosen),)
    today, of_config = datetime.now(UTC).date(), replace(place, named=None).dataset(book)
    filled = ACCOUNTANTS.filled()
    return [
        account_view(
            account, today, _ticks(place.spec, account) if account.dataset == of_config else None, filled
        )
        for account in accounts
    ]


def _ticks(spec: Spec | None, account: Balance) -> Ticks | None:
    """Dates of a config's next releases; None without a config, or without schedule and period."""
    if spec is None:
        return None
    from dpsynth.pipeline.reservation import next_releases

    now = datetime.now(UTC)
    released = {r.occasion for r in account.releases if r.release == spec.release and r.state != "abandoned"}
    labels = [occasion for occasion in released if occasion is not None]
    if not next_releases(spec, now, 1, labels):
        return None
    return lambda count: [moment.date() for moment in next_releases(spec, now, count, labels)]


def _balance(book: Ledger, dataset: str) -> Balance:
    account = book.balance(dataset)
    if account is None:
        datasets = ", ".join(f"'{a.dataset}'" for a in book.balances()) or "none"
        raise ConfigError(f"The ledger has no dataset '{dataset}'; it has {datasets}.")
    return account


def _nothing(book: Ledger) -> ConfigError:
    return ConfigError(
        f"There is nothing in the ledger {book.name}: no release was ever reserved in it. If there "
        "should be, name the right one with --ledger or --config; SQLite paths are relative to the "
        "working directory."
    )


def _road(account: Balance) -> Runway | None:
    from dpsynth.ledger.balance import runway

    return runway(account, datetime.now(UTC).date())


def _releases_left(account: Balance) -> str:
    if (road := _road(account)) is None:
        return "No release counts for anything yet"
    return f"Of releases like the last one ({road.like.reserved.amount.shown()}) {road.fits:,} more fit"


def _figure(text: str, option: str, below: int | None) -> Fraction:
    try:
        figure = Decimal(text)
    except InvalidOperation:
        figure = Decimal("NaN")
    if not figure.is_finite() or (figure and not 1e-50 <= figure <= (below or 1e9)) or figure == below:
        limit, usual = ("at most 1e9", "20") if below is None else (f"below {below}", "1e-5")
        raise ConfigError(f"{option} must be a number, at least 0 and {limit}, such as {usual}.")
    return Fraction(figure)


def _said(reason: str) -> str:
    said = " ".join(reason.split())
    if not said or not said.isprintable():
        raise ConfigError("--reason must say why, in plain words: it stays in the ledger.")
    return said


def _journal(spec: Spec | None, out: Path, release_id: str) -> Path | None:
    if spec is None:
        return None
    from dpsynth.pipeline.release_run import unfinished_journal

    return unfinished_journal([out / spec.release], release_id, f"dpsynth run CONFIG --resume {release_id}")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise ConfigError(
            "There is no terminal to ask on, so nothing was changed. Give --yes if that is meant."
        )
    try:
        return typer.confirm("Abandon it?", default=False)
    except typer.Abort:
        return False


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DpsynthError(f"{path} can't be written: {error.strerror}.") from error


_BAR = 40

_PIPED_WIDTH = 240

_WIDE = 110

_SIDES = {"id": "l", "release": "w", "period": "w", "state": "l", "ε alone": "r", "δ": "r", "share": "r",
          "so far": "r", "reserved": "l", "ended": "l"}  # fmt: skip
"""The columns of a list of releases, each with its side: see ``_print_table``."""

_COLUMNS = ("id", "period", "state", "share", "reserved")

_NARROW = ("id", "period", "state", "ε alone", "share", "so far", "reserved")


def console() -> Console:
    """The console of accounts: text without markup, in lines that no pipe breaks."""
    from rich.console import Console

    shown = Console(highlight=False, markup=False, emoji=False)
    if not shown.is_terminal:
        shown.width = _PIPED_WIDTH
        shown.soft_wrap = True
    return shown


def printable(text: str) -> str:
    r"""A text on one line, without characters that a terminal would obey.

    >>> printable("a\x1b[31m\nb")
    'a?[31m b'
    """
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def print_summary(out: Console, view: AccountView) -> None:
    """Print the share of a dataset's cap that is used, what still fits, and what has not ended."""
    from dpsynth.ledger import views

    account, number = view.account, len(view.lines)
    out.print(
        f"{printable(account.dataset)}: {views.share_in_words(account.share_used)} of the cap is used, "
        f"by {number:,} release{'s' * (number != 1)} since {account.opened}."
    )
    out.print(_bar(account.share_used))
    out.print(" ".join(views.runway_in_words(view)))
    out.print(f"Protected: {printable(account.unit)}.")
    for sentence in views.unit_change_in_words(account):
        out.print(printable(sentence))
    open_ones = view.unfinished
    if open_ones:
        names, one = ", ".join(entry.release_id for entry in open_ones[:5]), len(open_ones) == 1
        some = f" and {len(open_ones) - 5:,} more" if len(open_ones) > 5 else ""
        which = open_ones[0].release_id if one else "ID"
        out.print(
            f"Not ended, and counted in full: {names}{some}. Unless it is running, finish "
            f"{'it' if one else 'each'} with dpsynth run CONFIG --resume {which}, or give it up with dpsynth "
            f"run CONFIG --abandon {which}."
        )


def print_account(out: Console, view: AccountView, *, detail: bool = False) -> None:
    """Print a dataset's account with all of its releases."""
    from dpsynth.ledger import views

    account = view.account
    print_summary(out, view)
    if account.changed is not None:
        out.print(f"Reason of the change: {printable(account.changed.reason)}")
    for sentence in (*views.sources_in_words(account), *views.audiences_in_words(account)):
        out.print(printable(sentence))
    for change in account.caps[1:]:
        out.print(f"Cap since {change.created}: {change.shown()} ({printable(change.reason)})")
    out.print()
    if detail:
        out.print(printable(views.cap_in_words(account)))
        out.print(printable(views.guarantee_in_words(view)))
        _print_table(out, _statements(view), "lrrw")
        out.print()
    names = _COLUMNS if not detail else _NARROW if out.width < _WIDE else tuple(_SIDES)
    _print_table(out, _releases(view, names), "".join(_SIDES[name] for name in names))


def _bar(share: float) -> str:
    filled = min(_BAR, int(_BAR * min(share, 1.0) + 0.999))
    return "█" * filled + "░" * (_BAR - filled)


def _statements(view: AccountView) -> list[tuple[str, ...]]:
    from dpsynth.ledger import views

    rows: list[tuple[str, ...]] = [("accountant", "ε", "δ", "")]
    for found in view.statements:
        name = f"{found.name}{' (least)' if found is view.least else ''}"
        rows.append((name, views.epsilon_of(found), views.delta_of(found), found.why))
    return rows


def _releases(view: AccountView, names: Sequence[str]) -> list[tuple[str, ...]]:
    from dpsynth.ledger import views

    rows = [tuple(names)]
    for line in view.lines:
        entry = line.entry
        amount = entry.cost.amount
        cells = {
            "id": entry.release_id,
            "release": entry.release,
            "period": entry.occasion or "",
            "state": entry.state,
            "ε alone": views.figure(amount.epsilon),
            "δ": line.delta,
            "share": views.share_in_words(line.share),
            "so far": views.share_in_words(line.so_far),
            "reserved": f"{entry.created}",
            "ended": f"{entry.ended or ''}",
        }
        rows.append(tuple(cells[name] for name in names))
    return rows


def _print_table(out: Console, rows: Sequence[Sequence[str]], sides: str) -> None:
    """Print a head and lines below it; "l", "r": to the left or right; "w": to the left, may be broken."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, side in zip(rows[0], sides, strict=True):
        table.add_column(
            name, justify="right" if side == "r" else "left", no_wrap=side != "w", overflow="fold"
        )
    for row in rows[1:]:
        table.add_row(*(printable(cell) for cell in row))
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as text:
        out.print(table)
    for line in text.get().splitlines():
        out.print(line.rstrip())
