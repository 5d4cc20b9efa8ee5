"""A background: the bound against the evidence by enumeration, its limits, and the dust that it finds."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.likelihoods import (
    Background,
    Bernoulli,
    DiagonalGaussian,
    Gaussian,
    GaussianNetwork,
    KnownCovarianceGaussian,
    LinearRegression,
    LogScale,
    Product,
    Sample,
    SphericalGaussian,
    StudentT,
    ZeroMeanGaussian,
)
from stickbreak.likelihoods.background import FEW, TOLL
from stickbreak.model import Model, Summary, local_step

FLOAT = np.dtype(float)
FAMILIES = {
    "gaussian": Gaussian(mean=1.0, mean_precision=0.3, degrees_of_freedom=4.5, scale=2.0),
    "diagonal": DiagonalGaussian(mean=1.0, mean_precision=0.3, shape=1.5, rate=2.0),
    "spherical": SphericalGaussian(mean=1.0, mean_precision=0.3, shape=1.5, rate=2.0),
    "known": KnownCovarianceGaussian(covariance=1.0, mean=1.0, mean_precision=0.3),
    "zero mean": ZeroMeanGaussian(degrees_of_freedom=4.5, scale=2.0),
    "network": GaussianNetwork(mean=1.0, mean_precision=0.3, degrees_of_freedom=4.5, scale=2.0),
}
every_family = pytest.mark.parametrize("name", FAMILIES)


def rows(n, D=2, seed=0):
    """Two clusters and a row far from both."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) + 3.0 * rng.integers(2, size=(n, 1))
    X[0] += 9.0
    return X


def features(likelihood, X):
    return likelihood.features(X, np.empty((len(X), likelihood.n_statistics)))


def summary_of(N, S):
    return Summary(N, S, np.zeros(len(N)), np.zeros(()))


def log_volume(X):
    return np.log(np.ptp(X, axis=0)).sum()


# The bound


def log_evidence(family, share, allocation, X):
    """log p(X) by enumeration of the cluster of every row and of the bits that say which are background.

    Rows that are not have the evidence of the family; the labels of all rows come from the allocation.
    """
    n = len(X)
    labels = [z for z in product(range(n), repeat=n) if all(k <= max(z[:i], default=-1) + 1 for i, k in enumerate(z))]
    blocks = np.array(list(product([0.0, 1.0], repeat=n)))
    marginal = family.log_marginal(blocks.sum(axis=1), blocks @ features(family, X)) + blocks @ family.log_base(X)
    place = 2 ** np.arange(n)[::-1]
    terms = []
    for z in labels:
        sizes = np.bincount(z)
        for t in blocks.astype(int):
            parts = [marginal[place @ (t * (np.array(z) == k))] for k in range(len(sizes))]
            dust = n - t.sum()
            bits = t.sum() * np.log1p(-share) + dust * (np.log(share) - log_volume(X))
            terms.append(chance(sizes, allocation) + sum(parts) + bits)
    return logsumexp(terms)


def chance(sizes, allocation):
    """log p(z) of the clusters of labels in order of appearance, of a DP or of any labels of a finite mixture."""
    total = 0.0
    seen = 0.0
    gamma = allocation.concentration
    finite = isinstance(allocation, FiniteDirichlet)
    for j, size in enumerate(sizes):
        for i in range(size):
            if finite:
                share = gamma / allocation.n_clusters
                ways = max(allocation.n_clusters - j, 0) if i == 0 else 1
                weight = ways * (i + share)
            else:
                weight = gamma if i == 0 else i
            with np.errstate(divide="ignore"):
                total += np.log(weight) - np.log(seen + gamma)
            seen += 1.0
    return total


@every_family
@pytest.mark.parametrize(
    ("allocation", "share"), [(DirichletProcess(0.7), 0.5), (FiniteDirichlet(3, 2.0), 0.02)], ids=str
)
def test_bound_is_below_the_evidence_and_climbs(name, allocation, share):
    X = rows(5)
    likelihood = Background(FAMILIES[name], share=share).resolve(Sample.of(X))
    exact = log_evidence(likelihood.family, share, allocation, X)
    model, rng = Model(likelihood, allocation), np.random.default_rng(1)
    for K in (1, 2, 3):
        R = rng.dirichlet(np.full(K, 0.3), len(X))
        summary, bounds = summary_of(R.sum(axis=0), R.T @ features(likelihood, X)), []
        for _ in range(40):
            summary, _ = local_step(model.likelihood, model.parameters(model.ordered(summary), FLOAT), X, np.ones(5))
            bounds.append(model.bound(model.ordered(summary)))
        assert np.all(np.diff(bounds) > -1e-10)
        assert exact - 8.0 < bounds[-1] <= exact + 1e-10


