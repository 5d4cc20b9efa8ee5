"""The search for clusters of rows with labels: births inside the classes, before the rounds of other changes."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, Chunk
from ..likelihoods import Labelled
from ..likelihoods.features import features
from ..model import Model, Parameters, Summary
from ..model.cluster_classes import cluster_classes
from ..model.local import responsibilities_of
from ..model.seeding import hard_summary
from .class_graph import propagated
from .labelled_search import most_of_each
from .learning_search import LearningSearch
from .row_search import RowSearch

Array = NDArray[np.floating]

COMPARED = 1 << 31  # numbers that are looked at where all rows are compared with each other, at most


@dataclass
class ClassSearch(LearningSearch):
    """Find the best mixture of rows with labels (see `LearningSearch`), also by births inside the classes.

    Clusters that were found without labels, and taken apart by them, cut classes where these are alike.  So where laps are
    quick, each row gets a class, rows of each class are searched for clusters by themselves, from one and with the prior in
    hand, and an ascent from the clusters of all classes together is kept if its bound is higher: labels that are known hold,
    and all other rows are free again.  Then the clusters from before and those of the classes are crossed: each cuts the other
    where one of them is right (`stickbreak.inference.crossing`).  All this is repeated until it gains next to nothing.

    The class of a row is the one that labels of rows near it say (`stickbreak.inference.class_graph`), or, of more rows than
    can all be compared with each other, the most probable one given clusters and its label.
    """

    def _improve(self) -> None:
        gain = np.inf
        while gain > self._worthwhile(self._in_hand):
            bound = self._in_hand.bound
            self._search_inside_classes()
            gain = self._in_hand.bound - bound
        super()._improve()

    def _search_inside_classes(self) -> bool:
        """An ascent from clusters of each class by themselves, crossed with those in hand; whether the best model changed."""
        best = self._in_hand
        if not self._may_grow() or self._takes_long(best.total.K):
            return False
        classes = self._row_classes(best.model, best.total)
        present = np.unique(classes)
        if len(present) < 2:
            return False
        found = [self._inside(best.model, np.flatnonzero(classes == c)) for c in present]
        N = np.concatenate([part.N for part in found])
        S = np.vstack([part.S for part in found])
        of = np.repeat(present, [part.K for part in found])
        chosen = most_of_each(N, of, best.model.max_clusters)
        start = best.model.ordered(best.model.start(N[chosen], S[chosen]))
        trial = self._laps(best.model, self.moves, self.options, best, origin="classes")
        trial.run(start)
        self._keep(best, trial)
        self._cross_with(best, trial, self._fine, best.model.max_clusters)
        if self._in_hand is not best:
            self._again(self.options)
        return self._in_hand is not best

    def _row_classes(self, model: Model, total: Summary) -> NDArray[np.intp]:
        """The most probable class of each row, given its label, if it has one, (N,)."""
        likelihood = model.likelihood
        assert isinstance(likelihood, Labelled)
        parameters = model.parameters(total, self.source.dtype)
        task = partial(_chances, model, parameters, cluster_classes(model, total))
        chunks = [chunk for batch in self.source.batches(1) for chunk in batch]
        chances = np.concatenate(list(self.executor.over(self.source, task, chunks)))
        N = self.source.n_rows
        if N * N * likelihood.n_columns <= COMPARED:
            X, _ = self.source.take(np.arange(N))
            chances = propagated(likelihood, X, chances)
        return np.asarray(chances.argmax(axis=1), np.intp)

    def _inside(self, model: Model, rows: NDArray[np.intp]) -> Summary:
        """The clusters of some rows by themselves, as far as a first ascent finds them: crossings and rounds mend the rest."""
        source = self.source.taken(rows)
        X, weights = source.take(np.arange(len(rows)))
        one = hard_summary(features(model.likelihood, X), weights, np.zeros(len(rows), np.intp))
        options = replace(self.options, learn=(), n_batches=1)
        search = RowSearch(model, source, self.moves, self.session.aside(), self.rng.spawn(1)[0], options)
        search.begin(model.start(one.N, one.S))
        return search.total


def _chances(model: Model, parameters: Parameters, of_clusters: Array, source: ArraySource, chunk: Chunk) -> Array:
    """The probability of each class of the rows of a chunk, given that of each cluster (K, C), and labels, (n, C)."""
    X, _ = source.read(chunk)
    source.release()
    return np.asarray(responsibilities_of(model.likelihood, parameters, X) @ of_clusters)
