"""Rows as a sampler partitions them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...allocations.mixture import MixturePrior
from ...data import ArraySource, Chunk
from ...likelihoods import Likelihood
from ...likelihoods.features import features
from ...model import Model, Parameters, Summary
from ...model.local import responsibilities_of
from ..executor import Executor
from .blocked import BlockedSteps
from .chain import Steps
from .collapsed import CollapsedSteps
from .conjugate import require_conjugate, require_single_rows
from .partition import Partition, Table
from .subject import Labels, check_draws

NUMBER = 8  # bytes


@dataclass(frozen=True)
class RowSubject:
    """Rows of a mixture (see `Subject`)."""

    def check(self, model: Model, source: ArraySource, collapsed: bool) -> None:
        """Refuse latent variables, weights, and blocked sweeps of a family that draws no parameters."""
        require_conjugate(model, "Gibbs")
        if not collapsed:
            check_draws(model)
        require_single_rows(source, "Gibbs")

    def size(self, model: Model, source: ArraySource) -> float:
        """Bytes of the statistics of the rows, and while these are made."""
        return 2.0 * NUMBER * source.n_rows * model.likelihood.n_statistics

    def table(self, model: Model, source: ArraySource) -> Table:
        """The statistics of the rows."""
        assert isinstance(model.allocation, MixturePrior)
        X = source.read(Chunk(0, source.n_rows))[0]
        T = features(model.likelihood, X)
        return Table.of(model.likelihood, model.allocation, T, float(model.likelihood.log_base(X).sum()))

    def steps(
        self, collapsed: bool, split_merge: bool, n_clusters: int
    ) -> Callable[[Table, NDArray[np.integer]], Steps]:
        """Sweeps over single rows, or over weights, parameters and rows."""
        if collapsed:
            return partial(CollapsedSteps.begin, split_merge)
        return partial(BlockedSteps.begin, n_clusters)

    def most_probable(self, model: Model, start: Summary, source: ArraySource, executor: Executor) -> Labels:
        """The most probable cluster of each row, (N,)."""
        task = partial(_most_probable, model.likelihood, model.parameters(start, source.dtype))
        return np.concatenate(list(executor.over(source, task, source.batches(1)[0])))

    def total(self, model: Model, table: Table, labels: Labels) -> Summary:
        """The summary of the rows of each label."""
        nearest = Partition.of(table, labels)
        return Summary(nearest.N, nearest.S, np.zeros(nearest.K), np.array(table.base))


ROWS = RowSubject()


def _most_probable(likelihood: Likelihood, parameters: Parameters, source: ArraySource, chunk: Chunk) -> Labels:
    """The most probable cluster of each row of a chunk."""
    return np.asarray(responsibilities_of(likelihood, parameters, source.read(chunk)[0]).argmax(axis=1), np.int64)
