"""Documents of one topic each: what a mixture makes of a corpus, and a start for documents that mix topics."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data import Chunk, SparseSource
from ...model import Model, Parameters, Summary
from ...model.local import responsibilities_of
from ...moves import Schedule
from ...moves.better import WORTH
from ..executor import Executor
from ..lap import LOCAL
from ..laps import Laps
from ..row_search import RowSearch
from ..session import Session
from ..state import Floor, Options

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py.

    Attributes
    ----------
    near : nats a document: a mixture further below documents that mix topics is not searched on for
    first_laps : laps of that mixture, at most, and fewer where it would take more to get so near
    tries : starts in a row that are no better, after which there are no more
    plenty : a start from so many times the clusters of the best mixture, if that has several, is the last if it is no better
    """

    near: float = 1.0
    first_laps: int = 20
    tries: int = 2
    plenty: float = 4.0


TUNING = Tuning()
REMOVALS = ("merge", "delete")


class OneTopicEach(NamedTuple):
    """A mixture of documents.

    model : of documents that mix topics, with the hyperparameters of words that the mixture has learnt
    topics : the words (K, V) of its clusters
    counts : (K, N) tokens of each in each document, float32
    """

    model: Model
    topics: Summary
    counts: Array


@dataclass(frozen=True)
class OneTopicSearch:
    """The search for a mixture of documents.

    model : of documents that mix topics, as it was given
    options : names in ``learn`` what is learnt of words
    """

    model: Model
    source: SparseSource
    session: Session
    options: Options

    def has_a_chance(self, topics: Summary, bound: float, rng: np.random.Generator) -> bool:
        """Whether a mixture with these topics explains documents about as well as others, whose bound is given."""
        options = replace(self.options, max_laps=TUNING.first_laps)
        rows = SparseSource(self.source.X)
        base = sum(self.session.executor.over(rows, partial(_log_base, self.model), rows.batches(1)[0]))
        least = Floor(bound + base - TUNING.near * rows.n_rows, topics.K)
        patience = TUNING.first_laps
        first = Laps(self._flat, rows, Schedule(()), self.session.aside(), rng, options, floor=least, patience=patience)
        first.run(_words(topics))
        return first.bound >= least.bound

    def best(self, starts: Iterable[Summary], rng: np.random.Generator) -> OneTopicEach | None:
        """The best mixture found from starts, one after another; None where there is no room for what it says of documents."""
        rows = SparseSource(self.source.X)
        best: RowSearch | None = None
        in_vain = 0
        for start in starts:
            search = RowSearch(self._flat, rows, REMOVALS, self.session.aside(), rng.spawn(1)[0], self.options)
            search.run(_words(start))
            if best is None or search.outcome.bound > best.outcome.bound + WORTH * search.total.K:
                best = search
                in_vain = 0
                continue
            in_vain += 1
            K = best.total.K
            if in_vain == TUNING.tries or (K > 1 and TUNING.plenty * K <= start.K):
                break
        if best is None or best.total.K * rows.n_rows * 4 > LOCAL:
            return None
        model = replace(self.model, likelihood=best.found.likelihood)
        return OneTopicEach(model, _words(best.total), _tokens(best.found, best.total, rows, self.session.executor))

    @property
    def _flat(self) -> Model:
        """The model of a mixture."""
        return Model(self.model.likelihood, self.model.allocation.flat, room=self.model.max_clusters)


def _log_base(model: Model, rows: SparseSource, chunk: Chunk) -> float:
    """The log base measure of the documents of a chunk as rows."""
    return float(model.likelihood.log_base(rows.read(chunk)[0]).sum())


def _words(topics: Summary) -> Summary:
    """The words of topics alone, as clusters."""
    return Summary(topics.S.sum(axis=1), topics.S, np.zeros(topics.K), np.zeros(()))


def _tokens(model: Model, total: Summary, rows: SparseSource, executor: Executor) -> Array:
    """The tokens (K, N) that each cluster has in each document."""
    parameters = model.parameters(total, rows.dtype)
    chunks = rows.batches(1)[0]
    return np.hstack(list(executor.over(rows, partial(_tokens_of, model, parameters), chunks)))


def _tokens_of(model: Model, parameters: Parameters, rows: SparseSource, chunk: Chunk) -> Array:
    """The same of the documents of one chunk."""
    X = rows.read(chunk)[0]
    tokens = responsibilities_of(model.likelihood, parameters, X) * X.sum(axis=1)[:, None]
    return np.asarray(tokens.T, dtype=np.float32)