@every_family
def test_a_share_of_nothing_leaves_the_family(name):
    X = rows(60)
    bounds = []
    for likelihood in (FAMILIES[name], Background(FAMILIES[name], share=1e-300)):
        model = Model(likelihood.resolve(Sample.of(X)), DirichletProcess(1.0))
        R = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
        summary = summary_of(R.sum(axis=0), R.T @ features(model.likelihood, X))
        for _ in range(5):
            summary, _ = local_step(model.likelihood, model.parameters(summary, FLOAT), X, np.ones(len(X)))
        bounds.append(model.bound(summary))
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-12)


@every_family
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_is_from_the_family_with_the_probability_of_the_mixture_of_both(name, dtype):
    X = rows(300).astype(dtype)
    likelihood = Background(FAMILIES[name], share=0.1).resolve(Sample.of(X))
    N, S = np.full(1, 300.0), features(likelihood, X.astype(float)).sum(axis=0)[None]
    model = Model(likelihood, FiniteDirichlet(1, 1.0))
    summary, _ = local_step(likelihood, model.parameters(summary_of(N, S), np.dtype(dtype)), X, np.ones(300))
    W, b = likelihood.family.weights(N, S[:, :-3])
    own = features(likelihood.family, X.astype(float)) @ W[0] + b[0] + likelihood.family.log_base(X.astype(float))
    toll = TOLL / FEW  # of the first row of background
    both = np.stack([np.log(0.9) + own, np.full(300, np.log(0.1) - toll - log_volume(X.astype(float)))])
    t = np.exp(both[0] - logsumexp(both, axis=0))
    rtol = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(summary.S[0, -2], t.sum(), rtol=rtol)
    np.testing.assert_allclose(summary.S[0, -1], stats.bernoulli(t).entropy().sum(), rtol=rtol)
    T = features(likelihood, X.astype(float))
    np.testing.assert_allclose(summary.S[0, :-1], t @ T[:, :-1], rtol=rtol, atol=rtol * np.abs(T).sum())


def test_parameters_that_are_known_leave_a_closed_form():
    X = rows(30)
    family = Gaussian(mean=0.5, mean_precision=1e9, degrees_of_freedom=1e9, scale=2e9)
    likelihood = Background(family, share=0.2).resolve(Sample.of(X))
    normal = stats.multivariate_normal(np.full(2, 0.5), 2.0 * np.eye(2))
    want = np.logaddexp(np.log(0.8) + normal.logpdf(X), np.log(0.2) - log_volume(X))
    S = np.zeros((1, likelihood.n_statistics))
    np.testing.assert_allclose(likelihood.log_predictive(X, np.zeros(1), S)[:, 0], want, rtol=1e-6)
    model = Model(likelihood, FiniteDirichlet(1, 1.0))
    summary = summary_of(np.full(1, 30.0), features(likelihood, X).sum(axis=0)[None])
    for _ in range(30):
        summary, _ = local_step(likelihood, model.parameters(summary, FLOAT), X, np.ones(30))
    toll = TOLL * np.log1p((30.0 - summary.S[0, -2]) / FEW)
    assert model.bound(summary) == pytest.approx(want.sum() - toll, abs=0.01)
    outside = likelihood.log_predictive(X + 100.0, np.zeros(1), S)[:, 0]
    np.testing.assert_allclose(outside, np.log(0.8) + normal.logpdf(X + 100.0), rtol=1e-4)


def test_a_merge_is_a_lower_bound_that_the_next_steps_raise():
    X = rows(60, seed=7)
    likelihood = Background(FAMILIES["gaussian"], share=0.1).resolve(Sample.of(X))
    model, R = Model(likelihood, DirichletProcess(1.0)), np.random.default_rng(0).dirichlet(np.full(3, 0.3), 60)
    summary = summary_of(R.sum(axis=0), R.T @ features(likelihood, X))
    for _ in range(4):
        summary, _ = local_step(likelihood, model.parameters(model.ordered(summary), FLOAT), X, np.ones(60))
    whole = replace(summary_of(np.full(1, 60.0), summary.S.sum(axis=0)[None]), base=summary.base)
    bounds = [model.bound(whole)]
    for _ in range(60):
        whole, _ = local_step(likelihood, model.parameters(whole, FLOAT), X, np.ones(60))
        bounds.append(model.bound(whole))
    assert np.all(np.diff(bounds) > -1e-10)


