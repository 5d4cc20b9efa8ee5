"""Groups of rows in one cluster: the likelihood against sums and enumeration, and what fits find, keep and refuse."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp, softmax
from sklearn.metrics import adjusted_rand_score

from partitions import growth_strings, log_prior
from stickbreak import Mixture, load
from stickbreak.allocations import DirichletProcess, FiniteDirichlet
from stickbreak.data import ArraySource
from stickbreak.estimators._links import linked_source, links_of
from stickbreak.inference import Gibbs, LearningSearch, Options, Session, Threads
from stickbreak.likelihoods import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Linked,
    Multinomial,
    Poisson,
    Sample,
    StudentT,
)
from stickbreak.likelihoods.features import features
from stickbreak.model import Model, Summary
from stickbreak.model.local import local_step
from stickbreak.storage import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

G = 6
CODES = np.array([0, 1, 2, 0, 3, 4, 5, 5, 5, 1, 0])


def rows(family, rng, n):
    if family in (Multinomial, Poisson):
        return rng.poisson(2.0, (n, 3)).astype(float)
    return rng.integers(2, size=(n, 3)).astype(float) if family in (Bernoulli, Categorical) else rng.normal(size=(n, 3))


@pytest.fixture(params=[Gaussian, DiagonalGaussian, Bernoulli, Categorical, Multinomial, Poisson])
def problem(request):
    """A family, rows, and their groups as rows of sums."""
    X = rows(request.param, np.random.default_rng(0), len(CODES))
    family = request.param().resolve(Sample.of(X))
    with Threads(1) as threads:
        source = linked_source(family, ArraySource(X), links_of(CODES, len(X)), threads)
    return family, X, source


def test_a_group_has_the_scores_and_the_base_measure_of_its_rows_together(problem):
    family, X, source = problem
    linked = Linked(family, 3, True)
    groups = source.X
    assert groups.shape == (G, family.n_statistics + 2)
    T = np.asarray(features(family, X).todense()) if sparse.issparse(features(family, X)) else features(family, X)
    R = softmax(np.random.default_rng(1).normal(size=(G, 3)), axis=1)
    S = R.T @ features(linked, groups)
    M = R.T @ np.bincount(CODES)
    own = R[CODES].T @ T
    np.testing.assert_allclose(S, np.column_stack([own, M]), rtol=1e-12)
    np.testing.assert_allclose(linked.log_marginal(R.sum(axis=0), S), family.log_marginal(M, own), rtol=1e-12)
    W, b = family.weights(M, own)
    scores = np.zeros((G, 3))
    np.add.at(scores, CODES, T @ W.T + b)
    found, none = linked.weights(R.sum(axis=0), S)
    assert not none.any()
    np.testing.assert_allclose(features(linked, groups) @ found.T, scores, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(linked.log_base(groups), np.bincount(CODES, family.log_base(X)), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(linked.row_counts(R.sum(axis=0), S), S[:, -1])


def test_single_rows_are_groups_of_their_own(problem):
    family, X, _ = problem
    linked = Linked(family, 3)
    T = features(linked, X)
    T = T.toarray() if sparse.issparse(T) else T
    S = np.stack([T[:6].sum(axis=0), T[6:].sum(axis=0)])
    N = np.array([2.0, 3.0])
    M = np.array([6.0, 5.0])
    np.testing.assert_array_equal(S[:, -1], M)
    np.testing.assert_allclose(linked.log_predictive(X, N, S), family.log_predictive(X, M, S[:, :-1]), rtol=1e-12)
    for mine, its in zip(linked.posterior(N, S), family.posterior(M, S[:, :-1]), strict=True):
        np.testing.assert_array_equal(mine, its)


def joint(family, X, z):
    """Log p(X | z) with the clusters z (G,) of groups, row after row by predictive densities, without sums of groups."""
    F = family.n_statistics
    total = 0.0
    for k in np.unique(z):
        N = np.zeros(1)
        S = np.zeros((1, F))
        for x in X[z[CODES] == k]:
            total += family.log_predictive(x[None], N, S)[0, 0]
            T = features(family, x[None])
            N = N + 1.0
            S = S + (T.toarray() if sparse.issparse(T) else T)
    return total


def ascent(model, source, K, rng):
    """The bounds of local steps from random responsibilities."""
    R = rng.dirichlet(np.full(K, 0.5), source.n_rows)
    S = R.T @ features(model.likelihood, source.X)
    summary = Summary(R.sum(axis=0), S, np.zeros(K), np.zeros(()))
    bounds = []
    for _ in range(40):
        parameters = model.parameters(model.ordered(summary), np.dtype(np.float64))
        summary, _ = local_step(model.likelihood, parameters, source.X, np.ones(source.n_rows))
        summary = model.ordered(summary)
        bounds.append(model.bound(summary))
    return np.array(bounds)


def test_bounds_are_below_the_evidence_of_all_assignments_of_groups(problem):
    """Each group draws a cluster: the prior counts groups, the likelihood rows."""
    family, X, source = problem
    rng = np.random.default_rng(2)
    finite = []
    for z in product(range(2), repeat=G):
        n = np.bincount(z, minlength=2)
        prior = (gammaln(n + 0.6) - gammaln(0.6)).sum() - gammaln(G + 1.2) + gammaln(1.2)
        finite.append(prior + joint(family, X, np.array(z)))
    process = DirichletProcess(0.8)
    partitions = [log_prior(np.array(z), process) + joint(family, X, np.array(z)) for z in growth_strings(G)]
    for allocation, terms in ((FiniteDirichlet(2, 1.2), finite), (process, partitions)):
        model = Model(Linked(family, 3, True), allocation)
        evidence = logsumexp(terms)
        bounds = ascent(model, source, 2, rng)
        assert (np.diff(bounds) >= -1e-9).all()
        assert bounds[-1] <= evidence + 1e-9
        assert bounds[-1] >= max(terms) - 3.0 * np.log(G) - 5.0  # near the best assignment


def test_certain_assignments_have_their_joint_probability(problem):
    family, X, source = problem
    model = Model(Linked(family, 3, True), FiniteDirichlet(2, 1.2))
    z = np.array([0, 1, 1, 0, 0, 1])
    n = np.bincount(z)
    S = np.eye(2)[z].T @ features(model.likelihood, source.X)
    bound = model.bound(Summary(n.astype(float), S, np.zeros(2), np.array(source.X[:, -1].sum())))
    prior = (gammaln(n + 0.6) - gammaln(0.6)).sum() - gammaln(G + 1.2) + gammaln(1.2)
    assert bound == pytest.approx(prior + joint(family, X, z), rel=1e-10)


def test_divergences_are_not_negative_and_zero_of_a_group_from_itself(problem):
    family, _, source = problem
    D = Linked(family, 3, True).divergence(source.X, source.X)
    assert (D >= 0.0).all()
    np.testing.assert_allclose(np.diag(D), 0.0, atol=1e-9)


def overlapping(seed=0, n_groups=60, each=12):
    """Groups of rows of three clusters that overlap, in an order that mixes the groups."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_groups)
    groups = rng.permutation(np.repeat(np.arange(n_groups), each))
    centers = np.array([[0.0, 0.0], [1.6, 0.0], [0.0, 1.6]])
    return rng.normal(centers[truth[groups]], 1.0), groups, truth[groups]


