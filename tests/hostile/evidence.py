"""The exact log evidence of a mixture of a few rows, by enumeration of all partitions."""

import numpy as np
from scipy import sparse
from scipy.special import gammaln, logsumexp

from stickbreak.allocations import FiniteDirichlet
from stickbreak.likelihoods.features import features


def partitions(n):
    """Every partition of n rows as labels in order of appearance."""
    if n == 0:
        return [()]
    return [(*z, k) for z in partitions(n - 1) for k in range(len(set(z)) + 1)]


def log_rise(prior, count):
    """log Gamma(prior + count) - log Gamma(prior) for a whole count, whatever the size of the prior."""
    return np.log(prior + np.arange(count)).sum()


def log_prior(allocation, N):
    """log p(partition into blocks of sizes N)."""
    gamma = allocation.concentration
    total = -log_rise(gamma, N.sum())
    if not isinstance(allocation, FiniteDirichlet):
        d = getattr(allocation, "discount", 0.0)
        return total + np.log(gamma + d * np.arange(len(N))).sum() + sum(log_rise(1.0 - d, count - 1) for count in N)
    n, share = allocation.n_clusters, gamma / allocation.n_clusters
    return total + gammaln(n + 1) - gammaln(n - len(N) + 1) + sum(log_rise(share, count) for count in N)


def log_evidence(model, X):
    """log p(X) = log sum over partitions of p(partition) prod over blocks of p(rows of the block)."""
    T = features(model.likelihood, X)
    T = T.toarray() if sparse.issparse(T) else T
    terms = []
    for z in partitions(len(X)):
        R = np.eye(max(z) + 1)[list(z)]
        N = R.sum(axis=0)
        if len(N) <= model.allocation.max_clusters:
            terms.append(log_prior(model.allocation, N) + model.likelihood.log_marginal(N, R.T @ T).sum())
    return logsumexp(terms) + model.likelihood.log_base(X).sum()
