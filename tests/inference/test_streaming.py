"""Streams whose clusters are born, merge and die: K follows, sums are those of the rows, and memory is bounded."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from stickbreak import Mixture, load
from stickbreak.data import ArraySource
from stickbreak.inference import Streaming
from stickbreak.inference.remembered import Remembered
from stickbreak.moves import AdoptedBirth

CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
SPREADS = np.array([0.6, 1.0, 1.4, 0.8])
MOVES = ("birth", "merge", "delete")
pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def rows(rng, n, among=range(4)):
    """Rows of some clusters, and the cluster of each."""
    z = rng.choice(list(among), size=n)
    return CENTRES[z] + SPREADS[z, None] * rng.normal(size=(n, 2)), z


def streaming(**settings):
    algorithm = Streaming(**{"memory_rows": 600, **settings})
    return Mixture("gaussian", algorithm=algorithm, random_state=0, n_jobs=1)


@pytest.fixture(scope="module")
def batches():
    """Batches whose clusters appear one after another."""
    rng = np.random.default_rng(0)
    return [rows(rng, 400, range(min(4, 1 + t // 2)))[0] for t in range(14)]


@pytest.fixture(scope="module")
def streamed(batches):
    model = streaming()
    found = []
    for X in batches:
        found.append(model.partial_fit(X).n_clusters_)
    return model, found


def test_clusters_that_appear_one_after_another_are_found(streamed, batches):
    model, found = streamed
    assert found[1] == 1
    assert found[-4:] == [4] * 4
    T, z = rows(np.random.default_rng(1), 2000)
    assert adjusted_rand_score(z, model.predict(T)) > 0.99
    whole = Mixture("gaussian", random_state=0, n_jobs=1).fit(np.concatenate(batches))
    assert model.score(T) > whole.score(T) - 0.01 * abs(whole.score(T))
    assert model.summary_.N.sum() == pytest.approx(14 * 400)
    assert model._stream.memory.size <= 600
    assert sum(record.accepted for lap in model.history_ for record in lap.moves if record.kind == "birth") >= 3


@pytest.mark.parametrize("D", [1, 4])
def test_a_stream_of_one_cluster_has_one(D):
    rng = np.random.default_rng(D)
    model = streaming()
    assert [model.partial_fit(rng.normal(size=(300, D))).n_clusters_ for _ in range(12)] == [1] * 12


@pytest.mark.long
def test_no_cluster_is_split_into_a_few_rows_with_a_cluster_each():
    """A few rows of many columns are explained at no cost by a cluster that is narrow around them."""
    rng = np.random.default_rng(1)
    means = rng.normal(0.0, 2.0, (4, 16))
    factors = rng.normal(0.0, 0.25, (4, 16, 16))
    model = streaming(memory_rows=500)
    for t in range(8):
        z = rng.integers(0, 1 + t // 3, size=600)
        X = means[z] + np.einsum("nd,nde->ne", rng.normal(size=(600, 16)), factors[z])
        model.partial_fit(X)
    assert model.n_clusters_ == 3


def test_the_number_of_threads_does_not_matter(streamed, batches):
    threads = clone(streamed[0]).set_params(n_jobs=2)
    for X in batches[:6]:
        threads.partial_fit(X)
    again = streaming()
    for X in batches[:6]:
        again.partial_fit(X)
    np.testing.assert_array_equal(threads.summary_.S, again.summary_.S)


def test_where_nothing_changes_sums_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    first, second = rows(rng, 500)[0], rows(rng, 300)[0]
    settings = {"init": np.array(rows(np.random.default_rng(0), 500)[1]), "learn": False}
    model = streaming().set_params(**settings).partial_fit(first).partial_fit(second)
    plain = Mixture("gaussian", random_state=0, n_jobs=1, **settings).partial_fit(first).partial_fit(second)
    np.testing.assert_allclose(model.summary_.S, plain.summary_.S)
    assert model.lower_bound_ == pytest.approx(plain.lower_bound_)
    assert not any(record.accepted for record in model.history_[-1].moves)


def test_pieces_of_clusters_merge():
    rng = np.random.default_rng(0)
    X, z = rows(rng, 600, (0, 3))
    labels = 2 * z + (X[:, 0] > CENTRES[z, 0])
    model = streaming().set_params(init=labels, moves=(), max_laps=1).partial_fit(X)
    assert model.n_clusters_ == 4
    model.set_params(moves=MOVES)
    for _ in range(3):
        model.partial_fit(rows(rng, 600, (0, 3))[0])
    assert model.n_clusters_ == 2


def test_a_cluster_of_two_is_split_by_what_is_remembered():
    rng = np.random.default_rng(0)
    X, _ = rows(rng, 600, (0, 3))
    model = streaming().set_params(init=np.zeros(600, int), moves=(), learn=False).partial_fit(X)
    assert model.n_clusters_ == 1
    model.set_params(moves=MOVES)
    for _ in range(2):
        model.partial_fit(rows(rng, 600, (0, 3))[0])
    assert model.n_clusters_ == 2
    T, z = rows(rng, 500, (0, 3))
    assert adjusted_rand_score(z, model.predict(T)) == 1.0


def test_what_is_forgotten_dies():
    rng = np.random.default_rng(0)
    model = streaming(forgetting=0.4).partial_fit(rows(rng, 400, (0, 1))[0])
    assert model.n_clusters_ == 2
    for _ in range(8):
        model.partial_fit(rows(rng, 400, (1,))[0])
    assert model.n_clusters_ == 1
    assert model.summary_.N.sum() == pytest.approx(400 / 0.6, rel=0.01)
    np.testing.assert_allclose(model.means_[0], CENTRES[1], atol=0.2)


@pytest.mark.parametrize("kept", [1.0, 0.5])
def test_rows_are_remembered_in_proportion_to_their_weight(kept):
    most, n, times, trials = 60, 50, 8, 200
    found = np.zeros(times)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        memory = Remembered(ArraySource(np.empty((0, 1))))
        weight = 0.0
        for t in range(times):
            memory = memory.after(ArraySource(np.full((n, 1), float(t))), kept * weight, most, rng)
            weight = kept * weight + n
        assert memory.size <= most
        found += np.bincount(memory.X[:, 0].astype(int), minlength=times)
    expected = kept ** np.arange(times)[::-1]
    expected *= found.sum() / expected.sum()
    assert (np.abs(found - expected) < 6.0 * np.sqrt(expected) + 0.05 * expected.max()).all()


def test_a_batch_that_fails_leaves_the_stream_as_it_was(batches):
    model = streaming().partial_fit(batches[0])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit([[np.inf, 0.0]])
    assert vars(model) == before


def test_a_model_file_goes_on_without_what_was_remembered(streamed, batches, tmp_path):
    streamed[0].save(tmp_path / "model")
    model = load(tmp_path / "model")
    assert model.algorithm == streamed[0].algorithm
    assert model.partial_fit(batches[-1]).n_clusters_ == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"forgetting": 0.0}, "forgetting must be a number above 0, at most 1; got 0"),
        ({"forgetting": 1.5}, "forgetting must be"),
        ({"forgetting": "all"}, "forgetting must be"),
        ({"memory_rows": 1}, "memory_rows must be at least 2; got 1"),
        ({"memory_rows": 2.5}, "memory_rows must be"),
    ],
)
def test_wrong_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        Streaming(**settings)


def test_published_births_are_refused():
    with pytest.raises(ValueError, match="AdoptedBirth"):
        streaming().set_params(moves=(AdoptedBirth(), "merge")).fit(np.zeros((9, 2)))
