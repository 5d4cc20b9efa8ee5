"""Blocked Gibbs sampling of hidden Markov models against posteriors summed over all paths."""

import pickle
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp, roots_jacobi
from sklearn.metrics import adjusted_rand_score

import stickbreak
from partitions import expected_distance, probabilities
from stickbreak import HMM
from stickbreak.allocations import FiniteMarkovChain, GammaConcentration, HDPMarkovChain
from stickbreak.data import Chunk, SequenceSource
from stickbreak.estimators._sequences import collapsed
from stickbreak.inference import Gibbs
from stickbreak.inference.samplers.chain import ChainStart, ChainTask
from stickbreak.inference.samplers.states import STATES, StateSteps
from stickbreak.likelihoods import Bernoulli, GaussianNetwork, Sample
from stickbreak.model import SEQUENCES, Model, messages, potentials
from stickbreak.model.paths import drawn_path

COIN = Bernoulli(1.0, 0.6).resolve(Sample.of(np.array([[0.0], [1.0]])))
STICKY = HDPMarkovChain(1.5, 0.8, 2.0, 1.2)
N_STATES = 3
LENGTHS = [3, 2]
X = np.array([[1.0], [1.0], [np.nan], [0.0], [1.0]])
PATHS = np.array(list(product(range(N_STATES), repeat=5)))


def of_sequences(allocation, X=X, lengths=LENGTHS):
    model = Model(COIN, allocation, SEQUENCES)
    return STATES.table(model, SequenceSource(X, np.array(lengths)))


def by_appearance(path):
    seen = dict.fromkeys(path.tolist())
    return tuple(list(seen).index(k) for k in path.tolist())


def log_path(path, beta, chain):
    """Log probability of a path through both sequences given shares (..., 3), step by step from the urns of all rows."""
    counts, total = np.zeros((4, 3)), 0.0
    for a, b in pairwise(np.cumsum([0, *LENGTHS])):
        last = 0
        for k in path[a:b]:
            alpha = chain.transition_concentration if last else chain.start_concentration
            weights = alpha * beta + counts[last] + chain.stickiness * (np.arange(1, 4) == last)
            total += np.log(weights[..., k] / weights.sum(axis=-1))
            counts[last, k] += 1.0
            last = k + 1
    return total


def shares_of_three(gamma, n=4):
    """Shares (n^2, 3) with weights, exact for Dirichlet(gamma / 3, ...) means of polynomials of degree 2 n - 1."""
    a = gamma / 3.0
    (x, p), (y, q) = (roots_jacobi(n, b - 1.0, a - 1.0) for b in (2.0 * a, a))
    u, v = ((z + 1.0) / 2.0 for z in (x, y))
    beta = np.stack(np.broadcast_arrays(u[:, None], (1 - u[:, None]) * v, (1 - u[:, None]) * (1 - v)), axis=-1)
    weights = np.outer(p / p.sum(), q / q.sum())
    return beta.reshape(-1, 3), weights.ravel()


def log_prior(chain, gamma=None):
    """Log probability of every path, shares integrated out."""
    if isinstance(chain, FiniteMarkovChain):
        return np.array([log_path(z, np.full(3, 1.0 / 3.0), chain) for z in PATHS])
    beta, weights = shares_of_three(chain.concentration if gamma is None else gamma)
    return logsumexp(np.array([log_path(z, beta, chain) for z in PATHS]) + np.log(weights), axis=1)


def log_data(path):
    """Log probability of the rows of a path, by Polya urns."""
    total, ones, n = 0.0, np.zeros(N_STATES), np.zeros(N_STATES)
    for k, x in zip(path, X[:, 0]):
        if not np.isnan(x):
            p = (1.0 + ones[k]) / (1.6 + n[k])
            total += np.log(p if x else 1.0 - p)
            ones[k] += x
            n[k] += 1.0
    return total


def by_partition(log_joint):
    """Partitions of the rows, and their probabilities."""
    p = probabilities(log_joint)
    found = dict.fromkeys(map(by_appearance, PATHS), 0.0)
    for z, chance in zip(PATHS, p):
        found[by_appearance(z)] += chance
    return list(found), np.array(list(found.values()))


