"""Ordinary fits that take a tenth of a second or so, for attackers from outside: signals and threads."""

import warnings
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import stickbreak

from .verdict import state

KINDS = ("Mixture", "TopicModel", "HMM")


@cache
def controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads() -> list[int]:
    """The number of threads of each BLAS library."""
    return [library["num_threads"] for library in controller().info() if library["user_api"] == "blas"]


def rows(kind: str) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind == "TopicModel":
        return rng.multinomial(30, rng.dirichlet([0.3] * 3, 60) @ (np.repeat(np.eye(3), 5, axis=1) / 5))
    z = np.repeat(rng.integers(3, size=20), 10)
    return rng.normal(6.0 * z[:, None], 1.0, (200, 3))


def unfitted(kind: str, n_jobs: int = 1) -> Any:
    few = {"TopicModel": {"n_init_topics": 8}, "Mixture": {"likelihood": "gaussian"}}.get(kind, {})
    return getattr(stickbreak, kind)(n_jobs=n_jobs, random_state=0, max_laps=15, n_batches=2, **few)


def fit(estimator: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(rows(type(estimator).__name__))


@cache
def expected(kind: str) -> Any:
    """The state of an undisturbed fit."""
    return state(fit(unfitted(kind)))
