"""Rows in a memory-mapped file: 0.25 to 2 million x 32 from 50 clusters.  K found, peak memory, seconds per lap.

    python benchmarks/scale.py [--millions 0.25 0.5 1 2]

Each size runs in a process of its own, so that peak memory is its own.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from common import memory, report

D, K = 32, 50


def write(path: Path, n_rows: int) -> None:
    """A mixture of K Gaussians with random means and full covariances, written in pieces."""
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 2.0, (K, D))
    factors = rng.normal(0.0, 1.0, (K, D, D)) / np.sqrt(D)
    weights = rng.dirichlet(np.full(K, 5.0))
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(n_rows, D))
    for start in range(0, n_rows, 50_000):
        z = rng.choice(K, size=min(50_000, n_rows - start), p=weights)
        noise = np.einsum("nij,nj->ni", factors[z], rng.standard_normal((len(z), D)))
        out[start : start + len(z)] = means[z] + noise
    out.flush()


def fit(path: Path) -> None:
    from stickbreak import Mixture

    X = np.load(path, mmap_mode="r")
    began = time.perf_counter()
    model = Mixture("gaussian", random_state=0, learn=False).fit(X)
    seconds = time.perf_counter() - began
    final = [lap for lap in model.history_ if lap.explored_clusters == model.n_clusters_][-8:]
    row = {
        "rows": len(X),
        "K": model.n_clusters_,
        "ELBO per row": model.lower_bound_ / len(X),
        "laps": model.n_laps_,
        "seconds": seconds,
        "s per lap": float(len(X) / np.median([lap.rows_per_second for lap in final])),
        "peak MB": memory(),
    }
    print(json.dumps(row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[0.25, 0.5, 1.0, 2.0])
    parser.add_argument("--fit", type=Path)
    arguments = parser.parse_args()
    if arguments.fit:
        fit(arguments.fit)
    else:
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            for millions in arguments.millions:
                path = Path(folder) / "rows.npy"
                write(path, int(millions * 1e6))
                answer = subprocess.run(
                    [sys.executable, __file__, "--fit", path], capture_output=True, text=True, check=True
                )
                rows.append(json.loads(answer.stdout.splitlines()[-1]))
                print(rows[-1], flush=True)
        report("scale", rows)
