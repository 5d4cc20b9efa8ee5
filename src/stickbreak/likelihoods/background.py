"""A background for rows that belong to no cluster, behind any family of measurements."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from .._sums import check_between
from ._base import Array, Likelihood
from ._dust import OWN, Dust
from ._hyperparameters import hyperparameter, require
from ._profile import Profile
from ._sample import Sample
from ._size import Size
from .gaussian import Gaussian

DEFAULT = 0.02  # share before it is learnt
LEARNT = 1e-6, 0.5  # shares that may be learnt
FAST = 1.0  # the most by which the log odds of the share are moved on in a lap
TOLL, FEW = 0.03, 0.005  # nats, and rows, of what a cluster pays for its background
ROUNDED = 1e-9  # of the rows of a cluster: fewer than no rows by so much are none
EDGE = 1e-9  # widths of the box by which rounding may put a row outside


@dataclass(frozen=True, eq=False)
class Background(Likelihood):
    """A family of measurements, such as `Gaussian`, with a background: rows that belong to no cluster, such as noise.

        p(x | phi) = (1 - share) p_family(x | phi) + share / V,    V = volume of the box of the data

    As all clusters have the same background, a mixture of them is one of the clusters of the family and of one component more,
    uniform in the box, with the weight ``share``.  `Mixture.background_proba` has its probability for each row.

    A bit t_nk says whether row n is from the family, given that it is in cluster k.  With s_nk = E[log p_family(x_n | phi_k)],

        E[t_nk] = 1 / (1 + exp(-odds_nk)),   odds_nk = s_nk + log(1 - share) - log(share / V),
        score_nk = log(share / V) + log(1 + exp(odds_nk))

    Statistics are those of the family, log h(x) + log V for its base measure h, and 1, all times E[t_nk], and the entropy of
    q(t_nk).  The global step is that of the family with rows weighted by E[t_nk], so that background widens no cluster.

    Parameters
    ----------
    family : likelihood of measurements, default Gaussian()
    share : float in (0, 1), default 0.02, or learnt from 1e-6 to 0.5
        The share of the rows that are background.

    Raises
    ------
    ValueError
        Missing values, hidden Markov models, topic models, parts of a `Product`, and families with latent variables of their
        own, `StudentT`: use the family without a background, or a family without them.

    Notes
    -----
    The box reaches from the smallest to the largest value of each column of the data of the fit.  A constant column has no
    width: where the family counts it, it is as wide as the others on average.  Rows outside of the box are background as
    easily as rows in it, but have no density as background: predictive densities integrate to one.  One row far from all
    others makes the box large, so that less is background near the clusters: leave such rows out, or use `StudentT`.

    ``LogScale(Background(DiagonalGaussian()))`` has its background on the log scale.  Posteriors and profiles are those of the
    family, of a cluster without background.

    The bound holds q(phi) q(t | z) q(z) and stays below the log evidence.  A cluster with b rows of background pays
    0.03 log(1 + b / 0.005) nats of it, 0.3 for 100 rows: otherwise clusters without rows of their own would stay, as they
    explain background as well as any.  The toll is concave in b, so that a local step by its slope never lowers the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from stickbreak import Mixture
    >>> from stickbreak.likelihoods import Background
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([*(rng.normal(m, 1.0, (200, 2)) for m in (-8, 8)), rng.uniform(-40, 40, (40, 2))])
    >>> model = Mixture(Background(), random_state=0).fit(X)
    >>> model.n_clusters_, round(model.model_.likelihood.share, 2)
    (2, 0.09)

    References
    ----------
    Banfield and Raftery 1993, "Model-based Gaussian and non-Gaussian clustering", Biometrics 49, section 3 (noise); Fraley and
    Raftery 2002, "Model-based clustering, discriminant analysis, and density estimation", JASA 97, section 5.
    """

    measures: ClassVar[bool] = True
    rounds: ClassVar[bool] = True
    tunable: ClassVar[tuple[str, ...]] = ("share",)

    family: Likelihood = Gaussian()
    share: Any = None
    box: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        fits = isinstance(self.family, Likelihood) and self.family.measures
        require(fits, "family", self.family, "a likelihood of measurements, such as Gaussian() or DiagonalGaussian()")

    def locate(self, names: Sequence[str] | None, D: int) -> Self:
        """With the columns of the family located."""
        family = self.family.locate(names, D)
        describes = bool(family.describes(D).all())
        require(describes, "family", self.family, "one that describes all columns, not some of them given others")
        return replace(self, family=family)

    def resolve(self, sample: Sample) -> Self:
        """Resolve the family, and take the box from the limits of all rows."""
        share = hyperparameter("share", DEFAULT if self.share is None else self.share)
        require(share.ndim == 0 and bool(0.0 < share < 1.0), "share", self.share, "a number between 0 and 1")
        family = self.locate(sample.names, sample.D).family.resolve(sample)
        plain = "one without latent variables of rows, such as Gaussian() or DiagonalGaussian()"
        require(family.latent is None, "family", self.family, plain)
        low = np.nan_to_num(sample.smallest.astype(np.float64))
        high = np.where(sample.varies(), np.nan_to_num(sample.largest.astype(np.float64)), low)
        return replace(self, family=family, share=float(share), box=np.stack([low, high]))

    def size(self, missing: NDArray[np.bool_], largest: Array) -> Size:
        """The size of the family with three more statistics."""
        size = self.family.size(missing, largest)
        return size._replace(statistics=size.statistics + OWN, entries=size.entries + OWN)

    @property
    def latent(self) -> Dust:
        """The bits of its rows."""
        return Dust()

    @property
    def n_statistics(self) -> int:
        """F, three more than the family has."""
        return self.family.n_statistics + OWN

    def features(self, X: Array, out: Array) -> Array:
        """T (n, F): the features of the family, log h + log V, 1, and 0, the entropy of a bit that is known."""
        self.family.features(X, out[:, :-OWN])
        out[:, -3] = self.family.log_base(X) - self._log_uniform
        out[:, -2:] = 1.0, 0.0
        return out

    def log_base(self, X: Array) -> Array:
        """-log V, (n,)."""
        return np.full(len(X), self._log_uniform)

    def weights(self, N: Array, S: Array) -> tuple[Array, Array]:
        """Those of the family, so that scores are the log odds of a row to be from it; b = log share."""
        W, b = self.family.weights(*self._of_family(N, S))
        toll = TOLL / (FEW + np.maximum(N - S[:, -2], 0.0))  # of one row more
        own = np.ones_like(b)
        return np.column_stack([W, own, b - logit(self.share) + toll, own]), np.log(self.share) - toll

    def log_marginal(self, N: Array, S: Array) -> Array:
        """That of the family for rows weighted by E[t], with E[log p(t)] and the entropy of q(t), less the toll, (K,)."""
        rows = S[:, -2]
        toll = TOLL * np.log1p(np.maximum(N - rows, 0.0) / FEW)
        bits = rows * np.log1p(-self.share) + (N - rows) * np.log(self.share) + S[:, -1] - toll
        return np.asarray(self.family.log_marginal(*self._of_family(N, S)) + S[:, -3] + bits)

    def divergence(self, X: Array, centers: Array) -> Array:
        """That of the family, (n, J)."""
        return self.family.divergence(X, centers)

    def posterior(self, N: Array, S: Array) -> Any:
        """That of the family."""
        return self.family.posterior(*self._of_family(N, S))

    def profile(self, N: Array, S: Array) -> Profile:
        """That of the family: of the rows of a cluster that are not background."""
        return self.family.profile(*self._of_family(N, S))

    def log_predictive(self, X: Array, N: Array, S: Array) -> Array:
        """log( (1 - share) predictive density of the family + share / V in the box ), (n, K)."""
        own = self.family.log_predictive(X, *self._of_family(N, S))
        low, high = self._box
        slack = EDGE * (high - low)
        wide = high > low
        inside = ((low - slack <= X) & (high + slack >= X))[:, wide].all(axis=1)
        uniform = np.where(inside, np.log(self.share) + self._log_uniform, -np.inf)
        return np.asarray(np.logaddexp(np.log1p(-self.share) + own, uniform[:, None]))

    def sample(self, N: float, S: Array, rng: np.random.Generator, size: int) -> Array:
        """Draw ``size`` rows (size, D) from the predictive of one cluster: a ``share`` of them uniform in the box."""
        rows, own = self._of_family(np.atleast_1d(N), np.atleast_2d(S))
        drawn = self.family.sample(float(rows[0]), own[0], rng, size)
        low, high = self._box
        wide = np.flatnonzero(high > low)
        dust = np.flatnonzero(rng.random(size) < self.share)
        drawn[np.ix_(dust, wide)] = rng.uniform(low[wide], high[wide], (len(dust), len(wide)))
        return drawn

    @property
    def largest(self) -> Any:
        """That of the family."""
        return self.family.largest

    def has_density(self, D: int) -> NDArray[np.bool_]:
        """That of the family."""
        return self.family.has_density(D)

    def spread_out(self, T: Array, variances: Array) -> None:
        """Add to the squares of the family what they have more, where it takes values for rounded."""
        if self.family.rounds:
            self.family.spread_out(T[:, :-OWN], variances)

    def anew(self) -> Self:
        """The family anew."""
        return type(self)(self.family.anew())

    def simpler(self, missing: NDArray[np.bool_]) -> Self | None:
        """A simpler family with a background."""
        family = self.family.simpler(missing)
        return None if family is None else replace(self, family=family)

    def tunables(self) -> list[str]:
        """The share, and those of the family."""
        return [*self.tunable, *self.family.tunables()]

    def coupled(self) -> list[list[str]]:
        """Those of the family."""
        return self.family.coupled()

    def not_given(self) -> list[str]:
        """The share, if it is not, and those of the family."""
        return [*super().not_given(), *self.family.not_given()]

    @property
    def log_hyperprior(self) -> float:
        """That of the family."""
        return self.family.log_hyperprior

    def cost_of_learning(self, name: str, N: Array) -> float:
        """That of one number, or of the family."""
        return super().cost_of_learning(name, N) if name == "share" else self.family.cost_of_learning(name, N)

    def scaled(self, name: str, factor: float) -> Self:
        """With the share, no further out of range than it is, or a hyperparameter of the family multiplied by a factor."""
        if name == "share":
            return self._with_share(self.share * factor)
        return replace(self, family=self.family.scaled(name, factor))

    def widened(self, least: float, names: Collection[str]) -> Self:
        """With wider clusters of the family."""
        return replace(self, family=self.family.widened(least, [name for name in names if name != "share"]))

    def continued(self, names: Sequence[str], other: Likelihood) -> Self:
        """With the share and hyperparameters of the family of another background."""
        if not isinstance(other, Background):
            return self
        own = [name for name in names if name != "share"]
        share = other.share if "share" in names else self.share
        return replace(self, family=self.family.continued(own, other.family), share=share)

    def fitted(self, name: str, N: Array, S: Array) -> Iterator[Self]:
        """With the share of the rows that are background, or a hyperparameter of the family fitted to clusters."""
        if name == "share":
            yield self._with_share(1.0 - float(S[:, -2].sum() / N.sum()))
            return
        for family in self.family.fitted(name, *self._of_family(N, S)):
            yield replace(self, family=family)

    def ahead(self, before: Likelihood, step: float) -> Self:
        """With the share moved on, on the scale of its log odds."""
        if not isinstance(before, Background) or before.share == self.share:
            return self
        change = np.clip(step * (logit(self.share) - logit(before.share)), -FAST, FAST)
        return self._with_share(float(expit(logit(self.share) + change)))

    def resolved_columns(self) -> int | None:
        """The number of columns of the family."""
        return self.family.resolved_columns()

    def check(self, D: int, N: Array, S: Array) -> None:
        """Check the share and the box, the sums of bits, and the family."""
        share = self.share
        require(isinstance(share, float) and 0.0 < share < 1.0, "share", share, "a number between 0 and 1")
        box = self.box
        fits = isinstance(box, np.ndarray) and box.dtype == np.float64 and box.shape == (2, D)
        fits = fits and bool(np.isfinite(box).all()) and bool((box[0] <= box[1]).all())
        require(fits, "box", box, f"finite limits of {D} columns")
        self.locate(None, D)
        require(S.ndim == 2 and S.shape[1] > OWN, "S", S, "statistics of the family and of bits")
        require(bool(np.isfinite(S).all()), "S", S, "finite")
        check_between("rows that are not background", S[:, -2], N)
        check_between("entropies of bits", S[:, -1], np.log(2.0) * N)
        self.family.check(D, *self._of_family(N, S))
        require(self.family.latent is None, "family", self.family, "one without latent variables of rows")

    def _with_share(self, share: float) -> Self:
        """With a share that is no further out of the range that may be learnt than it is."""
        least = min(self.share, LEARNT[0])
        most = max(self.share, LEARNT[1])
        return replace(self, share=float(np.clip(share, least, most)))

    def _of_family(self, N: Array, S: Array) -> tuple[Array, Array]:
        """The number of the rows of each cluster that are not background, (K,), and their statistics in the family."""
        rows = S[:, -2]
        if not (rows >= -ROUNDED * (1.0 + N)).all():
            raise FloatingPointError("more rows of a cluster are background than it has.")
        return np.maximum(rows, 0.0), S[:, :-OWN]

    @property
    def _box(self) -> Array:
        """The smallest and the largest value of each column, (2, D); the same for constant columns."""
        if self.box is None:
            raise TypeError("this likelihood has no data yet; call resolve(sample) first.")
        return np.asarray(self.box)

    @property
    def _log_uniform(self) -> float:
        """-log V: constant columns of which rows have a density are as wide as the others on average."""
        low, high = self._box
        counted = self.family.has_density(len(low))
        widths = (high - low)[counted & (high > low)]
        return -float(np.log(widths).mean() * counted.sum()) if len(widths) else 0.0
