"""Which columns of a table go together: those that clusters make depend on each other, and no others need be looked at."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import norm

from ..likelihoods.features import Rows

MOST_COLUMNS = 4096  # that all correlations have room for
MOST_WORK = 1 << 34  # products of all correlations, beyond which they are not worth their time
CHANCE = 0.05  # that any two columns of independent values are taken to go together
FARTHEST = 4.0  # standard deviations, to which values count


def linked_columns(X: Rows, weights: NDArray[np.floating]) -> NDArray[np.bool_] | None:
    """The columns (D,) that are correlated with another beyond chance; None where there are none, or too many to compare.

    Given the cluster, columns are independent, so that two in which clusters differ are correlated in all rows, and one in
    which they do not is correlated with none.  A correlation of n independent values is Normal(0, 1 / n); the threshold is
    that of the largest of D (D - 1) / 2 of them (Bonferroni).
    """
    n, D = X.shape
    if D < 2 or D > MOST_COLUMNS or n * D * D > MOST_WORK:
        return None
    Z = X.toarray() if sparse.issparse(X) else X
    size = np.nanmax(np.abs(Z), axis=0, initial=0.0)
    Z = (Z / np.where((size > 0.0) & (size < np.inf), size, 1.0)).astype(np.float32)
    weights = weights / weights.max()
    Z = _standardised(Z, weights.astype(np.float32))
    effective = float(weights.sum() ** 2 / (weights**2).sum())
    correlations = np.abs(Z.T @ Z)
    np.fill_diagonal(correlations, 0.0)
    linked = correlations.max(axis=1) > norm.isf(CHANCE / (D * (D - 1))) / np.sqrt(effective)
    return linked if linked.any() else None


def _standardised(Z: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Columns of weighted mean 0 and sum of squares 1; zero where values are missing or all alike."""
    share = (weights / weights.sum())[:, None]
    seen = np.isfinite(Z)
    mass = np.maximum((share * seen).sum(axis=0), np.finfo(np.float32).tiny)
    Z = np.where(seen, Z, 0.0)
    Z = np.where(seen, Z - (share * Z).sum(axis=0) / mass, 0.0)
    scale = np.sqrt((share * Z**2).sum(axis=0) / mass)
    Z = np.clip(Z / np.where(scale > 0.0, scale, 1.0), -FARTHEST, FARTHEST)
    Z *= np.sqrt(share)
    length = np.sqrt((Z**2).sum(axis=0))
    return np.asarray(Z / np.where(length > 0.0, length, 1.0))
