"""One long sequence in a memory-mapped file: two laps with four states given, from blocks, and the most probable path.

Two columns in float32, so 100 million steps are 800 MB, which count in the peak of memory as far as they are mapped.

    python benchmarks/hmm_long.py [--millions 100]
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from common import memory, report
from state_labels import many_to_one
from stickbreak import HMM

K, LAST, PIECE = 4, 100, 1_000_000  # states; steps that one lasts on average; steps written at a time


def write(path: Path, n: int) -> np.ndarray:
    """States of the steps."""
    rng = np.random.default_rng(0)
    centers, z = rng.normal(0.0, 3.0, (K, 2)), np.empty(n, np.int8)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 2))
    for start in range(0, n, PIECE):
        stop = min(start + PIECE, n)
        segments = rng.geometric(1.0 / LAST, size=stop - start)
        z[start:stop] = np.repeat(rng.integers(K, size=stop - start), segments)[: stop - start]
        X[start:stop] = centers[z[start:stop]] + rng.standard_normal((stop - start, 2), dtype=np.float32)
    X.flush()
    return z


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, default=100.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        z = write(path, int(arguments.millions * 1e6))
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two laps are no fit
            model = HMM("gaussian", init="blocks", n_init_states=K, moves=(), max_laps=2, random_state=0)
            model.fit(np.load(path, mmap_mode="r"))
        seconds = time.perf_counter() - began
    laps = np.diff([0.0, *(lap.seconds for lap in model.history_)])
    row = {
        "steps": len(z),
        "seconds": seconds,
        "s of the second lap": float(laps[-1]),
        "peak MB": memory(),
        "wrong labels": many_to_one(model.labels_, z),
    }
    report("hmm_long", [row])


if __name__ == "__main__":
    main()
