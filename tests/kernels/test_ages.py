"""Messages to states and their ages against those of the chain whose states are all pairs of both."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stickbreak.kernels.ages import backward_ages, forward_ages

few = settings(max_examples=15)
LENGTHS = st.sampled_from([[1], [9], [1, 1, 4], [2, 7], [30]])


def chain(seed, n, K, D):
    """Likelihoods (n, Kp), begins (K, D), hazards (K, D) and the next states (K, K)."""
    rng = np.random.default_rng(seed)
    L = rng.random((n, 8)) ** rng.choice([1.0, 20.0])
    begins = rng.dirichlet(np.ones(K * D)).reshape(K, D)
    after = rng.random((K, K)) * (1.0 - np.eye(K))
    return L, begins, rng.uniform(0.02, 0.98, (K, D)), after / after.sum(axis=1, keepdims=True)


def of_pairs(hazards, after):
    """Transitions between states at ages, (K, D, K, D)."""
    K, D = hazards.shape
    A = np.zeros((K, D, K, D))
    A[:, :, :, 0] = hazards[:, :, None] * after[:, None]
    for k in range(K):
        for j in range(D):
            A[k, j, k, min(j + 1, D - 1)] += 1.0 - hazards[k, j]
    return A


def smoothed(L, begins, A, edges):
    """The log normaliser, probabilities of rows (n, K D), first rows (K D,) and transitions (K D, K D), by dense messages."""
    log_Z, M = 0.0, np.zeros(A.shape)
    R = np.zeros(L.shape)
    for a, b in pairwise(edges):
        ahead, back = [begins * L[a]], [np.ones(len(A))]
        for t in range(a + 1, b):
            ahead.append((ahead[-1] @ A) * L[t])
        for t in range(b - 1, a, -1):
            back.append(A @ (L[t] * back[-1]))
        back.reverse()
        Z = ahead[-1].sum()
        log_Z += np.log(Z)
        R[a:b] = np.array(ahead) * back / Z
        for t in range(a + 1, b):
            M += ahead[t - a - 1][:, None] * A * (L[t] * back[t - a]) / Z
    return log_Z, R, R[edges[:-1]].sum(axis=0), M


@few
@given(seed=st.integers(0, 2**32 - 1), lengths=LENGTHS, K=st.integers(2, 4), D=st.integers(2, 6))
def test_messages_are_those_of_the_chain_of_states_and_ages(seed, lengths, K, D):
    n = sum(lengths)
    L, begins, hazards, after = chain(seed, n, K, D)
    A = of_pairs(hazards, after)
    edges = np.cumsum([0, *lengths])
    log_Z, R, first_rows, M = smoothed(np.repeat(L[:, :K], D, axis=1), begins.ravel(), A.reshape(K * D, K * D), edges)
    first = np.zeros(n, np.bool_)
    first[edges[:-1]] = True
    alpha, scale, found = np.empty((n, K, D)), np.empty(n), np.empty((n, K))
    counts = [np.zeros(shape) for shape in ((K, D), (K, D), (K, K), (K, D))]
    forward_ages(L, np.arange(n), first, begins, hazards, after, alpha, scale)
    backward_ages(L, np.arange(n), first, hazards, after, alpha, found, *counts)
    left, stayed, moved, begun = counts
    assert np.log(scale).sum() == pytest.approx(log_Z, abs=1e-9)
    np.testing.assert_allclose(found, R.reshape(n, K, D).sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(begun.ravel(), first_rows, atol=1e-12)
    by_pair = M.reshape(K, D, K, D)
    gone = by_pair[:, :, :, 0] * (1.0 - np.eye(K))[:, None]
    np.testing.assert_allclose(left, gone.sum(axis=2), atol=1e-10)
    np.testing.assert_allclose(moved, gone.sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(left + stayed, by_pair.sum(axis=(2, 3)), atol=1e-10)


def test_rows_that_only_one_state_explains_are_its_own():
    K, D = 2, 3
    state = np.repeat([0, 1, 0], [5, 5, 5])
    L = np.zeros((2, 8))
    L[[0, 1], [0, 1]] = 1.0
    after = np.array([[0.0, 1.0], [1.0, 0.0]])
    first = np.arange(15) == 0
    hazards = np.full((K, D), 0.3)
    alpha, scale, found = np.empty((15, K, D)), np.empty(15), np.empty((15, K))
    forward_ages(L, state, first, np.full((K, D), 1.0 / (K * D)), hazards, after, alpha, scale)
    counts = [np.zeros(shape) for shape in ((K, D), (K, D), (K, K), (K, D))]
    backward_ages(L, state, first, hazards, after, alpha, found, *counts)
    np.testing.assert_allclose(found, np.eye(K)[state], atol=1e-12)
    # The state is left at its fifth row, which is of the last age.
    np.testing.assert_allclose(counts[0][1], [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(counts[1][1], [1.0, 1.0, 2.0], atol=1e-12)
