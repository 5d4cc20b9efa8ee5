"""What parameters say to a hidden Markov chain: potentials of its transitions and starts, and of rows by their scores."""

import threading
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.sequences import SequenceSource
from ..kernels.markov import FLOOR, WIDTH, clear_least, shift_rows
from ..likelihoods import Likelihood
from ..likelihoods.features import largest_terms
from .local import exact_scores, scores_of
from .parameters import Parameters
from .phrases import Matrices, matrices

Array = NDArray[np.floating]


class Scores(NamedTuple):
    """Of distinct rows, or of the rows of a block: log likelihoods less the largest of each, exponentials, and features.

    C, L : (U, Kp);  top : (U,) the largest;  T : (U, F), dense or CSR
    codes : (n,) which row each is
    """

    C: Array
    L: Array
    top: Array
    T: Any
    codes: NDArray[np.integer]


class Prepared(NamedTuple):
    """Parameters and the chain's potentials, filled up with zeros to Kp states (`stickbreak.kernels.markov`).

    log_start : (K,), log_A : (K, K) log potentials;  start : (Kp,), A, At : (Kp, Kp) their exponentials, and A transposed
    table : of the distinct rows, where there are few
    phrases : of the phrases of distinct rows, where they save time
    arbitrary : (2, Kp) two messages in which neither states nor any set of them have the same mass
    """

    parameters: Parameters
    log_start: Array
    log_A: Array
    start: Array
    A: Array
    At: Array
    table: Scores | None
    phrases: Matrices | None
    arbitrary: Array

    @property
    def K(self) -> int:
        """Number of states."""
        return len(self.log_start)


class Workspace(threading.local):
    """Scratch arrays of a thread: allocating them anew would cost more than what is computed in them."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[str, Any], NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, int], dtype: Any = np.float64) -> NDArray[Any]:
        """An array of a shape, whatever it holds; the one of the same name and type given out before is no longer valid."""
        key = (name, dtype)
        size = shape[0] * shape[1]
        if key not in self._arrays or self._arrays[key].size < size:
            self._arrays[key] = np.empty(size, dtype)
        return self._arrays[key][:size].reshape(shape)


WORKSPACE = Workspace()


def prepared_for(likelihood: Likelihood, parameters: Parameters, source: SequenceSource) -> Prepared:
    """What the local step of every chunk shares; of distinct rows the scores."""
    assert parameters.prior is not None
    logs = np.log(np.maximum(parameters.prior, np.exp(FLOOR)))
    K = len(parameters.bias)
    start = _padded(np.exp(logs[:1]))[0]
    A = np.zeros((padded(K), padded(K)))
    A[:K, :K] = np.exp(logs[1:])
    table = None
    phrases = None
    if source.codes is not None:
        weights = np.ones(len(source.X)) if source.weights is None else source.weights
        table = scores_of_rows(likelihood, parameters, np.asarray(source.X, dtype=source.dtype), weights)
        phrases = matrices(source, A, table.L)
    At = np.ascontiguousarray(A.T)
    return Prepared(parameters, logs[0], logs[1:], start, A, At, table, phrases, _arbitrary(K))


def padded(K: int) -> int:
    """Kp, the columns of arrays of K states."""
    return -(-K // WIDTH) * WIDTH


def _arbitrary(K: int) -> Array:
    """Two arbitrary starting messages to K states, (2, Kp)."""
    messages = _padded(np.stack([np.random.default_rng(seed).random(K) for seed in range(2)]))
    return np.asarray(messages / messages.sum(axis=1, keepdims=True))


def _padded(values: Array) -> Array:
    filled = np.zeros((len(values), padded(values.shape[1])))
    filled[:, : values.shape[1]] = values
    return filled


def scores_of_rows(likelihood: Likelihood, parameters: Parameters, X: Array, weights: Array) -> Scores:
    """Scores of distinct rows X (U, D)."""
    (C, L), top = np.empty((2, len(X), padded(len(parameters.bias)))), np.empty(len(X))
    T = fill_scores(likelihood, parameters, X, weights, C, L, top)
    return Scores(C, L, top, T, np.empty(0, np.int32))


def fill_scores(
    likelihood: Likelihood,
    parameters: Parameters,
    X: Array,
    weights: Array,
    C: Array,
    L: Array,
    top: Array,
    out: Array | None = None,
    product: Array | None = None,
) -> Any:
    """Fill C, L and top (see `Scores`) for rows X, and return their features; ``out`` and ``product`` are optional buffers."""
    T, product = scores_of(likelihood, parameters, X, out, product)
    with np.errstate(invalid="ignore"):
        shift_rows(product, parameters.bias, weights, C, L, top)
    if not np.abs(top).max(initial=0.0) <= largest_terms(parameters.W.dtype):
        T, product, best = exact_scores(likelihood, parameters, X)
        shift_rows(product, np.zeros(product.shape[1]), weights, C, L, top)
        top += weights * best
    np.exp(L, out=L)
    clear_least(L)
    return T
