"""What fits with other random numbers have in common."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.estimators import Stability
from stickbreak.estimators._stability import OF_TOPICS

SMALL = {"random_state": 0, "n_jobs": 1}
pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def clear_rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (60, 2)) for m in (-20, 0, 20)])


def clear_steps():
    rng = np.random.default_rng(1)
    return rng.normal(10.0 * np.repeat(rng.permutation(np.arange(12) % 3), 12)[:, None], 1.0, (144, 1))


def clear_counts():
    rng = np.random.default_rng(2)
    topics = np.repeat(np.eye(3), 5, axis=1) / 5
    return rng.multinomial(40, rng.dirichlet([0.2] * 3, 80) @ topics)


@pytest.fixture(
    scope="module",
    params=[
        (Mixture("gaussian", **SMALL), clear_rows),
        (HMM("gaussian", max_laps=40, **SMALL), clear_steps),
        (TopicModel(max_laps=90, **SMALL), clear_counts),
    ],
    ids=["mixture", "hmm", "topics"],
)
def clear(request):
    """A model fitted to data with clear structure, and the data."""
    estimator, data = request.param
    X = data()
    return estimator.fit(X), X


@pytest.fixture(scope="module")
def of_three_fits(clear):
    model, X = clear
    return model.stability(X, n_fits=3)


def test_clear_structure_is_found_by_every_fit(clear, of_three_fits):
    model, _ = clear
    found = of_three_fits
    assert isinstance(found, Stability)
    assert found.agreement > 0.98
    assert found.twins.shape == (model.summary_.K,)
    assert found.twins.min() > 0.98
    assert found.n_clusters == (model.summary_.K,) * 3
    np.testing.assert_allclose(found.lower_bounds, model.lower_bound_, rtol=1e-3)
    assert found.overlaps.shape == (3, model.summary_.K)
    np.testing.assert_array_equal(found.agreements, found.agreements.T)
    np.testing.assert_array_equal(np.diag(found.agreements), 1.0)
    assert found.agreement == pytest.approx(found.agreements[np.triu_indices(3, 1)].mean())


def test_it_is_cut_and_repeats_and_leaves_the_model_alone(clear, of_three_fits):
    model, X = clear
    before = model.lower_bound_
    found = model.stability(X, 2, n_fits=2)
    assert found.twins.shape == (2,)
    assert found.agreement > 0.98
    assert found.lower_bounds == of_three_fits.lower_bounds[:2]
    assert found.n_clusters == of_three_fits.n_clusters[:2]
    assert model.lower_bound_ == before
    with pytest.raises(FrozenInstanceError):
        found.agreement = 1.0


def test_the_same_fits_are_cut_again(clear, of_three_fits):
    model, X = clear
    found = model.stability(X, 2, n_fits=3)
    cut = of_three_fits.cut(2)
    assert cut.agreement == found.agreement
    np.testing.assert_array_equal(cut.agreements, found.agreements)
    np.testing.assert_array_equal(cut.overlaps, found.overlaps)
    assert cut.n_clusters == of_three_fits.n_clusters
    assert cut.cut(model.summary_.K).agreement == of_three_fits.agreement
    for n in (0, model.summary_.K + 1, 1.5):
        with pytest.raises(ValueError, match="n must be"):
            of_three_fits.cut(n)


def test_levels_that_all_fits_have_in_common_are_found_without_another_fit():
    X = np.random.default_rng(6).uniform(-1.0, 1.0, (300, 2))
    X[:, 0] += np.repeat([-9.0, 9.0], 150)
    estimator = Mixture("gaussian", init="random", n_init_clusters=8, moves=(), learn=False, **SMALL).fit(X)
    found = estimator.stability(X, n_fits=3)
    again = pickle.loads(pickle.dumps(found)).cut(2)
    assert found.agreement < 0.9
    assert again.agreement == 1.0
    assert again.lower_bounds == found.lower_bounds


@pytest.mark.parametrize("arguments", [{"n": 0}, {"n": 99}, {"n_fits": 1}, {"n_fits": 2.5}, {"n_fits": None}])
def test_impossible_numbers_are_refused(clear, arguments):
    model, X = clear
    with pytest.raises(ValueError, match=f"{next(iter(arguments))} must be"):
        model.stability(X, **arguments)


def test_other_columns_are_refused(clear):
    model, X = clear
    with pytest.raises(ValueError, match="features"):
        model.stability(np.hstack([X, X]), n_fits=2)


@pytest.mark.parametrize("estimator", [Mixture("gaussian"), HMM(), TopicModel()])
def test_models_must_be_fitted(estimator):
    with pytest.raises(NotFittedError):
        estimator.stability(np.ones((5, 2)))


def test_clusters_of_rows_that_have_none_differ_from_fit_to_fit():
    X = np.random.default_rng(3).uniform(size=(400, 2))
    estimator = Mixture("gaussian", init="random", n_init_clusters=8, moves=(), learn=False, **SMALL)
    found = estimator.fit(X).stability(X, n_fits=4)
    assert found.agreement < 0.8
    assert found.twins.mean() < 0.85
    assert 0.0 <= found.overlaps.min() <= found.overlaps.max() <= 1.0


def test_topics_are_compared_with_those_that_are_most_like_them():
    topics = np.random.default_rng(4).dirichlet(np.full(50, 0.1), 4)
    assert OF_TOPICS.agreement(topics, topics[::-1]) == pytest.approx(1.0)
    others = np.vstack([topics[:2], np.random.default_rng(7).dirichlet(np.full(50, 0.1), 3)])
    cosines = [[a @ b / np.sqrt((a @ a) * (b @ b)) for b in others] for a in topics]
    np.testing.assert_allclose(OF_TOPICS.overlaps(topics, others), cosines)
    best = [*np.max(cosines, axis=0), *np.max(cosines, axis=1)]
    assert OF_TOPICS.agreement(topics, others) == pytest.approx(np.mean(best))
    assert np.mean(best) < 0.9


@pytest.mark.long
def test_documents_without_topics_have_one_that_every_fit_finds():
    counts = np.random.default_rng(4).poisson(1.0, (40, 30))
    found = TopicModel(**SMALL).fit(counts).stability(counts, n_fits=2)
    assert found.n_clusters == (1, 1)
    assert found.agreement == pytest.approx(1.0)


def test_numbers_are_those_of_the_definitions():
    X = np.random.default_rng(5).uniform(size=(200, 2))
    estimator = Mixture("gaussian", init="random", n_init_clusters=4, moves=(), learn=False, **SMALL).fit(X)
    found = estimator.stability(X, n_fits=2)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    states = np.random.SeedSequence(seed).generate_state(2)
    first, second = (
        Mixture("gaussian", init="random", n_init_clusters=4, moves=(), learn=False, n_jobs=1, random_state=int(s)).fit(
            X
        )
        for s in states
    )
    assert found.agreement == adjusted_rand_score(first.labels_, second.labels_)
    assert found.lower_bounds == (first.lower_bound_, second.lower_bound_)
    for fitted, overlaps in zip((first, second), found.overlaps, strict=True):
        for k in range(estimator.n_clusters_):
            mine = estimator.labels_ == k
            best = max(
                (mine & (fitted.labels_ == j)).sum() / (mine | (fitted.labels_ == j)).sum()
                for j in range(fitted.n_clusters_)
            )
            assert overlaps[k] == pytest.approx(best)


@pytest.mark.filterwarnings("ignore:not converged")
def test_weights_sequences_and_targets_pass_through():
    X, rng = clear_rows(), np.random.default_rng(6)
    weights = rng.integers(1, 3, len(X))
    model = Mixture("gaussian", **SMALL).fit(X, sample_weight=weights)
    assert model.stability(X, n_fits=2, sample_weight=weights).agreement > 0.98
    steps = clear_steps()
    sequences = [steps[:60], steps[60:120]]
    hmm = HMM("gaussian", max_laps=8, **SMALL).fit(sequences)
    assert (
        hmm.stability(sequences, n_fits=2).agreement == hmm.stability(steps[:120], n_fits=2, lengths=[60, 60]).agreement
    )


def test_topics_without_words_are_refused():
    X = clear_rows()
    model = TopicModel("gaussian", n_init_topics=3, max_laps=3, **SMALL).fit(X, lengths=[60] * 3)
    with pytest.raises(TypeError, match="have no words"):
        model.stability(X)
