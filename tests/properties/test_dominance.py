"""No simple rival may beat a default fit in its own bound: `benchmarks/right_number.py` in small."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import xlogy

from baselines import Rival, baselines, fitted, joined
from early import fitted_up_to
from right_number_data import close_pairs, grown, labels, many_levels, of_family, short_documents, tables
from stickbreak import Mixture

NEAR = 1.0  # nats
CASES = [  # data and the seed of the fit
    (grown(2, 1, 5000, 1.0, "equal"), 0),
    (grown(8, 1, 1000, 1.0, "equal"), 0),
    pytest.param(of_family("product", 3000, 1), 0, marks=pytest.mark.long),
    (grown(1, 2, 5000, 3.0, "equal"), 0),
    (grown(1, 2, 5000, 4.0, "unequal"), 1),
    (grown(1, 2, 5000, 3.0, "equal", "diagonal_gaussian"), 1),
    (grown(1, 3, 5000, 3.5, "equal"), 0),
    (grown(2, 2, 5000, 3.0, "equal"), 0),
    pytest.param(grown(2, 2, 5000, 8.0, "1%"), 0, marks=pytest.mark.long),
    pytest.param(grown(2, 20, 2000, 6.0, "equal"), 0, marks=pytest.mark.long),
    (grown(4, 4, 1000, 3.0, "equal"), 0),
    pytest.param(grown(4, 10, 2000, 5.0, "unequal", "diagonal_gaussian"), 0, marks=pytest.mark.long),
    pytest.param(grown(16, 4, 2000, 10.0, "1%"), 0, marks=pytest.mark.long),
    (of_family("Bernoulli", 2000, 4), 0),
    (of_family("categorical", 2000, 4), 0),
    (many_levels(1, 2, 200, 2000), 0),
    (many_levels(4, 2, 60, 2000), 0),
    (short_documents(5, 4, 500, 1000), 0),
    pytest.param(many_levels(6, 3, 200, 2000), 0, marks=pytest.mark.long),
    (of_family("Poisson", 2000, 10, "unequal"), 0),
    (of_family("multinomial (CSR)", 2000, 4), 0),
    pytest.param(tables(1000, 4), 0, marks=pytest.mark.long),
]


@pytest.mark.parametrize(("data", "seed"), CASES, ids=lambda value: getattr(value, "name", None))
def test_no_rival_beats_a_default_fit(data, seed):
    X, truth = data.rows()
    fit = fitted(X, data.likelihood, random_state=seed, n_jobs=1)
    gaps = {rival: fit.lower_bound_ - bound for rival, bound in baselines(fit, X, truth).items()}
    assert {rival: gap for rival, gap in gaps.items() if gap < -NEAR} == {}


def behind_truth(X, truth):
    """What a default fit is behind one that starts at the truth and learns the prior from there."""
    best = fitted(X, "gaussian", init=truth, moves=(), random_state=1, n_jobs=1).lower_bound_
    return best - fitted_up_to(best - NEAR, Mixture("gaussian", random_state=1, n_jobs=1), X).lower_bound_


@pytest.mark.long
def test_clusters_that_overlap_are_told_apart():
    """A split of two that overlap shows only after many steps."""
    assert behind_truth(*close_pairs(4, 10_000, 2.2).rows()) < NEAR


def test_what_only_many_rows_show_is_found():
    """In 3,000 of 30,000 rows nothing does, and a prior learnt from one cluster bars its split."""
    truth, rng = labels(30_000, np.ones(2)), np.random.default_rng(0)
    X = rng.standard_normal((len(truth), 1)) + 1.7 * truth[:, None]
    assert behind_truth(X, truth) < NEAR


def test_rivals_beat_a_fit_that_cannot_split():
    X, truth = grown(2, 4, 1000, 6.0, "equal").rows()
    fit = fitted(X, "gaussian", moves=(), learn=False, random_state=0, n_jobs=1)
    bounds = baselines(fit, X, truth)
    for rival in ("truth", "truth on", "K/2 seeds", "K seeds", "2K seeds", "itself"):
        assert bounds[rival] > fit.lower_bound_ + 100.0
    assert bounds["one"] == pytest.approx(fit.lower_bound_, abs=1e-6)


@pytest.mark.parametrize("soft", [True, False])
def test_joining_clusters_beats_a_fit_that_cannot_merge(monkeypatch, soft):
    if not soft:
        monkeypatch.setattr("baselines.SOFT", 0)
    X, truth = grown(2, 4, 1000, 6.0, "equal").rows()
    halves = 2 * truth + np.random.default_rng(0).integers(2, size=len(truth))
    fit = fitted(X, "gaussian", init=halves, moves=(), max_laps=2, random_state=0, n_jobs=1)
    assert fit.n_clusters_ == 8
    rival = Rival(fit, X)
    assert rival.agglomerated() == pytest.approx(rival.bound(init=truth, moves=()), abs=NEAR)


def test_a_rival_at_another_prior_is_refused():
    X, _ = grown(2, 4, 1000, 6.0, "equal").rows()
    fit = fitted(X, "gaussian", random_state=0, n_jobs=1)
    with pytest.raises(ValueError, match="at the prior of a rival"):
        Rival(fit, X).bound(init="one", moves=(), learn=["scale"])


def test_clusters_are_joined_by_the_highest_gain():
    X, _ = grown(2, 4, 1000, 3.0, "equal").rows()
    fit = fitted(X, "gaussian", init="k-means++", n_init_clusters=6, moves=(), random_state=0, n_jobs=1)
    likelihood, N, S = fit.model_.likelihood, fit.summary_.N, fit.summary_.S

    def value(group):
        members = np.unique(group)[:, None] == group
        n = members @ N
        return (likelihood.log_marginal(n, members @ S) + xlogy(n, n)).sum()

    groups, estimates = joined(likelihood, N, S)
    before = np.arange(len(N))
    for group, estimate in zip(groups, estimates, strict=True):
        best = max(value(np.where(before == b, a, before)) for a, b in combinations(np.unique(before), 2))
        assert value(group) == pytest.approx(best, rel=1e-12)
        assert estimate == pytest.approx(best - value(np.arange(len(N))), rel=1e-9)
        before = group
    assert len(np.unique(before)) == 1
