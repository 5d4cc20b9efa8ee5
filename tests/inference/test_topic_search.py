"""The search for topics where laps take long, and growth from too few."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from stickbreak import TopicModel
from stickbreak.inference.topics import ascents, growth

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def corpus(K, n, V, words):
    """Documents (n, V) of K topics, and the topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.05), K)
    return rng.multinomial(words, rng.dirichlet(np.full(K, 0.1), n) @ topics), topics


def growing(tried, fast=False):
    """A search with the bounds of growth, of as many topics as the last."""
    search = SimpleNamespace(_tried=tried, _is_fast=lambda: fast, total=SimpleNamespace(K=max(tried)))
    search._top_of = partial(growth.TopicGrowth._top_of, search)
    return search


def test_the_top_of_a_parabola():
    x = np.log([64.0, 128.0, 300.0])
    assert growth._top(x, 7.0 - 3.0 * (x - 5.1) ** 2) == pytest.approx((5.1, 3.0))
    assert growth._top(x, 7.0 + 3.0 * (x - 5.1) ** 2) == (np.inf, 0.0)


@pytest.mark.parametrize(
    ("bounds", "fast", "rises"),
    [
        ((-9, -3, -2), False, False),
        ((-9, -5, -2), False, True),
        ((-9, -3, -2), True, True),
        ((-900, -9, -3, -2.0, -1.9), False, False),  # the last four tell
        ((-90, -9, -5, -2.0, -0.0), False, True),
    ],
)
def test_growth_ends_where_laps_take_long_and_no_more_topics_than_were_tried_seem_best(bounds, fast, rises):
    search = growing({64 * 2**i: bound for i, bound in enumerate(bounds)}, fast)
    assert growth.TopicGrowth._rises(search) is rises


def test_noise_in_one_bound_moves_the_best_number_less_by_four_bounds_than_by_three():
    sizes = [64, 128, 256, 512]
    search = growing({K: -2.0 * (np.log2(K) - 9.0) ** 2 for K in sizes})
    assert search._top_of(sizes)[0] == pytest.approx(512.0)
    search._tried[512] += 1.0
    by_four = search._top_of(sizes)[0]
    by_three = search._top_of(sizes[1:])[0]
    assert 512.0 < by_four < by_three


@pytest.mark.parametrize("start", [2, 5])
def test_the_number_is_no_multiple_of_the_start_where_laps_take_long(monkeypatch, start):
    monkeypatch.setattr(ascents, "TUNING", replace(ascents.TUNING, fast=0))
    monkeypatch.setattr(growth, "TUNING", replace(growth.TUNING, fewest=start))
    model = TopicModel(init="k-means++", n_init_topics=start, random_state=0, n_jobs=1)
    found = model.fit(corpus(12, 300, 150, 60)[0])
    assert abs(found.n_topics_ - 12) <= 1
    history = [lap.lower_bound for lap in found.history_]
    assert (np.diff(history) >= -1e-7 * np.abs(history[1:])).all()


def test_fewer_topics_follow_where_growth_went_too_far_and_laps_take_long(monkeypatch):
    monkeypatch.setattr(ascents, "TUNING", replace(ascents.TUNING, fast=0))
    X, topics = corpus(30, 200, 600, 100)
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    assert abs(found.n_topics_ - 30) <= 1
    assert found.lower_bound_ > TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X).lower_bound_


@pytest.mark.parametrize(
    ("bounds", "fast", "pace"), [((-9, -3, -2), True, 2.0), ((-9, -5, -2), False, 2.0), ((-9, -3, -1.9), False, 1.25)]
)
def test_growth_goes_little_beyond_the_top_where_laps_take_long(bounds, fast, pace):
    search = growing(dict(zip((64, 128, 256), bounds)), fast)
    assert growth.TopicGrowth._pace(search) == pytest.approx(pace)


def test_no_annealing_follows_where_documents_of_one_topic_each_are_best():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.05), 6)
    X = np.stack([rng.multinomial(30, topics[k]) for k in rng.integers(6, size=300)])
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    origins = [lap.origin for lap in found.history_]
    assert "one topic each" in origins
    assert "annealing" not in origins[origins.index("one topic each") :]
    assert found.n_topics_ == 6
