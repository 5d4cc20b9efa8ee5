"""The published ascent on all rows, against the library's laps and responsibilities from scratch."""

import numpy as np
import pytest
from scipy.special import xlogy

from papers.baselines.full_ascent import FullAscent
from stickbreak import Mixture
from stickbreak.inference import Memoized
from stickbreak.likelihoods import Gaussian
from stickbreak.model import Summary


@pytest.fixture(scope="module")
def start():
    X = np.random.default_rng(0).normal(size=(300, 2))
    parameters = {
        "init": "random",
        "n_init_clusters": 4,
        "moves": (),
        "learn": False,
        "n_batches": 1,
        "random_state": 0,
    }
    fits = [
        Mixture(Gaussian(scale=1.0), algorithm=Memoized(accelerate=False), max_laps=n, **parameters) for n in (1, 2)
    ]
    return X, *(fit.fit(X) for fit in fits)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_step_is_a_lap(start):
    X, one, two = start
    ascent = FullAscent(one.model_, X)
    assert ascent.model.bound(ascent.step(one.summary_)) == pytest.approx(two.lower_bound_, abs=1e-6)


def from_scratch(ascent, R):
    T = np.asarray(ascent.model.likelihood.features(ascent.X, np.empty((len(R), 5))))
    H = -xlogy(R, R).sum(axis=0)
    base = np.asarray(ascent.model.likelihood.log_base(ascent.X).sum())
    return ascent.model.bound(ascent.model.ordered(Summary(R.sum(axis=0), np.einsum("nk,nf->kf", R, T), H, base)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_merges_add_responsibilities_of_all_pairs(start):
    X, one, _ = start
    ascent = FullAscent(one.model_, X)
    R = ascent.responsibilities(one.summary_)
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    joined = [np.column_stack([R[:, a] + R[:, b], np.delete(R, (a, b), axis=1)]) for a, b in pairs]
    expected = [from_scratch(ascent, r) for r in joined]
    found = [ascent.model.bound(c) for c in ascent.merges(one.summary_)]
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_deletes_leave_out_each_cluster_and_rise_with_their_steps(start):
    X, one, _ = start
    ascent = FullAscent(one.model_, X)
    few, many = (list(ascent.deletes(one.summary_, n)) for n in (1, 5))
    assert [c.K for c in few] == [3] * 4
    assert all(c.N.sum() == pytest.approx(len(X)) for c in few)
    assert all(ascent.model.bound(b) > ascent.model.bound(a) for a, b in zip(few, many))
    assert list(ascent.deletes(few[0].take([0]), 1)) == []
