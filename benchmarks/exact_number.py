"""How often a default fit finds exactly the number of clusters that rows were drawn from.

Gaussian clusters of unit variance, at least 5 standard deviations apart, of at least 5 (D + 1) rows each; one Gaussian; and
both rounded to whole numbers.  K, D, N and the distance of each set are drawn at random.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from baselines import fitted
from right_number_data import DataSet, grown

ROWS = 5  # rows of a cluster, at least, for each column and one more
NUMBERS, SMALL_NUMBERS = 3_000_000, 300_000  # values of a set, at most


@dataclass(frozen=True)
class Exact:
    """A set, the clusters it has, the steps that its values are rounded to, and the columns."""

    data: DataSet
    K: int
    D: int
    step: float = 0.0

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The same rows every time, and the cluster of each."""
        X, z = self.data.rows()
        return (np.round(X / self.step) * self.step if self.step else X), z


def exact_sets(n: int, small: bool) -> Iterator[Exact]:
    """So many sets, the same every time."""
    rng = np.random.default_rng(1)
    most = SMALL_NUMBERS if small else NUMBERS
    while n > 0:
        D = int(2.0 ** rng.uniform(0.0, 10.0))
        K = 1 if rng.random() < 0.25 else int(2.0 ** rng.uniform(1.0, 6.0))
        least = ROWS * (D + 1) * K
        if least * D > most:
            continue
        N = int(least * (most / D / least) ** rng.uniform(0.0, 0.7))
        distance, step = float(rng.uniform(5.0, 8.0)), float(rng.choice([0.0, 0.0, 0.1, 1.0]))
        n -= 1
        yield Exact(grown(D, K, N, distance, "equal", "auto"), K, D, step)


def exact(sets: Iterator[Exact]) -> Iterator[dict[str, Any]]:
    """A default fit to each set, and the same that starts at the truth, which is of the same family."""
    for one in sets:
        X, truth = one.rows()
        began = time.process_time()
        fit = fitted(X, one.data.likelihood, random_state=0)
        seconds = time.process_time() - began
        best = fitted(X, one.data.likelihood, init=truth, moves=(), random_state=0)
        name = one.data.name + (f"-steps of {one.step:g}" if one.step else "")
        gap = fit.lower_bound_ - best.lower_bound_
        yield {"name": name, "N": len(X), "D": one.D, "true K": one.K, "K": fit.n_clusters_, "truth": gap, "s": seconds}


def report_exact(n: int, small: bool) -> None:
    """Print what was missed, and how much was found."""
    rows = []
    print(f"{'name':60}{'true K':>8}{'K':>6}{'ahead of truth':>18}{'CPU s':>9}")
    for row in exact(exact_sets(n, small)):
        rows.append(row)
        wrong = "" if row["K"] == row["true K"] else "  *"
        print(f"{row['name']:60}{row['true K']:8}{row['K']:6}{row['truth']:18,.2f}{row['s']:9.1f}{wrong}", flush=True)
    hits = np.array([row["K"] == row["true K"] for row in rows])
    null = np.array([row["true K"] == 1 for row in rows])
    print(f"exact: {hits.sum()} of {len(hits)} ({hits.mean():.0%}); of one cluster: {hits[null].sum()} of {null.sum()}")
    beaten = sum(row["truth"] < -1.0 for row in rows)
    print(f"beaten by the truth, by more than a nat: {beaten}; CPU seconds: {sum(row['s'] for row in rows):.0f}")
