"""Allocations: the priors over cluster assignments."""

from ._base import Allocation, Responsibilities
from .mixture import DirichletProcess, FiniteDirichlet

__all__ = ["Allocation", "DirichletProcess", "FiniteDirichlet", "Responsibilities"]
