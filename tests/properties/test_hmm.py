"""The bound of hidden Markov models: below the evidence, never falling, the same for any batches and threads."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.data import sequences as data
from stickbreak.inference import Options, Session, StateSearch, Threads, ending
from stickbreak.inference.init import one_cluster
from stickbreak.inference.laps import Laps
from stickbreak.likelihoods import (
    AutoregressiveGaussian,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Multinomial,
    Poisson,
    Sample,
)
from stickbreak.likelihoods.features import features
from stickbreak.model import SEQUENCES, Model, Summary
from stickbreak.moves import Schedule
from stickbreak.moves import schedule as moves_of_laps
from stickbreak.moves.verify import NOTHING

SEEDS = st.integers(0, 2**32 - 1)
MOVES = ("birth", "merge", "delete")
LEARN = ("stickiness", "transition_concentration", "concentration")
ALLOCATIONS = {
    "sticky": HDPMarkovChain(1.0, 20.0, 5.0, 2.0),
    "hdp": HDPMarkovChain(3.0, 0.0, 5.0, 2.0),
    "finite": FiniteMarkovChain(6, 6.0, 1.0),
}
every = pytest.mark.parametrize("allocation", ALLOCATIONS)
FAMILIES = {
    "gaussian": Gaussian(),
    "diagonal_gaussian": DiagonalGaussian(),
    "bernoulli": Bernoulli(),
    "categorical": Categorical(n_levels=4),
    "poisson": Poisson(),
    "multinomial": Multinomial(0.3),
    "autoregressive_gaussian": AutoregressiveGaussian(),
}
LENGTHS = [1, 40, 7, 25, 2, 30, 1, 14]


def states(rng, lengths, K=3, stay=0.85):
    z = []
    for n in lengths:
        k = int(rng.integers(K))
        for _ in range(n):
            k = k if rng.random() < stay else int(rng.integers(K))
            z.append(k)
    return np.array(z)


def rows(kind, rng, z, D=2):
    """Rows of three states."""
    n, K = len(z), 3
    if "gaussian" in kind and kind != "autoregressive_gaussian":
        return rng.normal(3.0 * rng.standard_normal((K, D))[z], 1.0)
    if kind == "bernoulli":
        return (rng.random((n, 4)) < rng.beta(0.5, 0.5, (K, 4))[z]).astype(float)
    if kind == "categorical":
        p = rng.dirichlet(np.full(4, 0.3), (K, D))
        return np.array([[rng.choice(4, p=p[k, d]) for d in range(D)] for k in z], float)
    if kind == "poisson":
        return rng.poisson(rng.gamma(1.0, 5.0, (K, D))[z]).astype(float)
    if kind == "multinomial":
        return np.array([rng.multinomial(8, p) for p in rng.dirichlet(np.full(5, 0.3), K)[z]], float)
    X, A = np.zeros((n, D)), rng.uniform(-0.9, 0.9, (K, D))
    for t in range(1, n):
        X[t] = A[z[t]] * X[t - 1] + rng.standard_normal(D)
    return X


def problem(kind, allocation, seed, lengths=LENGTHS, missing=0.0):
    """A model, a source and a first summary of one state."""
    rng = np.random.default_rng(seed)
    X = rows(kind, rng, states(rng, lengths))
    X[rng.random(len(X)) < missing] = np.nan
    source = SequenceSource(X, np.array(lengths), int(kind == "autoregressive_gaussian"))
    model = of(FAMILIES[kind], allocation, source)
    return model, source, one_cluster(model)


def of(family, allocation, source):
    X, weights = source.take(np.arange(source.n_rows))
    return Model(family.resolve(Sample.of(X[weights > 0.0])), ALLOCATIONS.get(allocation, allocation), SEQUENCES)


def random_start(model, source, K, seed):
    """States to which rows belong at random."""
    X, weights = source.take(np.arange(source.n_rows))
    R = np.random.default_rng(seed).dirichlet(np.ones(K), len(X)) * weights[:, None]
    T = features(model.likelihood, X)
    return SEQUENCES.start(Summary(R.sum(0), np.asarray((T.T @ R).T), np.zeros(K), np.zeros(())))


def search(model, source, start, moves=MOVES, n_batches=1, n_jobs=1, max_laps=18, learn=LEARN, seed=0, tol=1e-6):
    with Threads(n_jobs) as threads:
        options = Options(n_batches, max_laps, tol, True, learn, check=True)
        found = StateSearch(model, source, moves, Session(threads), np.random.default_rng(seed), options)
        found.run(start)
    return found


def laps(model, source, start, moves=(), n_batches=1, n_jobs=1, max_laps=25, learn=(), seed=0, accelerate=True):
    rng = np.random.default_rng(seed)
    with Threads(n_jobs) as threads:
        options = Options(n_batches, max_laps, 1e-9, accelerate, learn, check=True)
        found = Laps(model, source, Schedule(moves, model.kind.recipe), Session(threads), rng, options)
        found.run(start)
    return found


def assert_rises(found, source):
    """A search: its history, its gains, and a bound that is what its model and its summary say."""
    assert len(found.history) <= found.options.max_laps
    bounds = np.array([lap.lower_bound for lap in found.history])
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    for lap in found.history:
        for record in lap.moves:
            assert all(gain >= -0.011 for gain in record.gains)
            assert record.accepted <= 1
    outcome = found.outcome if isinstance(found, StateSearch) else found
    total, model = outcome.total, outcome.model
    assert model.bound(total) == outcome.bound
    assert total.N.sum() == pytest.approx(source.total_weight, rel=1e-9)
    assert total.M.sum() == pytest.approx(source.n_rows - source.n_sequences, rel=1e-9, abs=1e-9)
    assert total.begins.sum() == pytest.approx(source.n_sequences, rel=1e-9)
    assert model.allocation.max_clusters >= total.K
    for values in (total.N, total.S, total.H, total.M, total.begins):
        assert np.isfinite(values).all()


@every
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_bound_never_falls(kind, allocation, turn):
    """`check` compares the exact bound after every batch, lap and move."""
    model, source, start = problem(kind, allocation, 1)
    assert_rises(search(model, source, start, n_batches=(1, 3)[turn % 2]), source)


@every
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_bound_never_falls_from_many_states(kind, allocation):
    """Where merges and deletes have much to do, with and without extrapolation."""
    model, source, _ = problem(kind, allocation, 2, missing=0.1 if "ar" not in kind else 0.0)
    accelerate = kind not in ("gaussian", "bernoulli")
    start = random_start(model, source, 6, 3)
    found = laps(model, source, start, MOVES, 2, max_laps=15, learn=LEARN, accelerate=accelerate)
    assert_rises(found, source)


@pytest.mark.parametrize(("kind", "allocation"), [("poisson", "finite"), ("bernoulli", "finite")])
def test_excursions_within_excursions_lose_nothing(kind, allocation):
    """What the first ascent of a pair has found counts when both together are judged."""
    model, source, start = problem(kind, allocation, 1)
    for n_batches in (1, 3):
        assert_rises(search(model, source, start, n_batches=n_batches, max_laps=80), source)


def test_no_ascent_ends_before_moves_were_tried():
    """Also where all laps are quiet while states settle, or gain less than the tolerance and still more than a share."""
    model, source, _ = problem("diagonal_gaussian", "hdp", 2)
    start = random_start(model, source, 6, 3)
    rng = np.random.default_rng(0)
    with Threads(1) as threads:
        schedule = Schedule(("merge", "delete"), model.kind.recipe)
        found = Laps(model, source, schedule, Session(threads), rng, Options(tol=1e6, moved=1.0), settle=4)
        found.most_quiet = 2
        found.run(start)
    assert any(record.tried for lap in found.history for record in lap.moves)


def test_moves_of_states_wait_after_a_lap_in_which_none_of_their_kind_paid(monkeypatch):
    """Where moves never pay and are never given up."""
    monkeypatch.setattr(moves_of_laps, "verify_whole", lambda *_: NOTHING)
    monkeypatch.setattr(Schedule, "_fail", lambda *_: None)
    monkeypatch.setattr(ending, "_changed_little", lambda *_: False)
    model, source, _ = problem("diagonal_gaussian", "hdp", 2)
    start = random_start(model, source, 6, 3)
    with Threads(1) as threads:
        schedule = Schedule(("merge", "delete"), model.kind.recipe, pause=3)
        options = Options(max_laps=40, tol=1e-12)
        found = Laps(model, source, schedule, Session(threads), np.random.default_rng(0), options)
        found.run(start)
    for kind in ("merge", "delete"):
        laps = [{record.kind: record.tried for record in lap.moves} for lap in found.history]
        tried = [i for i, moves in enumerate(laps) if moves.get(kind, 0) > 0]
        waits = np.diff(tried)
        assert len(waits) > 1
        assert waits.min() > 3


@every
def test_blocks_without_a_row_that_is_observed(allocation):
    """Of a hundred rows three are left."""
    X = np.full((100, 2), np.nan)
    X[[3, 4, 60]] = [[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]]
    source = SequenceSource(X, np.array([100]))
    model = of(DiagonalGaussian(), allocation, source)
    for seed in range(3):
        assert_rises(search(model, source, one_cluster(model), seed=seed, max_laps=40), source)


@every
def test_missing_rows_and_sequences_of_one_step(allocation):
    lengths = [1] * 12 + [30, 2, 20]
    for missing in (0.5, 0.95):
        model, source, start = problem("gaussian", allocation, 4, lengths, missing)
        assert_rises(search(model, source, start, n_batches=3), source)
    model, source, start = problem("poisson", allocation, 4, [1] * 40)
    assert_rises(search(model, source, start, n_batches=3), source)


@every
def test_a_chain_that_repeats_itself(allocation):
    """Three states in turn, in short sequences and a long one."""
    lengths = [90, 1, 2, 30]
    z = np.concatenate([np.arange(n) % 3 for n in lengths])
    X = np.random.default_rng(0).normal(20.0 * np.eye(3)[z], 1.0)
    source = SequenceSource(X, np.array(lengths))
    model = of(Gaussian(), allocation, source)
    found = search(model, source, one_cluster(model), n_batches=2, max_laps=40)
    assert_rises(found, source)
    assert found.total.K == 3
    means = found.found.allocation.means(found.total)
    assert (means[1:].max(axis=1) > 0.85).all()
    assert sorted(means[1:].argmax(axis=1)) == [0, 1, 2]
    assert (means[1:].argmax(axis=1) != np.arange(3)).all()


@every
def test_rows_that_are_all_the_same(allocation):
    source = SequenceSource(np.ones((60, 2)), np.array([40, 20]))
    model = of(Bernoulli(), allocation, source)
    found = search(model, source, one_cluster(model), max_laps=40)
    assert_rises(found, source)
    assert allocation == "finite" or found.total.K == 1  # equal states share the first states of a finite chain
    for K in (1, 4):
        assert_rises(laps(model, source, random_start(model, source, K, 0), MOVES, learn=LEARN), source)


@every
@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
def test_a_mixture_is_a_chain_of_single_rows(kind, allocation):
    """Sequences of one row have first states alone: no transition is counted."""
    model, source, _ = problem(kind, allocation, 5, [1] * 60)
    found = laps(model, source, random_start(model, source, 3, 1))
    assert (found.total.M == 0.0).all()
    np.testing.assert_allclose(found.total.begins, found.total.N, rtol=1e-9)


@every
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_threads_change_nothing(kind, allocation, monkeypatch):
    monkeypatch.setattr(data, "STEPS", 30)
    model, source, start = problem(kind, allocation, 6)
    one, two = (search(model, source, start, n_batches=2, n_jobs=n) for n in (1, 2))
    for a, b in zip(one.history, two.history, strict=True):
        assert a.lower_bound == b.lower_bound
        assert a.explored_bound == b.explored_bound
        assert a.moves == b.moves
    for name in ("N", "S", "H", "M", "begins"):
        np.testing.assert_array_equal(getattr(one.total, name), getattr(two.total, name))
    assert one.found.allocation == two.found.allocation


@every
def test_parts_of_long_sequences_change_no_bound(allocation, monkeypatch):
    model, source, _ = problem("gaussian", allocation, 7, [300, 20, 1])
    start = random_start(model, source, 4, 1)
    whole = laps(model, source, start, MOVES, 2, learn=LEARN, max_laps=10)
    monkeypatch.setattr(data, "STEPS", 40)
    parts = laps(model, source, start, MOVES, 2, learn=LEARN, max_laps=10, n_jobs=2)
    assert_rises(parts, source)
    for one, other in zip(parts.history, whole.history):  # later, rounding alone decides when a fit ends
        assert one.lower_bound == pytest.approx(other.lower_bound, rel=1e-9)


# Evidence --------------------------------------------------------------------------------------------------------------


def polya(n, a):
    """Log probability of a sequence of draws with counts n (..., K) under Dirichlet(a)."""
    return (gammaln(a + n) - gammaln(a)).sum(-1) + gammaln(a.sum(-1)) - gammaln(a.sum(-1) + n.sum(-1))


def transitions(z, lengths, K):
    """Counts of first states (K,) and of transitions (K, K)."""
    begins, M, t = np.zeros(K), np.zeros((K, K)), 0
    for n in lengths:
        begins[z[t]] += 1.0
        np.add.at(M, (z[t : t + n - 1], z[t + 1 : t + n]), 1.0)
        t += n
    return begins, M


def marginals(model, source):
    """Log marginal likelihood of every set of rows; sets are binary numbers."""
    X, weights = source.take(np.arange(source.n_rows))
    T = features(model.likelihood, X)
    T = np.asarray(T.toarray() if hasattr(T, "toarray") else T) * weights[:, None]
    member = np.array(list(product([0.0, 1.0], repeat=len(X))))
    return model.likelihood.log_marginal(member @ weights, member @ T), weights @ model.likelihood.log_base(X)


def log_evidence(model, source, lengths):
    """Of a finite chain: all paths through all of its states."""
    prior, n = model.allocation, model.allocation.n_states
    of_set, base = marginals(model, source)
    place, terms = 2 ** np.arange(source.n_rows)[::-1], []
    a = np.full((n, n), prior.transition_concentration / n) + prior.stickiness * np.eye(n)
    for z in product(range(n), repeat=source.n_rows):
        z = np.array(z)
        begins, M = transitions(z, lengths, n)
        log_p = polya(begins, np.full(n, prior.start_concentration / n)) + polya(M, a).sum()
        terms.append(log_p + of_set[np.bincount(z, place, n).astype(int)].sum())
    return logsumexp(terms) + base


def short(kind, allocation, seed, lengths, K, missing=0.0):
    """A model with a prior from other rows, and a few rows."""
    rng = np.random.default_rng(seed)
    known = rows(kind, rng, states(rng, [40]))
    X = known[rng.choice(40, sum(lengths))].copy()
    X[rng.random(len(X)) < missing] = np.nan
    X[0] = known[0]
    source = SequenceSource(X, np.array(lengths), 1 if kind == "autoregressive_gaussian" else 0)
    family = of(FAMILIES[kind], allocation, SequenceSource(known, np.array([40]), source.lags)).likelihood
    model = Model(family, allocation, SEQUENCES)
    return model, source, random_start(model, source, K, seed)


@pytest.mark.parametrize("kind", FAMILIES)
@given(
    seed=SEEDS,
    lengths=st.sampled_from([[4], [3], [2, 2], [1, 3], [1, 1, 1]]),
    n=st.integers(1, 3),
    kappa=st.sampled_from([0.0, 0.5, 10.0]),
    missing=st.sampled_from([0.0, 0.3]),
)
@settings(max_examples=5)
def test_the_bound_of_the_finite_chain_is_below_the_enumerated_evidence(kind, seed, lengths, n, kappa, missing):
    lengths = [max(x, 2) for x in lengths][:2] if kind == "autoregressive_gaussian" else lengths
    prior = FiniteMarkovChain(n, 2.0, kappa, 1.5)
    model, source, start = short(kind, prior, seed, lengths, n, 0.0 if kind.startswith("auto") else missing)
    exact = log_evidence(model, source, lengths)
    found = laps(model, source, start, MOVES, max_laps=20)
    assert found.bound <= exact + 1e-9 * (1.0 + abs(exact))
    if n == 1:
        assert found.bound == pytest.approx(exact, rel=1e-10)


def test_the_enumeration_is_a_distribution():
    """Without rows that say anything, the evidence is one."""
    for kappa, lengths in product([0.0, 3.0], [[4], [1, 3]]):
        model, source, start = short("gaussian", FiniteMarkovChain(3, 2.0, kappa), 0, lengths, 2)
        source.X[:], source.weights = 0.0, np.zeros(source.n_rows)
        assert log_evidence(model, source, lengths) == pytest.approx(0.0, abs=1e-10)
        assert laps(model, source, start).bound <= 1e-9


def simulated(prior, lengths, draws, rng, sticks=40):
    """Paths (draws, T) from the prior, row by row of the urns given the shares of all states."""
    u = rng.beta(1.0, prior.concentration, (draws, sticks))
    beta = u * np.cumprod(np.column_stack([np.ones(draws), 1.0 - u[:, :-1]]), axis=1)
    every_draw, eye = np.arange(draws), np.eye(sticks)
    z, begun, seen, t = np.zeros((draws, sum(lengths)), int), np.zeros((draws, sticks)), [], 0
    for n in lengths:
        for i in range(n):
            if i == 0:
                p = prior.start_concentration * beta + begun
            else:
                p = prior.transition_concentration * beta + prior.stickiness * eye[z[:, t - 1]]
                for s in seen:
                    p[every_draw, z[:, s]] += z[:, s - 1] == z[:, t - 1]
                seen.append(t)
            c = p.cumsum(axis=1)
            z[:, t] = (rng.random(draws)[:, None] * c[:, -1:] > c).sum(axis=1)
            begun[every_draw, z[:, t]] += i == 0
            t += 1
    return z


@pytest.mark.parametrize("kappa", [0.0, 0.5, 5.0])
@pytest.mark.parametrize(("kind", "lengths"), [("gaussian", [5]), ("categorical", [2, 1, 3]), ("poisson", [1, 1, 1])])
def test_the_bound_of_the_process_is_below_the_evidence(kind, lengths, kappa):
    """The evidence by simulation of sticks and states, which the rows weigh exactly."""
    prior, draws, rng = HDPMarkovChain(1.2, kappa, 1.5, 0.8), 20_000, np.random.default_rng(0)
    model, source, _ = short(kind, prior, 3, lengths, 2)
    of_set, base = marginals(model, source)
    z, place = simulated(prior, lengths, draws, rng), 2 ** np.arange(source.n_rows)[::-1]
    sets = np.stack([((z == z[:, [t]]) * place).sum(axis=1) for t in range(source.n_rows)], axis=1)
    begins_set = np.array([[(z[:, t] != z[:, s]) for s in range(t)] for t in range(source.n_rows)], dtype=object)
    fresh = np.stack([np.all(np.array([True * np.ones(draws, bool), *d]), axis=0) for d in begins_set], axis=1)
    weights = (of_set[sets] * fresh).sum(axis=1) + base
    evidence, p = logsumexp(weights) - np.log(draws), np.exp(weights - weights.max())
    error = 4.0 * p.std() / p.mean() / np.sqrt(draws)
    best = -np.inf
    for K in (1, 2, 3):
        found = laps(model, source, random_start(model, source, K, K), MOVES, learn=())
        assert found.bound <= evidence + error
        best = max(best, found.bound)
    assert best > evidence - 5.0


@pytest.mark.parametrize("kind", ["gaussian", "categorical", "poisson"])
@pytest.mark.parametrize("transition", [1e-3, 1.0, 1e6])
def test_extreme_concentrations_never_lower_the_bound(kind, transition, turn):
    """Both chains; every extreme of start and stickiness with one kind; concentrations are learnt in half of the fits."""
    extremes = (1e-3, 1.0, 1e6)
    for i, (start, kappa) in enumerate(product(extremes, repeat=2)):
        if sum(divmod(i, 3), turn) % 3:
            continue
        chain = (
            HDPMarkovChain(transition, kappa, start, 1.0)
            if i % 4 < 2
            else FiniteMarkovChain(5, transition, kappa, start)
        )
        model, source, first = problem(kind, chain, seed=i, lengths=[1, 40, 7, 25, 2])
        found = search(model, source, first, max_laps=6, learn=LEARN if i % 2 else ())
        assert np.isfinite(found.result.model.bound(found.result.total))
