"""Hyperparameters that are learnt: they raise the bound, and nothing else about a fit changes."""

import warnings
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import beta, multivariate_t, norm, wishart
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.likelihoods import (
    AutoregressiveGaussian,
    Background,
    Bernoulli,
    DiagonalGaussian,
    Gaussian,
    GaussianNetwork,
    Product,
    Sample,
    SphericalGaussian,
    StudentT,
    ZeroMeanGaussian,
)
from stickbreak.likelihoods.features import features
from stickbreak.model import Model, Summary, local_step
from stickbreak.model.learning import LARGEST_TERMS, LAST_TERMS, OF_LIKELIHOOD, _Learner, _terms, at_limit, tuned
from stickbreak.model.seeding import hard_summary

FLOAT = np.dtype(float)
ALLOCATIONS = {"dp": DirichletProcess(3.0), "finite": FiniteDirichlet(5, 0.7), "pitman-yor": PitmanYor(3.0, 0.2)}


def data(family, n=200):
    rng = np.random.default_rng(0)
    return family.rows(rng, n, 3), rng.integers(3, size=n)


def fit(family, X, **parameters):
    defaults = {"likelihood": family.make(X.shape[1]), "random_state": 0, "n_jobs": 1, "max_laps": 20}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return Mixture(**{**defaults, **parameters}).fit(X)


def learning_all(family):
    return [*(OF_LIKELIHOOD + name for name in family.make(3).tunables()), "concentration"]


def test_learning_never_lowers_the_bound_and_ends_above_a_fit_without(family, turn):
    """From where the fit without ended: from labels, the two may end at different optima."""
    allocation = list(ALLOCATIONS)[turn % 3]
    X, labels = data(family)
    options = {"allocation": ALLOCATIONS[allocation], "moves": (), "tol": 1e-6, "max_laps": 10}
    plain = fit(family, X, init=labels, learn=False, **options)
    learn = [*learning_all(family), *(("discount",) if allocation == "pitman-yor" else ())]
    found, other = (fit(family, X, learn=learn, init=init, **options) for init in (plain, labels))
    for bounds in (np.array(found.lower_bounds_), np.array(other.lower_bounds_)):
        assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
    assert found.lower_bound_ >= plain.lower_bound_ - 1e-9 * abs(plain.lower_bound_)
    assert found.lower_bound_ == found.model_.bound(found.summary_)
    assert found.model_.allocation.concentration != ALLOCATIONS[allocation].concentration
    likelihood, before = found.model_.likelihood, plain.model_.likelihood
    N, S = found.summary_.N, found.summary_.S
    assert likelihood.log_marginal(N, S).sum() > before.log_marginal(N, S).sum()


@pytest.mark.parametrize("algorithm", ["memoized", "stochastic"])
def test_learning_works_with_moves_and_every_algorithm(known_families, algorithm):
    for name in ("gaussian-default", "poisson-default", "product-missing", "student_t-default", "background-default"):
        X, _ = data(known_families[name])
        options = {"algorithm": algorithm, "n_batches": 2, "learn": learning_all(known_families[name]), "max_laps": 20}
        found = fit(known_families[name], X, **options)
        bounds = np.array(found.lower_bounds_)
        assert np.isfinite(bounds).all()
        if algorithm != "stochastic":
            assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[1:]))
        R = found.predict_proba(X)
        assert R.shape == (len(X), found.n_clusters_)
        if name in ("gaussian-default", "product-missing"):
            assert fit(known_families[name], X, **options).lower_bounds_ == found.lower_bounds_


def test_steps_of_learning_end_as_high_as_a_search_over_factors_of_each(family, naive):
    """Against a grid of factors, one hyperparameter after the other."""
    X, labels = data(family)
    model = Model(family.likelihood(X), DirichletProcess(3.0))
    summary = model.ordered(naive.summarise(model.likelihood, X, np.eye(3)[labels]))
    names = [
        name for name in model.likelihood.tunables() if not name.endswith("correlation")
    ]  # one if nothing is lacking
    found, bounds = model, [model.bound(summary)]
    for _ in range(30):
        chosen = [*(OF_LIKELIHOOD + name for name in names), "concentration"]
        found = tuned(found.posterior(summary), chosen, np.dtype(float)).model
        bounds.append(found.bound(summary))
    assert (np.diff(bounds) >= -1e-12 * abs(bounds[0])).all()
    grid = np.exp(np.linspace(-2.0, 2.0, 201))

    def gains(likelihoods):
        with np.errstate(all="ignore"):
            values = np.array([q.log_marginal(summary.N, summary.S).sum() for q in likelihoods])
        return np.nan_to_num(values, nan=-np.inf)

    best = model.likelihood
    for name in names:
        candidates = [best.scaled(name, factor) for factor in grid]
        best = candidates[gains(candidates).argmax()]
    assert gains([found.likelihood])[0] >= gains([best])[0] - 1e-3
    allocations = [model.allocation.scaled(factor).bound(summary) for factor in grid]
    assert found.allocation.bound(summary) >= max(allocations) - 1e-6


