"""How labels of rows compare with the true ones, for the benchmarks of hidden Markov models."""

import time
import warnings
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM


def hamming(labels: np.ndarray, truth: np.ndarray) -> float:
    """Share of rows with a wrong label, each state standing for one true label and each of these for one state."""
    C = _joint(labels, truth)
    return 1.0 - float(C[linear_sum_assignment(-C)].sum() / C.sum())


def many_to_one(labels: np.ndarray, truth: np.ndarray) -> float:
    """The same where several states may stand for one true label."""
    C = _joint(labels, truth)
    return 1.0 - float(C.max(axis=1).sum() / C.sum())


def segments(labels: np.ndarray, lengths: np.ndarray) -> int:
    """Runs of rows in one state, over all sequences."""
    new = np.diff(labels, prepend=-1) != 0
    new[np.cumsum(lengths)[:-1]] = True
    return int(new.sum())


def fitted(model: HMM, X: np.ndarray, lengths: Any = None) -> tuple[HMM, float]:
    """Fit, however many laps it may take, and the seconds of that."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, lengths=lengths)
    return model, time.perf_counter() - began


def warm_up(likelihood: str, X: np.ndarray) -> None:
    """Have everything compiled before anything is timed."""
    fitted(HMM(likelihood, max_laps=3, random_state=0), X[:1000])


def _joint(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Rows of each state and true label."""
    (_, a), (_, b) = (np.unique(z, return_inverse=True) for z in (labels, truth))
    C = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(C, (a, b), 1.0)
    return C
