"""What a sampler asks of a kind of data."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...data import ArraySource
from ...model import Model, Summary
from ..executor import Executor
from .chain import Rows, Steps

Labels = NDArray[np.int64]


class Subject(Protocol):
    """Rows, or sequences, that a sampler partitions."""

    def check(self, model: Model, source: ArraySource, collapsed: bool) -> None:
        """Refuse what cannot be sampled, collapsed or blocked.

        Raises
        ------
        ValueError
            If rows have latent variables or weights, or the data have no collapsed sampler.
        TypeError
            If blocked sweeps are asked for and the likelihood draws no parameters.
        """
        ...

    def size(self, model: Model, source: ArraySource) -> float:
        """Bytes that the chains share."""
        ...

    def table(self, model: Model, source: Any) -> Rows:
        """What chains know of the data."""
        ...

    def steps(self, collapsed: bool, split_merge: bool, n_clusters: int) -> Callable[[Any, NDArray[np.integer]], Steps]:
        """What makes the steps of a chain from a table and labels.

        split_merge : whether collapsed sweeps alternate with splits and merges;  n_clusters : of blocked sweeps
        """
        ...

    def most_probable(self, model: Model, start: Summary, source: Any, executor: Executor) -> Labels:
        """The labels (N,) that the clusters of a start imply."""
        ...

    def total(self, model: Model, table: Any, labels: Labels) -> Summary:
        """The summary of rows that are each wholly in the cluster of its label; none is empty."""
        ...


def check_draws(model: Model) -> None:
    """Refuse a family that draws no parameters, as it does itself."""
    F = model.likelihood.n_statistics
    model.likelihood.draw_weights(np.zeros(1), np.zeros((1, F)), np.random.default_rng(0))