@pytest.mark.parametrize("share", [0.0, 0.6, 0.99])
def test_the_correlation_of_clusters_is_learnt(share, naive):
    """Rows of clusters whose covariances have a share of the correlations of the data."""
    rng = np.random.default_rng(3)
    pattern = 0.9 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    labels = np.repeat(np.arange(40), 60)
    covariance = (1.0 - share) * np.eye(6) + share * pattern
    precisions = wishart(30, np.linalg.inv(covariance) / 30, seed=rng).rvs(40)
    X = np.concatenate([rng.multivariate_normal(np.zeros(6), np.linalg.inv(P), 60) for P in precisions])
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(3.0))
    summary = naive.summarise(model.likelihood, X, np.eye(40)[labels])
    for _ in range(60):
        names = [OF_LIKELIHOOD + name for name in Gaussian.tunable]
        model = tuned(model.posterior(summary), names, np.dtype(float)).model
    found = model.likelihood
    deviations = np.sqrt(np.diag(found.scale))
    np.testing.assert_allclose(found.scale / np.outer(deviations, deviations), covariance, atol=0.1)
    assert found.degrees_of_freedom == pytest.approx(30.0, rel=0.2)
    np.testing.assert_allclose(np.diag(found.scale) / found.degrees_of_freedom, 1.0, rtol=0.15)


@pytest.mark.parametrize(("n", "D"), [(15, 30), (30, 30), (200, 40), (5000, 8)])
def test_independent_columns_have_no_correlations(n, D):
    """But for the few that are beyond the edge by chance; columns that depend on others keep theirs."""
    X = np.random.default_rng(n).standard_normal((n, D))
    C = Sample.of(X).correlations(X.mean(axis=0), X.std(axis=0))
    assert np.linalg.eigvalsh(C)[0] > 0.1
    assert np.abs(C - np.eye(D)).mean() < 0.02
    if n > 4 * D:
        copied = np.column_stack([X, X[:, 0]])
        C = Sample.of(copied).correlations(copied.mean(axis=0), copied.std(axis=0))
        assert C[0, -1] > 0.9


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(("n", "D"), [(15, 30), (60, 10)])
def test_a_learnt_prior_does_not_depend_on_the_order_of_rows(n, D):
    X = np.random.default_rng(0).random((n, D))
    one, other = (Mixture("gaussian", max_laps=60, random_state=0, n_jobs=1).fit(Y) for Y in (X, X[::-1]))
    assert one.n_clusters_ == other.n_clusters_
    assert one.lower_bound_ == pytest.approx(other.lower_bound_, abs=0.1)


def test_steps_of_expectation_maximisation_raise_the_log_marginals(family, naive):
    """The last of the ways in which a hyperparameter of many numbers is fitted; the fixed point is a stationary point."""
    X, labels = data(family)
    likelihood = family.likelihood(X)
    summary = naive.summarise(likelihood, X, np.eye(3)[labels])
    for name in likelihood.tunables():
        for _ in range(3):
            ways = list(likelihood.fitted(name, summary.N, summary.S))
            if not ways:
                break
            before, after = (q.log_marginal(summary.N, summary.S).sum() for q in (likelihood, ways[-1]))
            assert after >= before - 1e-9 * abs(before)
            likelihood = ways[-1]


