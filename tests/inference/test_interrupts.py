"""An interrupt at any moment leaves a model, a summary and a history that belong together."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import HMM, Mixture
from stickbreak.inference import laps, stochastic

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(m, 1.0, (40, 2)) for m in (-8.0, 0.0, 8.0)])
FITS = {
    "mixture": (lambda: Mixture("gaussian", learn=False, n_jobs=1, random_state=0, max_laps=12), laps),
    "learnt": (lambda: Mixture("gaussian", n_jobs=1, random_state=0, max_laps=12), laps),
    "hmm": (lambda: HMM("gaussian", n_jobs=1, random_state=0, max_laps=8), laps),
    "stochastic": (
        lambda: Mixture("gaussian", algorithm="stochastic", n_jobs=1, random_state=0, max_laps=30),
        stochastic,
    ),
}

MOMENTS = 5


def interrupted(make, module, line):
    """Fit, interrupted before the n-th line that the module runs; the estimator, and how many lines ran."""
    seen = 0

    def trace(frame, event, arg):
        nonlocal seen
        if frame.f_code.co_filename != module.__file__:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    estimator = make()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(X)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return estimator, seen


@pytest.mark.parametrize("name", FITS)
def test_the_bound_is_that_of_the_last_lap(name):
    make, module = FITS[name]
    checked, (_, last) = 0, interrupted(make, module, -1)
    for line in np.linspace(last // 4, last, MOMENTS).astype(int):
        estimator, seen = interrupted(make, module, line)
        assert seen >= line
        if hasattr(estimator, "model_"):
            checked += 1
            assert estimator.lower_bound_ == pytest.approx(estimator.lower_bounds_[-1], rel=1e-9)
            assert estimator.history_[-1].n_clusters == estimator.summary_.K
            assert [lap.number for lap in estimator.history_] == list(range(1, estimator.n_laps_ + 1))
    assert checked > MOMENTS // 2
