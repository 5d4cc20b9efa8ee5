"""Models of fewer clusters, topics and states: the hierarchy cut, and fitted anew."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.likelihoods import DiagonalGaussian, Gaussian

CENTRES = np.array([[0.0, 0.0], [0.0, 6.0], [60.0, 0.0], [60.0, 6.0], [90.0, 0.0]])


class Case:
    """A fitted model, its data, and its method under one name."""

    def __init__(self, model, data, name):
        self.model, self.data, self.name = model, data, name
        self.K = model.summary_.K

    def merge(self, n, *data):
        return getattr(self.model, self.name)(n, *(data or self.data))


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(0)
    labels = rng.integers(len(CENTRES), size=600)
    X = CENTRES[labels] + rng.standard_normal((600, 2))
    states = np.repeat(rng.permutation(np.arange(40) % 5), 20)
    steps = CENTRES[states] + rng.standard_normal((800, 2))
    shares = rng.dirichlet(np.full(4, 0.5), 200)
    topics = rng.dirichlet(np.full(30, 0.1), 4)
    counts = rng.multinomial(40, shares @ topics)
    known = {"moves": (), "random_state": 0, "n_jobs": 1}
    return {
        "mixture": Case(Mixture("gaussian", init=labels, **known).fit(X), (X,), "merge_clusters"),
        "hmm": Case(
            HMM("gaussian", init=states, **known).fit(steps, lengths=[500, 300]), (steps, [500, 300]), "merge_states"
        ),
        "topics": Case(TopicModel(init=topics, **known).fit(counts), (counts,), "merge_topics"),
    }


@pytest.fixture(params=["mixture", "hmm", "topics"])
def case(cases, request):
    return cases[request.param]


def test_every_number_of_clusters_is_a_whole_model_with_an_exact_bound(case, tmp_path):
    for n in range(1, case.K + 1):
        found = case.merge(n)
        assert type(found) is type(case.model)
        assert found.summary_.K == n == len(found.hierarchy_.losses) + 1
        assert found.lower_bound_ == pytest.approx(found.model_.bound(found.summary_))
        assert found.lower_bound_ == pytest.approx(found.lower_bounds_[-1])
        assert {lap.explored_clusters for lap in found.history_} == {n}
        bounds = np.array(found.lower_bounds_)
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
        assert found.converged_
        assert set(vars(found)) >= set(vars(case.model)) - {"hierarchy_"}
        found.save(tmp_path / "model")
        assert load(tmp_path / "model").lower_bound_ == pytest.approx(found.lower_bound_)


def test_the_model_stays_as_it_is(case):
    assert case.model.hierarchy_ is not None  # made when first asked for
    before = pickle.dumps(case.model)
    merged = case.merge(2)
    assert pickle.dumps(case.model) == before
    assert merged.get_params() == case.model.get_params()
    assert merged is not case.model


def test_the_same_clusters_gain_no_more_than_the_tolerance(case):
    found = case.merge(case.K)
    assert found.lower_bound_ == pytest.approx(case.model.lower_bound_, abs=1.0)


def test_fits_repeat(case):
    assert case.merge(2).lower_bounds_ == case.merge(2).lower_bounds_


@pytest.mark.parametrize("n", [0, 99, 2.0, True, None])
def test_impossible_numbers_are_refused(case, n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        case.merge(n)


def test_other_columns_are_refused(case):
    with pytest.raises(ValueError, match="features"):
        case.merge(2, case.data[0][:, 1:], *case.data[1:])


@pytest.mark.parametrize("model", [Mixture("gaussian").merge_clusters, HMM().merge_states, TopicModel().merge_topics])
def test_models_must_be_fitted(model):
    with pytest.raises(NotFittedError):
        model(2, np.ones((5, 2)))


def test_labels_are_those_of_the_groups(cases):
    for name in ("mixture", "hmm"):
        model = cases[name].model
        for n in (2, 3):
            found = cases[name].merge(n)
            assert adjusted_rand_score(found.labels_, model.hierarchy_.cut(n)[model.labels_]) > 0.99
            np.testing.assert_array_equal(found.labels_, found.predict(*cases[name].data))


@pytest.mark.parametrize("likelihood", ["gaussian", "diagonal_gaussian", "auto", Gaussian(degrees_of_freedom=5.0)])
def test_it_is_as_good_as_a_fit_from_the_labels_of_the_groups(likelihood):
    """Also where a prior learnt for clusters that are all alike bars those that are not."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (200, 2)) for m in (-40, -30, 30)])
    model = Mixture(likelihood, random_state=0, n_jobs=1).fit(X)
    assert model.n_clusters_ == 3
    groups = model.hierarchy_.cut(2)[model.labels_]
    family = type(model.model_.likelihood)() if isinstance(likelihood, str) else likelihood
    fitted = Mixture(family, init=groups, moves=(), n_jobs=1).fit(X)
    assert model.merge_clusters(2, X).lower_bound_ == pytest.approx(fitted.lower_bound_, abs=1.0)


def test_what_is_given_or_not_to_be_learnt_stays():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:100] += 20.0
    given = Mixture(Gaussian(scale=0.5), random_state=0, n_jobs=1).fit(X)
    np.testing.assert_array_equal(given.merge_clusters(1, X).model_.likelihood.scale, given.model_.likelihood.scale)
    for learn in (False, ["scale"]):
        model = Mixture("gaussian", learn=learn, random_state=0, n_jobs=1).fit(X)
        found = model.merge_clusters(1, X).model_.likelihood
        assert found.mean_precision == model.model_.likelihood.mean_precision
        assert np.array_equal(found.scale, model.model_.likelihood.scale) is (learn is False)


def test_weights_count_rows_as_often(cases):
    X, model = cases["mixture"].data[0], cases["mixture"].model
    weights = np.arange(len(X)) % 3
    weighted, repeated = (
        model.merge_clusters(2, X, sample_weight=weights),
        model.merge_clusters(2, np.repeat(X, weights, axis=0)),
    )
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=0.1)
    assert len(weighted.labels_) == len(X)


def test_values_may_be_missing_where_the_likelihood_allows():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(m, 1.0, (200, 2)) for m in (-40, -30, 30)])
    model = Mixture(DiagonalGaussian(), random_state=0, n_jobs=1).fit(X)
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    found = model.merge_clusters(2, holes)
    assert found.n_clusters_ == 2
    assert found.lower_bound_ == pytest.approx(found.model_.bound(found.summary_))


def test_rows_in_groups_and_stochastic_fits():
    rng = np.random.default_rng(2)
    X = CENTRES[rng.integers(3, size=400)] + rng.standard_normal((400, 2))
    topics = TopicModel("gaussian", random_state=0, n_init_topics=4, n_jobs=1).fit(X, lengths=[100] * 4)
    assert topics.merge_topics(2, X, lengths=[100] * 4).n_topics_ == 2
    noisy = Mixture(
        "gaussian", algorithm="stochastic", init="k-means++", n_init_clusters=4, n_jobs=1, random_state=0
    ).fit(X)
    found = noisy.merge_clusters(2, X)
    assert found.lower_bound_ == pytest.approx(found.model_.bound(found.summary_))


def test_empty_data_are_refused(cases):
    with pytest.raises(ValueError, match="documents are empty"):
        cases["topics"].merge(2, np.zeros((5, 30)))
    with pytest.raises(ValueError, match="no row has an observation"):
        cases["hmm"].merge(2, np.full((5, 2), np.nan))
