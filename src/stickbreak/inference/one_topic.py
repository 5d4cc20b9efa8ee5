"""Documents of one topic each: what a mixture makes of a corpus, and a start for documents that mix topics."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Chunk, SparseSource
from ..model import Model, Parameters, Summary
from ..model.local import responsibilities_of
from ..moves import Schedule
from .executor import Executor
from .lap import LOCAL
from .laps import Laps
from .row_search import RowSearch
from .session import Session
from .state import Options

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_topics.py.

    Attributes
    ----------
    near : nats a document: a mixture further below documents that mix topics is not searched on for
    first_laps : laps of that mixture
    """

    near: float = 1.0
    first_laps: int = 20


TUNING = Tuning()
MOVES = ("birth", "merge", "delete")


class OneTopicEach(NamedTuple):
    """A mixture of documents.

    bound : its ELBO, with the tokens of a document in a given order, as in the bound of documents that mix topics
    topics : the words (K, V) of its clusters
    counts : (K, N) tokens of each in each document, float32
    """

    bound: float
    topics: Summary
    counts: Array


def one_topic_each(
    best: Laps, source: SparseSource, session: Session, rng: np.random.Generator, tol: float
) -> OneTopicEach | None:
    """The best mixture of documents found from the topics of an ascent, with their prior; None where it has no chance.

    tol : as `Options.tol`
    """
    model = best.model
    flat = Model(model.likelihood, model.allocation.flat, room=model.max_clusters)
    rows = SparseSource(source.X)
    options = Options(max_laps=TUNING.first_laps, tol=tol)
    first = Laps(flat, rows, Schedule(()), session.aside(), rng, options)
    first.run(best.total.as_start)
    if first.bound - float(first.total.base) < best.bound - TUNING.near * rows.n_rows:
        return None
    search = RowSearch(flat, rows, MOVES, session.aside(), rng, replace(options, max_laps=Options.max_laps))
    search.run(first.total)
    found = search.total
    if found.K * rows.n_rows * 4 > LOCAL:
        return None
    counts = _tokens(search.found, found, rows, session.executor)
    topics = Summary(found.S.sum(axis=1), found.S, np.zeros(found.K), np.zeros(()))
    return OneTopicEach(search.outcome.bound - float(found.base), topics, counts)


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
