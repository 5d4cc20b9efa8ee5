"""The topic model estimator: what it finds, what it refuses, and that its scores are what they say."""

import os
import signal
import threading
import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import stickbreak
from stickbreak import TopicModel
from stickbreak.allocations import DirichletProcess, LatentDirichlet
from stickbreak.data.corpus import open_corpus, write_corpus
from stickbreak.data.frames import Encoded
from stickbreak.inference import laps

BRIEF = 10  # laps


def corpus(seed=0, D=200, K=3, V=15, tokens=50):
    """Counts of documents that mix K topics of words of their own."""
    rng = np.random.default_rng(seed)
    topics = np.repeat(np.eye(K), V // K, axis=1) * K / V
    return rng.multinomial(tokens, rng.dirichlet(np.full(K, 0.3), D) @ topics), topics


def fit(X, **parameters):
    lengths = parameters.pop("lengths", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return TopicModel(**{"random_state": 0, "n_jobs": 1, "n_init_topics": 6, **parameters}).fit(X, lengths=lengths)


@pytest.fixture(scope="module")
def counts():
    return corpus()[0]


@pytest.fixture(scope="module")
def model(counts):
    """A fit of as many laps again as the last topic needs."""
    return fit(counts, max_laps=50)


@pytest.fixture(scope="module")
def brief(counts):
    """A fit of few laps: how counts are read shows in the first."""
    return fit(counts, max_laps=BRIEF)


@parametrize_with_checks([TopicModel(n_init_topics=3, max_laps=3, n_jobs=1)])
def test_scikit_learn_conventions(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "X holds numbers that are not whole", UserWarning)
        check(estimator)


@pytest.mark.parametrize(
    ("allocation", "n_init_topics"), [("hdp", 1), ("hdp", 6), ("hdp", 30), ("lda", 6), ("lda", 30)]
)
def test_topics_are_found_from_any_number(n_init_topics, allocation):
    X, topics = corpus(1, D=120)
    found = fit(X, n_init_topics=n_init_topics, allocation=allocation, max_laps=100)
    assert found.n_topics_ == 3
    distance = 0.5 * np.abs(found.topics_[:, None] - topics).sum(axis=2)
    assert distance.min(axis=0).max() < 0.05
    assert found.topic_shares_.sum() == pytest.approx(1.0)
    assert 0.2 < found.document_concentration_ < 3.0


@pytest.mark.parametrize(("seed", "n_init_topics"), [(0, 50), pytest.param(1, 1, marks=pytest.mark.long)])
def test_the_toy_bars(seed, n_init_topics):
    """Thesis 5.6.1, at a quarter of its size and a fifth of its documents: exactly the ten bars."""
    rng = np.random.default_rng(seed)
    image = np.zeros((10, 10, 10))
    for i in range(5):
        image[2 * i, 2 * i : 2 * i + 2, :] = 1.0
        image[2 * i + 1, :, 2 * i : 2 * i + 2] = 1.0
    topics = image.reshape(10, 100) / 20.0
    X = rng.multinomial(200, rng.dirichlet(np.full(10, 0.1), 200) @ topics)
    found = fit(X, n_init_topics=n_init_topics, random_state=seed, max_laps=170)
    assert found.n_topics_ == 10
    assert 0.5 * np.abs(found.topics_[:, None] - topics).sum(axis=2).min(axis=0).max() < 0.2


def test_the_result_does_not_depend_on_threads_or_how_counts_are_stored(counts, model, brief):
    X = sparse.coo_matrix(counts)
    doubled = sparse.coo_matrix(
        (np.concatenate([X.data, X.data]) / 2.0, (np.tile(X.row, 2), np.tile(X.col, 2))), X.shape
    )
    stored = ((sparse.csc_array(counts), brief), (X.astype(np.int64), brief), (doubled, brief))
    for other, same in ((counts.astype(np.uint8), model), *stored):
        again = fit(other, n_jobs=2, max_laps=same.max_laps)
        np.testing.assert_array_equal(again.topics_, same.topics_)
        assert again.lower_bounds_ == same.lower_bounds_


@pytest.mark.parametrize(
    ("algorithm", "init"),
    [
        ("full", "random"),
        ("memoized", "anchor"),
        ("memoized", "k-means++"),
        ("stochastic", "random"),
        ("stochastic", "anchor"),
    ],
)
def test_every_algorithm_and_start(algorithm, init):
    X, topics = corpus(2, D=100)
    found = fit(X, algorithm=algorithm, init=init, n_batches=4, n_init_topics=3, max_laps=80)
    assert found.n_topics_ == 3
    assert 0.5 * np.abs(found.topics_[:, None] - topics).sum(axis=2).min(axis=0).max() < 0.1
    assert np.isfinite(found.lower_bounds_).all()


def test_a_start_that_is_given(counts, model):
    for init in (model, model.topics_):
        again = fit(counts, init=init, moves=())
        assert again.n_topics_ == model.n_topics_
        assert again.lower_bound_ >= model.lower_bound_ - 1e-3 * abs(model.lower_bound_)
    with pytest.raises(ValueError, match="init must be topics"):
        fit(counts, init=np.ones((2, 3)))


def test_fractions_of_counts(counts):
    """No sampling then: births, merges and excursions find the topics."""
    with pytest.warns(UserWarning, match="X holds numbers that are not whole"):
        found = fit(counts * 1.01, init="k-means++", n_init_topics=2)
    assert found.n_topics_ in (3, 4)
    assert np.all(np.diff(found.lower_bounds_) >= -1e-9 * np.abs(found.lower_bounds_[1:]))


@pytest.mark.parametrize(
    ("weigh", "message"),
    [
        (TfidfTransformer().fit_transform, "rows that have length 1, as TfidfVectorizer makes them"),
        (TfidfTransformer(norm="l1").fit_transform, "rows that sum to 1, as TfidfVectorizer makes them"),
        (TfidfTransformer(norm=None).fit_transform, "numbers that are not whole"),
        (lambda X: X / 3.0, "numbers that are not whole"),
        (lambda X: sparse.coo_matrix(X / 3.0, dtype=np.float32), "numbers that are not whole"),
    ],
)
def test_numbers_that_are_no_counts_are_named(counts, model, weigh, message):
    X = weigh(counts)
    doors = (model.transform, model.score, model.perplexity, lambda X: model.completion_score(X, counts))
    for door in (lambda X: fit(X, max_laps=2, init="k-means++", moves=()), *doors):
        with pytest.warns(UserWarning, match=rf"X holds {message}.*CountVectorizer\(\)\.fit_transform\(texts\)"):
            door(X)


def test_whole_numbers_of_any_type_are_counts(counts, model):
    for X in (counts.astype(np.float32), counts.astype(np.uint8), sparse.csc_array(counts.astype(np.int8)), counts > 0):
        assert np.isfinite(model.transform(X)).all()


TEXTS = ["to be or", "not to be"]


def all_texts():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    return {
        "list": TEXTS,
        "tuple": tuple(TEXTS),
        "tokens": [text.split() for text in TEXTS],
        "array": np.array(TEXTS),
        "objects": np.array(TEXTS, dtype=object),
        "column": np.array(TEXTS, dtype=object)[:, None],
        "series": pandas.Series(TEXTS),
        "frame": pandas.DataFrame({"X": TEXTS}),
        "categories": pandas.DataFrame({"X": pandas.Categorical(TEXTS)}),
        "one of two columns": pandas.DataFrame({"n": [1, 2], "X": TEXTS}),
        "polars series": polars.Series(TEXTS),
        "polars frame": polars.DataFrame({"X": TEXTS}),
        "a table read from a file": Encoded(np.array([[0.0], [1.0]]), ["X"], {0: TEXTS}),
    }


@pytest.mark.parametrize("kind", all_texts())
def test_texts_are_told_how_to_become_counts(model, kind):
    for door in (TopicModel().fit, TopicModel().fit_transform, TopicModel().partial_fit, model.transform, model.score):
        with pytest.raises(
            ValueError, match=r"'X' holds text, .* pass counts, e\.g\. CountVectorizer\(\)\.fit_transform\(texts\)"
        ):
            door(all_texts()[kind])


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        *((value, np.float32) for value in (1.1e12, 1e30, 1e38)),
        *((value, np.float64) for value in (1.1e12, 1e38, 1e100)),
    ],
)
def test_counts_beyond_the_limit_are_refused(counts, model, value, dtype):
    X = counts.astype(dtype)
    X[7, 3] = value
    for door in (TopicModel().fit, model.transform, model.score, model.partial_fit):
        with pytest.raises(ValueError, match=r"row 7, column .* counts up to 1e\+12; divide counts by a constant"):
            door(X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_documents_beyond_the_limit_are_refused(counts, model, dtype):
    X = counts.astype(dtype)
    X[7, 3:5] = 0.9e12
    for door in (TopicModel().fit, model.transform, model.score, model.partial_fit):
        with pytest.raises(ValueError, match=r"words in row 7; a document may have at most 1e\+12\. Divide the counts"):
            door(X)


@pytest.mark.parametrize("init", ["random", "k-means++", "anchor"])
def test_counts_up_to_the_limit_are_read(counts, init, turn):
    X = counts.astype((np.float64, np.float32)[turn % 2])
    X[7] = 0.0
    X[7, 3] = X[11, 0] = 0.9e12
    found = fit(X, init=init, max_laps=10)
    assert np.isfinite(found.lower_bounds_).all()
    assert np.isfinite(found.score(X))
    np.testing.assert_allclose(found.transform(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("likelihood", ["zero_mean_gaussian", "diagonal_gaussian"])
def test_groups_of_dense_rows(likelihood):
    """As image patches of images (Thesis 5.6.3)."""
    rng = np.random.default_rng(0)
    centers, lengths = 20.0 * np.eye(3), rng.integers(1, 40, 60)
    labels = np.concatenate([rng.choice(3, n, p=rng.dirichlet(np.full(3, 0.4))) for n in lengths])
    X = centers[labels] * rng.choice([-1.0, 1.0], (len(labels), 1)) + rng.normal(size=(len(labels), 3))
    if likelihood == "diagonal_gaussian":
        X = np.abs(X)
    found = fit(X, likelihood=likelihood, lengths=lengths, init="k-means++", n_init_topics=1)
    assert found.n_topics_ == 3
    proportions = found.transform(X, lengths=lengths)
    truth = np.array([np.bincount(part, minlength=3) for part in np.split(labels, np.cumsum(lengths)[:-1])])
    order = [int(np.argmax([np.corrcoef(proportions[:, k], truth[:, j])[0, 1] for k in range(3)])) for j in range(3)]
    assert sorted(order) == [0, 1, 2]
    a = found.document_concentration_ * found.topic_shares_[order]
    want = (truth + a) / (lengths + a.sum())[:, None]  # no row is in doubt
    np.testing.assert_allclose(proportions[:, order], want, atol=0.02)
    assert np.isfinite(found.score(X, lengths=lengths))
    with pytest.raises(ValueError, match="lengths must be whole numbers"):
        found.transform(X, lengths=lengths[:-1])
    with pytest.raises(TypeError, match="have no words"):
        found.top_words()


def test_a_likelihood_of_rows_needs_lengths(counts):
    with pytest.raises(ValueError, match="lengths="):
        fit(counts, likelihood="gaussian")
    with pytest.raises(TypeError, match="must be dense"):
        fit(sparse.csr_array(counts), lengths=[len(counts)])


def test_awkward_documents(counts, model):
    """A word never seen, a document of one word, an empty one, and 100,000 tokens of one word."""
    X = np.vstack([counts, np.zeros((3, 15), int)])
    X = np.column_stack([X, np.zeros(len(X), int)])
    X[-2, 0], X[-1, 14] = 1, 100_000
    found = fit(X, max_laps=130)
    assert found.n_topics_ in (3, 4)
    proportions = found.transform(X)
    assert np.isfinite(proportions).all()
    np.testing.assert_allclose(proportions.sum(axis=1), 1.0)
    np.testing.assert_allclose(proportions[-3], found.topic_shares_, rtol=1e-6)
    assert proportions[-1].max() > 0.99
    unseen = np.zeros((1, 16), int)
    unseen[0, 15] = 5
    assert np.isfinite(found.score(unseen))
    with pytest.raises(ValueError, match="all documents are empty"):
        fit(np.zeros((4, 3)))
    for wrong in (-1.0, np.nan, np.inf):
        bad = counts.astype(float)
        bad[3, 2] = wrong
        with pytest.raises(ValueError, match=r"row 3, column 2"):
            fit(bad)
    one = fit(np.full((5, 1), 3))
    assert one.n_topics_ == 1


def test_the_score_is_below_the_log_probability_by_enumeration(model):
    """Of documents of five tokens under the topics and the prior: all assignments, topics not in use included."""
    rng = np.random.default_rng(0)
    prior = model.model_.posterior(model.summary_).step.prior
    a = prior[: model.n_topics_]
    for _ in range(5):
        words = rng.integers(15, size=5)
        z = np.array(list(product(range(model.n_topics_), repeat=5)))
        n = np.stack([(z == k).sum(axis=1) for k in range(model.n_topics_)], axis=1)
        rest = prior[-1]
        total = a.sum() + rest
        terms = (gammaln(a + n) - gammaln(a)).sum(axis=1) + gammaln(total) - gammaln(total + 5)
        exact = logsumexp(terms + np.log(model.topics_[z, words]).sum(axis=1))
        X = np.bincount(words, minlength=15)[None]
        found = 5.0 * model.score(X)
        assert exact - 6.0 < found <= exact + 1e-6
        assert model.perplexity(X) == pytest.approx(np.exp(-found / 5.0))


def test_completion_is_the_mean_log_predictive(model):
    A, B = corpus(7)[0], corpus(7)[0][:, ::-1]
    want = (B * np.log(model.transform(A) @ model.topics_)).sum() / B.sum()
    assert model.completion_score(A, B) == pytest.approx(want, rel=1e-9)
    assert model.completion_score(A, A) > model.completion_score(A, B)
    with pytest.raises(ValueError, match="halves of the same documents"):
        model.completion_score(A, B[:-1])


def test_partial_fit_adds_what_documents_say(counts):
    """The bound stays a bound of everything seen: as good as a visit from the same topics, to the last document."""
    found = TopicModel(random_state=0, n_init_topics=6).partial_fit(counts[:150])
    topics = found.topics_
    found.partial_fit(counts[150:])
    assert found.summary_.D == 200.0
    assert found.summary_.N.sum() == pytest.approx(counts.sum())
    assert found.n_topics_ == 3
    assert np.abs(found.topics_ - topics).max() < 0.05
    whole = fit(counts, init=found, moves=(), document_concentration=found.document_concentration_)
    assert whole.lower_bound_ - 0.01 * abs(whole.lower_bound_) < found.lower_bound_ <= whole.lower_bound_ + 1.0
    with pytest.raises(ValueError, match="features"):
        found.partial_fit(counts[:, :-1])


def test_the_summary_names_topics_and_words(model, capsys):
    model.summary(2, [f"word{v}" for v in range(model.n_features_in_)])
    shown = capsys.readouterr().out
    assert f"{model.n_topics_} topics" in shown
    assert model.top_words([f"word{v}" for v in range(model.n_features_in_)])[0][0][0] in shown
    assert "smaller topics" in shown


def test_reports(counts, model):
    vocabulary = [f"word{v}" for v in range(15)]
    top = model.top_words(vocabulary, n=5)
    assert len(top) == 3
    for k, words in enumerate(top):
        group = {int(word.removeprefix("word")) // 5 for word, _ in words}
        assert len(group) == 1
        probabilities = [p for _, p in model.top_words(vocabulary, n=5, relevance=1)[k]]
        np.testing.assert_array_equal(probabilities, np.sort(model.topics_[k])[::-1][:5])
    assert model.coherence(counts, n=5).shape == (3,)
    shown = model.to_pyldavis(counts, vocabulary)
    assert shown["topic_term_dists"].shape == (3, 15)
    assert shown["vocab"] == vocabulary


def test_a_word_of_all_topics_names_none_of_them():
    rng = np.random.default_rng(0)
    topics = np.hstack([np.full((3, 1), 0.2), 0.8 * np.repeat(np.eye(3), 5, axis=1) / 5])
    X = np.array([rng.multinomial(60, p) for p in rng.dirichlet([0.2] * 3, 150) @ topics])
    model = TopicModel(random_state=0).fit(X)
    assert model.n_topics_ == 3
    assert all(words[0][0] == "x0" for words in model.top_words(relevance=1.0))
    assert not any(words[0][0] == "x0" for words in model.top_words())
    by_relevance, by_probability = model.coherence(X, 3), model.coherence(X, 3, relevance=1.0)
    assert (by_relevance > by_probability).all()


def test_a_pipeline_after_a_vectorizer():
    texts = ["cats dogs cats pets", "stocks bonds stocks", "dogs pets dogs", "bonds market stocks"] * 20
    pipeline = make_pipeline(CountVectorizer(), TopicModel(random_state=0, n_init_topics=4)).fit(texts)
    proportions = pipeline.transform(texts)
    assert proportions.shape == (80, pipeline[-1].n_topics_)
    assert pipeline[-1].get_feature_names_out()[0] == "topicmodel0"


def test_a_file_keeps_everything(tmp_path, counts, model):
    model.save(tmp_path / "topics.safetensors")
    again = stickbreak.load(tmp_path / "topics.safetensors")
    assert isinstance(again, TopicModel)
    np.testing.assert_array_equal(again.transform(counts), model.transform(counts))
    assert again.lower_bound_ == model.lower_bound_
    assert again.score(counts) == model.score(counts)
    again.partial_fit(counts)


def test_a_corpus_on_disk(tmp_path, counts, model):
    write_corpus(tmp_path / "corpus", sparse.csr_array(counts))
    X = open_corpus(tmp_path / "corpus")
    found = fit(X, max_laps=50)
    assert found.n_topics_ == model.n_topics_
    np.testing.assert_allclose(found.topics_, model.topics_, atol=1e-3)


def test_an_interrupted_fit_keeps_the_best_model_or_leaves_the_estimator_alone(counts):
    estimator = TopicModel(random_state=0, n_init_topics=6, max_laps=10_000, tol=0.0)
    before = dict(estimator.__dict__)
    timer = threading.Timer(0.0, lambda: os.kill(os.getpid(), signal.SIGINT))

    class Interrupted(TopicModel):
        def _progress(self, source):
            from contextlib import nullcontext

            return nullcontext(lambda lap: timer.start() if lap.number == 3 else None)

    kept = Interrupted(**estimator.get_params())
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        kept.fit(counts)
    assert kept.lower_bound_ == kept.model_.bound(kept.summary_)
    with pytest.raises(ValueError, match="row 0, column 0"):
        estimator.fit(-counts - 1)
    assert estimator.__dict__ == before


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("document_concentration", -1.0, "a positive number or 'learn'"),
        ("document_concentration", "auto", "a positive number or 'learn'"),
        ("n_init_topics", 0, "a whole number of at least 1"),
        ("allocation", "dp", "one of 'hdp', 'lda'"),
        ("init", "one", "one of 'anchor', 'k-means\\+\\+', 'random'"),
        ("tol", -1.0, "a number of at least 0"),
        ("likelihood", "words", "one of 'auto'"),
    ],
)
def test_parameters_out_of_range(counts, name, value, message):
    with pytest.raises(ValueError, match=message):
        fit(counts, **{name: value})


def test_concentrations_that_are_learnt(counts, model):
    found = fit(counts, concentration="learn", init=model, moves=())
    same = fit(counts, init=model, moves=())
    assert found.model_.allocation.concentration != 1.0
    assert same.model_.allocation.concentration == 1.0
    assert found.lower_bound_ > same.lower_bound_
    with pytest.raises(ValueError, match="concentration must be a positive number or 'learn'"):
        fit(counts, concentration="auto")


def test_fixed_concentrations_and_objects(counts):
    found = fit(counts, document_concentration=2.0)
    assert found.document_concentration_ == 2.0
    symmetric = fit(counts, allocation=LatentDirichlet(3, 1.0, symmetric=True), n_init_topics=3)
    np.testing.assert_allclose(symmetric.topic_shares_, 1.0 / 3.0)


def test_groups_and_bags_are_not_confused(counts, brief):
    bits = counts > 0
    grouped = fit(bits, likelihood="bernoulli", lengths=np.array([100, 60, 40], np.uint8), allocation="lda", max_laps=5)
    model = clone(grouped)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        shared = model.fit_transform(bits, lengths=[100, 60, 40])
    np.testing.assert_array_equal(shared, grouped.transform(bits, lengths=[100, 60, 40]))
    for call in (grouped.transform, grouped.score, grouped.partial_fit):
        with pytest.raises(ValueError, match="rows in groups: pass lengths="):
            call(bits)
    with pytest.raises(ValueError, match="counts of words: pass no lengths"):
        brief.transform(counts, lengths=[200])
    for wrong in ([2**62] * 4 + [200], [100, 101], [-1, 201], [[200]], [100.0, 100.0]):
        with pytest.raises(ValueError, match="lengths must be whole numbers"):
            fit(bits, likelihood="bernoulli", lengths=wrong)
    levels = fit(counts % 3, likelihood="categorical", lengths=[150, 50], allocation="lda", max_laps=5)
    assert np.isfinite(levels.transform(counts % 3, lengths=[150, 50])).all()
    with pytest.raises(ValueError, match="init is a model of other data"):
        fit(bits, likelihood="bernoulli", lengths=[100, 100], init=brief)


def test_counts_in_a_memory_map(tmp_path, counts, brief):
    for kind in ("<i8", "u1", ">f8", "f2"):
        np.save(tmp_path / "counts.npy", counts.astype(kind))
        found = fit(np.load(tmp_path / "counts.npy", mmap_mode="r"), max_laps=BRIEF)
        np.testing.assert_array_equal(found.topics_, brief.topics_)


def test_nothing_to_score(counts, model):
    for call in (lambda: model.score(0 * counts), lambda: model.completion_score(counts, 0 * counts)):
        with pytest.raises(ValueError, match="holds no tokens to score"):
            call()


def test_one_giant_document_among_empty_ones(counts):
    X = np.vstack([np.zeros((300, 15), int), counts[:1]])
    X[-1, 0] = 10**9
    found = fit(sparse.csr_array(X))
    assert np.isfinite(found.transform(X)).all()
    assert found.score(X) < 0.0


@pytest.mark.parametrize("alpha", [1e-9, 1e4, 1e6])
def test_a_huge_document_concentration(counts, alpha):
    found = fit(counts[:60], document_concentration=alpha, max_laps=60)
    assert np.isfinite(found.transform(counts)).all()
    assert np.all(np.diff(found.lower_bounds_) >= -1e-9 * np.abs(found.lower_bounds_[1:]))
    with pytest.raises(ValueError, match="from 1e-12 to 1e"):
        fit(counts, document_concentration=1e12)


def test_a_symmetric_prior_over_topics_that_are_all_in_use(counts):
    """Its bound after merges is that of one more lap, or lower."""
    prior = LatentDirichlet(4, 2.0, symmetric=True)
    for most in range(6, 20, 3):
        found = fit(counts, allocation=prior, document_concentration=2.0, max_laps=most)
        again = fit(counts, allocation=prior, document_concentration=2.0, init=found, moves=(), max_laps=30)
        assert found.lower_bound_ <= again.lower_bound_ + 1e-3 * abs(again.lower_bound_)
        assert np.all(np.diff(found.lower_bounds_) >= -1e-9 * np.abs(found.lower_bounds_[1:]))


def test_ctrl_c_before_an_excursion_has_done_a_lap(counts, monkeypatch):
    first = laps.first_lap

    def interrupted(problem, *given):
        if problem.floor is not None:
            raise KeyboardInterrupt
        return first(problem, *given)

    monkeypatch.setattr(laps, "first_lap", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after"):
        found = TopicModel(random_state=0, n_init_topics=6).fit(counts)
    assert found.lower_bound_ == found.model_.bound(found.summary_)


@pytest.mark.parametrize(
    ("init", "message"), [(np.ones((0, 15)), "init must be topics"), (object(), "init must be a name")]
)
def test_starts_that_are_none(counts, init, message):
    with pytest.raises(ValueError, match=message):
        fit(counts, init=init)
    with pytest.raises(ValueError, match="an allocation of documents"):
        fit(counts, allocation=DirichletProcess())
