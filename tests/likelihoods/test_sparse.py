"""Compressed sparse rows say the same as dense ones, and are never made dense."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess
from stickbreak.likelihoods import REGISTRY, Bernoulli, Categorical, Multinomial, Poisson, Sample
from stickbreak.likelihoods import features as making
from stickbreak.likelihoods.features import features, prefers_sparse
from stickbreak.model import Model, local_step

SPARSE = ("bernoulli", "multinomial", "poisson")
every_sparse = pytest.mark.parametrize("name", SPARSE)


def table(name, n=120, D=25, seed=0, dtype=np.float64):
    """Rows of three clusters, mostly zeros, some of them empty."""
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.full(D, 0.2), 3)[rng.integers(3, size=n)]
    if name == "bernoulli":
        X = rng.random((n, D)) < np.minimum(6.0 * chance, 0.9)
    else:
        X = rng.poisson(12.0 * chance) if name == "poisson" else rng.multinomial(12, chance)
    X[::17] = 0
    return X.astype(dtype)


def rows(name, **options):
    X = table(name, **options)
    return X, sparse.csr_array(X)


def fit(X, name, **parameters):
    defaults = {"random_state": 0, "n_jobs": 1, "max_laps": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(name, **{**defaults, **parameters}).fit(X)


@cache
def of_rows(name):
    """A short fit to the CSR rows, which no test may change."""
    return fit(rows(name)[1], name, max_laps=8)


@every_sparse
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_rows_are_dense_rows(name, dtype):
    X, C = rows(name, dtype=dtype)
    dense, likelihood = (REGISTRY[name]().resolve(Sample.of(Y.astype(np.float64))) for Y in (X, C))
    R = np.random.default_rng(1).dirichlet([0.3, 0.3], len(X))
    N, S = R.sum(axis=0), R.T @ X.astype(np.float64)
    assert likelihood.n_statistics == dense.n_statistics == 25
    np.testing.assert_allclose(likelihood.log_marginal(N, S), dense.log_marginal(N, S), rtol=1e-12)
    T = features(likelihood, C)
    assert sparse.issparse(T)
    np.testing.assert_array_equal(T.toarray(), features(dense, X))
    tight = {"rtol": 1e-11, "atol": 1e-11} if dtype == np.float64 else {"rtol": 2e-6, "atol": 2e-6}
    np.testing.assert_allclose(likelihood.log_base(C), dense.log_base(X), **tight)
    np.testing.assert_allclose(likelihood.log_predictive(C, N, S), dense.log_predictive(X, N, S), **tight)
    for x, c in ((X, C), (X[:5], C[:5])):
        want, loose = dense.divergence(X, x), {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else tight
        np.testing.assert_allclose(likelihood.divergence(C, c), want, **loose)
        np.testing.assert_allclose(likelihood.divergence(C, x), want, **loose)


@every_sparse
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [1, 4, 40])
def test_the_local_step_of_sparse_rows(name, naive, dtype, K):
    X, C = rows(name, n=700, dtype=dtype)
    rng = np.random.default_rng(2)
    model = Model(REGISTRY[name]().resolve(Sample.of(X.astype(np.float64))), DirichletProcess(1.0))
    weights = rng.choice([0.5, 1.0, 2.0], 700)
    start = naive.summarise(model.likelihood, X.astype(np.float64), rng.dirichlet(np.full(K, 0.3), 700))
    parameters = model.parameters(start, np.dtype(dtype))
    (one, kept), (other, want) = (local_step(model.likelihood, parameters, Y, weights) for Y in (C, X))
    naive.assert_same(one, other, rtol=1e-11 if dtype == np.float64 else 1e-5)
    tolerance = 1e-10 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(naive.dense(kept, K), naive.dense(want, K), atol=tolerance)


OTHERWISE = [
    {"n_batches": 3},
    {"init": "k-means++", "n_init_clusters": 5, "moves": ()},
    {"algorithm": "stochastic", "n_batches": 3, "init": "random", "n_init_clusters": 4},
    {"learn": False},
]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [*((name, {}) for name in SPARSE), *((SPARSE[i % 3], parameters) for i, parameters in enumerate(OTHERWISE))],
    ids=str,
)
def test_whole_fits_of_sparse_rows(name, parameters, monkeypatch):
    """Where repeated rows are not collapsed, which is done for dense ones only."""
    monkeypatch.setattr("stickbreak.estimators._distinct.collapse", lambda source: None)
    X, C = rows(name, n=300)
    dense, found = (fit(Y, name, tol=1e-9, **parameters) for Y in (X, C))
    assert found.n_clusters_ == dense.n_clusters_ > 1
    assert found.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-9)
    np.testing.assert_array_equal(found.labels_, dense.labels_)
    for Y in (X, C):
        np.testing.assert_allclose(found.predict_proba(Y), dense.predict_proba(X), atol=1e-7)
        np.testing.assert_allclose(found.score_samples(Y), dense.score_samples(X), rtol=1e-9, atol=1e-9)


@every_sparse
def test_single_precision_finds_the_same(name):
    _, C = rows(name, n=300)
    double, single = fit(C, name), fit(C.astype(np.float32), name)
    assert single.dtype_ == np.float32
    assert single.lower_bound_ == pytest.approx(double.lower_bound_, rel=1e-4)
    assert single.predict_proba(C.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "coo_matrix", "lil_array", "untidy", "long"])
def test_every_form_of_sparse_matrix_is_read(kind):
    X, C = rows("poisson")
    plain = of_rows("poisson")
    if kind == "untidy":  # stored zeros, and entries that add up, in any order
        rng = np.random.default_rng(3)
        row, column = np.nonzero(X)
        order = rng.permutation(3 * len(row))
        halves = np.concatenate([X[row, column] - 1.0, np.ones(len(row)), np.zeros(len(row))])
        where = np.concatenate([row, row, row]), np.concatenate([column, column, (column + 1) % 25])
        given = sparse.coo_array((halves[order], (where[0][order], where[1][order])), X.shape)
    elif kind == "long":
        given = C.copy()
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    else:
        given = getattr(sparse, kind)(C)
    before = given.copy()
    found = fit(given, "poisson", max_laps=8)
    assert found.lower_bounds_ == plain.lower_bounds_
    np.testing.assert_array_equal(found.labels_, plain.labels_)
    assert (given != before).nnz == 0


def test_stored_zeros_of_csr_are_not_changed_in_place():
    _, C = rows("multinomial")
    given = sparse.csr_array((np.append(C.data, 0.0), np.append(C.indices, 3), np.append(C.indptr[:-1], C.nnz + 1)))
    data = given.data.copy()
    fit(given, "multinomial", max_laps=2)
    np.testing.assert_array_equal(given.data, data)


def test_a_row_without_entries_is_all_zeros():
    found = of_rows("bernoulli")
    empty = sparse.csr_array((3, 25))
    np.testing.assert_allclose(found.predict_proba(empty), found.predict_proba(np.zeros((3, 25))), atol=1e-12)
    np.testing.assert_allclose(found.score_samples(empty), found.score_samples(np.zeros((3, 25))))
    nothing = fit(sparse.csr_array((30, 4)), "poisson")
    assert nothing.n_clusters_ == 1
    assert np.isfinite(nothing.lower_bound_)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("bernoulli", 2.0, "contains 2: row 13, column 4. Bernoulli takes 0 or 1"),
        ("poisson", -1.0, "contains -1: row 13, column 4. Poisson takes whole numbers of at least 0"),
        ("poisson", 0.5, "contains 0.5: row 13, column 4"),
        ("multinomial", -3.0, "contains -3: row 13, column 4. Multinomial takes"),
        ("multinomial", np.nan, "contains NaN: row 13, column 4"),
        ("multinomial", np.inf, "contains infinity: row 13, column 4"),
        ("poisson", np.inf, "contains infinity: row 13, column 4"),
        ("bernoulli", np.nan, "contains NaN: row 13, column 4"),
        ("poisson", np.nan, "contains NaN: row 13, column 4"),
    ],
)
def test_wrong_entries_are_named_by_row_and_column(name, value, words):
    X = table(name)
    model = of_rows(name)
    X[13, 4] = X[90, 1] = value
    for method in (lambda C: fit(C, name), model.predict, model.score_samples):
        with pytest.raises(ValueError, match=words):
            method(sparse.csr_array(X))


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - set(SPARSE)))
def test_families_that_take_no_sparse_rows_say_so_and_leave_them_sparse(name):
    """A dense copy of this table would take eight terabytes."""
    huge = sparse.csr_array((np.ones(3), ([0, 5, 9], [1, 10, 100])), (1_000_000, 1_000_000))
    with pytest.raises(TypeError, match=r"[Ss]parse.*dense.*toarray|does not take sparse rows; pass X\.toarray"):
        fit(huge, name)


def test_sparse_rows_as_wide_as_a_language_are_never_dense():
    """Two million words: the dense table would take 8 GB, two clusters' counts 32 MB."""
    rng = np.random.default_rng(4)
    words = np.concatenate([rng.integers(50, size=(250, 20)), 1_999_900 + rng.integers(50, size=(250, 20))])
    C = sparse.csr_array((np.ones(words.size), (np.repeat(np.arange(500), 20), words.ravel())), (500, 2_000_000))
    found = fit(C, "multinomial", init=np.repeat([0, 1], 250), moves=(), max_laps=2)
    np.testing.assert_array_equal(found.labels_, np.repeat([0, 1], 250))


