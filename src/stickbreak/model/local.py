"""The local step of mixtures: rows to responsibilities to a summary, in blocks that stay in cache."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..kernels.assign import accumulate, count_and_entropy, keep_largest, softmax_rows
from ..kernels.latent import multiplied
from ..kernels.sparse import csr_accumulate, csr_scores
from ..likelihoods import Latent, Likelihood
from ..likelihoods.features import Rows, features, largest_terms, prefers_sparse
from ..likelihoods.responsibilities import Responsibilities, dense, join, most_probable
from .parameters import Parameters
from .summary import Summary

Array = NDArray[np.floating]
Limits = NDArray[np.integer] | None  # (n,) the most clusters that each row may use, if there is a limit

BLOCK_NUMBERS = 1 << 18  # numbers in a block's features and scores together: 2 MiB in float64, about an L2 cache
FEW_ROWS, MOST_NUMBERS = 128, 1 << 25  # a block has at least so many rows, if their numbers are no more than that
MOST_ROWS = 4096
FARTHEST = 1e300  # the largest score of a row
LONG = 200  # statistics, from which BLAS makes T @ W.T in float64 sooner as (W @ T.T).T
DENSE_SHARE = 0.2  # above this share of kept responsibilities a dense product beats the sparse one


def responsibility_threshold(dtype: np.dtype[np.floating]) -> float:
    """Responsibilities below this are dropped: their sum is beneath the rounding of a bound in this precision."""
    return 1e-12 if dtype == np.float64 else 1e-8


def block_rows(F: int, K: int) -> int:
    """Rows per block, for F numbers in the features of a row."""
    fewest = min(max(MOST_NUMBERS // (F + K), 1), FEW_ROWS)
    return min(max(BLOCK_NUMBERS // (F + K), fewest), MOST_ROWS)


def local_step(
    likelihood: Likelihood,
    parameters: Parameters,
    X: Rows,
    weights: Array,
    base: bool = True,
    most_kept: int | None = None,
) -> tuple[Summary, Responsibilities]:
    """Responsibilities of rows X (n, D) with sample weights (n,) under the parameters, and their summary.

    No array of n x K numbers is made: each block's scores C = T W' are turned in place into responsibilities, the kept
    ones are returned, and S = R' T is added up from the same block of features.

    base : whether to sum up the base measure, which depends on the data alone
    most_kept : L, the most clusters that a row has responsibilities for; None for no limit
    """
    n = X.shape[0]
    most = None if most_kept is None else np.full(n, most_kept)
    summary, responsibilities = restricted_step(likelihood, parameters, X, weights, np.ones(n), most)
    if base:
        summary.base[...] = np.dot(likelihood.log_base(X), weights)
    return summary, responsibilities


def responsibilities_of(likelihood: Likelihood, parameters: Parameters, X: Rows) -> Array:
    """The probability of each cluster for each of rows X (n, D), as an array (n, K)."""
    summary, kept = local_step(likelihood, parameters, X, np.ones(X.shape[0]), base=False)
    return dense(kept, summary.K, X.dtype)


def likeliest(likelihood: Likelihood, parameters: Parameters, X: Rows) -> NDArray[np.intp]:
    """The most probable cluster of each of rows X (n, D), (n,)."""
    return most_probable(local_step(likelihood, parameters, X, np.ones(X.shape[0]), base=False)[1])


def latent_means_of(likelihood: Likelihood, latent: Latent, parameters: Parameters, X: Rows) -> tuple[Array, Array]:
    """The probability of each cluster for each of rows X, and the means of their latent variables, (n, K) each."""
    shape = X.shape[0], len(parameters.bias)
    R, means = (np.empty(shape, X.dtype) for _ in range(2))
    rows = block_rows(likelihood.n_statistics, shape[1])
    for start in range(0, shape[0], rows):
        block = slice(start, start + rows)
        T, scores = scores_of(likelihood, parameters, X[block])
        found = _integrated(likelihood, latent, parameters, X[block], T, scores)
        R[block] = found.R
        means[block] = found.means
    return R, means


def restricted_step(
    likelihood: Likelihood, parameters: Parameters, X: Rows, weights: Array, mass: Array, most: Limits = None
) -> tuple[Summary, Responsibilities]:
    """The local step when row n has only ``mass[n]`` to give to these clusters: r_nk = mass_n p_nk.

    The base measure is left at zero, since the rows are counted elsewhere.

    most : (n,) the most clusters that each row may use, at least 1
    """
    summary = Summary.zeros(*parameters.W.shape)
    likelihood.carry(parameters.W, summary.S)
    pieces = []
    n = X.shape[0]
    F = likelihood.n_statistics
    dtype = parameters.W.dtype
    is_sparse = sparse.issparse(X) or prefers_sparse(likelihood)
    if is_sparse:
        parameters = Parameters(np.asfortranarray(parameters.W), parameters.bias)
    rows = min(block_rows(-(-X.size // max(n, 1)) if is_sparse else F, len(parameters.bias)), max(n, 1))
    T = None if is_sparse else np.empty((rows, F), dtype)  # used again for every block
    for start in range(0, n, rows):
        block = slice(start, min(start + rows, n))
        out = None if T is None else T[: block.stop - start]
        limits = None if most is None else most[block]
        pieces.append(block_step(likelihood, parameters, X[block], weights[block], mass[block], summary, out, limits))
    return summary, join(pieces)


def block_step(
    likelihood: Likelihood,
    parameters: Parameters,
    X: Rows,
    weights: Array,
    mass: Array,
    summary: Summary,
    out: Array | None = None,
    most: Limits = None,
) -> Responsibilities:
    """`restricted_step` for one block of rows, whose features may be written to ``out``; the summary is added to ``summary``.

    A block with rows so far from every cluster that their scores are too large for the precision of W is done exactly.
    """
    T, scores = scores_of(likelihood, parameters, X, out)
    return summed_step(likelihood, parameters, X, T, scores, weights, mass, summary, most)


def summed_step(
    likelihood: Likelihood,
    parameters: Parameters,
    X: Rows,
    T: Any,
    scores: Array,
    weights: Array,
    mass: Array,
    summary: Summary,
    most: Limits = None,
) -> Responsibilities:
    """`block_step` from features T of rows X and their scores without bias, which are spoilt."""
    latent = likelihood.latent
    if latent is not None:
        return _latent_step(likelihood, latent, parameters, X, T, scores, weights, mass, summary, most)
    dtype = parameters.W.dtype
    cells = likelihood.cells
    if cells is not None:
        cells.integrate(T, parameters.W, scores)
    kept = softmax(scores, parameters.bias, responsibility_threshold(dtype), largest_terms(dtype))
    if kept is None:
        T, scores, _ = exact_scores(likelihood, parameters, X)
        if cells is not None:
            cells.integrate(T, parameters.W, scores)
            np.nan_to_num(scores, copy=False, nan=-FARTHEST, posinf=FARTHEST, neginf=-FARTHEST)
        kept = softmax(scores, np.zeros(len(parameters.bias)), responsibility_threshold(scores.dtype), np.inf)
        assert kept is not None
    kept = limited(kept, scores, most)
    _add(kept, T, scores, weights, mass, summary)
    if cells is not None:
        cells.add(kept, weights * mass, T, parameters.W, summary.S)
    return kept


def _latent_step(
    likelihood: Likelihood,
    latent: Latent,
    parameters: Parameters,
    X: Rows,
    T: Array,
    scores: Array,
    weights: Array,
    mass: Array,
    summary: Summary,
    most: Limits = None,
) -> Responsibilities:
    """`summed_step` where rows have latent variables: sums are of statistics times their means."""
    found = _integrated(likelihood, latent, parameters, X, T, scores, most)
    kept = found.kept
    count_and_entropy(*kept, weights, mass, summary.N, summary.H)
    weights = weights * mass
    plain = likelihood.n_statistics - likelihood.n_plain
    S = summary.S[:, :plain]
    latent.add(kept, weights, found.means, S)
    values = np.empty_like(kept.values)
    multiplied(*kept, found.means, values)
    times = kept._replace(values=values)
    _add_products(times, found.T[:, :plain], found.R * found.means, weights, S)
    if likelihood.n_plain > 0:
        _add_products(kept, found.T[:, plain:], found.R, weights, summary.S[:, plain:])
    return kept


def _add_products(kept: Responsibilities, T: Array, R: Array, weights: Array, S: Array) -> None:
    """S += R' diag(w) T for factors ``kept``, dense R (n, K), of features T."""
    if kept.values.size > DENSE_SHARE * R.size:
        R = R * weights[:, None]  # float64 also for float32 data: sums of rounded products would move the bound
        np.add(S, R.T @ T.astype(np.float64, copy=False), out=S)
    else:
        accumulate(*kept, weights, T, S)


