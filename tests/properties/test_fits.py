"""What every fit promises, whatever the likelihood, the allocation and the algorithm."""

import os
import pickle
import subprocess
import sys
import warnings
from functools import reduce

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture, TopicModel
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.data import ArraySource
from stickbreak.inference import Options, RowSearch, Session, Stochastic, Threads, lap
from stickbreak.inference.init import one_cluster
from stickbreak.model import Model, Summary

MOVES = ("birth", "merge", "delete")
KINDS = ("clusters", "overlapping", "outliers", "duplicates")
ALGORITHMS = {
    "full": {"algorithm": "full"},
    "memoized": {"algorithm": "memoized", "n_batches": 3},
    "stochastic": {"algorithm": Stochastic(1.0, 0.9), "n_batches": 4, "tol": 1e-4, "max_laps": 100},
}
FAMILIES = (  # what they have in common is tested on all of them elsewhere; whole fits take long
    "gaussian-given",
    "zero_mean_gaussian-default",
    "diagonal_gaussian-missing",
    "student_t-given",
    "background-given",
    "categorical-many_levels",
    "multinomial-default",
    "product-missing",
)
TWO_FAMILIES = ("gaussian-default", "product-missing")
two_families = pytest.mark.parametrize("family", TWO_FAMILIES, indirect=True)
every_kind = pytest.mark.parametrize("kind", KINDS)
# Each kind with one of two families, and with the other.
kinds_in_turn, kinds_in_other_turn = (
    pytest.mark.parametrize(
        ("family", "kind"), [(TWO_FAMILIES[(i + first) % 2], kind) for i, kind in enumerate(KINDS)], indirect=["family"]
    )
    for first in (0, 1)
)
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, known_families):
    return known_families[request.param]


ALLOCATIONS = (DirichletProcess(1.0), FiniteDirichlet(8, 3.0))


@pytest.fixture(scope="module", params=ALLOCATIONS, ids=["dp", "finite"])
def allocation(request):
    return request.param


@pytest.fixture
def turning_allocation(turn):
    """Takes turns with every other parameter: for fits to the end, which take long."""
    return ALLOCATIONS[turn % 2]


