"""Checks of sums over rows, which come from files and are not trusted."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

ROUNDED = 1e-5  # the share of a float32 sum over all rows that may be rounding error


def check_between(name: str, sums: Array, most: Array | float = np.inf) -> None:
    """Refuse sums (K, ...) of clusters outside [0, most] by more than rounding."""
    slack = ROUNDED * (1.0 + np.abs(sums).sum(axis=0))
    fine = (sums >= -slack) & (sums <= most + slack) & np.isfinite(sums)
    if not fine.all():
        raise ValueError(f"{name} are impossible: one is {float(sums[~fine][0]):g}.")
