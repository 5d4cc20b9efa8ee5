"""Hidden Markov chains: forward and backward messages in the scaled linear domain, and the most probable path.

Rows are the steps of one or more sequences, one after another; ``first[t]`` says that a sequence begins at row t.  All
arrays have Kp columns, the states filled up with zeros to a multiple of `WIDTH`, so that inner loops are whole vectors.

A step's likelihoods are divided by the largest, so that this one is 1, and every log potential is at least -300.  Messages
are normalised to sum to one after each step.  Then every normaliser is at least exp(-300) / K, every sum of products of a
forward and a backward message at least exp(-600) / K, and nothing that counts can underflow.  A likelihood below exp(-650), or
a forward message below exp(-345), is less than what comes to the same state from any other, and is set to zero: arithmetic
on numbers near the smallest there are is slow.
"""

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

WIDTH = 8
FLOOR = -300.0  # of log potentials
LEAST = -650.0  # of log likelihoods
_NOTHING = np.exp(-345.0)  # of forward messages

_jit = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})


@_jit
def _times(x, A, y):
    """The product y = x A, for x (Kp,), A (Kp, Kp): eight rows of A at a time."""
    K = x.size
    y[:] = 0.0
    for j in range(0, K, 8):
        a, b, c, d, e, f, g, h = x[j], x[j + 1], x[j + 2], x[j + 3], x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        for k in range(K):
            low = a * A[j, k] + b * A[j + 1, k] + c * A[j + 2, k] + d * A[j + 3, k]
            high = e * A[j + 4, k] + f * A[j + 5, k] + g * A[j + 6, k] + h * A[j + 7, k]
            y[k] += low + high


@_jit
def forward(L, codes, first, start, A, alpha, scale):
    """Filtered probabilities alpha[t + 1] = p(z_t | x_1, ..., x_t) of a block of rows.

    alpha_1 = start * L_1 / c_1,    alpha_t = (alpha_{t-1} A) * L_t / c_t                              (Thesis 6.3.3)

    L : (U, Kp) in: likelihoods;  codes : (n,) in: which of its rows each is;  first : (n,) bool, in
    start : (Kp,), A : (Kp, Kp) in: exp(E[log pi_0]), exp(E[log pi])
    alpha : (n + 1, Kp) row 0 in: that of the row before the block;  the others out
    scale : (n,) out: c_t
    """
    n, K = codes.size, L.shape[1]
    y = np.empty(K)
    for t in range(n):
        if first[t]:
            y[:] = start
        else:
            _times(alpha[t], A, y)
        total = 0.0
        here = L[codes[t]]
        for k in range(K):
            y[k] *= here[k]
            total += y[k]
        scale[t] = total
        rescale = 1.0 / total
        for k in range(K):
            message = y[k] * rescale
            alpha[t + 1, k] = message if message > _NOTHING else 0.0


@_jit
def backward(L, codes, first, At, alpha, beta, R, G):
    """Smoothed probabilities of a block of rows, and what the expected transitions are made of.

    With  g_t = L_t * beta_t,  beta_{t-1} = A g_t,  up to factors:   R_t = alpha_t * beta_t,   and   alpha_{t-1,j} A_jk G_tk
    is the probability of z_{t-1} = j and z_t = k, zero where a sequence begins.

    L, codes, first : see `forward`;  At : (Kp, Kp) in: A transposed
    alpha : (n + 1, Kp) in
    beta : (Kp,) in: backward message to the last row, out: that to the row before the block; sums to one
    R, G : (n, Kp) out
    """
    n, K = codes.size, L.shape[1]
    y = np.empty(K)
    for t in range(n - 1, -1, -1):
        total = 0.0
        here = L[codes[t]]
        for k in range(K):
            R[t, k] = alpha[t + 1, k] * beta[k]
            total += R[t, k]
            G[t, k] = here[k] * beta[k]
        rescale = 1.0 / total
        for k in range(K):
            R[t, k] *= rescale
        if first[t]:
            G[t] = 0.0
            beta[:] = 1.0 / K
            continue
        _times(G[t], At, y)
        both, total = 0.0, 0.0
        for k in range(K):
            both += alpha[t, k] * y[k]
            total += y[k]
        both, total = 1.0 / both, 1.0 / total
        for k in range(K):
            G[t, k] *= both
            beta[k] = y[k] * total


