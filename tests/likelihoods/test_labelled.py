"""Labels of rows: the family with classes, against dense arithmetic and enumeration; and fits with labels."""

from copy import deepcopy
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from stickbreak import Mixture, load
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, SparseSource
from stickbreak.data.labelled_rows import with_classes
from stickbreak.inference import Gibbs, LearningSearch, Options, Session, Streaming, Threads, TruncationFree, by_class
from stickbreak.likelihoods import (
    Background,
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    Labelled,
    Multinomial,
    Sample,
    StudentT,
)
from stickbreak.likelihoods.features import features
from stickbreak.likelihoods.labelled import FORBIDDEN
from stickbreak.model import Model, Parameters
from stickbreak.model.local import local_step, responsibilities_of
from stickbreak.moves import AdoptedBirth, BatchBirth

K, C = 4, 3


def rows(family, rng, n=40, D=3):
    if family is Multinomial:
        return rng.poisson(2.0, (n, D)).astype(float)
    if family in (Bernoulli, Categorical):
        return rng.integers(2, size=(n, D)).astype(float)
    return rng.normal(size=(n, D))


def labelled(family, X, error):
    return Labelled(family().resolve(Sample.of(X)), X.shape[1], C, error)


def summed(likelihood, X, R):
    return R.sum(axis=0), R.T @ np.asarray(features(likelihood, X))


def with_codes(X, codes):
    return np.column_stack([X, codes])


@pytest.fixture(params=[Gaussian, DiagonalGaussian, Bernoulli, Categorical, Multinomial])
def family(request):
    return request.param


@pytest.mark.parametrize("error", [0.2, 0.0])
def test_log_marginals_and_weights_are_sums_over_the_classes(family, error):
    rng = np.random.default_rng(0)
    X = rows(family, rng)
    codes = rng.integers(C + 1, size=len(X)) if error else np.where(rng.random(len(X)) < 0.5, 0, 2)
    likelihood = labelled(family, X, error)
    R = softmax(rng.normal(size=(len(X), K)), axis=1)
    R[codes > 0, 3] = 0.0  # a cluster without labels
    N, S = summed(likelihood, with_codes(X, codes), R)
    right = np.log1p(-error)
    wrong = np.log(error / (C - 1)) if error else -FORBIDDEN
    log_chances = np.where(np.eye(C, dtype=bool), right, wrong)  # of label y (column) in a cluster of class c (row)
    counts = np.stack([R[codes == c + 1].sum(axis=0) for c in range(C)], axis=1)
    scores = counts @ log_chances.T
    own = S[:, : likelihood.family.n_statistics]
    expected = likelihood.family.log_marginal(N, own) + logsumexp(scores, axis=1) - np.log(C)
    expected[3] = likelihood.family.log_marginal(N, own)[3]
    np.testing.assert_allclose(likelihood.log_marginal(N, S), expected, rtol=1e-10)
    W, _ = likelihood.weights(N, S)
    q = softmax(scores, axis=1)
    np.testing.assert_allclose(W[:, -C:], q @ log_chances, rtol=1e-10)
    np.testing.assert_allclose(likelihood.class_posterior(S), q, atol=1e-12)


def test_predictive_probabilities_of_labels_add_up_to_one(family):
    rng = np.random.default_rng(1)
    X = rows(family, rng)
    likelihood = labelled(family, X, 0.1)
    codes = rng.integers(C + 1, size=len(X))
    N, S = summed(likelihood, with_codes(X, codes), softmax(rng.normal(size=(len(X), K)), axis=1))
    each = [likelihood.log_predictive(with_codes(X, np.full(len(X), c + 1.0)), N, S) for c in range(C)]
    none = likelihood.log_predictive(with_codes(X, np.zeros(len(X))), N, S)
    np.testing.assert_allclose(logsumexp(each, axis=0), none, rtol=1e-10)
    np.testing.assert_allclose(none, likelihood.log_predictive(X, N, S), rtol=1e-12)


@pytest.mark.parametrize("family", [Bernoulli, Multinomial])
def test_sparse_rows_have_the_same_features_and_the_same_step(family):
    rng = np.random.default_rng(2)
    X = rows(family, rng, 60)
    codes = rng.integers(C + 1, size=len(X))
    likelihood = labelled(family, X, 0.0)
    dense = with_classes(ArraySource(X), codes)
    thin = with_classes(SparseSource(sparse.csr_array(X)), codes)
    chunk = dense.batches(1)[0][0]
    (D, weights), (T, _) = dense.read(chunk), thin.read(chunk)
    np.testing.assert_array_equal(likelihood.classes_of(D), codes - 1)
    np.testing.assert_array_equal(likelihood.classes_of(T), codes - 1)
    np.testing.assert_array_equal(features(likelihood, T).toarray(), features(likelihood, D))
    hard = np.eye(C)[np.maximum(codes - 1, 0)]
    N, S = summed(likelihood, D, hard)
    model = Model(likelihood, DirichletProcess(1.0))
    parameters = model.parameters(model.start(N, S), np.dtype(float))
    one, other = (local_step(likelihood, parameters, Z, weights)[0] for Z in (D, T))
    np.testing.assert_allclose(one.S, other.S, atol=1e-9)


