"""Messages of hidden Markov chains through phrases: one step for many rows (see `stickbreak.model.phrases`).

What rows do to forward messages is a product of matrices, and so it is known for a phrase before it is met.  Messages and
likelihoods are scaled as in `stickbreak.kernels.markov`, and matrices of phrases so that their largest entry is 1.  The
largest entry of each row of such a matrix is at least exp(-300), since one transition leads to the best path through the
phrase; so what is below exp(-650) there is less than what comes to the same state from any other, too.
"""

import numpy as np

from ._jit import jit as _jit
from .markov import LEAST, advance, combine, hand_back, normalise, times
from .vectors import place_of_largest

_SMALLEST = np.exp(LEAST)  # of matrices


@_jit
def forward_symbols(L, symbols, first, start, A, B, alpha, scale):
    """Filtered probabilities after each of n symbols, alpha[t + 1] after symbol t, from alpha[0].

    L : (U, Kp) in: likelihoods of rows, symbols 0, ..., U - 1;  B : (P, Kp, Kp) in: matrices of phrases, symbols U, ...
    symbols : (n,) in;  first : (n,) bool, in: whether a sequence begins with the symbol, which then is a row
    start : (Kp,), A : (Kp, Kp) in: see `stickbreak.kernels.markov.forward`
    alpha : (n + 1, Kp) in: alpha[0];  the others out;  scale : (n,) out: what each message was divided by
    """
    U = L.shape[0]
    K = L.shape[1]
    ahead = np.empty(K)
    for t in range(symbols.size):
        symbol = symbols[t]
        message = alpha[t + 1]
        if symbol >= U:
            times(alpha[t], B[symbol - U], message)
        else:
            if first[t]:
                for k in range(K):
                    ahead[k] = start[k]
            else:
                times(alpha[t], A, ahead)
            row = L[symbol]
            for k in range(K):
                message[k] = ahead[k] * row[k]
        scale[t] = normalise(message)


@_jit
def backward_symbols(L, symbols, first, At, Bt, alpha, beta, counts, begins, G):
    """Backward messages, the smoothed probabilities of rows, and what those of transitions are made of.

    For a symbol that is a row,  g = L * beta  and  alpha_{t,j} A_jk G_tk  is the probability of states j before it and k at it.
    For a phrase with the matrix B, it is  alpha_{t,j} B_jk G_tk,  of state k at its last row.  G_t is zero where a sequence
    begins.

    L, symbols, first : see `forward_symbols`;  alpha : (n + 1, Kp) in
    At : (Kp, Kp), Bt : (P, Kp, Kp) in: A and B transposed
    beta : (Kp,) in: the message to the last row from those after it, sums to one; out: that to the row before the first
    counts : (U, Kp), begins : (Kp,) to which the probabilities of rows, and of first rows, are added;  G : (n, Kp) out
    """
    U = L.shape[0]
    K = L.shape[1]
    smooth = np.empty(K)
    before = np.empty(K)
    for t in range(symbols.size - 1, -1, -1):
        symbol = symbols[t]
        g = G[t]
        if symbol >= U:
            for k in range(K):
                g[k] = beta[k]
            times(g, Bt[symbol - U], before)
        else:
            combine(alpha[t + 1], L[symbol], beta, smooth, g)
            own = counts[symbol]
            for k in range(K):
                own[k] += smooth[k]
            if first[t]:
                for k in range(K):
                    begins[k] += smooth[k]
                    g[k] = 0.0
                    beta[k] = 1.0 / K
                continue
            times(g, At, before)
        hand_back(alpha[t], before, g, beta)


@_jit
def scale_matrix(B, Bt):
    """Divide B (Kp, Kp) by its largest entry, set what is next to nothing to zero, and transpose it into Bt; the entry."""
    K = B.shape[0]
    largest = 0.0
    for j in range(K):
        for k in range(K):
            largest = max(largest, B[j, k])
    rescale = 1.0 / largest
    for j in range(K):
        for k in range(K):
            value = B[j, k] * rescale
            B[j, k] = value if value > _SMALLEST else 0.0
    for j in range(K):
        for k in range(K):
            Bt[k, j] = B[j, k]
    return largest


@_jit
def best_between(left, right, best, middle):
    """The score best[j, k] = max_i left[j, i] + right[i, k] of the best path through two symbols, and its state i.

    left, right : (K, K) in;  best : (K, K), middle : (K, K) int16 out
    """
    for j in range(left.shape[0]):
        advance(left[j], right, best[j], middle[j])


@_jit
def best_symbols(C, symbols, first, start, A, best, back):
    """Forward half of the Viterbi algorithm on symbols: the best state before each, for every state at its last row.

    C : (U, K) in: log likelihoods of rows;  best : (P, K, K) in: scores of the best paths through phrases (`best_between`)
    symbols, first : see `forward_symbols`;  start : (K,), A : (K, K) in: log potentials
    back : (n, K) int16, out: where a sequence begins, the state in which the one before ends
    returns : the best state at the last row
    """
    U, K = C.shape
    score = np.zeros(K)
    fresh = np.empty(K)
    for t in range(symbols.size):
        symbol = symbols[t]
        if symbol >= U:
            advance(score, best[symbol - U], fresh, back[t])
            for k in range(K):
                score[k] = fresh[k]
            continue
        if first[t]:
            back[t] = place_of_largest(score)
            for k in range(K):
                fresh[k] = start[k]
        else:
            advance(score, A, fresh, back[t])
        for k in range(K):
            score[k] = fresh[k] + C[symbol, k]
    return place_of_largest(score)


@_jit
def follow_symbols(parts, sizes, middle, symbols, back, state, path):
    """The state of every row on the path that is in ``state`` at the last one.

    parts : (P, 2) in: the symbols of each phrase;  sizes : (U + P,) in: the rows of each symbol
    middle : (P, K, K) int16, in: see `best_between`;  back : (n, K) int16, in;  path : (T,) out
    """
    U = sizes.size - parts.shape[0]
    waiting = np.empty((parts.shape[0] + 1, 4), np.int64)  # symbol, state before it, state at its last row, that row
    row = path.size - 1
    for t in range(symbols.size - 1, -1, -1):
        before = back[t, state]
        waiting[0, 0] = symbols[t]
        waiting[0, 1] = before
        waiting[0, 2] = state
        waiting[0, 3] = row
        n = 1
        while n > 0:
            n -= 1
            symbol = waiting[n, 0]
            a = waiting[n, 1]
            b = waiting[n, 2]
            last = waiting[n, 3]
            if symbol < U:
                path[last] = b
                continue
            left = parts[symbol - U, 0]
            right = parts[symbol - U, 1]
            i = middle[symbol - U, a, b]
            waiting[n, 0] = left
            waiting[n, 1] = a
            waiting[n, 2] = i
            waiting[n, 3] = last - sizes[right]
            waiting[n + 1, 0] = right
            waiting[n + 1, 1] = i
            waiting[n + 1, 2] = b
            waiting[n + 1, 3] = last
            n += 2
        row -= sizes[symbols[t]]
        state = before
