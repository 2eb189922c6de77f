"""The private wing: the only place of raw rows and exact counts, behind one door."""

from dpsynth.curator.door import Curator
from dpsynth.curator.journal import Entry, Journal, Lost
from dpsynth.curator.source import read_batches
from dpsynth.curator.table import load_table
from dpsynth.curator.terms import Terms

__all__ = ["Curator", "Entry", "Journal", "Lost", "Terms", "load_table", "read_batches"]