def masked_bound(model, X, codes, classes, R):
    """The bound of responsibilities R (n, K) where cluster k has class classes[k], or -1, by dense arithmetic."""
    family = model.likelihood.family
    N = R.sum(axis=0)
    S = R.T @ np.asarray(features(family, X))
    allowed = (codes[:, None] == 0) | (codes[:, None] - 1 == classes)
    assert not R[~allowed].any()
    entropy = -(R * np.log(np.where(R > 0.0, R, 1.0))).sum()
    slim = model.start(N, S)
    data = family.log_base(X).sum() + family.log_marginal(N, S).sum()
    return data + entropy + model.allocation.bound(slim) - (classes >= 0).sum() * np.log(model.likelihood.n_classes)


def two_in_each(rng, n=40):
    """Rows of three classes, of which the first has two clusters far apart, and of a cluster of no class."""
    centers = np.array([[-20.0, 0.0], [20.0, 0.0], [0.0, 20.0], [0.0, -20.0], [30.0, 30.0]])
    cluster = np.repeat(np.arange(5), n)
    X = centers[cluster] + rng.normal(size=(5 * n, 2))
    classes = np.array([0, 0, 1, 2, -1])[cluster]
    return X, cluster, classes


def some_labels(classes, rng, share=0.2):
    return np.where((rng.random(len(classes)) < share) & (classes >= 0), classes, -1)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    X, cluster, classes = two_in_each(rng)
    y = some_labels(classes, rng)
    return Mixture("gaussian", random_state=0, n_jobs=1).fit(X, y), X, y, cluster, classes


def test_classes_have_several_clusters_and_clusters_without_a_class_are_found(fitted):
    model, X, y, _, classes = fitted
    assert model.n_clusters_ == 5
    of = model.cluster_classes_.argmax(axis=1)[model.labels_]
    known = classes >= 0
    assert (of[known] == classes[known]).all()
    assert (model.class_counts_.sum(axis=1) == 0.0).sum() == 1
    assert (model.predict_class(X)[known] == classes[known]).all()
    assert model.class_accuracy(X, classes) == 1.0
    np.testing.assert_allclose(model.predict_class_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.class_counts_.sum() == pytest.approx((y >= 0).sum())


def test_the_bound_is_that_of_dense_arithmetic_with_a_mask(fitted):
    model, X, y, _, _ = fitted
    likelihood = model.model_.likelihood
    q = likelihood.class_posterior(model.summary_.S)
    classes = np.where(model.class_counts_.sum(axis=1) > 0.0, q.argmax(axis=1), -1)
    R = model.predict_proba(X, y)
    assert masked_bound(model.model_, X, y + 1, classes, R) == pytest.approx(model.lower_bound_, abs=0.02)
    parameters = model.model_.parameters(model.summary_, np.dtype(float))
    again, _ = local_step(likelihood, parameters, with_codes(X, y + 1.0), np.ones(len(X)))
    R = model.predict_proba(X, y)
    assert model.model_.bound(again) == pytest.approx(masked_bound(model.model_, X, y + 1, classes, R), rel=1e-9)


@pytest.mark.parametrize("error", [0.0, 0.3])
def test_the_bound_is_below_the_evidence_of_all_partitions_and_classes(error):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(5, 1)) * 3.0
    codes = np.array([1, 1, 2, 0, 0])
    likelihood = Labelled(Gaussian().resolve(Sample.of(X)), 1, 2, error)
    model = Model(likelihood, DirichletProcess(1.0))
    Z = with_codes(X, codes)
    T = features(likelihood, Z)
    F = likelihood.family.n_statistics
    total = []
    for labels in product(range(5), repeat=5):
        if any(k > max(labels[:i], default=-1) + 1 for i, k in enumerate(labels)):
            continue
        groups = [np.flatnonzero(np.array(labels) == k) for k in range(max(labels) + 1)]
        N = np.array([len(g) for g in groups], float)
        S = np.stack([T[g].sum(axis=0) for g in groups])
        prior = sum(np.sum(np.log(np.arange(1, n))) for n in N) - np.log(np.arange(1, 6)).sum()  # concentration 1
        chance = 0.0
        for g in groups:  # by hand: the mean over classes of the products
            of = [c for c in codes[g] if c]
            each = [np.prod([1.0 - error if c == own else error for c in of]) for own in (1, 2)]
            with np.errstate(divide="ignore"):
                chance += np.log(np.mean(each))
        total.append(prior + likelihood.family.log_marginal(N, S[:, :F]).sum() + chance)
    evidence = logsumexp(total) + likelihood.log_base(Z).sum()
    start = model.start(np.array([2.0, 2.0, 1.0]), np.stack([T[[0, 1]].sum(axis=0), T[[2, 3]].sum(axis=0), T[4]]))
    summary = start
    bound = -np.inf
    for _ in range(20):
        summary, _ = local_step(likelihood, model.parameters(summary, np.dtype(float)), Z, np.ones(5))
        summary = model.ordered(summary)
        assert model.bound(summary) >= bound - 1e-9
        bound = model.bound(summary)
    assert bound <= evidence
    assert bound > evidence - 10.0