def test_exposures_and_holes_need_dense_rows():
    X, C = rows("poisson")
    with pytest.raises(ValueError, match="column of exposures takes dense rows"):
        fit(C, Poisson(exposure=0))
    exposed = fit(X + 1.0, Poisson(exposure=0))
    with pytest.raises(ValueError, match="dense rows"):
        exposed.predict(C)
    X[0, 0] = np.nan
    holed = fit(X, "poisson")
    with pytest.raises((TypeError, ValueError), match=r"rows are CSR.*pass a dense array"):
        holed.predict(C)


@pytest.mark.parametrize("given", [Bernoulli(), Poisson()], ids=["bernoulli", "poisson"])
def test_a_model_of_sparse_rows_takes_dense_ones_with_holes(given):
    name = type(given).__name__.lower()
    X, C = rows(name)
    sparse_model, dense_model = fit(C, given), fit(X, given)
    X[3, 5] = X[8] = np.nan
    np.testing.assert_allclose(sparse_model.score_samples(X), dense_model.score_samples(X), rtol=1e-9, atol=1e-9)


# Categories with so many levels that their features are made sparse ---------------------------------------------------


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_categories_of_many_levels_are_the_same_by_either_path(monkeypatch, known_families, naive, holes, dtype):
    family = known_families["categorical-many_levels_missing" if holes else "categorical-many_levels"]
    X = family.rows(np.random.default_rng(5), 300, 6).astype(dtype)
    likelihood = family.likelihood(X.astype(np.float64))
    assert prefers_sparse(likelihood)
    T = likelihood.features(X, None)
    assert T.dtype == dtype
    np.testing.assert_array_equal(T.toarray(), likelihood.features(X, np.full(T.shape, 7.0, dtype)))
    by_csr = fit(X, family.make(6), tol=1e-5)
    monkeypatch.setattr(making, "SPARSE_SHARE", 10**9)
    assert not prefers_sparse(likelihood)
    by_dense = fit(X, family.make(6), tol=1e-5)
    tight = 1e-9 if dtype == np.float64 else 1e-5
    assert by_csr.lower_bound_ == pytest.approx(by_dense.lower_bound_, rel=tight)
    assert by_csr.n_clusters_ > 1
    np.testing.assert_allclose(by_csr.predict_proba(X), by_dense.predict_proba(X), atol=100 * tight)