@pytest.mark.long
def test_the_columns_in_which_means_differ_are_the_best_of_all_sets():
    """All sets of 5 columns, and precisions where means differ, by densities that scipy has."""
    rng = np.random.default_rng(3)
    K, n, D = 4, 12, 5
    z = np.repeat(np.arange(K), n)
    X = np.array([3.0, 0.6, 0.45, 0.0, 0.0]) * rng.normal(size=(K, D))[z] + rng.normal(size=(K * n, D))
    likelihood = DiagonalGaussian(mean=0.0, shape=5.0, rate=5.0).resolve(Sample.of(X))
    R = np.eye(K)[z]
    N, S = R.sum(axis=0), R.T @ likelihood.features(X, np.empty((len(X), likelihood.n_statistics)))

    def log_density(kappa):
        """Of each column, (D,)."""
        t = multivariate_t(np.zeros(n), np.eye(n) + 1.0 / kappa, 10.0)
        return np.array([sum(t.logpdf(X[z == k, d]) for k in range(K)) for d in range(D)])

    def log_prior(m):
        return 0.0 if m == D else np.log(beta(0.5, 0.5).expect(lambda share: share**m * (1.0 - share) ** (D - m)))

    agreed = log_density(1e12)
    values = {}
    for kappa in (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0):
        differing = log_density(kappa)
        for chosen in product((False, True), repeat=D):
            values[kappa, chosen] = np.where(chosen, differing, agreed).sum() + log_prior(sum(chosen))
    found = next(likelihood.fitted("mean_precision", N, S))
    kappa, chosen = max(values, key=values.get)
    assert 0 < sum(chosen) < D
    np.testing.assert_array_equal(found.mean_precision, np.where(chosen, kappa, 1e9))
    value = found.log_marginal(N, S).sum() + found.log_hyperprior
    before = likelihood.log_marginal(N, S).sum() + likelihood.log_hyperprior
    assert value - before == pytest.approx(values[kappa, chosen] - values[1e-3, (True,) * D], abs=1e-6)


@pytest.mark.parametrize(("n", "D"), [(200, 300), pytest.param(60, 1000, marks=pytest.mark.long)])
def test_noise_alone_has_no_columns_that_tell_clusters_apart(n, D):
    X = np.random.default_rng(2).normal(size=(n, D))
    found = Mixture("diagonal_gaussian", random_state=2, n_jobs=1).fit(X)
    assert found.n_clusters_ == 1
    assert not (found.model_.likelihood.mean_precision < 1e9).any()


def test_the_prior_of_many_clusters_is_recovered():
    """Coins whose chances come from Beta(2, 6): empirical Bayes finds its mean and its width."""
    rng = np.random.default_rng(1)
    chance = rng.beta(2.0, 6.0, (40, 150))
    labels = np.repeat(np.arange(40), 50)
    X = (rng.random((2000, 150)) < chance[labels]).astype(float)
    found = Mixture(Bernoulli(1.0, 1.0), init=labels, moves=(), learn=("a", "b"), n_jobs=1, max_laps=100).fit(X)
    a, b = found.model_.likelihood.a, found.model_.likelihood.b
    assert (a / (a + b)).mean() == pytest.approx(0.25, abs=0.02)
    assert (a + b).mean() == pytest.approx(8.0, rel=0.15)


def test_hyperparameters_given_are_learnt_from():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-9.0, 0.0, 9.0)])
    options = {"init": np.repeat([0, 1, 2], 60), "moves": (), "n_jobs": 1, "max_laps": 300, "tol": 1e-9}
    given = Gaussian(scale=np.diag([400.0, 0.01]))
    found = Mixture(given, learn=["scale"], **options).fit(X)
    plain = Mixture(given, learn=False, **options).fit(X)
    assert found.lower_bound_ > plain.lower_bound_
    assert given.scale[0, 0] == 400.0  # an object of the user is not changed
    model = found.model_.likelihood
    assert (model.mean_precision, model.degrees_of_freedom) == (1e-3, 4.0)
    within = np.diag(model.scale) / np.diag(given.scale)
    assert within[0] < 1.0 < within[1]
    assert found.get_params()["likelihood"] is given


def test_what_is_given_is_not_learnt():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-9.0, 0.0, 9.0)])
    found = Mixture(Gaussian(scale=2.0, mean_precision=0.3), random_state=0, n_jobs=1).fit(X).model_.likelihood
    np.testing.assert_array_equal(found.scale, 2.0 * np.eye(2))
    assert found.mean_precision == 0.3
    assert found.degrees_of_freedom != 4.0
    plain = Mixture("gaussian", learn=False, random_state=0, n_jobs=1).fit(X).model_.likelihood
    assert (plain.mean_precision, plain.degrees_of_freedom) == (1e-3, 4.0)


def test_names_say_what_is_learnt(known_families):
    X, labels = data(known_families["product-missing"])
    options = {"init": labels, "moves": (), "max_laps": 5}
    before = fit(known_families["product-missing"], X, learn=False, **options).model_
    after = fit(known_families["product-missing"], X, learn=["concentration", "numbers.rate"], **options).model_
    changed = {
        f"{name}.{own}"
        for name, (part, _) in after.likelihood.parts.items()
        for own in part.tunables()
        if not np.array_equal(getattr(part, own), getattr(before.likelihood.parts[name][0], own), equal_nan=True)
    }
    assert changed == {"numbers.rate"}
    assert after.allocation.concentration != before.allocation.concentration


