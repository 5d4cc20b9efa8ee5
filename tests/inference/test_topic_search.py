"""The search for topics where laps take long, and growth from too few."""

import gc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from early import fitted_up_to
from stickbreak import TopicModel
from stickbreak.data import BagSource
from stickbreak.inference import LearningSearch, lap, leap
from stickbreak.inference.topics import growth, search, speed
from stickbreak.inference.topics.growth import Growth
from stickbreak.inference.topics.one_topic import OneTopicSearch
from stickbreak.inference.topics.restarts import Restarts
from stickbreak.inference.topics.search import TopicSearch
from stickbreak.inference.topics.speed import Speed
from stickbreak.inference.topics.splits import Splits
from stickbreak.inference.topics.tried import Tried, top
from stickbreak.inference.topics.unmixed import UnmixedAscents

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def corpus(K, n, V, words):
    """Documents (n, V) of K topics, and the topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.05), K)
    return rng.multinomial(words, rng.dirichlet(np.full(K, 0.1), n) @ topics), topics


def test_the_top_of_a_parabola():
    x = np.log([64.0, 128.0, 300.0])
    assert top(x, 7.0 - 3.0 * (x - 5.1) ** 2) == pytest.approx((5.1, 3.0))
    assert top(x, 7.0 + 3.0 * (x - 5.1) ** 2) == (np.inf, 0.0)


@pytest.mark.parametrize(
    ("bounds", "rises"),
    [
        ((-9, -3), True),
        ((-9, -3, -2), False),
        ((-9, -5, -2), True),
        ((-900, -9, -3, -2.0, -1.9), False),  # the last four tell
        ((-90, -9, -5, -2.0, -0.0), True),
        ((-5774236, -5712156, -5680384), True),  # of 20 Newsgroups: 374 topics seem best
    ],
)
def test_growth_goes_on_while_more_topics_than_were_tried_seem_best(bounds, rises):
    assert Tried({64 * 2**i: bound for i, bound in enumerate(bounds)}).rises() is rises


@pytest.mark.parametrize("fast", [False, True])
def test_growth_goes_on_where_laps_are_fast_until_it_gains_too_little(fast):
    wanted = []
    found = Growth(
        SimpleNamespace(
            total=SimpleNamespace(K=256),
            outcome=SimpleNamespace(total=SimpleNamespace(K=256), bound=-2.0),
            most=1000,
            is_fast=lambda: fast,
            takes_seconds=lambda: False,
            may_grow=lambda: False,
        ),
        annealing=None,
    )
    found.tried = Tried({64: -9, 128: -3, 256: -2})
    found.grows = lambda K, options: wanted.append(K)
    found.double(None)
    assert wanted == ([512] if fast else [])


@pytest.mark.parametrize(("K", "excursions"), [(33, [(64, 0.5), (64, 0.8)]), (32, [])])
def test_far_fewer_topics_are_tried_where_the_best_model_has_more_than_half_of_the_fewest(K, excursions):
    tried = []
    found = SimpleNamespace(total=SimpleNamespace(K=K), outcome=None)
    found.may_grow = lambda: True
    found.try_mixing = lambda attempt: attempt()
    grown = SimpleNamespace(tried=Tried({64: -9.0, 128: -12.0}))
    grown.try_others = lambda K, times, options: tried.append((K, times))
    TopicSearch._try_far_fewer(found, SimpleNamespace(growth=grown), None)
    assert tried == excursions


def test_other_numbers_of_topics_end_where_the_next_is_the_same():
    found = Growth(SimpleNamespace(may_grow=lambda: True, most=100), annealing=None)
    found.tried = Tried({4: -9.0})
    found.try_others(4, 0.8, None)  # an excursion would need what is not there


def test_noise_in_one_bound_moves_the_best_number_less_by_four_bounds_than_by_three():
    sizes = [64, 128, 256, 512]
    found = Tried({K: -2.0 * (np.log2(K) - 9.0) ** 2 for K in sizes})
    assert found.top_of(sizes)[0] == pytest.approx(512.0)
    found.bounds[512] += 1.0
    by_four = found.top_of(sizes)[0]
    by_three = found.top_of(sizes[1:])[0]
    assert 512.0 < by_four < by_three


@pytest.mark.parametrize(("lacking", "wanted"), [(0.0, 128), (3.0, 116)])
def test_long_ascents_have_as_many_topics_as_seem_best_or_nearly_so(lacking, wanted):
    """Nearly is 3 nats for each of 128 topics below the top: 384 = 40,000 x 0.098^2, and 128 exp(-0.098) = 116."""
    found = Tried({K: -40_000.0 * np.log(K / 128.0) ** 2 - 1e-9 for K in (64, 128, 256)})
    assert found.best_number(1000, lacking) in (wanted, wanted + 1)  # rounded up
    assert found.best_number(100, lacking) == 100


def test_two_sizes_do_not_tell_which_number_is_best():
    assert Tried({64: -9.0, 128: -3.0}).best_number(1000) == 0


@pytest.mark.parametrize("start", [2, 5])
def test_the_number_is_no_multiple_of_the_start_where_laps_take_long(monkeypatch, start):
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=0))
    monkeypatch.setattr(growth, "TUNING", replace(growth.TUNING, fewest=start))
    model = TopicModel(init="k-means++", n_init_topics=start, random_state=0, n_jobs=1)
    found = model.fit(corpus(12, 300, 150, 60)[0])
    assert abs(found.n_topics_ - 12) <= 1
    history = [lap.lower_bound for lap in found.history_]
    assert (np.diff(history) >= -1e-7 * np.abs(history[1:])).all()


@pytest.mark.parametrize("fast", [0, 1 << 24])
def test_steps_ahead_are_short_where_laps_take_long(monkeypatch, fast):
    steps = []

    def noted(posterior, before, step, dtype):
        steps.append(step)
        return leap.leap_from(posterior, before, step, dtype)

    monkeypatch.setattr(lap, "leap_from", noted)
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=fast))
    TopicModel(random_state=0, n_jobs=1, max_laps=40).fit(corpus(5, 200, 100, 50)[0])
    assert max(steps) == 0.5 if fast == 0 else max(steps) > 1.0


def test_fewer_topics_follow_where_growth_went_too_far_and_laps_take_long(monkeypatch):
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=0))
    X, topics = corpus(30, 200, 600, 100)
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    assert abs(found.n_topics_ - 30) <= 1
    assert found.lower_bound_ > TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X).lower_bound_


def test_long_ascents_begin_with_more_topics_where_growth_asks_for_too_few(monkeypatch):
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=0))
    monkeypatch.setattr(growth, "TUNING", replace(growth.TUNING, fewest=20))
    monkeypatch.setattr(Tried, "rises", lambda tried: False)
    start = {"init": "k-means++", "n_init_topics": 20}
    found = TopicModel(**start, random_state=0, n_jobs=1, max_laps=110).fit(corpus(30, 200, 600, 100)[0])
    annealed = [lap.explored_clusters for lap in found.history_ if lap.origin == "annealing"]
    assert annealed[0] == 20
    assert found.n_topics_ >= 26


@pytest.mark.parametrize(("bounds", "pace"), [((-9, -3), 2.0), ((-9, -5, -2), 2.0), ((-9, -3, -1.9), 1.25)])
def test_growth_goes_little_beyond_the_top(bounds, pace):
    found = Tried(dict(zip((64, 128, 256), bounds)))
    assert found.pace(found.sizes[-1], 2.0) == pytest.approx(pace)


def documents_of_one_topic_each():
    """Documents (300, 300) of 30 words, each of one of six topics."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(300, 0.05), 6)
    return np.stack([rng.multinomial(30, topics[k]) for k in rng.integers(6, size=300)])