@pytest.mark.parametrize(
    "chain", [STICKY, HDPMarkovChain(0.7, 0.0, 0.5, 2.0), FiniteMarkovChain(3, 2.0, 0.8, 1.5)], ids=str
)
def test_states_are_drawn_from_the_posterior(chain):
    """The distance from the posterior over all paths, up to labels, is that of a third as many independent draws, at most."""
    partitions, p = by_partition(log_prior(chain) + np.array([log_data(z) for z in PATHS]))
    assert p.max() < 0.5
    n_draws = 1500
    task = ChainTask(of_sequences(chain), partial(StateSteps.begin, N_STATES), 20, n_draws)
    drawn = task(ChainStart(np.zeros(5, np.int64), 1))
    found = np.bincount([partitions.index(tuple(z)) for z in drawn.labels.tolist()], minlength=len(p)) / n_draws
    assert 0.5 * np.abs(found - p).sum() < expected_distance(p, n_draws / 3)
    np.testing.assert_array_equal(drawn.n_clusters, drawn.labels.max(axis=1) + 1)


@pytest.mark.long
def test_a_concentration_with_a_prior_is_drawn_along():
    """Its posterior mean against a grid of concentrations, each with the evidence of all paths."""
    prior, n_draws = GammaConcentration(2.0, 1.0), 1200
    grid = np.exp(np.linspace(-6.0, 3.0, 41))
    data = np.array([log_data(z) for z in PATHS])
    log_p = stats.gamma(2.0).logpdf(grid) + np.log(grid)
    p = probabilities(log_p + [logsumexp(log_prior(STICKY, c) + data) for c in grid])
    task = ChainTask(
        of_sequences(replace(STICKY, concentration=prior)), partial(StateSteps.begin, N_STATES), 20, n_draws
    )
    drawn = task(ChainStart(np.zeros(5, np.int64), 1)).concentration
    for values, mean in ((drawn, p @ grid), (np.log(drawn), p @ np.log(grid))):
        blocks = values.reshape(20, -1).mean(axis=1)
        assert abs(values.mean() - mean) < 3.5 * blocks.std(ddof=1) / np.sqrt(20)
    assert p @ grid != pytest.approx(prior.mean, rel=0.005)


def test_the_chance_of_shares_agrees_with_urns():
    rng = np.random.default_rng(0)
    steps = StateSteps.begin(N_STATES, of_sequences(STICKY), np.array([0, 1, 1, 2, 0]))
    for _ in range(5):
        steps.step(rng)
        z, beta = steps.labels, steps.transitions.shares
        assert beta.sum() == pytest.approx(1.0)
        assert steps.partition.log_joint == pytest.approx(log_path(z, beta, STICKY) + log_data(z), rel=1e-12)


@pytest.mark.long
def test_the_sampler_leaves_the_joint_distribution_of_rows_states_and_shares_as_it_is():
    """Geweke (2004): rows drawn given states, then shares and states given rows, in turn, go on as the prior does."""
    rng, rounds, L = np.random.default_rng(5), 2000, 3
    lengths = [3, 1]
    steps = StateSteps.begin(L, of_sequences(STICKY, np.ones((4, 1)), lengths), np.zeros(4, np.int64))
    found = np.empty((rounds, 5))
    for r in range(rounds):
        rows = np.empty((4, 1))
        for k in range(L):
            N, S = 0.0, np.zeros(1)
            for t in np.flatnonzero(steps.labels == k):
                rows[t] = COIN.sample(N, S, rng, 1)[0]
                N, S = N + 1.0, S + rows[t]
        steps = StateSteps(
            table := of_sequences(STICKY, rows, lengths), steps.labels, steps.transitions, table.total(steps.labels)
        )
        steps.total = steps.total.insert_empty(L - steps.total.K)
        steps.step(rng)
        z, beta = steps.labels, steps.transitions.shares
        found[r] = (beta**2).sum(), z[0] == z[1], z[0] == z[3], z[0] == z[2], rows[0, 0] == rows[3, 0]
    square = (STICKY.concentration / L + 1.0) / (STICKY.concentration + 1.0)  # E[sum beta_k^2]
    alpha, kappa, first = STICKY.transition_concentration, STICKY.stickiness, STICKY.start_concentration
    stays = (alpha * square + kappa) / (alpha + kappa)
    begins_alike = (first * square + 1.0) / (first + 1.0)
    alike, apart = (1.0 * 2.0 + 0.6 * 1.6) / (1.6 * 2.6), (1.0 + 0.6**2) / 1.6**2
    expected = [square, stays, begins_alike, None, begins_alike * alike + (1.0 - begins_alike) * apart]
    for values, mean in zip(found.T, expected):
        if mean is not None:
            blocks = values.reshape(40, -1).mean(axis=1)
            error = max(blocks.std(ddof=1) / np.sqrt(40), values.std() / np.sqrt(rounds))
            assert abs(values.mean() - mean) < 3.5 * error


