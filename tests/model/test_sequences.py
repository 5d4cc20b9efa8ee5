"""The local step of hidden Markov models against sums over all paths, and sequences in parts against whole ones."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from stickbreak.allocations import FiniteMarkovChain, HDPMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.data import sequences as data
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import AutoregressiveGaussian, Bernoulli, Gaussian, Sample
from stickbreak.model import SEQUENCES, Model, SequenceSummary, Summary, messages, run_ups
from stickbreak.model.messages import log_normaliser, smoothed
from stickbreak.model.paths import viterbi

SEEDS = st.integers(0, 2**32 - 1)
FLOAT = np.dtype(float)
FLOOR = np.exp(-300.0)
FIELDS = ("N", "S", "H", "base", "M", "begins")
ALLOCATIONS = [HDPMarkovChain(1.0, 0.0, 2.0, 1.5), HDPMarkovChain(1.0, 5.0, 2.0, 1.5), FiniteMarkovChain(4, 2.0, 1.0)]
LENGTHS = [[1], [1, 1, 1], [5], [4, 1, 3], [2, 6]]


def rows(kind, rng, n, D=2, missing=0.0):
    """Rows of three unlike states, some of them missing entirely."""
    z = rng.integers(3, size=n)
    if kind == "gaussian":
        X = rng.normal(2.0 * z[:, None], 1.0, (n, D))
    else:
        X = (rng.random((n, D)) < np.array([0.2, 0.5, 0.9])[z, None]).astype(float)
    X[rng.random(n) < missing] = np.nan
    return X


def likelihood(kind, X):
    X = X[~np.isnan(X).any(axis=1)]
    return {"gaussian": Gaussian, "bernoulli": Bernoulli}[kind]().resolve(Sample.of(X))


def begun(family, X, lengths, K, rng, sticky=1.0):
    """A first summary: rows that belong to random states, transitions that stay or not."""
    T = family.features(X, np.empty((len(X), family.n_statistics))) if not hasattr(X, "toarray") else X
    T = T.toarray() if hasattr(T, "toarray") else T
    R = rng.dirichlet(np.full(K, 0.3), len(X))
    M = rng.gamma(0.5, 2.0, (K, K)) + sticky * np.eye(K)
    return SequenceSummary.of(
        Summary(R.sum(0), np.asarray(R.T @ T), np.zeros(K), np.zeros(())), M, rng.gamma(0.5, 2.0, K)
    )


def problem(kind, seed, lengths, K=3, missing=0.0, allocation=ALLOCATIONS[1], sticky=1.0):
    """A model, a source and parameters."""
    rng = np.random.default_rng(seed)
    known = rows(kind, rng, 40)
    family = likelihood(kind, known)
    X = rows(kind, rng, sum(lengths), missing=missing)
    model = Model(family, allocation, SEQUENCES)
    start = begun(family, known, lengths, K, rng, sticky)
    return model, SequenceSource(X, np.array(lengths)), model.parameters(start, FLOAT)


def visited(model, source, parameters, n_batches=1, n_jobs=1):
    with Threads(n_jobs) as threads:
        found = [visit(model, parameters, source, chunks, threads).summary for chunks in source.batches(n_batches)]
    total = found[0]
    for other in found[1:]:
        total = total + other
    return total


def potentials(model, source, parameters):
    """Log scores (T, K), zero where nothing is observed, and log potentials of first states and transitions."""
    X, weights = source.rows(source_all(source)), source.observed(source_all(source))
    T = model.likelihood.features(X, np.empty((len(X), model.likelihood.n_statistics)))
    T = T.toarray() if hasattr(T, "toarray") else T
    C = (T @ parameters.W.T + parameters.bias) * weights[:, None]
    logs = np.log(np.maximum(parameters.prior, FLOOR))
    return C, logs[0], logs[1:], T, weights, X


def source_all(source):
    return data.Chunk(0, source.n_rows)


def by_paths(model, source, parameters):
    """The summary by all paths of each sequence, and the entropy of q(z)."""
    C, start, A, T, weights, X = potentials(model, source, parameters)
    n, K = C.shape
    R, M, begins, entropy = np.zeros((n, K)), np.zeros((K, K)), np.zeros(K), 0.0
    for a, b in pairwise(source.edges):
        z = np.array(list(product(range(K), repeat=b - a)))
        logs = start[z[:, 0]] + C[np.arange(a, b), z].sum(axis=1)
        logs = logs + sum(A[z[:, t], z[:, t + 1]] for t in range(b - a - 1))
        p = np.exp(logs - logsumexp(logs))
        entropy -= (p * (logs - logsumexp(logs))).sum()
        np.add.at(begins, z[:, 0], p)
        for t in range(b - a):
            np.add.at(R[a + t], z[:, t], p)
            if t:
                np.add.at(M, (z[:, t - 1], z[:, t]), p)
    wR = R * weights[:, None]
    return R, dict(N=wR.sum(0), S=wR.T @ T, M=M, begins=begins, base=weights @ model.likelihood.log_base(X)), entropy


def by_recursion(C, start, A, edges):
    """Smoothed states (n, K), transitions (K, K) and log Z of longer sequences, in the log domain."""
    n, K = C.shape
    f, b = np.empty((n, K)), np.zeros((n, K))
    first, last = np.isin(np.arange(n), edges[:-1]), np.isin(np.arange(n), edges[1:] - 1)
    for t in range(n):
        f[t] = C[t] + (start if first[t] else logsumexp(f[t - 1][:, None] + A, axis=0))
    for t in range(n - 2, -1, -1):
        if not last[t]:
            b[t] = logsumexp(A + C[t + 1] + b[t + 1], axis=1)
    log_R = f + b - logsumexp(f + b, axis=1, keepdims=True)
    M = np.zeros((K, K))
    for t in np.flatnonzero(~first):
        joint = f[t - 1][:, None] + A + C[t] + b[t]
        M += np.exp(joint - logsumexp(joint))
    return np.exp(log_R), M, logsumexp(f[last], axis=1).sum()


def best_scores(C, start, A, edges):
    """The score of the best path of each sequence."""
    found = []
    for a, b in pairwise(edges):
        score = start + C[a]
        for t in range(a + 1, b):
            score = (score[:, None] + A).max(axis=0) + C[t]
        found.append(score.max())
    return np.array(found)


def path_scores(C, start, A, edges, path):
    return np.array([
        start[path[a]] + C[np.arange(a, b), path[a:b]].sum() + A[path[a : b - 1], path[a + 1 : b]].sum()
        for a, b in pairwise(edges)
    ])  # fmt: skip


def assert_close(found, want, tolerance=1e-9):
    for name in FIELDS:
        a, b = getattr(found, name), getattr(want, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * (1.0 + np.abs(b).max(initial=0.0)), err_msg=name)


@pytest.mark.parametrize("allocation", ALLOCATIONS, ids=str)
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@settings(max_examples=6)
@given(
    seed=SEEDS, lengths=st.sampled_from(LENGTHS), K=st.integers(1, 3), missing=st.sampled_from([0.0, 0.4]),
    sticky=st.sampled_from([0.0, 1e6]),
)  # fmt: skip
def test_the_summary_is_a_sum_over_all_paths(kind, allocation, seed, lengths, K, missing, sticky):
    model, source, parameters = problem(kind, seed, lengths, K, missing, allocation, sticky)
    found = visited(model, source, parameters)
    R, want, entropy = by_paths(model, source, parameters)
    for name, value in want.items():
        np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9, err_msg=name)
    assert found.H.sum() == pytest.approx(entropy, rel=1e-9, abs=1e-9)
    assert found.M.sum() == pytest.approx(sum(lengths) - len(lengths), abs=1e-9)
    assert found.begins.sum() == pytest.approx(len(lengths))
    assert found.N.sum() == pytest.approx(source.total_weight, abs=1e-9)
    chunk = source.read(source_all(source))[0]
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    for block in smoothed(model.likelihood, prepared, chunk):
        np.testing.assert_allclose(block.R[:, :K], R[block.rows], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
@settings(max_examples=8)
@given(seed=SEEDS, lengths=st.sampled_from(LENGTHS), K=st.integers(1, 3), missing=st.sampled_from([0.0, 0.4]))
def test_the_best_path_is_the_best_of_all(kind, seed, lengths, K, missing):
    model, source, parameters = problem(kind, seed, lengths, K, missing)
    path = viterbi(
        model.likelihood, model.kind.prepare(model.likelihood, parameters, source), source.read(source_all(source))[0]
    )
    C, start, A, *_ = potentials(model, source, parameters)
    for i, (a, b) in enumerate(pairwise(source.edges)):
        z = np.array(list(product(range(K), repeat=b - a)))
        logs = start[z[:, 0]] + C[np.arange(a, b), z].sum(axis=1)
        logs = logs + sum(A[z[:, t], z[:, t + 1]] for t in range(b - a - 1))
        assert path_scores(C, start, A, source.edges, path)[i] == pytest.approx(logs.max(), rel=1e-12, abs=1e-12)


@settings(max_examples=6)
@given(seed=SEEDS, missing=st.sampled_from([0.0, 0.3]), lengths=st.sampled_from([[60], [1, 20, 39], [3] * 20]))
def test_rows_that_repeat_are_looked_up(seed, missing, lengths):
    model, plain, parameters = problem("bernoulli", seed, lengths, missing=missing)
    distinct, codes = np.unique(np.nan_to_num(plain.X, nan=-1.0), axis=0, return_inverse=True)
    coded = SequenceSource(np.where(distinct < 0.0, np.nan, distinct), np.array(lengths), codes=codes.ravel())
    assert coded.n_rows == plain.n_rows
    assert coded.total_weight == plain.total_weight
    assert_close(visited(model, coded, parameters), visited(model, plain, parameters), 1e-11)
    assert_close(visited(model, coded, parameters, 2), visited(model, plain, parameters, 2), 1e-11)
    paths = []
    for source in (coded, plain):
        seen = plain.present()
        np.testing.assert_array_equal(source.rows(source_all(source))[seen], plain.rows(source_all(plain))[seen])
        prepared = model.kind.prepare(model.likelihood, parameters, source)
        paths.append(viterbi(model.likelihood, prepared, source.read(source_all(source))[0]))
    C, start, A, *_ = potentials(model, plain, parameters)
    one, other = (path_scores(C, start, A, plain.edges, path) for path in paths)
    np.testing.assert_allclose(one, other, rtol=1e-12)


LONG = [700, 1, 33, 400, 2]


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("K", [3, 9])
@pytest.mark.parametrize("kind", ["gaussian", "bernoulli"])
def test_messages_of_many_blocks(kind, K, missing, monkeypatch):
    """Kept or computed twice, in one block or several, as by a recursion in the log domain."""
    model, source, parameters = problem(kind, 1, LONG, K, missing)
    C, start, A, T, weights, _ = potentials(model, source, parameters)
    R, M, log_Z = by_recursion(C, start, A, source.edges)
    chunk = source.read(source_all(source))[0]
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    found = []
    for kept, block in product((1 << 24, 0), (1 << 17, 1)):
        monkeypatch.setattr(messages, "KEPT", kept)
        monkeypatch.setattr(messages, "BLOCK", block)
        summary = visited(model, source, parameters)
        np.testing.assert_allclose(summary.N, weights @ R, rtol=1e-9)
        np.testing.assert_allclose(summary.S, (R * weights[:, None]).T @ T, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(summary.M, M, rtol=1e-9, atol=1e-9)
        energy = (R * C).sum() + (M * A).sum() + R[source.edges[:-1]].sum(axis=0) @ start
        assert summary.H.sum() == pytest.approx(log_Z - energy, rel=1e-9, abs=1e-8)
        assert log_normaliser(model.likelihood, prepared, chunk) == pytest.approx(log_Z, rel=1e-10)
        path = viterbi(model.likelihood, prepared, chunk)
        scores = path_scores(C, start, A, source.edges, path)
        np.testing.assert_allclose(scores, best_scores(C, start, A, source.edges), rtol=1e-12)
        found.append((summary, path))
    for block in (0, 1):
        (kept, path), (again, same) = found[block], found[block + 2]
        assert_close(again, kept, 1e-14)
        np.testing.assert_array_equal(path, same)


def coded_twin(source):
    known = source.X[~np.isnan(source.X).any(axis=1)]
    distinct = np.vstack([np.unique(known, axis=0), np.full((1, known.shape[1]), np.nan)])
    codes = np.array(
        [len(distinct) - 1 if np.isnan(x).any() else int((distinct == x).all(1).argmax()) for x in source.X]
    )
    return SequenceSource(distinct, np.diff(source.edges), codes=codes)


@pytest.mark.parametrize("lane", [1024, 20])
@pytest.mark.parametrize("steps", [50, 333])
@pytest.mark.parametrize("case", ["gaussian", "bernoulli", "coded", "missing"])
def test_long_sequences_in_parts(case, steps, lane, monkeypatch):
    kind = "gaussian" if case in ("gaussian", "missing") else "bernoulli"
    model, source, parameters = problem(kind, 2, LONG, 4, 0.3 if case == "missing" else 0.0)
    source = coded_twin(source) if case == "coded" else source
    whole = visited(model, source, parameters)
    monkeypatch.setattr(data, "STEPS", steps)
    monkeypatch.setattr(run_ups, "LANE", lane)
    for n_batches in (1, 3):
        chunks = [chunk for batch in source.batches(n_batches) for chunk in batch]
        assert len(chunks) > n_batches
        assert sorted(t for chunk in chunks for t in range(*chunk)) == list(range(source.n_rows))
        assert_close(visited(model, source, parameters, n_batches), whole)
    assert source.whole()[0].start == 0
    assert {t for chunk in source.whole() for t in chunk} <= set(source.edges)


def hardly_changing(K, missing, n=600):
    """Parameters under which a state lasts for a hundred thousand steps, and rows that hardly tell states apart."""
    model, _, parameters = problem("bernoulli", 3, [5], K)
    prior = np.full((K + 1, K), 1e-5)
    prior[1:][np.eye(K, dtype=bool)] = 1.0 - 1e-5 * (K - 1)
    prior[0] = np.arange(1.0, K + 1.0) / K
    X = rows("bernoulli", np.random.default_rng(4), n, missing=missing)
    return model, SequenceSource(X, np.array([n - 100, 100])), parameters._replace(W=1e-3 * parameters.W, prior=prior)


@pytest.mark.parametrize("run_up", [1, 4, 64])
@pytest.mark.parametrize(("K", "missing"), [(1, 0.0), (2, 0.3), (5, 0.0), (3, 0.99)])
def test_run_ups_grow_until_messages_forget(K, missing, run_up, monkeypatch):
    model, source, parameters = hardly_changing(K, missing)
    whole = visited(model, source, parameters)
    monkeypatch.setattr(data, "STEPS", 50)
    monkeypatch.setattr(run_ups, "RUN_UP", run_up)
    monkeypatch.setattr(run_ups, "LANE", 10)
    for cut in (source, coded_twin(source)):
        assert_close(visited(model, cut, parameters), whole)
        assert_close(visited(model, cut, parameters, n_jobs=2), whole)


@pytest.mark.parametrize("K", [2, 4, 6])
@pytest.mark.parametrize("run_up", [1, 4])
def test_a_chain_that_never_forgets_in_parts(K, run_up, monkeypatch):
    """States follow each other in a circle; only the first row, or the last, tells where it began."""
    model, _, parameters = problem("bernoulli", 3, [5], K)
    prior = np.full((K + 1, K), 1e-290)
    prior[1:] = np.maximum(np.roll(np.eye(K), 1, axis=1), 1e-290)
    prior[0] = 1.0 / K
    X = np.full((400, 2), np.nan)
    parameters = parameters._replace(prior=prior, W=20.0 * parameters.W)
    for told in (0, 399, 200):
        X[:], X[told] = np.nan, [1.0, 0.0]
        source = SequenceSource(X.copy(), np.array([400]))
        monkeypatch.undo()
        whole = visited(model, source, parameters)
        C, start, A, *_ = potentials(model, source, parameters)
        np.testing.assert_allclose(whole.M, by_recursion(C, start, A, source.edges)[1], rtol=1e-9, atol=1e-9)
        monkeypatch.setattr(data, "STEPS", 50)
        monkeypatch.setattr(run_ups, "RUN_UP", run_up)
        assert_close(visited(model, source, parameters), whole)


@pytest.mark.parametrize("told", [0, 399])
def test_a_chain_of_two_halves_in_parts(told, monkeypatch):
    """Two halves of states that hardly ever meet: within each all is forgotten at once, in which half one is never."""
    model, _, parameters = problem("bernoulli", 3, [5], 4)
    halves = np.array([0, 0, 1, 1])
    prior = np.full((5, 4), 0.25)
    prior[1:] = np.where(halves[:, None] == halves, 0.5, 1e-30)
    X = np.full((400, 2), np.nan)
    X[told] = [1.0, 0.0]
    parameters = parameters._replace(prior=prior, W=np.where(halves == 0, 20.0, -20.0)[:, None] * np.ones((4, 2)))
    source = SequenceSource(X, np.array([400]))
    whole = visited(model, source, parameters)
    C, start, A, *_ = potentials(model, source, parameters)
    np.testing.assert_allclose(whole.M, by_recursion(C, start, A, source.edges)[1], rtol=1e-9, atol=1e-9)
    monkeypatch.setattr(data, "STEPS", 50)
    monkeypatch.setattr(run_ups, "RUN_UP", 4)
    assert_close(visited(model, source, parameters), whole)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_rows_with_history(order):
    rng, lengths, D = np.random.default_rng(0), [7, 2, 1, 12, 4], 2
    X = rng.standard_normal((sum(lengths), D))
    source = SequenceSource(X, np.array(lengths), order)
    known = source.weights > 0.0
    first = np.concatenate([np.arange(n) < order for n in lengths])
    np.testing.assert_array_equal(known, ~first)
    long = np.repeat(lengths, lengths) > order
    want = AutoregressiveGaussian.rows(X[long], [n for n in lengths if n > order], order)
    found = source.rows(source_all(source))
    assert source.n_columns == found.shape[1] == D * (order + 1)
    np.testing.assert_array_equal(found[known], want)
    np.testing.assert_array_equal(found[~known], np.tile(want[0], (np.count_nonzero(~known), 1)))
    assert source.total_weight == len(want)
    order_of_rows = rng.permutation(len(X))
    taken, weights = source.take(order_of_rows)
    np.testing.assert_array_equal(taken, found[order_of_rows])
    np.testing.assert_array_equal(weights, source.weights[order_of_rows])
    for a, b in ((0, 3), (5, 11), (9, 26)):
        np.testing.assert_array_equal(source.rows(data.Chunk(a, b)), found[a:b])
    np.testing.assert_array_equal(source.flat.take(order_of_rows)[0], taken)
    X[15] = np.nan  # a row that is missing leaves those after it without history
    gone = SequenceSource(X, np.array(lengths), order).weights == 0.0
    np.testing.assert_array_equal(gone, first | ((np.arange(len(X)) >= 15) & (np.arange(len(X)) <= 15 + order)))


def test_steps_that_follow_from_those_before(monkeypatch):
    """The summary of an autoregressive model by a recursion on rows with history, in parts and whole."""
    rng, lengths = np.random.default_rng(1), [180, 2, 60]
    X = np.cumsum(rng.standard_normal((sum(lengths), 2)), axis=0)
    source = SequenceSource(X, np.array(lengths), 2)
    known = source.rows(source_all(source))[source.weights > 0.0]
    family = AutoregressiveGaussian(order=2).resolve(Sample.of(known))
    model = Model(family, ALLOCATIONS[1], SEQUENCES)
    parameters = model.parameters(begun(family, known, lengths, 3, rng), FLOAT)
    C, start, A, T, weights, rows_ = potentials(model, source, parameters)
    assert (C[[0, 1, 180, 181, 182, 183]] == 0.0).all()
    R, M, _ = by_recursion(C, start, A, source.edges)
    for steps in (1 << 15, 40):
        monkeypatch.setattr(data, "STEPS", steps)
        found = visited(model, source, parameters)
        np.testing.assert_allclose(found.N, weights @ R, rtol=1e-9)
        np.testing.assert_allclose(found.S, (R * weights[:, None]).T @ T, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.M, M, rtol=1e-9, atol=1e-9)
        assert found.base == pytest.approx(weights @ family.log_base(rows_))


def test_a_sample_of_sequences_is_windows_of_them():
    rng, lengths = np.random.default_rng(0), np.array([900, 5, 300, 1, 794])
    X = np.arange(2000.0)[:, None] * [1.0, -1.0]
    source = SequenceSource(X, lengths)
    some = source.sample(400, rng)
    assert 400 <= some.n_rows < 440
    begins = set(some.edges[:-1])
    for t in range(some.n_rows):
        row = int(some.X[t, 0])
        assert t in begins or some.X[t - 1, 0] == row - 1
        assert t in begins or row not in set(source.edges)
    assert source.sample(2000, rng) is source
    codes = rng.integers(5, size=2000)
    coded = SequenceSource(X[:5], lengths, codes=codes).sample(400, np.random.default_rng(3))
    plain = SequenceSource(X[:5][codes], lengths).sample(400, np.random.default_rng(3))
    np.testing.assert_array_equal(coded.rows(source_all(coded)), plain.X)
    np.testing.assert_array_equal(coded.edges, plain.edges)


def test_repeated_rows_without_an_observation_have_none_in_pieces_and_samples_either():
    rng = np.random.default_rng(4)
    codes = rng.integers(3, size=600).astype(np.int32)
    coded = SequenceSource(np.array([[0.0], [np.nan], [1.0]]), np.array([600]), codes=codes)
    seen = (codes != 1).sum()
    assert coded.total_weight == coded.cut(4).total_weight == seen
    few = coded.sample(300, rng)
    assert few.total_weight == (few.codes != 1).sum() < few.n_rows


def test_few_rows_of_several_sequences_are_one_chunk_and_more_an_even_number():
    """Threads share a batch of many rows; to share few takes as long as it saves."""
    for n, chunks in ((20, 1), (400, 1), (500, 2), (7000, 4)):
        source = SequenceSource(np.zeros((10 * n, 1)), np.full(n, 10))
        assert [len(batch) for batch in source.batches(1)] == [chunks]
    assert [len(batch) for batch in SequenceSource(np.zeros((5000, 1)), np.full(500, 10)).batches(2)] == [1, 1]
    for columns, lags, chunks in ((64, 0, 1), (65, 0, 2), (32, 1, 1), (32, 2, 2)):  # numbers, with those of histories
        wide = SequenceSource(np.zeros((2048, columns)), np.full(128, 16), lags)
        assert [len(batch) for batch in wide.batches(1)] == [chunks]