@pytest.mark.parametrize("value", [None, 1, "scale", np.nan, [1.0], {"scale": 1.0}])
def test_learn_is_true_or_false_or_names(value):
    with pytest.raises(ValueError, match="learn must be True, False, or names"):
        Mixture("gaussian", learn=value).fit(np.eye(5))


def test_names_of_nothing_are_refused_with_those_there_are():
    with pytest.raises(
        ValueError, match=r"learn names 'rate', but what can be learnt is concentration, likelihood\.mean_pre"
    ):
        Mixture("gaussian", learn=["rate"]).fit(np.eye(5))


def rounded_rows():
    rng = np.random.default_rng(3)
    Z = rng.standard_normal((800, 3))
    atom = np.where(rng.random(800) < 0.95, 0.0, rng.exponential(1.0, 800))
    return {
        "tenths": (Z.round(1), 1),
        "whole numbers": ((2.0 * Z).round(), 1),
        "coarse": (Z.round(), 1),
        "constant column": (np.column_stack([Z, np.full(800, 7.0)]), 1),
        "rounded copy": (np.column_stack([Z, Z[:, 0].round(1)]), 1),
        "copy": (np.column_stack([Z, Z[:, 0]]), 1),
        "mostly zero": (np.column_stack([Z, atom]), 3),
        "an outlier": (np.vstack([Z, np.full((1, 3), 1e4)]), 2),
    }


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", rounded_rows())
def test_rounding_and_ties_make_no_clusters(name):
    X, most = rounded_rows()[name]
    assert Mixture("gaussian", max_laps=300, random_state=0, n_jobs=1).fit(X).n_clusters_ <= most


@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian"])
def test_a_constant_column_says_nothing(name):
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(m, 1.0, (100, 2)) for m in (-6.0, 0.0, 6.0)])
    wide = np.column_stack([X[:, 0], np.full(300, 3.0), X[:, 1]])
    without, found = (Mixture(name, learn=False, random_state=0, n_jobs=1).fit(Y) for Y in (X, wide))
    assert found.n_clusters_ == without.n_clusters_ == 3
    assert found.lower_bound_ == pytest.approx(without.lower_bound_, rel=1e-9)
    np.testing.assert_allclose(found.predict_proba(wide), without.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(found.score_samples(wide), without.score_samples(X), rtol=1e-6)
    assert (found.means_[:, 1] == 3.0).all()


@pytest.mark.filterwarnings("ignore::stickbreak.DataWarning")
def test_constant_columns_alone_are_one_cluster_without_a_word(capfd):
    found = Mixture("gaussian", random_state=0, n_jobs=1).fit(np.full((20, 3), 2.0))
    assert found.n_clusters_ == 1
    assert capfd.readouterr() == ("", "")


def test_the_bound_of_rounded_values_is_one_on_the_probability_of_their_steps():
    """With the cluster's parameters nearly known: the log probability of the step of each value, over its width."""
    X = np.random.default_rng(5).normal(0.0, 1.2, (400, 1)).round()
    prior = Gaussian(mean=0.0, mean_precision=1e9, degrees_of_freedom=1e9, scale=1.44e9)
    found = Mixture(prior, learn=False, moves=(), n_jobs=1).fit(X)
    exact = np.log(norm.cdf((X + 0.5) / 1.2) - norm.cdf((X - 0.5) / 1.2)).sum()
    assert exact - 0.05 * len(X) < found.lower_bound_ < exact
    assert found.lower_bound_ < norm.logpdf(X, 0.0, 1.2).sum()


@pytest.mark.parametrize(
    ("name", "seed", "draw"),
    [
        ("bernoulli", 6, lambda rng: (rng.random((20, 6)) < 0.4).astype(int)),
        ("categorical", 4, lambda rng: rng.integers(4, size=(20, 3))),
        ("categorical", 13, lambda rng: rng.integers(4, size=(20, 3))),
        ("poisson", 8, lambda rng: rng.poisson(3.0, (20, 3))),
        pytest.param("auto", 2, lambda rng: rng.poisson(100.0, (20, 3)), marks=pytest.mark.long),
    ],
)
def test_clusters_are_worth_more_than_one_with_a_prior_of_its_own(name, seed, draw):
    """A learnt prior may make clusters all alike, and two that are alike explain rows a little better than one."""
    X = draw(np.random.default_rng(seed))
    fit = Mixture(name, random_state=0).fit(X)
    one = Mixture(name, init=np.zeros(len(X), int), moves=(), random_state=0).fit(X)
    assert fit.n_clusters_ == 1
    assert fit.lower_bound_ == pytest.approx(one.lower_bound_, abs=0.01)


def test_a_learnt_model_is_saved_and_continued(tmp_path, known_families):
    from stickbreak import load

    family = known_families["product-missing"]
    X, labels = data(family)
    found = fit(family, X, learn=["rate", "concentration"], init=labels, moves=())
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.lower_bound_ == found.lower_bound_
    assert again.get_params()["learn"] == ["rate", "concentration"]
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))
    for (part, _), (other, _) in zip(again.model_.likelihood.parts.values(), found.model_.likelihood.parts.values()):
        for name in part.tunables():
            np.testing.assert_array_equal(getattr(part, name), getattr(other, name))