def rows(family, kind, seed, n=180):
    """Data of four difficulties made of a family's rows, so that they suit every likelihood."""
    rng, D = np.random.default_rng(seed), 6 if family.name in ("categorical", "multinomial") else 2
    X = family.rows(rng, n, D)
    if kind == "overlapping":
        return rng.permuted(X, axis=0)  # each column by itself
    if kind == "outliers":
        far = np.where(rng.random((n, 1)) < 0.05, 30.0 * X, X)
        X = np.where(family.likelihood(X).valid(far), far, X)  # codes stay
    if kind == "duplicates":
        return X[rng.integers(n // 8, size=n)]
    return X


def search(model, X, weights=None, n_batches=1, moves=MOVES, seed=0, start=None, n_jobs=1, **options):
    """A search with the bound checked after every step."""
    options = Options(n_batches=n_batches, check=True, **{"max_laps": 150, **options})
    with Threads(n_jobs) as threads:
        found = RowSearch(model, ArraySource(X, weights), moves, Session(threads), np.random.default_rng(seed), options)
        found.run(one_cluster(model) if start is None else start)
    return found


def fit(family, X, weights=None, **parameters):
    """An estimator fitted from fixed seeds; runs may stop before they converge."""
    defaults = {"likelihood": family.make(X.shape[1]), "n_jobs": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(**{**defaults, **parameters}).fit(X, sample_weight=weights)


def state(estimator):
    """Everything a fit found, for comparison bit for bit."""
    s = estimator.summary_
    arrays = [a.tobytes() for a in (s.N, s.S, s.H, s.base, estimator.weights_, estimator.labels_)]
    return (
        arrays,
        pickle.dumps(estimator.posterior_),
        estimator.lower_bounds_,
        [lap.moves for lap in estimator.history_],
    )


def assert_same_model(naive, one, other):
    """Two fits found the same optimum: the bound is flat there, so parameters agree to the root of its tolerance."""
    assert one.n_clusters_ == other.n_clusters_
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-8)
    arrays = (naive.leaves((found.weights_, found.posterior_)) for found in (one, other))
    for a, b in zip(*arrays, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4 * np.abs(b).max())


# The bound


@every_kind
def test_the_bound_never_decreases(family, turning_allocation, kind, turn):
    allocation = turning_allocation
    n_batches, dtype = [(1, np.float64), (3, np.float64), (3, np.float32)][turn % 3]
    X = rows(family, kind, seed=KINDS.index(kind), n=90).astype(dtype)
    if isinstance(allocation, DirichletProcess) and n_batches == 3:
        allocation = PitmanYor(1.0, 0.3)  # laps are those of the Dirichlet process, with other sticks
    found = search(Model(family.likelihood(X.astype(float)), allocation), X, n_batches=n_batches, max_laps=60)
    bounds = np.array([lap.lower_bound for lap in found.history])
    assert np.isfinite(bounds).all()
    assert np.all(np.diff(bounds) >= -(1e-9 if dtype == np.float64 else 1e-6) * np.abs(bounds[1:]))
    assert found.outcome.bound == bounds[-1]
    assert found.outcome.total.K == found.history[-1].n_clusters <= allocation.max_clusters


def partitions(n):
    """Every partition of n rows as labels 0, 1, ... in order of appearance."""
    if n == 0:
        return [()]
    return [(*z, k) for z in partitions(n - 1) for k in range(len(set(z)) + 1)]


def log_evidence(model, X, T):
    """log p(X) = log sum over partitions of p(partition) prod over blocks of p(rows of the block)."""
    allocation, terms = model.allocation, []
    for z in partitions(len(X)):
        R = np.eye(max(z) + 1)[list(z)]
        N, gamma = R.sum(axis=0), allocation.concentration
        prior = gammaln(gamma) - gammaln(gamma + len(X))
        if not isinstance(allocation, FiniteDirichlet):
            d = getattr(allocation, "discount", 0.0)
            prior += np.log(gamma + d * np.arange(len(N))).sum() + (gammaln(N - d) - gammaln(1.0 - d)).sum()
        elif len(N) <= allocation.n_clusters:
            n, share = allocation.n_clusters, gamma / allocation.n_clusters
            prior += gammaln(n + 1) - gammaln(n - len(N) + 1) + (gammaln(N + share) - gammaln(share)).sum()
        else:
            continue
        terms.append(prior + model.likelihood.log_marginal(N, R.T @ T).sum())
    return logsumexp(terms) + model.likelihood.log_base(X).sum()


def test_the_bound_is_below_the_evidence(exact_family, naive, turn):
    prior = (DirichletProcess(0.5), FiniteDirichlet(3, 2.0), DirichletProcess(5.0), PitmanYor(0.5, 0.7))[turn % 4]
    algorithm = list(ALGORITHMS)[turn // 4 % len(ALGORITHMS)]
    parameters = {"init": "random", "n_init_clusters": 3, "max_laps": 30, **ALGORITHMS[algorithm]}
    for n in (1, 2, 5):
        X = rows(exact_family, "clusters", seed=n, n=30)[:n]
        found = fit(exact_family, X, allocation=prior, **parameters)
        exact = log_evidence(found.model_, X, naive.features(found.model_.likelihood, X))
        assert found.lower_bound_ <= exact + 1e-10 * (1.0 + abs(exact))


@pytest.mark.parametrize("init", ["labels", "k-means++"])
def test_more_clusters_than_the_prior_has_are_refused(family, init):
    """Else the bound would exceed the evidence."""
    X = rows(family, "clusters", seed=1, n=60)
    given = np.arange(60) % 6 if init == "labels" else init
    prior = FiniteDirichlet(2, 1.0)
    with pytest.raises(ValueError, match=r"init has [3-6] clusters, but the allocation has no more than 2"):
        fit(family, X, allocation=prior, init=given, n_init_clusters=6, moves=())


def test_a_fit_describes_its_data(family, turning_allocation, naive, turn):
    """The summary is that of whole rows, and one more plain lap from it raises the bound, by little."""
    algorithm = list(ALGORITHMS)[turn % len(ALGORITHMS)]
    kind = ("overlapping", "outliers")[turn // 2 % 2]
    X = rows(family, kind, seed=5, n=70)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], len(X))
    found = fit(family, X, weights, allocation=turning_allocation, **{"tol": 1e-8, **ALGORITHMS[algorithm]})
    model, total = found.model_, found.summary_
    T = naive.features(model.likelihood, X)
    assert total.N.sum() == pytest.approx(weights.sum(), rel=1e-12)
    if not family.latent:
        np.testing.assert_allclose(total.S.sum(axis=0), weights @ T, atol=1e-9 * np.abs(T).sum(axis=0).max())
    assert total.base == pytest.approx(weights @ model.likelihood.log_base(X), rel=1e-12)
    assert np.all(np.diff(total.N) <= 0.0)
    assert found.lower_bound_ == model.bound(total) == found.lower_bounds_[-1]
    assert found.n_laps_ == len(found.lower_bounds_) == len(found.history_)
    parameters = model.parameters(total, np.dtype(float))
    R, q = naive.responsibilities(model, parameters, X), naive.latent(model, parameters, X)
    np.testing.assert_allclose(found.predict_proba(X), R, atol=1e-10)
    np.testing.assert_array_equal(found.labels_, R.argmax(axis=1))
    gain = model.bound(naive.summarise(model.likelihood, X, R, weights, q)) - found.lower_bound_
    assert gain >= -1e-10 * abs(found.lower_bound_)
    if algorithm != "stochastic" and found.converged_:
        assert gain <= 1e-7 * abs(found.lower_bound_)


def test_laps_are_plain_variational_inference(family, allocation, naive):
    """Full-dataset laps without moves against the same steps on dense arrays."""
    X = rows(family, "overlapping", seed=3)
    model = Model(family.likelihood(X), allocation)
    R = np.random.default_rng(3).dirichlet(np.full(4, 0.3), len(X))
    total = naive.summarise(model.likelihood, X, R)
    start = total = model.ordered(total)
    bounds = []
    for _ in range(12):
        parameters = model.parameters(total, np.dtype(float))
        R = naive.responsibilities(model, parameters, X)
        total = naive.summarise(model.likelihood, X, R, q=naive.latent(model, parameters, X))
        total = model.ordered(total)
        bounds.append(model.bound(total))
    found = search(model, X, moves=(), start=start, tol=0.0, accelerate=False, max_laps=12)
    np.testing.assert_allclose([lap.lower_bound for lap in found.history], bounds, rtol=1e-10)
    naive.assert_same(found.outcome.total, total, rtol=1e-8)


# Batches, threads, order of rows, randomness


def test_one_batch_is_full_inference(family, turning_allocation):
    X = rows(family, "clusters", seed=2, n=100)
    common = {"allocation": turning_allocation, "max_laps": 15}
    full = fit(family, X, algorithm="full", n_batches=7, **common)
    assert state(full) == state(fit(family, X, algorithm="memoized", n_batches=1, **common))


def test_the_first_lap_does_not_depend_on_batches_or_order(family, allocation, naive):
    """All batches are visited with the starting parameters, so their summaries add up to the same."""
    X = rows(family, "overlapping", seed=4)
    labels, order = np.arange(len(X)) % 5, np.random.default_rng(1).permutation(len(X))
    common = {"allocation": allocation, "moves": (), "max_laps": 1}
    one = fit(family, X, algorithm="full", init=labels, **common)
    for n_batches in (2, 3, 7, 180, 1000):
        many = fit(family, X, n_batches=n_batches, init=labels, **common)
        naive.assert_same(many.summary_, one.summary_)
    naive.assert_same(fit(family, X[order], n_batches=3, init=labels[order], **common).summary_, one.summary_)


def test_batches_end_at_the_same_optimum(family, turning_allocation):
    X = rows(family, "clusters", seed=4, n=100)
    common = {"allocation": turning_allocation, "moves": (), "tol": 1e-12, "max_laps": 2000}
    start = fit(family, X, allocation=turning_allocation, algorithm="full", max_laps=60)
    one = fit(family, X, algorithm="full", init=start, **common)
    for n_batches in (2, 6):
        many = fit(family, X, n_batches=n_batches, init=start, **common)
        assert many.lower_bound_ == pytest.approx(one.lower_bound_, rel=1e-9)
        np.testing.assert_allclose(many.weights_, one.weights_, atol=1e-4)


@kinds_in_turn
def test_the_order_of_rows_changes_only_rounding(family, turning_allocation, naive, kind):
    """Also with moves: samples of clusters are drawn by what rows are, not by where they stand."""
    X = rows(family, kind, seed=6, n=120)
    order = np.random.default_rng(2).permutation(len(X))
    short = {"allocation": turning_allocation, "algorithm": "full", "max_laps": 60}
    one, other = (fit(family, data, **short) for data in (X, X[order]))
    assert_same_model(naive, one, other)
    np.testing.assert_array_equal(one.labels_[order], other.labels_)


@two_families
@every_algorithm
def test_threads_change_nothing(family, turning_allocation, algorithm):
    """Nor does fitting again: the seed decides everything, bit for bit."""
    X = rows(family, "outliers", seed=7, n=1300)  # batches of several chunks
    common = {"allocation": turning_allocation, **ALGORITHMS[algorithm], "max_laps": 12}
    one, two, many = (fit(family, X, n_jobs=n, random_state=np.random.RandomState(5), **common) for n in (1, 2, None))
    assert state(one) == state(two) == state(many)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_processes_find_the_same():
    """Whatever the hash seed of the process."""
    program = (
        "import numpy as np; from stickbreak import Mixture; X = np.random.default_rng(0).standard_t(3, (100, 2)); "
        "m = Mixture('gaussian', random_state=1, n_batches=3, n_jobs=2, tol=1.0, max_laps=30).fit(X); "
        "text = m.means_.tobytes().hex(), m.lower_bounds_"
    )
    here = {}
    exec(program, here)
    command, env = [sys.executable, "-c", program + "; print(text)"], {**os.environ, "PYTHONHASHSEED": "12345"}
    there = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == str(here["text"])


# Weights


@kinds_in_other_turn
def test_a_weight_is_a_number_of_copies(family, turning_allocation, naive, kind):
    """A row of weight 2 equals the row twice, a row of weight 0 none; from one cluster, with all moves."""
    X = rows(family, kind, seed=9, n=60)
    copies = np.random.default_rng(3).integers(kind == "duplicates", 4, len(X))  # no other order of the distinct rows
    common = {"allocation": turning_allocation, "algorithm": "full", "tol": 1e-9, "max_laps": 60}
    weighted = fit(family, X, copies, **common)
    repeated = fit(family, np.repeat(X, copies, axis=0), **common)
    assert_same_model(naive, weighted, repeated)
    np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, copies), repeated.labels_)


