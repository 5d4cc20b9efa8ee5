"""Splits of the clusters of a stream by the rows that are remembered of it."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..data.distinct import distinct_rows
from ..model import Model, Summary
from ..model.edits import side_by_side
from ..model.local import likeliest
from ..model.sampled import Sampled, refined
from ..moves.better import accepts
from ..moves.birth import Start, Target, fit_children
from ..moves.sample import most_drawn
from .executor import Executor
from .remembered import Remembered


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/streams.py.

    Attributes
    ----------
    pieces : into which a cluster is split, at most
    clusters : whose split is tried in a round of moves
    """

    pieces: int = 3
    clusters: int = 3


TUNING = Tuning()


def split(
    model: Model, total: Summary, memory: Remembered, executor: Executor, rng: np.random.Generator
) -> tuple[Summary, Remembered, list[float]]:
    """The summary after splits of some clusters, each in its turn, that pay for the memory's rows alone, and hold for others.

    The summary of the pieces is that of the memory's rows in the cluster, then made to stand for all of it.
    """
    turns = [(memory.turn + i) % total.K for i in range(min(TUNING.clusters, total.K))]
    memory = memory._replace(turn=memory.turn + len(turns))
    owner = likeliest(model.likelihood, model.parameters(total, memory.X.dtype), memory.X)
    most = min(model.kind.sample_size, most_drawn(model, memory.standing_for(1.0)))
    targets = []
    for k in turns:
        mine = np.flatnonzero(owner == k)[:most]
        room = min(TUNING.pieces, model.max_clusters - total.K + 1, len(mine))
        if room < 2 or not total.N[k] > 0.0:
            continue
        X, weights = distinct_rows(memory.X[mine], np.full(len(mine), min(1.0, float(total.N[k]) / len(mine))))
        starts = (Start(min(room, len(weights))),)
        targets.append(Target(k, total.take([k]), X, weights, starts, int(rng.integers(2**63)), thorough=True))
    gains = []
    removed: list[int] = []
    pieces: list[Summary] = []
    for target, (children, gain) in zip(targets, executor.map(partial(fit_children, model), targets)):
        k = target.cluster
        K = total.K + sum(piece.K - 1 for piece in pieces)
        fits = accepts(gain, children.K - 1, gain) and model.max_clusters >= K + children.K - 1
        if fits and _holds(model, target):
            pieces.append(children * float(total.N[k] / children.N.sum()))
            removed.append(k)
            gains.append(gain)
    if not removed:
        return total, memory, []
    return replace(total.exchange(removed, side_by_side(pieces)), base=total.base), memory, gains


def _holds(model: Model, target: Target) -> bool:
    """Whether pieces found in one half of a cluster's rows explain the other half better than the cluster does.

    Pieces stand for many more rows than they are fitted to.  A few rows in many columns are explained at no cost by a cluster
    that is narrow around them, where the prior allows it, and no other row would ever belong to it.
    """
    order = np.random.default_rng(target.seed).permutation(len(target.weights))
    fitted, others = order[::2], order[1::2]
    starts = tuple(start._replace(children=min(start.children, len(fitted))) for start in target.starts)
    half = replace(target, X=target.X[fitted], weights=target.weights[fitted], starts=starts)
    children, _ = fit_children(model, half)
    sample = Sampled.of(model, target.X[others], target.weights[others])
    return children.K > 1 and _explained(model, children, sample) > _explained(model, target.summary, sample)


def _explained(model: Model, clusters: Summary, sample: Sampled) -> float:
    """What clusters explain of rows to which they were not fitted: their share of the bound, in nats."""
    model = model.flat
    seen = refined(model, clusters, sample)[0]
    parameters = model.parameters(clusters, np.dtype(np.float64))
    return float((seen.S * parameters.W).sum() + seen.N @ parameters.bias + seen.H.sum())
