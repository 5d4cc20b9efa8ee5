"""A lap of every likelihood beside its floor, and a lap of sparse counts against their number and K.

The floor of a lap is what its F statistics cost on features made beforehand: the products T W' and R' T and the softmax
between them, in blocks on all threads.  All responsibilities are kept, the most expensive case.  Everything else a lap does
(making features, entropies, the base measure where it is not known, adding up) is the difference.  "sparse" rows are the
local step on word-count-like CSR rows; ns is the time per stored count and cluster.

    python benchmarks/family_laps.py
"""

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

from common import report
from stickbreak import likelihoods
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import Threads
from stickbreak.inference.visit import visit
from stickbreak.kernels.assign import softmax_rows
from stickbreak.likelihoods import REGISTRY, Sample
from stickbreak.model import Model, Parameters
from stickbreak.model.local import block_rows

N, D, K, REPEATS = 60_000, 50, 100, 9


def best(*tasks: Callable[[], object]) -> list[float]:
    """Least seconds of each task, run in turn."""
    seconds = np.empty((REPEATS, len(tasks)))
    for row in seconds:
        for i, task in enumerate(tasks):
            began = time.perf_counter()
            task()
            row[i] = time.perf_counter() - began
    return list(seconds.min(axis=0))


def rows(name: str, rng: np.random.Generator) -> np.ndarray:
    """Rows that a family takes."""
    if name == "bernoulli":
        return (rng.random((N, D)) < 0.3).astype(float)
    if name == "categorical":
        return rng.integers(5, size=(N, D)).astype(float)
    if name in ("poisson", "multinomial"):
        return rng.poisson(3.0, (N, D)).astype(float)
    if name in ("exponential", "gamma", "log_scale"):
        return rng.exponential(1.0, (N, D)) + 1e-9
    if name == "dirichlet":
        return rng.dirichlet(np.full(D, 3.0), N)
    if name == "gaussian_network":
        return rng.standard_normal((N, D)).cumsum(axis=1)  # each column follows the one before
    return rng.standard_normal((N, D))


def dense(name: str, missing: float = 0.0) -> dict[str, object]:
    """A lap and its floor."""
    rng = np.random.default_rng(0)
    X = rows(name, rng)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
    model = Model(REGISTRY[name]().resolve(Sample.of(X)), DirichletProcess())
    F = model.likelihood.n_statistics
    source, flat = ArraySource(X), Parameters(np.zeros((K, F)), np.zeros(K))
    T, size = rng.standard_normal((4096, F)), block_rows(F, K)

    def piece(task: int) -> np.ndarray:
        S = np.zeros((K, F))
        indptr = np.empty(size + 1, np.int64)
        indices, values = np.empty(size * K, np.int32), np.empty(size * K)
        done = 0
        while done < N // 16:
            start = done % (len(T) - size + 1)
            t = T[start : start + size]
            C = t @ flat.W.T
            softmax_rows(C, flat.bias, 1e-12, np.inf, indptr, indices, values)
            S += C.T @ t
            done += size
        return S

    with Threads() as threads:
        chunks = source.batches(1)[0]
        lap, floor = best(
            lambda: visit(model, flat, source, chunks, threads, base=np.zeros(())),
            lambda: list(threads.map(piece, range(16))),
        )
    label = f"{name}, {missing:.0%} missing" if missing else name
    return {"family": label, "F": F, "floor s": floor, "lap s": lap, "ratio": lap / floor}


def counts(per_row: int, V: int, clusters: int) -> dict[str, object]:
    """A lap of sparse counts with random peaked responsibilities."""
    rng, n = np.random.default_rng(0), 20_000
    frequency = 1.0 / np.arange(10, V + 10)  # as of words
    indices = rng.permutation(V)[rng.choice(V, size=(n, per_row), p=frequency / frequency.sum())]
    indices.sort(axis=1)
    X = sparse.csr_array((np.ones(n * per_row), indices.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, V))
    X.sum_duplicates()
    model = Model(likelihoods.Multinomial(0.1).resolve(Sample.of(X)), DirichletProcess())
    source = SparseSource(X)
    W = np.log(rng.dirichlet(np.full(V, 0.1), clusters) + 1e-6)
    parameters = Parameters(np.asfortranarray(W), np.zeros(clusters))
    with Threads() as threads:
        chunks = source.batches(1)[0]
        visit(model, parameters, source, chunks, threads)
        (lap,) = best(lambda: visit(model, parameters, source, chunks, threads, base=np.zeros(())))
    label = f"multinomial CSR, {X.nnz:,} counts, V = {V:,}, K = {clusters}"
    return {"family": label, "F": V, "lap s": lap, "ns": 1e9 * lap / (X.nnz * clusters)}


def main() -> None:
    named = [name for name in REGISTRY if name not in ("autoregressive_gaussian", "zero_mean_gaussian", "gamma")]
    found = [dense(name) for name in named]
    found += [dense(name, 0.2) for name in ("diagonal_gaussian", "bernoulli", "categorical")]
    found += [
        counts(50, 3000, 50),
        counts(100, 3000, 50),
        counts(100, 3000, 100),
        counts(100, 3000, 200),
        counts(100, 100_000, 50),
    ]
    report("family_laps", found)


if __name__ == "__main__":
    main()