def test_all_labels_and_one_cluster_for_each_class_is_the_closed_form():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(90, 2)) + 30.0 * rng.integers(3, size=(90, 1))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 15.0).astype(int) + (X[:, 0] > 45.0)]
    model = Mixture("gaussian", learn=False, random_state=0, n_jobs=1).fit(X, y)
    family = model.model_.likelihood.family
    groups = sorted((np.flatnonzero(y == c) for c in "abc"), key=len, reverse=True)
    N = np.array([len(g) for g in groups], float)
    S = np.stack([features(family, X[g]).sum(axis=0) for g in groups])
    sticks = DirichletProcess(1.0).bound(Model(family, DirichletProcess(1.0)).start(N, S))
    closed = family.log_base(X).sum() + family.log_marginal(N, S).sum() + sticks - 3 * np.log(3)
    assert model.n_clusters_ == 3
    assert model.lower_bound_ == pytest.approx(closed, rel=1e-9)
    assert model.class_accuracy(X, y) == 1.0


def test_without_a_known_label_the_fit_is_that_without_y():
    X = np.random.default_rng(6).normal(size=(120, 2))
    X[:60] += 9.0
    without = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    for y in (np.full(120, -1), np.full(120, np.nan), np.full(120, None)):
        with_y = Mixture("gaussian", random_state=0, n_jobs=1).fit(X, y)
        assert with_y.lower_bound_ == without.lower_bound_
        np.testing.assert_array_equal(with_y.summary_.S, without.summary_.S)
        assert not hasattr(with_y, "classes_")


@pytest.mark.parametrize("family", [StudentT, Background])
def test_families_with_latent_variables_of_rows_have_labels_too(family):
    rng = np.random.default_rng(11)
    X, _, classes = two_in_each(rng, 30)
    y = some_labels(classes, rng, 0.3)
    model = Mixture(family(), random_state=0, n_jobs=1).fit(X, y)
    known = classes >= 0
    assert (model.predict_class(X)[known] == classes[known]).all()
    assert ((model.class_counts_ > 0.0).sum(axis=1) <= 1).all()
    assert model.class_counts_.sum() == pytest.approx((y >= 0).sum())
    W, bias, *_ = model.model_.parameters(model.summary_, np.dtype(float))
    scale = model.model_.likelihood
    family_alone = Parameters(W[:, :-C], bias)
    R = responsibilities_of(scale.family, family_alone, X)
    allowed = (y[:, None] < 0) | (np.arange(C) == y[:, None])
    R *= allowed @ (scale.class_posterior(model.summary_.S) * (model.class_counts_ > 0.0)).T > 0.0
    R[y < 0] = responsibilities_of(scale.family, family_alone, X[y < 0])
    R /= R.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X, y), R, atol=1e-7)


