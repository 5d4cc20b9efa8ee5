"""Chord or parabola: which surrogate of E[c(alpha beta)] gives the higher bound for the topics of few documents?

Thesis Eq. 5.24 bounds log Gamma(1 + x) by its chord from 0 to alpha; the library by a parabola at the mean, and lets the
weights of sticks know how closely documents follow the shares.  Random problems have 1 to 8 topics and concentrations alpha
from 0.01 to 10^6; the topic of every token is known, so that documents have their exact posterior given the shares.  Each
bound is at its own best sticks.

    python benchmarks/surrogates.py [--problems 100]
"""

import argparse

import numpy as np
from scipy.special import gammaln, polygamma, psi

from common import report
from stickbreak.allocations._sticks import best_sticks, stick_bound, stick_logits

CURVATURE = float(polygamma(1, 1.0)) / 2.0
ONLY_COUNTS = np.zeros((0, 2))


def log_proportions(N: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Sum over documents of E[log pi], for counts N (D, K) and pseudo-counts a (K + 1,)."""
    theta = np.column_stack([N, np.zeros(len(N))]) + a
    return (psi(theta) - psi(theta.sum(axis=1, keepdims=True))).sum(axis=0)


def highest(P: np.ndarray, D: float, alpha: float, gamma: float, surrogate: str) -> float:
    """The part of the bound that depends on the sticks, at the best ones."""
    follow = np.array([[D, alpha]]) if surrogate == "parabola" else ONLY_COUNTS
    nothing = np.zeros(len(P))

    def of_means(m: np.ndarray) -> tuple:
        a = np.maximum(alpha * m, 1e-300)
        if surrogate == "chord":
            value = D * (gammaln(alpha) - gammaln(1.0 + alpha) + np.log(a).sum()) + a @ P
            return float(value), a * P + D, nothing, nothing
        part = CURVATURE * a
        spread = D * CURVATURE * alpha**2 / (1.0 + part)
        value = D * (gammaln(alpha) - gammaln(a).sum()) + a @ P
        return float(value), a * (P - D * psi(a)), spread, -spread * part / (1.0 + part)

    shares = np.full(len(P), 1.0 / len(P))
    counts = D * (1.0 + alpha * shares)
    rows = np.full(len(P), D)
    return best_sticks(lambda x: stick_bound(x, rows, gamma, follow, of_means), stick_logits(shares), counts)[1]


def gain(rng: np.random.Generator, D: int) -> float:
    """What the parabola gains on the chord, in nats, in a random problem of D documents."""
    K = int(rng.integers(1, 9))
    alpha = float(10.0 ** rng.uniform(-2.0, 6.0))
    gamma = float(10.0 ** rng.uniform(-1.0, 1.0))
    shares = rng.dirichlet(np.ones(K + 1))
    proportions = rng.dirichlet(np.maximum(alpha * shares[:K], 1e-2), D)
    N = np.array([rng.multinomial(100, p) for p in proportions]).astype(float)
    P = log_proportions(N, np.maximum(alpha * shares, 1e-8))
    return highest(P, float(D), alpha, gamma, "parabola") - highest(P, float(D), alpha, gamma, "chord")


def main() -> None:
    """Compare and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=100)
    arguments = parser.parse_args()
    rows = []
    for D in (1, 3, 10):
        rng = np.random.default_rng(D)
        gains = np.array([gain(rng, D) for _ in range(arguments.problems)])
        rows.append(
            {
                "documents": D,
                "problems": len(gains),
                "chord higher": int((gains < 0.0).sum()),
                "least gain of the parabola": gains.min(),
                "median gain": float(np.median(gains)),
            }
        )
    report("surrogates", rows)


if __name__ == "__main__":
    main()
