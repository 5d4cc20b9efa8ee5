"""The memory of a fit: how much it needs, how many clusters there is room for, and in how many batches it visits the data."""

import sys

import numpy as np

from ..data import ArraySource, SparseSource
from ..inference import memory
from ..inference.executor import n_threads
from ..likelihoods import Likelihood
from . import _choices as choices
from . import _likelihoods as likelihoods
from ._base import Columns
from ._births import published_birth
from ._estimator import Estimator

ROWS_PER_BATCH = 5000
MOST_BATCHES = 10
ROWS_PER_STEP = 1000  # of stochastic inference
MOST_STEPS = 100  # in a lap
MEMO = 1 << 28  # bytes for the summaries of `MANY` clusters on all batches
MANY = 100  # clusters; more are rare
SHARE = 8  # these summaries may take one part in so many of the memory available


def room(estimator: Estimator, likelihood: Likelihood, source: ArraySource, columns: Columns) -> int:
    """The most clusters that memory has room for, beside the data.

    Raises
    ------
    MemoryError
        If there is no room for the clusters of the start.
    """
    sizes = _sizes(estimator, likelihood, source, columns)
    needed = sizes.needed(first_clusters(estimator))
    if estimator.max_memory is None and needed < memory.SMALL and sizes.needed(MANY) < memory.SMALL:
        return sys.maxsize
    free = available(estimator)
    if needed > free:
        batches = "n_batches=1, " if sizes.batches > 1 else ""
        squares = sizes.update > sizes.statistics  # matrices
        family = 'likelihood="diagonal_gaussian" where that is enough, ' if squares else ""
        raise MemoryError(
            f"{sizes.rows} rows of {sizes.statistics} statistics each (of {source.n_columns} columns) in "
            f"K={first_clusters(estimator)} clusters and n_batches={sizes.batches} need about "
            f"{memory.shown(needed)} of memory to begin with, and {memory.shown(free)} are available; use {batches}{family}"
            "fewer columns, a smaller n_jobs, or fewer clusters to begin with."
        )
    return sizes.most_clusters(free)


def available(estimator: Estimator) -> float:
    """Bytes that a fit may take beside the data."""
    return memory.available() if estimator.max_memory is None else float(estimator.max_memory)


def first_clusters(estimator: Estimator) -> int:
    """How many clusters a fit begins with, as far as ``init`` says; a wrong ``init``, refused later, counts as one cluster."""
    init = estimator.init
    if isinstance(init, str):
        return estimator._clusters_of_named_start()
    if isinstance(init, Estimator):
        return int(getattr(getattr(init, "summary_", None), "K", 1))
    try:
        shape = np.shape(init)
        if len(shape) == 2:
            return int(max(1, shape[estimator._cluster_axis]))
        return max(1, len(set(np.ravel(init).tolist())))
    except (TypeError, ValueError):
        return 1


def n_batches(estimator: Estimator, likelihood: Likelihood, source: ArraySource) -> int:
    """Batches per lap: fewer where one summary of a hundred clusters is large, or memory is short."""
    return _batches(estimator, likelihood.n_statistics, source)


def _batches(estimator: Estimator, F: int, source: ArraySource) -> int:
    if estimator.algorithm == "full":
        return 1
    if estimator.n_batches is not None:
        return min(int(estimator.n_batches), source.n_rows)
    if not choices.algorithm(estimator).searches:
        return int(np.clip(source.n_rows // ROWS_PER_STEP, 1, MOST_STEPS))
    wanted = int(np.clip(source.n_rows // ROWS_PER_BATCH, 1, MOST_BATCHES))
    if estimator.max_memory is None and wanted * MANY * F * memory.NUMBER < memory.SMALL // SHARE:
        return wanted
    return int(np.clip(min(MEMO, available(estimator) / SHARE) // (MANY * F * memory.NUMBER), 1, wanted))


def _sizes(estimator: Estimator, likelihood: Likelihood, source: ArraySource, columns: Columns) -> memory.Sizes:
    """What the memory of a fit depends on, known before anything large is made."""
    flat = source.flat
    size = likelihood.size(columns.missing, columns.largest)
    is_sparse = isinstance(flat, SparseSource)
    sizes = memory.Sizes(
        rows=flat.n_rows,
        columns=flat.row_size,
        statistics=size.statistics,
        entries=min(flat.row_size, size.entries) if is_sparse else size.entries,
        update=size.update,
        prior=size.prior,
        sample=min(flat.n_rows, likelihoods.PRIOR_ROWS),
        threads=n_threads(estimator.n_jobs),
        batches=1 if not choices.algorithm(estimator).searches else _batches(estimator, size.statistics, source),
        births="birth" in estimator.moves or published_birth(estimator) is not None,
        sparse=is_sparse,
    )
    return estimator._sized(sizes, source)