@pytest.fixture(scope="module")
def fitted():
    X, groups, _ = overlapping()
    return Mixture("gaussian", random_state=0, n_jobs=1).fit(X, groups=groups)


def test_groups_show_clusters_that_single_rows_do_not(fitted):
    X, groups, truth = overlapping()
    assert fitted.n_clusters_ == 3
    assert adjusted_rand_score(truth, fitted.labels_) > 0.9
    for k in range(3):
        np.testing.assert_allclose(fitted.means_[k], X[fitted.labels_ == k].mean(axis=0), atol=0.1)
    assert fitted.summary_.N.sum() == pytest.approx(60)
    assert fitted.summary_frame()["rows"].sum() == pytest.approx(len(X))
    found = fitted.predict(X, groups=groups)
    np.testing.assert_array_equal(found, fitted.labels_)
    R = fitted.predict_proba(X, groups=groups)
    np.testing.assert_allclose(R.sum(axis=1), 1.0)
    assert all(np.ptp(R[groups == g], axis=0).max() == 0.0 for g in range(60))
    new, others, fresh = overlapping(1)
    assert adjusted_rand_score(fresh, fitted.predict(new, groups=others)) > 0.95
    assert adjusted_rand_score(fresh, fitted.predict(new)) < 0.7


def test_each_step_of_a_search_keeps_the_bound_exact():
    X, groups, _ = overlapping()
    family = Gaussian().resolve(Sample.of(X))
    with Threads(1) as threads:
        source = linked_source(family, ArraySource(X), links_of(groups, len(X)), threads)
        model = Model(Linked(family, 2, True), DirichletProcess())
        options = Options(3, learn=("likelihood.mean_precision",), check=True)
        moves = ("birth", "merge", "delete")
        search = LearningSearch(model, source, moves, Session(threads), np.random.default_rng(0), options)
        search.run(Summary.zeros(1, model.likelihood.n_statistics))
    assert search.total.K == 3


