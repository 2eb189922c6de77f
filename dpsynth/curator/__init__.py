"""The private wing: the only place of raw rows and exact counts, behind one door."""

from dpsynth.curator.door import Curator
from dpsynth.curator.journal import Entry, Journal, Lost
from dpsynth.curator.source import check_source, header_of, read_batches
from dpsynth.curator.table import load_rows, load_table
from dpsynth.curator.terms import Terms
from dpsynth.curator.unbounded_door import Contributions

__all__ = [
    "Contributions",
    "Curator",
    "Entry",
    "Journal",
    "Lost",
    "Terms",
    "check_source",
    "header_of",
    "load_rows",
    "load_table",
    "read_batches",
]