def test_the_number_of_levels_is_that_of_the_largest_code():
    X = np.array([[0.0, 7.0], [3.0, np.nan], [1.0, 2.0]])
    np.testing.assert_array_equal(Categorical().resolve(Sample.of(X)).n_levels, [4, 8])
    np.testing.assert_array_equal(Categorical(n_levels=9).resolve(Sample.of(X)).n_levels, [9, 9])
    found = fit(np.repeat(X, 20, axis=0), "categorical")
    with pytest.raises(ValueError, match=r"contains 4: row 0, column 0\. Categorical takes codes"):
        found.predict([[4.0, 0.0]])
    for value in (-1.0, 0.5, 1e7):
        with pytest.raises(ValueError, match=rf"contains {value:g}: row 1, column 1".replace("+", r"\+")):
            fit([[0.0, 1.0], [1.0, value]], "categorical")


@pytest.mark.parametrize("n_levels", [3, [3, 9]])
def test_codes_beyond_the_number_of_levels_given_are_refused(n_levels):
    """They would count as levels of the next column."""
    X = np.array([[0.0, 1.0], [2.0, 2.0], [3.0, 0.0]])
    with pytest.raises(ValueError, match=r"contains 3: row 2, column 0\. Categorical takes codes"):
        fit(X, Categorical(n_levels=n_levels))
    assert fit(X[:2], Categorical(n_levels=n_levels)).model_.likelihood.n_statistics == 2 * 3 + 6 * isinstance(
        n_levels, list
    )
    with pytest.raises(ValueError, match="n_levels must be whole numbers"):
        fit(X, Categorical(n_levels=[3, 9, 2]))