@pytest.mark.parametrize("weight", [1.0, 1e3, 1e6, 1e12])
def test_clusters_are_found_whatever_the_size_of_weights(weight):
    """A weight is no number of rows: heavy rows are few, but their clusters are as plain to see."""
    X, labels = blobs(np.random.default_rng(0), sizes=(60, 60, 60), width=0.01)
    options = {"random_state": 0, "n_jobs": 1, "max_laps": 30, "moves": ("birth",)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = Mixture("gaussian", **options).fit(X, sample_weight=np.full(len(X), weight))
    assert found.n_clusters_ >= 3
    assert all(len(set(labels[found.labels_ == k])) == 1 for k in set(found.labels_))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(2))
def test_few_heavy_rows_are_clusters_among_many_light_ones(seed):
    """Eight rows hold almost all the weight: births must see them, though they are few among the rows."""
    rng = np.random.default_rng(0)
    light, heavy = rng.normal(size=(12_000, 1)), np.repeat([[40.0], [50.0]], 4, axis=0)
    X = np.concatenate([light, heavy + 1e-3 * rng.normal(size=(8, 1))])
    weights = np.repeat([1.0, 1e5], [12_000, 8])
    found = Mixture("gaussian", max_laps=60, random_state=seed, n_jobs=1).fit(X, sample_weight=weights)
    labels = found.labels_[-8:]
    assert not set(labels[:4]) & set(labels[4:])  # the four may be several: each is as many as 1e5 equal rows
    assert not set(labels) & set(found.labels_[:-8])


