"""From more states than there may be down to as many: the bound of every change, what is chosen, and where it begins."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from stickbreak import HMM
from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import Options, Session, Threads
from stickbreak.inference.descent import Descent, of_states, wide_start
from stickbreak.inference.states import excursions, sizes
from stickbreak.inference.states import search as state_search
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Bernoulli, Gaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.sequences import labelled
from stickbreak.moves import states

LENGTHS = np.array([300, 1, 120, 79])
PROBABILITIES = np.array([[0.9, 0.1, 0.1, 0.1], [0.1, 0.9, 0.1, 0.9], [0.1, 0.1, 0.9, 0.5]])


def chain(seed, lengths, K=3, last=10):
    """States of rows, each for ten rows and more."""
    rng = np.random.default_rng(seed)
    return rng, np.repeat(rng.integers(K, size=-(-sum(lengths) // last)), last)[: sum(lengths)]


def markov_chain(rng, n, K, leaves):
    """States of n rows that last a geometric time, so that more states cannot describe it better."""
    z = np.full(n, rng.choice(K, p=np.full(K, 1.0 / K)))
    for t in range(1, n):
        if rng.random() < leaves:
            z[t:] = rng.choice(K, p=np.where(np.arange(K) == z[t - 1], 0.0, 1.0 / (K - 1)))
    return z


def problem(kind, seed, n_states=3, allocation=None):
    rng, z = chain(seed, LENGTHS)
    if kind == "gaussian":
        X, source = None, SequenceSource(rng.standard_normal((len(z), 2)) + 5.0 * np.eye(3, 2)[z], LENGTHS)
        likelihood = Gaussian().resolve(Sample.of(source.X))
    else:
        X = (rng.random((len(z), 4)) < PROBABILITIES[z]).astype(float)
        X[rng.random(len(z)) < 0.1] = np.nan
        distinct, codes = np.unique(X, axis=0, return_inverse=True, equal_nan=True)
        source = SequenceSource(distinct, LENGTHS, codes=codes.ravel().astype(np.int32))
        likelihood = Bernoulli().resolve(Sample.of(X[~np.isnan(X).any(axis=1)]))
    return Model(likelihood, allocation or FiniteMarkovChain(n_states, 3.0, 2.0), SEQUENCES), source, z


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("allocation", [None, HDPMarkovChain(2.0, 5.0)], ids=["finite", "hdp"])
def test_the_bound_of_a_change_is_that_of_its_parameters_and_the_best_messages(kind, allocation, seed):
    """With p its parameters and s the summary of the next visit: bound at p = terms of p in s + H(s) - KL(p), by hand."""
    model, source, z = problem(kind, seed, allocation=allocation)
    labels = np.where(np.random.default_rng(seed).random(len(z)) < 0.7, z, 0)
    total = labelled(model.likelihood, source, labels)
    parameters = model.parameters(total, source.dtype)
    with Threads(1) as threads:
        found = Descent(model, source, Session(threads), np.random.default_rng(0), Options(1, 9, 1e-6))._bound(
            model, total
        )
        after = visit(model, parameters, source, source.batches(1)[0], threads).summary

    def terms(s):
        logs = np.log(np.maximum(parameters.prior, np.exp(-300.0)))
        return (s.S * parameters.W).sum() + s.N @ parameters.bias + (s.M * logs[1:]).sum() + s.begins @ logs[0]

    divergence = terms(total) + total.H.sum() + total.base - model.bound(total)
    want = terms(after) + after.H.sum() + total.base - divergence
    assert found == pytest.approx(float(want), rel=1e-10)
    assert model.bound(total) <= found + 1e-9 * abs(found)
    assert found + float(after.base) <= model.bound(after) + 1e-9 * abs(found)  # a summary of labels has no base


def test_changes_are_merges_and_deletions():
    model, source, z = problem("gaussian", 0, n_states=6)
    total = labelled(model.likelihood, source, 2 * z + (np.arange(len(z)) % 2))  # each state twice
    found = states.changes(model, total, 3, 2)
    assert {tuple(sorted(pair)) for pair in found[:3]} == {(0, 1), (2, 3), (4, 5)}
    assert [k for (k,) in found[3:]] == list(np.argsort(total.N, kind="stable")[:2])
    changed = states.changed(total, [(2, 3), (5,)])
    np.testing.assert_allclose(changed.N, [total.N[0], total.N[1], total.N[4], total.N[2] + total.N[3]])
    np.testing.assert_allclose(changed.M.sum(), total.M[:5, :5].sum())
    np.testing.assert_allclose(changed.S[3], total.S[2] + total.S[3])


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_a_wide_start_has_every_row_and_as_many_states(kind):
    model, source, _ = problem(kind, 1)
    start = wide_start(model, source, np.random.default_rng(0))
    assert 3 < start.K <= 7
    assert start.N.sum() == pytest.approx(source.total_weight)


def test_descents_find_the_states(monkeypatch):
    """On all rows where there are more than the search takes samples of, from no more than their number."""
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000))
    rng, z = chain(5, [2500, 1500])
    X = (rng.random((len(z), 8)) < np.tile(PROBABILITIES, 2)[z]).astype(float)
    for likelihood, rows in (("bernoulli", X), ("gaussian", rng.standard_normal((len(z), 2)) + 6.0 * np.eye(3, 2)[z])):
        model = HMM(likelihood, allocation="finite", n_init_states=3, random_state=0).fit(rows, lengths=[2500, 1500])
        assert model.n_states_ == 3
        counts = np.zeros((3, 3))
        np.add.at(counts, (model.labels_, z), 1.0)
        assert counts[linear_sum_assignment(-counts)].sum() > 0.96 * len(z)
        assert (np.diff(model.lower_bounds_) >= -1e-9 * abs(model.lower_bound_)).all()


def test_a_search_of_many_rows_begins_on_samples_of_samples(monkeypatch):
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, sample_rows=400))
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000))
    rows, run = [], state_search.StateSearch.run

    def noted(search, start):
        rows.append(search.source.n_rows)
        run(search, start)

    monkeypatch.setattr(state_search.StateSearch, "run", noted)
    rng = np.random.default_rng(6)
    z = markov_chain(rng, 4000, 3, 0.1)
    X = rng.standard_normal((len(z), 2)) + 6.0 * np.eye(3, 2)[z]
    model = HMM("diagonal_gaussian", random_state=0).fit(X, lengths=[2500, 1500])
    assert rows[0] == 4000
    assert 1333 <= rows[1] < 1500
    assert 400 <= rows[2] < 600
    assert model.n_states_ == 3
    assert model.n_laps_ == len(model.history_) > len(model.lower_bounds_)


TURNS = {"regrouped", "partly regrouped", "pieces", "segments", "blocks", "another ascent", "softened"}


@pytest.mark.parametrize(
    ("limits", "learn", "seen"),
    [
        ({"path_rows": 4000, "long_lap": 4000 * 4**2}, False, {"splits", "transitions as given", *TURNS}),
        (
            {"path_rows": 4000, "long_lap": 4000 * 4**2},
            True,
            {"prior as given", "transitions as given", "one state", *TURNS},
        ),
        ({"path_rows": 3999}, False, set()),
        ({"long_lap": 4000 * 4**2 - 1}, True, {"halves", "pieces"}),
        ({"long_lap": 4000 * 4**2 - 1, "longest_lap": 4000 * 8**2 - 1}, True, {"pieces"}),
        ({"long_lap": 0, "longest_lap": 4000 * 4**2 - 1}, True, set()),
    ],
)
def test_excursions_follow_on_all_rows_after_a_sample(monkeypatch, limits, learn, seen):
    """A state of one row in two hundred, which no small sample shows, is among those of all rows."""
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, sample_rows=400))
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000, **limits))
    rng = np.random.default_rng(7)
    z = markov_chain(rng, 4000, 3, 0.1)
    z[1000:1020] = 3
    X = rng.standard_normal((len(z), 2)) + np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])[z]
    model = HMM("diagonal_gaussian", learn=learn, random_state=0).fit(X, lengths=[2500, 1500])
    assert {lap.origin for lap in model.history_ if lap.sample_rows == 0} == {"start", *seen}
    assert model.n_states_ == 4


@pytest.mark.long
def test_states_that_a_sample_does_not_tell_apart_are_told_apart_on_all_rows(monkeypatch):
    """What neither rows nor segments show, pieces of rows do, which have an early turn."""
    K = 14
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=7200))
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, sample_rows=3600))
    rng = np.random.default_rng([1, K])
    z = markov_chain(rng, 12_000, K, 0.05)
    X = rng.poisson(rng.gamma(1.0, 5.0, (K, 3))[z]).astype(float)
    model = HMM("poisson", random_state=1).fit(X)
    assert model.n_states_ == K
    assert model.lower_bound_ > HMM("poisson", init=z, moves=()).fit(X).lower_bound_ - 1.0


def test_where_laps_take_long_few_precede_halves_and_removals_wait(monkeypatch):
    monkeypatch.setattr(state_search, "TUNING", replace(state_search.TUNING, sample_rows=400, long_first=3))
    monkeypatch.setattr(sizes, "TUNING", replace(sizes.TUNING, many_rows=1000, long_lap=0))
    monkeypatch.setattr(excursions, "TUNING", replace(excursions.TUNING, long_settle=4, long_removals=2))
    rng, z = chain(7, [2500, 1500])
    X = rng.standard_normal((len(z), 2)) + 2.5 * np.eye(3, 2)[z]
    model = HMM("diagonal_gaussian", learn=False, tol=1e-9, random_state=0, max_laps=400).fit(X, lengths=[2500, 1500])
    laps = [lap for lap in model.history_ if lap.sample_rows == 0]
    origins = [lap.origin for lap in laps]
    assert origins[:4] == ["start"] * 3 + ["halves"]
    for kind in ("halves", "pieces"):
        own = [lap for lap in laps if lap.origin == kind][:6]
        assert not any(move.tried for lap in own[:4] for move in lap.moves)
        assert len(own) > 0
        assert origins.count(kind) <= 6 or origins[-1] == kind  # which the last laps go on from


@pytest.mark.parametrize("learn", [(), ("likelihood.scale",)])
def test_the_prior_as_given_is_learnt_anew_where_it_is_learnt(learn):
    model, source, z = problem("gaussian", 0, allocation=HDPMarkovChain(2.0, 5.0))
    starts = []
    with Threads(1) as threads:
        options = Options(1, 60, 1e-3, learn_late=learn)
        search = state_search.StateSearch(
            model, source, ("birth", "merge", "delete"), Session(threads), np.random.default_rng(0), options
        )
        search.begin(model.ordered(labelled(model.likelihood, source, z)))
        learnt = search.outcome.model.likelihood
        for kind in search._last_kinds():
            if kind.origin == "prior as given" and search._pays(kind) is not None:
                starts.append(search.trial.start_model.likelihood)
                assert search.trial.start_model.allocation == search.best.start_model.allocation
                assert search.trial.model.likelihood.scale == pytest.approx(learnt.scale, rel=0.05)
    assert starts == ([model.likelihood] if learn else [])
    assert (learnt is model.likelihood) == (not learn)


def test_a_chain_of_as_many_states_as_are_wanted():
    model, _, _ = problem("gaussian", 0)
    assert of_states(model, 7).allocation.n_states == 7
    assert of_states(Model(model.likelihood, HDPMarkovChain(), SEQUENCES), 7).allocation == HDPMarkovChain()
