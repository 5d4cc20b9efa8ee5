"""Birth: one cluster becomes several, found by a fresh fit to a sample of its rows (Thesis 4.2)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..kernels.assign import merged_entropies
from ..likelihoods.features import Rows
from ..likelihoods.responsibilities import Responsibilities
from ..model import Model, Summary
from ..model.sampled import Sampled, refined
from ..model.seeding import hard_summary, nearest_seeds
from .agglomeration import ancestry, levels_of, merges, row_nodes, with_groups
from .proposal import Proposal

Array = NDArray[np.floating]

CHILDREN = (2, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_number.py and benchmarks/mnist_search.py.

    Attributes
    ----------
    fewest, most, work : steps of a fit: as many as look at so much ``work``, numbers of features, within limits
    rough : the fewest steps before children are merged for the first time
    settled : a fit stops when no child's share of the rows changes by more than this
    most_thorough, thorough : steps of a thorough fit: at most, or as many as look at so many numbers of the features of one
        row
    little : nats: a thorough fit stops when a step gains less
    smallest_share : children with a smaller share of the rows are dropped
    """

    fewest: int = 15
    most: int = 60
    work: int = 1 << 23
    rough: int = 4
    settled: float = 1e-3
    most_thorough: int = 300
    thorough: int = 1 << 13
    little: float = 0.01
    smallest_share: float = 0.01


TUNING = Tuning()


class Start(NamedTuple):
    """How children begin.

    children : how many, among all rows of the sample
    odd : or all but one of them among so many of its first rows; the other rows are one child
    """

    children: int
    odd: int | None = None


@dataclass(frozen=True)
class Target:
    """A cluster to split: its column, its summary of one cluster, and a sample of its rows, or of its parts of documents.

    weights : (n,) sample weight times responsibility of each row, scaled to the mass of the cluster, so that the fit climbs
        the very bound the move changes (of documents, that of a mixture of their parts)
    starts : with which children to begin; of several the one that promises most is followed
    least : a fit ends where it is not going to gain so much
    thorough : whether to fit until children settle, also where they overlap and steps gain little
    """

    cluster: int
    summary: Summary
    X: Rows
    weights: Array
    starts: tuple[Start, ...]
    seed: int
    least: float = 0.0
    thorough: bool = False


def propose_birth(model: Model, target: Target) -> Proposal:
    """The birth of the children fitted to a target; nothing is to be gained by it unless its estimate is positive."""
    children, gain = fit_children(model, target)
    parameters = model.shared(children, target.X.dtype) if gain > 0.0 else None
    return Proposal("birth", (target.cluster,), parameters, gain)


