"""MNIST in 50 dimensions from one cluster, nobody choosing K: ELBO over time, for several seeds.

python benchmarks/mnist_search.py [--seeds 3] [--seconds 60] [--float32]
"""

import argparse
import contextlib

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from common import memory, mnist50, mnist_prior, report
from stickbreak.allocations import DirichletProcess
from stickbreak.data import ArraySource
from stickbreak.inference import Options, RowSearch, Session, Threads
from stickbreak.inference.init import one_cluster
from stickbreak.likelihoods import Sample
from stickbreak.model import Model, Responsibilities, local_step


class Timeout(Exception):
    pass


def most_probable(kept: Responsibilities) -> np.ndarray:
    rows = np.repeat(np.arange(len(kept.indptr) - 1), np.diff(kept.indptr))
    order = np.lexsort((kept.values, rows))
    return kept.indices[order][kept.indptr[1:] - 1]


def run(seed: int, seconds: float, dtype: type) -> dict[str, object]:
    X, y = mnist50(dtype)
    source = ArraySource(X)
    model = Model(mnist_prior().resolve(Sample.of(X)), DirichletProcess(1.0))

    def watch(lap) -> None:
        if lap.seconds > seconds:
            raise Timeout

    with Threads() as threads:
        moves, rng = ("birth", "merge", "delete"), np.random.default_rng(seed)
        search = RowSearch(model, source, moves, Session(threads, watch), rng, Options(10, 10**6))
        with contextlib.suppress(Timeout):
            search.run(one_cluster(model))
        laps = [lap for lap in search.history if lap.seconds <= seconds]
        parameters = model.parameters(search.outcome.total, source.dtype)
        parts = (local_step(model.likelihood, parameters, *source.read(chunk))[1] for chunk in source.batches(1)[0])
        labels = np.concatenate([most_probable(kept) for kept in parts])
    bounds = np.array([lap.lower_bound for lap in laps])
    assert (np.diff(bounds) >= -1e-6 * abs(bounds[-1])).all(), "the ELBO decreased"
    reached = next((lap.seconds for lap in laps if lap.lower_bound >= -1_315_000), float("nan"))
    at = {
        f"at {t} s": next((lap.lower_bound for lap in reversed(laps) if lap.seconds <= t), float("nan"))
        for t in (15, 30, 60)
    }
    return {
        "precision": np.dtype(dtype).name,
        "seed": seed,
        **at,
        "ELBO": bounds[-1],
        "K": laps[-1].n_clusters,
        "s to -1,315,000": reached,
        "laps": len(laps),
        "seconds": laps[-1].seconds,
        "NMI with digits": float(normalized_mutual_info_score(y, labels)),
        "peak MB": memory(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--float32", action="store_true")
    arguments = parser.parse_args()
    precision = np.float32 if arguments.float32 else np.float64
    rows = [run(seed, arguments.seconds, precision) for seed in range(arguments.seeds)]
    report(f"mnist_search_{np.dtype(precision).name}_{arguments.seconds:.0f}s", rows)
