"""New states from segments, the runs of rows that the best path spends in one state: a long run is probably one state.

Where ascents settle into a poor optimum, it is most often which segments share a state that is wrong, not where they begin.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data import SequenceSource
from ..model import Model, SequenceSummary, Summary
from ..model.sequences import labelled, rows_of_labels
from .agglomeration import agglomerated
from .blocks import halves

MOST = 128  # segments that are looked at
CUTS = (0.3, 1.0, 3.0)  # in every segment on average, before they are grouped anew
FEWEST = 16  # cuts of all rows on average
SHARES = (0.2, 0.4, 0.7)  # of the states, that are most alike
ROUNDS = 10  # in which segments go to the half that explains them better
PIECE = 6  # rows
MOST_NUMBERS = 1 << 23  # in the statistics of all segments, beyond which states are not halved


def own_states(
    model: Model, source: SequenceSource, path: NDArray[np.intp], n: int, rng: np.random.Generator
) -> SequenceSummary:
    """About n states of segments, two each: those that gain most, cut where both parts explain it best (Thesis 6.5.2).

    Each is entered once and lasts.

    A segment gains what the log marginal likelihoods of its parts and of the rest of its state are above that of the state.

    path : (T,) the state of every row
    """
    group, state = _alone(segments_of(source, path), path, np.ones(len(path), np.bool_), rng)
    rows = np.split(np.argsort(group, kind="stable"), np.searchsorted(np.sort(group), np.arange(1, len(state) + 1)))
    parts = [halves(model, source, rows[i]) for i in range(len(state))]
    N, S = np.array([N for N, _ in parts]), np.array([S for _, S in parts])  # (segments, 2), (segments, 2, F)
    whole = labelled(model.likelihood, source, path).take(state)
    log_marginal = model.likelihood.log_marginal
    rest = log_marginal(np.maximum(whole.N - N.sum(axis=1), 0.0), whole.S - S.sum(axis=1))
    gain = log_marginal(N[:, 0], S[:, 0]) + log_marginal(N[:, 1], S[:, 1]) + rest - model.log_marginal(whole)
    best = np.argsort(-gain, kind="stable")[: -(-n // 2)]
    N = N[best].ravel()
    S = S[best].reshape(2 * len(best), -1)
    N, S = N[N > 0.0], S[N > 0.0]
    own = Summary(N, S, np.zeros(len(N)), np.zeros(()))
    return SequenceSummary.of(own, np.diag(np.maximum(N - 1.0, 0.0)), np.zeros(len(N)))


def halved(
    model: Model, source: SequenceSource, path: NDArray[np.intp], rng: np.random.Generator
) -> SequenceSummary | None:
    """Every state in two, for an ascent that undoes needless halves: segments go to the half that explains them better.

    At first a random segment of each state, the likelier the farther it lies from the state's mean, gets those on its side.

    path : (T,) the state of every row

    Returns None where no state has segments unlike each other, or where segments are too many to look at.
    """
    segment = segments_of(source, path)
    if (segment[-1] + 1) * model.likelihood.n_statistics > MOST_NUMBERS:
        return None
    own = rows_of_labels(model.likelihood, source, segment)
    state = np.zeros(own.K, np.intp)
    state[segment] = path
    half = _sides(own, state, rng)
    for _ in range(ROUNDS):
        W, b = model.likelihood.weights(*_sums(own, 2 * state + half, 2 * int(state.max()) + 2))
        ahead = np.einsum("sf,sf->s", own.S, (W[1::2] - W[::2])[state]) + own.N * (b[1::2] - b[::2])[state]
        before, half = half, ahead > 0.0
        if np.array_equal(before, half):
            break
    total = labelled(model.likelihood, source, (2 * state + half)[segment])
    found = total.take(np.flatnonzero(total.N > 0.0))
    return found if len(np.unique(path)) < found.K else None


def in_pieces(
    model: Model, source: SequenceSource, path: NDArray[np.intp], among: NDArray[np.bool_], rng: np.random.Generator
) -> SequenceSummary:
    """Some states in two, for an ascent that undoes needless halves: short pieces of their rows go to either half at random.

    The halves begin almost alike, so that laps alone part them, with all that neighbours tell.  Where states overlap so much
    that neither a row nor a segment shows its state, clusters of rows or of segments are no start.

    path : (T,) the state of every row;  among : (K,) the states in two
    """
    second = np.repeat(rng.random(-(-len(path) // PIECE)) < 0.5, PIECE)[: len(path)]
    total = labelled(model.likelihood, source, 2 * path + (second & among[path]))
    return total.take(np.flatnonzero(total.N > 0.0))


def alike(model: Model, total: Summary, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A random state and a share of the others that explain its rows best, and whose rows it does, (K,)."""
    divergences = model.divergences(total)
    state = rng.integers(total.K)
    share = rng.choice(SHARES)
    nearest = np.argsort(divergences[state] + divergences[:, state], kind="stable")
    return np.isin(np.arange(total.K), nearest[: max(2, int(np.ceil(share * total.K)))])