@_jit
def _advance(score, A, fresh, back):
    """The best score (K,) of a step to each state, and the state it came from."""
    K = score.size
    for k in range(K):
        fresh[k] = score[0] + A[0, k]
        back[k] = 0
    for j in range(1, K):
        for k in range(K):
            value = score[j] + A[j, k]
            if value > fresh[k]:
                fresh[k] = value
                back[k] = j


@_jit
def best_path(C, first, start, A, score, back):
    """Forward half of the Viterbi algorithm on a block of rows: the best predecessor of every state at every row.

    C : (n, K) in: log likelihoods;  start : (K,), A : (K, K) in: log potentials
    score : (K,) in: of the best path to each state at the row before the block; out: at its last row
    back : (n, K) int16, out: the predecessor; where a sequence begins, the state in which the one before ends
    """
    n, K = C.shape
    fresh = np.empty(K)
    for t in range(n):
        if first[t]:
            back[t] = np.argmax(score)
            for k in range(K):
                score[k] = start[k] + C[t, k]
            continue
        _advance(score, A, fresh, back[t])
        for k in range(K):
            score[k] = fresh[k] + C[t, k]


@_jit
def follow(back, state, path):
    """The states of a block of rows on the path that is in ``state`` at its last row, and the state before the block.

    back : (n, K) in;  path : (n,) out
    """
    for t in range(back.shape[0] - 1, -1, -1):
        path[t] = state
        state = back[t, state]
    return state


@_jit
def shift_rows(C, bias, weights, out, least):
    """Scores ``weights[t] (C[t] + bias)`` of rows, less the largest of each row, and the same but at least `LEAST`.

    C : (n, K), bias : (K,), weights : (n,) in;  out, least : (n, Kp), `LEAST` in the columns that fill up
    """
    n, K = C.shape
    for t in range(n):
        top = -np.inf
        for k in range(K):
            out[t, k] = weights[t] * (C[t, k] + bias[k])
            top = max(top, out[t, k])
        for k in range(K):
            out[t, k] -= top
            least[t, k] = max(out[t, k], LEAST)
        for k in range(K, out.shape[1]):
            out[t, k] = least[t, k] = LEAST


@_jit
def clear_least(L):
    """Set what is exp(`LEAST`) to zero in L (n, Kp)."""
    smallest = 1.5 * np.exp(LEAST)
    for t in range(L.shape[0]):
        for k in range(L.shape[1]):
            L[t, k] = L[t, k] if L[t, k] > smallest else 0.0


@_jit
def collect(R, scale, weights, threshold, N, H, indptr, indices, values):
    """Counts and the first part of the entropies of a block of rows, and its responsibilities as compressed sparse rows.

    N_k += sum_t w_t R_tk,    H_k += sum_t R_tk log c_t

    R : (n, Kp), scale, weights : (n,) in;  N, H : (K,) in and out
    indptr : (n + 1,), indices, values : (n K,) out: the entries above ``threshold``
    returns : the number of these
    """
    count, K = 0, N.size
    indptr[0] = 0
    for t in range(R.shape[0]):
        log_scale = np.log(scale[t])
        for k in range(K):
            r = R[t, k]
            N[k] += weights[t] * r
            H[k] += log_scale * r
            if r > threshold:
                indices[count] = k
                values[count] = r
                count += 1
        indptr[t + 1] = count
    return count


@_jit
def subtract_energies(R, C, H):
    """H_k -= sum_t R_tk C_tk for R, C (n, Kp) and H (K,)."""
    for t in range(R.shape[0]):
        for k in range(H.size):
            H[k] -= R[t, k] * C[t, k]


@_jit
def add_rows(R, codes, sums):
    """Add row t of R (n, Kp) to row ``codes[t]`` of ``sums`` (U, Kp)."""
    for t in range(R.shape[0]):
        row = sums[codes[t]]
        for k in range(R.shape[1]):
            row[k] += R[t, k]