@pytest.mark.parametrize("init", ["one", "k-means++", "random"])
@pytest.mark.parametrize("algorithm", ["memoized", "stochastic"])
def test_few_rows_with_weight_among_many(algorithm, init):
    X = np.random.default_rng(0).normal(size=(25_000, 1))
    weights = np.zeros(len(X))
    weights[[3, 9_001, 24_000]] = 1.0
    options = {"random_state": 0, "n_jobs": 1, "n_batches": 2, "max_laps": 5, "init": init, "n_init_clusters": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = Mixture("gaussian", algorithm=algorithm, **options).fit(X, sample_weight=weights)
    assert found.summary_.N.sum() == pytest.approx(3.0)
    assert np.isfinite(found.lower_bound_)


# Moves


@two_families
@every_kind
def test_moves_gain_exactly_what_they_say(family, turning_allocation, naive, kind, turn, monkeypatch):
    X = rows(family, kind, seed=10, n=120)
    n_batches = (1, 3)[turn // 2 % 2]
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], len(X))
    model = Model(family.likelihood(X), turning_allocation)
    sums = naive.summarise(model.likelihood, X, np.ones((len(X), 1)), weights)
    moved, accepted = lap._moved, []

    def observed(problem, state, tracked, slack):
        model = state.model
        before = model.bound(model.ordered(state.memo.total))
        state, records = moved(problem, state, tracked, slack)
        memo = state.memo
        gains = [gain for record in records for gain in record.gains]
        assert all(gain > -0.01 for gain in gains)  # what a move to fewer clusters may give back
        after = model.bound(model.ordered(memo.total))
        assert after - before == pytest.approx(sum(gains), abs=1e-10 * (1.0 + abs(before)))
        naive.assert_same(memo.total, reduce(Summary.__add__, memo.batches), rtol=1e-12)
        whole = Summary(
            memo.total.N.sum(keepdims=True), memo.total.S.sum(axis=0, keepdims=True), sums.H, memo.total.base
        )
        naive.assert_same(whole, sums, rtol=1e-10)
        ids = state.schedule.ids
        assert len(ids) == memo.total.K == len(set(ids))
        accepted.extend(gains)
        return state, records

    monkeypatch.setattr(lap, "_moved", observed)
    found = search(model, X, weights, n_batches=n_batches, seed=1)
    assert sum(gain for lap in found.history for record in lap.moves for gain in record.gains) == sum(accepted)
    if kind in ("clusters", "outliers"):
        assert accepted


