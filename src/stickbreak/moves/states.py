"""Moves of the states of hidden Markov models: candidates for all states at once, each visited beside the lap.

A step's state bears on its neighbours', so mass cannot be handed over row by row.  A candidate is a summary of all states after
some of them were merged, deleted or split; over the next lap its own optimal q(z) is found (Thesis 6.3.3), and the bound of
the two summaries decides.  Where many changes look good they are tried together, and a quarter of them, and so on, down to
the best alone, so that one lap can accept a hundred.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..model import Model, Posterior, SequenceSummary, Summary
from .agglomeration import merge_gains, merges, with_groups
from .better import NEGLIGIBLE
from .proposal import Array, Proposal

MARGIN = 0.2  # a merge is tried that seems to lose less than this share of what the parameters of a state cost
FEWER = 4  # of changes that are tried together, one in so many is tried next
STAYS = 0.5  # of the transitions within a state that is split, the share that stay in the child; the rest go to any


class Candidate(NamedTuple):
    """A summary of all states, those kept first in their order; the states that are no longer, and the gain hoped for."""

    summary: Summary
    removed: tuple[int, ...]
    estimate: float


def proposal(kind: str, model: Model, candidate: Candidate, dtype: Any) -> Proposal:
    """The proposal of a candidate."""
    parameters = model.parameters(candidate.summary, dtype)
    return Proposal(kind, candidate.removed, parameters, candidate.estimate, whole=True)


def merged(posterior: Posterior, barred: Sequence[tuple[int, int]] = ()) -> Iterator[Candidate]:
    """Candidates with some states merged: what one merge after another, the best each time, has led to.

    A merge is worth what it changes in the marginal likelihood of rows and transitions, assignments given (Thesis 6.5.1).

    barred : pairs not to begin with
    """
    total = posterior.summary
    saving = posterior.cost
    path: list[tuple[float, list[list[int]]]] = []
    for step in merges(posterior, barred):
        changed = [k for group in step.groups if len(group) > 1 for k in group]
        if not path and not step.gain > -MARGIN * saving[changed].min():
            return
        path.append((step.gain, step.groups))
        if step.gain < min(0.0, path[0][0]):
            break
    if path:
        for n in _fewer(1 + int(np.argmax([gain for gain, _ in path]))):
            gain, groups = path[n - 1]
            joined = tuple(k for group in groups if len(group) > 1 for k in group)
            yield Candidate(with_groups(total, groups), joined, gain)


def changes(model: Model, total: Summary, merges: int, deletions: int) -> list[tuple[int, ...]]:
    """The merges (a, b) that seem to gain most, and the deletions (k,) of the smallest states."""
    first, second = np.triu_indices(total.K, 1)
    posterior = model.posterior(total)
    gains, _ = merge_gains(model, total, posterior.log_marginal, posterior.solution.shares, first, second)
    best = np.argsort(-gains, kind="stable")[:merges]
    pairs = [(int(a), int(b)) for a, b in zip(first[best], second[best])]
    return [*pairs, *((int(k),) for k in np.argsort(total.N, kind="stable")[:deletions])]


def changed(total: Summary, chosen: Sequence[tuple[int, ...]]) -> Summary:
    """The summary after merges (a, b) and deletions (k,), of no state more than one."""
    groups = [[k] for k in range(total.K) if not any(k in change for change in chosen)]
    return with_groups(total, groups + [list(change) for change in chosen if len(change) > 1])


def deleted(posterior: Posterior, may: Callable[[tuple[int, ...]], bool]) -> Iterator[Candidate]:
    """Candidates without some of the states whose rows others explain almost as well."""
    total = posterior.summary
    saving = posterior.cost
    if total.K < 2:
        return
    loss = total.N * (posterior.divergences + np.diag(np.full(total.K, np.inf))).min(axis=1)
    cheap = loss < 2.0 * saving + NEGLIGIBLE
    promising = [int(k) for k in np.argsort(loss - saving, kind="stable") if cheap[k] and may((int(k),))]
    for n in _fewer(min(len(promising), total.K - 1)):
        gone = promising[:n]
        kept = np.delete(np.arange(total.K), gone)
        yield Candidate(total.take(kept), tuple(gone), float((saving - loss)[gone].sum()))


def without_rows(total: Summary, saving: Array) -> Iterator[Candidate]:
    """The candidate without the states to which no row belongs, if there are any.

    saving : (K,) the cost of each state's parameters, next to nothing where there is nothing to tell of them
    """
    empty = saving < NEGLIGIBLE
    if empty.any() and not empty.all():
        yield Candidate(total.take(np.flatnonzero(~empty)), tuple(map(int, np.flatnonzero(empty))), 0.0)


def births(total: Summary, fits: Sequence[tuple[float, int, Summary]], room: int) -> Iterator[Candidate]:
    """Candidates with some states split into children.

    fits : the gain, the state, and its children;  room : how many states more there may be
    """
    best = []
    states = 0
    for fit in sorted(fits, key=lambda fit: -fit[0]):
        states += fit[2].K - 1
        if states <= room:
            best.append(fit)
    for n in _fewer(len(best)):
        removed = tuple(k for _, k, _ in best[:n])
        estimate = sum(gain for gain, _, _ in best[:n])
        yield Candidate(split(total, [(k, children) for _, k, children in best[:n]]), removed, estimate)


def split(total: Any, children: Sequence[tuple[int, Summary]]) -> SequenceSummary:
    """The summary with states replaced by their children, which come last, and share their transitions by their counts."""
    share = np.eye(total.K)
    inner = np.zeros((total.K, 0))
    columns = [k for k in range(total.K) if k not in {k for k, _ in children}]
    N = []
    S = []
    for k, parts in children:
        weights = parts.N / parts.N.sum()
        inner = np.hstack([inner, np.outer(np.eye(total.K)[k], weights)])
        N.append(total.N[k] * weights)
        S.append(parts.S * (total.N[k] / parts.N.sum()))
    share = np.hstack([share[:, columns], inner])  # (K, K')
    M = share.T @ total.M @ share
    place = len(columns)
    for k, parts in children:
        own = slice(place, place + parts.K)
        stay = total.M[k, k] * parts.N / parts.N.sum()
        M[own, own] = (1.0 - STAYS) * M[own, own] + STAYS * np.diag(stay)
        place += parts.K
    kept = total.take(columns)
    found: SequenceSummary = replace(
        kept,
        N=np.concatenate([kept.N, *N]),
        S=np.concatenate([kept.S, *S]),
        H=np.zeros(place),
        M=M,
        begins=total.begins @ share,
    )
    return found


def side_by_side(total: Any, others: Any) -> SequenceSummary:
    """The summary of sequences with other states after its own; every state leads to all of the other kind, as if once."""
    K = total.K
    J = others.K
    share = total.N / total.N.sum()
    other_share = others.N / others.N.sum()
    grown = total.insert_empty(J)
    N = np.append(total.N, others.N)
    S = np.concatenate([total.S, others.S])
    M = grown.M.copy()
    begins = grown.begins.copy()
    M[:K, K:], M[K:, :K] = other_share, share
    M[K:, K:] = others.M
    begins[K:] = others.begins
    found: SequenceSummary = replace(grown, N=N, S=S, M=M, begins=begins)
    return found


def softened(total: Any) -> SequenceSummary:
    """The summary with transitions as if each row's state were drawn for itself.

    Rows then go to the states that explain them best, whatever their neighbours, so that states that hold each other's rows can
    separate; the chain returns lap by lap.
    """
    parts = total.N / total.N.sum()
    found: SequenceSummary = replace(total, M=total.M.sum() * np.outer(parts, parts), begins=total.begins.sum() * parts)
    return found


def _fewer(n: int) -> list[int]:
    """n, n / 4, n / 16, ..., 1: to try one is as much work as a lap."""
    found = []
    while n >= 1:
        found.append(n)
        n = n // FEWER or int(n > 1)
    return found
