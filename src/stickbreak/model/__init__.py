"""One model and its state: likelihood and allocation, additive summaries, the memo, and the local step."""

from .local import local_step, restricted_step
from .memo import Memo
from .model import Clusters, Model, Parameters
from .summary import Summary

__all__ = ["Clusters", "Memo", "Model", "Parameters", "Summary", "local_step", "restricted_step"]