@pytest.mark.parametrize("name", ["categorical", "diagonal_gaussian"])
@pytest.mark.parametrize(("known", "levels"), [(3, 5), (40, 60), (40, 100_000)])
def test_a_start_from_a_model_of_fewer_levels_reads_the_others_as_missing(name, known, levels):
    """They would be read, and written, outside of arrays."""
    rng = np.random.default_rng(0)
    other = fit(rng.integers(0, known, (200, 3)).astype(float), "categorical", max_laps=3)
    X = rng.integers(-levels if name != "categorical" else 0, levels, (200, 3)).astype(float)
    likelihood = other.model_.likelihood
    T = features(likelihood, X)
    T = T.toarray() if sparse.issparse(T) else T
    np.testing.assert_array_equal(T.sum(axis=1), ((X >= 0) & (likelihood.n_levels > X)).sum(axis=1))
    assert fit(X, name, init=other, max_laps=2).n_clusters_ >= 1


@pytest.mark.parametrize("seed", range(8))
def test_scores_of_bits_with_weights_of_any_size_are_finite(seed):
    """A difference of sums, of the rows and of those with a one, may miss zero by more than the prior holds."""
    rng = np.random.default_rng(seed)
    X, weights = (rng.random((60, 8)) < 0.9).astype(float), 10.0 ** rng.uniform(-8, 8, 60)
    for rows in (X, sparse.csr_array(X)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = Mixture("bernoulli", random_state=0, max_laps=15).fit(rows, sample_weight=weights)
        assert np.isfinite(found.score_samples(rows)).all()
        assert np.isfinite(found.score_samples(1.0 - X)).all()


@pytest.mark.parametrize("size", [1.0, 1e6, 1e12, 1e15, 1e18])
def test_strong_priors_of_words_cost_no_digits(size):
    """The marginal likelihood of a few counts is a product of a few factors (c + i) / (C + j), whatever the prior."""
    c = size * np.array([1.0, 2.0, 3.0])
    S = np.array([[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    prior = Multinomial(concentration=c).resolve(Sample.of(np.ones((4, 3))))
    factors = np.log1p(np.array([0.0, 1.0, 2.0, 0.0]) / c[0]) + np.log(c[[0, 0, 0, 2]]) - np.log(c.sum() + np.arange(4))
    np.testing.assert_allclose(prior.log_marginal(S[:, 0] * 0.0 + 1.0, S), [factors.sum(), 0.0], rtol=1e-12, atol=1e-12)
