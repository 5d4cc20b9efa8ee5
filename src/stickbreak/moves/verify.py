"""The end of a lap: which proposals raise the ELBO of the whole data set, and the edit that accepts them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from ..model import Edit, Exchange, Model, Posterior, Replace, Summary
from ..model.edits import side_by_side
from .better import FORGIVEN, WORTH, accepts, slack_of
from .proposal import Proposal


class Verdict(NamedTuple):
    """Gains of the accepted proposals by number, the edit that accepts them, and the clusters it removes and adds.

    K : clusters that come after those that stay
    added : these clusters; None where the edit replaces all clusters
    """

    gains: dict[int, float]
    edit: Edit | None
    removed: tuple[int, ...]
    K: int
    added: Summary | None


NOTHING = Verdict({}, None, (), 0, None)


def verify(
    posterior: Posterior, proposals: Sequence[Proposal], tracked: Sequence[Sequence[Summary]], slack: float
) -> Verdict:
    """Accept proposals best first where both configurations, exact summaries of all rows, say that the ELBO rises.

    Proposals that share a cluster exclude each other.

    posterior : of all rows
    tracked : for each batch, the summary of every proposal's clusters J
    slack : what the ELBO has risen by since it was last reported (see `slack_of`)
    """
    model = posterior.model
    total = posterior.summary
    added = [reduce(add, (batch[i] for batch in tracked)) for i in range(len(proposals))]
    marginals = [model.log_marginal(J) for J in added]
    marginal = posterior.log_marginal
    solution = posterior.solution
    scores = [
        (marginals[i] + added[i].H).sum() - (marginal + total.H)[list(proposal.removed)].sum()
        for i, proposal in enumerate(proposals)
    ]
    gains: dict[int, float] = {}
    used: set[int] = set()
    whole = total.without_statistics()
    current = whole
    accepted: list[Summary] = []  # what the clusters of the proposals accepted so far say, all together
    columns = np.arange(total.K)
    shares = solution.shares
    order = model.allocation.order(current)
    ordered = (order == columns).all()
    bound = Posterior.known(model, current.take(order), marginal[order], solution if ordered else None).bound
    rounding = FORGIVEN * abs(bound)
    for i in sorted(range(len(proposals)), key=lambda i: -scores[i]):
        if used & set(proposals[i].removed) or (
            added[i].excludes_others and any(added[j].excludes_others for j in gains)
        ):
            continue
        here = np.flatnonzero(np.isin(columns, proposals[i].removed))
        beside = side_by_side([*accepted, added[i].without_statistics()])
        candidate = whole.exchange(sorted(used | set(proposals[i].removed)), beside)
        if max(model.max_clusters, current.K) < candidate.K:
            continue
        candidate_marginal = np.concatenate([np.delete(marginal, here), marginals[i]])
        candidate_shares = _exchange(shares, current.K, here, proposals[i].split)
        after = _bound(model, candidate, candidate_marginal, candidate_shares)
        if accepts(after - bound, candidate.K - current.K, bound, slack_of(slack, rounding)):
            lost = max(bound - after, 0.0)
            slack -= lost
            rounding -= lost
            gains[i] = after - bound
            used |= set(proposals[i].removed)
            columns = np.concatenate([np.delete(columns, here), np.full(added[i].K, -1)])
            current = candidate
            accepted = [beside]
            marginal = candidate_marginal
            shares = candidate_shares
            bound = after
    if not gains:
        return NOTHING
    removed = tuple(sorted(used))
    new = side_by_side(added[i] for i in gains)
    return Verdict(gains, Exchange(removed, tuple(gains)), removed, new.K, new)


def verify_whole(
    posterior: Posterior, proposals: Sequence[Proposal], tracked: Sequence[Sequence[Summary]], slack: float
) -> Verdict:
    """Accept the best of proposals that stand for all clusters, if it raises the ELBO (as `verify`)."""
    model = posterior.model
    total = posterior.summary
    bound = posterior.bound
    allowed = slack_of(slack, FORGIVEN * abs(bound))
    worth: dict[int, float] = {}
    gains: dict[int, float] = {}
    sizes: dict[int, int] = {}
    for i in range(len(proposals)):
        added = reduce(add, (batch[i] for batch in tracked))
        more = added.K - total.K
        gain = model.bound(replace(added, base=total.base)) - bound
        if accepts(gain, more, bound, allowed):
            gains[i] = gain
            sizes[i] = added.K
            worth[i] = gain - WORTH * more
    if not gains:
        return NOTHING
    best = max(worth, key=lambda i: worth[i])
    removed = tuple(sorted(proposals[best].removed))
    return Verdict({best: gains[best]}, Replace(best), removed, sizes[best] - (total.K - len(removed)), None)


def _exchange(shares: np.ndarray, K: int, removed: np.ndarray, split: np.ndarray) -> np.ndarray:
    """Shares (K or K + 1,) when clusters hand theirs to others that come after the K, in the proportions ``split``."""
    clusters = shares[:K]
    rest = shares[K:]
    return np.concatenate([np.delete(clusters, removed), clusters[removed].sum() * split, rest])


def _bound(model: Model, summary: Summary, marginal: np.ndarray, shares: np.ndarray) -> float:
    """The bound of clusters with known log marginals, brought into order, at shares that may not be the best."""
    order = model.allocation.order(summary)
    shares = np.concatenate([shares[: summary.K][order], shares[summary.K :]])
    summary = summary.take(order)
    return Posterior.known(model, summary, marginal[order], model.allocation.at(summary, shares)).bound
