"""Classes of rows from the labels of rows near them: propagation over a graph of nearest neighbours."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..likelihoods import Labelled
from ..likelihoods.features import Rows

Array = NDArray[np.floating]

NEIGHBOURS = 7  # of a row, as in scikit-learn's LabelPropagation
BLOCK = 512  # rows whose divergences are looked at together
SWEEPS = 1000
SETTLED = 1e-6  # the most that a probability changes in the last sweep


def propagated(likelihood: Labelled, X: Rows, chances: Array) -> Array:
    """The probability of each class of rows X, given their labels and those of rows near them, (N, C).

    Rows n and m are neighbours where one is among the 7 nearest of the other, in the divergence of the family; P (N, N) has
    1 / (number of neighbours of n) for each neighbour of n.  What a row's neighbours say is the prior of its class, and its
    label, if it has one, the evidence:

        q_n(c) ~ (P q)_n(c) p(y_n | c),    p(y_n | c) = 1 - e if y_n = c, e / (C - 1) otherwise, 1 where y_n is unknown

    in sweeps from ``chances`` (N, C), which stay where no label is tied to a row.  With e = 0 this is the harmonic function
    of the graph with the labels as its boundary.

    References
    ----------
    Zhu, Ghahramani and Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions, 2003.
    """
    P = _walk(likelihood, X)
    codes = likelihood.classes_of(X)
    known = np.flatnonzero(codes >= 0)
    evidence = np.full((len(known), likelihood.n_classes), likelihood.error / max(likelihood.n_classes - 1, 1))
    evidence[np.arange(len(known)), codes[known]] = 1.0 - likelihood.error
    q = np.array(chances, np.float64)
    before = np.full(q.shape, np.inf)
    for _ in range(SWEEPS):
        if np.abs(q - before).max() <= SETTLED:
            break
        before = q
        q = P @ q
        said = q[known] * evidence
        total = said.sum(axis=1, keepdims=True)
        q[known] = np.where(total > 0.0, said / np.maximum(total, 1e-300), evidence)
    return q


def _walk(likelihood: Labelled, X: Rows) -> sparse.csr_array:
    """P, from each row to its neighbours alike, (N, N)."""
    n = X.shape[0]
    k = min(NEIGHBOURS, n - 1)
    nearest = np.zeros((n, k), np.intp)
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        apart = np.nan_to_num(likelihood.divergence(X[rows], X), nan=np.inf)
        apart[np.arange(len(rows)), rows] = np.inf  # no row is its own neighbour
        nearest[rows] = np.argpartition(apart, k - 1, axis=1)[:, :k]
    one_way = sparse.csr_array((np.ones(n * k), nearest.ravel(), np.arange(n + 1) * k), (n, n))
    either = one_way + one_way.T
    return sparse.diags_array(1.0 / np.maximum(either.sum(axis=1), 1.0)) @ either  # a single row has no neighbours
