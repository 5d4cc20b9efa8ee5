"""What topics of words are about."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..description import topics as description
from ._document_reading import DocumentReading

Array = NDArray[np.floating]


class TopicWords(DocumentReading):
    """The words of the topics of a fitted model."""

    topic_shares_: Array
    vocabulary: Sequence[str] | None

    def top_words(
        self, vocabulary: Sequence[str] | None = None, n: int = 10, relevance: float = description.RELEVANCE
    ) -> list[list[tuple[str, float]]]:
        """The n words of each topic that say most about it, with their probabilities.

        They have the largest relevance (Sievert and Shirley 2014, Eq. 2)

            r(w, k) = lambda log p(w | k) + (1 - lambda) log(p(w | k) / p(w)),

        where p(w) is the share of the word in all topics, weighted by their shares.  Frequent words, which are probable in
        many topics and name none, come later in this order than by probability.

        Parameters
        ----------
        vocabulary : V words, by default the names of the columns at `fit`
        n : int of at least 1
            Words of each topic.
        relevance : float in [0, 1], default 0.6
            lambda: 1 for the order by probability, 0 for that by the ratio p(w | k) / p(w) alone, which rare words lead.

        Returns
        -------
        list of lists of pairs
            For each topic, words and their probabilities p(w | k), in decreasing order of relevance.

        Raises
        ------
        TypeError
            If the topics are not of words.
        ValueError
            If n is below 1, relevance is outside [0, 1] or the vocabulary has not V words.
        """
        topics = self._topics()
        return description.top_words(topics, self._vocabulary(vocabulary), n, relevance, self.topic_shares_ @ topics)

    def coherence(self, counts: Any, n: int = 10, relevance: float = description.RELEVANCE) -> Array:
        """How much the n top words of each topic go together in documents, (K,): mean NPMI of their pairs, in [-1, 1].

        Parameters
        ----------
        counts : CSR (D, V)
            The documents to judge by.
        n : int of at least 2
            Words of each topic.
        relevance : float in [0, 1], default 0.6
            What they are chosen by, as in `top_words`; 1 for the most probable words.
        """
        topics = self._topics()
        return description.coherence(topics, counts, n, relevance, self.topic_shares_ @ topics)

    def to_pyldavis(self, X: Any, vocabulary: Sequence[str] | None = None) -> dict[str, Any]:
        """The arguments of ``pyLDAvis.prepare`` that show this model and documents X: ``prepare(**to_pyldavis(X))``."""
        return description.pyldavis(
            self._topics(), self.topic_shares_, X, self.transform(X), self._vocabulary(vocabulary)
        )

    def _topics(self) -> Array:
        check_is_fitted(self)
        if not hasattr(self, "topics_"):
            raise TypeError(f"topics of a {type(self.model_.likelihood).__name__} have no words.")
        return np.asarray(self.topics_)

    def _vocabulary(self, vocabulary: Sequence[str] | None) -> Sequence[str] | None:
        if vocabulary is not None:
            return vocabulary
        names: Sequence[str] | None = getattr(self, "feature_names_in_", None)
        return self.vocabulary if names is None else names
