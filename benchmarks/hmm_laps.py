"""An E-step of a hidden Markov model: time steps per second, beside hmmlearn.

A visit of all 100,000 rows of 12 columns in 10 sequences: log likelihoods of full-covariance Gaussians, messages forward and
back, expected transitions, statistics and entropy, given the parameters of the states that the rows were drawn from.  These
last 50 steps, and their means are standard normal, about five standard deviations of a row apart.  hmmlearn does the same but
for the entropy, with implementation="scaling" and n_iter=1; it has no threads, and its M-step on top is a matter of
milliseconds.  Best of five, after one that does not count.

    python benchmarks/hmm_laps.py [--states 10 25 50 100] [--steps 100000]
"""

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from common import report
from stickbreak.allocations import FiniteMarkovChain
from stickbreak.data import SequenceSource
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.likelihoods.features import features
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.seeding import hard_summary

D, G, LAST, REPEATS = 12, 10, 50, 5


class Rows(NamedTuple):
    X: np.ndarray
    lengths: np.ndarray
    means: np.ndarray
    z: np.ndarray


def rows(K: int, T: int) -> Rows:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((K, D))
    runs = np.append(np.arange(K), rng.integers(K, size=max(T // LAST - K, 0)))  # every state is there
    z = np.repeat(rng.permutation(runs), LAST)
    lengths = np.diff(np.linspace(0, len(z), G + 1).astype(int))
    return Rows(means[z] + rng.standard_normal((len(z), D)), lengths, means, z)


def speed(T: int, step: Callable[[], object]) -> int:
    """Time steps per second."""
    seconds = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    return round(T / min(seconds[1:]))


def stickbreak(data: Rows, n_jobs: int | None) -> int:
    source, K = SequenceSource(data.X, data.lengths), len(data.means)
    model = Model(Gaussian().resolve(Sample.of(data.X)), FiniteMarkovChain(K), SEQUENCES)
    start = model.kind.start(hard_summary(features(model.likelihood, data.X), np.ones(len(data.X)), data.z))
    chunks = source.batches(1)[0]
    with Threads(n_jobs) as threads:
        first = visit(model, model.parameters(start, source.dtype), source, chunks, threads).summary
        parameters = model.parameters(first, source.dtype)
        return speed(len(data.X), lambda: visit(model, parameters, source, chunks, threads))


def hmmlearn(data: Rows) -> int:
    from hmmlearn.hmm import GaussianHMM

    K = len(data.means)
    stay = 1.0 - 1.0 / LAST

    def step() -> None:
        peer = GaussianHMM(K, "full", n_iter=1, init_params="", implementation="scaling")
        peer.startprob_ = np.full(K, 1.0 / K)
        peer.transmat_ = np.full((K, K), (1.0 - stay) / (K - 1)) + np.eye(K) * (stay - (1.0 - stay) / (K - 1))
        peer.means_, peer.covars_ = data.means, np.tile(np.eye(D), (K, 1, 1))
        peer.fit(data.X, data.lengths)

    return speed(len(data.X), step)


def measure(K: int, T: int) -> dict[str, object]:
    data = rows(K, T)
    one, several = stickbreak(data, 1), stickbreak(data, None)
    row: dict[str, object] = {"states": K, "steps/s, 1 thread": one, f"steps/s, {Threads().n} threads": several}
    try:
        peer = hmmlearn(data)
    except ModuleNotFoundError as error:
        print(f"hmmlearn is left out: {error}")
        return row
    return row | {"steps/s, hmmlearn": peer, "ratio, 1 thread": one / peer, "ratio, all threads": several / peer}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[10, 25, 50, 100])
    parser.add_argument("--steps", type=int, default=100_000)
    arguments = parser.parse_args()
    report("hmm_laps", [measure(K, arguments.steps) for K in arguments.states])
