"""Allocations: the priors over cluster assignments."""

from ._base import Allocation, Array, GlobalStep, Solution
from .concentration import GammaConcentration, check_belief
from .markov import Duration, FiniteMarkovChain, HDPMarkovChain
from .mixture import DirichletProcess, FiniteDirichlet, MixturePrior, normalised
from .pitman_yor import PitmanYor
from .seating import Seating
from .topics import HierarchicalDirichletProcess, LatentDirichlet
from .truncated import TruncatedDirichletProcess

REGISTRY: dict[str, type] = {  # what model files may name: allocations, and values of their fields
    "DirichletProcess": DirichletProcess,
    "Duration": Duration,
    "FiniteDirichlet": FiniteDirichlet,
    "FiniteMarkovChain": FiniteMarkovChain,
    "GammaConcentration": GammaConcentration,
    "HDPMarkovChain": HDPMarkovChain,
    "HierarchicalDirichletProcess": HierarchicalDirichletProcess,
    "LatentDirichlet": LatentDirichlet,
    "PitmanYor": PitmanYor,
    "TruncatedDirichletProcess": TruncatedDirichletProcess,
}

__all__ = [
    "REGISTRY",
    "Allocation",
    "Array",
    "DirichletProcess",
    "Duration",
    "FiniteDirichlet",
    "FiniteMarkovChain",
    "GammaConcentration",
    "GlobalStep",
    "HDPMarkovChain",
    "HierarchicalDirichletProcess",
    "LatentDirichlet",
    "MixturePrior",
    "PitmanYor",
    "Seating",
    "Solution",
    "TruncatedDirichletProcess",
    "check_belief",
    "normalised",
]
