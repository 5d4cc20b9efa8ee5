"""Compiling the loops of default fits before the first one."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from .. import HMM, Mixture, TopicModel
from ..kernels._jit import NOT_KEPT, folder_of
from ..kernels.assign import softmax_rows

N = 300  # rows: enough for births, merges and all else that a search does


def compile_loops(quiet: bool) -> None:
    """Compile what default fits of mixtures, topics and hidden Markov models need, and keep it.

    quiet : whether to show no progress

    Raises
    ------
    OSError : the machine code cannot be kept.
    """
    folder = folder_of(softmax_rows)
    if folder is None:
        raise OSError(f"{NOT_KEPT}; set NUMBA_CACHE_DIR to a folder that can be written.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the data are made up
        warnings.filterwarnings("error", message=NOT_KEPT)
        for name, fit in _fits(not quiet):
            began = time.perf_counter()
            try:
                fit()
            except RuntimeWarning as error:
                raise OSError(str(error)) from None
            if not quiet:
                print(f"{name}: {time.perf_counter() - began:.1f} s", file=sys.stderr)
    if not quiet:
        print(f"machine code for this processor is in {folder}")


def _fits(shows: bool) -> Iterator[tuple[str, Callable[[], object]]]:
    """A small default fit of each model, and what it says of new rows."""
    rng = np.random.default_rng(0)
    clusters = 8.0 * np.arange(3)[rng.integers(3, size=N)]
    rows = rng.normal(clusters[:, None], 1.0, (N, 3))
    states = 8.0 * np.repeat(rng.integers(3, size=N // 25), 25)
    steps = rng.normal(states[:, None], 1.0, (N, 2))
    words = rng.dirichlet(np.full(3, 0.3), N) @ rng.dirichlet(np.full(40, 0.1), 3)
    counts = np.array([rng.multinomial(60, chances) for chances in words])
    gaps = np.where(rng.random((N, 3)) < 0.1, np.nan, rows)
    yield "mixtures", lambda: Mixture(random_state=0, verbose=shows).fit(rows).predict(rows)
    yield "missing values", lambda: Mixture(random_state=0, verbose=shows).fit(gaps).predict(gaps)
    yield "states", lambda: HMM(random_state=0, verbose=shows).fit(steps).predict(steps)
    yield "topics", lambda: TopicModel(random_state=0, verbose=shows).fit(counts).transform(counts)
