"""Birth: one cluster becomes several, found by a fresh fit to a sample of its rows (Thesis 4.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels.assign import merged_entropies
from ..likelihoods._base import Rows
from ..model import Model, Summary
from ..model.local import Responsibilities, Sampled, refined
from ..model.seeding import hard_summary, nearest_seeds
from .agglomeration import ancestry, levels, merges, with_groups
from .proposal import Proposal

Array = NDArray[np.floating]

CHILDREN = (2, 3, 4, 5, 6, 8, 10)
FEWEST, MOST, WORK = 15, 60, 1 << 23  # steps of a fit: as many as look at so many numbers of features, within limits
SETTLED = 1e-3  # a fit stops when no child's share of the rows changes by more than this
SMALLEST_SHARE = 0.01  # children with a smaller share of the rows are dropped


@dataclass(frozen=True)
class Target:
    """A cluster to split: its column, its summary of one cluster, and a sample of its rows, or of its parts of documents.

    weights : (n,) sample weight times responsibility of each row, scaled to the mass of the cluster, so that the fit climbs
        the very bound the move changes (of documents, that of a mixture of their parts)
    poor : (n,) the rows that the cluster explains worst, if children are to begin with these; the others are one child
    """

    cluster: int
    summary: Summary
    X: Rows
    weights: Array
    children: int
    seed: int
    poor: NDArray[np.bool_] | None = None


def propose_birth(model: Model, target: Target) -> Proposal:
    """The birth of the children fitted to a target; nothing is to be gained by it unless its estimate is positive."""
    children, gain = fit_children(model, target)
    parameters = model.shared(children, target.X.dtype) if gain > 0.0 else None
    return Proposal("birth", (target.cluster,), parameters, gain)


def fit_children(model: Model, target: Target) -> tuple[Summary, float]:
    """Fit ``target.children`` clusters to the sample; their summary, and the gain of the bound if they replace the target.

    The sample stands for the whole cluster, and the gain is the difference of the bounds of the children and of the parent:
    an estimate where the sample is not the cluster.  Fewer clusters may survive; if only one does, the gain is minus infinity.
    """
    rng, model = np.random.default_rng(target.seed), model.flat
    sample = Sampled.of(model, target.X, target.weights)
    children = hard_summary(sample.T, target.weights, _first_labels(model, target, rng))
    smallest = SMALLEST_SHARE * float(
        target.weights.sum() if target.poor is None else target.weights[target.poor].sum()
    )
    while children.K > 1:
        children, kept = _settled(model, children, sample, smallest)
        found = _merged(model, children, kept, target.weights) if children.K > 2 else children
        if found.K == children.K:
            break
        children = found
    if children.K < 2:
        return children, -np.inf
    children = model.ordered(children)
    parent = refined(model, children.take([0]), sample)[0]
    return children, model.bound(children) - model.bound(parent)


def _first_labels(model: Model, target: Target, rng: np.random.Generator) -> NDArray[np.intp]:
    """The child to which each row belongs at first, (n,)."""
    if target.poor is None:
        return nearest_seeds(model, target.X, target.weights, target.children, rng)
    labels, poor = np.zeros(len(target.weights), np.intp), target.poor
    labels[poor] = 1 + nearest_seeds(model, target.X[poor], target.weights[poor], target.children - 1, rng)
    return labels


def _settled(model: Model, children: Summary, sample: Sampled, smallest: float) -> tuple[Summary, Responsibilities]:
    """The children after some local steps on the rows, without those that have fewer rows than ``smallest``."""
    steps = int(np.clip(WORK // (children.S.size * len(sample.weights)), FEWEST, MOST))
    for _ in range(steps):
        before = children.N
        children, kept = refined(model, children, sample)
        settled = np.abs(children.N - before).max() < SETTLED * children.N.sum()
        if children.K > 1 and children.N.min() < smallest:  # one at a time: its rows may make others large enough
            children = children.take(np.delete(np.arange(children.K), children.N.argmin()))
        elif settled:
            break
    return children, kept


def _merged(model: Model, children: Summary, kept: Responsibilities, weights: Array) -> Summary:
    """The children, or as many groups of them, two at least, as have the highest bound."""
    steps = list(merges(model, children, model.log_marginal(children)))
    H, parents = np.zeros(2 * children.K - 1), ancestry(steps, children.K)
    merged_entropies(*kept, weights, parents, H)
    best = max(levels(model, children, steps, H)[:-1], key=lambda level: level.bound)
    return with_groups(children, best.groups)