def one_topic():
    """Documents (200, 100) of 30 words of a single topic."""
    rng = np.random.default_rng(0)
    return rng.multinomial(30, rng.dirichlet(np.ones(100)), 200)


def laps_of(found, origin):
    """How many laps the ascents that began so took together."""
    return [lap.origin for lap in found.history_].count(origin)


def test_the_first_ascent_is_given_up_where_one_topic_is_far_better():
    found = TopicModel(random_state=0, n_jobs=1).fit(one_topic())
    assert found.n_topics_ == 1
    assert laps_of(found, "start") < 10
    assert 128 not in [lap.explored_clusters for lap in found.history_]


def test_documents_are_mixed_only_a_little_at_the_end_where_each_has_one_topic():
    found = TopicModel(random_state=0, n_jobs=1).fit(documents_of_one_topic_each())
    assert laps_of(found, "one topic each") > 0
    assert 0 < laps_of(found, "documents mixed") < 40
    assert found.document_concentration_ < 0.001


def test_documents_that_mix_topics_a_little_are_not_left_with_one_each():
    """They are explained better by one topic each than by topics mixed with the first alpha."""
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(300, 0.05), 3)
    X = rng.multinomial(6, rng.dirichlet(np.full(3, 0.02), 500) @ topics)
    truth = TopicModel(init=topics, moves=(), random_state=1, n_jobs=1).fit(X)
    found = fitted_up_to(truth.lower_bound_, TopicModel(random_state=1, n_jobs=1), X)
    assert laps_of(found, "one topic each") > 0
    assert found.lower_bound_ > truth.lower_bound_
    assert found.document_concentration_ > 0.005


