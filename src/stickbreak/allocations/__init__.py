"""Allocations: the priors over cluster assignments."""

from ._base import Allocation, GlobalStep, Solution
from .concentration import GammaConcentration
from .markov import Duration, FiniteMarkovChain, HDPMarkovChain
from .mixture import DirichletProcess, FiniteDirichlet
from .pitman_yor import PitmanYor
from .topics import HierarchicalDirichletProcess, LatentDirichlet
from .truncated import TruncatedDirichletProcess

__all__ = [
    "Allocation",
    "DirichletProcess",
    "Duration",
    "FiniteDirichlet",
    "FiniteMarkovChain",
    "GammaConcentration",
    "GlobalStep",
    "HDPMarkovChain",
    "HierarchicalDirichletProcess",
    "LatentDirichlet",
    "PitmanYor",
    "Solution",
    "TruncatedDirichletProcess",
]
