"""Data that never fit memory, on one machine: seconds, what is found, peak memory.

    python benchmarks/out_of_core.py [--rows 100_000_000] [--format npy]
    python benchmarks/out_of_core.py --documents 20_000_000

`--rows`: a default fit of a mixture to the path of so many rows of 32 columns in float32 from 50 clusters; labels go to a file.
`--documents`: one warm lap of a topic model of 100 topics over so many documents of 20 words.  Files are made by blocks in
`--folder`, and kept there with `--keep` for the next time.  "anonymous MB": peak resident memory beside mapped pages.
"""

import argparse
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from common import memory, report
from stickbreak import Mixture, TopicModel
from stickbreak.data.corpus import open_corpus, write_corpus

D, K = 32, 50
V, TOPICS, WORDS = 2000, 100, 20
BLOCK = 200_000  # rows or documents made at once
LOOK = 0.2  # seconds between two looks at memory
COMPARED = 1_000_000  # labels compared with the truth


class Peak:
    """The peak of anonymous memory while a block runs, in MB."""

    def __enter__(self) -> Self:
        self.most = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            self.most = max(self.most, memory("RssAnon"))
            if self._over.wait(LOOK):
                return


def row_blocks(n_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of K Gaussians with random means and full covariances, and their clusters, a block at a time."""
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 2.0, (K, D))
    factors = rng.normal(0.0, 1.0, (K, D, D)) / np.sqrt(D)
    weights = rng.dirichlet(np.full(K, 5.0))
    for start in range(0, n_rows, BLOCK):
        z = rng.choice(K, size=min(BLOCK, n_rows - start), p=weights)
        X = rng.standard_normal((len(z), D), dtype=np.float32)
        for k in range(K):
            mine = z == k
            X[mine] = X[mine] @ factors[k].T.astype(np.float32) + means[k].astype(np.float32)
        yield X, z


def document_blocks(n_documents: int) -> Iterator[sparse.csr_array]:
    """Counts of documents of as many topics, each with few of them, a block at a time."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.05), TOPICS)
    edges = np.cumsum(topics, axis=1)
    for start in range(0, n_documents, BLOCK):
        n = min(BLOCK, n_documents - start)
        few = rng.integers(TOPICS, size=(n, 3))
        z = np.take_along_axis(few, rng.integers(3, size=(n, WORDS)), axis=1).ravel()
        u = rng.random(n * WORDS)
        words = np.empty(n * WORDS, np.int64)
        for k in range(TOPICS):
            mine = z == k
            words[mine] = np.minimum(np.searchsorted(edges[k], u[mine]), V - 1)
        rows = np.repeat(np.arange(n), WORDS)
        yield sparse.csr_array((np.ones(n * WORDS, np.float32), (rows, words)), (n, V))


def write_rows(path: Path, n_rows: int) -> None:
    """Rows as .npy, or as a folder of parquet files of ten million rows each."""
    if path.suffix == ".npy":
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, D))
        start = 0
        for X, _ in row_blocks(n_rows):
            out[start : start + len(X)] = X
            start += len(X)
            _told("written", start, n_rows)
        out.flush()
        return
    import pyarrow as pa
    from pyarrow import parquet

    path.mkdir()
    names = [f"x{d}" for d in range(D)]
    writer = None
    done = 0
    for X, _ in row_blocks(n_rows):
        if done % (50 * BLOCK) == 0:
            if writer is not None:
                writer.close()
            schema = pa.schema([(name, pa.float32()) for name in names])
            writer = parquet.ParquetWriter(path / f"part{done // (50 * BLOCK):04}.parquet", schema)
        assert writer is not None
        writer.write_table(pa.table(dict(zip(names, X.T))), row_group_size=BLOCK)
        done += len(X)
        _told("written", done, n_rows)
    if writer is not None:
        writer.close()


def fit_rows(folder: Path, n_rows: int, form: str, options: argparse.Namespace) -> dict[str, object]:
    """A default fit to the rows of a file, and their labels in another."""
    path = folder / (f"rows{n_rows}.npy" if form == "npy" else f"rows{n_rows}")
    if not path.exists():
        write_rows(path, n_rows)
    Mixture("gaussian", random_state=0, max_laps=3).fit(np.random.default_rng(0).normal(size=(5000, D)))  # compiles
    with Peak() as peak:
        began = time.perf_counter()
        model = Mixture(random_state=options.seed, n_jobs=options.jobs, verbose=True).fit(path)
        seconds = time.perf_counter() - began
        labels = model.predict(path, out=folder / "labels.npy")
        labelled = time.perf_counter() - began - seconds
    truth = np.concatenate([z for _, z in row_blocks(min(n_rows, COMPARED))])
    for lap in model.history_:
        of = f"sample {lap.sample_rows:>10,}" if lap.sample_rows else "all rows"
        print(f"{lap.seconds:8.1f} s  {of:>17}  K {lap.explored_clusters:>3}  {lap.rows_per_second:>12,.0f} rows/s")
    return {
        "rows": n_rows,
        "format": form,
        "K": model.n_clusters_,
        "ARI": float(adjusted_rand_score(truth, labels[: len(truth)])),
        "fit s": seconds,
        "labels s": labelled,
        "laps on all": sum(lap.sample_rows == 0 for lap in model.history_),
        "anonymous MB": peak.most,
        "peak MB": memory(),
    }


def lap_of_documents(folder: Path, n_documents: int, options: argparse.Namespace) -> dict[str, object]:
    """Two laps from topics that are near the true ones: the second has warm counts, where memory holds them."""
    path = folder / f"documents{n_documents}"
    if not path.exists():
        write_corpus(path, document_blocks(n_documents), V)
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(V, 0.05), TOPICS) + 0.1 / V
    settings: dict[str, Any] = {"init": topics, "moves": (), "learn": False, "n_jobs": options.jobs, "verbose": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TopicModel(max_laps=2, **settings).fit(open_corpus(path)[:1000].copy())  # compiles
        with Peak() as peak:
            began = time.perf_counter()
            model = TopicModel(max_laps=2, **settings).fit(path)
            seconds = time.perf_counter() - began
    first, second = (lap.seconds for lap in model.history_)
    return {
        "documents": n_documents,
        "K": model.n_topics_,
        "cold lap s": first,
        "warm lap s": second - first,
        "all s": seconds,
        "nats per token": model.lower_bound_ / (n_documents * WORDS),
        "anonymous MB": peak.most,
        "peak MB": memory(),
    }


def _told(what: str, done: int, n: int) -> None:
    if done % (50 * BLOCK) == 0:
        print(f"{what} {done:,} of {n:,}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, metavar="N")
    parser.add_argument("--documents", type=int, metavar="N")
    parser.add_argument("--format", choices=("npy", "parquet"), default="npy")
    parser.add_argument("--folder", type=Path, help="by default a temporary one")
    parser.add_argument("--keep", action="store_true", help="keep the files in the folder")
    parser.add_argument("--jobs", type=int, metavar="N", help="threads, by default one for each processor")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=options.folder) as temporary:
        folder = options.folder if options.keep else Path(temporary)
        if options.documents is not None:
            report("out_of_core_documents", [lap_of_documents(folder, options.documents, options)])
        if options.rows is not None or options.documents is None:
            n = 100_000_000 if options.rows is None else options.rows
            report(f"out_of_core_{options.format}", [fit_rows(folder, n, options.format, options)])


if __name__ == "__main__":
    main()
