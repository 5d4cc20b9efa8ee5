"""One model and its state: likelihood and allocation, additive summaries, the memo, and the local step."""

from typing import Any

from .documents import DocumentSummary, DocumentUnit
from .local import Drawn, Responsibilities, RowUnit, local_step, refined, restricted_step
from .memo import Memo
from .model import Clusters, Model, Parameters
from .summary import Summary

UNITS: dict[str, Any] = {"rows": RowUnit(), "documents": DocumentUnit()}

__all__ = [
    "Clusters",
    "DocumentSummary",
    "Drawn",
    "Memo",
    "Model",
    "Parameters",
    "Responsibilities",
    "Summary",
    "local_step",
    "refined",
    "restricted_step",
]
