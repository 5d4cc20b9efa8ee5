"""Topics and clusters that are named in advance: what fits find, keep, say and refuse."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from stickbreak import Mixture, TopicModel, load
from stickbreak.estimators import _document_setup
from stickbreak.inference import Gibbs, Streaming
from stickbreak.storage import checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:not converged")

V = 40
TRUTH = np.repeat(np.eye(4), 10, axis=1) * np.tile(np.linspace(0.15, 0.05, 10), 4)
WORDS = [f"w{v}" for v in range(V)]
SEEDS = {"late": ["w30", "w31"], "early": [0, "w1"]}


def documents(seed=0, n=120):
    rng = np.random.default_rng(seed)
    return rng.multinomial(40, rng.dirichlet(np.full(4, 0.2), n) @ (TRUTH / TRUTH.sum(axis=1, keepdims=True)))


@pytest.fixture(scope="module")
def topics():
    """A fit whose every step is checked: after each, the bound is exact and has not fallen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_document_setup, "Options", partial(_document_setup.Options, check=True))
        given = {"seeds": SEEDS, "vocabulary": np.array(WORDS), "max_laps": 80, "random_state": 0, "n_jobs": 1}
        return TopicModel(**given).fit(documents())


def test_seeded_topics_form_around_their_words_and_the_others_are_found(topics):
    assert topics.n_topics_ == 4
    late, early = (topics.seeded_topics_[name] for name in ("late", "early"))
    nearest = (topics.topics_ @ TRUTH.T).argmax(axis=1)
    assert sorted(nearest) == [0, 1, 2, 3]
    assert (nearest[late], nearest[early]) == (3, 0)


def test_the_bound_is_that_of_topics_with_the_seeds_in_their_priors(topics):
    """The data term of the model in hand, by the normalisers of Dirichlet priors written out."""
    from scipy.special import gammaln

    def log_z(a):
        return gammaln(a).sum() - gammaln(a.sum())

    c = topics.model_.likelihood.family.concentration
    expected = 0.0
    for k in range(4):
        prior = np.array(c)
        if k == topics.seeded_topics_["late"]:
            prior[[30, 31]] += 1.0
        if k == topics.seeded_topics_["early"]:
            prior[[0, 1]] += 1.0
        expected += log_z(prior + topics.summary_.S[k, :V]) - log_z(prior)
        mean = (prior + topics.summary_.S[k, :V]) / (prior + topics.summary_.S[k, :V]).sum()
        np.testing.assert_allclose(topics.topics_[k], mean, rtol=1e-10)
    posterior = topics.model_.posterior(topics.summary_)
    assert posterior.log_marginal.sum() == pytest.approx(expected, rel=1e-10)


def test_names_are_in_tables_and_pictures_and_files(topics, tmp_path):
    frame = topics.summary_frame()
    assert {name: k for k, name in enumerate(frame["name"]) if name} == topics.seeded_topics_
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = topics.plot.words()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    plt.close(figure)
    assert any(title.startswith(f"late {topics.seeded_topics_['late']} ") for title in titles)
    topics.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.seeded_topics_ == topics.seeded_topics_
    assert again.seeds == SEEDS
    assert again.top_words(n=1)[topics.seeded_topics_["late"]][0][0] == "w30"
    np.testing.assert_array_equal(again.transform(documents(1)), topics.transform(documents(1)))


def test_fewer_topics_keep_the_names_and_no_fewer_than_these(topics):
    X = documents()
    two = topics.merge_topics(2, X)
    assert sorted(two.seeded_topics_.values()) == [0, 1]
    assert np.abs(topics.hierarchy_.losses).max() < 1e5
    groups = topics.hierarchy_.cut(2)
    assert groups[topics.seeded_topics_["late"]] != groups[topics.seeded_topics_["early"]]
    with pytest.raises(ValueError, match="n must be at least 2: clusters with names"):
        topics.merge_topics(1, X)


def test_more_documents_and_another_fit_from_the_model_keep_the_names(topics, tmp_path):
    more = load(_saved(topics, tmp_path)).partial_fit(documents(1))
    assert more.seeded_topics_ == topics.seeded_topics_
    assert more.summary_.N.sum() == pytest.approx(topics.summary_.N.sum() + documents(1).sum())
    again = TopicModel(seeds=SEEDS, vocabulary=WORDS, init=topics, moves=(), n_jobs=1, random_state=0, max_laps=20)
    again.fit(documents())
    nearest = (again.topics_ @ TRUTH.T).argmax(axis=1)
    assert [nearest[again.seeded_topics_[name]] for name in ("late", "early")] == [3, 0]
    plain = TopicModel(init=topics, moves=(), n_jobs=1, random_state=0, max_laps=20).fit(documents())
    assert plain.seeded_topics_ == {}
    assert plain.summary_.S.shape == (4, V)


