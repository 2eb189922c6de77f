"""The account of a private table: found by the table's source, or named by the config.

A table is known by what it is, not by the name of a configuration's file: a copy of a configuration counts in
the account of its table. The ledger has the source of each release, and looks for the account in this order:

1.  by ``ledger.dataset``, if the configuration declares it;
2.  by the source: the account that has releases of it;
3.  by the release's name: the account that has releases of that name, as where the same configuration is run
    on the next file. If the files are about other people, that counts more than is needed, never less;
4.  a new account, named after the file.

A second account for a source is refused, as it would give the same people a second cap. The one exception is
declared, with its reason, and stays on record: the release is about other people (``ledger.other_people``).

A source is the same however it is spelt: links, hard links and URLs of this machine lead to one account
(``same_table``). A copy of a file is another source. The rows of a query have no source at all. Both are
known by nothing but the name that the owner declares.

Invariant: the answer follows from the configuration, the ledger's rows and the files that these name, within
the transaction that reserves, so that two first releases of one source get one account.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from dpsynth.config.files.place import same_table
from dpsynth.errors import ConfigError

if TYPE_CHECKING:
    from dpsynth.ledger.balance import Balance

_UNCHARGED = "Nothing was read and nothing was charged."
_COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")


@dataclass(frozen=True)
class Table:
    """A private table, as a configuration presents it to the ledger.

    Attributes:
        dataset: the declared name of its account; "" where none is.
        source: its resolved path or address; "" for a table in memory.
        release: the name of the release.
        other_people: the reason why it may have an account beside that of its source; "" where none is given.
    """

    dataset: str
    source: str
    release: str
    other_people: str = ""


def dataset_of(table: Table, accounts: Sequence[Balance], ledger: str) -> str:
    """The name of a table's account, recorded or new.

    Args:
        table: the table.
        accounts: all accounts of the ledger.
        ledger: its name, for messages.

    Raises:
        ConfigError: the table has an account of another name, or it can't be told which account it has.
    """
    of_source = [
        a.dataset for a in accounts if table.source and any(same_table(table.source, s) for s in a.sources)
    ]
    if not table.dataset:
        return _found(table, of_source, accounts, ledger)
    if of_source and table.dataset not in of_source and not table.other_people:
        raise ConfigError(
            f"{table.source} has an account in the ledger {ledger}, {_listed(of_source)}, and this "
            f"configuration names '{table.dataset}', which would give the same people a second cap. "
            f"Write ledger.dataset: {of_source[0]}, or leave it out. Only if nobody in this release is in "
            f"the releases of that dataset, say why with ledger.other_people, for the record. {_UNCHARGED}"
        )
    return table.dataset


def _found(table: Table, of_source: Sequence[str], accounts: Sequence[Balance], ledger: str) -> str:
    """The account of a table whose configuration names none."""
    if not table.source:
        raise ConfigError(
            "ledger.dataset is missing: a table in memory has no path by which the ledger could know it. "
            "Give it a name, the same in all releases of the same people."
        )
    of_release = [a.dataset for a in accounts if any(r.release == table.release for r in a.releases)]
    for found in (of_source, of_release):
        if len(found) == 1:
            return found[0]
        if found:
            what = table.source if found is of_source else f"Release '{table.release}'"
            raise ConfigError(
                f"{what} has several accounts in the ledger {ledger}: {_listed(found)}. Name the one that "
                f"this release counts in with ledger.dataset. {_UNCHARGED}"
            )
    name = name_of(table.source)
    taken = next((a for a in accounts if a.dataset == name), None)
    unlocated = [a.dataset for a in accounts if a.predates_sources]
    if taken is not None or unlocated:
        known = (
            f"has a dataset '{name}' of {', '.join(sorted(taken.sources)) or 'a table that is not recorded'}"
            if taken is not None
            else f"has datasets from a time when it did not record their sources: {_listed(unlocated)}"
        )
        raise ConfigError(
            f"The ledger {ledger} does not know {table.source}, and {known}. If the same people are in "
            "it, as where a table was moved or renamed, write its name as ledger.dataset; if this table is "
            f"about other people, give it a name of its own there. {_UNCHARGED}"
        )
    return name


def name_of(source: str) -> str:
    """The name of a new account, from the name of a file.

    >>> name_of("/srv/data/Visits of 2026.csv.gz")
    'Visits-of-2026'
    """
    path = PurePath(source)
    stem = PurePath(path.stem).stem if path.suffix.lower() in _COMPRESSED else path.stem
    return re.sub(r"[^\w.-]+", "-", stem).strip("-.")[:100] or "table"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
