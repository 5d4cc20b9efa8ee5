"""Birth: one cluster becomes several, found by a fresh fit to a sample of its rows (Thesis 4.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..likelihoods._base import Rows, features
from ..model import Model, Summary
from ..model.seeding import hard_summary, nearest_seeds
from .proposal import Proposal

Array = NDArray[np.floating]

CHILDREN = (2, 3, 4, 5, 6, 8, 10)
ITERATIONS = 15
SETTLED = 1e-3  # a fit stops when no child's share of the rows changes by more than this
SMALLEST_SHARE = 0.01  # children with a smaller share of the rows are dropped


@dataclass(frozen=True)
class Target:
    """A cluster to split: its column, its summary of one cluster, its share of the prior, and a sample of its rows.

    weights : (n,) sample weight times responsibility of each row, so that the fit climbs the very bound the move changes
    """

    cluster: int
    summary: Summary
    prior: float
    X: Rows
    weights: Array
    children: int
    seed: int


def propose_birth(model: Model, target: Target) -> Proposal | None:
    """The birth of the children fitted to a target, or None if nothing is to be gained by it."""
    children, gain = fit_children(model, target)
    if gain <= 0.0:
        return None
    parameters = model.within(target.prior).parameters(children, target.X.dtype)
    return Proposal("birth", (target.cluster,), parameters, gain)


def fit_children(model: Model, target: Target) -> tuple[Summary, float]:
    """Fit ``target.children`` clusters to the sample; their summary, and the gain of the bound if they replace the target.

    The sample stands for the whole cluster: its summaries are scaled by N_k / (weight of the sample), and the gain is the
    difference of the bounds of the scaled children and the scaled parent: an estimate where the sample is not the cluster.
    Fewer clusters may survive; if only one does, the gain is minus infinity.
    """
    rng, model = np.random.default_rng(target.seed), model.within(target.prior)
    scale = float(target.summary.N[0] / target.weights.sum())
    labels = nearest_seeds(model, target.X, target.weights, target.children, rng)
    children = hard_summary(features(model.likelihood, target.X), target.weights, labels) * scale
    for _ in range(ITERATIONS):
        before = children.N
        children = model.unit.refine(model, children, target.X, target.weights) * scale
        settled = np.abs(children.N - before).max() < SETTLED * children.N.sum()
        if children.N.min() < SMALLEST_SHARE * children.N.sum():  # one at a time: its rows may make others large enough
            children = children.take(np.delete(np.arange(children.K), children.N.argmin()))
        elif settled:
            break
        if children.K < 2:
            return children, -np.inf
    children = model.ordered(children)
    parent = model.unit.refine(model, children.take([0]), target.X, target.weights) * scale
    return children, model.bound(children) - model.bound(parent)
