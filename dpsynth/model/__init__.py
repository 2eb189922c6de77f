"""The graphical-model engine: pure mathematics on noisy marginals."""

from dpsynth.errors import ModelFileError
from dpsynth.model.denoising import Denoised, denoised_answers, posteriors
from dpsynth.model.estimation import Fit, FitOptions, estimate, noisy_again, refits
from dpsynth.model.expansion import Expansion
from dpsynth.model.junction_tree import JunctionTree, junction_tree, zeros_within
from dpsynth.model.least_squares import LeastSquares
from dpsynth.model.markov_random_field import MarkovRandomField, ZeroProbability
from dpsynth.model.raking import (
    RakedEstimates,
    counts_of_rows,
    of_rows,
    public_counts,
    raked,
    raked_rows,
    row_counts,
)
from dpsynth.model.refined_sample import Bounds, TableCounts, Wanted, refined_rows
from dpsynth.model.refinement import Effort, TableTarget
from dpsynth.model.rounding import permuted
from dpsynth.model.sampling import chunk_draws, sample, sampled_parities
from dpsynth.model.storage import load, save
from dpsynth.model.triangulation import Triangulation

__all__ = [
    "Bounds",
    "Denoised",
    "Effort",
    "Expansion",
    "Fit",
    "FitOptions",
    "JunctionTree",
    "LeastSquares",
    "MarkovRandomField",
    "ModelFileError",
    "RakedEstimates",
    "TableCounts",
    "TableTarget",
    "Triangulation",
    "Wanted",
    "ZeroProbability",
    "chunk_draws",
    "counts_of_rows",
    "denoised_answers",
    "estimate",
    "junction_tree",
    "load",
    "noisy_again",
    "of_rows",
    "permuted",
    "posteriors",
    "public_counts",
    "raked",
    "raked_rows",
    "refined_rows",
    "refits",
    "row_counts",
    "sample",
    "sampled_parities",
    "save",
    "zeros_within",
]