def fit_children(model: Model, target: Target) -> tuple[Summary, float]:
    """Fit children to the sample; their summary, and the gain of the bound if they replace the target.

    The sample stands for the whole cluster, and the gain is the difference of the bounds of the children and of the parent:
    an estimate where the sample is not the cluster.  Fewer clusters may survive; if only one does, the gain is minus infinity.
    """
    rng = np.random.default_rng(target.seed)
    model = model.flat
    sample = Sampled.of(model, target.X, target.weights)
    whole = _whole(model, target, sample)
    parent = model.bound(whole)
    first = _First.of(model, target, sample)
    begun = [_begun(model, target, start, first, sample, rng) for start in target.starts]
    children, smallest = max(begun, key=lambda fit: _value(model, fit[0])) if len(begun) > 1 else begun[0]
    while children.K > 1:
        if target.thorough:
            steps = int(np.clip(TUNING.thorough // children.S.size, TUNING.fewest, TUNING.most_thorough))
        else:
            steps = _steps(children, sample, TUNING.fewest)
        hope = parent + target.least
        children, kept = _settled(model, children, sample, smallest, steps, hope, thorough=target.thorough)
        found = _merged(model, children, kept, target.weights)
        if found.K == children.K:
            break
        children = found
    if children.K < 2:
        return children, -np.inf
    model.likelihood.carry(target.summary.S, whole.S)  # a name goes to one of the children, once these are known
    children = replace(children, S=model.likelihood.inherited(children.N, children.S, target.summary.S[0]))
    return model.ordered(children), _value(model, children) - model.bound(whole)


def one_child(model: Model, target: Target) -> Summary:
    """The rows of a target as one cluster."""
    model = model.flat
    return _whole(model, target, Sampled.of(model, target.X, target.weights))


class _First(NamedTuple):
    """The rows on which children begin: those that some of them begin among, or all; the others wait in the largest child."""

    rows: Sampled
    others: Summary | None

    @classmethod
    def of(cls, model: Model, target: Target, sample: Sampled) -> Self:
        """Those of a target and its sample."""
        n = len(sample.weights)
        odd = max(n if start.odd is None else start.odd for start in target.starts)
        if odd == n:
            return cls(sample, None)
        return cls(sample.part(slice(0, odd)), _whole(model, target, sample.part(slice(odd, n))))


def _whole(model: Model, target: Target, sample: Sampled) -> Summary:
    """The rows of a sample as one cluster, with the latent variables that the target gives them, if any."""
    if model.likelihood.hidden is not None:
        return refined(model, target.summary, sample)[0]
    return hard_summary(sample.T, sample.weights, np.zeros(len(sample.weights), np.intp))


def _begun(
    model: Model, target: Target, start: Start, first: "_First", sample: Sampled, rng: np.random.Generator
) -> tuple[Summary, float]:
    """Children after merges that pay, and the number of rows below which one of them is dropped.

    Many steps cost much where rows have many statistics.  There children are merged after few, but at most to half as many.
    """
    odd = slice(0, len(sample.weights) if start.odd is None else start.odd)
    smallest = TUNING.smallest_share * float(target.weights[odd].sum())
    T = _first_features(model, target, sample)
    children = hard_summary(T, target.weights, _first_labels(model, target, start, rng))
    while children.K > 1:
        steps = _steps(children, first.rows, TUNING.rough)
        children, kept = _settled(model, children, first.rows, smallest, steps, others=first.others)
        found = _merged(model, children, kept, first.rows.weights, max(2, (children.K + 1) // 2))
        if found.K == children.K:
            break
        children = found
    return children, smallest


def _first_features(model: Model, target: Target, sample: Sampled) -> Any:
    """Features of the rows; missing cells that are latent are as the target has them."""
    cells = model.likelihood.cells
    if cells is None:
        return sample.T
    W = model.likelihood.weights(target.summary.N, target.summary.S)[0]
    return cells.filled(sample.T, W, np.zeros(len(sample.T), np.intp))


def _steps(children: Summary, sample: Sampled, fewest: int) -> int:
    """How many steps to take, at least so many."""
    return int(np.clip(TUNING.work // (children.S.size * len(sample.weights)), fewest, TUNING.most))


def _value(model: Model, children: Summary) -> float:
    """The bound with these clusters; nothing is worth less than one."""
    return model.bound(model.ordered(children)) if children.K > 1 else -np.inf


def _first_labels(model: Model, target: Target, start: Start, rng: np.random.Generator) -> NDArray[np.intp]:
    """The child to which each row belongs at first, (n,)."""
    X = target.X
    weights = target.weights
    if start.odd is None:
        return nearest_seeds(model, X, weights, start.children, rng)
    labels = np.zeros(len(weights), np.intp)
    n = start.odd
    labels[:n] = 1 + nearest_seeds(model, X[:n], weights[:n], start.children - 1, rng)
    return labels


def _settled(
    model: Model,
    children: Summary,
    sample: Sampled,
    smallest: float,
    steps: int,
    hope: float = -np.inf,
    others: Summary | None = None,
    thorough: bool = False,
) -> tuple[Summary, Responsibilities]:
    """The children after some local steps on the rows, without those that have fewer rows than ``smallest``.

    hope : steps end where two children, at the pace of the last step, are not going to reach this bound
    others : of rows that stay in the largest child
    thorough : two children have settled when a step gains little, even if it moves no rows: shares stand still where they turn
    """
    value = -np.inf
    for left in reversed(range(steps)):
        before = children.N
        children, kept = refined(model, children, sample)
        if others is not None:
            children.N[before.argmax()] += others.N[0]
            children.S[before.argmax()] += others.S[0]
        settled = np.abs(children.N - before).max() < TUNING.settled * children.N.sum() and not (
            thorough and children.K == 2
        )
        if children.K > 1 and children.N.min() < smallest:  # one at a time: its rows may make others large enough
            children = children.take(np.delete(np.arange(children.K), children.N.argmin()))
        elif settled:
            break
        if children.K == 2 and (thorough or hope > -np.inf):
            last = value
            value = _value(model, children)
            if value + left * (value - last) < hope or (thorough and value - last < TUNING.little):
                break
    return children, kept


def _merged(model: Model, children: Summary, kept: Responsibilities, weights: Array, fewest: int = 2) -> Summary:
    """The children, or as many groups of them, ``fewest`` at least, as have the highest bound."""
    if fewest >= children.K:
        return children
    steps = list(merges(model.posterior(children)))
    H = np.zeros(2 * children.K - 1)
    parents = ancestry(steps, children.K)
    merged_entropies(*kept, weights, parents, H)
    nodes = row_nodes(children.N, parents, H, children.base)
    found = levels_of(model, children, steps[: children.K - fewest], nodes)
    return with_groups(children, max(found, key=lambda level: level.bound).groups)