class _Integrated(NamedTuple):
    """Features T (n, F) of rows, dense responsibilities R (n, K), the kept ones, and the means of latent variables (n, K)."""

    T: Array
    R: Array
    kept: Responsibilities
    means: Array


def _integrated(
    likelihood: Likelihood,
    latent: Latent,
    parameters: Parameters,
    X: Rows,
    T: Array,
    scores: Array,
    most: Limits = None,
) -> _Integrated:
    """Responsibilities from scores, which are spoilt, with latent variables integrated out, and the means of these."""
    means = latent.integrate(scores)
    if means is None:
        T, scores = scores_of(likelihood, Parameters(parameters.W.astype(np.float64), parameters.bias), X)
        means = latent.integrate(scores)
        assert means is not None  # in float64 nothing is refused
    plain = likelihood.n_statistics - likelihood.n_plain
    if likelihood.n_plain > 0:
        scores += product_with(T[:, plain:], parameters.W[:, plain:].astype(T.dtype, copy=False))
    bias = parameters.bias.astype(scores.dtype, copy=False)
    kept = softmax(scores, bias, responsibility_threshold(scores.dtype), np.inf)
    assert kept is not None  # every score is a number
    return _Integrated(T, scores, limited(kept, scores, most), means)


def _add(kept: Responsibilities, T: Any, R: Array, weights: Array, mass: Array, summary: Summary) -> None:
    """Add what rows with features T and responsibilities ``kept``, dense R (n, K), say to a summary."""
    count_and_entropy(*kept, weights, mass, summary.N, summary.H)
    weights = weights * mass
    if sparse.issparse(T):
        csr_accumulate(*kept, weights, T.indptr, T.indices, T.data, summary.S)
    else:
        _add_products(kept, T, R, weights, summary.S)