def test_fractions_of_counts_take_as_long_as_whole_ones():
    assert BagSource(sparse.csr_array([[0.1, 0.2], [0.0, 0.1]])).n_tokens == 3.0
    assert BagSource(sparse.csr_array([[3.0, 2.0]])).n_tokens == 5.0


def test_fractions_of_counts_are_annealed_too():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(200, 0.05), 6)
    X = rng.multinomial(40, rng.dirichlet(np.full(6, 0.2), 150) @ topics) * rng.uniform(0.2, 2.0, (150, 1))
    with pytest.warns(UserWarning, match="not whole"):
        truth = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    with pytest.warns(UserWarning, match="not whole"):
        found = fitted_up_to(truth.lower_bound_, TopicModel(random_state=0, n_jobs=1), X)
    assert found.lower_bound_ > truth.lower_bound_


@pytest.mark.long
def test_fewer_topics_follow_where_merges_of_many_gain_nothing():
    """Documents that are there twice keep many topics apart."""
    rng = np.random.default_rng(2)
    topics = rng.dirichlet(np.full(1000, 0.05), 8)
    X = np.tile(rng.multinomial(60, rng.dirichlet(np.full(8, 0.2), 200) @ topics), (2, 1))
    truth = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    found = fitted_up_to(truth.lower_bound_, TopicModel(random_state=0, n_jobs=1), X)
    assert found.lower_bound_ > truth.lower_bound_
    assert found.n_topics_ <= 10


@pytest.mark.long
def test_topics_that_splits_have_found_are_annealed(monkeypatch):
    """A small topic is left out wherever topics are annealed before, and found by splits."""
    for owner, name in ((Restarts, "all"), (TopicSearch, "_dissolve")):  # they take long and are not asked about
        monkeypatch.setattr(owner, name, lambda *given: None)
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(300, 0.05), 5)
    sizes = 0.4 ** np.arange(5)
    X = rng.multinomial(60, rng.dirichlet(1.5 * sizes / sizes.sum(), 300) @ topics)
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    last = max(i for i, lap in enumerate(found.history_) if lap.origin == "splits")
    assert "annealing" in [lap.origin for lap in found.history_[last:]]
    assert found.lower_bound_ > found.history_[last].lower_bound + 1.0 * found.n_topics_


@pytest.mark.parametrize("times", [0, pytest.param(1000, marks=pytest.mark.long)])
def test_documents_of_one_topic_each_come_before_fewer_topics_unless_laps_are_very_fast(monkeypatch, times):
    monkeypatch.setattr(search, "TUNING", replace(search.TUNING, very_fast=times))
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(500, 0.4), 5)
    X = np.stack([rng.multinomial(6, topics[k]) for k in rng.integers(5, size=1500)])
    found = TopicModel(random_state=0, n_jobs=1, max_laps=90).fit(X)
    fewer = [lap.explored_clusters for lap in found.history_].index(30)
    unmixed = [lap.origin for lap in found.history_].index("one topic each")
    assert (unmixed < fewer) == (times > 0)


def noting(calls, whole):
    """A method that adds its name to the calls."""

    def noted(self, *arguments):
        calls.append(whole.__name__)
        return whole(self, *arguments)

    return noted


