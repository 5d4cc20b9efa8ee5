"""A stream whose clusters appear one after another: whether K follows, memory stays flat, and the end is as good as a fit.

    python benchmarks/streams.py [--of {rows,documents,sequences}] [--total N] [--batch N] [--clusters K] [--memory N]
                                 [--compared N] [--seeds N] [--forgetting F] [--drift] [--null] [--jobs N]

Rows of 32 columns, documents of 60 words of 1,000, or sequences of 100 rows of 4 columns come in batches; a cluster, topic or
state more is among them every so often, until half of the stream is over.  The held-out score is compared with that of a
default fit to a sample of `--compared` of the same stream, taken in one piece.

--null: all is of one cluster, topic or state.  --drift: after half of the stream, those that came first are gone, one after
another, up to half of them; the score is that of data like the last batch, and a fit to the last batches is compared.
"""

import argparse
import ctypes
import time
import warnings
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from common import memory, report
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.inference import Streaming

SHOWN = 20  # lines on the way
HELD_OUT = 0.02  # of the stream, for scores, and no fewer than one batch


class Source(Protocol):
    """What a stream is of.

    total, batch, clusters, memory, compared : by default, in rows, documents or sequences; memory as `Streaming` counts it
    """

    total: int
    batch: int
    clusters: int
    memory: int
    compared: int

    def draw(self, n: int, among: range, rng: np.random.Generator) -> Any:
        """So many, of some of the clusters."""
        ...

    def together(self, batches: list[Any]) -> Any:
        """Batches as one."""
        ...

    def size(self, X: Any) -> int:
        """The bytes of a batch."""
        ...

    def estimator(self, **settings: Any) -> Any:
        """An estimator for such data."""
        ...


class Rows:
    """Gaussians with random means and full covariances."""

    total, batch, clusters, memory, compared = 10_000_000, 10_000, 50, 20_000, 500_000
    D = 32

    def __init__(self, K: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.means = rng.normal(0.0, 2.0, (K, self.D))
        self.factors = rng.normal(0.0, 1.0, (K, self.D, self.D)) / np.sqrt(self.D)

    def draw(self, n: int, among: range, rng: np.random.Generator) -> np.ndarray:
        """So many of some of the clusters."""
        z = rng.integers(among.start, among.stop, size=n)
        X = rng.standard_normal((n, self.D))
        for k in among:
            mine = z == k
            X[mine] = X[mine] @ self.factors[k].T + self.means[k]
        return X

    def together(self, batches: list[np.ndarray]) -> np.ndarray:
        """Batches as one."""
        return np.concatenate(batches)

    def size(self, X: np.ndarray) -> int:
        """The bytes of a batch."""
        return X.nbytes

    def estimator(self, **settings: Any) -> Mixture:
        """An estimator for such data."""
        return Mixture("gaussian", **settings)


class Documents:
    """Documents that mix topics from Dirichlet(0.05) by proportions from Dirichlet(0.2)."""

    total, batch, clusters, memory, compared = 200_000, 1000, 20, 10_000, 50_000
    V, words = 1000, 60

    def __init__(self, K: int, seed: int) -> None:
        self.topics = np.random.default_rng(seed).dirichlet(np.full(self.V, 0.05), K)

    def draw(self, n: int, among: range, rng: np.random.Generator) -> sparse.csr_array:
        """So many of some of the clusters."""
        shares = rng.dirichlet(np.full(len(among), 0.2), n)
        rows = [rng.multinomial(self.words, p) for p in shares @ self.topics[among.start : among.stop]]
        return sparse.csr_array(np.array(rows, dtype=np.float64))

    def together(self, batches: list[Any]) -> Any:
        """Batches as one."""
        return sparse.vstack(batches, format="csr")

    def size(self, X: Any) -> int:
        """The bytes of a batch."""
        return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)

    def estimator(self, **settings: Any) -> TopicModel:
        """An estimator for such data."""
        return TopicModel(**settings)


