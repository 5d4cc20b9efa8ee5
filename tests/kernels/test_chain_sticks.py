"""The search for the sticks of a Markov chain in one loop, against scipy's."""

from types import SimpleNamespace

import numpy as np
import pytest

from stickbreak.allocations import HDPMarkovChain
from stickbreak.allocations._sticks import best_sticks


def chain(K: int, rng: np.random.Generator) -> SimpleNamespace:
    """First states and transitions: many that hardly occur, and states that last."""
    M = rng.gamma(0.05, 20.0, (K, K)) * rng.choice([0.1, 1.0, 30.0])
    M[np.diag_indices(K)] += rng.gamma(1.0, 60.0, K)
    return SimpleNamespace(K=K, transitions=np.vstack([rng.gamma(0.2, 1.0, K), M]))


@pytest.mark.parametrize("stickiness", [0.0, 0.01, 1.0, 50.0, 1e4])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 30.0])
def test_the_best_sticks_are_those_that_scipy_finds(stickiness: float, concentration: float) -> None:
    rng = np.random.default_rng(int(stickiness + 10.0 * concentration))
    for K in (1, 2, 7, 30):
        prior = HDPMarkovChain(
            float(rng.lognormal(0.0, 2.0)), stickiness, float(rng.lognormal(0.0, 2.0)), concentration
        )
        summary = chain(K, rng)
        x, counts = prior._begin(summary)
        objective = prior._objective(summary.transitions, concentration)
        expected = best_sticks(objective, x, counts)[1]
        best, value = prior._search(summary, concentration, x, counts)
        assert value == objective(best)[0]
        assert value >= objective(x)[0]
        assert value == pytest.approx(expected, abs=1e-6)
