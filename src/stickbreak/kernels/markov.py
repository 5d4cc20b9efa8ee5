"""Hidden Markov chains: forward and backward messages in the scaled linear domain, and the most probable path.

Rows are the steps of one or more sequences, one after another; ``first[t]`` says that a sequence begins at row t.  All
arrays have Kp columns, the states filled up with zeros to a multiple of `WIDTH`, so that inner loops are whole vectors.

A message waits for the one before, but not for those of other rows far away.  So a block is *lanes* of consecutive rows,
which go ahead step by step together, and the matrix of transitions is read once for every four.

A step's likelihoods are divided by the largest, so that this one is 1, and every log potential is at least -300.  Messages
are normalised to sum to one after each step.  Then every normaliser is at least exp(-300) / K, every sum of products of a
forward and a backward message at least exp(-600) / K, and nothing that counts can underflow.  A likelihood below exp(-650), or
a forward message below exp(-345), is less than what comes to the same state from any other, and is set to zero: arithmetic
on numbers near the smallest there are is slow.
"""

import numpy as np
from numpy.typing import NDArray

from ._jit import jit as _jit
from ._jit import part as _part
from ._jit import part_apart as _part_apart

Array = NDArray[np.floating]

WIDTH = 8
FLOOR = -300.0  # of log potentials
LEAST = -650.0  # of log likelihoods
NOTHING = np.exp(-345.0)  # of forward messages


@_part_apart
def times(x, A, y):
    """The product y of x (Kp,) with A (Kp, Kp): four rows of A at a time."""
    K = A.shape[0]
    for k in range(K):
        y[k] = 0.0
    for i in range(0, K, 4):
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        for k in range(K):
            y[k] += a * A[i, k] + b * A[i + 1, k] + c * A[i + 2, k] + d * A[i + 3, k]


@_part_apart
def _times_four(p, q, r, s, A, v, w, x, y):
    """The products v, w, x and y of p, q, r and s with A (Kp, Kp): rows of A are read once."""
    K = A.shape[0]
    for k in range(K):
        v[k] = 0.0
        w[k] = 0.0
        x[k] = 0.0
        y[k] = 0.0
    for i in range(0, K, 4):
        pi, pj, pm, pn = p[i], p[i + 1], p[i + 2], p[i + 3]
        qi, qj, qm, qn = q[i], q[i + 1], q[i + 2], q[i + 3]
        ri, rj, rm, rn = r[i], r[i + 1], r[i + 2], r[i + 3]
        si, sj, sm, sn = s[i], s[i + 1], s[i + 2], s[i + 3]
        for k in range(K):
            ik = A[i, k]
            jk = A[i + 1, k]
            mk = A[i + 2, k]
            nk = A[i + 3, k]
            v[k] += pi * ik + pj * jk + pm * mk + pn * nk
            w[k] += qi * ik + qj * jk + qm * mk + qn * nk
            x[k] += ri * ik + rj * jk + rm * mk + rn * nk
            y[k] += si * ik + sj * jk + sm * mk + sn * nk


@_part
def _times_rows(X, at, A, Y):
    """The products Y of rows ``at`` of X (n, Kp) with A (Kp, Kp)."""
    fours = at.size - at.size % 4
    for v in range(0, fours, 4):
        p, q, r, s = X[at[v]], X[at[v + 1]], X[at[v + 2]], X[at[v + 3]]
        _times_four(p, q, r, s, A, Y[v], Y[v + 1], Y[v + 2], Y[v + 3])
    for v in range(fours, at.size):
        times(X[at[v]], A, Y[v])


@_part
def _fill(row, value):
    for k in range(row.size):
        row[k] = value


@_part
def _longest(edges):
    longest = 0
    for i in range(edges.size - 1):
        length = edges[i + 1] - edges[i]
        if length > longest:
            longest = length
    return longest


@_part
def normalise(message):
    """Divide a forward message (Kp,) by its sum and set what is next to nothing to zero; the sum."""
    total = 0.0
    for k in range(message.size):  # in a loop of its own: see `jit`
        total += message[k]
    rescale = 1.0 / total
    for k in range(message.size):
        value = message[k] * rescale
        message[k] = value if value > NOTHING else 0.0
    return total


@_jit
def forward(L, codes, first, edges, start, A, alpha, scale):
    """Filtered probabilities p(z_t | x_1, ..., x_t) of a block of rows, alpha[t + i + 1] for row t of lane i.

    alpha_1 = start * L_1 / c_1,    alpha_t = (alpha_{t-1} A) * L_t / c_t                              (Thesis 6.3.3)

    L : (U, Kp) in: likelihoods;  codes : (n,) in: which of its rows each is;  first : (n,) bool, in
    edges : (lanes + 1,) in: where each lane begins, and n
    start : (Kp,), A : (Kp, Kp) in: exp(E[log pi_0]), exp(E[log pi])
    alpha : (n + lanes, Kp) in: alpha[edges[i] + i], of the row before each lane;  the others out
    scale : (n,) out: c_t
    """
    lanes = edges.size - 1
    K = L.shape[1]
    Y = np.empty((lanes, K))
    at = np.empty(lanes, np.int64)
    for step in range(_longest(edges)):
        for i in range(lanes):
            t = edges[i] + step
            at[i] = i + (t if t < edges[i + 1] else edges[i + 1])
        _times_rows(alpha, at, A, Y)
        for i in range(lanes):
            t = edges[i] + step
            if t >= edges[i + 1]:
                continue
            ahead = start if first[t] else Y[i]
            likelihood = L[codes[t]]
            message = alpha[t + i + 1]
            for k in range(K):
                message[k] = ahead[k] * likelihood[k]
            scale[t] = normalise(message)