def test_rows_without_groups_are_those_of_a_fit_without():
    X = np.random.default_rng(0).normal(np.repeat([[-9.0], [0.0], [9.0]], 40, axis=0), 1.0, (120, 2))
    plain = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    groups = np.r_[np.arange(40), np.full(80, -1)].astype(object)
    groups[90:] = None
    alone = Mixture("gaussian", random_state=0, n_jobs=1).fit(X, groups=groups)
    assert alone.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-2)
    assert adjusted_rand_score(alone.labels_, plain.labels_) == 1.0


def test_a_weight_of_two_counts_as_the_row_twice_in_its_group():
    X, groups, _ = overlapping(n_groups=20)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weights[groups == 4] = 0  # a group that does not count still has labels
    given = {"likelihood": "gaussian", "random_state": 0, "n_jobs": 1, "learn": False}
    one = Mixture(**given).fit(X, sample_weight=weights, groups=groups)
    two = Mixture(**given).fit(np.repeat(X, weights, axis=0), groups=np.repeat(groups, weights))
    np.testing.assert_allclose(np.sort(one.summary_.N), np.sort(two.summary_.N), atol=1e-3)
    assert one.summary_.N.sum() == pytest.approx(19)
    assert len(np.unique(one.labels_[groups == 4])) == 1


def test_frames_with_missing_values_files_and_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    X, groups, truth = overlapping()
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "side": np.where(X[:, 0] > X[:, 1], "right", "left")})
    frame.loc[::7, "x"] = np.nan
    given = {"random_state": 0, "n_jobs": 1, "checkpoint": tmp_path / "fit.safetensors", "checkpoint_seconds": 0.0}
    Mixture(max_laps=20, **given).fit(frame, groups=groups)
    found = Mixture(**given).fit(frame, groups=groups)
    assert adjusted_rand_score(truth, found.labels_) > 0.8
    with pytest.raises(ValueError, match="data"):
        Mixture(**given).fit(frame, groups=groups[::-1])
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame, groups=groups), found.labels_)
    np.testing.assert_array_equal(again.score_samples(frame), found.score_samples(frame))
    assert again.partial_fit(frame[:50]).n_clusters_ == found.n_clusters_
    assert found.sample(5)[0].shape == (5, 3)


