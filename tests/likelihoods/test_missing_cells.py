"""Missing cells of correlated columns: the bound against quadrature and enumeration, and what mixtures find."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp, multigammaln
from sklearn.metrics import adjusted_rand_score

from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.estimators._automatic import readings
from stickbreak.kernels.cells import best_cells_reference
from stickbreak.likelihoods import (
    REGISTRY,
    Background,
    Bernoulli,
    DiagonalGaussian,
    Gaussian,
    LogScale,
    Product,
    Sample,
    StudentT,
)
from stickbreak.model import Model, Summary, local_step

FLOAT = np.dtype(float)


def prior(D):
    return {"mean": 1.0, "mean_precision": 0.3, "degrees_of_freedom": D + 1.5, "scale": 2.0}


def clusters(seed, n=600, D=4, K=3, share=0.1):
    """Correlated clusters with missing cells, the same without, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=n)
    mixing = 0.6 * rng.standard_normal((K, D, D)) + np.eye(D)
    X = 4.0 * rng.standard_normal((K, D))[z] + np.einsum("nij,nj->ni", mixing[z], rng.standard_normal((n, D)))
    return np.where(rng.random(X.shape) < share, np.nan, X), X, z


def summary_of(likelihood, X, R, features):
    N = R.sum(axis=0)
    return Summary(N, R.T @ features(likelihood, X), np.zeros(len(N)), np.asarray(likelihood.log_base(X).sum()))


# The bound


def complete_evidence(X):
    """log p(X) of complete rows of one cluster, for many X (m, n, D), in the units of the data."""
    known = prior(X.shape[2])
    kappa, nu, m0, b = known["mean_precision"], known["degrees_of_freedom"], known["mean"], known["scale"]
    n, D = X.shape[1:]
    Y = X - m0
    mean = Y.sum(axis=1) / (kappa + n)
    B = b * np.eye(D) + np.einsum("mna,mnb->mab", Y, Y) - (kappa + n) * mean[:, :, None] * mean[:, None, :]
    value = multigammaln(0.5 * (nu + n), D) - multigammaln(0.5 * nu, D) + 0.5 * nu * D * np.log(b)
    return (
        value
        - 0.5 * (nu + n) * np.linalg.slogdet(B)[1]
        - 0.5 * n * D * np.log(np.pi)
        + 0.5 * D * np.log(kappa / (kappa + n))
    )


def block_evidence(X):
    """The same with missing cells, at most two, integrated out on a grid that is dense near the data."""
    gone = np.argwhere(np.isnan(X))
    u, du = np.linspace(-10.0, 10.0, 301, retstep=True)
    grid, weights = 1.0 + np.sinh(u), np.cosh(u) * du
    total = 0.0
    for values in [grid[:, None]] if len(gone) == 1 else [np.array(list(product(grid, grid)))] if len(gone) else [None]:
        if values is None:
            return float(complete_evidence(X[None])[0])
        Y = np.repeat(X[None], len(values), axis=0)
        w = np.ones(len(values))
        for j, (n, d) in enumerate(gone):
            Y[:, n, d] = values[:, j]
            w *= np.interp(values[:, j], grid, weights)
        total = float(logsumexp(complete_evidence(Y), b=w))
    return total


def test_the_bound_is_below_the_evidence_and_climbs(naive):
    """Of four rows with two missing cells, over all partitions; it is tight to what mean fields lose."""
    rng = np.random.default_rng(0)
    X = np.array([[0.3, 1.1], [2.0, np.nan], [np.nan, 1.6], [4.0, 4.5]])
    likelihood = Gaussian(**prior(2)).resolve(Sample.of(X))
    allocation = DirichletProcess(0.7)
    n = len(X)
    partitions = [
        z for z in product(range(n), repeat=n) if all(k <= max(z[:i], default=-1) + 1 for i, k in enumerate(z))
    ]
    blocks = {}
    terms = []
    for z in partitions:
        sizes = np.bincount(z)
        chance = len(sizes) * np.log(0.7) + gammaln(sizes).sum() + gammaln(0.7) - gammaln(0.7 + n)
        for k in range(len(sizes)):
            rows = tuple(i for i in range(n) if z[i] == k)
            if rows not in blocks:
                blocks[rows] = block_evidence(X[list(rows)])
            chance += blocks[rows]
        terms.append(chance)
    evidence = logsumexp(terms)
    model = Model(likelihood, allocation)
    for K in (1, 2, 3):
        summary = summary_of(likelihood, X, rng.dirichlet(np.full(K, 0.3), n), naive.features)
        bounds = []
        for _ in range(40):
            summary, _ = local_step(likelihood, model.parameters(model.ordered(summary), FLOAT), X, np.ones(n))
            bounds.append(model.bound(model.ordered(summary)))
        assert np.all(np.diff(bounds) > -1e-10)
        assert bounds[-1] < evidence
    assert bounds[-1] > evidence - 6.0