def test_learning_is_a_step_that_only_the_prior_sees(known_families, naive):
    """The responsibilities of the next lap follow from the new prior by plain variational inference."""
    family = known_families["poisson-default"]
    X, labels = data(family)
    options = {"init": labels, "moves": (), "algorithm": "full"}
    one, two = (fit(family, X, max_laps=n, **options) for n in (1, 2))
    parameters = one.model_.parameters(one.summary_, np.dtype(float))
    summary, _ = local_step(one.model_.likelihood, parameters, X, np.ones(len(X)))
    naive.assert_same(one.model_.ordered(summary), two.summary_, rtol=1e-9)


def sequences(seed=0):
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.integers(3, size=16), 10)
    return rng.normal(8.0 * states[:, None], 1.0, (160, 2))


def words(seed=0):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(40, 0.1), 3)
    return np.array([rng.multinomial(50, p) for p in rng.dirichlet(np.full(3, 0.3), 100) @ topics]).astype(float)


OTHERS = {
    "states": lambda **given: HMM("gaussian", max_laps=80, random_state=0, n_jobs=1, **given).fit(sequences()),
    "one state": lambda **given: HMM("gaussian", max_laps=80, random_state=0, n_jobs=1, **given).fit(
        np.random.default_rng(0).normal(size=(150, 2))
    ),
    "topics": lambda **given: TopicModel(max_laps=110, random_state=0, n_jobs=1, n_init_topics=8, **given).fit(words()),
    "groups": lambda **given: TopicModel("diagonal_gaussian", max_laps=90, random_state=0, n_jobs=1, **given).fit(
        sequences(), lengths=[20] * 8
    ),
}


@cache
def other(name, learn):
    """A fit of `OTHERS`, which no test may change."""
    return OTHERS[name](learn=learn)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", OTHERS)
def test_states_and_topics_learn_their_priors_too(name):
    """The bound is higher than with the default prior, is that of the model, and there are as many clusters."""
    plain = other(name, False)
    found = other(name, True)
    assert found.summary_.K == plain.summary_.K
    assert found.lower_bound_ > plain.lower_bound_
    assert found.lower_bound_ == found.model_.bound(found.summary_)
    assert (np.diff(found.lower_bounds_) >= -1e-9 * abs(found.lower_bound_)).all()


@pytest.mark.filterwarnings("ignore:not converged")
def test_concentrations_are_learnt_from_what_is_given():
    given = {"stickiness": 3.0, "transition_concentration": 2.0, "start_concentration": 5.0}
    found = OTHERS["states"](learn=["stickiness", "start_concentration"], **given)
    assert found.stickiness_ > 10.0
    assert found.transition_concentration_ == 2.0
    assert found.model_.allocation.start_concentration != 5.0
    assert found.lower_bound_ > OTHERS["states"](learn=False, **given).lower_bound_
    with pytest.raises(ValueError, match="learn names 'kappa', but what can be learnt is stickiness, transition_conc"):
        OTHERS["states"](learn=["kappa"])
    with pytest.raises(ValueError, match="learn must be True, False, or names"):
        OTHERS["topics"](learn="concentration")


@pytest.mark.filterwarnings("ignore:not converged")
def test_merged_states_go_on_learning():
    found = other("states", True)
    fewer = found.merge_states(2, sequences())
    assert fewer.lower_bound_ == fewer.model_.bound(fewer.summary_)
    assert fewer.n_states_ == 2


