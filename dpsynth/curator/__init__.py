"""The private wing: raw rows and exact counts are here only, behind one door."""

from dpsynth.curator.cell_texts import Batch, as_texts
from dpsynth.curator.coded_columns import Room
from dpsynth.curator.dask_clusters import Certificates, local_workers, workers_at
from dpsynth.curator.dask_workers import missing_extra
from dpsynth.curator.database_table import DatabaseTable
from dpsynth.curator.door import Curator, UnboundedCurator
from dpsynth.curator.engine import UnboundedEngine
from dpsynth.curator.journal import Entry, Journal, Lost
from dpsynth.curator.loading import load_rows, load_table
from dpsynth.curator.memory_table import MemoryTable, texts_of_objects
from dpsynth.curator.partitioned import Coding, PartitionedRows, Piece
from dpsynth.curator.pieces import WholeQuery, pieces_of_file
from dpsynth.curator.source import check_source, names_of, read_batches, read_cells
from dpsynth.curator.terms import Terms
from dpsynth.curator.unit_sample import UnitSample

__all__ = [
    "Batch",
    "Certificates",
    "Coding",
    "Curator",
    "DatabaseTable",
    "Entry",
    "Journal",
    "Lost",
    "MemoryTable",
    "PartitionedRows",
    "Piece",
    "Room",
    "Terms",
    "UnboundedCurator",
    "UnboundedEngine",
    "UnitSample",
    "WholeQuery",
    "as_texts",
    "check_source",
    "load_rows",
    "load_table",
    "local_workers",
    "missing_extra",
    "names_of",
    "pieces_of_file",
    "read_batches",
    "read_cells",
    "texts_of_objects",
    "workers_at",
]
