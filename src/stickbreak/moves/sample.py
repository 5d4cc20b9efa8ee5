"""Samples of the rows of each cluster, drawn while the data are visited, for births to be fitted to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data import ArraySource
from ..data.distinct import distinct_rows
from ..likelihoods.features import Rows, entries, features
from ..model import Drawn, Model, Summary
from ..model.local import product_with
from .birth import Start, Target

Array = NDArray[np.floating]

ODD_CHILDREN = 5  # among the rows that a cluster explains worst
PARTS = 1, 4, 16, 64  # of these rows, the worst, with which one child begins
NOTHING = Drawn(np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0))
FEATURES = 1 << 22  # numbers in the features of one sample: 32 MiB in float64


class Poor(NamedTuple):
    """Rows that their clusters explain worst: cluster, row number, responsibility and log density of each, (n,)."""

    owners: NDArray[np.integer]
    rows: NDArray[np.integer]
    shares: Array
    scores: Array

    def of(self, cluster: int) -> tuple[NDArray[np.integer], Array]:
        """The rows of one cluster, in order, and their responsibilities."""
        mine = np.flatnonzero(self.owners == cluster)
        mine = mine[np.argsort(self.rows[mine])]
        return self.rows[mine], self.shares[mine]


@dataclass(frozen=True)
class Draw:
    """How rows are drawn in a lap: chance per unit of weight and cluster, a salt for the random numbers, identities."""

    limits: Array
    salt: int
    ids: NDArray[np.integer]

    def named(self, drawn: Drawn) -> Drawn:
        """What was drawn, with the identities of the clusters instead of their numbers."""
        return drawn._replace(owners=self.ids[drawn.owners])


def plan_draw(model: Model, source: ArraySource, counts: Array, ids: Sequence[int], rng: np.random.Generator) -> Draw:
    """Draw about as many rows of each cluster of ``counts`` (K,) as a sample needs, or as 32 MiB of features hold."""
    wanted = max(1, min(model.kind.sample_size, most_drawn(model, source)))
    limits = wanted / np.maximum(counts, 1e-300)
    return Draw(limits, int(rng.integers(2**63)), np.array(ids))


def most_drawn(model: Model, source: ArraySource) -> int:
    """How many rows of a cluster have features that 32 MiB hold."""
    return FEATURES // entries(model.likelihood, source.row_size)


def poor_targets(
    model: Model,
    total: Summary,
    ids: Sequence[int],
    source: ArraySource,
    drawn: Sequence[Drawn],
    poor: Poor,
    rng: np.random.Generator,
) -> list[Target]:
    """The same of clusters with rows that they explain worst: all of these rows, and the sample for the others.

    Several children begin among all of those rows, or one with the worst 500, 125, 31 or 7.
    """
    W = model.likelihood.weights(total.N, total.S)[0]
    cells = model.likelihood.cells
    source = _held(source, drawn, poor.rows)
    sorted_ = by_cluster(drawn)
    found = []
    for k, identity in enumerate(ids):
        worst, shares = poor.of(k)
        mine = sorted_.get(identity, NOTHING)
        rest = ~np.isin(mine.rows, worst)
        odd, odd_weights = _taken(source, worst, shares)
        others, weights = _taken(source, mine.rows[rest], mine.chosen[rest])
        left = float(total.N[k]) - odd_weights.sum()
        if len(odd_weights) < 2 or not (left > 0.0 and weights.sum() > 0.0):
            continue
        with np.errstate(over="ignore", invalid="ignore"):  # of rows too far for a density
            T = features(model.likelihood, odd)
            if cells is not None:
                T = cells.filled(T, W, np.full(len(T), k))
            scores = model.likelihood.log_base(odd) + product_with(T, W[[k]])[:, 0]
        order = np.argsort(scores, kind="stable")
        odd = odd[order]
        odd_weights = odd_weights[order]
        X = sparse.vstack([odd, others], format="csr") if sparse.issparse(odd) else np.concatenate([odd, others])
        weights = np.concatenate([odd_weights, weights * (left / weights.sum())])
        n = len(odd_weights)
        starts = [Start(min(ODD_CHILDREN, n) + 1, n), *(Start(2, n // part) for part in PARTS if n // part >= 2)]
        found.append(Target(k, total.take([k]), X, weights, tuple(starts), int(rng.integers(2**63))))
    return found


def _taken(source: ArraySource, rows: NDArray[np.integer], shares: Array) -> tuple[Rows, Array]:
    """Some rows, equal ones together, and their weights times ``shares``."""
    order = np.argsort(rows)
    X, weights = source.take(rows[order])
    return distinct_rows(X, weights * shares[order])


def by_cluster(drawn: Sequence[Drawn]) -> dict[int, Drawn]:
    """What was drawn for each cluster, in the order of the chunks: all is sorted once, not searched for every cluster."""
    if not drawn:
        return {}
    owners = np.concatenate([part.owners for part in drawn])
    rows = np.concatenate([part.rows for part in drawn])
    chosen = np.concatenate([part.chosen for part in drawn])
    order = np.argsort(owners, kind="stable")
    parts = None
    if drawn[0].parts is not None:
        own = [part.parts for part in drawn]
        parts = (sparse.vstack(own, format="csr") if sparse.issparse(own[0]) else np.concatenate(own))[order]
    clusters, starts = np.unique(owners[order], return_index=True)
    found = {}
    for cluster, start, stop in zip(clusters.tolist(), starts.tolist(), [*starts.tolist()[1:], len(order)]):
        these = order[start:stop]
        mine = None if parts is None else parts[start:stop]
        found[cluster] = Drawn(owners[these], rows[these], chosen[these], mine)
    return found


def _held(source: ArraySource, drawn: Sequence[Drawn], more: NDArray[np.integer] | tuple[int, ...] = ()) -> ArraySource:
    """A source that gives the rows drawn, and more, as often as they are wanted."""
    rows = [np.asarray(more, np.int64), *(part.rows for part in drawn)]
    return source.held(np.concatenate(rows))


def targets(
    model: Model,
    total: Summary,
    ids: Sequence[int],
    source: ArraySource,
    drawn: Sequence[Drawn],
    children: Callable[[int], int],
    rng: np.random.Generator,
) -> list[Target]:
    """Samples of the clusters k for which ``children(k)``, how many to fit, is at least two."""
    source = _held(source, drawn)
    sorted_ = by_cluster(drawn)
    found = []
    for k, identity in enumerate(ids):
        J = children(k)
        if J >= 2 and identity in sorted_:
            X, weights = model.kind.sample(source, [sorted_[identity]], identity, float(total.N[k]))
            J = min(J, len(weights))
            if J >= 2:
                found.append(Target(k, total.take([k]), X, weights, (Start(J),), int(rng.integers(2**63))))
    return found