def flat_cluster(width, offset, D=3, n=400):
    """Float32 rows of two clusters, one of them nearly in a plane, and labels."""
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], n // 2)
    axes = np.linalg.qr(rng.standard_normal((D, D)))[0]
    spread = np.where(np.arange(D) == 0, width, 1.0) * axes
    Z = rng.standard_normal((n, D))
    X = np.where(z[:, None] == 0, Z @ spread.T, 4.0 + Z) + offset
    return X.astype(np.float32), z


@pytest.mark.parametrize(("width", "offset", "batches"), [(1e-2, 0.0, 1), (1e-3, 0.0, 3), (1e-3, 100.0, 1)])
def test_priors_of_narrow_clusters_are_learnt_from_float32_rows_too(width, offset, batches):
    X, z = flat_cluster(width, offset)
    parameters = {"init": z, "moves": (), "n_batches": batches, "random_state": 0, "n_jobs": 1}
    single, double = (Mixture("gaussian", **parameters).fit(rows) for rows in (X, X.astype(np.float64)))
    assert single.lower_bound_ > double.lower_bound_ - 0.1
    found = single.model_
    exact, _ = local_step(
        found.likelihood, found.parameters(single.summary_, FLOAT), X.astype(np.float64), np.ones(len(X))
    )
    assert found.bound(exact) == pytest.approx(single.lower_bound_, abs=0.1)


def test_scores_of_usual_clusters_stay_in_float32():
    X, z = flat_cluster(1.0, 100.0)
    model = Mixture("gaussian", init=z, moves=(), n_jobs=1).fit(X)
    assert model.model_.parameters(model.summary_, X.dtype).W.dtype == np.float32


@pytest.mark.long
@pytest.mark.parametrize("likelihood", [Gaussian(), DiagonalGaussian(), SphericalGaussian()])
def test_priors_of_clusters_that_hardly_vary_end_alike(likelihood):
    """The bound rises with ever narrower priors: to where scores can just be computed, wherever learning begins."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 50)
    X = rng.normal(0.0, 3.0, (4, 1))[labels] + 1e-7 * rng.standard_normal((200, 1))
    default = likelihood.resolve(Sample.of(X))
    names = [OF_LIKELIHOOD + name for name in default.tunables()]
    width = "scale" if "scale" in default.tunables() else "rate"
    found = []
    for factor in (1.0, 1.5, 3.0):
        posterior = Model(default.scaled(width, factor), DirichletProcess(3.0)).posterior(
            hard_summary(features(default, X), np.ones(200), labels)
        )
        bounds = [posterior.bound]
        for _ in range(60):
            posterior = tuned(posterior, names, FLOAT)
            bounds.append(posterior.bound)
        assert (np.diff(bounds) >= -1e-12 * abs(bounds[-1])).all()
        assert _terms(posterior) <= LARGEST_TERMS
        found.append(bounds[-1])
    assert max(found) - min(found) < 2.0


def narrow_clusters(width, columns=4, n=800):
    """Rows of clusters around the corners of a simplex, of which the data's correlations say nothing, and labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(columns, size=n)
    return 5.0 * np.eye(columns)[labels] + width * rng.standard_normal((n, columns)), labels


@pytest.mark.long
@pytest.mark.parametrize("likelihood", [Gaussian(), DiagonalGaussian(), SphericalGaussian()])
def test_priors_of_narrow_clusters_end_alike_wherever_learning_begins(likelihood):
    """Those that are learnt one by one stop where scores can just be computed, up to hundreds of nats below."""
    X, labels = narrow_clusters(1e-4)
    default = likelihood.resolve(Sample.of(X))
    names = [OF_LIKELIHOOD + name for name in default.tunables()]
    summary = hard_summary(features(default, X), np.ones(len(X)), labels)
    strength, width = default.strength
    starts = [default, default.scaled(width, 1e-3), default.scaled(strength, 30.0).scaled("mean_precision", 1e-4)]
    found = []
    for start in starts:
        posterior = Model(start, DirichletProcess(1.0)).posterior(summary)
        for _ in range(10):
            posterior = tuned(posterior, names, FLOAT)
        further = at_limit(posterior, names, FLOAT)
        assert further.bound > posterior.bound
        assert _terms(further) <= LAST_TERMS
        found.append(further.bound)
    assert max(found) - min(found) < 2.0  # half a nat for each cluster
    nearest = wide_prior_bound(likelihood, X, summary)
    assert min(found) > nearest - 6.0


