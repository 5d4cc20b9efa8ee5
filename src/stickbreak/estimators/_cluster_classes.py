"""The classes of clusters, also of those without labels: by where their rows would go, were it not for them."""

import numpy as np
from numpy.typing import NDArray

from ..likelihoods import Labelled
from ..model import Model, Parameters, Summary
from ..model.local import responsibilities_of

Array = NDArray[np.floating]

ROWS = 200  # drawn from a cluster
MOST_ROWS = 20_000  # drawn from all
FEWEST_ROWS = 20
LEAK = 1e-6  # of what is between a cluster and others: it ties clusters that nothing else does


def cluster_classes(model: Model, summary: Summary) -> Array:
    """The probability of each class in each cluster of a model with labels, (K, C).

    That is the posterior where it has a class above one half.  The labels of other clusters, if they have any, do not say:
    their classes follow from the clusters that they overlap with.  With a_kj the expected rows of cluster k that would be
    those of j if k were not there, and of j that would be those of k (`overlaps`),

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
    a = overlaps(likelihood, summary)[~named]
    a += LEAK * _to_nearest(model, summary, named) * (a.sum(axis=1, keepdims=True) + LEAK)
    a /= a.sum(axis=1, keepdims=True)
    found = np.linalg.solve(np.eye(len(a)) - a[:, ~named], a[:, named] @ q[named])
    q[~named] = np.maximum(found, 0.0)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def overlaps(likelihood: Labelled, summary: Summary) -> Array:
    """The rows that two clusters would give to each other, were one of them not there, (K, K) with zeros on the diagonal.

    These are expectations under the predictive densities of the clusters, from rows drawn from each, always the same; zero for
    families that do not describe all columns, of which no rows can be drawn.
    """
    N = summary.N
    K = len(N)
    given = np.zeros((K, K))
    if K < 2 or not likelihood.family.describes(likelihood.n_columns).all():
        return given
    W, b = likelihood.weights(N, summary.S)
    with np.errstate(divide="ignore"):
        bias = b + np.log(N / N.sum())
    rng = np.random.default_rng(0)
    size = min(ROWS, max(FEWEST_ROWS, MOST_ROWS // K))
    for k in range(K):
        others = np.delete(np.arange(K), k)
        rows = likelihood.sample(float(N[k]), summary.S[k], rng, size)
        given[k, others] = N[k] * responsibilities_of(likelihood, Parameters(W[others], bias[others]), rows).mean(
            axis=0
        )
    return np.asarray(given + given.T)


def _to_nearest(model: Model, summary: Summary, named: NDArray[np.bool_]) -> Array:
    """One for the nearest of the named clusters to each of the others, under which its rows lose least, (J, K), else zero."""
    distance = model.posterior(summary.without_local()).divergences[np.ix_(~named, named)]
    nearest = np.zeros((len(distance), len(named)))
    nearest[np.arange(len(distance)), np.flatnonzero(named)[distance.argmin(axis=1)]] = 1.0
    return nearest
