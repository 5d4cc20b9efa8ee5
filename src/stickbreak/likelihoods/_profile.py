"""What rows of clusters look like, for people to read."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Profile(NamedTuple):
    """What rows of each cluster look like: mean and variance of the values that describe a row, for people to read.

    columns : (J,) which column of the data each value belongs to
    levels : (J,) which level of the column the value stands for, or -1 where it is the column itself
    means, variances : (K, J) under each cluster
    chances : whether the values are chances, (J,)
    """

    columns: NDArray[np.integer]
    levels: NDArray[np.integer]
    means: Array
    variances: Array
    chances: NDArray[np.bool_]

    @classmethod
    def of_columns(cls, means: Array, variances: Array, chances: bool = False) -> "Profile":
        """One value per column."""
        D = means.shape[1]
        return cls(np.arange(D), np.full(D, -1), means, variances, np.full(D, chances))
