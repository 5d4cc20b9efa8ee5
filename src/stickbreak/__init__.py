"""Clusters, and how many there are, in data too large for the usual tools."""

from . import likelihoods
from .estimators import Mixture
from .storage import load

__version__ = "0.1.0"

__all__ = ["Mixture", "__version__", "likelihoods", "load"]
