"""One model and its state: likelihood and allocation, additive summaries, the memo, and the local step."""

from typing import Any

from .documents import DocumentSummary, DocumentUnit
from .local import Drawn, Responsibilities, RowUnit, local_step, refined, restricted_step
from .memo import Memo
from .model import Clusters, Model, Parameters
from .sequences import SequenceSummary, SequenceUnit
from .summary import Summary

UNITS: dict[str, Any] = {"rows": RowUnit(), "documents": DocumentUnit(), "sequences": SequenceUnit()}

__all__ = [
    "Clusters",
    "DocumentSummary",
    "Drawn",
    "Memo",
    "Model",
    "Parameters",
    "Responsibilities",
    "SequenceSummary",
    "Summary",
    "local_step",
    "refined",
    "restricted_step",
]
