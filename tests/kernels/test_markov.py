"""Messages of hidden Markov chains and the best path against sums over all paths."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from stickbreak.kernels import markov
from stickbreak.kernels.markov import FLOOR, LEAST, WIDTH
from stickbreak.kernels.transitions import draw_from_shares

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=15)
LENGTHS = st.sampled_from([[1], [5], [1, 1, 1], [2, 3], [1, 5, 2], [4, 1]])
KINDS = st.sampled_from(["soft", "extreme", "deterministic"])


def chain(seed, lengths, K, kind):
    """Log scores C (n, K), log potentials of first states (K,) and of transitions (K, K), and where sequences begin."""
    rng, n = np.random.default_rng(seed), sum(lengths)
    if kind == "soft":
        C, start, A = rng.normal(0.0, 2.0, (n, K)), rng.normal(-1.0, 1.0, K), rng.normal(-1.0, 1.0, (K, K))
    else:  # gaps of a thousand nats
        C = rng.choice([0.0, -1.0, -400.0, -1000.0], (n, K)) + rng.normal(0.0, 0.5, (n, K))
        start, A = rng.choice([-1.0, FLOOR], K), rng.choice([-0.1, -50.0, FLOOR], (K, K))
    if kind == "deterministic":
        A = np.where(np.roll(np.eye(K), 1, axis=1) > 0.0, -1e-3, FLOOR)
    first = np.zeros(n, np.bool_)
    first[np.cumsum([0, *lengths[:-1]])] = True
    return C - C.max(axis=1, keepdims=True), np.minimum(start, 0.0), np.minimum(A, 0.0), first


def paths(C, start, A):
    """All paths of one sequence (P, T), and the log potential of each."""
    z = np.array(list(product(range(len(start)), repeat=len(C))))
    logs = start[z[:, 0]] + C[np.arange(len(C)), z].sum(axis=1)
    return z, logs + sum(A[z[:, t], z[:, t + 1]] for t in range(len(C) - 1))


def enumerated(C, start, A, first):
    """log Z of each prefix and smoothed states (n, K), transitions (n, K, K) and filtered states (n, K), by all paths."""
    n, K = C.shape
    R, pairs, filtered, log_Z = np.zeros((n, K)), np.zeros((n, K, K)), np.zeros((n, K)), np.zeros(n)
    for a, b in pairwise([*np.flatnonzero(first), n]):
        z, logs = paths(C[a:b], start, A)
        p = np.exp(logs - logsumexp(logs))
        for t in range(b - a):
            np.add.at(R[a + t], z[:, t], p)
            if t:
                np.add.at(pairs[a + t], (z[:, t - 1], z[:, t]), p)
            known, of_known = paths(C[a : a + t + 1], start, A)
            log_Z[a + t] = logsumexp(of_known)
            np.add.at(filtered[a + t], known[:, -1], np.exp(of_known - log_Z[a + t]))
    return log_Z, R, pairs, filtered


def filled(values, rows=False):
    """Zeros up to a multiple of the width."""
    K = values.shape[-1]
    Kp = -(-K // WIDTH) * WIDTH
    out = np.zeros((Kp if rows else len(values), Kp))
    out[: len(values), :K] = values
    return out


def messages(C, start, A, first, cuts=(), codes=None):
    """The kernels, in blocks that end at ``cuts``: scales, forward messages, R, G, and the last backward message."""
    n, K = C.shape
    codes = np.arange(n) if codes is None else codes
    n = len(codes)
    Kp = -(-K // WIDTH) * WIDTH
    out, L = np.empty((len(C), Kp)), np.empty((len(C), Kp))
    markov.shift_rows(C, np.zeros(K), np.ones(len(C)), out, L, np.empty(len(C)))
    L = np.exp(L)
    markov.clear_least(L)
    first_message, P = filled(np.exp(start)[None])[0], filled(np.exp(A), rows=True)
    blocks = list(pairwise([0, *cuts, n]))
    alphas, scale, R, G = [], np.empty(n), np.empty((n, Kp)), np.empty((n, Kp))
    last = np.zeros(Kp)  # never read, since a sequence begins
    for a, b in blocks:
        alpha = np.empty((b - a + 1, Kp))
        alpha[0] = last
        markov.forward(L, codes[a:b], first[a:b], np.array([0, b - a]), first_message, P, alpha, scale[a:b])
        last = alpha[-1]
        alphas.append(alpha)
    beta = np.zeros((1, Kp))
    beta[:, :K] = 1.0 / K
    At = np.ascontiguousarray(P.T)
    for (a, b), alpha in zip(blocks[::-1], alphas[::-1]):
        edges, behind = np.array([0, b - a]), np.empty((b - a + 1, Kp))
        markov.backward(L, codes[a:b], first[a:b], edges, At, alpha, beta, R[a:b], behind)
        G[a:b] = behind[:-1]
    before = np.concatenate([alpha[:-1] for alpha in alphas])
    after = np.concatenate([alpha[1:] for alpha in alphas])
    return scale, before, after, R, G, P, beta[0]


@few
@given(
    seed=SEEDS, K=st.integers(1, 3), kind=KINDS, lengths=st.sampled_from([[1], [5], [3, 3, 3, 3], [9, 1, 4, 2], [1, 7]])
)
def test_lanes_do_what_one_after_another_does(seed, K, kind, lengths):
    """Sequences of unequal lengths, each a lane."""
    C, start, A, first = chain(seed, lengths, K, kind)
    scale, _, after, R, G, P, _ = messages(C, start, A, first)
    n, Kp = len(C), R.shape[1]
    L, edges = np.empty((2, n, Kp)), np.cumsum([0, *lengths])
    markov.shift_rows(C, np.zeros(K), np.ones(n), *L, np.empty(n))
    L = np.exp(L[1])
    markov.clear_least(L)
    alpha, own_G = np.ones((2, n + len(lengths), Kp))
    own_scale, own_R = np.empty(n), np.empty((n, Kp))
    beta = np.tile(np.repeat([1.0 / K, 0.0], [K, Kp - K]), (len(lengths), 1))
    markov.forward(L, np.arange(n), first, edges, filled(np.exp(start)[None])[0], P, alpha, own_scale)
    markov.backward(L, np.arange(n), first, edges, np.ascontiguousarray(P.T), alpha, beta, own_R, own_G)
    rows = np.arange(n) + np.repeat(np.arange(len(lengths)), lengths)
    for found, want in ((own_scale, scale), (alpha[rows + 1], after), (own_R, R), (own_G[rows], G)):
        np.testing.assert_allclose(found, want, rtol=1e-13)
    assert (own_G[edges[1:] + np.arange(len(lengths))] == 0.0).all()


@few
@given(seed=SEEDS, lengths=LENGTHS, K=st.integers(1, 3), kind=KINDS, cut=st.booleans())
def test_messages_are_sums_over_all_paths(seed, lengths, K, kind, cut):
    C, start, A, first = chain(seed, lengths, K, kind)
    n = len(C)
    cuts = (n // 2,) if cut and n > 1 else ()
    scale, before, after, R, G, P, beta = messages(C, start, A, first, cuts)
    log_Z, want, pairs, filtered = enumerated(C, start, A, first)
    for found in (scale, after, R, G, beta):
        assert np.isfinite(found).all()
    assert (R >= 0.0).all()
    assert (R[:, K:] == 0.0).all()
    assert (G[first] == 0.0).all()
    np.testing.assert_allclose(R[:, :K], want, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(after[:, :K], filtered, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(R.sum(axis=1), 1.0, rtol=1e-12)
    for a, b in pairwise([*np.flatnonzero(first), n]):
        np.testing.assert_allclose(np.cumsum(np.log(scale[a:b])), log_Z[a:b], rtol=1e-11, atol=1e-11)
    for t in np.flatnonzero(~first):
        found = before[t][:, None] * P * G[t]
        np.testing.assert_allclose(found[:K, :K], pairs[t], rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(beta, beta[0])  # a sequence begins at the first row


@few
@given(seed=SEEDS, K=st.sampled_from([2, 3, 7, 8, 9, 17]))
def test_more_states_than_fit_one_vector(seed, K):
    """Against the recursions in plain NumPy, where there are too many paths."""
    lengths = [7, 1, 12]
    C, start, A, first = chain(seed, lengths, K, "soft")
    scale, before, _, R, G, P, _ = messages(C, start, A, first, (5, 9))
    n = len(C)
    f, b = np.empty((n, K)), np.zeros((n, K))
    for t in range(n):
        f[t] = C[t] + (start if first[t] else logsumexp(f[t - 1][:, None] + A, axis=0))
    for t in range(n - 2, -1, -1):
        b[t] = 0.0 if first[t + 1] else logsumexp(A + C[t + 1] + b[t + 1], axis=1)
    log_R = f + b - logsumexp(f + b, axis=1, keepdims=True)
    np.testing.assert_allclose(R[:, :K], np.exp(log_R), rtol=1e-10, atol=1e-14)
    ends = np.cumsum(lengths) - 1
    assert np.log(scale).sum() == pytest.approx(logsumexp(f[ends], axis=1).sum(), rel=1e-12)
    np.testing.assert_allclose((before.T @ G * P)[:K, :K].sum(), n - len(lengths), rtol=1e-11)


def test_rows_that_repeat_are_looked_up():
    C, start, A, _ = chain(3, [4], 3, "soft")
    codes, first = np.array([2, 0, 0, 3, 1, 2, 2]), np.array([1, 0, 0, 0, 1, 0, 0], np.bool_)
    coded, plain = messages(C, start, A, first, codes=codes), messages(C[codes], start, A, first)
    for a, b in zip(coded, plain):
        np.testing.assert_array_equal(a, b)


@few
@given(seed=SEEDS, lengths=LENGTHS, K=st.integers(1, 3), kind=KINDS, cut=st.booleans())
def test_the_best_path_is_the_best_of_all(seed, lengths, K, kind, cut):
    C, start, A, first = chain(seed, lengths, K, kind)
    n = len(C)
    ends = [0, n // 2, n] if cut and n > 1 else [0, n]
    score, backs = np.zeros(K), []
    for a, b in pairwise(ends):
        back = np.empty((b - a, K), np.int16)
        markov.best_path(C[a:b], first[a:b], start, A, score, back)
        backs.append(back)
    path, state = np.empty(n, np.intp), int(score.argmax())
    for (a, b), back in zip(list(pairwise(ends))[::-1], backs[::-1]):
        state = markov.follow(back, state, path[a:b])
    for a, b in pairwise([*np.flatnonzero(first), n]):
        z, logs = paths(C[a:b], start, A)
        mine = logs[(z == path[a:b]).all(axis=1)]
        assert mine[0] == pytest.approx(logs.max(), rel=1e-12, abs=1e-12)


def test_the_path_of_a_deterministic_chain():
    A, start = np.where(np.roll(np.eye(3), 1, axis=1) > 0.0, 0.0, FLOOR), np.array([0.0, FLOOR, FLOOR])
    n, score = 1000, np.zeros(3)
    first, back, path = np.arange(n) == 0, np.empty((n, 3), np.int16), np.empty(n, np.intp)
    markov.best_path(np.zeros((n, 3)), first, start, A, score, back)
    markov.follow(back, int(score.argmax()), path)
    np.testing.assert_array_equal(path, np.arange(n) % 3)
    scale, _, after, R, G, _, _ = messages(np.zeros((n, 3)), start, A, first)
    np.testing.assert_allclose(R[:, :3], np.eye(3)[np.arange(n) % 3], atol=1e-100)
    np.testing.assert_allclose(after[:, :3], np.eye(3)[np.arange(n) % 3], atol=1e-100)
    np.testing.assert_allclose(scale, 1.0)
    assert np.isfinite(G).all()


def test_what_one_row_says_against_another_at_the_floor():
    """Two rows that insist on unlike states, and a chain that all but forbids the change."""
    A = np.array([[0.0, FLOOR], [FLOOR, 0.0]])
    for gap in (200.0, 299.0, 301.0, 1e3, 1e5):
        C, first = np.array([[0.0, -gap], [-gap, 0.0]]), np.array([True, False])
        scale, _, _, R, _, _, _ = messages(C, np.log([0.5, 0.5]), A, first)
        z, logs = paths(C, np.log([0.5, 0.5]), A)
        want = np.array([np.exp(logsumexp(logs[z[:, 0] == k]) - logsumexp(logs)) for k in range(2)])
        np.testing.assert_allclose(R[0, :2], want, rtol=1e-9, atol=1e-80)
        assert np.log(scale).sum() == pytest.approx(logsumexp(logs), rel=1e-12)


@few
@given(seed=SEEDS, K=st.sampled_from([1, 3, 8, 11]))
def test_rows_are_shifted_by_their_largest(seed, K):
    rng, n = np.random.default_rng(seed), 6
    C, bias, weights = 500.0 * rng.standard_normal((n, K)), rng.standard_normal(K), rng.choice([0.0, 1.0], n)
    Kp = -(-K // WIDTH) * WIDTH
    out, least = np.full((n, Kp), np.nan), np.full((n, Kp), np.nan)
    top = np.full(n, np.nan)
    markov.shift_rows(C, bias, weights, out, least, top)
    want = weights[:, None] * (C + bias)
    np.testing.assert_allclose(top, want.max(axis=1), rtol=1e-14)
    want -= want.max(axis=1, keepdims=True)
    np.testing.assert_allclose(out[:, :K], want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(least[:, :K], np.maximum(want, LEAST), rtol=1e-12, atol=1e-12)
    assert (out[:, K:] == LEAST).all()
    assert (least[:, K:] == LEAST).all()
    L = np.exp(least)
    markov.clear_least(L)
    assert (L[:, K:] == 0.0).all()
    assert (L[:, :K][want <= LEAST] == 0.0).all()
    np.testing.assert_allclose(L[:, :K][want > LEAST + 1.0], np.exp(want[want > LEAST + 1.0]), rtol=1e-9)
    assert (L.max(axis=1) == 1.0).all()


@few
@given(seed=SEEDS, K=st.integers(1, 9), threshold=st.sampled_from([0.0, 1e-12, 0.2]))
def test_rows_are_compressed_and_added(seed, K, threshold):
    rng, n = np.random.default_rng(seed), 7
    R = filled(rng.dirichlet(np.full(K, 0.3), n))
    C, H, before = filled(rng.standard_normal((n, K))), np.ones(K), R.copy()
    indptr, indices, values = np.empty(n + 1, np.int64), np.empty(n * K, np.int32), np.empty(n * K)
    count = markov.compress(R[:, :K], threshold, indptr, indices, values)
    markov.subtract_energies(R, C, H)
    np.testing.assert_array_equal(R, before)
    np.testing.assert_allclose(H - 1.0, -(R * C).sum(axis=0)[:K], rtol=1e-11, atol=1e-11)
    dense = np.zeros((n, K))
    dense[np.repeat(np.arange(n), np.diff(indptr)), indices[:count]] = values[:count]
    np.testing.assert_array_equal(dense, np.where(R[:, :K] > threshold, R[:, :K], 0.0))
    codes, sums = rng.integers(3, size=n), np.zeros((3, R.shape[1]))
    markov.add_rows(R, codes, sums)
    want = np.zeros_like(sums)
    np.add.at(want, codes, R)
    np.testing.assert_allclose(sums, want, rtol=1e-13)


@pytest.mark.parametrize("lengths", [[6], [2, 1, 3]], ids=str)
def test_paths_drawn_from_filtered_messages(lengths):
    """The state at each row, the last first, given the one after it: the inverse of the cumulative chances in plain NumPy."""
    rng, n, K = np.random.default_rng(3), sum(lengths), 3
    first = np.zeros(n, np.bool_)
    first[np.cumsum([0, *lengths[:-1]])] = True
    for _ in range(50):
        alpha, A = np.zeros((n, WIDTH)), np.zeros((WIDTH, WIDTH))
        alpha[:, :K], A[:K, :K] = rng.dirichlet(np.ones(K), n), rng.dirichlet(np.ones(K), K)
        uniform, path, after = rng.random(n), np.empty(n, np.int64), -1
        assert markov.draw_path(alpha, np.ascontiguousarray(A.T), first, uniform, -1, path) == -1
        for t in range(n - 1, -1, -1):
            chances = alpha[t, :K] * (A[:K, after] if after >= 0 else 1.0)
            assert path[t] == np.searchsorted(np.cumsum(chances), uniform[t] * chances.sum(), side="right")
            after = -1 if first[t] else path[t]


def test_transitions_drawn_from_shares():
    """Each is compared with a random number of its own: of n with pseudo-count a, the i-th is drawn with chance a / (a + i)."""
    rng = np.random.default_rng(4)
    counted, prior = rng.integers(6, size=(3, 2)).astype(float), rng.gamma(1.0, 1.0, (3, 2))
    uniform, drawn = rng.random(int(counted.sum())), np.empty((3, 2))
    draw_from_shares(counted, prior, uniform, drawn)
    parts = np.split(uniform, np.cumsum(counted.ravel()).astype(int)[:-1])
    expected = [(u < a / (a + np.arange(len(u)))).sum() for u, a in zip(parts, prior.ravel())]
    np.testing.assert_array_equal(drawn.ravel(), expected)
    assert (drawn[counted > 0] >= 1.0).all()