def test_paths_are_the_same_whatever_is_kept_of_the_messages(monkeypatch):
    """In blocks of few rows, with messages computed twice, the same random numbers draw the same path."""
    rng = np.random.default_rng(0)
    rows = (rng.random((700, 1)) < 0.5).astype(float)
    source = SequenceSource(rows, np.array([400, 1, 299]))
    table = STATES.table(Model(COIN, STICKY, SEQUENCES), source)
    total = table.total(np.repeat([0, 1, 2], [300, 300, 100]))
    parameters = Model(COIN, STICKY, SEQUENCES).parameters(total, np.dtype(float))
    uniform = rng.random(700)
    whole, parts = np.empty((2, 700), np.int64)
    for path, size, kept in ((whole, 1 << 19, 1 << 24), (parts, 1, 0)):
        monkeypatch.setattr(messages, "BLOCK", size)
        monkeypatch.setattr(messages, "KEPT", kept)
        prepared = potentials.prepared_for(COIN, parameters, source)
        drawn_path(COIN, prepared, source.read(Chunk(0, 700))[0], uniform, path)
    np.testing.assert_array_equal(whole, parts)
    assert len(np.unique(whole)) == 3


def test_shares_follow_the_transitions_that_were_drawn_from_them():
    """The mean share, from the distribution of the number of transitions that were drawn from the shares."""
    chain = HDPMarkovChain(2.0, 3.0, 1.0, 1.0)
    now = chain.transitions(2)
    counted = np.array([[1.0, 0.0], [0.0, 4.0], [0.0, 5.0]])
    rng = np.random.default_rng(0)
    drawn = np.array([chain.with_drawn_shares(now, counted, rng).shares[0] for _ in range(4000)])
    chances = np.ones(1)  # of the number for the second state; that for the first is one
    for p in [*(1.0 / (1.0 + i) for i in range(4)), *(0.25 * 4.0 / (4.0 + i) for i in range(5))]:
        chances = np.convolve(chances, [1.0 - p, p])
    mean = chances @ (1.5 / (2.0 + np.arange(len(chances))))
    assert abs(drawn.mean() - mean) < 4.0 * drawn.std() / np.sqrt(4000)
    rows = np.exp([now.draw_log_rows(counted, rng) for _ in range(4000)])
    np.testing.assert_allclose(rows.sum(axis=2), 1.0)
    expected = (counted + now.prior) / (counted + now.prior).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rows.mean(axis=0), expected, atol=0.02)


def rows_of_states(seed=0):
    """Three states that last, two sequences, some rows missing."""
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.permutation(np.arange(12) % 3), 12)
    rows = rng.normal(6.0 * z[:, None], 1.0, (len(z), 2))
    rows[rng.random(len(z)) < 0.05] = np.nan
    return rows, z


def fitted(rows, n_jobs=1, **parameters):
    algorithm = parameters.pop("algorithm", Gibbs(30, 30, 2, kind="blocked", truncation=10))
    return HMM("gaussian", algorithm=algorithm, random_state=3, n_jobs=n_jobs, **parameters).fit(rows, lengths=[70, 74])


