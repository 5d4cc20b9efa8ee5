"""Agglomeration: clusters become one, pair by pair, the best pair each time, through losses down to one cluster."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..model import Model, Posterior, Summary
from ..model.tree import upwards

Array = NDArray[np.floating]

PAIRS = 1 << 17  # numbers in what is looked at together of pairs: 1 MiB, so that it stays in a cache
NEAREST = 20  # clusters with which one is tried to merge


class Step(NamedTuple):
    """A merge: cluster ``gone`` joined ``kept``; what all merges so far gain, and the groups of clusters they leave."""

    kept: int
    gone: int
    gain: float
    groups: list[list[int]]


class Level(NamedTuple):
    """The bound with each group of clusters as one, all responsibilities added, the groups, and their nodes in the tree."""

    bound: float
    groups: list[list[int]]
    nodes: NDArray[np.int64]


def reduced(model: Model, total: Summary, most: int) -> Summary:
    """The summary with no more than ``most`` clusters, by merges that lose least."""
    if most >= total.K:
        return total
    for step in merges(model.posterior(total)):
        if len(step.groups) <= max(1, most):
            return with_groups(total, step.groups)
    return total


def agglomerated(model: Model, total: Summary) -> Summary:
    """The summary after as many merges, the best each time, as gain most together."""
    best = 0.0
    found = [[k] for k in range(total.K)]
    for step in merges(model.posterior(total)):
        if step.gain > best:
            best = step.gain
            found = step.groups
    return with_groups(total, found)


def merges(posterior: Posterior, barred: Sequence[tuple[int, int]] = ()) -> Iterator[Step]:
    """One merge after another, the best each time, through losses, until one cluster is left.

    A merge is worth what it changes in the log marginal likelihood of rows and in that of their assignments, where each row
    belongs to one cluster.  Only clusters of which one is among the `NEAREST` of the other are merged, and groups with such
    clusters.

    barred : pairs that are not merged, and then not all clusters are
    """
    model = posterior.model
    total = posterior.summary
    near = _near(posterior)
    first, second = np.nonzero(np.triu(near, 1))
    gains, together = np.full((2, total.K, total.K), -np.inf)
    allocation = model.allocation
    shares = posterior.solution.shares
    marginal = posterior.log_marginal.copy()
    total = total * 1.0
    gains[first, second], together[first, second] = merge_gains(model, total, marginal, shares, first, second)
    for pair in barred:
        gains[pair] = -np.inf
    groups = [[k] for k in range(total.K)]
    gain = 0.0
    left = np.ones(total.K, np.bool_)
    while left.sum() > 1:
        a, b = (int(k) for k in np.unravel_index(int(gains.argmax()), gains.shape))
        if gains[a, b] == -np.inf and (barred or near[np.ix_(left, left)].all()):
            return
        if gains[a, b] == -np.inf:  # what is left is far from each other
            near[:] = np.outer(left, left)
            low, high = np.nonzero(np.triu(near, 1))
            gains[low, high], together[low, high] = merge_gains(model, total, marginal, shares, low, high)
            continue
        gain += float(gains[a, b])
        groups[a], left[b] = groups[a] + groups[b], False
        yield Step(a, b, gain, [group for group, kept in zip(groups, left) if kept])
        total.absorb(a, b)
        shares, marginal[a] = allocation.merged_shares(shares, a, b), together[a, b]
        near[a] |= near[b]
        near[:, a] |= near[:, b]
        near[b], near[:, b], gains[b], gains[:, b] = False, False, -np.inf, -np.inf
        others = np.flatnonzero(near[a])
        others = others[others != a]
        low = np.minimum(a, others)
        high = np.maximum(a, others)
        gains[low, high], together[low, high] = merge_gains(model, total, marginal, shares, low, high)


def hopeful(steps: Iterable[Step], beyond: int) -> list[Step]:
    """The merges up to so many beyond those that gain most together."""
    found: list[Step] = []
    best = 0.0
    most = beyond
    for step in steps:
        found.append(step)
        if step.gain > best:
            best = step.gain
            most = len(found) + beyond
        if len(found) == most:
            break
    return found


def ancestry(steps: Sequence[Step], K: int) -> NDArray[np.int64]:
    """The trees of the merges of K clusters: the parent of each node, (K + merges,), and -1 for roots.

    Nodes are the clusters, then what each merge leads to, in order; so every parent comes after its children.
    """
    parents = np.full(K + len(steps), -1, np.int64)
    node = np.arange(K)
    for i, step in enumerate(steps):
        parents[node[step.kept]] = parents[node[step.gone]] = node[step.kept] = K + i
    return parents


def row_nodes(N: Array, parents: NDArray[np.int64], entropies: Array, base: Array) -> Summary:
    """The summary, without statistics, of the nodes of trees of merges of clusters of rows."""
    return Summary(upwards(N, parents), np.empty((len(parents), 0)), entropies, base)


def levels_of(model: Model, total: Summary, steps: Sequence[Step], nodes: Summary) -> list[Level]:
    """The bound of every number of clusters on the way down, exact for responsibilities of rows that are added.

    Of documents it is a lower bound: the shares of the clusters are added, too.

    nodes : the summary, without statistics, of the nodes of the trees of merges, of which the first K are the clusters
    """
    K = total.K
    allocation = model.allocation
    N = total.N.copy()
    S = total.S.copy()
    shares = allocation.solve(total).shares * 1.0
    marginal = model.log_marginal(total)
    left = np.arange(K)
    node = np.arange(K)
    groups = [[k] for k in range(K)]
    found = []
    for i in range(len(steps) + 1):
        if i > 0:
            kept = steps[i - 1].kept
            gone = steps[i - 1].gone
            groups = steps[i - 1].groups
            N[kept] += N[gone]
            S[kept] += S[gone]
            shares[kept] += shares[gone]
            marginal[kept] = model.likelihood.log_marginal(N[kept : kept + 1], S[kept : kept + 1])[0]
            node[kept], left = K + i - 1, left[left != gone]
        summary = nodes.take(node[left])
        order = allocation.order(summary)
        at = left[order]
        summary = summary.take(order)
        solution = allocation.at(summary, np.append(shares[at], shares[K:]))
        bound = Posterior.known(model, summary, marginal[at], solution).bound
        found.append(Level(bound, groups, node[left]))
    return found


def level_start(model: Model, total: Summary, nodes: Summary, level: Level) -> tuple[Summary, list[list[int]]]:
    """The summary of a level, and its groups of clusters in the same order."""
    order = model.allocation.order(nodes.take(level.nodes))
    groups = [level.groups[i] for i in order]
    S = np.stack([total.S[group].sum(axis=0) for group in groups])
    return replace(nodes.take(level.nodes[order]), S=S), groups


def _near(posterior: Posterior) -> NDArray[np.bool_]:
    """Which clusters are among the nearest of each other, by what a row of one loses if the other explains it, (K, K)."""
    K = posterior.summary.K
    if K <= NEAREST + 1:
        return np.ones((K, K), np.bool_)
    rank = posterior.divergences.argsort(axis=1).argsort(axis=1)
    return np.asarray((rank <= NEAREST) | (rank.T <= NEAREST))


def merge_gains(
    model: Model, total: Summary, marginal: Array, shares: Array, first: Any, second: Any
) -> tuple[Array, Array]:
    """What merging pairs of clusters gains, and the log marginal of the rows of both, (n,)."""
    some = max(1, PAIRS // (total.K + total.S.shape[1]))
    together = np.empty(len(first))
    for i in range(0, len(first), some):
        a = first[i : i + some]
        b = second[i : i + some]
        together[i : i + some] = model.likelihood.log_marginal(total.N[a] + total.N[b], total.S[a] + total.S[b])
    gains = together - marginal[first] - marginal[second] + model.allocation.merge_gains(total, shares, first, second)
    return gains, together


def with_groups(total: Summary, groups: Sequence[Sequence[int]]) -> Summary:
    """The summary with each group of clusters as one: those that stay as they are first, in their order."""
    alone = [group[0] for group in groups if len(group) == 1]
    joined = [group for group in groups if len(group) > 1]
    summary = total * 1.0
    for group in joined:
        for k in group[1:]:
            summary.absorb(group[0], k)
    return summary.take([*alone, *(group[0] for group in joined)])