def test_labels_of_some_rows_are_those_of_their_groups(tmp_path):
    X, groups, truth = overlapping()
    y = np.full(len(X), None)
    first = [np.flatnonzero(groups == g)[0] for g in range(60)]
    known = first[:30]
    names = np.array(["a", "b", "c"])
    y[known] = names[truth[known]]
    found = Mixture("gaussian", random_state=0, n_jobs=1).fit(X, y, groups=groups)
    assert found.class_counts_.sum() == pytest.approx(30)
    labels = found.labels_
    classes = found.classes_[found.cluster_classes_.argmax(axis=1)]
    assert (classes[labels] == names[truth]).mean() > 0.95
    np.testing.assert_array_equal(found.predict(X, y, groups=groups), labels)
    found.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_class(X), found.predict_class(X))
    y[groups == 7] = "a"
    y[np.flatnonzero(groups == 7)[3]] = "b"
    row = np.flatnonzero(groups == 7)
    with pytest.raises(
        ValueError, match=f"group 7 has rows of different classes: 'a' in row {row[0]} and 'b' in row {row[3]}"
    ):
        Mixture("gaussian").fit(X, y, groups=groups)


def test_groups_without_labels_have_the_classes_of_clusters_near_them():
    """Of three clusters one has no label: while the search goes on, its class follows from single rows that it shares."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-8, 0, 6)])
    groups = np.arange(len(X)) // 3
    y = np.full(len(X), None)
    y[:15] = "left"
    y[60:75] = "right"
    found = Mixture("gaussian", random_state=0, n_jobs=1).fit(X, y, groups=groups)
    assert found.n_clusters_ == 3
    np.testing.assert_array_equal(found.predict_class(X), np.repeat(["left", "right", "right"], 60))


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "stochastic"},
        {"init": "k-means++", "n_init_clusters": 6},
        {"allocation": "pitman-yor"},
        {"most_kept": 1, "n_batches": 200},
        {"likelihood": "auto"},
    ],
)
def test_other_settings(options):
    X, groups, truth = overlapping(n_groups=30)
    given = {"likelihood": "diagonal_gaussian", "random_state": 0, "n_jobs": 1} | options
    found = Mixture(**given).fit(X, groups=[f"g{g}" for g in groups])
    assert adjusted_rand_score(truth, found.labels_) > 0.9


def test_what_is_refused(fitted):
    X, groups, _ = overlapping()
    cases = [
        ({}, {"groups": groups[:-1]}, "groups must hold one name for each of 720 rows; got shape"),
        ({}, {"groups": [[1]] * 719}, "groups must hold one name for each"),
        ({"algorithm": "sequential"}, {"groups": groups}, "groups need algorithm='memoized'"),
        ({"algorithm": Gibbs()}, {"groups": groups}, "groups need algorithm='memoized'"),
        ({"init": groups}, {"groups": groups}, "with groups init must be a name"),
        ({"likelihood": StudentT()}, {"groups": groups}, "without latent variables"),
        ({"seeds": {"a": [[0.0, 0.0]]}}, {"groups": groups}, "seeds and groups cannot be used together"),
    ]
    for options, given, message in cases:
        with pytest.raises(ValueError, match=message):
            Mixture(**{"likelihood": "gaussian"} | options).fit(X, **given)
    with pytest.raises(TypeError, match="groups must hold labels that can be hashed"):
        Mixture("gaussian").fit(X[:2], groups=np.array([{}, []], dtype=object))
    with pytest.raises(TypeError, match="groups are for dense rows in memory"):
        Mixture("multinomial").fit(sparse.csr_array(np.abs(X)), groups=groups)
    with pytest.raises(ValueError, match="fitted without groups"):
        Mixture("gaussian", moves=(), random_state=0).fit(X).predict(X, groups=groups)
    with pytest.raises(ValueError, match="clusters of groups of rows cannot be refitted"):
        fitted.merge_clusters(2, X)
    with pytest.raises(ValueError, match="out is for rows without groups"):
        fitted.predict(X, groups=groups, out="labels.npy")