def test_empty_clusters_change_nothing(family, allocation, naive):
    """Neither the bound nor the other clusters' parameters (nested truncation)."""
    X = rows(family, "clusters", seed=11)
    found = fit(family, X, allocation=allocation, max_laps=4, init=np.arange(len(X)) % 3, moves=())
    model, total = found.model_, found.summary_
    padded = total.insert_empty(allocation.max_clusters - total.K if allocation.max_clusters < 100 else 4)
    assert model.bound(padded) == pytest.approx(found.lower_bound_, rel=1e-14)
    np.testing.assert_allclose(model.log_marginal(padded)[total.K :], 0.0, atol=1e-12)
    plain, more = model.parameters(total, np.dtype(float)), model.parameters(padded, np.dtype(float))
    np.testing.assert_array_equal(more.W[: total.K], plain.W)
    np.testing.assert_allclose(more.bias[: total.K], plain.bias, rtol=1e-14)


# Stochastic inference


@pytest.mark.parametrize("n_batches", [1, 4])
def test_stochastic_steps(family, turning_allocation, n_batches):
    """K stays to the last lap, its bound is exact, far above that of the start, and no better than exact inference's."""
    X = rows(family, "clusters", seed=12, n=200)
    start = fit(family, X, allocation=turning_allocation, algorithm="full", max_laps=8)
    labels = np.where(np.random.default_rng(2).random(len(X)) < 0.3, 0, start.labels_)
    K, common = len(set(labels)), {"allocation": turning_allocation, "init": labels, "moves": ()}
    steps = {"algorithm": Stochastic(1.0, 0.7), "n_batches": n_batches, "tol": 1e-5, "max_laps": 300}
    first = fit(family, X, algorithm="full", max_laps=1, **common)
    noisy = fit(family, X, **common, **steps)
    best = fit(family, X, allocation=turning_allocation, init=noisy, moves=(), algorithm="full", tol=1e-10)
    assert {lap.n_clusters for lap in noisy.history_[:-1]} == {K}
    assert noisy.n_clusters_ == len(np.unique(noisy.labels_)) or noisy.n_clusters_ == K  # clusters without rows go
    assert first.lower_bound_ < noisy.lower_bound_ <= best.lower_bound_ + 1e-9 * abs(best.lower_bound_)
    assert noisy.lower_bound_ > 0.5 * (first.lower_bound_ + best.lower_bound_)


