"""Inference: laps over batches, the search for the number of clusters, stochastic steps, initialisation."""

from .executor import Threads
from .laps import Options
from .search import Search
from .stochastic import Stochastic, StochasticLaps
from .trace import Lap

__all__ = ["Lap", "Options", "Search", "Stochastic", "StochasticLaps", "Threads"]
