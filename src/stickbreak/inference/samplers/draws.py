"""The draws of a sampler: partitions of the rows, what they agree on, and whether the chains have converged."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._arguments import shown
from ...kernels.seating import pairs_together, together

Array = NDArray[np.floating]
Labels = NDArray[np.int32]

SCALARS = ("n_clusters", "concentration", "log_joint")
MOST = 500  # draws that are compared with each other
COMPARISONS = 1e9  # of the labels of rows, at most


class Convergence(NamedTuple):
    """What the chains say of a quantity together.

    r_hat : how much wider all chains are than each of them, near 1 where they agree
    ess_bulk, ess_tail : the number of independent draws that would tell as much of its middle, and of its tails
    """

    r_hat: float
    ess_bulk: float
    ess_tail: float


class Draws(Mapping[str, NDArray[Any]]):
    """Draws from the posterior of partitions, by name.

    | name | what | shape |
    |---|---|---|
    | "labels" | the cluster of each row, numbered by first appearance: equal partitions, equal labels | (chains, draws, N) |
    | "n_clusters" | clusters that have rows | (chains, draws) |
    | "concentration" | that of the prior; of sequences gamma, of the shares of states | (chains, draws) |
    | "log_joint" | log p(X, partition), parameters and weights integrated out, in nats | (chains, draws) |

    The "log_joint" of sequences is log p(X, states | shares), transitions and parameters integrated out: shares are drawn.
    """

    def __init__(self, labels: Labels, n_clusters: NDArray[np.int32], concentration: Array, log_joint: Array) -> None:
        self._arrays: dict[str, NDArray[Any]] = {
            "labels": labels,
            "n_clusters": n_clusters,
            "concentration": concentration,
            "log_joint": log_joint,
        }

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        chains, draws, N = self["labels"].shape
        return f"Draws of {N} rows: {chains} chains of {draws} draws"

    def co_clustering(self, rows: Any = None) -> Array:
        """The share of the draws in which two rows are in the same cluster, (n, n).

        Parameters
        ----------
        rows : array (n,) of row numbers, default all rows

        Raises
        ------
        MemoryError
            If memory has no room for n x n numbers: ask for fewer rows.
        """
        from ..memory import check_room  # which knows of searches, and these of draws

        labels = self._partitions()
        chosen = labels if rows is None else labels[:, np.asarray(rows)]
        M, n = chosen.shape
        check_room(8.0 * n * n, f"the probabilities of {n:,} x {n:,} pairs of rows", "ask for fewer rows")
        counts = np.empty((n, n))
        together(np.ascontiguousarray(chosen.T), counts)
        counts /= M
        return counts

    def nearest_partition(self) -> NDArray[np.int64]:
        """The drawn partition nearest to the co-clustering probabilities p_ij, as labels (N,) by decreasing size.

        It has the least sum over pairs of rows of (1[same cluster] - p_ij)^2 (Dahl 2006), which is Binder's loss (1978) with
        equal costs.  The probabilities are those of at most 500 draws, fewer of many rows, spread evenly over the chains; as

            sum_ij 1[same in m] p_ij = (1 / M) sum_m' |pairs together in m and in m'|,

        no matrix of pairs of rows is made.
        """
        labels = self._partitions()
        N = labels.shape[1]
        n_used = int(min(len(labels), MOST, max(2.0, np.sqrt(2.0 * COMPARISONS / N))))
        used = labels[np.unique(np.linspace(0, len(labels) - 1, n_used).astype(np.intp))]
        K = int(used.max()) + 1
        scratch = np.empty((K, K), np.int64)
        M = len(used)
        pairs = np.empty((M, M))
        for a in range(M):
            for b in range(a, M):
                pairs[a, b] = pairs[b, a] = pairs_together(used[a], used[b], scratch)
        loss = np.diagonal(pairs) - 2.0 * pairs.mean(axis=1)
        return by_size(used[int(loss.argmin())])

    def convergence(self) -> dict[str, Convergence]:
        """R-hat and effective sample sizes of "n_clusters", "log_joint", and "concentration" where it varies, by ArviZ.

        Raises
        ------
        ImportError
            If ArviZ is absent: ``pip install "stickbreak[diagnostics]"``.

        References
        ----------
        Vehtari et al., *Rank-normalization, folding, and localization: an improved R-hat*, 2021.
        """
        arviz = _arviz()
        found = {}
        for name in SCALARS:
            values = np.asarray(self[name], dtype=np.float64)
            if np.ptp(values) > 0.0:
                bulk = arviz.ess(values, method="bulk")
                found[name] = Convergence(
                    float(arviz.rhat(values)), float(bulk), float(arviz.ess(values, method="tail"))
                )
        return found

    def autocorrelation(self, name: str = "n_clusters", n_lags: int = 100) -> Array:
        """Autocorrelation of a quantity along each chain, by ArviZ, (chains, lags), that at lag 0 first (BJ Figure 5).

        Parameters
        ----------
        name : "n_clusters", "log_joint" or "concentration"
        n_lags : at most as many as there are draws

        Raises
        ------
        ImportError
            If ArviZ is absent: ``pip install "stickbreak[diagnostics]"``.
        """
        if name not in SCALARS:
            raise ValueError(f"name must be one of {', '.join(SCALARS)}; got {shown(name)}.")
        values = np.asarray(self[name], dtype=np.float64)
        return np.asarray(_arviz().autocorr(values, axis=1))[:, :n_lags]

    def to_arviz(self) -> Any:
        """The draws as an `arviz.InferenceData`, for its plots and tables, without the labels, which are no quantities."""
        return _arviz().from_dict(posterior={name: self[name] for name in SCALARS})

    def _partitions(self) -> Labels:
        """The labels of all draws, one chain after the other, (chains * draws, N)."""
        labels = self["labels"]
        return labels.reshape(-1, labels.shape[-1])


class Sampled(NamedTuple):
    """The draws, and the partition nearest to them, as labels (N,) of the fitted model."""

    draws: Draws
    labels: NDArray[np.int64]


def by_size(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Labels (N,) from 0, renumbered so that cluster 0 is the largest; equal sizes keep their order."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return np.asarray(place[labels])


def _arviz() -> Any:
    try:
        import arviz
    except ImportError as error:
        raise ImportError('ArviZ absent: install the extra with pip install "stickbreak[diagnostics]".') from error
    return arviz
