"""One model and its state: likelihood, allocation and kind of data, additive summaries, the memo, and the local steps."""

from .bags import BAGS
from .documents import DocumentSummary
from .groups import GROUPS
from .kind import Batch, Drawn, Kind, Recipe
from .local import Responsibilities, local_step, restricted_step
from .memo import Memo
from .model import Clusters, Model
from .parameters import Parameters
from .rows import ROWS
from .sampled import refined
from .sequences import SEQUENCES, SequenceSummary
from .summary import Summary

__all__ = [
    "BAGS",
    "GROUPS",
    "ROWS",
    "SEQUENCES",
    "Batch",
    "Clusters",
    "DocumentSummary",
    "Drawn",
    "Kind",
    "Memo",
    "Model",
    "Parameters",
    "Recipe",
    "Responsibilities",
    "SequenceSummary",
    "Summary",
    "local_step",
    "refined",
    "restricted_step",
]
