"""Simple ways to another model in the same bound, which a default fit should never lose to.

All keep the prior of the fit, hyperparameters scaled from the data included, so that bounds are comparable.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.exceptions import ConvergenceWarning

from stickbreak import DataWarning, Mixture
from stickbreak.likelihoods import Likelihood

REFITTED, LAPS = 4, 30  # levels of the agglomeration with the highest estimates, and laps for each
SOFT = 20_000_000  # responsibilities; of more, the most probable clusters alone


def fitted(X: Any, likelihood: Any, **parameters: Any) -> Mixture:
    """A mixture fitted to X, converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return Mixture(likelihood, **parameters).fit(X)


@dataclass(frozen=True)
class Rival:
    """Other fits to the data of a fit, at its prior.

    fit : a fitted mixture
    X : the data it was fitted to
    """

    fit: Mixture
    X: Any

    def bound(self, **parameters: Any) -> float:
        """The ELBO of another fit.

        Raises
        ------
        ValueError : its prior is another one.
        """
        model, seed, n_jobs = self.fit.model_, self.fit.random_state, self.fit.n_jobs
        other = fitted(
            self.X, model.likelihood, allocation=model.allocation, random_state=seed, n_jobs=n_jobs, **parameters
        )
        same = other.model_.bound(self.fit.summary_)
        if not np.isclose(same, self.fit.lower_bound_, rtol=1e-12):
            raise ValueError(
                f"at the prior of a rival the fit has a bound of {same} instead of {self.fit.lower_bound_}"
            )
        return float(other.lower_bound_)

    def seeded(self, K: int) -> float:
        """From K distant rows, with merges and deletes."""
        return self.bound(init="k-means++", n_init_clusters=K, moves=("merge", "delete"))

    def agglomerated(self) -> float:
        """The best of the models that the clusters of the fit become when they are joined one by one.

        The levels with the highest estimates are fitted for a few laps, and those with one and two clusters fewer.  One cluster
        is itself.
        """
        likelihood, summary = self.fit.model_.likelihood, self.fit.summary_
        groups, estimates = joined(likelihood, summary.N, summary.S)
        best = set(np.argsort(-estimates)[:REFITTED]) | set(range(min(2, len(groups))))
        bounds = [self.bound(init=self._assigned(groups[i]), moves=(), max_laps=LAPS) for i in sorted(best)]
        return max(bounds, default=self.fit.lower_bound_)

    def _assigned(self, group: np.ndarray) -> np.ndarray:
        """Responsibilities (N, J) of groups of clusters, or labels (N,) where these are too many numbers."""
        if len(self.fit.labels_) * len(group) > SOFT:
            return group[self.fit.labels_]
        members = group[:, None] == np.unique(group)
        return self.fit.predict_proba(self.X) @ members


def joined(likelihood: Likelihood, N: np.ndarray, S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join clusters with counts N (K,) and statistics S (K, F) until one is left, always the two with the highest gain

        logZ(a and b) - logZ(a) - logZ(b) + n log n - n_a log n_a - n_b log n_b,   n = n_a + n_b,

    which may be a loss.

    Returns
    -------
    groups : (K - 1, K) the number of the group of each cluster after the first join, the second, ...
    estimates : (K - 1,) the sum of the gains so far
    """
    N, S, K = N.copy(), S.copy(), len(N)
    group, groups, gains = np.arange(K), [], []
    alone = likelihood.log_marginal(N, S) + xlogy(N, N)
    table = np.full((K, K), -np.inf)
    for a in range(K):
        table[a, a + 1 :] = _gains(likelihood, N, S, alone, a, np.arange(a + 1, K))
    for _ in range(K - 1):
        a, b = np.unravel_index(table.argmax(), table.shape)
        gains.append(table[a, b])
        group[group == b] = a
        groups.append(group.copy())
        N[a], S[a] = N[a] + N[b], S[a] + S[b]
        alone[a] = (likelihood.log_marginal(N[a : a + 1], S[a : a + 1]) + xlogy(N[a], N[a]))[0]
        table[b], table[:, b] = -np.inf, -np.inf
        rest = np.setdiff1d(group, [a])
        both = _gains(likelihood, N, S, alone, int(a), rest)
        table[np.minimum(a, rest), np.maximum(a, rest)] = both
    return np.array(groups, dtype=np.intp).reshape(-1, K), np.cumsum(gains)


def _gains(
    likelihood: Likelihood, N: np.ndarray, S: np.ndarray, alone: np.ndarray, a: int, others: np.ndarray
) -> np.ndarray:
    """What joining cluster a with each of the others gains, (n,); ``alone`` is logZ + n log n of each cluster."""
    n = N[a] + N[others]
    return likelihood.log_marginal(n, S[a] + S[others]) + xlogy(n, n) - alone[a] - alone[others]


def baselines(fit: Mixture, X: Any, truth: np.ndarray) -> dict[str, float]:
    """ELBOs of simple rivals of a fit to X; ``truth`` are the labels (N,) of the rows."""
    rival, K = Rival(fit, X), len(np.unique(truth))
    return {
        "truth": rival.bound(init=truth, moves=()),
        "truth on": rival.bound(init=truth),
        "one": rival.bound(init="one", moves=()),
        "K/2 seeds": rival.seeded(max(1, K // 2)),
        "K seeds": rival.seeded(K),
        "2K seeds": rival.seeded(2 * K),
        "itself": rival.bound(init=fit),
        "joined": rival.agglomerated(),
    }