@pytest.mark.filterwarnings("ignore:X holds numbers that are not whole", "ignore:not converged")
def test_stochastic_batches_of_next_to_no_weight_are_passed_over():
    """Scaled to the weight of all rows they would overflow."""
    weights = np.array([1.0, 5e-324, 2.0, 1e-200])
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [1e3, -1e3]])
    found = Mixture("gaussian", algorithm="stochastic", n_batches=4, moves=(), n_jobs=1, max_laps=5).fit(
        rows, None, weights
    )
    assert np.isfinite(found.lower_bounds_).all()
    counts = weights[:, None] * [[1.0, 3.0]]
    topics = TopicModel(algorithm="stochastic", n_batches=4, moves=(), n_jobs=1, max_laps=5, random_state=0).fit(counts)
    assert np.isfinite(topics.lower_bounds_).all()


def test_a_whole_stochastic_step_is_a_lap(family, allocation, naive):
    """One batch and xi = 1: the first two laps of full inference."""
    X = rows(family, "clusters", seed=13)
    labels = np.searchsorted(np.cumsum([0.6, 0.3]), np.arange(len(X)) / len(X))
    common = {"allocation": allocation, "init": labels, "moves": (), "max_laps": 2, "learn": False}
    step = fit(family, X, algorithm=Stochastic(delay=0.0, decay=1.0), n_batches=1, **common)
    full = fit(family, X, algorithm="full", **common)
    np.testing.assert_allclose(step.lower_bounds_, full.lower_bounds_, rtol=1e-10)
    naive.assert_same(step.summary_, full.summary_, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [("delay", -1.0), ("delay", np.nan), ("delay", np.inf), ("decay", 0.0), ("decay", 1.01), ("decay", np.nan)],
)
def test_impossible_schedules_are_refused(name, value):
    with pytest.raises(ValueError, match=f"^{name} .*{value}"):
        Stochastic(**{name: value})


