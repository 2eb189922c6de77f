"""The graphical-model engine: pure mathematics on noisy marginals."""

from dpsynth.model.bootstrap import refits
from dpsynth.model.estimation import Fit, estimate
from dpsynth.model.least_squares import LeastSquares
from dpsynth.model.markov_random_field import MarkovRandomField
from dpsynth.model.sampling import sample

__all__ = ["Fit", "LeastSquares", "MarkovRandomField", "estimate", "refits", "sample"]
