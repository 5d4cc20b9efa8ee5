"""Where arrays lie in memory, which differs between threads and from fit to fit, changes no bit of what kernels compute."""

import sys
from collections import Counter
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from scipy import sparse

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.kernels import markov

GAPS = (0, 0, 8, 16, 64, 200, 5000)  # bytes between arrays
TIMES = 10  # that a call of a kernel is repeated
CALLS = 20  # of a kernel with arrays of the same shapes, of which all but these are not repeated
PARAMETERS = {"random_state": 0, "n_jobs": 1, "max_laps": 8}


def rows(rng):
    return rng.normal(size=(60, 2)) + 4.0 * rng.integers(0, 3, size=(60, 1))


def noise(rng):
    return rng.normal(size=(60, 1))


def words(rng):
    return sparse.csr_array(rng.poisson(0.5, (60, 20)).astype(float))


FITS = {
    "mixture": lambda rng: Mixture("gaussian", **PARAMETERS).fit(rows(rng)),
    "mixture of counts": lambda rng: Mixture("multinomial", **PARAMETERS).fit(words(rng)),
    "topics": lambda rng: TopicModel(**PARAMETERS).fit(words(rng)),
    "topics of groups": lambda rng: TopicModel("gaussian", **PARAMETERS).fit(rows(rng), lengths=[20, 30, 10]),
    "states": lambda rng: HMM("gaussian", **PARAMETERS).fit(rows(rng), lengths=[25, 35]),
    "states of a process": lambda rng: HMM("autoregressive_gaussian", **PARAMETERS).fit(rows(rng)),
    "states of codes": lambda rng: HMM("categorical", **PARAMETERS).fit(rng.integers(0, 3, (60, 2))),
    "six states": lambda rng: HMM("spherical_gaussian", init=np.arange(60) % 6, moves=(), **PARAMETERS).fit(noise(rng)),
}


def placed(arguments, rng):
    """The arguments, arrays among them as copies with the same strides, in random order and not far from each other."""
    places, start = {}, 0
    for i in rng.permutation(len(arguments)):
        a = arguments[i]
        if isinstance(a, np.ndarray) and a.size:
            places[i] = start
            start += a.itemsize + sum((n - 1) * stride for n, stride in zip(a.shape, a.strides))
            start += -start % 8 + int(rng.choice(GAPS))
    memory, copies = np.zeros(start, np.uint8), list(arguments)
    for i, place in places.items():
        a = arguments[i]
        copies[i] = np.ndarray(a.shape, a.dtype, memory, place, a.strides)
        copies[i][...] = a
        copies[i].flags.writeable = a.flags.writeable
    return copies


def bits(values):
    return [np.asarray(value).tobytes() for value in values]


class Everywhere:
    """Kernels that are also run on copies of their arguments in other places, and must do the same with them."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.seen = Counter()

    def watched(self, value):
        """The same kernel or module of kernels; anything else as it is."""
        if isinstance(value, ModuleType) and value.__name__.startswith("stickbreak.kernels."):
            return SimpleNamespace(**{name: self._kernel(each) for name, each in vars(value).items()})
        return self._kernel(value)

    def _kernel(self, value):
        return self._repeated(value) if isinstance(value, Dispatcher) else value

    def _repeated(self, kernel):
        def run(*arguments):
            kind = (kernel.__name__, *(getattr(a, "shape", ()) for a in arguments))
            self.seen[kind] += 1
            repeats = [placed(arguments, self.rng) for _ in range(TIMES if self.seen[kind] <= CALLS else 0)]
            found = kernel(*arguments)
            for copies in repeats:
                again = kernel(*copies)
                assert bits([again, *copies]) == bits([found, *arguments]), kernel.__name__
            return found

        return run


@pytest.fixture
def everywhere(monkeypatch):
    found = Everywhere()
    for name, module in list(sys.modules.items()):
        if name.startswith("stickbreak.") and not name.startswith("stickbreak.kernels"):
            for attribute, value in list(vars(module).items()):
                if (other := found.watched(value)) is not value:
                    monkeypatch.setattr(module, attribute, other)
    return found


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_places_of_arrays_change_no_bits(everywhere, fit):
    fit(np.random.default_rng(0))
    assert everywhere.seen


@pytest.mark.parametrize("K", [8, 16, 40])
def test_places_of_arrays_change_no_bits_of_messages(K):
    """Of states that all count, so that every order of summation has other last digits."""
    everywhere, rng = Everywhere(), np.random.default_rng(K)
    forward, backward = everywhere.watched(markov.forward), everywhere.watched(markov.backward)
    codes, first, edges = np.array([0, 1, 2, 3, 1, 2]), np.array([1, 0, 0, 1, 0, 0], np.bool_), np.array([0, 3, 6])
    for _ in range(30):
        L, A, alpha, R, G = (rng.random((n, K)) for n in (4, K, 8, 6, 8))
        forward(L, codes, first, edges, rng.random(K), A, alpha, np.empty(6))
        backward(L, codes, first, edges, A.T.copy(), alpha, rng.random((2, K)), R, G)
