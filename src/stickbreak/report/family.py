"""The family of the clusters of a fitted model in words, and how far it is from the others that were tried."""

from typing import Any

from ..likelihoods import Likelihood, Product
from ..plots._clusters import counted


def family(model: Any) -> str:
    """The family of the clusters, with the number of columns of each where there are several."""
    candidates = getattr(model, "selection_", [])
    return str(candidates[0].family) if candidates else _named(model.model_.likelihood)


def lead(model: Any) -> str:
    """How far the bound of the chosen family is from the best of the others; empty if there was no choice."""
    candidates = getattr(model, "selection_", [])
    if not candidates:
        return ""
    chosen, second, *_ = candidates
    ahead = chosen.lower_bound - second.lower_bound
    if ahead >= 0.0:
        distance = f"by {ahead:,.1f} nats before {second.family}"
    else:
        distance = f"{-ahead:,.1f} nats behind {second.family}, which needs {counted(second.n_clusters, 'cluster')}"
    return f"{distance}, of {len(candidates)} tried"


def _named(likelihood: Likelihood) -> str:
    if isinstance(likelihood, Product):
        return ", ".join(f"{_named(part)} ({counted(len(d), 'column')})" for part, d in likelihood.parts.values())
    return type(likelihood).__name__
