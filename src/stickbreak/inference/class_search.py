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
from .labelled_search import most_of_each
from .learning_search import LearningSearch
from .row_search import RowSearch

Array = NDArray[np.floating]


@dataclass
class ClassSearch(LearningSearch):
    """Find the best mixture of rows with labels (see `LearningSearch`), also by births inside the classes.

    Clusters that were found without labels, and taken apart by them, cut classes where these are alike.  So where laps are
    quick, each row gets the class that is most probable given labels and clusters, rows of each class are searched for
    clusters by themselves, from one and with the prior in hand, and an ascent from the clusters of all classes together is
    kept if its bound is higher: labels that are known hold, and all other rows are free again.
    """

    def _improve(self) -> None:
        self._search_inside_classes()
        super()._improve()

    def _search_inside_classes(self) -> bool:
        """An ascent from the clusters that rows of each class have by themselves; whether it beat the best model."""
        best = self._in_hand
        if not self._may_grow() or self._is_large(best.total.K):
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
        return self._keep(best, trial) > 0.0

    def _row_classes(self, model: Model, total: Summary) -> NDArray[np.intp]:
        """The most probable class of each row, given its label, if it has one, (N,)."""
        parameters = model.parameters(total, self.source.dtype)
        task = partial(_most_probable, model, parameters, cluster_classes(model, total))
        chunks = [chunk for batch in self.source.batches(1) for chunk in batch]
        return np.concatenate(list(self.executor.over(self.source, task, chunks)))

    def _inside(self, model: Model, rows: NDArray[np.intp]) -> Summary:
        """The clusters of some rows by themselves."""
        source = self.source.taken(rows)
        X, weights = source.take(np.arange(len(rows)))
        one = hard_summary(features(model.likelihood, X), weights, np.zeros(len(rows), np.intp))
        options = replace(self.options, learn=(), n_batches=1)
        search = RowSearch(model, source, self.moves, self.session.aside(), self.rng.spawn(1)[0], options)
        search.run(model.start(one.N, one.S))
        return search.total


def _most_probable(
    model: Model, parameters: Parameters, chances: Array, source: ArraySource, chunk: Chunk
) -> NDArray[np.intp]:
    """The most probable class of the rows of a chunk, given those of clusters (K, C)."""
    likelihood = model.likelihood
    assert isinstance(likelihood, Labelled)
    X, _ = source.read(chunk)
    source.release()
    R = responsibilities_of(likelihood, parameters, X)
    found = (R @ chances).argmax(axis=1)
    return np.asarray(found, np.intp)
