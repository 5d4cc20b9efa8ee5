"""Posteriors of partitions of a few rows, enumerated."""

import numpy as np
from scipy.special import gammaln, logsumexp


def growth_strings(n):
    """All partitions of n rows as labels, each by first appearance."""
    strings = [[0]]
    for _ in range(n - 1):
        strings = [[*s, k] for s in strings for k in range(max(s) + 2)]
    return np.array(strings)


def log_prior(labels, allocation):
    """Log probability of a partition, row by row from the urn of its prior."""
    a = allocation.concentration
    d = getattr(allocation, "discount", 0.0)
    M = getattr(allocation, "n_clusters", None)
    seen, total = [], 0.0
    for n, k in enumerate(labels):
        K = len(seen)
        begin = a + d * K if M is None else a * (M - K) / M
        if k == K:
            total += np.log(begin / (n + a)) if begin > 0.0 else -np.inf
            seen.append(1)
        else:
            total += np.log((seen[k] - d if M is None else seen[k] + a / M) / (n + a))
            seen[k] += 1
    return total


def posterior(likelihood, allocation, T):
    """All partitions (P, n) of rows with features T (n, F), and their log joint probabilities without base measure (P,)."""
    labels = growth_strings(len(T))
    joint = []
    for z in labels:
        R = np.eye(z.max() + 1)[z]
        joint.append(log_prior(z, allocation) + likelihood.log_marginal(R.sum(axis=0), R.T @ T).sum())
    return labels, np.array(joint)


def probabilities(log_joint):
    """Normalised."""
    return np.exp(log_joint - logsumexp(log_joint))


def expected_distance(p, n):
    """Total variation that n independent draws have from p on average, by the normal approximation."""
    return 0.5 * np.sqrt(2.0 * p * (1.0 - p) / (np.pi * n)).sum()


def chinese_restaurant(sizes, concentration, discount):
    """Log probability of a partition under the two-parameter restaurant (Pitman 1995), for discount from 0 to 1."""
    K, n = len(sizes), sum(sizes)
    tables = sum(np.log(concentration + discount * j) for j in range(1, K))
    rise = gammaln(concentration + n) - gammaln(concentration + 1.0)
    return tables - rise + sum(gammaln(m - discount) - gammaln(1.0 - discount) for m in sizes)