@pytest.fixture(scope="module")
def model():
    return fitted(rows_of_states()[0])


def test_the_model_is_that_of_the_nearest_partition(model):
    rows, z = rows_of_states()
    assert model.draws_["labels"].shape == (2, 30, 144)
    assert adjusted_rand_score(model.labels_, model.draws_.nearest_partition()) == 1.0
    assert (np.diff(model.summary_.N) <= 0.0).all()
    assert model.n_states_ == 3
    assert adjusted_rand_score(model.labels_, z) > 0.9
    np.testing.assert_allclose(model.transition_matrix_.sum(axis=1), 1.0)
    assert model.lower_bound_ == pytest.approx(model.model_.bound(model.summary_))
    laps = HMM(model.model_.likelihood, init=model.labels_, moves=(), learn=False, random_state=0, max_laps=1)
    laps.set_params(allocation=model.model_.allocation)
    with pytest.warns(match="not converged"):
        laps.fit(rows, lengths=[70, 74])
    assert laps.lower_bound_ >= model.lower_bound_ - 1e-6  # a lap from these states never lowers the bound
    assert model.summary_.transitions.sum() == 144
    assert model.summary_.N.sum() == (~np.isnan(rows[:, 0])).sum()
    assert set(model.draws_.convergence()) <= {"n_clusters", "log_joint"}


def test_draws_are_the_same_whatever_the_threads(model):
    again = fitted(rows_of_states()[0], n_jobs=2)
    for name in model.draws_:
        np.testing.assert_array_equal(again.draws_[name], model.draws_[name])


def test_repeated_rows_are_looked_up():
    """The scores of distinct rows, made once, draw the same states."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([(rng.random(60) < 0.5).astype(float)])
    rows[[4, 50]] = np.nan
    plain = SequenceSource(rows, np.array([40, 20]))
    model = Model(COIN, STICKY, SEQUENCES)
    tasks = [
        ChainTask(STATES.table(model, source), partial(StateSteps.begin, 4), 0, 10)
        for source in (plain, collapsed(plain))
    ]
    drawn = [pickle.loads(pickle.dumps(task))(ChainStart(np.arange(60) % 3, 7)) for task in tasks]
    np.testing.assert_array_equal(drawn[0].labels, drawn[1].labels)
    np.testing.assert_allclose(drawn[0].log_joint, drawn[1].log_joint, rtol=1e-12)
    assert drawn[0].n_clusters.max() > 1


def test_a_finite_chain_has_its_number_of_states():
    rows, z = rows_of_states()
    finite = fitted(rows, algorithm=Gibbs(15, 25, 2, kind="blocked"), allocation="finite", n_init_states=4, learn=False)
    assert finite.draws_["n_clusters"].max() <= 4
    assert adjusted_rand_score(finite.labels_, z) > 0.9


def test_a_sampled_model_can_be_saved(model, tmp_path):
    model.save(tmp_path / "model")
    again = stickbreak.load(tmp_path / "model")
    assert again.algorithm == model.algorithm
    rows = rows_of_states()[0]
    np.testing.assert_array_equal(again.predict(rows, lengths=[70, 74]), model.predict(rows, lengths=[70, 74]))


def test_what_cannot_be_sampled_is_refused():
    rows = rows_of_states()[0][:70]
    rows = rows[~np.isnan(rows[:, 0])]
    with pytest.raises(ValueError, match='kind must be "blocked" for algorithm=Gibbs'):
        HMM("gaussian", algorithm=Gibbs(5, 5, 1)).fit(rows)
    with pytest.raises(ValueError, match="needs the marginal likelihood of a cluster"):
        HMM("dirichlet", algorithm=Gibbs(5, 5, 1, kind="blocked")).fit(
            np.random.default_rng(0).dirichlet(np.ones(3), 30)
        )
    with pytest.raises(TypeError, match="draws no parameters"):
        HMM(GaussianNetwork(), algorithm=Gibbs(5, 5, 1, kind="blocked"), learn=False).fit(rows)