def wide_prior_bound(likelihood, X, summary):
    """The highest bound of a grid of priors that expect variances of one number, whose scores can be computed."""
    best = -np.inf
    for variance in np.geomspace(6e-9, 2e-8, 48):
        for rows, kappa in product((3e2, 3e3, 1e5), (3e-9, 6e-9, 1e-8)):
            best = max(best, _computable_bound(likelihood, X, summary, variance, rows, kappa))
    return best


def _computable_bound(likelihood, X, summary, variance, rows, kappa):
    strength, width = likelihood.strength
    given = {strength: rows, width: rows * variance, "mean_precision": kappa}
    posterior = Model(replace(likelihood, **given).resolve(Sample.of(X)), DirichletProcess(1.0)).posterior(summary)
    return posterior.bound if _terms(posterior) <= LAST_TERMS else -np.inf


def test_only_narrow_columns_are_widened():
    X, labels = narrow_clusters(1e-5)
    X[:, 0] = labels + 0.3 * np.random.default_rng(1).standard_normal(len(X))
    likelihood = DiagonalGaussian().resolve(Sample.of(X))
    names = [OF_LIKELIHOOD + name for name in likelihood.tunables()]
    summary = hard_summary(features(likelihood, X), np.ones(len(X)), labels)
    posterior = Model(likelihood, DirichletProcess(1.0)).posterior(summary)
    for _ in range(10):
        posterior = tuned(posterior, names, FLOAT)
    found = at_limit(posterior, names, FLOAT).model.likelihood
    expected = np.sqrt(found.rate / found.shape)
    assert expected[0] == pytest.approx(0.3, rel=0.05)
    assert (expected[1:] < 1e-3).all()


def test_states_that_hardly_vary_end_at_the_best_prior_that_can_be_computed():
    """So a fit from the fit gains nothing, and where learning began says nothing."""
    X, labels = narrow_clusters(1e-4, columns=3, n=300)
    found = HMM("gaussian", init=labels, moves=(), random_state=0, n_jobs=1).fit(X)
    again = HMM("gaussian", init=found, moves=(), random_state=0, n_jobs=1).fit(X)
    names = [OF_LIKELIHOOD + name for name in ("mean_precision", "degrees_of_freedom", "scale", "correlation")]
    default = replace(found.model_, likelihood=Gaussian().resolve(Sample.of(X))).posterior(found.summary_)
    for _ in range(10):
        default = tuned(default, names, FLOAT)
    best = at_limit(default, names, FLOAT).bound
    assert best > default.bound + 100.0
    for estimator in (found, again):
        assert estimator.n_states_ == 3
        assert estimator.lower_bound_ == pytest.approx(best, abs=1.5)


def test_priors_that_can_be_computed_stay_as_they_are():
    X, labels = narrow_clusters(0.1)
    likelihood = Gaussian().resolve(Sample.of(X))
    names = [OF_LIKELIHOOD + name for name in likelihood.tunables()]
    posterior = Model(likelihood, DirichletProcess(1.0)).posterior(
        hard_summary(features(likelihood, X), np.ones(len(X)), labels)
    )
    assert at_limit(posterior, names, FLOAT) is posterior


@pytest.mark.parametrize(
    "likelihood",
    [
        Gaussian(),
        DiagonalGaussian(),
        SphericalGaussian(),
        ZeroMeanGaussian(),
        StudentT(),
        GaussianNetwork(),
        AutoregressiveGaussian(),
    ],
)
def test_wider_priors_expect_as_much_more_variance_and_means_as_before(likelihood):
    X = narrow_clusters(0.1)[0] * np.array([1.0, 10.0, 0.1, 1.0])
    rows = AutoregressiveGaussian.rows(X) if isinstance(likelihood, AutoregressiveGaussian) else X
    before = likelihood.resolve(Sample.of(rows))
    names = before.tunables()
    after = before.widened(0.3, names)
    strength, width = before.strength
    assert before.widened(0.3, [name for name in names if name != width]) is before

    def expected(prior):
        scale = np.asarray(getattr(prior, width))
        variances = np.diagonal(scale) if scale.ndim == 2 else scale
        units = np.asarray(prior.unit)
        return variances / (getattr(prior, strength) * (units[: X.shape[1]] if units.ndim else units) ** 2)

    np.testing.assert_allclose(expected(after), expected(before) + 0.3, rtol=1e-12)
    assert getattr(after, strength) is getattr(before, strength)
    if "mean_precision" in names:
        times = (expected(after) / expected(before)).max()
        np.testing.assert_allclose(after.mean_precision, before.mean_precision * times, rtol=1e-12)