def note_calls(monkeypatch):
    """The names of `OneTopicSearch.with_births` and `LearningSearch._cross`, as often as they were called."""
    names = []
    for owner, name in ((OneTopicSearch, "with_births"), (LearningSearch, "_cross")):
        monkeypatch.setattr(owner, name, noting(names, getattr(owner, name)))
    return names


@pytest.fixture
def calls(monkeypatch):
    """Those of `note_calls`."""
    return note_calls(monkeypatch)


@pytest.fixture(scope="module")
def one_topic_each():
    """A fit of documents of one topic each, its calls, and with how many clusters mixtures of documents begin at its end."""
    begun = []
    ever_more = UnmixedAscents._ever_more

    def noted(self):
        for start in ever_more(self):
            begun.append(start.K)
            yield start

    with pytest.MonkeyPatch.context() as monkeypatch:
        calls = note_calls(monkeypatch)
        monkeypatch.setattr(UnmixedAscents, "_ever_more", noted)
        found = TopicModel(random_state=0, n_jobs=1).fit(documents_of_one_topic_each())
    return SimpleNamespace(found=found, calls=calls, begun=begun)


def test_no_annealing_follows_where_documents_of_one_topic_each_are_best(one_topic_each):
    origins = [lap.origin for lap in one_topic_each.found.history_]
    assert "one topic each" in origins
    assert "annealing" not in origins[origins.index("one topic each") :]
    assert one_topic_each.found.n_topics_ == 6


def test_mixtures_have_no_births_where_starts_agree(one_topic_each):
    assert not one_topic_each.calls


def test_mixtures_of_documents_end_with_several_times_the_clusters_that_they_have(one_topic_each):
    assert len(one_topic_each.begun) == 2
    assert 24 <= one_topic_each.begun[-1] <= 32


def test_mixtures_have_no_births_where_laps_take_long(calls, monkeypatch):
    monkeypatch.setattr(speed, "TUNING", replace(speed.TUNING, fast=0))
    TopicModel(random_state=0, n_jobs=1).fit(one_topic())
    assert not calls


def test_mixtures_are_not_crossed_where_births_gain_nothing(calls):
    assert TopicModel(random_state=0, n_jobs=1).fit(one_topic()).n_topics_ == 1
    assert calls == ["with_births"]


def test_mixtures_are_crossed_where_births_have_gained(calls):
    rng = np.random.default_rng(0)
    X = rng.multinomial(60, rng.dirichlet(20.0 * rng.dirichlet(np.full(200, 0.5)), 40))
    TopicModel(random_state=0, n_jobs=1).fit(X)
    assert calls[:2] == ["with_births", "_cross"]


def mixing_documents(seed, K, share, sparsity):
    """Documents (200, 300) of 80 words that mix K topics, and the topics."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(300, sparsity), K)
    return rng.multinomial(80, rng.dirichlet(np.full(K, share), 200) @ topics), topics


@pytest.mark.long
def test_some_topics_are_found_although_one_is_better_than_many():
    X, topics = mixing_documents(0, 20, 0.5, 0.05)
    many, one, truth = (
        TopicModel(moves=(), random_state=0, n_jobs=1, **start).fit(X).lower_bound_
        for start in ({"n_init_topics": 64}, {"n_init_topics": 1}, {"init": topics})
    )
    assert many < one
    best = max(one, truth)
    assert fitted_up_to(best, TopicModel(random_state=0, n_jobs=1), X).lower_bound_ > best


@pytest.mark.long
def test_documents_that_mix_many_topics_are_not_kept_to_few_by_a_small_alpha():
    """The refit of a fit from the true topics is no better."""
    X, topics = mixing_documents(3, 15, 0.3, 0.08)
    truth = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    again = TopicModel(init=truth, random_state=0, n_jobs=1).fit(X)
    best = again.lower_bound_ - 1.0 * again.n_topics_
    found = fitted_up_to(best, TopicModel(random_state=0, n_jobs=1), X)
    assert found.lower_bound_ > best
    assert found.document_concentration_ > 7.0


@pytest.mark.long
def test_no_topic_is_missed_of_documents_that_mix_many_evenly():
    """A fit from the true topics, and its refit, are no better."""
    rng = np.random.default_rng([11, 11])
    topics = rng.dirichlet(np.full(100, 0.05), 15)
    X = rng.multinomial(120, rng.dirichlet(np.ones(15), 120) @ topics)
    truth = TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X)
    again = TopicModel(init=truth, random_state=0, n_jobs=1).fit(X)
    best = again.lower_bound_ - 1.0 * again.n_topics_
    assert fitted_up_to(best, TopicModel(random_state=0, n_jobs=1), X).lower_bound_ > best


def mixed_evenly(seed, K, V, D, words, alpha, eta):
    """Documents (D, V) that mix K topics evenly."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, eta), K)
    return rng.multinomial(words, rng.dirichlet(np.full(K, alpha), D) @ topics)


