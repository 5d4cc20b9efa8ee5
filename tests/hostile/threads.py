"""Fits in several threads, in every order: the same bits, BLAS limited to one thread in all of them, limits restored."""

import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from stickbreak import Mixture
from stickbreak.likelihoods import DiagonalGaussian

from .attacker import FINE, Attacker, Outcome
from .ordinary_fits import KINDS, blas_threads, expected, fit, rows, unfitted
from .verdict import Finding, require, state


@dataclass(frozen=True)
class Order:
    """Fits one after another or at once: (where, what, number of jobs, seconds to wait before); BLAS threads of the caller."""

    fits: tuple[tuple[str, str, int, float], ...] = (("main", "Mixture", 1, 0.0),)
    blas: int = 2


FIT = st.tuples(
    st.sampled_from(("main", "thread", "at once")),
    st.sampled_from(KINDS),
    st.sampled_from((1, 2)),
    st.sampled_from((0.0, 0.01, 0.05, 0.1)),
)
CASES = st.builds(
    Order, st.one_of(st.tuples(FIT, FIT), st.tuples(FIT, FIT, FIT), st.tuples(FIT)), st.sampled_from((2, 1, 3))
)

seen: list[int] = []


class Watched(DiagonalGaussian):
    """A likelihood that notes how many threads BLAS has whenever it is evaluated."""

    def log_base(self, X: Any) -> Any:
        seen.extend(blas_threads())
        return super().log_base(X)


def run(case: Order) -> Outcome:
    for kind in KINDS:
        expected(kind)
    with threadpool_limits(case.blas, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = blas_threads()
        try:
            in_order(case)
            require(blas_threads() == before, "BLAS limits stay changed", f"{blas_threads()} instead of {before}")
        except Finding as finding:
            return finding.outcome
    return Outcome(FINE)


def in_order(case: Order) -> None:
    problems: list[str] = []
    running: list[threading.Thread] = []

    def one(kind: str, n_jobs: int) -> None:
        seen_from = len(seen)
        try:
            if state(fit(unfitted(kind, n_jobs))) != expected(kind):
                problems.append(f"{kind} has other bits")
            Mixture(Watched(), n_jobs=n_jobs, random_state=0, max_laps=2).fit(rows("Mixture"))
        except Exception as error:
            problems.append(f"{kind} raises {type(error).__name__}: {error}")
        if set(seen[seen_from:]) - {1}:
            problems.append(f"BLAS has {max(seen[seen_from:])} threads during a fit")

    for where, kind, n_jobs, wait in case.fits:
        time.sleep(wait)
        if where == "main":
            one(kind, n_jobs)
            continue
        thread = threading.Thread(target=one, args=(kind, n_jobs))
        thread.start()
        if where == "at once":
            running.append(thread)
        else:
            thread.join()
    for thread in running:
        thread.join()
    del seen[:]
    require(not problems, "threads disturb one another", "; ".join(sorted(set(problems))))


ATTACKERS = [Attacker("threads", CASES, run, {"Order": Order}, seconds=120.0)]