def test_the_unit_of_the_data_changes_nothing_but_the_density():
    X = rows(80, 3)
    unit = np.array([1e-6, 1.0, 1e5])
    here, there = (fit(Z, max_laps=130) for Z in (X, X * unit))
    assert there.lower_bound_ == pytest.approx(here.lower_bound_ - 80 * np.log(unit).sum(), abs=1e-4)
    np.testing.assert_allclose(there.background_proba(X * unit), here.background_proba(X), atol=0.01)


@every_family
def test_a_constant_column_makes_no_background(name):
    """It has no width, and the others tell what is background."""
    X = np.column_stack([rows(80, 2), np.full(80, 7.0)])
    for values in (X, X[:, 2:]):
        found = fit(values, Background(type(FAMILIES[name])()), max_laps=20)
        assert np.isfinite(found.lower_bounds_).all()
        assert np.isfinite(found.score_samples(values)).all()
        assert np.isfinite(found.sample(20)[0]).all()


# Data


def dusty_rows(seed, n=250, K=4, D=2, dust=50, box=30.0):
    """Gaussian clusters in the corners of a square and uniform rows, which have the label -1."""
    rng = np.random.default_rng(seed)
    corners = np.array(list(product([-8.0, 8.0], repeat=2)))[:K]
    centers = np.hstack([corners, rng.normal(0.0, 8.0, (K, D))])[:, :D]
    z = np.repeat(np.arange(K), n)
    X = np.concatenate([centers[z] + rng.standard_normal((K * n, D)), rng.uniform(-box, box, (dust, D))])
    return X, np.append(z, np.full(dust, -1)), np.abs(X[:, None] - centers).max(axis=2).min(axis=1)


def fit(X, likelihood=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(
            likelihood or Background(), **{"random_state": 0, "n_jobs": 1, "max_laps": 60, **parameters}
        ).fit(X)


@pytest.mark.parametrize("family", [Gaussian(), DiagonalGaussian()], ids=lambda family: type(family).__name__)
def test_dust_is_told_from_clusters(family):
    X, z, away = dusty_rows(0)
    found = fit(X, Background(family))
    assert found.n_clusters_ == 4
    assert adjusted_rand_score(z[z >= 0], found.labels_[z >= 0]) > 0.99
    assert found.model_.likelihood.share == pytest.approx(50 / 1050, rel=0.15)
    dust = found.background_proba(X)
    assert dust.shape == (len(X),)
    sure = (z >= 0) | (away > 5.0)
    assert roc_auc_score(z[sure] < 0, dust[sure]) > 0.999
    assert found.lower_bound_ > fit(X, family).lower_bound_ + 50.0
    assert np.abs(np.sqrt(found.covariances_.diagonal(axis1=1, axis2=2)) - 1.0).max() < 0.15  # dust widens nothing


def test_without_dust_the_share_is_next_to_nothing():
    X, _, _ = dusty_rows(1, dust=0)
    found, plain = fit(X), fit(X, Gaussian())
    assert found.n_clusters_ == plain.n_clusters_ == 4
    assert found.model_.likelihood.share < 1e-3
    assert found.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_far_row_does_no_harm(dtype):
    X, _, _ = dusty_rows(2, dust=0)
    X[17] = 1e4
    found = fit(X.astype(dtype))
    assert found.n_clusters_ == 4
    assert found.background_proba(X.astype(dtype))[17] == pytest.approx(1.0)
    assert found.covariances_.max() < 2.0


def test_one_gaussian_is_one_cluster():
    X = np.random.default_rng(3).standard_normal((600, 3))
    found = fit(X)
    assert found.n_clusters_ == 1
    assert found.model_.likelihood.share < 0.05


@pytest.mark.parametrize("seed", [0, 2])
def test_no_cluster_is_made_of_background(seed):
    X, _, _ = dusty_rows(seed, dust=200, box=40.0)
    assert fit(X).n_clusters_ == 4


def test_on_the_log_scale_the_background_is_there_too():
    X, _, _ = dusty_rows(4, box=20.0)
    found = fit(np.exp(X / 4.0), LogScale(Background()))
    same = fit(X / 4.0)
    assert found.n_clusters_ == 4
    assert found.lower_bound_ == pytest.approx(same.lower_bound_ - X.sum() / 4.0, rel=1e-6)
    np.testing.assert_allclose(found.background_proba(np.exp(X / 4.0)), same.background_proba(X / 4.0), atol=1e-4)


def test_draws_and_new_rows():
    X, _, _ = dusty_rows(5)
    found = fit(X)
    drawn, _ = found.sample(4000)
    assert np.mean(found.background_proba(drawn) > 0.5) == pytest.approx(found.model_.likelihood.share, abs=0.02)
    far = np.array([[400.0, -500.0], [1e9, 1e9]])
    np.testing.assert_allclose(found.background_proba(far), 1.0)
    assert (found.score_samples(far) < -500.0).all()
    np.testing.assert_allclose(found.predict_proba(far), np.tile(found.weights_, (2, 1)), atol=0.01)


def test_a_fit_goes_on_where_another_ended():
    X, _, _ = dusty_rows(6)
    first = fit(X)
    again = fit(X, init=first, moves=())
    assert again.lower_bounds_[0] == pytest.approx(first.lower_bound_, abs=0.1)
    assert again.model_.likelihood.share == pytest.approx(first.model_.likelihood.share, rel=1e-3)


def test_the_number_of_threads_changes_no_bit():
    X, _, _ = dusty_rows(7, n=2000)
    one, two = (fit(X, n_jobs=jobs, max_laps=12) for jobs in (1, 2))
    assert one.lower_bounds_ == two.lower_bounds_
    assert one.summary_.S.tobytes() == two.summary_.S.tobytes()


@pytest.mark.parametrize("wrap", [lambda family: family, LogScale], ids=["plain", "log scale"])
def test_a_model_is_saved_and_loaded(tmp_path, wrap):
    X = np.exp(dusty_rows(8, n=150)[0] / 10.0)
    found = fit(X, wrap(Background(DiagonalGaussian())), max_laps=8)
    found.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.background_proba(X), found.background_proba(X))
    np.testing.assert_array_equal(again.score_samples(X), found.score_samples(X))


