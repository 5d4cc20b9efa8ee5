"""Likelihoods: one exponential family and its conjugate prior per file."""

from ._base import Likelihood
from .gaussian import Gaussian
from .zero_mean_gaussian import ZeroMeanGaussian

REGISTRY: dict[str, type] = {
    "gaussian": Gaussian,
    "zero_mean_gaussian": ZeroMeanGaussian,
}

__all__ = ["REGISTRY", "Gaussian", "Likelihood", "ZeroMeanGaussian"]