def overlapping(rng, n=400):
    """Two classes with two overlapping clusters each, values missing, weights, labels of a third."""
    cluster = rng.integers(4, size=n)
    X = np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.5], [2.5, 0.0]])[cluster] + rng.normal(size=(n, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[np.isnan(X).all(axis=1)] = 0.0
    y = np.where(rng.random(n) < 0.3, cluster // 2, -1)
    return X, y, rng.integers(1, 4, size=n).astype(float)


def test_laps_are_monotone_and_labels_kept_with_missing_values_weights_and_batches():
    rng = np.random.default_rng(7)
    X, y, weights = overlapping(rng)
    base = DiagonalGaussian().resolve(Sample.of(X))
    model = Model(Labelled(base, 2, 2), DirichletProcess(1.0))
    source = with_classes(ArraySource(X, weights), y + 1)
    with Threads(1) as executor:
        flat = Model(base, DirichletProcess(1.0))
        alone = flat.start(np.array([weights.sum()]), (weights @ features(base, X))[None])
        start = by_class(model, alone, source, executor)
        assert start.K == 2
        options = Options(3, learn=("likelihood.mean_precision",), check=True)
        search = LearningSearch(model, source, ("birth", "merge", "delete"), Session(executor), rng, options)
        search.run(start)  # with check, a bound that falls raises
    counts = search.found.likelihood.label_counts(search.total.S)
    assert ((counts > 0.0).sum(axis=1) <= 1).all()
    np.testing.assert_allclose(counts.sum(axis=0), [weights[y == c].sum() for c in (0, 1)])
    bounds = [lap.lower_bound for lap in search.history]
    assert (np.diff(bounds) >= -1e-7 * np.abs(bounds[0])).all()


def test_weights_are_repeats_and_threads_do_not_matter():
    rng = np.random.default_rng(8)
    X, y, weights = overlapping(rng, 60)
    X = np.round(X)
    y = np.where(y < 0, None, np.array(["dog", "cat"])[y])
    again = np.repeat(np.arange(60), weights.astype(int))
    weighted = Mixture("diagonal_gaussian", random_state=0, n_jobs=1).fit(X, y, weights)
    threads = Mixture("diagonal_gaussian", random_state=0, n_jobs=2).fit(X, y, weights)
    repeated = Mixture("diagonal_gaussian", random_state=0, n_jobs=1).fit(X[again], y[again])
    assert weighted.lower_bound_ == threads.lower_bound_
    np.testing.assert_array_equal(weighted.summary_.S, threads.summary_.S)
    np.testing.assert_array_equal(weighted.classes_, ["cat", "dog"])
    assert repeated.lower_bound_ == pytest.approx(weighted.lower_bound_, rel=1e-6)
    for row, label in enumerate(y):
        if label is not None:
            assert weighted.class_counts_[weighted.labels_[row], list(weighted.classes_).index(label)] > 0.0


def test_wrong_labels_are_outvoted_where_the_error_rate_is_learnt():
    rng = np.random.default_rng(9)
    X, _, classes = two_in_each(rng, 80)
    X, classes = X[classes >= 0], classes[classes >= 0]
    y = classes.copy()
    wrong = rng.random(len(y)) < 0.15
    y[wrong] = (y[wrong] + rng.integers(1, 3, wrong.sum())) % 3
    model = Mixture("gaussian", label_error=None, random_state=0, n_jobs=1).fit(X, y)
    assert model.n_clusters_ == 4
    assert (model.predict_class(X) == classes).all()
    assert model.label_error_ == pytest.approx(wrong.mean(), abs=0.02)


@pytest.mark.parametrize("error", [0.0, None])
def test_saved_models_know_their_classes(error, tmp_path):
    rng = np.random.default_rng(10)
    X, _, classes = two_in_each(rng, 30)
    y = np.array(["one", "two", "three", None], dtype=object)[classes]
    model = Mixture("gaussian", label_error=error, max_laps=30, random_state=0, n_jobs=1).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    twin = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(twin.predict_class(X), model.predict_class(X))
    np.testing.assert_array_equal(twin.class_counts_, model.class_counts_)
    assert twin.lower_bound_ == model.lower_bound_


def test_more_rows_and_fewer_clusters_keep_to_the_labels(fitted):
    model, X, y, _, _ = fitted
    more = deepcopy(model).partial_fit(X[:100], y[:100])
    assert more.class_counts_.sum() == pytest.approx((y >= 0).sum() + (y[:100] >= 0).sum())
    with pytest.raises(ValueError, match="fitted with labels"):
        model.merge_clusters(4, X)
    with pytest.raises(ValueError, match="fitted with labels"):
        model.stability(X)
    fewer = model.merge_clusters(4, X, y)
    assert fewer.n_clusters_ == 4
    assert ((fewer.class_counts_ > 0.0).sum(axis=1) <= 1).all()
    known = y >= 0
    assert fewer.class_accuracy(X, y) == 1.0
    assert fewer.predict_class(X)[known].tolist() == y[known].tolist()
    drawn, _ = model.sample(5)
    assert drawn.shape == (5, 2)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(3), "one label for each of 60 rows"),
        (np.linspace(0.0, 1.0, 60), "labels of classes, but row 1"),
        (np.array([3, None, 2.5] * 20, dtype=object), "labels of classes, but row 2"),
        (np.array([3.0, np.inf] * 30), "labels of classes, but row 1 has inf"),
        ([[]] * 60, "one label for each of 60 rows"),
        (np.array([{1}] + [None] * 59), "can be hashed"),
        (np.array(["2020-01-01"] * 60, dtype="M8[D]"), "dates"),
    ],
)
def test_labels_that_cannot_be_are_refused(y, message):
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises((ValueError, TypeError), match=message):
        Mixture("gaussian", random_state=0).fit(X, y)


