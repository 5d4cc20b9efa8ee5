"""A sample of rows whose features are made once, for many local steps."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..likelihoods.features import Rows, features
from ..likelihoods.responsibilities import Responsibilities, join
from .local import block_rows, product_of, summed_step
from .model import Model
from .summary import Summary

Array = NDArray[np.floating]


class Sampled(NamedTuple):
    """A sample of rows X (n, D), their features T in float64, made once, and their weights (n,)."""

    X: Rows
    T: Any
    weights: Array

    @classmethod
    def of(cls, model: Model, X: Rows, weights: Array) -> "Sampled":
        """The sample, with features of the model's likelihood."""
        with np.errstate(over="ignore", invalid="ignore"):  # of rows too far from all others; see `block_step`
            return cls(X, features(model.likelihood, X), weights)

    def part(self, rows: slice) -> "Sampled":
        """Some of the rows."""
        return Sampled(self.X[rows], self.T[rows], self.weights[rows])


def refined(model: Model, clusters: Summary, sample: Sampled) -> tuple[Summary, Responsibilities]:
    """One local step on a sample of rows at the parameters that a summary of clusters implies."""
    parameters = model.parameters(clusters, np.dtype(np.float64))
    summary = Summary.zeros(*parameters.W.shape)
    model.likelihood.carry(parameters.W, summary.S)
    pieces = []
    n = len(sample.weights)
    mass = np.ones(len(sample.weights))
    rows = n if sparse.issparse(sample.T) else block_rows(*reversed(parameters.W.shape))
    for start in range(0, n, rows):
        block = slice(start, min(start + rows, n))
        X = sample.X[block]
        weights = sample.weights[block]
        T = sample.T[block] if rows < n else sample.T
        with np.errstate(over="ignore", invalid="ignore"):
            scores = product_of(model.likelihood, T, parameters.W)
        pieces.append(summed_step(model.likelihood, parameters, X, T, scores, weights, mass[block], summary))
    return summary, join(pieces)