def test_models_that_cannot_be_are_refused():
    X, _, _ = dusty_rows(9, n=100)
    found = fit(X, max_laps=5)
    likelihood, N, S = found.model_.likelihood, found.summary_.N, found.summary_.S
    likelihood.check(2, N, S)
    bits = S.copy()
    bits[0, -2] = 2.0 * N[0]
    for wrong, sums, message in [
        (replace(likelihood, share=1.0), S, "share must be"),
        (replace(likelihood, box=likelihood.box[::-1].copy()), S, "box must be"),
        (replace(likelihood, box=likelihood.box[:, :1]), S, "box must be"),
        (replace(likelihood, family=likelihood), S, "impossible"),
        (likelihood, bits, "rows that are not background"),
        (likelihood, S[:, :3], "S must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            wrong.check(2, N, sums)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Background(Bernoulli()), "family must be a likelihood of measurements"),
        (lambda: Background("gaussian"), "family must be a likelihood of measurements"),
        (lambda: Background(LogScale()), "family must be a likelihood of measurements"),
        (lambda: Background(LinearRegression()).locate(None, 3), "family must be one that describes all columns"),
        (lambda: Background(StudentT()).resolve(Sample.of(rows(9))), "family must be one without latent variables"),
        (lambda: Background(Background()).resolve(Sample.of(rows(9))), "family must be one without latent variables"),
    ],
)
def test_families_that_do_not_fit_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_has_no_bits_is_refused_with_what_to_use():
    X = rows(30)
    with pytest.raises(ValueError, match="only Mixture can use; use Gaussian"):
        HMM(Background()).fit(X)
    with pytest.raises(ValueError, match="only Mixture can use; use Gaussian"):
        TopicModel(Background()).fit(X, lengths=[10, 20])
    with pytest.raises(ValueError, match=r"part 'a' is a Background.*use Gaussian"):
        Mixture(Product({"a": (Background(), [0, 1])})).fit(X)
    with pytest.raises(ValueError, match=r"without a background: use Mixture\(Background\(\)\)"):
        fit(X, Gaussian(), max_laps=2).background_proba(X)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="Background cannot use missing values"):
        Mixture(Background()).fit(X)
