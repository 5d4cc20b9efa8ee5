"""The number of states of sticky chains, not given, beside starts at the true states, one state, and a fit from the fit.

Chains of 1, 4, 8 and 25 states that last 2, 5, 20 or 100 rows on average, in one sequence or in 500 of 20 rows, or with one
state rarer than the others (0.5% of the rows), and, where asked for, of 200,000 rows, in sequences of 5 or 3, with states
that always last 5 rows, so that the true ones are 5 in order for each, or with states that take turns in one order and hardly
ever last; rows of numbers in 1, 2 or 10 columns, of processes that
follow one row before or two, of marks (10 zeros or ones), of counts (3), or of 4, 20 or 100 symbols.  A gap is the bound of the
fit less that of the other, in nats: where it is negative, the search has missed something.  "truth" starts at the true states
and makes no moves, "truth on" goes on with all of them.  "wrong" is the share of rows with a wrong label, and "truth wrong"
that of "truth".

--null N: N chains of one state for every kind of rows instead, also of processes of 2 and 10 columns; where rows are numbers
also with the likelihood left to `HMM`.  It prints how often one state was found.

    python benchmarks/right_states.py [--rows KIND ...] [--small] [--states K ...] [--shapes N ...] [--seeds N] [--first SEED]
                                      [--quick] [--null N]
"""

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from common import report
from state_labels import hamming
from stickbreak import HMM
from stickbreak.likelihoods import AutoregressiveGaussian, Likelihood


class Shape(NamedTuple):
    """Sequences, their rows, the mean number of rows that a state lasts, and the share of the last state, if it is rare.

    exact : whether every state lasts so many rows
    turns : whether states take turns, always in the same order
    """

    sequences: int
    length: int
    duration: float
    rare: float | None = None
    exact: bool = False
    turns: bool = False


