"""Gibbs sampling as an algorithm of a mixture: draws, the partition nearest to them, and what is refused."""

import sys
from itertools import combinations

import arviz
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import stickbreak
from stickbreak import Mixture, TopicModel
from stickbreak.allocations import FiniteDirichlet, GammaConcentration, TruncatedDirichletProcess
from stickbreak.inference import Draws, Gibbs
from stickbreak.inference.samplers.draws import by_size
from stickbreak.likelihoods import DiagonalGaussian, Gaussian, GaussianNetwork, StudentT


def rows(n=20):
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (n, 2)) for m in (-6.0, 0.0, 6.0)])


def fitted(X, **parameters):
    algorithm = parameters.pop("algorithm", Gibbs(30, 20, 2))
    return Mixture(DiagonalGaussian(), algorithm=algorithm, random_state=3, learn=False, **parameters).fit(X)


@pytest.fixture(scope="module")
def model():
    return fitted(rows(), n_jobs=1)


def random_draws(labels):
    """Draws of given labels, (chains, draws, N)."""
    shape = labels.shape[:2]
    noise = np.random.default_rng(0).normal(size=shape)
    return Draws(labels.astype(np.int32), labels.max(axis=2).astype(np.int32) + 1, np.ones(shape), noise)


def test_shapes_of_draws(model):
    draws = model.draws_
    assert sorted(draws) == ["concentration", "labels", "log_joint", "n_clusters"]
    assert draws["labels"].shape == (2, 30, 60)
    assert all(draws[name].shape == (2, 30) for name in ("concentration", "log_joint", "n_clusters"))
    np.testing.assert_array_equal(draws["n_clusters"], draws["labels"].max(axis=2) + 1)
    assert (draws["concentration"] == 1.0).all()


def test_the_model_is_that_of_the_nearest_partition(model, naive):
    nearest = model.draws_.nearest_partition()
    np.testing.assert_array_equal(model.labels_, nearest)
    hard = naive.summarise(model.model_.likelihood, rows(), np.eye(nearest.max() + 1)[nearest])
    naive.assert_same(model.summary_, hard)
    assert model.lower_bound_ == pytest.approx(model.model_.bound(hard), rel=1e-12)
    assert model.n_clusters_ == 3
    np.testing.assert_array_equal(model.predict(rows()), nearest)
    np.testing.assert_allclose(model.weights_.sum(), 1.0)
    assert model.n_laps_ == 1


def test_draws_are_the_same_whatever_the_threads(model):
    again = fitted(rows(), n_jobs=2)
    for name in model.draws_:
        np.testing.assert_array_equal(again.draws_[name], model.draws_[name])
    other = fitted(rows(), algorithm=Gibbs(30, 20, 2, split_merge=False))
    assert not np.array_equal(other.draws_["log_joint"], model.draws_["log_joint"])


def test_hyperparameters_are_learnt_before_the_chains():
    X = rows()
    held, learnt = (
        Mixture(Gaussian(), algorithm=Gibbs(5, 5, 2), random_state=0, learn=learn).fit(X) for learn in (False, True)
    )
    assert learnt.n_clusters_ == 3
    assert learnt.model_.likelihood.scale[0, 0] != held.model_.likelihood.scale[0, 0]
    assert learnt.draws_["log_joint"].mean() > held.draws_["log_joint"].mean()


def test_repeated_rows_may_be_in_different_clusters():
    """Equal rows are not collapsed to one with a weight."""
    X = np.repeat([[0.0], [1.0]], 30, axis=0)
    model = Mixture("bernoulli", algorithm=Gibbs(10, 5, 1), random_state=0, allocation=FiniteDirichlet(4, 4.0)).fit(X)
    assert model.draws_["labels"].shape[2] == 60
    assert len(np.unique(model.draws_["labels"][0][:, :30])) > 1
    assert model.draws_["n_clusters"].max() <= 4


def test_thinned_draws_are_some_of_all():
    every = fitted(rows(5), algorithm=Gibbs(12, 3, 1))
    third = fitted(rows(5), algorithm=Gibbs(4, 3, 1, thin=3))
    np.testing.assert_array_equal(third.draws_["log_joint"][0], every.draws_["log_joint"][0][2::3])


def test_blocked_sweeps_find_the_same_clusters(model):
    blocked = fitted(rows(), algorithm=Gibbs(30, 60, 2, kind="blocked", truncation=12))
    assert adjusted_rand_score(blocked.labels_, model.labels_) == 1.0
    assert blocked.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-9)
    assert blocked.draws_["n_clusters"].max() <= 12
    prior = TruncatedDirichletProcess(12, 1.0)
    truncated = fitted(rows(), algorithm=Gibbs(30, 60, 2, kind="blocked"), allocation=prior)
    np.testing.assert_array_equal(truncated.draws_["labels"], blocked.draws_["labels"])
    with pytest.raises(ValueError, match="collapsed sampling need no truncation"):
        fitted(rows(), algorithm=Gibbs(10, 30, 1), allocation=prior)
    finite = fitted(rows(), algorithm=Gibbs(10, 30, 1, kind="blocked"), allocation=FiniteDirichlet(3, 3.0))
    assert finite.draws_["n_clusters"].max() <= 3


