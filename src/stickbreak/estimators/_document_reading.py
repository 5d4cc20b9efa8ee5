"""What a fitted topic model says of documents that users pass: proportions of topics, and how well they are explained."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..data import BagSource
from ..inference import Executor, Threads
from ..inference.reader import by_chunk
from . import _documents as documents
from ._answers import Answering
from ._base import Columns
from ._document_reader import DocumentReader, completion_of
from ._estimator import Estimator
from ._fitted import widened

Array = NDArray[np.floating]


class DocumentReading(Answering, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """What a fitted topic model says of documents."""

    n_jobs: int | None
    n_topics_: int
    restarts: int
    most_kept: int | None

    def transform(self, X: Any, lengths: Any = None) -> Array:
        """Expected proportions of the topics in each document, (N, K), rows summing to one."""
        return np.concatenate(self._read(X, lengths, lambda reader: reader.proportions)[1])

    def score(self, X: Any, y: Any = None, lengths: Any = None) -> float:
        """Lower bound on log p(X) per token (or row), given the posterior mean topics and shares: held-out fit in nats."""
        tokens, bounds = self._read(X, lengths, lambda reader: reader.bound)
        if not tokens > 0.0:
            raise ValueError("X holds no tokens to score.")
        return float(sum(bounds) / tokens)

    def perplexity(self, X: Any, lengths: Any = None) -> float:
        """exp(-score(X)): an upper bound on the perplexity per token; infinite if it overflows."""
        try:
            return math.exp(-self.score(X, lengths=lengths))
        except OverflowError:
            return math.inf

    def completion_score(self, A: Any, B: Any) -> float:
        """Mean log predictive probability, in nats per token, of the words B (N, V) of documents whose other words are A.

        The proportions of the topics are estimated from A alone, so that nothing of B is seen.
        """
        with Threads(self.n_jobs) as executor:
            (first, _), (second, _) = self._source(A, None, executor), self._source(B, None, executor)
            if first.n_rows != second.n_rows:
                raise ValueError(
                    f"A and B are halves of the same documents, but have {first.n_rows} and {second.n_rows}."
                )
            if not second.total_weight > 0.0:
                raise ValueError("B holds no tokens to score.")
            reader = DocumentReader.of(self.model_, self.summary_, True, self.restarts, self.most_kept)
            found = executor.over(first, partial(completion_of, reader, second), first.batches(1)[0])
            return float(sum(found) / second.total_weight)

    @property
    def _n_features_out(self) -> int:
        return self.n_topics_

    def _source(self, X: Any, lengths: Any, executor: Executor) -> tuple[Any, Columns]:
        check_is_fitted(self)
        source = documents.as_documents(self, X, lengths, reset=False)
        return source, documents.checked(self, self.model_.likelihood, source, executor)

    def _read(
        self, X: Any, lengths: Any, task: Callable[[DocumentReader], Callable[[Any], Any]]
    ) -> tuple[float, list[Any]]:
        """The number of tokens or rows, and the results of a task on every chunk."""
        with self._executor(X) as executor:
            source, columns = self._source(X, lengths, executor)
            model = self.model_
            summary = self.summary_
            if columns.missing.any():
                model, summary = widened(model, summary, columns.missing)
            reader = DocumentReader.of(model, summary, isinstance(source, BagSource), self.restarts, self.most_kept)
            return source.total_weight, list(by_chunk(source, executor, task(reader)))
