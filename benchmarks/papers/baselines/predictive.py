"""The predictive density of a sampler: an average over partitions."""

import numpy as np
from scipy.special import logsumexp

from stickbreak.likelihoods import Likelihood
from stickbreak.likelihoods.features import features


def log_predictive(
    likelihood: Likelihood, X: np.ndarray, partitions: np.ndarray, Y: np.ndarray, concentration: float = 1.0
) -> np.ndarray:
    """Log density (n,) of each of rows Y as the next after rows X (N, D), by the mean over partitions (M, N)

        p(y | partition) = sum_k N_k / (N + c) p(y | rows of k) + c / (N + c) p(y)

    (Blei and Jordan 2006, Eq. 25 and the end of section 4.1).
    """
    T = np.asarray(features(likelihood, X))
    scores = []
    for partition in partitions:
        members = np.eye(partition.max() + 2)[partition]  # the last cluster is a new one
        N = members.sum(axis=0)
        chances = np.append(N[:-1], concentration) / (N.sum() + concentration)
        scores.append(logsumexp(likelihood.log_predictive(Y, N, members.T @ T), b=chances, axis=1))
    return np.asarray(logsumexp(scores, axis=0) - np.log(len(scores)))