def test_one_row_of_one_cluster_by_quadrature(naive):
    """The bound of a row with a missing cell is below its marginal density, and near where parameters are known."""
    X = np.array([[0.4, np.nan]])
    for sure in (1.0, 1e6):
        given = prior(2) | {"mean_precision": sure, "degrees_of_freedom": 3.0 + sure, "scale": 2.0 * (3.0 + sure)}
        likelihood = Gaussian(**given).resolve(Sample.of(np.array([[0.4, np.nan], [1.3, 2.0], [0.0, 0.5]])))
        exact = likelihood.log_predictive(X, np.zeros(1), np.zeros((1, likelihood.n_statistics)))[0, 0]
        N, S = np.ones(1), naive.features(likelihood, X)
        for _ in range(50):
            S = likelihood.cells.filled(naive.features(likelihood, X), likelihood.weights(N, S)[0], np.zeros(1, int))
        bound = likelihood.log_marginal(N, S)[0] + likelihood.log_base(X)[0]
        assert bound < exact
        assert bound == pytest.approx(exact, abs=0.7 if sure == 1.0 else 1e-5)


def test_a_model_of_complete_rows_is_the_same_made_for_missing_cells(naive):
    rng = np.random.default_rng(1)
    _, X, _ = clusters(1, n=80)
    X[:, 2] = np.round(X[:, 2])
    narrow = Gaussian().resolve(Sample.of(X))
    R = rng.dirichlet(np.ones(3), len(X))
    before = summary_of(narrow, X, R, naive.features)
    wide, S = narrow.with_missing(np.array([True, False, True, True]), before.S)
    each = narrow.with_missing(np.array([True, False, True, True]), naive.features(narrow, X))[1]
    np.testing.assert_array_equal(each, naive.features(wide, X))
    np.testing.assert_allclose(S, summary_of(wide, X, R, naive.features).S, rtol=0, atol=1e-13)
    np.testing.assert_allclose(wide.log_marginal(before.N, S), narrow.log_marginal(before.N, before.S), rtol=1e-13)
    np.testing.assert_allclose(wide.log_base(X), narrow.log_base(X), rtol=1e-14)
    np.testing.assert_array_equal(wide.log_predictive(X, before.N, S), narrow.log_predictive(X, before.N, before.S))
    model = Model(narrow, DirichletProcess(1.0))
    one, _ = local_step(narrow, model.parameters(before, FLOAT), X, np.ones(len(X)))
    other = Model(wide, DirichletProcess(1.0))
    two, _ = local_step(wide, other.parameters(Summary(before.N, S, before.H, before.base), FLOAT), X, np.ones(len(X)))
    assert other.bound(two) == pytest.approx(model.bound(one), rel=1e-13)
    X[::3, 2] = np.nan
    filled, _ = local_step(wide, other.parameters(two, FLOAT), X, np.ones(len(X)))
    again, more = wide.with_missing(np.ones(4, bool), filled.S)
    assert again.n_statistics == wide.n_statistics + 1
    np.testing.assert_allclose(again.log_marginal(filled.N, more), wide.log_marginal(filled.N, filled.S), rtol=1e-13)


def test_rounding_counts_for_observed_cells_alone():
    """A cluster of rows without values in a rounded column keeps its prior there."""
    rng = np.random.default_rng(2)
    X = np.round(3.0 * rng.standard_normal((60, 2)))
    X[::3, 0] = np.nan
    likelihood = Gaussian(scale=1.0).resolve(Sample.of(X))
    assert likelihood.rounding[0] > 0.0
    T = likelihood.features(X, np.empty((60, likelihood.n_statistics)))
    W, b = likelihood.weights(np.array([60.0]), T.sum(axis=0)[None])
    for f in range(likelihood.n_statistics):  # weights are slopes
        steps = 1e-4 * np.eye(likelihood.n_statistics)[[f]]
        values = [likelihood.log_marginal(np.array([60.0]), T.sum(axis=0) + s)[0] for s in (steps, -steps)]
        assert (values[0] - values[1]) / 2e-4 == pytest.approx(W[0, f], rel=1e-5, abs=1e-6)
    gone = T[0] @ W[0]
    steps = likelihood.rounding
    P = np.array([W[0, 0], W[0, 2]]) / -0.5
    exact = b[0] + 0.5 * P @ steps  # b without what rounding takes
    z = (X[0] - likelihood.origin) / likelihood.unit
    want = 0.5 - 0.5 * P[0] - 0.5 * P[1] * (z[1] ** 2 + steps[1]) + W[0, 4] * z[1] + exact
    assert gone + b[0] == pytest.approx(want, rel=1e-12)


# Predictions


