"""The end of a lap: which proposals raise the ELBO of the whole data set, and the edit that accepts them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from ..allocations import Solution
from ..model import Memo, Model, Summary
from .delete import NEGLIGIBLE
from .proposal import Proposal

WORTH = 1.0  # nats for each cluster more


class Verdict(NamedTuple):
    """Gains of the accepted proposals by number, the clusters they remove, and those they add, unless these are all."""

    gains: dict[int, float]
    removed: list[int]
    added: Summary | None


def verify(
    model: Model,
    memo: Memo,
    proposals: Sequence[Proposal],
    tracked: list[list[Summary]],
    slack: float,
    solution: Solution,
) -> Verdict:
    """Accept proposals best first where both configurations, exact summaries of all rows, say that the ELBO rises.

    A cluster more must be worth a nat: among many splits tried, fractions of rows nearly always find something to gain.

    Proposals that share a cluster exclude each other.  Accepted ones are edited into every batch of the memo.

    tracked : for each batch, the summary of every proposal's clusters J
    slack : what the ELBO has risen by since it was last reported.  Of that, a move that leaves fewer clusters may give back a
        hundredth of a nat, or what is within rounding: a cluster to which no row belongs still explains the tails of all
        rows a trifle better than none.
    solution : the optimum of the allocation for all rows
    """
    added = [reduce(add, (batch[i] for batch in tracked)) for i in range(len(proposals))]
    marginals = [model.log_marginal(J) for J in added]
    marginal = model.log_marginal(memo.total)
    scores = [
        (marginals[i] + added[i].H).sum() - (marginal + memo.total.H)[list(proposal.removed)].sum()
        for i, proposal in enumerate(proposals)
    ]
    gains: dict[int, float] = {}
    used: set[int] = set()
    current, columns = memo.total.without_statistics(), np.arange(memo.total.K)
    shares, order = solution.shares, model.allocation.order(current)
    ordered = (order == columns).all()
    bound = model.bound(current.take(order), marginal[order], solution if ordered else None)
    rounding = 5e-10 * abs(bound)
    for i in sorted(range(len(proposals)), key=lambda i: -scores[i]):
        if used & set(proposals[i].removed):
            continue
        here = np.flatnonzero(np.isin(columns, proposals[i].removed))
        candidate = current.exchange(here, added[i].without_statistics())
        if max(model.max_clusters, current.K) < candidate.K:
            continue
        candidate_marginal = np.concatenate([np.delete(marginal, here), marginals[i]])
        candidate_shares = _exchange(shares, current.K, here, proposals[i].split)
        after = _bound(model, candidate, candidate_marginal, candidate_shares)
        allowed = max(min(slack, NEGLIGIBLE), rounding) if candidate.K < current.K else -np.inf
        needed = 1e-9 * abs(scores[i]) + 1e-6 + WORTH * max(0, candidate.K - current.K)
        if after - bound > needed or bound - after < allowed:
            slack, rounding = slack - max(bound - after, 0.0), rounding - max(bound - after, 0.0)
            gains[i] = after - bound
            used |= set(proposals[i].removed)
            columns = np.concatenate([np.delete(columns, here), np.full(added[i].K, -1)])
            current, marginal, shares, bound = candidate, candidate_marginal, candidate_shares, after
    if not gains:
        return Verdict({}, [], None)
    removed = sorted(used)
    memo.edit(lambda b, summary: summary.exchange(removed, _side_by_side(tracked[b][i] for i in gains)))
    return Verdict(gains, removed, _side_by_side(added[i] for i in gains))


def verify_whole(
    model: Model,
    memo: Memo,
    proposals: Sequence[Proposal],
    tracked: list[list[Summary]],
    slack: float,
    solution: Solution,
) -> Verdict:
    """Accept the best of proposals that stand for all clusters, if it raises the ELBO (as `verify`)."""
    total = memo.total
    bound = model.bound(total, solution=solution)
    best, gain = -1, -np.inf
    for i in range(len(proposals)):
        added = reduce(add, (batch[i] for batch in tracked))
        more = added.K - total.K
        found = model.bound(replace(added, base=total.base)) - bound
        allowed = max(min(slack, NEGLIGIBLE), 5e-10 * abs(bound)) if more < 0 else -1e-9 * abs(bound) - 1e-6
        if found > WORTH * max(0, more) - allowed and found - WORTH * more > gain:
            best, gain = i, found - WORTH * more
            change = found
    if best < 0:
        return Verdict({}, [], None)
    memo.edit(lambda b, summary: replace(tracked[b][best], base=summary.base))
    return Verdict({best: change}, sorted(proposals[best].removed), None)


def _exchange(shares: np.ndarray, K: int, removed: np.ndarray, split: np.ndarray) -> np.ndarray:
    """Shares (K or K + 1,) when clusters hand theirs to others that come after the K, in the proportions ``split``."""
    clusters, rest = shares[:K], shares[K:]
    return np.concatenate([np.delete(clusters, removed), clusters[removed].sum() * split, rest])


def _bound(model: Model, summary: Summary, marginal: np.ndarray, shares: np.ndarray) -> float:
    order = model.allocation.order(summary)
    shares = np.concatenate([shares[: summary.K][order], shares[summary.K :]])
    summary = summary.take(order)
    return model.bound(summary, marginal[order], model.allocation.at(summary, shares))


def _side_by_side(summaries: Iterable[Summary]) -> Summary:
    return reduce(lambda left, right: left.exchange((), right), summaries)
