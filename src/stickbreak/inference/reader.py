"""A fitted mixture reading rows: responsibilities, labels, densities, and values for those that are missing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..allocations.mixture import MixturePrior
from ..data import ArraySource, Chunk
from ..likelihoods import Latent
from ..likelihoods.features import Rows
from ..likelihoods.responsibilities import Responsibilities, dense, most_probable
from ..model import ROWS, Batch, Kind, Model, Parameters, Summary
from ..model.local import latent_means_of
from .executor import Executor

Array = NDArray[np.floating]

BLOCK = 1 << 22  # numbers in the features of rows that are filled in at once


@dataclass(frozen=True)
class Reader:
    """A fitted model and its parameters, rounded to the precision of the rows.

    kind : where responsibilities are computed
    """

    model: Model
    summary: Summary
    parameters: Parameters
    kind: Kind = ROWS

    @classmethod
    def of(cls, model: Model, summary: Summary, missing: NDArray[np.bool_], dtype: np.dtype[np.floating]) -> "Reader":
        """A reader of rows in which values of the columns ``missing`` (D,) may be missing."""
        likelihood, S = model.likelihood.with_missing(missing, summary.S)
        model = replace(model, likelihood=likelihood)
        summary = replace(summary, S=S)
        return cls(model, summary, model.parameters(summary, dtype))

    def responsibilities(self, X: Rows) -> Array:
        """The probability of each cluster for each row, (n, K)."""
        return dense(self._kept(X), self.summary.K, X.dtype)

    def labels(self, X: Rows) -> NDArray[np.intp]:
        """The most probable cluster of each row, (n,)."""
        return most_probable(self._kept(X))

    def _kept(self, X: Rows) -> Responsibilities:
        """The responsibilities of rows, sparse."""
        batch = Batch(X, np.ones(X.shape[0]))
        found: Responsibilities = self.kind.local_step(self.model.likelihood, self.parameters, batch, False, True)[1]
        return found

    def latent_means(self, latent: Latent, X: Rows) -> Array:
        """The means of the latent variables of rows, (n, K)."""
        return latent_means_of(self.model.likelihood, latent, self.parameters, X)[1]

    def background(self, bits: Latent, X: Rows) -> Array:
        """The probability that each row belongs to no cluster, (n,), where ``bits`` say in each whether it does."""
        R, means = latent_means_of(self.model.likelihood, bits, self.parameters, X)
        return np.asarray(np.einsum("nk,nk->n", R, 1.0 - means))

    def log_density(self, X: Rows) -> Array:
        """Log posterior-predictive density of the observed values of each row, (n,)."""
        N = self.summary.N
        S = self.summary.S
        log_densities = self.model.likelihood.log_predictive(X.astype(np.float64), N, S)
        with np.errstate(divide="ignore"):  # of clusters without weight
            log_weights = np.log(self.model.allocation.mean_weights(self.summary))
        return np.asarray(logsumexp(log_densities + log_weights, axis=1))

    def log_density_with_unseen(self, X: Rows) -> Array:
        """The same where a row may be of a cluster that has no row yet, whose density is that of the prior, (n,)."""
        allocation = self.model.allocation
        assert isinstance(allocation, MixturePrior)
        N = np.append(self.summary.N, 0.0)
        S = np.vstack([self.summary.S, np.zeros(self.summary.S.shape[1])])
        log_densities = self.model.likelihood.log_predictive(X.astype(np.float64), N, S)
        with np.errstate(divide="ignore"):  # of clusters without weight
            log_weights = np.log(allocation.joining(self.summary))
        return np.asarray(logsumexp(log_densities + log_weights, axis=1))

    def impute(self, X: Array) -> Array:
        """Rows with their missing values filled in, (n, D)."""
        R = self.responsibilities(X)
        rows = max(1, BLOCK // self.model.likelihood.n_statistics)
        blocks = [slice(start, start + rows) for start in range(0, len(X), rows)]
        own = self.summary.N, self.summary.S
        return np.concatenate([self.model.likelihood.impute(X[block], R[block], *own) for block in blocks] or [X])


def by_chunk(source: ArraySource, executor: Executor, task: Callable[[Rows], Any]) -> Iterator[Any]:
    """The results of a task on the rows of every chunk, in order."""
    return executor.over(source, partial(_of_rows, task), source.batches(1)[0])


def _of_rows(task: Callable[[Rows], Any], source: ArraySource, chunk: Chunk) -> Any:
    """The result of a task on the rows of one chunk."""
    result = task(source.read(chunk)[0])
    source.release()
    return result
