"""Allocations: the priors over cluster assignments."""

from ._base import Allocation
from .mixture import DirichletProcess, FiniteDirichlet
from .topics import HierarchicalDirichletProcess, LatentDirichlet

__all__ = ["Allocation", "DirichletProcess", "FiniteDirichlet", "HierarchicalDirichletProcess", "LatentDirichlet"]
