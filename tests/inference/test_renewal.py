"""Streams of documents and of sequences: topics and states are born and die, sums go on, and memory is bounded."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from stickbreak import HMM, TopicModel, load
from stickbreak.allocations import HDPMarkovChain
from stickbreak.data import BagSource, GroupSource, SequenceSource
from stickbreak.inference import StateRenewal, Streaming, TopicRenewal
from stickbreak.inference.remembered import Recalled
from stickbreak.inference.renewal import continued
from stickbreak.likelihoods import Multinomial
from stickbreak.model import SEQUENCES, Model, SequenceSummary, Summary

V, WORDS, STEPS = 24, 30, 30
CENTRES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def documents(rng, n, among=range(3)):
    """Documents that mix topics, each of eight words of its own."""
    topics = np.kron(np.eye(3), np.full(V // 3, 3.0 / V))[list(among)]
    return rng.multinomial(WORDS, rng.dirichlet(np.full(len(topics), 0.3), n) @ topics).astype(float)


def sequences(rng, n, among=range(3)):
    """Sequences of states that last ten rows."""
    states = list(among)
    z = np.repeat(rng.choice(states, (n, STEPS // 10)), 10, axis=1)
    return list(CENTRES[z] + rng.normal(size=(n, STEPS, 2)))


def true_topics(X):
    """The topics of documents, (K, V)."""
    return np.kron(np.eye(3), np.ones(V // 3))


def true_states(X):
    """The states of the rows of sequences (n, T, D), which are far from each other."""
    return ((X.reshape(-1, 1, 2) - CENTRES) ** 2).sum(axis=2).argmin(axis=1)


class Kind(NamedTuple):
    """A stream: its data, an estimator, the start at the truth, its search, and sizes of a batch and of the memory."""

    draw: Callable[..., Any]
    estimator: Any
    truth: Callable[[Any], Any]
    search: type
    batch: int
    memory: int

    def streaming(self, forgetting=1.0):
        algorithm = Streaming(forgetting, self.memory)
        return clone(self.estimator).set_params(algorithm=algorithm, random_state=0, n_jobs=1)

    def batches(self, n, each, K=3, seed=0):
        """Batches to which topics or states come one after another."""
        rng = np.random.default_rng(seed)
        return [self.draw(rng, self.batch, range(min(K, 1 + t // each))) for t in range(n)]


KINDS = {
    "documents": Kind(
        documents,
        TopicModel(n_init_topics=8),
        true_topics,
        TopicRenewal,
        60,
        200,
    ),
    "sequences": Kind(sequences, HMM("diagonal_gaussian", max_laps=60), true_states, StateRenewal, 8, 900),
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return KINDS[request.param]


def K(model):
    return model.summary_.K


@pytest.fixture(scope="module")
def streamed(kind):
    """A stream in which one more has come every other batch, what was found on the way, and the stream half-way."""
    model = kind.streaming()
    found = []
    half = b""
    for X in kind.batches(6, 2):
        model.partial_fit(X)
        found.append(K(model))
        if len(found) == 4:
            half = pickle.dumps(model)
    return model, found, half


def test_those_that_appear_one_after_another_are_found(kind, streamed):
    model, found, _ = streamed
    assert found[:2] == [1, 1]
    assert found[-2:] == [3, 3]
    births = sum(record.accepted for lap in model.history_ for record in lap.moves if record.kind == "birth")
    assert births >= 2
    T = kind.draw(np.random.default_rng(9), 50)
    everything = np.concatenate(kind.batches(6, 2))
    whole = clone(kind.estimator).set_params(random_state=0, n_jobs=1, moves=(), init=kind.truth(everything))
    whole.fit(list(everything))
    assert model.score(T) > whole.score(T) - 0.01 * abs(whole.score(T))
    assert model.summary_.N.sum() == pytest.approx(6 * kind.batch * 30)


def test_memory_is_bounded(kind, streamed):
    memory = streamed[0]._stream.memory
    assert memory.held.n_rows <= kind.memory + STEPS
    assert memory.size <= 1.5 * kind.memory + kind.batch * STEPS


def test_a_stream_goes_on_from_a_copy_with_any_number_of_threads(kind, streamed):
    again = pickle.loads(streamed[2]).set_params(n_jobs=2)
    for X in kind.batches(6, 2)[4:]:
        again.partial_fit(X)
    np.testing.assert_array_equal(again.summary_.S, streamed[0].summary_.S)
    assert again.lower_bound_ == streamed[0].lower_bound_


def test_without_moves_sums_are_those_of_all_that_came(kind):
    first, second = kind.batches(2, 1, seed=2)
    settings = {"learn": False, "moves": (), "max_laps": 5}
    fixed = {"document_concentration": 1.0} if "document_concentration" in kind.estimator.get_params() else {}
    model = kind.streaming().set_params(**settings, **fixed).partial_fit(first).partial_fit(second)
    plain = clone(model).set_params(algorithm="memoized").partial_fit(first).partial_fit(second)
    np.testing.assert_allclose(model.summary_.S, plain.summary_.S)
    np.testing.assert_allclose(model.summary_.N, plain.summary_.N)


def test_what_is_forgotten_dies(kind, streamed):
    rng = np.random.default_rng(0)
    model = pickle.loads(streamed[2]).set_params(algorithm=Streaming(0.1, kind.memory))
    assert K(model) == 2
    for _ in range(4):
        model.partial_fit(kind.draw(rng, kind.batch, (1,)))
    assert K(model) == 1
    assert model.summary_.N.sum() == pytest.approx(kind.batch * 30 / 0.9, rel=0.01)


@pytest.mark.parametrize("error", [KeyboardInterrupt, FloatingPointError])
def test_a_batch_that_fails_leaves_the_stream_as_it_was(kind, streamed, error, monkeypatch):
    model = pickle.loads(streamed[2])
    before = dict(vars(model))
    state = model._stream.rng.bit_generator.state

    def fail(self, start):
        raise error

    monkeypatch.setattr(kind.search, "run", fail)
    monkeypatch.setattr(Recalled, "is_due", lambda self, early: True)
    with pytest.raises(error):
        model.partial_fit(kind.draw(np.random.default_rng(0), kind.batch))
    assert vars(model) == before
    assert model._stream.rng.bit_generator.state == state
    bad = np.array(kind.draw(np.random.default_rng(0), kind.batch))
    bad[0, 0] = np.inf
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(bad if kind.estimator.__class__ is TopicModel else list(bad))
    assert vars(model) == before


def test_a_model_file_goes_on_once_its_memory_is_filled(kind, streamed, tmp_path):
    pickle.loads(streamed[2]).save(tmp_path / "model")
    model = load(tmp_path / "model")
    before = model.summary_.N.sum()
    batch = kind.batches(1, 1, K=1, seed=3)[0]
    each = kind.batch if kind.estimator.__class__ is TopicModel else kind.batch * STEPS
    for _ in range(-(-kind.memory // (2 * each))):
        model.partial_fit(batch)
    assert K(model) == K(streamed[0]) - 1
    assert model._stream.memory.filling == 0
    assert model._stream.memory.recent is None
    assert model.summary_.N.sum() > before


def test_what_is_remembered_is_not_what_a_caller_changes():
    X = documents(np.random.default_rng(0), 60)
    source = BagSource(sparse.csr_array(X))
    seen = Summary.zeros(1, V)
    memory = Recalled(None, 0.0)
    for summary in (None, seen, seen):
        memory = memory.after(source, summary, 1.0, 200, np.random.default_rng(0))
    source.X.data[:] = 0.0
    assert memory.whole.X.sum() == 180 * WORDS


@pytest.mark.parametrize("forgetting", [1.0, 0.5])
def test_documents_are_remembered_in_proportion_to_their_weight(forgetting):
    most, n, times, trials = 40, 30, 6, 100
    found = np.zeros(times)
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        memory = Recalled(None, 0.0)
        for t in range(times):
            counts = np.zeros((n, times))
            counts[:, t] = 1.0
            seen = Summary.zeros(1, times) if t else None
            memory = memory.after(BagSource(sparse.csr_array(counts)), seen, forgetting, most, rng)
            memory = memory.judged(True, most, rng) if t else memory
        found += memory.held.X.sum(axis=0)
        assert memory.held.n_rows <= most
        assert memory.weight == pytest.approx(n * (forgetting ** np.arange(times)).sum())
    expected = forgetting ** np.arange(times)[::-1]
    expected *= found.sum() / expected.sum()
    assert (np.abs(found - expected) < 6.0 * np.sqrt(expected) + 0.05 * expected.max()).all()


def test_moves_are_judged_early_ever_less_often_in_vain():
    rng = np.random.default_rng(0)
    source = BagSource(sparse.csr_array(np.ones((10, 2))))
    seen = Summary.zeros(1, 2)
    memory = Recalled(None, 0.0).after(BagSource(sparse.csr_array(np.ones((500, 2)))), None, 1.0, 500, rng)
    assert not memory.is_due(True)
    waits = []
    for _ in range(3):
        batches = 0
        while not memory.is_due(True):
            memory = memory.after(source, seen, 1.0, 500, rng)
            batches += 1
        assert not memory.is_due(False)
        waits.append(batches)
        memory = memory.judged(True, 500, rng)
    assert waits == [1, 2, 4]
    assert memory.after(source, seen, 1.0, 500, rng).judged(False, 500, rng).rest == 0


def test_sums_go_on_where_one_cluster_explains_both_better_than_two():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(50), 3)
    before = np.array([rng.multinomial(5000, p[k]) for k in (0, 1, 0)], float)
    found = np.array([rng.multinomial(500, p[k]) for k in (2, 0, 1)], float)
    allocation = HDPMarkovChain(1.0, 1.0, 1.0, 1.0)
    model = Model(Multinomial(0.1, 50), allocation, SEQUENCES)
    none = np.zeros(3), np.zeros(())
    sums = [SequenceSummary(S.sum(axis=1), S, *none, np.zeros((3, 3)), np.zeros(3)) for S in (found, before)]
    assert continued(model, *sums) == [[], [0, 2], [1]]


def sources():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    yield BagSource(sparse.csr_array(rng.poisson(2.0, (8, 5)).astype(float) + 1.0)), 8
    yield GroupSource(X, np.full(8, 5)), 8
    yield SequenceSource(X, np.full(8, 5)), 40
    yield SequenceSource(X, np.full(8, 5), lags=1), 40
    yield SequenceSource(X[:4], np.full(8, 5), codes=np.tile(np.arange(4), 10)), 40


@pytest.mark.parametrize(("source", "size"), list(sources()), ids=["bags", "groups", "sequences", "lags", "codes"])
def test_portions_and_joined_sources_have_the_same_rows(source, size):
    rng = np.random.default_rng(0)
    portion = source.portion(size // 2, 400, rng)
    assert type(portion) is type(source)
    assert abs(portion.n_rows - size // 2) <= 5
    both = portion.joined(source)
    assert both.n_rows == portion.n_rows + size
    assert both.total_weight == portion.total_weight + source.total_weight

    def rows(of):
        if getattr(of, "codes", None) is not None:
            return of.X[of.codes]
        flat, weights = of.flat.take(np.arange(of.flat.n_rows))
        return (flat.toarray() if sparse.issparse(flat) else flat)[weights > 0.0]

    np.testing.assert_array_equal(rows(both), np.concatenate([rows(portion), rows(source)]))


def test_long_sequences_are_remembered_in_windows():
    source = SequenceSource(np.arange(3200.0)[:, None], np.array([3200]))
    portion = source.portion(3200, 640, np.random.default_rng(0))
    assert (np.diff(portion.edges) == 20).all()
    assert sorted(portion.X[:, 0]) == list(range(3200))


def test_answers_and_labels_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="answers"):
        KINDS["documents"].streaming().fit(documents(rng, 20), np.arange(20.0))
    with pytest.raises(ValueError, match="labels"):
        KINDS["sequences"].streaming().fit(sequences(rng, 2), np.tile([0, 1], STEPS))
