"""Moves that add and remove clusters: each hands the mass of some clusters to others and is verified on all the data."""

from .batch_birth import BatchBirth
from .proposal import MoveRecord, Proposal
from .schedule import Schedule

__all__ = ["BatchBirth", "MoveRecord", "Proposal", "Schedule"]