@pytest.mark.parametrize("decay", [0.1, 0.5])
def test_schedules_that_shrink_too_slowly_warn(decay):
    with pytest.warns(UserWarning, match=f"decay={decay:g}.* do not converge"):
        assert Stochastic(decay=decay).step(1) == 2.0**-decay


def test_steps_shrink_as_stated():
    schedule = Stochastic(delay=3.0, decay=0.75)
    assert [schedule.step(t) for t in (1, 13)] == [4.0**-0.75, 16.0**-0.75]


# Recovery


def blobs(rng, sizes, D=2, width=0.5):
    """Gaussian clusters on a grid of spacing 10."""
    side = int(np.ceil(len(sizes) ** (1 / D)))
    centers = 10.0 * np.stack(np.meshgrid(*[np.arange(side)] * D), axis=-1).reshape(-1, D)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = centers[rng.permutation(len(centers))[: len(sizes)]][labels] + width * rng.standard_normal((len(labels), D))
    order = rng.permutation(len(labels))
    return X[order], labels[order]


@pytest.mark.parametrize("seed", range(3))
def test_ten_unequal_clusters_are_found_from_one(seed):
    sizes = (12, 15, 20, 30, 40, 60, 90, 140, 200, 300)
    X, labels = blobs(np.random.default_rng(seed), sizes)
    found = Mixture("gaussian", random_state=seed, n_jobs=1, n_batches=1 + seed % 3).fit(X)
    assert found.n_clusters_ == 10
    assert adjusted_rand_score(labels, found.labels_) == 1.0
    np.testing.assert_array_equal(np.round(found.summary_.N), sorted(sizes, reverse=True))


def test_textures_are_found_without_means():
    rng = np.random.default_rng(0)
    axes, labels = np.eye(3) * 10.0 + 0.1, np.repeat([0, 1, 2], [50, 100, 200])
    X = axes[labels] * rng.standard_normal((350, 3))
    found = Mixture("zero_mean_gaussian", random_state=0, n_jobs=1).fit(X)
    assert found.n_clusters_ == 3
    far = np.abs(X).max(axis=1) > 2.0  # rows near the origin belong to any
    assert adjusted_rand_score(labels[far], found.labels_[far]) > 0.95


@pytest.mark.parametrize("D", [1, 2, 5])
@pytest.mark.parametrize("seed", range(2))
def test_one_normal_cluster_stays_one(D, seed):
    X = np.random.default_rng(seed).multivariate_normal(np.arange(D), np.eye(D) + 0.5, size=500)
    assert Mixture("gaussian", random_state=seed, n_jobs=1).fit(X).n_clusters_ == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_units_and_offsets_of_columns_are_irrelevant(dtype):
    X, labels = blobs(np.random.default_rng(1), (12, 18, 30, 48, 72), width=0.7)
    offset = 1e6 if dtype == np.float64 else 1e4
    changed = [X * [1e-8, 1.0], X * [1e8, 1e-8], X * 1e8, X + offset, (X + offset) * [1.0, 1e-8], 1e-30 * X]
    for data in [X, *changed]:
        found = Mixture("gaussian", random_state=0, n_jobs=1).fit(data.astype(dtype))
        assert found.n_clusters_ == 5
        assert adjusted_rand_score(labels, found.labels_) == 1.0


@pytest.mark.parametrize("n_batches", [1, 4])
def test_extrapolation_ends_at_the_same_optimum(family, turning_allocation, n_batches):
    X = rows(family, "clusters", seed=14)
    given = fit(family, X, allocation=turning_allocation, algorithm="full", max_laps=6)
    common = {"n_batches": n_batches, "start": given.summary_, "tol": 1e-9, "max_laps": 1000, "moves": ()}
    fast, plain = (search(given.model_, X, accelerate=accelerate, **common) for accelerate in (True, False))
    assert fast.converged
    assert plain.converged
    assert fast.outcome.bound == pytest.approx(plain.outcome.bound, rel=1e-6)
    assert len(fast.history) < len(plain.history) + 10
