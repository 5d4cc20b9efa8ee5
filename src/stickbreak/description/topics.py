"""Topics for people: their top words, how well these go together, and the input of pyLDAvis."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._arguments import real, shown
from ..data.arrays import numbers
from ..data.frames import column_name, encode, mixed_frame
from ..data.sparse_rows import sparse_rows

Array = NDArray[np.floating]
Indices = NDArray[np.intp]

RELEVANCE = 0.6  # lambda at which people name topics best (Sievert and Shirley 2014, section 4)


def top_words(
    topics: ArrayLike,
    vocabulary: Sequence[str] | None = None,
    n: int = 10,
    relevance: float | None = None,
    word_shares: ArrayLike | None = None,
) -> list[list[tuple[str, float]]]:
    """The n words of each topic of the largest probability, or of the largest relevance

        r(w, k) = lambda log p(w | k) + (1 - lambda) log(p(w | k) / p(w))

    Parameters
    ----------
    topics : (K, V), p(w | k), rows summing to one
    vocabulary : V words, or None for the names x0, x1, ...
    n : words per topic, at least 1; all V where there are fewer
    relevance : lambda in [0, 1], or None for the order by probability; 1 gives the same order, 0.6 favours the words that
        set the topic apart
    word_shares : (V,), p(w), the words' shares of all tokens, which relevance needs; words of share 0 come last

    Returns
    -------
    For each topic pairs of a word and its probability, in decreasing order of what they are chosen by, ties in the order of
    the columns

    Raises
    ------
    ValueError : a length does not fit V, n is below 1, lambda is outside [0, 1] or comes without word_shares.

    References
    ----------
    Sievert and Shirley, LDAvis: a method for visualizing and interpreting topics, ACL workshop 2014: Eq. 2.
    """
    p = _topics(topics)
    words = _vocabulary(vocabulary, p.shape[1])
    return [
        [(words[w], float(row[w])) for w in top] for row, top in zip(p, _top(_scores(p, relevance, word_shares), n))
    ]


def coherence(
    topics: ArrayLike, counts: Any, n: int = 10, relevance: float | None = None, word_shares: ArrayLike | None = None
) -> Array:
    """How much the n top words of each topic go together: the mean over their pairs of

        NPMI(i, j) = log(p_ij / (p_i p_j)) / -log p_ij

    where p_i is the share of the documents with word i, and p_ij of those with both.  It is -1 for words never together,
    even if one occurs nowhere, about 0 for independent words, and 1 for words always together, even if in all documents.

    Parameters
    ----------
    topics : (K, V), p(w | k)
    counts : CSR (D, V), D > 0, the documents to judge by; a word is in a document if its count is positive
    n : words per topic, at least 2; all V where there are fewer
    relevance, word_shares : what the top words are chosen by, as in `top_words`: by default the probability

    Returns
    -------
    Array (K,) in [-1, 1]

    Raises
    ------
    ValueError : n or V is below 2, counts have no document or not V columns, lambda is outside [0, 1] or comes without
        word_shares.

    References
    ----------
    Bouma, Normalized (pointwise) mutual information in collocation extraction, GSCL 2009; Röder et al., Exploring the space
    of topic coherence measures, WSDM 2015 (C_NPMI, here with documents for windows).
    """
    p = _topics(topics)
    X = _counts(counts, p.shape[1])
    n = _count(n, 2)
    if p.shape[1] < 2 or X.shape[0] < 1:
        raise ValueError(f"coherence takes two words and a document or more; got counts of shape {X.shape}.")
    words, top = np.unique(_top(_scores(p, relevance, word_shares), n), return_inverse=True)
    present = (X[:, words] > 0).astype(np.float64)
    frequency = np.asarray(present.sum(axis=0))
    together = (present.T @ present).tocsr()
    first, second = np.triu_indices(top.shape[1], 1)
    i = top[:, first]
    j = top[:, second]
    joint = np.asarray(together[i.ravel(), j.ravel()]).reshape(i.shape)
    value = np.where(joint == 0.0, -1.0, 1.0)
    mixed = (joint > 0.0) & (joint < X.shape[0])
    p_ij = joint[mixed] / X.shape[0]
    apart = frequency[i[mixed]] * frequency[j[mixed]] / X.shape[0] ** 2
    value[mixed] = np.log(p_ij / apart) / -np.log(p_ij)
    return np.asarray(value.mean(axis=1))


def pyldavis(
    topics: ArrayLike, shares: ArrayLike, counts: Any, proportions: ArrayLike, vocabulary: Sequence[str] | None = None
) -> dict[str, Any]:
    """The arguments of ``pyLDAvis.prepare``, for ``pyLDAvis.prepare(**pyldavis(...))``; it draws two topics or more.

    Empty documents are left out, and so are words of probability zero in all topics, of which pyLDAvis makes NaN.  Rows
    are scaled to sum to one; a document without proportions gets the topics' shares.

    Parameters
    ----------
    topics : (K, V), p(w | k)
    shares : (K,), the topics' shares of all tokens
    counts : CSR (D, V)
    proportions : (D, K), p(k | d)
    vocabulary : V words, or None for the names x0, x1, ...

    Returns
    -------
    dict of topic_term_dists (K, V), doc_topic_dists (D, K), doc_lengths (D,), vocab (list of V words), term_frequency (V,)

    Raises
    ------
    ValueError : shapes do not fit each other.
    """
    p = _topics(topics)
    pi = np.asarray(shares, dtype=np.float64)
    R = np.asarray(proportions, dtype=np.float64)
    X = _counts(counts, p.shape[1])
    words = _vocabulary(vocabulary, p.shape[1])
    for name, found, expected in (("shares", pi.shape, p.shape[:1]), ("proportions", R.shape, (X.shape[0], len(p)))):
        if found != expected:
            raise ValueError(f"{name} must have the shape {expected}, to fit topics and counts; got {found}.")
    lengths = np.asarray(X.sum(axis=1))
    documents = np.flatnonzero(lengths > 0.0)
    kept = np.flatnonzero(p.any(axis=0))
    R = R[documents]
    R = np.where(R.sum(axis=1, keepdims=True) > 0.0, R, pi)
    return {
        "topic_term_dists": p[:, kept] / p.sum(axis=1, keepdims=True),
        "doc_topic_dists": R / R.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[documents],
        "vocab": [words[w] for w in kept],
        "term_frequency": np.asarray(X.sum(axis=0))[kept],
    }


def _topics(topics: ArrayLike) -> Array:
    """Topics as a float64 array (K, V)."""
    p = np.asarray(topics, dtype=np.float64)
    if p.ndim != 2:
        raise ValueError(f"topics must have the shape (topics, words); got {p.shape}.")
    return p


def _counts(counts: Any, V: int) -> Any:
    """Counts as CSR (D, V)."""
    X = sparse_rows(counts, "counts") if sparse.issparse(counts) else _dense(counts)
    if X.ndim != 2:
        raise ValueError(f"counts must have the shape (documents, words); got {X.shape}.")
    X = sparse.csr_array(X)
    if X.shape[1] != V:
        raise ValueError(f"counts have {X.shape[1]} columns and topics {V}: give both for the same vocabulary.")
    if not (X.data >= 0.0).all():
        raise ValueError("counts must be numbers of at least 0.")
    return X


def _dense(counts: Any) -> Array:
    """Counts of an array, a list or a frame as float64."""
    frame = mixed_frame(counts)
    if frame is not None:
        table = encode(frame)
        if table.levels:
            raise ValueError(
                f"counts must be numbers; column {column_name(table.names, min(table.levels))!r} holds text."
            )
        counts = table.X
    return numbers(counts, "counts").astype(np.float64)


def _vocabulary(vocabulary: Sequence[str] | None, V: int) -> list[str]:
    """V words."""
    if vocabulary is None:
        return [f"x{w}" for w in range(V)]
    words: Any = vocabulary
    if isinstance(words, (str, bytes, Mapping, AbstractSet)) or not isinstance(words, Iterable):
        raise TypeError(f"vocabulary must be a list or an array of words; got {shown(vocabulary)}.")
    if isinstance(words, np.ndarray) and words.ndim != 1:
        raise ValueError(f"vocabulary must have one axis; got an array of shape {words.shape}.")
    names = [str(word) for word in words]
    if len(names) != V:
        raise ValueError(f"vocabulary must have one word for each of the {V} columns of topics; got {len(names)}.")
    return names


def _scores(p: Array, weight: float | None, word_shares: ArrayLike | None) -> Array:
    """What the words of topics are ordered by, (K, V): the relevance, or the probability where no lambda is given.

    The relevance is log p(w | k) - (1 - lambda) log p(w), and -inf where either is 0.
    """
    if weight is None:
        return p
    if not 0.0 <= real(weight) <= 1.0:
        raise ValueError(f"relevance must be a number from 0 to 1; got {shown(weight)}.")
    if word_shares is None:
        raise ValueError("relevance needs word_shares, such as counts.sum(axis=0) / counts.sum().")
    shares = np.asarray(word_shares, dtype=np.float64)
    if shares.shape != p.shape[1:]:
        raise ValueError(f"word_shares must have the shape {p.shape[1:]}, one for each word; got {shares.shape}.")
    log_share = np.log(shares, out=np.full(len(shares), np.inf), where=shares > 0.0)
    log_p = np.log(p, out=np.full(p.shape, -np.inf), where=(p > 0.0) & (shares > 0.0))
    return log_p - np.where(shares > 0.0, (1.0 - weight) * log_share, 0.0)


def _count(n: Any, least: int) -> int:
    """A number of words."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < least:
        raise ValueError(f"n must be a whole number of at least {least}; got {shown(n)}.")
    return int(n)


def _top(scores: Array, n: int) -> Indices:
    """The columns of the n largest scores of each row, largest first, ties by column, (K, min(n, V))."""
    n = min(_count(n, 1), scores.shape[1])
    top = np.empty((len(scores), n), dtype=np.intp)
    for k, row in enumerate(scores):
        enough = np.flatnonzero(row >= np.partition(row, -n)[-n])
        top[k] = enough[np.argsort(-row[enough], kind="stable")[:n]]
    return top
