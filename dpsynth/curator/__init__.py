"""The private wing: raw rows and exact counts are here only, behind one door."""

from dpsynth.curator.charging import Terms
from dpsynth.curator.door import Curator, UnboundedCurator
from dpsynth.curator.journal import Entry, Journal, Lost
from dpsynth.curator.loaded_rows import load_rows
from dpsynth.curator.rows.cell_texts import Batch, as_texts
from dpsynth.curator.rows.coded_columns import Room
from dpsynth.curator.rows.database_table import DatabaseTable
from dpsynth.curator.rows.files import check_source, names_of, read_batches, read_cells
from dpsynth.curator.rows.memory_table import MemoryTable, MemoryTables, texts_of_objects
from dpsynth.curator.table import UnboundedEngine
from dpsynth.curator.units import UnitSample

__all__ = [
    "Batch",
    "Curator",
    "DatabaseTable",
    "Entry",
    "Journal",
    "Lost",
    "MemoryTable",
    "MemoryTables",
    "Room",
    "Terms",
    "UnboundedCurator",
    "UnboundedEngine",
    "UnitSample",
    "as_texts",
    "check_source",
    "load_rows",
    "names_of",
    "read_batches",
    "read_cells",
    "texts_of_objects",
]