def test_densities_of_observed_cells_are_integrals_and_imputed_ones_means(naive):
    Y, _, z = clusters(3, n=90, D=3, K=2, share=0.2)
    likelihood = Gaussian(**(prior(3) | {"degrees_of_freedom": 9.0})).resolve(Sample.of(Y))
    summary = summary_of(likelihood, Y, np.eye(2)[z], naive.features)
    u, du = np.linspace(-15.0, 15.0, 4001, retstep=True)
    row = Y[~np.isnan(Y).any(axis=1)][:1]
    for d in range(3):
        rows = np.repeat(row, len(u), axis=0)
        rows[:, d] += np.sinh(u)
        log_w = np.log(np.cosh(u) * du)[:, None]
        densities = likelihood.log_predictive(rows, summary.N, summary.S) + log_w
        without = row.copy()
        without[0, d] = np.nan
        total = logsumexp(densities, axis=0)
        np.testing.assert_allclose(likelihood.log_predictive(without, summary.N, summary.S)[0], total, rtol=1e-7)
        means = (np.exp(densities - total) * rows[:, [d]]).sum(axis=0)
        for k in range(2):
            filled = likelihood.impute(without, np.eye(2)[[k]], summary.N, summary.S)
            assert filled[0, d] == pytest.approx(means[k], rel=1e-6)
            np.testing.assert_array_equal(np.delete(filled, d), np.delete(row, d))
    nothing = np.full((1, 3), np.nan)
    np.testing.assert_array_equal(likelihood.log_predictive(nothing, summary.N, summary.S), 0.0)


def test_on_the_log_scale_as_on_its_own(naive):
    """Bounds differ by the Jacobian of the observed cells; what is filled in is the mean of a log-normal."""
    Y, _, z = clusters(4, n=120, D=3, K=2, share=0.15)
    plain = Gaussian().resolve(Sample.of(0.1 * Y))
    logs = LogScale(Gaussian()).resolve(Sample.of(np.exp(0.1 * Y)))
    R = np.eye(2)[z]
    one, two = (
        summary_of(family, rows, R, naive.features) for family, rows in ((plain, 0.1 * Y), (logs, np.exp(0.1 * Y)))
    )
    jacobian = np.nansum(-0.1 * Y)
    assert two.base + logs.log_marginal(two.N, two.S).sum() == pytest.approx(
        one.base + plain.log_marginal(one.N, one.S).sum() + jacobian, rel=1e-9
    )
    filled = logs.impute(np.exp(0.1 * Y), R, two.N, two.S)
    gone = np.isnan(Y)
    np.testing.assert_array_equal(filled[~gone], np.exp(0.1 * Y)[~gone])
    W = plain.weights(one.N, one.S)[0]
    for n in np.flatnonzero(gone.any(axis=1))[:20]:
        (cells,) = np.nonzero(gone[n])
        row = np.nan_to_num((0.1 * Y[n] - plain.origin) / plain.unit)
        mean, V = best_cells_reference(W[z[n]], row, cells, 0)
        want = plain.origin[cells] + plain.unit[cells] * mean + 0.5 * plain.unit[cells] ** 2 * np.diagonal(V)
        np.testing.assert_allclose(np.log(filled[n, cells]), want, rtol=1e-9, atol=1e-9)


def test_parts_of_a_product_add_up(naive):
    Y, _, z = clusters(5, n=80, D=4, share=0.2)
    X = np.column_stack([Y[:, :2], z == 0, Y[:, 2:]]).astype(float)
    parts = {"a": (Gaussian(), [4, 0]), "b": (Bernoulli(), [2]), "c": (Gaussian(), [1, 3])}
    both = Product(parts).resolve(Sample.of(X))
    assert [block.first for block in both.cells.blocks] == [0, both.n_statistics - 8]
    R = np.random.default_rng(0).dirichlet(np.ones(3), len(X))
    summary = summary_of(both, X, R, naive.features)
    W, b = both.weights(summary.N, summary.S)
    scores = naive.features(both, X) @ W.T + b
    both.cells.integrate(naive.features(both, X), W, scores)
    want = np.zeros_like(scores)
    for family, columns in both.parts.values():
        rows = np.ascontiguousarray(X[:, columns])
        T = naive.features(family, rows)
        w, c = family.weights(summary.N, R.T @ T)
        own = T @ w.T + c
        if family.cells is not None:
            family.cells.integrate(T, w, own)
        want += own
    np.testing.assert_allclose(scores, want, rtol=1e-11, atol=1e-11)


# What mixtures find