def test_what_labels_cannot_go_with_is_refused(fitted):
    model, X, _, _, _ = fitted
    y = np.arange(len(X)) % 5
    with pytest.raises(ValueError, match="5 classes, but the allocation has no more than 4"):
        Mixture("gaussian", allocation="finite", n_init_clusters=4, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="the class 4, but no row that counts"):
        Mixture("gaussian", random_state=0).fit(X, y, (y != 4).astype(float))
    for algorithm in ("sequential", TruncationFree(), Streaming()):
        with pytest.raises(ValueError, match="takes no labels"):
            Mixture("gaussian", algorithm=algorithm, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="label_error must be"):
        Mixture(label_error=1.0).fit(X, y)
    with pytest.raises(ValueError, match="no class of the fit"):
        model.class_accuracy(X, np.full(len(X), 7))
    plain = Mixture("gaussian", moves=(), random_state=0).fit(X[:50])
    with pytest.raises(ValueError, match="fitted without labels"):
        plain.predict_class(X)
    with pytest.raises(ValueError, match="was fitted to had none"):
        plain.partial_fit(X, y)
    plain.partial_fit(X, np.full(len(X), -1))
    with pytest.raises(ValueError, match="a stream has no labels"):
        deepcopy(model).set_params(algorithm=Streaming()).partial_fit(X)


@pytest.mark.parametrize("seed", [0, 2])
def test_random_labels_do_not_part_one_cluster(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    y = rng.integers(2, size=120)
    model = Mixture("gaussian", label_error=None, random_state=0, n_jobs=1).fit(X, y)
    one = Mixture("gaussian", label_error=0.499, init=np.zeros(120, int), moves=(), random_state=0, n_jobs=1).fit(X, y)
    assert model.n_clusters_ == 1
    assert model.lower_bound_ >= one.lower_bound_ - 0.1
    assert model.label_error_ > 0.35
    assert (np.diff(model.lower_bounds_) >= 0.0).all()


def test_what_was_found_before_an_interrupt_is_kept_whichever_search_it_ends(monkeypatch):
    X, _, classes = two_in_each(np.random.default_rng(12), 30)
    run = LearningSearch.run

    def interrupted(self, start):
        run(self, start)
        raise KeyboardInterrupt

    monkeypatch.setattr(LearningSearch, "run", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        model = Mixture("gaussian", random_state=0, n_jobs=1).fit(X, classes)
    assert model.n_clusters_ == 5
    assert ((model.class_counts_ > 0.0).sum(axis=1) <= 1).all()
    assert not model.converged_
    assert model.class_accuracy(X, classes) == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"algorithm": "stochastic"},
        {"algorithm": Gibbs(n_draws=4, n_burn_in=2, n_chains=1)},
        {"moves": (BatchBirth(n_new=3), "merge")},
        {"moves": (AdoptedBirth(n_new=3), "merge")},
        {"candidates": 2},
    ],
    ids=str,
)
def test_every_algorithm_keeps_to_the_labels(changes):
    rng = np.random.default_rng(13)
    X, _, classes = two_in_each(rng, 24)
    y = some_labels(classes, rng, 0.4)
    model = Mixture("diagonal_gaussian", max_laps=30, random_state=0, n_jobs=1, **changes).fit(X, y)
    assert ((model.class_counts_ > 1e-6).sum(axis=1) <= 1).all()
    assert model.class_counts_.sum() == pytest.approx((y >= 0).sum())
    assert model.class_accuracy(X, y) > 0.98


def test_a_fit_with_labels_goes_on_from_its_checkpoint_and_not_with_other_labels(tmp_path):
    rng = np.random.default_rng(14)
    X, _, classes = two_in_each(rng, 20)
    begun = Mixture("gaussian", checkpoint=tmp_path / "c.safetensors", checkpoint_seconds=0.0, random_state=0, n_jobs=1)
    model = deepcopy(begun).fit(X, classes)
    again = deepcopy(begun).fit(X, classes)
    assert again.lower_bound_ == model.lower_bound_
    np.testing.assert_array_equal(again.summary_.S, model.summary_.S)
    with pytest.raises(ValueError, match="other data"):
        begun.fit(X, np.where(classes == 2, -1, classes))