class Sequences:
    """Sequences of 100 rows of 4 columns in Gaussian states that last 10 rows."""

    total, batch, clusters, memory, compared = 20_000, 100, 12, 20_000, 2000
    D, length, duration = 4, 100, 10.0

    def __init__(self, K: int, seed: int) -> None:
        self.means = np.random.default_rng(seed).normal(0.0, 2.5, (K, self.D))

    def draw(self, n: int, among: range, rng: np.random.Generator) -> list[np.ndarray]:
        """So many of some of the clusters."""
        z = rng.integers(among.start, among.stop, size=(n, self.length))
        stays = rng.random((n, self.length)) > 1.0 / self.duration
        for t in range(1, self.length):
            z[:, t] = np.where(stays[:, t], z[:, t - 1], z[:, t])
        return [self.means[path] + rng.standard_normal((self.length, self.D)) for path in z]

    def together(self, batches: list[list[np.ndarray]]) -> list[np.ndarray]:
        """Batches as one."""
        return [x for batch in batches for x in batch]

    def size(self, X: list[np.ndarray]) -> int:
        """The bytes of a batch."""
        return sum(x.nbytes for x in X)

    def estimator(self, **settings: Any) -> HMM:
        """An estimator for such data."""
        return HMM("gaussian", **settings)


SOURCES: dict[str, type[Any]] = {"rows": Rows, "documents": Documents, "sequences": Sequences}


def alive(t: int, batches: int, options: argparse.Namespace) -> range:
    """The clusters of a batch."""
    if options.null:
        return range(1)
    K = options.clusters
    each = max(1, batches // 2 // K)  # batches until one cluster more appears
    gone = max(0, t - batches // 2) // each if options.drift else 0
    return range(min(gone, K // 2), min(K, 1 + t // each))


def in_use() -> float:
    """Resident memory in MB, without what the allocator has free."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    return memory("VmRSS")


def found(model: Any) -> int:
    """The clusters of an estimator."""
    return int(model.summary_.K)


def stream(options: argparse.Namespace, seed: int) -> list[dict[str, Any]]:
    """The lines of one stream."""
    source: Source = SOURCES[options.of](options.clusters, seed)
    rng = np.random.default_rng([seed, 1])
    batches = options.total // options.batch
    algorithm = Streaming(options.forgetting, options.memory)
    model = source.estimator(algorithm=algorithm, random_state=seed, n_jobs=options.jobs)
    kept: list[Any] = []
    rows: list[dict[str, Any]] = []
    seconds = busy = 0.0
    every = max(1, options.total // options.compared)
    for t in range(batches):
        among = alive(t, batches, options)
        X = source.draw(options.batch, among, rng)
        if options.drift:
            kept = [*kept[-max(1, options.compared // options.batch) + 1 :], X]
        else:
            kept.append(source.together([X[::every]]))  # a copy: a view would hold all of X
        began, used = time.perf_counter(), time.process_time()
        model.partial_fit(X)
        seconds += time.perf_counter() - began
        busy += time.process_time() - used
        if (t + 1) % max(1, batches // SHOWN) == 0:
            row = {"seed": seed, "batch": t + 1, "clusters so far": len(among), "K": found(model), "seconds": seconds}
            rows.append(row | {"CPU s": busy, "MB": in_use() - sum(map(source.size, kept)) / 2**20})
            print(rows[-1], flush=True)
    T = source.draw(max(options.batch, int(HELD_OUT * options.total)), among, np.random.default_rng([seed, 2]))
    began = time.process_time()
    fit = source.estimator(random_state=seed, n_jobs=options.jobs).fit(source.together(kept))
    used = time.process_time() - began
    score, rival = model.score(T), fit.score(T)
    end = {"K of the fit": found(fit), "CPU s of the fit": used, "score": score, "score of the fit": rival}
    rows.append(rows[-1] | end | {"lower by %": 100.0 * (rival - score) / abs(rival)})
    print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=SOURCES, default="rows")
    parser.add_argument("--total", type=int, metavar="N", help="rows, documents or sequences")
    parser.add_argument("--batch", type=int, metavar="N")
    parser.add_argument("--clusters", type=int, metavar="K")
    parser.add_argument("--memory", type=int, metavar="N", help="rows, documents, or rows of sequences")
    parser.add_argument("--compared", type=int, metavar="N", help="of the stream in the batch fit")
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--forgetting", type=float, default=1.0)
    parser.add_argument("--drift", action="store_true")
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads, by default one for each processor")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in ("total", "batch", "clusters", "memory", "compared"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(SOURCES[options.of], name))
    report("streams", [row for seed in range(options.seeds) for row in stream(options, seed)])


if __name__ == "__main__":
    main()