def test_draws_of_a_concentration():
    held = fitted(rows(5), algorithm=Gibbs(20, 5, 2), concentration=GammaConcentration(2.0, 1.0))
    assert (np.ptp(held.draws_["concentration"], axis=1) > 0.0).all()
    assert np.isfinite(held.lower_bound_)
    assert held.lower_bound_ == pytest.approx(held.model_.bound(held.summary_))


def test_other_fits_have_no_draws(model):
    again = fitted(rows(5))
    again.set_params(algorithm="memoized").fit(rows(5))
    assert not hasattr(again, "draws_")
    assert not hasattr(model.merge_clusters(2, rows()), "draws_")


def test_a_sampled_model_can_be_saved(model, tmp_path):
    model.save(tmp_path / "model")
    again = stickbreak.load(tmp_path / "model")
    assert again.algorithm == Gibbs(30, 20, 2)
    np.testing.assert_array_equal(again.predict(rows()), model.labels_)


def test_co_clustering_by_counting():
    rng = np.random.default_rng(1)
    draws = random_draws(rng.integers(3, size=(2, 5, 7)))
    flat = draws["labels"].reshape(10, 7)
    expected = (flat[:, :, None] == flat[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(draws.co_clustering(), expected)
    np.testing.assert_allclose(draws.co_clustering([4, 1]), expected[np.ix_([4, 1], [4, 1])])


def test_the_nearest_partition_by_brute_force():
    """It has the least squares from the co-clustering probabilities, over pairs of rows, of all draws."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        draws = random_draws(rng.integers(rng.integers(1, 4), size=(2, 6, 6)))
        flat, p = draws["labels"].reshape(12, 6), draws.co_clustering()
        losses = [sum((float(z[i] == z[j]) - p[i, j]) ** 2 for i, j in combinations(range(6), 2)) for z in flat]
        found = draws.nearest_partition()
        loss = sum((float(found[i] == found[j]) - p[i, j]) ** 2 for i, j in combinations(range(6), 2))
        assert loss == pytest.approx(min(losses), abs=1e-12)
        assert (np.diff(np.bincount(found)) <= 0).all()


def test_labels_by_size():
    np.testing.assert_array_equal(by_size(np.array([2, 0, 2, 1, 2, 1])), [0, 2, 0, 1, 0, 1])


def test_convergence_by_arviz(model):
    found = model.draws_.convergence()
    assert "concentration" not in found
    assert found["log_joint"].r_hat == arviz.rhat(model.draws_["log_joint"])
    assert found["log_joint"].ess_bulk == arviz.ess(model.draws_["log_joint"])
    lags = model.draws_.autocorrelation("log_joint", 5)
    assert lags.shape == (2, 5)
    np.testing.assert_allclose(lags[:, 0], 1.0)
    assert "log_joint" in model.draws_.to_arviz().posterior


def test_without_arviz_the_error_names_the_extra(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    for ask in (model.draws_.convergence, model.draws_.autocorrelation, model.draws_.to_arviz):
        with pytest.raises(ImportError, match=r"ArviZ absent.*stickbreak\[diagnostics\]"):
            ask()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_draws", 0),
        ("n_burn_in", -1),
        ("n_burn_in", 1.5),
        ("n_chains", True),
        ("kind", "blocks"),
        ("thin", 0),
    ],
)
def test_parameters_out_of_range(name, value):
    with pytest.raises(ValueError, match=name):
        Gibbs(**{name: value})


def test_what_cannot_be_sampled_is_refused(model):
    X = rows(5)
    with pytest.raises(ValueError, match="split_merge"):
        Gibbs(split_merge="yes")
    with pytest.raises(ValueError, match="latent variable"):
        Mixture(StudentT(), algorithm=Gibbs(5, 5, 1), learn=False).fit(X)
    with pytest.raises(ValueError, match="sample_weight must be 1"):
        Mixture(Gaussian(), algorithm=Gibbs(5, 5, 1)).fit(X, sample_weight=np.full(15, 2.0))
    with pytest.raises(ValueError, match=r"algorithm must be .* takes documents; got a Gibbs"):
        TopicModel(algorithm=Gibbs(5, 5, 1)).fit(np.ones((5, 4)))
    with pytest.raises(TypeError, match="draws no parameters"):
        Mixture(GaussianNetwork(), algorithm=Gibbs(5, 5, 1, kind="blocked"), learn=False).fit(X)
    with pytest.raises(ValueError, match="name must be one of"):
        model.draws_.autocorrelation("labels")
