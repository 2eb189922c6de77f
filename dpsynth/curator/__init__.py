"""The private wing: raw rows and exact counts are here only, behind one door."""

from dpsynth.curator.cell_texts import Batch, as_texts
from dpsynth.curator.coded_columns import Room
from dpsynth.curator.database_table import DatabaseTable
from dpsynth.curator.door import Curator, UnboundedCurator
from dpsynth.curator.engine import UnboundedEngine
from dpsynth.curator.journal import Entry, Journal, Lost
from dpsynth.curator.loading import load_rows, load_table
from dpsynth.curator.memory_table import MemoryTable, texts_of_objects
from dpsynth.curator.source import check_source, names_of, read_batches, read_cells
from dpsynth.curator.terms import Terms
from dpsynth.curator.unit_sample import UnitSample

__all__ = [
    "Batch",
    "Curator",
    "DatabaseTable",
    "Entry",
    "Journal",
    "Lost",
    "MemoryTable",
    "Room",
    "Terms",
    "UnboundedCurator",
    "UnboundedEngine",
    "UnitSample",
    "as_texts",
    "check_source",
    "load_rows",
    "load_table",
    "names_of",
    "read_batches",
    "read_cells",
    "texts_of_objects",
]