def test_a_family_is_widened_beside_another_and_inside_of_one():
    X = narrow_clusters(0.1)[0]
    plain = DiagonalGaussian().resolve(Sample.of(X[:, :2]))
    parts = {"near": (DiagonalGaussian(), [0, 1]), "far": (SphericalGaussian(), [2, 3])}
    both = Product(parts).locate(None, 4).resolve(Sample.of(X))
    wider = both.widened(0.3, ["near.rate", "far.mean_precision"])
    np.testing.assert_allclose(wider.parts["near"][0].rate, plain.widened(0.3, ["rate"]).rate, rtol=1e-12)
    assert wider.parts["far"][0].rate == both.parts["far"][0].rate
    inside = Background(DiagonalGaussian()).resolve(Sample.of(X[:, :2]))
    np.testing.assert_array_equal(inside.widened(0.3, ["rate"]).family.rate, inside.family.widened(0.3, ["rate"]).rate)
    assert (inside.widened(0.3, ["rate"]).family.rate > inside.family.rate).all()


def test_priors_that_gain_little_are_not_worth_float64():
    """A prior beyond the range of float32 is taken where it gains more than a thousandth of a nat for each row."""
    X, _ = flat_cluster(1.0, 0.0)
    likelihood = Gaussian().resolve(Sample.of(X.astype(np.float64)))
    T = likelihood.features(X.astype(np.float64), np.empty((len(X), likelihood.n_statistics)))
    summary = Summary(np.array([len(X)]), T.sum(axis=0)[None], np.zeros(1), np.zeros(()))
    posterior = Model(likelihood, DirichletProcess(1.0)).posterior(summary)
    learner = _Learner(posterior, np.dtype(np.float32))
    worth = 1e-3 * len(X)
    narrower = Model(likelihood.scaled_together(["scale"], 0.5), DirichletProcess(1.0)).posterior(summary)
    assert _terms(narrower) > _terms(posterior)
    learner.most = 0.5 * (_terms(narrower) + _terms(posterior))
    assert not learner._keep(narrower, learner.value + 0.9 * worth)
    assert learner._keep(narrower, learner.value + 1.1 * worth)


def test_steps_after_which_scores_cannot_be_computed_are_not_taken_and_others_are(monkeypatch):
    """Scores are asked for after all steps together, and only where they cannot be computed after each."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0], [0.0, 9.0]], 50, axis=0) + rng.normal(size=(150, 2))
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    T = np.array(model.likelihood.features(X, np.empty((150, model.likelihood.n_statistics))))
    total = hard_summary(T, np.ones(150), np.arange(150) // 50)
    asked = []

    def terms(posterior):
        likelihood = posterior.model.likelihood
        asked.append(likelihood)
        return 0.0 if likelihood.degrees_of_freedom == model.likelihood.degrees_of_freedom else np.inf

    names = ["likelihood.scale", "likelihood.degrees_of_freedom"]
    posterior = model.posterior(total)
    free = tuned(posterior, names, FLOAT).model
    assert free.likelihood.degrees_of_freedom != model.likelihood.degrees_of_freedom
    monkeypatch.setattr("stickbreak.model.learning._terms", terms)
    held = tuned(posterior, names, FLOAT).model
    assert held.likelihood.degrees_of_freedom == model.likelihood.degrees_of_freedom
    assert not np.array_equal(held.likelihood.scale, model.likelihood.scale)
    asked.clear()
    tuned(posterior, names[:1], FLOAT)
    assert len(asked) == 1


def test_what_learning_computes_of_clusters_is_not_computed_again(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0) + rng.normal(size=(100, 2))
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    T = np.array(model.likelihood.features(X, np.empty((100, model.likelihood.n_statistics))))
    before = model.posterior(hard_summary(T, np.ones(100), np.arange(100) // 50))
    after = tuned(before, [OF_LIKELIHOOD + "scale", "concentration"], FLOAT)
    want = after.model.posterior(after.summary)
    want = want.bound, want.parameters(FLOAT)
    assert want[0] > before.bound

    def again(*task):
        raise AssertionError

    monkeypatch.setattr(Gaussian, "log_marginal", again)
    monkeypatch.setattr(Gaussian, "weights", again)
    assert after.bound == pytest.approx(want[0], rel=1e-13)
    np.testing.assert_array_equal(after.parameters(FLOAT).W, want[1].W)
