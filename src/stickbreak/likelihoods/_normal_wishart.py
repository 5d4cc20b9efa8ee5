"""Normal-Wishart posteriors of clusters."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _quadratic as quadratic
from ._base import Array


class NormalWishart(NamedTuple):
    """Posterior parameters in working coordinates, and the Cholesky factors L of B."""

    kappa: Array
    nu: Array
    m: Array
    L: Array

    def marginal(self, columns: NDArray[np.intp]) -> Self:
        """Of some of the columns: they have as many degrees of freedom fewer as there are fewer of them."""
        B = self.L @ self.L.swapaxes(1, 2)
        part = quadratic.cholesky(B[:, columns[:, None], columns])
        return self._replace(nu=self.nu - (self.m.shape[1] - len(columns)), m=self.m[:, columns], L=part)