@pytest.mark.long
def test_topics_that_documents_mix_evenly_are_found_although_those_of_one_topic_each_seem_better(monkeypatch):
    """Alpha follows topics that are poor as yet: it is held while words settle."""
    monkeypatch.setattr(Growth, "try_fewer", lambda *given: None)  # chance may find some of them before
    X = mixed_evenly(0, 30, 100, 200, 80, 0.6, 0.08)
    found = TopicModel(random_state=0, n_jobs=1, max_laps=190).fit(X)  # no more than it takes to find them
    assert "mixed evenly" in [lap.origin for lap in found.history_]
    assert found.n_topics_ > 10
    assert found.document_concentration_ > 10.0


@pytest.mark.parametrize(
    ("tokens", "K", "patience"), [(1e4, 3, np.inf), (1e4, 1, np.inf), (5e5, 1, 30.0), (5e5, 3, None), (6e5, 1, None)]
)
def test_documents_mix_evenly_on_trial_where_one_topic_is_best_and_laps_are_fast(tokens, K, patience):
    """Or where laps are very fast; for long only there."""
    tried = []
    found = SimpleNamespace(
        may_grow=lambda: True, learns_alpha=True, outcome=None, unmixed="documents of one topic each"
    )
    found.total = SimpleNamespace(K=K)
    found.speed = Speed(tokens)
    found.try_mixing = lambda attempt: attempt()
    found._is_very_fast = lambda parts: TopicSearch._is_very_fast(found, parts)
    even = SimpleNamespace(run=lambda most, patience: tried.append(patience))
    parts = SimpleNamespace(growth=SimpleNamespace(first=64), even=even)
    TopicSearch._mix_evenly(found, parts)
    assert tried == ([] if patience is None else [patience])


def test_documents_do_not_mix_evenly_on_trial_where_they_mix_several_topics():
    TopicSearch._mix_evenly(SimpleNamespace(total=SimpleNamespace(K=3), unmixed=None), None)  # a trial would need more


@pytest.mark.long
def test_several_topics_are_no_worse_than_one_that_has_learnt_its_words(monkeypatch):
    """What is learnt late is learnt of one topic only at the end: before, several may seem better."""
    for owner, name in ((Restarts, "all"), (Splits, "at_last"), (TopicSearch, "_mix_evenly")):  # they take long
        monkeypatch.setattr(owner, name, lambda *given: None)
    X = mixed_evenly(0, 30, 300, 100, 150, 1.0, 0.03)
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    one = TopicModel(n_init_topics=1, moves=(), random_state=0, n_jobs=1).fit(X)
    assert found.lower_bound_ > one.lower_bound_ - 1.0


def few_documents():
    """Documents (30, 1000) of 300 words that mix six topics, with frequencies by Zipf's law, and the topics."""
    rng = np.random.default_rng(0)
    zipf = 1.0 / np.arange(3, 1003)
    zipf /= zipf.sum()
    topics = np.stack([0.2 * zipf + 0.8 * rng.permutation(zipf) for _ in range(6)])
    return rng.multinomial(300, rng.dirichlet(np.full(6, 0.15), 30) @ topics), topics


def test_few_documents_mix_topics_although_those_of_one_topic_each_were_better_at_first():
    X, topics = few_documents()
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    assert "one topic each" in [lap.origin for lap in found.history_]
    assert found.document_concentration_ > 0.01
    assert found.lower_bound_ > TopicModel(init=topics, moves=(), random_state=0, n_jobs=1).fit(X).lower_bound_
    again = TopicModel(init=found, random_state=0, n_jobs=1).fit(X)
    assert again.lower_bound_ < found.lower_bound_ + 1.0 * found.n_topics_


