"""The methods of 2013 as values of the library, and their traces."""

import numpy as np
import pytest

from papers.baselines.methods_2013 import RATES, Watched, begun, births, fixed, mixture, trace


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 1)) + 20.0 * (np.arange(60) % 2)[:, None]


def test_rates_are_those_of_the_paper():
    steps = [[rate.step(t) for t in (1, 50)] for rate in RATES.values()]
    np.testing.assert_allclose(steps, [[11**-0.5, 60**-0.5], [101**-0.5, 150**-0.5], [11**-0.9, 60**-0.9]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_of_clusters_are_fixed_but_for_births(rows):
    for name, model in fixed("gaussian", 3, "random", 3, 2, 0).items():
        assert model.fit(rows).n_clusters_ <= 3, name
        assert len(model.history_) == 2
    assert begun("gaussian", "k-means++", 4, 0).fit(rows).n_clusters_ == 4
    grown = births("gaussian", 3, 0).fit(rows)
    assert grown.n_clusters_ == 2


def test_a_trace_ends_with_the_bound_per_row(rows):
    model = mixture("gaussian", 2, 0).fit(rows)
    of_laps = trace(model, len(rows))
    assert max(of_laps["ELBO"]) == pytest.approx(model.lower_bound_ / 60)
    assert of_laps["passes"] == list(range(1, len(model.history_) + 1))
    assert 2 in of_laps["clusters"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_lap_is_looked_at_and_changes_nothing(rows):
    models = {
        "births": births("gaussian", 3, 0),
        "search": mixture("gaussian", 2, 0),
        "stochastic": fixed("gaussian", 3, "random", 3, 4, 0)["SO-a"],
    }
    for name, model in models.items():
        watched = Watched.of(model, lambda result: result.total.K).fit(rows)
        assert len(watched.seen) == len(watched.history_) > 1, name
        assert watched.lower_bound_ == model.fit(rows).lower_bound_
    assert watched.seen == [lap.n_clusters for lap in watched.history_]
