"""Chains of states that are left with a chance of their own at each age: messages in the scaled linear domain.

A state has the age 0 in its first row, then 1, 2, ..., D - 1, and stays at that.  At age j it is left with the chance
``hazards[k, j]``, and where it goes does not depend on how long it has lasted: a step takes K^2 + K D products, not (K D)^2.

Likelihoods are those of `stickbreak.kernels.markov`, the largest of each row 1.  Every state can be reached from any, so
nothing that counts can underflow; what is next to nothing is set to zero, since arithmetic on the smallest numbers is slow.
"""

import numpy as np

from ._jit import jit as _jit
from ._jit import part as _part

NOTHING = 1e-100  # of messages


@_part
def _scaled(message):
    """Divide a message (K, D) by its sum, and set what is next to nothing to zero; the sum."""
    K, D = message.shape
    total = 0.0
    for k in range(K):
        for j in range(D):
            total += message[k, j]
    rescale = 1.0 / total
    for k in range(K):
        for j in range(D):
            value = message[k, j] * rescale
            message[k, j] = value if value > NOTHING else 0.0
    return total


@_part
def _left(message, hazards, leaving):
    """The mass that leaves each state (K,) of a message (K, D)."""
    K, D = message.shape
    for k in range(K):
        total = 0.0
        for j in range(D):
            total += message[k, j] * hazards[k, j]
        leaving[k] = total


@_part
def _step(before, row, hazards, after, leaving, entered, message):
    """The forward message (K, D) of a row from that of the row before, not scaled."""
    K, D = hazards.shape
    _left(before, hazards, leaving)
    for k in range(K):
        entered[k] = 0.0
    for i in range(K):
        mass = leaving[i]
        for k in range(K):
            entered[k] += mass * after[i, k]
    for k in range(K):
        likelihood = row[k]
        message[k, 0] = entered[k] * likelihood
        for j in range(1, D):
            message[k, j] = before[k, j - 1] * (1.0 - hazards[k, j - 1]) * likelihood
        message[k, D - 1] += before[k, D - 1] * (1.0 - hazards[k, D - 1]) * likelihood


@_jit
def forward_ages(L, codes, first, begins, hazards, after, alpha, scale):
    """Filtered probabilities of states and ages, alpha[t, k, j] = p(z_t = k at age j | x_1, ..., x_t).

    L : (U, Kp) in: likelihoods;  codes : (n,) in: which of its rows each is;  first : (n,) bool, in: whether a sequence begins
    begins : (K, D) in: chances of first states and their ages;  hazards : (K, D) in: of leaving a state
    after : (K, K) in: of the next state, zero on the diagonal
    alpha : (n, K, D) out;  scale : (n,) out: the sums before messages are scaled
    """
    K, D = hazards.shape
    leaving = np.empty(K)
    entered = np.empty(K)
    for t in range(codes.size):
        row = L[codes[t]]
        message = alpha[t]
        if first[t]:
            for k in range(K):
                for j in range(D):
                    message[k, j] = begins[k, j] * row[k]
        else:
            _step(alpha[t - 1], row, hazards, after, leaving, entered, message)
        scale[t] = _scaled(message)


@_part
def _combined(message, beta, r):
    """The probability r (K,) of each state of a row, from the messages (K, D) forward and back; their sum before scaling."""
    K, D = message.shape
    for k in range(K):
        state = 0.0
        for j in range(D):
            state += message[k, j] * beta[k, j]
        r[k] = state
    total = 0.0
    for k in range(K):
        total += r[k]
    rescale = 1.0 / total
    for k in range(K):
        r[k] *= rescale
    return total


@_part
def _begun(message, beta, total, begun):
    """Add the probabilities (K, D) of the first row of a sequence, and make ``beta`` that to the row before."""
    K, D = message.shape
    rescale = 1.0 / total
    for k in range(K):
        for j in range(D):
            begun[k, j] += message[k, j] * beta[k, j] * rescale
            beta[k, j] = 1.0


@_part
def _handed_back(row, hazards, after, beta, ahead, out):
    """The message ``beta`` (K, D) to the row before, of what is ``ahead`` (K, D), and of leaving each state, ``out`` (K,)."""
    K, D = hazards.shape
    for k in range(K):
        likelihood = row[k]
        for j in range(D):
            ahead[k, j] = likelihood * beta[k, j]
    for k in range(K):
        total = 0.0
        for i in range(K):
            total += after[k, i] * ahead[i, 0]
        out[k] = total
    for k in range(K):
        leave = out[k]
        for j in range(D):
            beta[k, j] = hazards[k, j] * leave + (1.0 - hazards[k, j]) * ahead[k, min(j + 1, D - 1)]


@_part
def _expected(before, hazards, after, beta, ahead, out, left, stayed, moved, leaving):
    """Add what is expected of a step, from the messages to the row before: see `backward_ages`."""
    K, D = hazards.shape
    both = 0.0
    for k in range(K):
        for j in range(D):
            both += before[k, j] * beta[k, j]
    both = 1.0 / both
    for k in range(K):
        leave = out[k] * both
        for j in range(D):
            left[k, j] += before[k, j] * hazards[k, j] * leave
            stayed[k, j] += before[k, j] * (1.0 - hazards[k, j]) * ahead[k, min(j + 1, D - 1)] * both
    _left(before, hazards, leaving)
    for k in range(K):
        mass = leaving[k] * both
        for i in range(K):
            moved[k, i] += mass * after[k, i] * ahead[i, 0]


@_jit
def backward_ages(L, codes, first, hazards, after, alpha, R, left, stayed, moved, begun):
    """What is expected of states and ages, given all rows.

    L, codes, first, hazards, after, alpha : see `forward_ages`
    R : (n, K) out: the probability of each state
    left, stayed : (K, D) in and out: how often a state is left at each age, and how often not, are added
    moved : (K, K), begun : (K, D) in and out: the same of pairs of states, one after the other, and of first states and ages
    """
    K, D = hazards.shape
    beta = np.ones((K, D))
    ahead = np.empty((K, D))
    out = np.empty(K)
    leaving = np.empty(K)
    for t in range(codes.size - 1, -1, -1):
        total = _combined(alpha[t], beta, R[t])
        if first[t]:
            _begun(alpha[t], beta, total, begun)
            continue
        _handed_back(L[codes[t]], hazards, after, beta, ahead, out)
        _expected(alpha[t - 1], hazards, after, beta, ahead, out, left, stayed, moved, leaving)
        _scaled(beta)
