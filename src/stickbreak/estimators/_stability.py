"""Whether fits with other random numbers find the same clusters, topics or states."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .._arguments import check_count
from ..data.check import DataWarning
from ..data.opening import in_files
from ..model import Model, Summary
from ._estimator import Estimator, seed_of
from ._hierarchy import Hierarchy

Array = NDArray[np.floating]
E = TypeVar("E", bound=Estimator)


class Comparison(NamedTuple):
    """How what two models say is compared.

    agreement : from 0 or less to 1, for the same
    overlaps : of each cluster of the first with each of the second, from 0 to 1
    """

    agreement: Callable[[Any, Any], float]
    overlaps: Callable[[Any, Any], Array]


class View(NamedTuple):
    """What a model says of its clusters, at every level of its hierarchy.

    of : what it says, given the group of each cluster (K,)
    """

    hierarchy: Hierarchy
    of: Callable[[NDArray[np.intp]], Any]
    lower_bound: float

    @property
    def K(self) -> int:
        """How many clusters the model has."""
        return len(self.hierarchy.losses) + 1

    def at(self, n: int | None) -> Any:
        """What it says of n groups of clusters; None: of the clusters."""
        return self.of(self.hierarchy.cut(self.K if n is None else n))


@dataclass(frozen=True)
class Stability:
    """What fits of the same data with other random numbers have in common.

    Read ``agreement`` first: near 1 every fit tells the same story, and one of them is enough.  If it is low, ``twins`` tells
    which clusters of the model in hand others find, too, and may be believed; `cut` tells at which level of the hierarchies
    fits agree: a few groups are often stable where the leaves are not.  That fits agree does not make their clusters true, and
    a single cluster is the same in every fit.

    Attributes
    ----------
    agreement : float
        The mean of ``agreements`` over pairs of fits.  Of labels the adjusted Rand index: 1 for the same groups, 0 for no more
        in common than by chance.  Of topics the mean best cosine, from 0 to 1.
    agreements : array (n_fits, n_fits)
        The same of each pair of fits; symmetric, 1 on the diagonal.
    overlaps : array (n_fits, n)
        How much of each cluster of the model in hand the most similar cluster of every fit has.  Of rows the Jaccard overlap,
        rows in both over rows in either; of topics the cosine.  From 0 to 1.
    n_clusters : tuple of int
        Clusters, topics or states that each fit found, before it was cut.
    lower_bounds : tuple of float
        The bound of each fit, in nats: those far below the best are stuck in poor local optima, which larger ``n_init`` avoids.
    """

    agreement: float
    agreements: Array
    overlaps: Array
    n_clusters: tuple[int, ...]
    lower_bounds: tuple[float, ...]
    _own: View = field(repr=False, compare=False)
    _fits: tuple[View, ...] = field(repr=False, compare=False)
    _comparison: Comparison = field(repr=False, compare=False)

    @classmethod
    def of(cls, own: View, fits: tuple[View, ...], comparison: Comparison, n: int | None) -> Self:
        """What fits have in common with each other and with the model in hand, at n groups of clusters, or at all clusters."""
        mine = own.at(n)
        others = [fit.at(None if n is None else min(n, fit.K)) for fit in fits]
        agreements = np.eye(len(fits))
        first, second = np.triu_indices(len(fits), 1)
        pairs = [comparison.agreement(others[i], others[j]) for i, j in zip(first, second)]
        agreements[first, second] = agreements[second, first] = pairs
        overlaps = np.stack([comparison.overlaps(mine, other).max(axis=1) for other in others])
        found = tuple(fit.K for fit in fits)
        bounds = tuple(fit.lower_bound for fit in fits)
        return cls(float(np.mean(pairs)), agreements, overlaps, found, bounds, own, fits, comparison)

    @property
    def twins(self) -> Array:
        """The mean of ``overlaps`` over fits, (n,): near 1 for a cluster that every fit finds, in the order of the model's.

        With n the clusters are the groups of ``hierarchy_.cut(n)``.
        """
        return np.asarray(self.overlaps.mean(axis=0))

    def cut(self, n: int) -> Self:
        """The same fits with their hierarchies cut at n clusters: nothing is fitted again.

        ``[found.cut(n).agreement for n in (2, 5, 20)]`` tells at which level fits agree.

        Parameters
        ----------
        n : int from 1 to the clusters of the model in hand; a fit that found fewer stays as it is

        Raises
        ------
        ValueError
            If there are no such number of clusters.
        """
        return self.of(self._own, self._fits, self._comparison, n)


def stability(
    model: E,
    n: int | None,
    n_fits: int,
    fit: Callable[[E], E],
    view: Callable[[E], Callable[[NDArray[np.intp]], Any]],
    comparison: Comparison,
) -> Stability:
    """Fit a model's copies with other seeds, and compare them with each other and with the model.

    fit : fits a copy
    view : what a model says of its clusters (`View.of`)

    Raises
    ------
    ValueError : there are no such number of clusters, or fewer than two fits.
    """
    check_is_fitted(model)
    check_count(n_fits, "n_fits")
    if n_fits < 2:
        raise ValueError(f"n_fits must be at least 2, for fits to be compared; got {n_fits}.")
    own = View(model.hierarchy_, view(model), float(model.lower_bound_))
    own.at(n)  # refuses other numbers before anything is fitted
    fits = []
    for state in np.random.SeedSequence(seed_of(model)).generate_state(n_fits):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # known since the first fit
            fitted = fit(clone(model).set_params(random_state=int(state), checkpoint=None))
        fits.append(View(fitted.hierarchy_, view(fitted), float(fitted.lower_bound_)))
    return Stability.of(own, tuple(fits), comparison, n)


def stability_of_labels(
    model: E, X: Any, n: int | None, n_fits: int, fit: Callable[[E], E], predict: Callable[[E], Any]
) -> Stability:
    """The `stability` of the labels of the rows of X.

    fit : fits a copy to X
    predict : the labels of X by a model; a copy that was fitted to X has them already, unless these are in files
    """

    def view(fitted: E) -> Callable[[NDArray[np.intp]], "Grouped"]:
        known = fitted is not model and not in_files(X)
        return partial(Grouped.of, np.asarray(fitted.labels_ if known else predict(fitted), np.intp))

    return stability(model, n, n_fits, fit, view, OF_LABELS)


def stability_of_topics(model: E, n: int | None, n_fits: int, fit: Callable[[E], E]) -> Stability:
    """The `stability` of the probabilities of words.

    fit : fits a copy
    """
    return stability(model, n, n_fits, fit, lambda fitted: partial(_topics, fitted.model_, fitted.summary_), OF_TOPICS)


class Grouped(NamedTuple):
    """The group of each row, (N,), and how many groups there are."""

    labels: NDArray[np.intp]
    n: int

    @classmethod
    def of(cls, labels: NDArray[np.intp], groups: NDArray[np.intp]) -> "Grouped":
        """Rows in clusters, those in groups (K,)."""
        return cls(groups[labels], int(groups.max()) + 1)


def _rand(a: Grouped, b: Grouped) -> float:
    from sklearn.metrics import adjusted_rand_score  # brings a third of scikit-learn

    return float(adjusted_rand_score(a.labels, b.labels))


def _jaccard(a: Grouped, b: Grouped) -> Array:
    """Rows in both over rows in either, (n_a, n_b); 0 for two groups without rows."""
    both = np.zeros((a.n, b.n))
    np.add.at(both, (a.labels, b.labels), 1.0)
    either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
    return np.asarray(both / np.maximum(either, 1.0))


def _topics(model: Model, summary: Summary, groups: NDArray[np.intp]) -> Array:
    """Posterior mean probabilities of the words in groups of topics, given the group of each (K,), (n, V)."""
    of = np.eye(groups.max() + 1)[groups].T
    return np.asarray(model.likelihood.posterior(of @ summary.N, of @ summary.S).probabilities)


def _cosines(a: Array, b: Array) -> Array:
    """Of topics (n_a, V) with topics (n_b, V), (n_a, n_b)."""
    a, b = (topics / np.linalg.norm(topics, axis=1, keepdims=True) for topics in (a, b))
    return np.asarray(a @ b.T)


def _best_cosine(a: Array, b: Array) -> float:
    """The mean over the topics of both of the best cosine with a topic of the other."""
    cosines = _cosines(a, b)
    return float(np.concatenate([cosines.max(axis=0), cosines.max(axis=1)]).mean())


OF_LABELS = Comparison(_rand, _jaccard)
OF_TOPICS = Comparison(_best_cosine, _cosines)