@_part_apart
def combine(alpha, likelihood, beta, r, g):
    """Smoothed probabilities r of a row, and g = likelihood * beta, all (Kp,)."""
    for k in range(r.size):
        r[k] = alpha[k] * beta[k]
        g[k] = likelihood[k] * beta[k]
    total = 0.0
    for k in range(r.size):  # in a loop of its own: see `jit`
        total += r[k]
    rescale = 1.0 / total
    for k in range(r.size):
        r[k] *= rescale


@_part_apart
def hand_back(alpha, y, g, beta):
    """Scale g so that sum_jk alpha_j A_jk g_k = 1, and y = A g to the message ``beta`` to the row before, all (Kp,)."""
    both = 0.0
    total = 0.0
    for k in range(y.size):
        both += alpha[k] * y[k]
        total += y[k]
    both = 1.0 / both
    total = 1.0 / total
    for k in range(y.size):
        g[k] *= both
        beta[k] = y[k] * total


@_jit
def backward(L, codes, first, edges, At, alpha, beta, R, G):
    """Smoothed probabilities of a block of rows, and what the expected transitions are made of.

    With  g_t = L_t * beta_t,  beta_{t-1} = A g_t,  up to factors:   R_t = alpha_t * beta_t,   and   alpha_{t-1,j} A_jk G_tk
    is the probability of z_{t-1} = j and z_t = k, where G and alpha have their rows in the same order; zero where a sequence
    begins, and after each lane.

    L, codes, first, edges : see `forward`;  At : (Kp, Kp) in: A transposed
    alpha : (n + lanes, Kp) in: see `forward`
    beta : (lanes, Kp) in: backward messages to each lane's last row, out: those to the row before it; each sums to one
    R : (n, Kp), G : (n + lanes, Kp) out
    """
    lanes = edges.size - 1
    K = L.shape[1]
    Y = np.empty((lanes, K))
    at = np.empty(lanes, np.int64)
    for i in range(lanes):
        at[i] = 0
        _fill(G[edges[i + 1] + i], 0.0)
    for step in range(_longest(edges)):
        for i in range(lanes):
            t = edges[i + 1] - 1 - step
            if t < edges[i]:
                continue
            at[i] = t + i
            combine(alpha[t + i + 1], L[codes[t]], beta[i], R[t], G[t + i])
        _times_rows(G, at, At, Y)
        for i in range(lanes):
            t = edges[i + 1] - 1 - step
            if t < edges[i]:
                continue
            if first[t]:
                _fill(G[t + i], 0.0)
                _fill(beta[i], 1.0 / K)
            else:
                hand_back(alpha[t + i], Y[i], G[t + i], beta[i])


@_part
def advance(score, A, fresh, back):
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
            best = 0
            for k in range(1, K):
                if score[k] > score[best]:
                    best = k
            for k in range(K):
                back[t, k] = best
            for k in range(K):
                score[k] = start[k] + C[t, k]
            continue
        advance(score, A, fresh, back[t])
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
def draw_path(alpha, At, first, uniform, after, path):
    """Draw the states of a block of rows, the last row first, and return the state that decides on the row before the block.

    p(z_t = j | z_{t+1} = k, x)  proportional to  alpha_tj A_jk                                       (Fox et al. 2011, Alg. 3)

    alpha : (n, Kp) in: filtered probabilities (`forward`);  At : (Kp, Kp) in: A transposed
    first : (n,) bool, in;  uniform : (n,) in: random numbers
    after : the state of the row after the block, -1 where no row of the same sequence follows
    path : (n,) out
    """
    K = alpha.shape[1]
    chances = np.empty(K)
    for t in range(path.size - 1, -1, -1):
        for k in range(K):
            chances[k] = alpha[t, k] if after < 0 else alpha[t, k] * At[after, k]
        total = 0.0
        for k in range(K):
            total += chances[k]
        left = uniform[t] * total
        after = -1
        for k in range(K):
            if chances[k] > 0.0:
                after = k
                left -= chances[k]
                if left < 0.0:
                    break
        path[t] = after
        if first[t]:
            after = -1
    return after


@_jit
def shift_rows(C, bias, weights, out, least, top):
    """Scores ``weights[t] (C[t] + bias)`` of rows, less the largest of each row, and the same but at least `LEAST`.

    C : (n, K), bias : (K,), weights : (n,) in;  out, least : (n, Kp), `LEAST` in the columns that fill up;  top : (n,) out
    """
    n, K = C.shape
    for t in range(n):
        weight = weights[t]
        best = -np.inf
        for k in range(K):
            value = weight * (C[t, k] + bias[k])
            out[t, k] = value
            best = value if value > best else best
        top[t] = best
        for k in range(K):
            value = out[t, k] - best
            out[t, k] = value
            least[t, k] = value if value > LEAST else LEAST
        for k in range(K, out.shape[1]):
            out[t, k] = LEAST
            least[t, k] = LEAST


@_jit
def clear_least(L):
    """Set what is exp(`LEAST`) to zero in L (n, Kp)."""
    smallest = 1.5 * np.exp(LEAST)
    for t in range(L.shape[0]):
        for k in range(L.shape[1]):
            L[t, k] = L[t, k] if L[t, k] > smallest else 0.0


@_jit
def compress(R, threshold, indptr, indices, values):
    """Responsibilities R (n, K) as compressed sparse rows.

    indptr : (n + 1,), indices, values : (n K,) out: the entries above ``threshold``
    returns : the number of these
    """
    count = 0
    indptr[0] = 0
    for t in range(R.shape[0]):
        for k in range(R.shape[1]):
            r = R[t, k]
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
