"""A likelihood of your own: the geometric distribution, in one file.  docs/new_likelihood.md derives it step by step.

python examples/geometric.py
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import psi

from stickbreak.likelihoods import Array, IndependentColumns, Sample, log_gamma_ratio, positive_values


class GeometricPosterior(NamedTuple):
    """Posterior mean of the chance of stopping in each column, (K, D)."""

    probabilities: Array


@dataclass(frozen=True, eq=False)
class Geometric(IndependentColumns):
    """Geometric likelihood for columns of failures before the first success, dense or CSR, with a Beta prior for each.

        p(x_d | theta_d) = (1 - theta_d)^x_d theta_d,  x_d = 0, 1, 2, ...,   theta_d ~ Beta(a_d, b_d)

    with statistics t(x) = x.  After n_d observed values with sum s_d: Beta(a_d + n_d, b_d + s_d).  Missing values are
    integrated out exactly.

    Parameters
    ----------
    a, b : float or array (D,), > 0, default: a + b = 1, with the share a / (a + b) of successes in the data
        Pseudo-counts of values, each of which ends in a success, and of failures, their sum.
    """

    takes_sparse: ClassVar[bool] = True
    takes_negative: ClassVar[bool] = False
    domain: ClassVar[str] = "whole numbers of at least 0"
    tunable: ClassVar[tuple[str, ...]] = ("a", "b")

    a: Any = None
    b: Any = None

    def _prior(self, sample: Sample) -> dict[str, Any]:
        n = sample.weights.sum()
        share = (n + 0.5) / (n * (1.0 + sample.mean()) + 1.0)  # of successes in all trials
        a = share if self.a is None else positive_values("a", self.a, sample.D)
        b = 1.0 - share if self.b is None else positive_values("b", self.b, sample.D)
        return {"a": a, "b": b}

    def _in_domain(self, x: Array) -> Any:
        return (x >= 0.0) & (np.floor(x) == x)

    def _posterior(self, n: Array, sums: tuple[Array, ...]) -> GeometricPosterior:
        """E[theta] = (a + n) / (a + n + b + s)."""
        a, b = self._update(n, sums)
        return GeometricPosterior(a / (a + b))

    def _weights(self, n: Array, sums: tuple[Array, ...]) -> tuple[tuple[Array, ...], Array]:
        """E[log(1 - theta)] and E[log theta]."""
        a, b = self._update(n, sums)
        both = psi(a + b)
        return (psi(b) - both,), psi(a) - both

    def _marginal(self, n: Array, sums: tuple[Array, ...]) -> Array:
        """The ratio of Beta functions B(a + n, b + s) / B(a, b)."""
        both = log_gamma_ratio(n + sums[0], self.a + self.b)
        return log_gamma_ratio(n, self.a) + log_gamma_ratio(sums[0], self.b) - both

    def _predictive(self, x: Array, n: Array, sums: tuple[Array, ...], columns: Any) -> Array:
        """Beta-geometric: B(a + 1, b + x) / B(a, b)."""
        a = self.a[columns] + n
        b = self.b[columns] + sums[0]
        return np.asarray(np.log(a) + log_gamma_ratio(x, b) - log_gamma_ratio(1.0 + x, a + b))

    def _bregman(self, x: Array, center: Array, columns: Any) -> Array:
        """With mean m after x alone and m' after the center: m log(m / m') - (1 + m) log((1 + m) / (1 + m'))."""
        m, other = self._smooth(x, columns), self._smooth(center, columns)
        return np.maximum(m * np.log(m / other) - (1.0 + m) * np.log((1.0 + m) / (1.0 + other)), 0.0)

    def _moments(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        """Of the predictive where they exist (a > 1, a > 2), else of the geometric with mean b / a, or with that mean."""
        a, b = self._update(n, sums)
        mean = b / np.where(a > 1.0, a - 1.0, a)
        wider = np.where(a > 2.0, a / np.where(a > 2.0, a - 2.0, 1.0), 1.0)
        return mean, wider * mean * (1.0 + mean)

    def _draw(self, n: Array, sums: tuple[Array, ...], rng: np.random.Generator, size: int) -> Array:
        a, b = self._update(n, sums)
        return rng.geometric(np.maximum(rng.beta(a, b, (size, len(a))), 1e-15)) - 1.0

    def _update(self, n: Array, sums: tuple[Array, ...]) -> tuple[Array, Array]:
        """The Beta posterior: a and b of it."""
        return self.a + n, self.b + sums[0]

    def _smooth(self, x: Array, columns: Any) -> Array:
        """Mean of the pseudo-values and one value more, or none."""
        seen = ~np.isnan(x)
        return np.asarray((self.b[columns] + np.where(seen, x, 0.0)) / (self.a[columns] + seen))


if __name__ == "__main__":
    from stickbreak import Mixture

    rng = np.random.default_rng(0)
    theta = np.array([[0.5, 0.5, 0.02], [0.5, 0.02, 0.5], [0.02, 0.5, 0.5], [0.02, 0.02, 0.02]])
    X = rng.geometric(theta[rng.integers(len(theta), size=4000)]) - 1.0
    X[rng.random(X.shape) < 0.1] = np.nan  # one value in ten is missing

    model = Mixture(Geometric(), random_state=0).fit(X)
    print("chance of stopping in each column, by cluster:")
    for weight, probabilities in zip(model.weights_, model.probabilities_):
        print(f"  weight {weight:.3f}:", np.array2string(probabilities, precision=3))
    model.summary()