def _saved(model, folder):
    model.save(folder / "model")
    return folder / "model"


def test_seeds_that_no_document_follows_stay_and_nothing_else_appears():
    rng = np.random.default_rng(0)
    X = rng.multinomial(30, np.r_[np.full(20, 0.05), np.zeros(10)], 80)
    seeds = {"one": {0: 1.0}, "none": {20: 30.0, 21: 30.0}, "nor": {29: 5.0}}
    found = TopicModel(seeds=seeds, random_state=0, n_jobs=1).fit(X)
    assert found.n_topics_ <= 4
    assert len(set(found.seeded_topics_.values())) == 3
    assert (found.summary_.N > 1.0).sum() == 1
    assert found.transform(X).shape == (80, found.n_topics_)


@pytest.mark.parametrize("options", [{"allocation": "lda", "n_init_topics": 4}, {"algorithm": "stochastic"}])
def test_other_priors_and_algorithms(options):
    X = sparse.csr_array(documents())
    found = TopicModel(seeds=SEEDS, vocabulary=WORDS, random_state=0, n_jobs=1, **options).fit(X)
    nearest = (found.topics_ @ TRUTH.T).argmax(axis=1)
    assert [nearest[found.seeded_topics_[name]] for name in ("late", "early")] == [3, 0]


@pytest.mark.long
def test_a_fit_with_seeds_is_taken_up_again(tmp_path, monkeypatch, topics):
    monkeypatch.setattr(checkpoint, "SHARE", np.inf)
    given = {"seeds": SEEDS, "vocabulary": np.array(WORDS), "random_state": 0, "n_jobs": 1}
    given |= {"checkpoint": tmp_path / "fit.safetensors", "checkpoint_seconds": 0.0}
    TopicModel(max_laps=30, **given).fit(documents())
    again = TopicModel(max_laps=80, **given).fit(documents())
    assert again.lower_bound_ == topics.lower_bound_
    assert again.seeded_topics_ == topics.seeded_topics_


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ({"a": ["W1"]}, "'W1', which is not among the 40 words of X; near it are 'w1'"),
        ({"a": ["qqq"]}, "'qqq', which is not among the 40 words of X.$"),
        ({"a": []}, "has no words"),
        ({"a": "w1"}, "must be a list of words"),
        ({"a": ["w1", 1]}, "has the word 1 twice"),
        ({"a": [40]}, "names column 40; X has the columns 0 to 39"),
        ({"a": [-1]}, "names column -1"),
        ({"a": [True]}, "must hold words or numbers of columns"),
        ({"a": [1.0]}, "must hold words or numbers of columns"),
        ({"a": {"w1": 0.0}}, "the pseudo-count 0.0 for 'w1'"),
        ({"a": {"w1": float("nan")}}, "the pseudo-count nan"),
        ({"a": {"w1": "many"}}, "the pseudo-count 'many'"),
        ({}, "seeds must map names"),
        ([["w1"]], "seeds must map names"),
        ({" ": ["w1"]}, "names of seeds must be texts"),
        ({1: ["w1"]}, "names of seeds must be texts"),
    ],
)
def test_impossible_seeds_of_words_are_refused(seeds, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TopicModel(seeds=seeds, vocabulary=WORDS).fit(documents(n=5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed_weight": 0.0}, "seed_weight must be a number above 0"),
        ({"vocabulary": None}, "the columns of X have no names: pass vocabulary="),
        ({"vocabulary": WORDS[:3]}, "vocabulary has 3 words, but X has 40 columns"),
        ({"vocabulary": "words"}, "vocabulary must be None or a sequence of words"),
        ({"allocation": "lda", "n_init_topics": 1}, "seeds has 2 names, but there may be no more than 1"),
    ],
)
def test_impossible_settings_of_words_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TopicModel(**{"seeds": SEEDS, "vocabulary": WORDS} | options).fit(documents(n=5))


CENTERS = -20.0, -7.0, 7.0, 20.0
PROTOTYPES = {"left": [[-20.0, -20.0], [-19.0, -21.0]], "right": [20.0, 20.0]}


def table():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (40, 2)) for m in CENTERS])


@pytest.fixture(scope="module")
def clusters():
    return Mixture("gaussian", seeds=PROTOTYPES, random_state=0, n_jobs=1).fit(table())


