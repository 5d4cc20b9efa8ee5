"""The parameters of clusters, which are all that the local step needs to know of them."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..responses import Reading

Array = NDArray[np.floating]


class Parameters(NamedTuple):
    """Everything the local step needs to know of the clusters: scores of rows are ``T @ W.T + bias``.

    W : (K, F) expected natural parameters;  bias : (K,) -E[log-partition], for rows + E[log pi]
    prior : for documents, the pseudo-counts of the clusters and of the rest in every document, (K + 1,);  for sequences,
        exp(E[log pi]) of first states and of the transitions from each state, (K + 1, K)
    response : what documents answer, given their topics; None where nothing is known of it
    """

    W: Array
    bias: Array
    prior: Array | None = None
    response: Reading | None = None

    def take(self, clusters: NDArray[np.integer]) -> Self:
        """Those of some clusters."""
        prior = None if self.prior is None else self.prior[clusters]
        return type(self)(self.W[clusters], self.bias[clusters], prior)
