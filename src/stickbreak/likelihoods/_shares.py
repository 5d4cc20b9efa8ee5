"""How probable it is, before the data, that clusters differ in some columns and in others do not."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

Array = NDArray[np.floating]


def log_share(D: int) -> Array:
    """Log probability of one set of m of D columns, m = 0 to D, (D + 1,).

    Each column is in it with the same chance, which is Beta(1/2, 1/2): B(m + 1/2, D - m + 1/2) / B(1/2, 1/2).  The set of all
    columns is the usual model, which is no choice and has the log probability 0.
    """
    m = np.arange(D + 1.0)
    share = betaln(m + 0.5, D - m + 0.5) - betaln(0.5, 0.5)
    share[D] = 0.0
    return np.asarray(share)


def best_set(gain: Array) -> tuple[NDArray[np.bool_], float]:
    """The most probable set of columns in which clusters differ, (D,) bool, and what it gains with its log probability.

    gain : (D,) nats that the clusters gain by parameters of their own in each column; not finite: none
    """
    gain = np.where(np.isfinite(gain), gain, -np.inf)
    order = np.argsort(-gain, kind="stable")
    values = np.append(0.0, np.cumsum(gain[order])) + log_share(len(gain))
    m = int(values.argmax())
    return np.isin(np.arange(len(gain)), order[:m]), float(values[m])
