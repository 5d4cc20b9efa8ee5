"""Moves that add and remove clusters: each hands the mass of some clusters to others and is verified on all the data."""

from .adopted_birth import AdoptedBirth
from .batch_birth import BatchBirth
from .proposal import MoveRecord, Proposal
from .schedule import Schedule

__all__ = ["AdoptedBirth", "BatchBirth", "MoveRecord", "Proposal", "Schedule"]