def uneven_topics():
    """Documents (100, 400) of very unequal lengths that mix eight topics of unequal size, with frequencies by Zipf's law."""
    rng = np.random.default_rng(1)
    zipf = 1.0 / (np.arange(1, 401) + 2.7) ** 1.05
    own = zipf[:100] / zipf[:100].sum()
    topics = np.tile(0.2 * zipf / zipf.sum(), (8, 1))
    for topic in topics:
        topic[rng.permutation(400)[:100]] += 0.8 * own
    lengths = np.exp(rng.normal(np.log(200.0), 1.0, 100)).astype(int)
    sizes = 1.0 / np.sqrt(np.arange(1, 9))
    shares = rng.gamma(3.0 * sizes / sizes.sum(), size=(100, 8))
    return rng.multinomial(lengths, shares / shares.sum(axis=1, keepdims=True) @ topics)


@pytest.mark.long
def test_no_topic_is_missed_that_a_fit_from_the_result_finds():
    X = uneven_topics()
    found = TopicModel(random_state=0, n_jobs=1).fit(X)
    again = TopicModel(init=found, random_state=0, n_jobs=1).fit(X)
    assert found.n_topics_ == again.n_topics_ == 8
    assert again.lower_bound_ < found.lower_bound_ + 1.0 * found.n_topics_


def unequal_topics(seed):
    """Documents (500, 500) of 100 words that mix ten topics, the last of them a hundred times rarer than the first."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(500, 0.05), 10)
    sizes = 0.6 ** np.arange(10)
    return rng.multinomial(100, rng.dirichlet(2.0 * sizes / sizes.sum(), 500) @ topics)


@pytest.mark.long
def test_no_split_is_missed_that_only_restarts_make_better():
    X = unequal_topics(2)
    found = TopicModel(random_state=2, n_jobs=1).fit(X)
    again = TopicModel(init=found, random_state=2, n_jobs=1).fit(X)
    assert again.lower_bound_ < found.lower_bound_ + 1.0 * found.n_topics_


@pytest.mark.parametrize(
    ("documents", "origins"), [(24, {"splits"}), pytest.param(40, {"splits", "dissolved"}, marks=pytest.mark.long)]
)
def test_excursions_that_are_behind_by_less_than_restarts_gained_have_restarts(monkeypatch, documents, origins):
    behind = {}
    restart = Restarts.of

    def restarted(self, laps, options):
        best = self.search.outcome
        if laps.origin in origins and laps is not best:
            behind.setdefault(laps.origin, []).append(best.bound - laps.bound - self.gained)
        restart(self, laps, options)

    monkeypatch.setattr(Restarts, "of", restarted)
    TopicModel(random_state=0, n_jobs=1).fit(uneven_topics()[:documents])
    assert behind.keys() == origins
    assert all(nats < 0.0 for excursions in behind.values() for nats in excursions)


@pytest.mark.parametrize(("ahead", "restarts"), [(-9.0, 1), (-11.0, 0), (1.0, 0)])
def test_restarts_decide_on_an_excursion_that_is_behind_by_less_than_they_gained(ahead, restarts):
    restarted = []
    best = SimpleNamespace(bound=-100.0)
    found = Restarts(SimpleNamespace(outcome=best, keep=lambda trial: trial.bound > best.bound))
    found.gained = 10.0
    found.of = lambda trial, options: restarted.append(trial)
    kept = found.keep(SimpleNamespace(bound=-100.0 + ahead), None)
    assert len(restarted) == restarts
    assert kept == (ahead > 0.0)


def test_the_memory_of_a_search_is_free_once_it_is_over(monkeypatch):
    """Without the garbage collector: a cycle of the search and its parts would keep what is known of documents."""
    searches = []
    run = TopicSearch.run

    def noted(self, start):
        searches.append(weakref.ref(self))
        run(self, start)

    monkeypatch.setattr(TopicSearch, "run", noted)
    gc.disable()
    try:
        TopicModel(random_state=0, n_jobs=1, max_laps=60).fit(corpus(4, 60, 50, 30)[0])
        assert [known() for known in searches] == [None]
    finally:
        gc.enable()
