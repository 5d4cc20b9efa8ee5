"""Birth: one cluster becomes several, found by a fresh fit to a sample of its rows (Thesis 4.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..model import Model, Summary
from ..model.local import features_step
from .proposal import Proposal

Array = NDArray[np.floating]

CHILDREN = (2, 3, 4, 5, 6, 8, 10)
ITERATIONS = 15
SETTLED = 1e-3  # a fit stops when no child's share of the rows changes by more than this
SMALLEST_SHARE = 0.01  # children with a smaller share of the rows are dropped


@dataclass(frozen=True)
class Target:
    """A cluster to split: its column, its summary of one cluster, and a sample of its rows.

    weights : (n,) sample weight times responsibility of each row, so that the fit climbs the very bound the move changes
    """

    cluster: int
    summary: Summary
    X: Array
    weights: Array
    children: int
    seed: int


def propose_birth(model: Model, target: Target) -> Proposal | None:
    """Fit ``target.children`` clusters to the sample; None if fewer than two survive or nothing is to be gained.

    The sample stands for the whole cluster: its summaries are scaled by N_k / (weight of the sample), and the estimated
    gain is the difference of bounds of the scaled children and the scaled parent.
    """
    rng = np.random.default_rng(target.seed)
    n, dtype = len(target.X), target.X.dtype
    scale = float(target.summary.N[0] / target.weights.sum())
    T = model.likelihood.features(target.X, out=np.empty((n, model.likelihood.n_statistics), dtype))
    labels = seed_labels(model, target.X, target.weights, target.summary, target.children, rng)
    children = hard_summary(T, target.weights, labels) * scale
    for _ in range(ITERATIONS):
        before = children.N
        children = _step(model, children, T, target.weights) * scale
        small = children.N < SMALLEST_SHARE * children.N.sum()
        settled = np.abs(children.N - before).max() < SETTLED * children.N.sum()
        if small.any():
            children = children.take(np.flatnonzero(~small))
        elif settled:
            break
        if children.K < 2:
            return None
    children = children.take(model.allocation.order(children.N))
    parent = hard_summary(T, target.weights, np.zeros(n, dtype=np.intp)) * scale
    gain = float(model.log_marginal(children).sum() + children.H.sum() - model.log_marginal(parent).sum())
    if gain <= 0.0:
        return None
    return Proposal("birth", (target.cluster,), model.parameters(children, dtype), gain)


def seed_labels(model: Model, X: Array, weights: Array, summary: Summary, J: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Distance-biased seeding (Bregman k-means++, Thesis Alg. 2.2), each row labelled with its nearest of J seeds."""
    first = int(rng.choice(len(X), p=weights / weights.sum()))
    nearest = np.full(len(X), np.inf)
    labels = np.zeros(len(X), dtype=np.intp)
    seed = first
    for j in range(J):
        distance = model.likelihood.divergence(X, X[seed : seed + 1], summary.N, summary.S)[:, 0]
        closer = distance < nearest
        labels[closer], nearest[closer] = j, distance[closer]
        chance = weights * nearest
        if not chance.sum() > 0.0:
            break
        seed = int(rng.choice(len(X), p=chance / chance.sum()))
    return labels


def hard_summary(T: Array, weights: Array, labels: NDArray[np.intp]) -> Summary:
    """The summary of rows with features T (n, F) each assigned wholly to the cluster of its label."""
    J = int(labels.max()) + 1
    R = np.zeros((len(T), J), dtype=T.dtype)
    R[np.arange(len(T)), labels] = weights
    return Summary(R.sum(axis=0, dtype=np.float64), (R.T @ T).astype(np.float64), np.zeros(J), np.zeros(()))


def _step(model: Model, children: Summary, T: Array, weights: Array) -> Summary:
    parameters = model.parameters(children, T.dtype)
    summary = Summary.zeros(*parameters.W.shape)
    features_step(model, parameters, T, weights, np.ones(len(T)), summary)
    return summary
