"""The classes of clusters, also of those without labels: by the clusters that they overlap with."""

import numpy as np
from numpy.typing import NDArray

from ..likelihoods import Labelled
from ..likelihoods.linked import of_rows
from .local import responsibilities_of
from .model import Model
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]

ROWS = 200  # drawn from a cluster
MOST_ROWS = 20_000  # drawn from all
FEWEST_ROWS = 20
LEAK = 1e-12  # of the rows of a cluster: what ties it to the nearest where no rows do


def cluster_classes(model: Model, summary: Summary) -> Array:
    """The probability of each class in each cluster of a model with labels, (K, C).

    That is the posterior where it has a class above one half.  The labels of other clusters, if they have any, do not say:
    their classes follow from the clusters that they overlap with.  With a_kj the rows that k and j share (`shared_rows`),

        q_k = sum_j a_kj q_j / sum_j a_kj

    for all of them together, as in the propagation of labels over a graph, here of clusters.

    References
    ----------
    Zhu, Ghahramani and Lafferty, Semi-supervised learning using Gaussian fields and harmonic functions, 2003.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, Labelled)
    q = likelihood.class_posterior(summary.S).copy()
    named = q.max(axis=1) > 0.5
    if named.all() or not named.any():
        return q
    a = shared_rows(likelihood, summary)[~named]
    a += LEAK * np.maximum(summary.N[~named, None], 1.0) * _to_nearest(model, summary, named)
    a /= a.sum(axis=1, keepdims=True)
    found = np.linalg.solve(np.eye(len(a)) - a[:, ~named], a[:, named] @ q[named])
    q[~named] = np.maximum(found, 0.0)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def shared_rows(likelihood: Labelled, summary: Summary) -> Array:
    """The expected sum over rows of r_nk r_nj, for each pair of clusters, (K, K) with zeros on the diagonal.

    The expectation is under the predictive densities of the clusters, by rows drawn from each, always the same; zero for
    families that do not describe all columns, from which no rows can be drawn.  Where rows come in groups it is of single rows.
    """
    N = summary.N
    K = len(N)
    shared = np.zeros((K, K))
    if not likelihood.family.describes(likelihood.n_columns).all():
        return shared
    single = of_rows(likelihood)
    W, b = single.weights(N, summary.S)
    with np.errstate(divide="ignore"):
        parameters = Parameters(W, b + np.log(N / N.sum()))
    rng = np.random.default_rng(0)
    size = min(ROWS, max(FEWEST_ROWS, MOST_ROWS // K))
    for k in range(K):
        R = responsibilities_of(single, parameters, single.sample(float(N[k]), summary.S[k], rng, size))
        shared += N[k] / size * (R.T @ R)
    np.fill_diagonal(shared, 0.0)
    return shared


def _to_nearest(model: Model, summary: Summary, named: NDArray[np.bool_]) -> Array:
    """One for the nearest of the named clusters to each of the others, under which its rows lose least, (J, K), else zero."""
    distance = model.posterior(summary.without_local()).divergences[np.ix_(~named, named)]
    nearest = np.zeros((len(distance), len(named)))
    nearest[np.arange(len(distance)), np.flatnonzero(named)[distance.argmin(axis=1)]] = 1.0
    return nearest
