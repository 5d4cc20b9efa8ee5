"""One model and its state: likelihood, allocation and kind of data, additive summaries, the memo, and the local steps."""

from ..likelihoods.responsibilities import Responsibilities
from .answered import AnsweredBagKind, AnsweredSummary
from .bags import BAGS
from .document_summary import DocumentSummary
from .edits import Edit, Exchange, Handover, Rename, Replace, Take
from .groups import GROUPS
from .kind import Batch, Drawn, Kind, NearKind, Owners, Recipe
from .local import local_step, restricted_step
from .memo import Memo
from .model import Model, Posterior
from .parameters import Parameters
from .rows import ROWS, RowKind
from .sampled import refined
from .sequences import SEQUENCES, SequenceSummary
from .summary import Summary

__all__ = [
    "BAGS",
    "GROUPS",
    "ROWS",
    "SEQUENCES",
    "AnsweredBagKind",
    "AnsweredSummary",
    "Batch",
    "DocumentSummary",
    "Drawn",
    "Edit",
    "Exchange",
    "Handover",
    "Kind",
    "Memo",
    "Model",
    "NearKind",
    "Owners",
    "Parameters",
    "Posterior",
    "Recipe",
    "Rename",
    "Replace",
    "Responsibilities",
    "RowKind",
    "SequenceSummary",
    "Summary",
    "Take",
    "local_step",
    "refined",
    "restricted_step",
]
