"""Words that begin in other topics: a start that leaves their poor local optima."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import psi

from ...data import BagSource
from ...kernels.documents import FLOOR
from ...kernels.word_restarts import restart_words
from ...likelihoods import Multinomial, Seeded
from ...model import Model, Summary
from ..executor import Executor

Array = NDArray[np.floating]

ENTRIES = 1 << 15  # of a part of the words
NUMBERS = 1 << 18  # of a part of the documents
MOST = 1 << 25  # documents times topics, for each of which there are two numbers: 512 MiB


class Part(NamedTuple):
    """Some words: their documents, as columns, pseudo-counts and counts (V, K)."""

    indptr: NDArray[np.integer]
    rows: NDArray[np.integer]
    counts: Array
    prior: Array
    N: Array


def words_restarted(
    model: Model, total: Summary, source: BagSource, counts: Array, executor: Executor
) -> Summary | None:
    """The topics of a summary with tokens of words elsewhere; None where none are better there, or documents are too many.

    counts : (K, N) of the documents
    """
    if counts.size > MOST:
        return None
    likelihood = model.likelihood.plain
    assert isinstance(likelihood, Multinomial)
    V = source.n_columns
    S = total.S[:, :V]
    prior = np.repeat(likelihood.concentration[:, None], total.K, axis=1)
    if isinstance(model.likelihood, Seeded):
        prior[:, model.likelihood.owners(total.S)] += np.asarray(model.likelihood.sums).T
    shares = model.posterior(total).step.prior
    assert shares is not None
    scored = partial(_likelihoods, shares[: total.K], psi((S.T + prior).sum(axis=0)))
    E = np.concatenate(list(executor.map(scored, np.array_split(counts, -(-counts.size // NUMBERS), axis=1))))
    columns = source.X.tocsc()
    columns.data = columns.data.astype(np.float64)
    found = list(executor.map(partial(_restarted, E, np.log(E)), _parts(columns, prior, S)))
    if not any(changed for _, changed in found):
        return None
    words = np.vstack([N for N, _ in found]).T
    return replace(
        total.without_local(),
        N=words.sum(axis=1),
        S=np.hstack([words, total.S[:, V:]]),
    )


def _likelihoods(shares: Array, levels: Array, counts: Array) -> Array:
    """exp(E[log pi_dk] - psi(total of topic k)) (n, K), the largest of each row 1, of documents with counts (K, n).

    levels : (K,) the psi of the totals
    """
    scores = psi(np.ascontiguousarray(counts.T) + shares) - levels
    scores -= scores.max(axis=1, keepdims=True)
    return np.asarray(np.maximum(np.exp(scores), FLOOR))


def _parts(columns: sparse.csc_array, prior: Array, S: Array) -> Iterator[Part]:
    """The words, some at a time."""
    indptr = columns.indptr
    cuts = np.searchsorted(indptr, np.arange(0, indptr[-1], ENTRIES))
    edges = np.unique(np.append(cuts, len(indptr) - 1))
    edges[0] = 0
    for first, last in pairwise(edges):
        entries = slice(indptr[first], indptr[last])
        own = indptr[first : last + 1] - indptr[first]
        N = np.array(S[:, first:last].T, order="C")
        yield Part(own, columns.indices[entries], columns.data[entries], prior[first:last], N)


def _restarted(E: Array, scores: Array, part: Part) -> tuple[Array, int]:
    """Counts (V, K) of some words, and how many of these begin elsewhere."""
    N = part.N.copy()
    changed, _ = restart_words(part.indptr, part.rows, part.counts, E, scores, part.prior, N)
    return N, changed
