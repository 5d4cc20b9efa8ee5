"""Birth: one cluster becomes several, found by a fresh fit to a sample of its rows (Thesis 4.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..likelihoods._base import Rows, features
from ..model import Model, Summary, refined
from ..model.seeding import hard_summary, nearest_seeds
from .proposal import Proposal

Array = NDArray[np.floating]

CHILDREN = (2, 3, 4, 5, 6, 8, 10)
ITERATIONS = 15
SETTLED = 1e-3  # a fit stops when no child's share of the rows changes by more than this
SMALLEST_SHARE = 0.01  # children with a smaller share of the rows are dropped


@dataclass(frozen=True)
class Target:
    """A cluster to split: its column, its summary of one cluster, and a sample of its rows, or of its parts of documents.

    weights : (n,) sample weight times responsibility of each row, scaled to the mass of the cluster, so that the fit climbs
        the very bound the move changes (of documents, that of a mixture of their parts)
    """

    cluster: int
    summary: Summary
    X: Rows
    weights: Array
    children: int
    seed: int


def propose_birth(model: Model, target: Target) -> Proposal | None:
    """The birth of the children fitted to a target, or None if nothing is to be gained by it."""
    children, gain = fit_children(model, target)
    if gain <= 0.0:
        return None
    return Proposal("birth", (target.cluster,), model.shared(children, target.X.dtype), gain)


def fit_children(model: Model, target: Target) -> tuple[Summary, float]:
    """Fit ``target.children`` clusters to the sample; their summary, and the gain of the bound if they replace the target.

    The sample stands for the whole cluster, and the gain is the difference of the bounds of the children and of the parent:
    an estimate where the sample is not the cluster.  Fewer clusters may survive; if only one does, the gain is minus infinity.
    """
    rng, model = np.random.default_rng(target.seed), model.flat
    labels = nearest_seeds(model, target.X, target.weights, target.children, rng)
    children = hard_summary(features(model.likelihood, target.X), target.weights, labels)
    for _ in range(ITERATIONS):
        before = children.N
        children = refined(model, children, target.X, target.weights)
        settled = np.abs(children.N - before).max() < SETTLED * children.N.sum()
        if children.N.min() < SMALLEST_SHARE * children.N.sum():  # one at a time: its rows may make others large enough
            children = children.take(np.delete(np.arange(children.K), children.N.argmin()))
        elif settled:
            break
        if children.K < 2:
            return children, -np.inf
    children = model.ordered(children)
    parent = refined(model, children.take([0]), target.X, target.weights)
    return children, model.bound(children) - model.bound(parent)