def softmax(C: Array, bias: Array, threshold: float, largest: float) -> Responsibilities | None:
    """Responsibilities of a block of rows with scores ``C + bias`` (n, K) (Thesis Eq. 3.49); C becomes their dense form.

    None if the best score of a row is beyond ``largest`` either way, or not a number; C is then spoilt.
    """
    n, K = C.shape
    indptr = np.empty(n + 1, dtype=np.int64)
    indices = np.empty(n * K, dtype=np.int32)
    values = np.empty(n * K, dtype=C.dtype)
    kept = softmax_rows(C, bias, threshold, largest, indptr, indices, values)
    return None if kept < 0 else Responsibilities(indptr, indices[:kept], values[:kept])


def limited(kept: Responsibilities, R: Array, most: Limits) -> Responsibilities:
    """The largest responsibilities of each row, as many as it may have, renormalised; R is their dense form, in and out.

    They are the best responsibilities under this constraint (Thesis Eq. 7.5).
    """
    if most is None:
        return kept
    count = keep_largest(*kept, most, R)
    return Responsibilities(kept.indptr, kept.indices[:count], kept.values[:count])


def scores_of(
    likelihood: Likelihood, parameters: Parameters, X: Rows, out: Array | None = None, product: Array | None = None
) -> tuple[Any, Array]:
    """Features T of rows X and scores T @ W.T (n, K) without bias, in the precision of W; not finite for distant rows."""
    with np.errstate(over="ignore", invalid="ignore"):  # whoever asks sees what is not finite, and does it again
        T = features(likelihood, X, parameters.W.dtype, out)
        return T, product_of(likelihood, T, parameters.W, product)


def exact_scores(likelihood: Likelihood, parameters: Parameters, X: Rows) -> tuple[Any, Array, Array]:
    """Float64 features of rows X, scores (n, K) with bias, less the best of each row, and the best scores (n,)."""
    precise = Parameters(parameters.W.astype(np.float64), parameters.bias.astype(np.float64))
    T, scores = scores_of(likelihood, precise, X)
    scores += precise.bias
    best = scores.max(axis=1)
    far = np.flatnonzero(~(np.abs(best) <= largest_terms(np.float64)))
    best[far] = 0.0
    scores -= best[:, None]
    if len(far):
        scores[far], best[far] = _distant_scores(T[far], precise)
    return T, scores, best


def _distant_scores(T: Any, parameters: Parameters) -> tuple[Array, Array]:
    """Scores of rows with features T as in `exact_scores`, where their size leaves nothing of their differences.

    With T = c t and |t| <= 1, the difference from a good cluster j,  c [ t . (W_k - W_j) + (b_k - b_j) / c ],  neither
    overflows before it is multiplied by c nor rounds what all clusters have in common.
    """
    W = parameters.W
    bias = parameters.bias
    size = abs(T).max(axis=1)
    c = np.maximum(size.toarray() if sparse.issparse(size) else size, 1.0).reshape(-1, 1)
    t = sparse.csr_array(T / c) if sparse.issparse(T) else T / c
    scaled = t @ W.T + bias / c
    leader = scaled.argmax(axis=1)
    scores = np.empty(scaled.shape)
    for j in np.unique(leader):
        rows = np.flatnonzero(leader == j)
        scores[rows] = t[rows] @ (W - W[j]).T + (bias - bias[j]) / c[rows]
    scores -= scores.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # to minus infinity: a responsibility of zero
        best = np.clip(scaled.max(axis=1) * c[:, 0], -FARTHEST, FARTHEST)
        return np.asarray(scores * c), best


def product_of(likelihood: Likelihood, T: Any, W: Array, out: Array | None = None) -> Array:
    """The scores that features T (n, F) give under weights W (K, F), before latent variables are integrated out."""
    if likelihood.latent is None or likelihood.n_plain == 0:
        return product_with(T, W, out)
    plain = likelihood.n_statistics - likelihood.n_plain
    return product_with(T[:, :plain], W[:, :plain], out)


def product_with(T: Any, W: Array, out: Array | None = None) -> Array:
    """T @ W.T for features T (n, F), dense or CSR, and weights W (K, F); in ``out`` (n, K) of the type of W, if given."""
    if not sparse.issparse(T):
        if W.dtype != np.float64 or W.shape[1] < LONG:
            return np.asarray(np.matmul(T, W.T, out=out))
        C = np.empty((len(T), len(W))) if out is None else out
        C[...] = np.matmul(W, T.T).T
        return C
    C = np.empty((T.shape[0], len(W)), W.dtype) if out is None else out
    csr_scores(T.indptr, T.indices, T.data, np.ascontiguousarray(W.T), C)
    return C
