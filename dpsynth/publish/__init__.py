"""Post-processing: from answers, a model and a synthetic table to a bundle that is safe to hand over."""

from dpsynth.publish.bundle import MANIFEST, commit, write_public
from dpsynth.publish.csv_safety import neutralise, restore
from dpsynth.publish.provenance import Provenance
from dpsynth.publish.publication import Publication
from dpsynth.publish.statistics import StatisticRequest, StatisticTable, compute_statistics

__all__ = [
    "MANIFEST",
    "Provenance",
    "Publication",
    "StatisticRequest",
    "StatisticTable",
    "commit",
    "compute_statistics",
    "neutralise",
    "restore",
    "write_public",
]
