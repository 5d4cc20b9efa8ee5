"""Arguments of wrong kinds at the methods of fitted models: a message that names the argument and what it must be."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import stickbreak
from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.data.corpus import open_corpus, write_corpus
from stickbreak.data.files import read_table
from stickbreak.inference import memory

pytestmark = pytest.mark.filterwarnings("ignore:not converged")
X = np.random.default_rng(0).normal(size=(20, 2))
COUNTS = np.arange(12).reshape(4, 3) % 5


@pytest.fixture(scope="module")
def models():
    few = {"max_laps": 1, "n_jobs": 1, "random_state": 0}
    return {
        "mixture": Mixture("gaussian", **few).fit(X),
        "hmm": HMM(**few).fit(X),
        "topics": TopicModel(**few, n_init_topics=2).fit(COUNTS),
    }


@pytest.mark.parametrize("path", [None, 3, b"x", ["a"], "", "a\0b", np.array("x"), 10**400], ids=type)
def test_what_is_no_path_is_refused(path, models):
    for use in (models["mixture"].save, stickbreak.load, read_table):
        with pytest.raises((TypeError, ValueError), match=r"^path must "):
            use(path)
    for use in (open_corpus, lambda folder: write_corpus(folder, sparse.csr_array(COUNTS))):
        with pytest.raises((TypeError, ValueError), match=r"^folder must "):
            use(path)


@pytest.mark.parametrize("given", [None, 1.5, "a", 0, True, X, np.array(["a"]), object()], ids=type)
def test_what_is_no_count_is_refused(given, models):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1; got"):
        models["topics"].top_words(n=given)
    with pytest.raises(ValueError, match="n must be a whole number of at least 2; got"):
        models["topics"].coherence(COUNTS, n=given)
    for name in ("mixture", "hmm"):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1, below"):
            models[name].sample(given)
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1, below"):
            models[name].sample(10**400)


@pytest.mark.parametrize("given", [-0.1, 1.5, "a", True, X, math.nan, 10**400], ids=type)
def test_a_relevance_is_a_share(given, models):
    with pytest.raises(ValueError, match="relevance must be a number from 0 to 1; got"):
        models["topics"].top_words(relevance=given)
    with pytest.raises(ValueError, match="relevance must be a number from 0 to 1; got"):
        models["topics"].coherence(COUNTS, relevance=given)


@pytest.mark.parametrize("given", ["abc", {"a": 1}, {"a", "b", "c"}, object(), 3, X, ["a"]], ids=type)
def test_a_vocabulary_is_a_list_of_words(given, models):
    with pytest.raises((TypeError, ValueError), match="vocabulary must "):
        models["topics"].top_words(given)


@pytest.mark.parametrize("given", ["best", None, X, ["map"], 3], ids=type)
def test_a_method_of_decoding_has_a_name(given, models):
    with pytest.raises(ValueError, match="method must be 'viterbi' or 'map'; got"):
        models["hmm"].decode(X, method=given)


@pytest.mark.parametrize("given", [X, "yes", None, 1.5], ids=type)
@pytest.mark.parametrize("kind", [Mixture, HMM, TopicModel])
def test_verbose_is_true_or_false(given, kind):
    with pytest.raises(ValueError, match="verbose must be True or False; got") as error:
        kind(verbose=given).fit(COUNTS)
    assert len(str(error.value)) < 200
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("name", ["max_laps", "n_batches", "n_jobs", "verbose"])
@pytest.mark.parametrize("kind", [Mixture, HMM, TopicModel])
def test_whole_numbers_are_such_as_a_model_file_can_hold(kind, name, tmp_path):
    with pytest.raises(ValueError, match=rf"{name} must be .*; got an int of 1329 bits"):
        kind(**{name: 10**400}).fit(COUNTS)
    given = {"max_laps": 2, "n_jobs": 1, "moves": (), name: 10**18 * (name != "verbose")}
    kind(**given).fit(COUNTS).save(tmp_path / "model")
    assert getattr(load(tmp_path / "model"), name) == 10**18 * (name != "verbose")


@pytest.mark.parametrize(
    "counts",
    [
        [[1, 2, 3], [4]],
        "x",
        None,
        pd.DataFrame(np.ones((2, 3)), columns=["a", "a", "b"]),
        pd.DataFrame({"a": pd.to_datetime(["2026"] * 2), "b": 1.0, "c": 1.0}),
        pd.DataFrame({"a": ["x", "y"], "b": 1.0, "c": 1.0}),
    ],
    ids=["ragged", "text", "nothing", "one name twice", "dates", "words"],
)
def test_counts_are_numbers(counts, models):
    with pytest.raises((TypeError, ValueError), match=r"counts|X has two columns|column 'a'"):
        models["topics"].coherence(counts)


def test_counts_may_be_a_frame(models):
    want = models["topics"].coherence(COUNTS)
    assert (models["topics"].coherence(pd.DataFrame(COUNTS)) == want).all()


@pytest.mark.parametrize("wrong", [[np.ones((3, 2)), np.ones((3, 1))], [np.ones((3, 2)), np.ones((3, 2, 1))]])
def test_items_of_unlike_shapes_are_named(wrong):
    with pytest.raises(ValueError, match=r"item 0 has the shape \(3, 2\), item 1 has"):
        Mixture("gaussian").fit(wrong)


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pa.Table.from_arrays([*X.T], names=columns)])
def test_names_that_occur_twice_are_refused(frame, models):
    table = frame(X, columns=["a", "a"])
    for use in (Mixture("gaussian").fit, HMM().fit, models["mixture"].predict):
        with pytest.raises(ValueError, match="two columns of the same name"):
            use(table)


@pytest.mark.parametrize("V", [2**31 - 1, 10**12, 10**18])
@pytest.mark.parametrize("make", [lambda: TopicModel(), lambda: Mixture("poisson")])
def test_more_columns_than_memory_has_room_for(make, V, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1e10)
    C = sparse.csr_array((np.ones(3), np.array([0, 5, 2]), np.array([0, 2, 3])), shape=(2, V))
    with pytest.raises(MemoryError, match=r"X has [\d,]+ columns, which need about .* are available; leave out"):
        make().fit(C)


def test_a_perplexity_beyond_floats_is_infinite():
    rows = np.random.default_rng(1).normal(size=(20, 2))
    model = TopicModel("diagonal_gaussian", n_init_topics=2, max_laps=2, random_state=0).fit(rows, lengths=[10, 10])
    far = [[1e20, -1e20]]
    assert -math.inf < model.score(far, lengths=[1]) < -1000.0
    assert model.perplexity(far, lengths=[1]) == math.inf


@pytest.mark.filterwarnings("ignore:X holds")
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200])
def test_counts_too_small_to_tell_from_none(size):
    with pytest.raises(ValueError, match="words in all, too few to tell from none; multiply"):
        TopicModel().fit(COUNTS * size)
