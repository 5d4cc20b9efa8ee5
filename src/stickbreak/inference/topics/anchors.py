"""A first guess at topics by moments, from anchor words: no iteration over documents."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...data.sparse_rows import sparse_rows

Array = NDArray[np.floating]
Indices = NDArray[np.intp]

BLOCK_NUMBERS = 1 << 20  # numbers in a block of words: 8 MiB in float64
LEAST = 1e-100  # tokens of a word in a document: fewer are none, and their squares would underflow
DEPENDENT = 1e-9  # squared distance to the span, of the largest squared norm, at which a row adds nothing
TOLERANCE = 5e-4  # of the mixture of a common word; that of rarer words, noisier and of less weight, is as much larger


def anchor_topics(
    counts: Any, K: int, rng: np.random.Generator, min_documents: int | None = None, max_documents: int = 50_000
) -> Array:
    """Topics, each anchored by a word of its own, from the co-occurrence of words.

    If each topic k has an anchor, a word s_k of no other topic, then Qbar_w, the distribution of the words that occur with
    word w, mixes those of the anchors in the proportions C_wk = p(k | w), and Bayes' rule gives the topics:

        Qbar_w = sum_k C_wk Qbar_{s_k},    p(w | k) = p(w) C_wk / sum_v p(v) C_vk

    The anchors are the words whose rows lie furthest from each other's span; C_w has the least squared error on the simplex.
    Words never seen with another token get a tiny mass, the same in every topic.

    Parameters
    ----------
    counts : CSR (D, V), at least 0; documents of fewer than two tokens tell nothing and are left out
    K : the number of topics, from 1 to the number of words that can be anchors
    rng : draws the documents where there are more than ``max_documents``
    min_documents : the documents a word must be in to be an anchor, since the rows of rarer words are noise; by default
        3 sqrt(D), or fewer where 3 K words are not that common
    max_documents : at most so many documents are used: Q is a mean over documents

    Returns
    -------
    Array (K, V) of positive numbers, rows summing to one, in the order of the anchors' distances

    Raises
    ------
    ValueError : K words cannot be anchors: ask for fewer topics, or lower min_documents.

    References
    ----------
    Arora et al., A practical algorithm for topic modeling with provable guarantees, ICML 2013: Alg. 1, 3 (L2) and 4.  All
    these need of Q is the norms of the candidates' rows and K columns of Qbar Qbar', so no random projection is needed.
    """
    Q = _Cooccurrence.of(counts, max_documents, rng)
    anchors, B = _anchors(Q, _candidates(Q, K, min_documents), K)
    C = np.empty(B.shape)
    seen = np.flatnonzero(Q.mass > 0.0)
    tolerance = TOLERANCE * np.maximum(1.0, Q.mass[seen].mean() / np.maximum(Q.mass, Q.mass[seen].min()))
    for block in np.array_split(seen, 1 + len(seen) * K // BLOCK_NUMBERS):
        C[block] = _mixtures(B[anchors], B[block], tolerance[block])
    C[anchors] = np.eye(K)
    C[Q.mass <= 0.0] = Q.mass[seen] @ C[seen] / Q.mass.sum()
    mass = np.maximum(Q.mass, 0.01 * Q.mass[seen].min())
    joint = mass[:, None] * np.maximum(C, 1e-12)
    return np.ascontiguousarray((joint / joint.sum(axis=0)).T)


class _Cooccurrence(NamedTuple):
    """Pairs of tokens, Q = sum_d (x_d x_d' - diag(x_d)) / (n_d (n_d - 1)) = H H' - diag(b), never formed.

    H : CSR (V, D), x_dw / sqrt(n_d (n_d - 1));  b : (V,), sum_d x_dw / (n_d (n_d - 1))
    mass : (V,), the row sums of Q, sum_d x_dw / n_d, by which Qbar divides
    """

    H: Any
    b: Array
    mass: Array

    @classmethod
    def of(cls, counts: Any, max_documents: int, rng: np.random.Generator) -> Self:
        """Q of counts (D, V), from at most so many of the documents of at least two tokens."""
        X = sparse_rows(counts, "counts") if sparse.issparse(counts) else sparse.csr_array(counts)
        documents = np.flatnonzero(X.sum(axis=1) >= 2)
        if len(documents) > max_documents:
            documents = np.sort(rng.choice(documents, max_documents, replace=False))
        H = X[documents].T.tocsr().astype(np.float64)
        H.sum_duplicates()
        H.data[H.data < LEAST] = 0.0
        H.eliminate_zeros()
        n = np.asarray(H.sum(axis=0))
        b = H @ (1.0 / (n * (n - 1.0)))
        mass = H @ (1.0 / n)
        H.data /= np.sqrt(n * (n - 1.0))[H.indices]
        return cls(H, b, mass)

    def norms(self, words: Indices) -> Array:
        """|Qbar_w|^2 of some words, block by block."""
        norms = np.empty(len(words))
        turned = self.H.T.tocsr()
        for at in np.array_split(np.arange(len(words)), 1 + len(words) * len(self.mass) // BLOCK_NUMBERS):
            H = self.H[words[at]]
            b = self.b[words[at]]
            own = np.asarray(H.power(2).sum(axis=1))
            norms[at] = np.asarray((H @ turned).power(2).sum(axis=1)) - own**2 + (own - b) ** 2
        return np.asarray(norms / self.mass[words] ** 2)

    def products(self, word: int) -> Array:
        """The products of all rows of Qbar with that of one word, (V,); 0 for words never seen."""
        row = self.H @ self.H[[word]].toarray()[0]
        row[word] -= self.b[word]
        column = self.H @ (self.H.T @ row) - self.b * row
        return np.asarray(column / np.where(self.mass > 0.0, self.mass * self.mass[word], np.inf))


def _candidates(Q: _Cooccurrence, K: int, min_documents: int | None) -> Indices:
    """The words in enough documents to be anchors, K or more."""
    if K < 1:
        raise ValueError(f"the number of topics must be at least 1; got {K}.")
    frequency = np.diff(Q.H.indptr)
    if min_documents is None:
        min_documents = int(np.sort(frequency)[::-1][: 3 * K].min(initial=int(3.0 * np.sqrt(Q.H.shape[1]))))
    least = max(min_documents, 1)
    words = np.flatnonzero(frequency >= least)
    if len(words) < K:
        raise ValueError(
            f"{K} topics need {K} anchor words, but only {len(words)} words are in at least {least} documents of two tokens: "
            "ask for fewer topics, lower min_documents, or bring more documents."
        )
    return words


def _anchors(Q: _Cooccurrence, candidates: Indices, K: int) -> tuple[Indices, Array]:
    """The anchors, and B (V, K), the products of all rows of Qbar with theirs (Alg. 4).

    The greedy phase is a pivoted Cholesky factor of Qbar Qbar', the second keeps P, the inverse of the anchors' part of it.
    """
    distance = np.full(len(Q.mass), -np.inf)  # squared, from the span of the anchors so far
    distance[candidates] = Q.norms(candidates)
    least = DEPENDENT * distance.max()
    anchors = np.empty(K, dtype=np.intp)
    B = np.empty((K, len(distance)))
    L = np.empty((K, len(distance)))
    for k in range(K):
        s = anchors[k] = int(distance.argmax())
        if not distance[s] > least:
            raise ValueError(f"only {k} words differ enough to be anchors: ask for {k} topics, or lower min_documents.")
        B[k] = Q.products(s)
        L[k] = (B[k] - L[:k, s] @ L[:k]) / np.sqrt(distance[s])
        distance -= L[k] ** 2
    P = np.linalg.inv(B[:, anchors])
    for k in range(K):  # each anchor once more, given the others, as far as rounding tells them apart
        if not P[k, k] > 0.0:
            break
        dual = P[k] / np.sqrt(P[k, k])  # times B: the part of each row that only anchor k adds to the span
        P -= np.outer(dual, dual)
        distance += (dual @ B) ** 2
        s = int(distance.argmax())
        if s != anchors[k]:
            anchors[k], B[k] = s, Q.products(s)
        dual = -P @ B[k, anchors]
        dual[k] = 1.0
        square = dual @ B[k, anchors]
        if not square > 0.0:
            break
        dual /= np.sqrt(square)
        P += np.outer(dual, dual)
        distance -= (dual @ B) ** 2
    return anchors, np.ascontiguousarray(B.T)


def _mixtures(G: Array, B: Array, tolerance: Array, most: int = 200) -> Array:
    """The minimum over the simplex of C_w G C_w' / 2 - B_w C_w' for all words at once (Alg. 3, exponentiated gradient).

    G : (K, K), B : (n, K), the products of the anchors, and of the words, with the anchors
    tolerance : (n,) the distance from the minimum, of the mean of diag(G), at which a word is done;  most : steps at most
    """
    result = np.full(B.shape, 1.0 / len(G))
    C = result
    step = np.full((len(B), 1), 1.0 / G.max())
    left = np.arange(len(B))
    gradient: Array = C @ G - B
    for _ in range(most):
        low = gradient.min(axis=1, keepdims=True)
        gap = np.einsum("wk,wk->w", C, gradient - low)  # bounds the distance from the minimum, by convexity
        open_ = gap > tolerance[left] * G.diagonal().mean()
        if not open_.any():
            break
        left = left[open_]
        C = C[open_]
        B = B[open_]
        step = step[open_]
        gradient = gradient[open_]
        low = low[open_]
        new = np.maximum(C * np.exp(step * (low - gradient)), 1e-30)
        new /= new.sum(axis=1, keepdims=True)
        slope = new @ G - B
        better = np.einsum("wk,wk->w", new - C, slope + gradient)[:, None] <= 0.0  # twice the change of the function
        C = np.where(better, new, C)
        gradient = np.where(better, slope, gradient)
        step *= np.where(better, 1.5, 0.5)
        result[left] = C
    return result
