"""Documents of one topic each: what a mixture makes of a corpus, and a start for documents that mix topics."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...data import Chunk, SparseSource
from ...model import Model, Parameters, Summary
from ...model.local import responsibilities_of
from ...moves import Schedule
from ...moves.better import WORTH, accepts
from ..executor import Executor
from ..lap import LOCAL
from ..laps import Laps
from ..learning_search import LearningSearch
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
    same : nats for each cluster by which the bounds of the same clusters differ, at most
    plenty : a start from so many times the clusters of the best mixture, if that has several, is the last if it is no better
    """

    near: float = 1.0
    first_laps: int = 20
    tries: int = 2
    same: float = 0.2
    plenty: float = 4.0


TUNING = Tuning()
REMOVALS = ("merge", "delete")


class OneTopicEach(NamedTuple):
    """A mixture of documents.

    model : of documents that mix topics, with the hyperparameters of words that the mixture has learnt
    topics : the words (K, V) of its clusters
    counts : (K, N) tokens of each in each document, float32
    bound : its ELBO, of words in a given order, as that of documents that mix topics
    agreed : whether another start led to as many clusters, several, and the same bound
    """

    model: Model
    topics: Summary
    counts: Array
    bound: float
    agreed: bool = False


@dataclass
class MixtureSearch(LearningSearch):
    """A search that goes on from the clusters of a mixture; what takes long follows only where it has gained.

    least : the bound of that mixture
    """

    least: float = -np.inf

    def _again(self, options: Options, tries: int = 1) -> None:
        if self._has_gained:
            super()._again(options, tries)

    def _cross(self) -> bool:
        return self._has_gained and super()._cross()

    @property
    def _has_gained(self) -> bool:
        best = self._in_hand
        return accepts(best.bound - self.least, 0, best.bound)


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
        rows = self._rows
        least = Floor(bound + self._base - TUNING.near * rows.n_rows, topics.K)
        patience = TUNING.first_laps
        first = Laps(self._flat, rows, Schedule(()), self.session.aside(), rng, options, floor=least, patience=patience)
        first.run(_words(topics))
        return first.bound >= least.bound

    def is_near(self, bound: float, other: float) -> bool:
        """Whether a mixture with this bound explains documents about as well as topics with the other."""
        return bound >= other - TUNING.near * self.source.n_rows

    def best(self, starts: Iterable[Summary], rng: np.random.Generator) -> OneTopicEach | None:
        """The best mixture found from starts, one after another; None where there is no room for what it says of documents."""
        best: RowSearch | None = None
        in_vain = 0
        agreed = False
        for start in starts:
            search = RowSearch(self._flat, self._rows, REMOVALS, self.session.aside(), rng.spawn(1)[0], self.options)
            search.run(_words(start))
            if best is None or search.outcome.bound > best.outcome.bound + WORTH * search.total.K:
                best = search
                in_vain = 0
                agreed = False
                continue
            in_vain += 1
            agreed = agreed or _agree(best, search)
            K = best.total.K
            if in_vain == TUNING.tries or (K > 1 and TUNING.plenty * K <= start.K):
                break
        return None if best is None else self._outcome(best, agreed)

    def with_births(self, found: OneTopicEach, rng: np.random.Generator) -> OneTopicEach | None:
        """What a search from the clusters of a mixture, with births, too, finds that is better; None where it finds nothing."""
        least = found.bound + self._base
        rng = rng.spawn(1)[0]
        moves = ("birth", *REMOVALS)
        session = self.session.aside()
        search = MixtureSearch(self._flat, self._rows, moves, session, rng, self.options, restarts=True, least=least)
        search.run(found.topics)
        better = accepts(search.outcome.bound - least, search.total.K - found.topics.K, least)
        return self._outcome(search) if better else None

    def _outcome(self, search: RowSearch, agreed: bool = False) -> OneTopicEach | None:
        """The mixture that a search found; None where there is no room for what it says of documents."""
        total = search.total
        if total.K * self.source.n_rows * 4 > LOCAL:
            return None
        model = replace(self.model, likelihood=search.found.likelihood)
        counts = _tokens(search.found, total, self._rows, self.session.executor)
        return OneTopicEach(model, _words(total), counts, search.outcome.bound - self._base, agreed)

    @cached_property
    def _rows(self) -> SparseSource:
        """The documents as rows."""
        return SparseSource(self.source.X)

    @cached_property
    def _base(self) -> float:
        """The log base measure of all documents as rows."""
        return sum(self.session.executor.over(self._rows, partial(_log_base, self.model), self._rows.batches(1)[0]))

    @property
    def _flat(self) -> Model:
        """The model of a mixture."""
        return Model(self.model.likelihood, self.model.allocation.flat, room=self.model.max_clusters)


def _agree(one: RowSearch, other: RowSearch) -> bool:
    """Whether two searches came to the same clusters, several, as their bounds say."""
    K = one.total.K
    return 1 < K == other.total.K and abs(one.outcome.bound - other.outcome.bound) < TUNING.same * K


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