def test_clusters_form_around_prototypes_and_the_others_are_found(clusters, tmp_path):
    assert clusters.n_clusters_ == 4
    for name, mean in (("left", -20.0), ("right", 20.0)):
        k = clusters.seeded_clusters_[name]
        np.testing.assert_allclose(clusters.means_[k], mean, atol=0.6)
        assert (clusters.labels_ == k).sum() == 40
    assert {name: k for k, name in enumerate(clusters.summary_frame()["name"]) if name} == clusters.seeded_clusters_
    clusters.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.seeded_clusters_ == clusters.seeded_clusters_
    np.testing.assert_array_equal(again.predict_proba(table()), clusters.predict_proba(table()))
    assert sorted(clusters.merge_clusters(2, table()).seeded_clusters_) == ["left", "right"]


@pytest.mark.parametrize("options", [{"algorithm": "stochastic"}, {"likelihood": "auto"}, {"init": "k-means++"}])
def test_other_algorithms_and_families(options):
    seeds = PROTOTYPES | {"far": [[200.0, -200.0]]}
    given = {"likelihood": "gaussian", "seeds": seeds, "random_state": 0, "n_jobs": 1} | options
    found = Mixture(**given).fit(table())
    assert (found.labels_ == found.seeded_clusters_["far"]).sum() == 0
    np.testing.assert_allclose(found.means_[found.seeded_clusters_["left"]], -20.0, atol=0.6)
    np.testing.assert_allclose(found.means_[found.seeded_clusters_["right"]], 20.0, atol=0.6)
    assert found.n_clusters_ == 5


def test_frames_with_categories_and_missing_values():
    X = table()
    frame = pd.DataFrame({"x": X[:, 0], "side": np.where(X[:, 1] > 0, "up", "down")})
    frame.loc[3, "x"] = np.nan
    seeds = {"a": pd.DataFrame({"x": [-20.0], "side": ["down"]}), "b": pd.DataFrame({"x": [np.nan], "side": ["up"]})}
    found = Mixture(seeds=seeds, random_state=0, n_jobs=1).fit(frame)
    labels = found.predict(pd.DataFrame({"x": [-20.0], "side": ["down"]}))
    assert labels[0] == found.seeded_clusters_["a"]
    assert set(found.seeded_clusters_) == {"a", "b"}


def test_prototypes_of_rows_of_one_cluster_make_no_more_clusters():
    X = np.random.default_rng(0).normal(size=(100, 2))
    found = Mixture("gaussian", seeds={"a": [[0.0, 0.0]], "b": [[0.2, 0.0]]}, random_state=0, n_jobs=1).fit(X)
    assert found.n_clusters_ == 2
    assert found.summary_.N.min() < 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": {"a": [[1.0, 2.0, 3.0]]}}, "'a'. must hold rows like those of X: X has 3 features"),
        ({"seeds": {"a": [["x", "y"]]}}, "must hold rows like those of X"),
        ({"seeds": {"a": [[np.nan, 1.0]]}}, "has missing values in column 0, where X has none"),
        ({"seeds": {"a": []}}, "has no rows"),
        ({"seeds": {"a": 5.0}}, "must hold rows like those of X"),
        ({"algorithm": Streaming()}, "seeds need the usual moves and algorithm='memoized'"),
        ({"algorithm": "sequential"}, "seeds need the usual moves"),
        ({"algorithm": Gibbs()}, "seeds need the usual moves"),
        ({"likelihood": "student_t"}, "seeds need a conjugate family"),
        ({"allocation": "finite", "n_init_clusters": 1}, "seeds has 2 names, but there may be no more than 1"),
        ({"seed_weight": -1.0}, "seed_weight must be a number above 0"),
        (
            {"seed_weight": 1e6},
            "the rows of seeds count as 3e.06 rows, and may count as no more than those of X, or 1e.04",
        ),
    ],
)
def test_impossible_seeds_of_rows_are_refused(options, message):
    given = {"likelihood": "gaussian", "seeds": PROTOTYPES} | options
    with pytest.raises((ValueError, TypeError), match=message):
        Mixture(**given).fit(table())


def test_labels_and_seeds_are_not_for_the_same_fit():
    with pytest.raises(ValueError, match="seeds cannot be used together with y"):
        Mixture("gaussian", seeds=PROTOTYPES).fit(table(), np.arange(160) % 2)


def test_groups_of_rows_take_prototypes():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(m, 1.0, (5, 2)) for m in np.tile(CENTERS, 6)])
    moves = "merge", "delete"
    found = TopicModel(
        "gaussian", seeds=PROTOTYPES, moves=moves, random_state=0, n_jobs=1, n_init_topics=6, max_laps=60
    )
    found.fit(X, lengths=[20] * 6)
    np.testing.assert_allclose(found.means_[found.seeded_topics_["left"]], -20.0, atol=1.0)
    np.testing.assert_allclose(found.means_[found.seeded_topics_["right"]], 20.0, atol=1.0)
