"""Post-processing: from answers, a model and a synthetic table to a bundle that is safe to hand over."""

from dpsynth.bundle.bundle import MANIFEST, commit, write_public
from dpsynth.bundle.publication import Publication
from dpsynth.bundle.row_files import neutralise, restore
from dpsynth.statistics.sources import Sources
from dpsynth.statistics.tables import StatisticTable, compute_statistics

__all__ = [
    "MANIFEST",
    "Publication",
    "Sources",
    "StatisticTable",
    "commit",
    "compute_statistics",
    "neutralise",
    "restore",
    "write_public",
]
