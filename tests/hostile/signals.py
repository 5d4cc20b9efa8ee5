"""Ctrl-C at random moments of a fit, and kill -9 while files are written."""

import gc
import os
import signal
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import stickbreak
from stickbreak.data.corpus import open_corpus, write_corpus

from .attacker import FINE, Attacker, Outcome
from .ordinary_fits import KINDS, blas_threads, expected, fit, rows, unfitted
from .verdict import Finding, require, state

GRACE = 5.0  # seconds for threads to end after an interrupt


@dataclass(frozen=True)
class Interrupts:
    """A fit, and the seconds from one Ctrl-C to the next."""

    kind: str = "Mixture"
    n_jobs: int = 2
    refit: bool = False
    delays: tuple[float, ...] = (0.05,)


@dataclass(frozen=True)
class Kill:
    """Something that writes a file again and again, and the seconds until it is killed."""

    writes: str = "model"
    after: float = 0.01


DELAYS = st.sampled_from((0.0, 0.001, 0.003, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3))
CASES = st.one_of(
    *2
    * [
        st.builds(
            Interrupts,
            st.sampled_from(KINDS),
            st.sampled_from((2, 1, 4)),
            st.booleans(),
            st.one_of(st.tuples(DELAYS), st.tuples(DELAYS, DELAYS), st.tuples(DELAYS, DELAYS, DELAYS)),
        )
    ],
    st.builds(Kill, st.sampled_from(("model", "corpus")), st.floats(0.0, 0.03).map(lambda s: round(s, 5))),
)


def run(case: Any) -> Outcome:
    try:
        if isinstance(case, Interrupts):
            interrupted(case)
        else:
            killed(case)
    except Finding as finding:
        return finding.outcome
    return Outcome(FINE)


def interrupted(case: Interrupts) -> None:
    expected(case.kind)  # compiled and cached before the clock runs
    gc.callbacks.clear()  # of hypothesis: an interrupt inside one of them would be lost
    limits, threads = blas_threads(), set(threading.enumerate())
    estimator = unfitted(case.kind, case.n_jobs)
    if case.refit:
        fit(estimator)
    before = dict(estimator.__dict__)
    raised, caught, odd = _under_fire(estimator, case.delays)
    require(odd is None, "foreign error", f"interrupts cause {odd!r}")
    _check_threads(threads)
    require(blas_threads() == limits, "BLAS limits stay changed", f"{blas_threads()} instead of {limits}")
    after = estimator.__dict__
    untouched = before.keys() == after.keys() and all(before[name] is after[name] for name in before)
    if not untouched:
        _check_kept(case, estimator)
    for w in caught:
        require(issubclass(w.category, UserWarning), "leaked warning", f"{w.category.__name__}: {w.message}")
    require(raised or not untouched, "interrupted fit returns an estimator without a model")
    again = fit(unfitted(case.kind, case.n_jobs))
    require(state(again) == expected(case.kind), "a fit after an interrupted one has other bits")


def _under_fire(estimator: Any, delays: tuple[float, ...]) -> tuple[bool, list, BaseException | None]:
    """Fit while another thread sends interrupts; whether one came out, the warnings, and any other exception."""
    armed, over = [True], threading.Event()

    def handler(number: int, frame: Any) -> None:
        if armed[0]:
            raise KeyboardInterrupt

    def fire() -> None:
        for delay in delays:
            if over.wait(delay):
                return
            os.kill(os.getpid(), signal.SIGINT)

    former = signal.signal(signal.SIGINT, handler)
    gun = threading.Thread(target=fire)
    raised, odd = False, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            try:
                gun.start()
                estimator.fit(rows(type(estimator).__name__))
            except KeyboardInterrupt:
                raised = True
            except Exception as error:
                odd = error
            armed[0] = False
        except KeyboardInterrupt:  # between the lines above
            raised = True
        armed[0] = False
        over.set()
        gun.join()
        time.sleep(0.001)
    signal.signal(signal.SIGINT, former)
    return raised, caught, odd


def _check_threads(before: set) -> None:
    until = time.time() + GRACE
    while (left := set(threading.enumerate()) - before) and time.time() < until:
        time.sleep(0.01)
    require(not left, "threads left", f"{[thread.name for thread in left]} after {GRACE:g} s")


def _check_kept(case: Interrupts, estimator: Any) -> None:
    """What an interrupt leaves is a whole model."""
    bounds = estimator.lower_bounds_
    last = estimator.lower_bound_
    require(
        np.isfinite(bounds).all() and len(bounds) == estimator.n_laps_ == len(estimator.history_), "history is torn"
    )
    require(np.diff(bounds).min(initial=0.0) >= -1e-9 * abs(last), "bound falls", str(bounds[-3:]))
    require(last == bounds[-1], "lower_bound_ differs", f"{last!r} of {bounds[-1]!r}")
    read = {"X": rows(case.kind)}
    found = estimator.transform(**read) if case.kind == "TopicModel" else estimator.predict_proba(**read)
    require(np.allclose(found.sum(axis=1), 1.0), "probabilities do not sum to one")


# Kill -9 ---------------------------------------------------------------------------------------------------------------


@cache
def model() -> Any:
    return fit(unfitted("Mixture"))


def _write(case: Kill, path: Path) -> None:
    if case.writes == "model":
        model().save(path)
    else:
        write_corpus(path, sparse.csr_array(rows("TopicModel").astype(float)))


def _check_whole(case: Kill, path: Path) -> None:
    if case.writes == "model":
        found = stickbreak.load(path)
        require(state(found)[:3] == state(model())[:3], "a killed save damages the file")
    else:
        same = (sparse.csr_array(open_corpus(path)).toarray() == rows("TopicModel")).all()
        require(same, "a killed write damages the corpus")


def killed(case: Kill) -> None:
    with tempfile.TemporaryDirectory(prefix="hostile") as folder:
        path = Path(folder) / "target"
        _write(case, path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            try:
                while True:
                    _write(case, path)
            finally:
                os._exit(1)
        time.sleep(case.after)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        try:
            _check_whole(case, path)
        except (ValueError, OSError) as error:
            raise Finding(Outcome("a kill loses the file", f"{case.writes}: {error}")) from error
        _write(case, path)
        _check_whole(case, path)
        left = sorted(p.name for p in Path(folder).iterdir() if p != path)
        require(not left, "orphans stay after the next write", f"{case.writes}: {left}")


ATTACKERS = [Attacker("signals", CASES, run, {"Interrupts": Interrupts, "Kill": Kill}, seconds=60.0)]
