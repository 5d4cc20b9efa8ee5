"""The search for clusters of rows of which some have a class: first without labels, then with them."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..likelihoods import Labelled, Likelihood
from ..likelihoods.features import features
from ..likelihoods.labelled import MOST_ERROR, OWN
from ..model import Model, Parameters, Summary
from ..model.learning import OF_LIKELIHOOD
from ..model.local import responsibilities_of
from ..model.seeding import hard_summary
from .executor import Executor
from .laps import Laps, Result
from .search import Search
from .session import NoJournal

Array = NDArray[np.floating]


@dataclass
class LabelledSearch(Search):
    """A search without labels, then another, from what that found, on rows with labels.

    Where a class has few labels, clusters that begin with these alone hold what is next to them; a search without labels finds
    the clusters that there are, and labels then take apart those that hold several classes.  An interrupt ends both; what was
    found without labels is then taken apart, too, for one lap.

    first : makes the search without labels, given all of a `Search` but its model and source
    second : makes the search with labels
    apart : makes a start that labels allow, given the model, what was found without labels, and the source
    """

    first: Callable[..., Search] = field(kw_only=True)
    second: Callable[..., Search] = field(kw_only=True)
    apart: Callable[[Model, Summary, Any, Executor], Summary] = field(kw_only=True)
    _search: Search | None = None

    def run(self, start: Summary) -> None:
        """Search from the parameters that ``start`` implies for rows without labels."""
        learn = tuple(name for name in self.options.learn if name != OF_LIKELIHOOD + OWN)
        options = replace(self.options, learn=learn)
        first = self.first(moves=self.moves, session=self.session.aside(), rng=self.rng, options=options)
        try:
            first.run(start)
            model, begun = self._with_labels(first)
            if OF_LIKELIHOOD + OWN in self.options.learn and self.model.likelihood.n_plain > 1:
                model, begun = self._doubted(model, begun, first.total)
            self._search = self.second(model, self.source, self.moves, self.session, self.rng, self.options)
            self._search.run(begun)
        except KeyboardInterrupt:
            if self.result is None and first.result is not None:
                self._conclude(first)
            raise

    def _with_labels(self, first: Search) -> tuple[Model, Summary]:
        """The model with labels and its start, from what the search without labels found."""
        labelled = self.model.likelihood
        assert isinstance(labelled, Labelled)
        found = first.found
        model = replace(found, likelihood=replace(labelled, family=found.likelihood))
        return model, self.apart(model, first.total, self.source, self.executor)

    def _doubted(self, model: Model, begun: Summary, found: Summary) -> tuple[Model, Summary]:
        """What an ascent comes to, or another that begins as if labels said nothing, where that is better.

        Clusters that each hold the labels of one class make few of them wrong, and so confirm a low error rate, even where
        labels are random: a local optimum, which the error rate alone cannot leave.  More clusters must be worth their number
        at the rates that both ascents end with, as a birth was judged at a rate that was too low.
        """
        labelled = model.likelihood
        assert isinstance(labelled, Labelled)
        silent = replace(model, likelihood=replace(labelled, error=min(1.0 - 1.0 / labelled.n_classes, MOST_ERROR)))
        trusting = self._aside(model, begun)
        doubting = self._aside(silent, self.apart(silent, found, self.source, self.executor))
        fewer = doubting.total.K < trusting.total.K
        doubt = doubting.beats(trusting) or (fewer and not trusting.beats(doubting))
        better = doubting if doubt else trusting
        return better.model, better.total

    def _aside(self, model: Model, start: Summary) -> Laps:
        """An ascent that the history does not show."""
        trial = replace(self, session=self.session.aside())._laps(model, self.moves, self.options)
        trial.run(start)
        return trial

    def _conclude(self, first: Search) -> None:
        """One lap, which makes the outcome of a search that was interrupted a model of rows with labels."""
        self._search = None
        self.session = replace(self.session, journal=NoJournal())  # a search taken up again is not interrupted
        model, begun = self._with_labels(first)
        self.best = self._laps(model, (), replace(self.options, max_laps=0))
        self.best.run(begun)

    @property
    def outcome(self) -> Laps:
        """The ascent with the best model with labels."""
        return super().outcome if self._search is None else self._search.outcome

    @property
    def result(self) -> Result | None:
        """What the last lap with labels left; None before the first."""
        return super().result if self._search is None else self._search.result

    @property
    def converged(self) -> bool:
        """Whether the search with labels ended by itself."""
        return super().converged if self._search is None else self._search.converged


def by_class(model: Model, clusters: Summary, source: ArraySource, executor: Executor) -> Summary:
    """A start that labels allow, from the counts and statistics of clusters of rows without labels.

    Each label joins the most probable cluster of its row.  Where labels are facts, a cluster with m classes is taken apart into
    m, each half the cluster as it is and half the rows of the class.

    Raises
    ------
    ValueError : there are more classes than the allocation may have clusters.
    """
    likelihood = model.likelihood
    assert isinstance(likelihood, Labelled)
    clusters = clusters.as_start
    W, b = likelihood.family.weights(clusters.N, clusters.S)
    with np.errstate(divide="ignore"):
        parameters = Parameters(W, b + np.log(clusters.N / clusters.N.sum()))
    flat = source.flat
    found = executor.over(flat, partial(_pieces_of, likelihood, parameters), flat.batches(1)[0])
    pieces = _joined(list(found))
    N = clusters.N
    S = np.hstack([clusters.S, np.zeros((clusters.K, likelihood.n_classes))])
    if likelihood.error > 0.0:
        np.add.at(S, pieces.clusters, _labels_alone(likelihood, pieces.rows.S))
        return model.start(N, S)
    several = np.bincount(pieces.clusters, minlength=clusters.K)
    share = N[pieces.clusters] / several[pieces.clusters]
    alone = several[pieces.clusters] == 1
    kept = np.where(alone, 1.0, 0.5) * share / np.maximum(N[pieces.clusters], 1e-300)
    own = np.where(alone, 0.0, 0.5) * share / np.maximum(pieces.rows.N, 1e-300)
    of_pieces = kept[:, None] * S[pieces.clusters] + own[:, None] * pieces.rows.S
    F = likelihood.family.n_statistics
    of_pieces[:, F:] = pieces.rows.S[:, F:]
    others = np.flatnonzero(several == 0)
    classes = np.append(pieces.classes, np.full(len(others), -1))
    start = Summary(
        np.append(share, N[others]), np.vstack([of_pieces, S[others]]), np.zeros(len(classes)), np.zeros(())
    )
    chosen = most_of_each(start.N, classes, model.max_clusters)
    start = start.take(chosen)
    return model.ordered(model.start(start.N, start.S))


class _Pieces(NamedTuple):
    """The rows with labels of each cluster and class: cluster, class and summary."""

    clusters: NDArray[np.intp]
    classes: NDArray[np.intp]
    rows: Summary


def _pieces_of(likelihood: Labelled, parameters: Parameters, source: ArraySource, chunk: Chunk) -> _Pieces:
    """The pieces of the rows of one chunk."""
    X, weights = source.read(chunk)
    source.release()
    classes = likelihood.classes_of(X)
    rows = np.flatnonzero((classes >= 0) & (weights > 0.0))
    if len(rows) == 0:
        none = np.zeros(0, np.intp)
        return _Pieces(none, none, Summary.zeros(0, likelihood.n_statistics))
    family: Likelihood = likelihood.family
    clusters = responsibilities_of(family, parameters, likelihood.rows_of(X[rows])).argmax(axis=1)
    pairs, labels = np.unique(clusters * likelihood.n_classes + classes[rows], return_inverse=True)
    T = features(likelihood, X[rows])
    return _Pieces(*np.divmod(pairs, likelihood.n_classes), hard_summary(T, weights[rows], labels))


def _joined(parts: list[_Pieces]) -> _Pieces:
    """The pieces of all chunks."""
    clusters = np.concatenate([part.clusters for part in parts])
    classes = np.concatenate([part.classes for part in parts])
    pairs, inverse = np.unique(np.stack([clusters, classes]), axis=1, return_inverse=True)
    whole = Summary.zeros(pairs.shape[1], parts[0].rows.S.shape[1])
    np.add.at(whole.N, inverse.ravel(), np.concatenate([part.rows.N for part in parts]))
    np.add.at(whole.S, inverse.ravel(), np.vstack([part.rows.S for part in parts]))
    return _Pieces(pairs[0], pairs[1], whole)


def _labels_alone(likelihood: Labelled, S: Array) -> Array:
    """Statistics (K, F + C) with those of the labels alone."""
    alone = np.zeros(S.shape)
    F = likelihood.family.n_statistics
    alone[:, F:] = S[:, F:]
    return alone


def most_of_each(N: Array, classes: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most so many clusters: of each class the largest, and then the largest."""
    order = np.argsort(-N, kind="stable")
    _, first = np.unique(classes[order], return_index=True)
    largest = [k for k in order[np.sort(first)] if classes[k] >= 0]
    if len(largest) > most:
        raise ValueError(
            f"y has {len(largest)} classes, but the allocation has no more than {most} clusters or states."
        )
    others = [k for k in order if k not in set(largest)]
    return np.sort(np.array([*largest, *others][:most], dtype=np.intp))