SHAPES = (
    Shape(1, 4000, 20),
    Shape(500, 20, 5),
    Shape(1, 4000, 2),
    Shape(1, 20_000, 100, 0.005),
    Shape(1, 200_000, 20),
    Shape(300, 5, 5),
    Shape(500, 3, 10),
    Shape(1, 4000, 5, exact=True),
    Shape(1, 4000, 1.03, turns=True),
)
NUMBERS = range(1, 1 + len(SHAPES))
USUAL = (1, 2, 3, 4)  # not the one that begins on a sample, short sequences, exact durations and turns
SHAPES_HELP = "; ".join(f"{number}: {tuple(shape)}" for number, shape in zip(NUMBERS, SHAPES)) + f"; {USUAL} by default"
UNSEEN = 200  # rows of a process before the first, which is then no row unlike the others
RIVALS = ("truth", "truth on", "one")
STATES, SMALL_STATES = (1, 4, 8, 25), (1, 4, 8)
Rows = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def path(K: int, shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """The states of all rows."""
    weights = np.full(K, 1.0 / K)
    if shape.rare is not None and K > 1:
        weights = np.append(np.full(K - 1, (1.0 - shape.rare) / (K - 1)), shape.rare)
    found = []
    for _ in range(shape.sequences):
        z, state = np.empty(shape.length, int), rng.choice(K, p=weights)
        for t in range(shape.length):
            if t and K > 1 and (t % shape.duration == 0 if shape.exact else rng.random() < 1.0 / shape.duration):
                others = np.where(np.arange(K) == state, 0.0, weights)
                state = (state + 1) % K if shape.turns else rng.choice(K, p=others / others.sum())
            z[t] = state
        found.append(z)
    return np.concatenate(found)


def numbers(D: int, spread: float) -> Rows:
    return lambda z, K, rng: (spread * rng.standard_normal((K, D)))[z] + rng.standard_normal((len(z), D))


def symbols(V: int, concentration: float) -> Rows:
    def rows(z: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        edges = rng.dirichlet(np.full(V, concentration), K).cumsum(axis=1)
        return np.minimum((rng.random(len(z))[:, None] > edges[z]).sum(axis=1), V - 1)[:, None].astype(float)

    return rows


def marks(z: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.random((len(z), 10)) < rng.beta(0.3, 0.3, (K, 10))[z]).astype(float)


def counts(z: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(rng.gamma(1.0, 5.0, (K, 3))[z]).astype(float)


def process(D: int) -> Rows:
    def rows(z: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        slope, level = rng.uniform(-0.9, 0.9, (K, D)), 2.0 * rng.standard_normal((K, D))
        z = np.append(np.full(UNSEEN, z[0]), z)
        X = np.zeros((len(z), D))
        for t in range(1, len(z)):
            X[t] = level[z[t]] + slope[z[t]] * X[t - 1] + 0.5 * rng.standard_normal(D)
        return X[UNSEEN:]

    return rows


def second_order(D: int) -> Rows:
    """Processes that swing: the roots of their polynomials are complex."""

    def rows(z: np.ndarray, K: int, rng: np.random.Generator) -> np.ndarray:
        radius, angle = rng.uniform(0.3, 0.95, (K, D)), rng.uniform(0.0, np.pi, (K, D))
        near, far = 2.0 * radius * np.cos(angle), -(radius**2)
        z = np.append(np.full(UNSEEN, z[0]), z)
        X = np.zeros((len(z), D))
        for t in range(2, len(X)):
            X[t] = near[z[t]] * X[t - 1] + far[z[t]] * X[t - 2] + rng.standard_normal(D)
        return X[UNSEEN:]

    return rows


KINDS: dict[str, tuple[str | Likelihood, Rows]] = {
    "1 number": ("gaussian", numbers(1, 4.0)),
    "2 numbers": ("gaussian", numbers(2, 3.0)),
    "10 numbers": ("gaussian", numbers(10, 1.5)),
    "process": ("autoregressive_gaussian", process(1)),
    "second order": (AutoregressiveGaussian(order=2), second_order(1)),
    "marks": ("bernoulli", marks),
    "counts": ("poisson", counts),
    "4 symbols": ("categorical", symbols(4, 0.3)),
    "20 symbols": ("categorical", symbols(20, 0.2)),
    "100 symbols": ("categorical", symbols(100, 0.2)),
}
ONE_STATE = KINDS | {
    "2 processes": ("autoregressive_gaussian", process(2)),
    "2 of second order": (AutoregressiveGaussian(order=2), second_order(2)),
    "10 processes": ("autoregressive_gaussian", process(10)),
    "10 of second order": (AutoregressiveGaussian(order=2), second_order(10)),
}
PROCESSES = ("process", "second order", "2 processes", "2 of second order", "10 processes", "10 of second order")
OF_NUMBERS = ("1 number", "2 numbers", "10 numbers", *PROCESSES)


def fitted(likelihood: str | Likelihood, X: np.ndarray, shape: Shape, **parameters: Any) -> HMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return HMM(likelihood, **parameters).fit(X, lengths=[shape.length] * shape.sequences)


def measure(kind: str, K: int, shape: Shape, seed: int, quick: bool) -> dict[str, Any]:
    """A default fit, and what it is ahead of the others; quick: without the fit started from itself."""
    likelihood, rows = KINDS[kind]
    rng = np.random.default_rng([seed, K])
    z = path(K, shape, rng)
    X = rows(z, K, rng)
    if shape.exact and K > 1:
        z = int(shape.duration) * z + np.arange(len(z)) % int(shape.duration)
        K *= int(shape.duration)
    began = time.process_time()
    fit = fitted(likelihood, X, shape, random_state=seed)
    seconds = time.process_time() - began
    truth = fitted(likelihood, X, shape, init=z, moves=())
    on = fitted(likelihood, X, shape, init=z, random_state=seed)
    one = fitted(likelihood, X, shape, moves=())
    row = {
        "rows": kind,
        "sequences": f"{shape.sequences} x {shape.length}",
        "duration": shape.duration,
        "seed": seed,
        "true K": K,
        "K": fit.n_states_,
        "ELBO": fit.lower_bound_,
        "truth": fit.lower_bound_ - truth.lower_bound_,
        "truth K": truth.n_states_,
        "truth on": fit.lower_bound_ - on.lower_bound_,
        "one": fit.lower_bound_ - one.lower_bound_,
        "wrong": hamming(fit.labels_, z),
        "truth wrong": hamming(truth.labels_, z),
        "CPU s": seconds,
    }
    if quick:
        return row
    again = fitted(likelihood, X, shape, init=fit, random_state=seed)
    return row | {"itself": fit.lower_bound_ - again.lower_bound_}


def null(kinds: list[str], n: int) -> list[dict[str, Any]]:
    """How many of n chains of one state are found to have one, for each kind of rows and likelihood."""
    rows = []
    for kind in kinds:
        likelihood, make = ONE_STATE[kind]
        for given in (likelihood, "auto") if kind in OF_NUMBERS else (likelihood,):
            rows.append(_null(kind, make, given, n))
            print(*rows[-1].values(), sep="  ", flush=True)
    return rows


def _null(kind: str, make: Rows, likelihood: str | Likelihood, n: int) -> dict[str, Any]:
    found, families, shape = [], Counter(), SHAPES[0]
    began = time.process_time()
    for seed in range(n):
        rng = np.random.default_rng([seed, 1])
        fit = fitted(likelihood, make(path(1, shape, rng), 1, rng), shape, random_state=seed)
        found.append(fit.n_states_)
        families[type(fit.model_.likelihood).__name__] += 1
    return {
        "rows": kind,
        "likelihood": "auto" if likelihood == "auto" else "given",
        "one state": f"{found.count(1)} of {n}",
        "most": max(found),
        "families": ", ".join(f"{name} {times}" for name, times in families.items()),
        "CPU s a fit": (time.process_time() - began) / n,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ONE_STATE, metavar="KIND", help=", ".join(ONE_STATE))
    parser.add_argument("--small", action="store_true", help=f"{SMALL_STATES} states in the first two shapes")
    parser.add_argument("--states", nargs="+", type=int, default=STATES, metavar="K", help=f"{STATES} by default")
    parser.add_argument("--shapes", nargs="+", type=int, choices=NUMBERS, default=USUAL, metavar="N", help=SHAPES_HELP)
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="chains, and fits, of each kind")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of the seeds")
    parser.add_argument("--quick", action="store_true", help="without fits started from themselves")
    parser.add_argument("--null", type=int, metavar="N", help="chains of one state instead, so many of each kind")
    given = parser.parse_args()
    if given.null:
        report("right_states_null", null(given.rows or list(ONE_STATE), given.null))
        return
    kinds = [kind for kind in given.rows or KINDS if kind in KINDS]
    sizes, numbers = (SMALL_STATES, USUAL[:2]) if given.small else (given.states, given.shapes)
    shapes = [SHAPES[number - 1] for number in numbers]
    cases = [(kind, K, shape) for kind in kinds for K in sizes for shape in (shapes if K > 1 else shapes[:1])]
    rows = []
    for case in cases:
        for seed in range(given.first, given.first + given.seeds):
            rows.append(measure(*case, seed, given.quick))
            print(*rows[-1].values(), sep="  ", flush=True)
    report("right_states", rows)
    for rival in RIVALS if given.quick else (*RIVALS, "itself"):
        near = [row[rival] >= -max(1, row["K"]) for row in rows]
        print(f"{rival}: no more than one nat for each state ahead in {sum(near)} of {len(near)}")


if __name__ == "__main__":
    main()
