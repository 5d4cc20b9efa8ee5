"""A lap at K = 100 on MNIST in 50 dimensions, beside its floor and scikit-learn: seconds and working memory.

A lap is the local step, the statistics and the ELBO of all 60,000 rows on all threads.  "dense" is the first lap from random
responsibilities, where every row has mass on every cluster and both matrix products are full; "settled" is a lap at
convergence, where the kept responsibilities are few.  The floor is the two bare matrix products on ready-made features.

    python benchmarks/mnist_lap.py
"""

import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.mixture import BayesianGaussianMixture
from threadpoolctl import threadpool_limits

from common import forget_peak, memory, mnist50, mnist_prior, report
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, Chunk
from stickbreak.inference import Threads
from stickbreak.inference.init import from_seeds
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import Sample
from stickbreak.model import Model, Parameters

K, REPEATS = 100, 7


def floor(dtype: type) -> float:
    """Seconds for T W' and R' T on features made beforehand, in blocks on two threads."""
    rng = np.random.default_rng(0)
    T, W = rng.standard_normal((2, 30_000, 1325)).astype(dtype), rng.standard_normal((K, 1325)).astype(dtype)

    def half(t: np.ndarray) -> np.ndarray:
        S = np.zeros((K, 1325))
        for start in range(0, len(t), 1000):
            S += (t[start : start + 1000] @ W.T).T @ t[start : start + 1000]
        return S

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        return best(lambda: list(pool.map(half, T)))


def best(task) -> float:
    """Median seconds of a few runs."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def laps(dtype: type) -> dict[str, object]:
    X, _ = mnist50(dtype)
    source, rng = ArraySource(X), np.random.default_rng(0)
    model = Model(mnist_prior().resolve(Sample.of(X)), DirichletProcess())
    with Threads() as threads:
        chunks = source.batches(1)[0]
        start = from_seeds(model, source, K, True, rng)
        flat = Parameters(np.zeros((K, 1325), dtype), np.zeros(K, dtype))  # equal scores: all responsibilities are kept
        visit(model, flat, ArraySource(X[:256]), [Chunk(0, 256)], threads)  # compiles
        forget_peak()
        before = memory("VmRSS")

        def lap(parameters: Parameters):
            summary = visit(model, parameters, source, chunks, threads).summary
            model.bound(summary)
            return summary

        dense = best(lambda: lap(flat))
        summary = start
        for _ in range(20):
            summary = lap(model.parameters(summary, source.dtype))

        def whole_lap() -> None:
            lap(model.parameters(summary, source.dtype))

        settled = best(whole_lap)
        return {"dense": dense, "settled": settled, "memory": memory() - before}


def scikit_learn(dtype: type) -> float:
    """Seconds per iteration: the difference of a run of seven and a run of one, from random responsibilities."""
    X, _ = mnist50(dtype)
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for iterations in (1, 7):
            began = time.perf_counter()
            BayesianGaussianMixture(
                n_components=K, init_params="random", max_iter=iterations, tol=0.0, random_state=0
            ).fit(X)
            seconds.append(time.perf_counter() - began)
    return (seconds[1] - seconds[0]) / 6.0


def main() -> None:
    rows = []
    for dtype in (np.float64, np.float32):
        mine, peer, bare = laps(dtype), scikit_learn(dtype), floor(dtype)
        rows.append(
            {
                "precision": np.dtype(dtype).name,
                "dense lap s": mine["dense"],
                "settled lap s": mine["settled"],
                "floor s": bare,
                "scikit-learn s": peer,
                "times faster, dense": peer / mine["dense"],
                "times faster, settled": peer / mine["settled"],
                "memory beyond data MB": mine["memory"],
            }
        )
    report("mnist_lap", rows)


if __name__ == "__main__":
    main()