def regrouped(
    model: Model, source: SequenceSource, path: NDArray[np.intp], among: NDArray[np.bool_], rng: np.random.Generator
) -> Summary:
    """The segments of some states, some of them cut at random, merged anew while that gains, into states or the other states.

    A merge is worth what it changes in the marginal likelihood of rows and transitions, assignments given (Thesis 6.5.1).

    path : (T,) the state of every row;  among : (K,) the states whose segments are merged anew
    """
    segment = segments_of(source, path)
    cut = _cut(segment, max(rng.choice(CUTS) * (segment[-1] + 1), FEWEST), rng)
    total = labelled(model.likelihood, source, _alone(cut, path, among[path], rng)[0])
    return agglomerated(model, total.take(np.flatnonzero(total.N > 0.0)))


def _sides(own: Summary, state: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Of every segment whether its mean and that of a random one of its state are on the same side of the state's mean."""
    N, S = _sums(own, state, int(state.max()) + 1)
    mean = S / np.maximum(N, 1e-300)[:, None]
    ahead = own.S - own.N[:, None] * mean[state]
    far = (ahead**2).sum(axis=1) / np.maximum(own.N, 1.0)
    order = np.lexsort((rng.random(len(far)) ** (1.0 / np.maximum(far, 1e-300)), state))
    drawn = order[np.searchsorted(state[order], np.arange(len(N)), side="right") - 1]
    return np.asarray(np.einsum("sf,sf->s", ahead, ahead[drawn][state]) > 0.0)


def _sums(own: Summary, label: NDArray[np.intp], n: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Counts (n,) and statistics (n, F) of the segments of every label."""
    members = sparse.csr_array((np.ones(len(label)), label, np.arange(len(label) + 1)), (len(label), n)).T
    return members @ own.N, members @ own.S


def segments_of(source: SequenceSource, path: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of every row's segment, (T,)."""
    begins = np.append(True, path[1:] != path[:-1])
    begins[source.edges[:-1]] = True
    return np.asarray(np.cumsum(begins) - 1)


def _cut(segment: NDArray[np.intp], n: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """The number of every row's segment after n cuts on average, at random rows, (T,)."""
    cuts = rng.random(len(segment)) < n / len(segment)
    cuts[1:] |= segment[1:] > segment[:-1]
    return np.asarray(np.cumsum(np.append(False, cuts[1:])))


def _alone(
    segment: NDArray[np.intp], path: NDArray[np.intp], free: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Labels (T,) of `MOST` random segments, 0, 1, ..., and of the states of all other rows; and the states of the segments.

    free : (T,) the rows of the segments that may be chosen
    """
    chosen = np.sort(rng.permutation(np.unique(segment[free]))[:MOST])
    number = np.full(int(segment[-1]) + 1, -1)
    number[chosen] = np.arange(len(chosen))
    group = number[segment]
    states = path[np.searchsorted(segment, chosen)]
    return np.where(group < 0, len(chosen) + path, group), states