@pytest.mark.parametrize("share", [0.1, pytest.param(0.4, marks=pytest.mark.long)])
def test_clusters_are_found_and_the_family_is_chosen(share):
    Y, _, z = clusters(6, n=450, share=share)
    fitted = Mixture(random_state=0, n_jobs=1).fit(Y)
    assert fitted.selection_[0].family == "gaussian"
    assert fitted.n_clusters_ == 3
    of_truth = Mixture("gaussian", random_state=0, n_jobs=1, init=z).fit(Y)
    assert fitted.lower_bound_ > of_truth.lower_bound_ - 1.0
    assert adjusted_rand_score(fitted.labels_, of_truth.labels_) > 0.97
    assert np.all(np.diff(fitted.lower_bounds_) > -1e-8 * abs(fitted.lower_bound_))


@pytest.mark.parametrize("seed", range(2))
def test_one_correlated_gaussian_is_one_cluster(seed):
    rng = np.random.default_rng(10 + seed)
    X = rng.standard_normal((250, 5)) @ rng.standard_normal((5, 5))
    Y = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    assert Mixture(random_state=0, n_jobs=1).fit(Y).n_clusters_ == 1


def test_batches_precision_files_and_known_models(tmp_path):
    Y, X, z = clusters(7, n=200)
    given = {"random_state": 0, "n_jobs": 1, "init": z, "moves": ()}
    fitted = Mixture("gaussian", **given).fit(Y)
    for other in (
        Mixture("gaussian", **given | {"n_batches": 4, "n_jobs": 2}).fit(Y),
        Mixture("gaussian", **given).fit(Y.astype(np.float32)),
        Mixture("gaussian", **given | {"init": fitted}).fit(Y),
    ):
        assert other.n_clusters_ == fitted.n_clusters_ == 3
        assert other.lower_bound_ == pytest.approx(fitted.lower_bound_, abs=0.5)
    fitted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    for ask in ("predict_proba", "score_samples", "impute"):
        np.testing.assert_array_equal(getattr(again, ask)(Y), getattr(fitted, ask)(Y))
    whole = Mixture("gaussian", **given).fit(X)
    assert (whole.predict(Y) == whole.labels_).mean() > 0.9
    gone = np.isnan(Y)
    assert ((whole.impute(Y) - X)[gone] ** 2).mean() < 0.3 * X[gone].var()


def test_what_cannot_fill_in_says_so():
    Y, X, z = clusters(8, n=60)
    refusals = {
        "Gaussian cannot use missing values": lambda: HMM("gaussian").fit(Y),
        "StudentT cannot use missing values": lambda: Mixture("student_t").fit(Y),
        "GaussianNetwork cannot use missing values": lambda: Mixture("gaussian_network").fit(Y),
        "Background cannot use missing values": lambda: Mixture(Background()).fit(Y),
        "seeds need complete rows": lambda: Mixture("gaussian", seeds={"a": X[:3]}).fit(Y),
        "groups need complete rows": lambda: Mixture("gaussian").fit(Y, groups=z),
        "missing values are latent; use DiagonalGaussian": lambda: Mixture("gaussian", algorithm="sequential").fit(Y),
    }
    for message, fit in refusals.items():
        with pytest.raises(ValueError, match=message):
            fit()


def test_tags_allow_missing_values_where_fits_do():
    for name, family in REGISTRY.items():
        assert Mixture(name).__sklearn_tags__().input_tags.allow_nan == family.takes_missing
        for other in (HMM(name), TopicModel(name)):
            assert other.__sklearn_tags__().input_tags.allow_nan == (family.takes_missing and name != "gaussian")


def test_columns_integrate_missing_values_out_or_fill_them_in():
    parts = {"numbers": (Gaussian(), [0, 1]), "bits": (Bernoulli(), [2])}
    for family, filled, integrated in (
        (Gaussian(), [1, 1, 1], [0, 0, 0]),
        (StudentT(), [0, 0, 0], [0, 0, 0]),
        (LogScale(Gaussian()), [1, 1, 1], [0, 0, 0]),
        (LogScale(DiagonalGaussian()), [0, 0, 0], [1, 1, 1]),
        (Product(parts).locate(None, 3), [1, 1, 0], [0, 0, 1]),
    ):
        np.testing.assert_array_equal(family.fills_in(3), filled)
        np.testing.assert_array_equal(family.integrates_out(3), integrated)


def test_filling_in_is_left_out_where_it_would_take_too_long():
    rng = np.random.default_rng(0)
    gaps = rng.random((200, 30)) < 0.5
    few = rng.random((3, 30))[rng.integers(3, size=200)] < 0.3
    for holes, rows, wanted in ((gaps, 200, True), (gaps, 10**6, False), (few, 10**6, True)):
        X = np.where(holes, np.nan, rng.standard_normal(holes.shape))
        (reading,) = readings(ArraySource(X), {})
        reading = type(reading)(**(reading.__dict__ | {"fills_in": True, "n_rows": rows}))
        assert ("gaussian" in reading.families()) == wanted
        assert next(iter(reading.families())) == "diagonal_gaussian"
