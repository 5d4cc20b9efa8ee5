"""Groups of rows that are in one cluster: what users pass as groups, and the groups as rows of summed statistics."""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._arguments import shown
from ..cluster.sources import is_spread
from ..data import ArraySource, Chunk, SparseSource
from ..data.arrays import as_array
from ..data.opening import in_files
from ..inference import Executor, Memoized, Stochastic
from ..inference.memory import check_room
from ..inference.reader import Reader, by_chunk
from ..likelihoods import Likelihood, Linked
from ..likelihoods.features import features
from ..likelihoods.linked import BESIDE
from ..model import Model, Summary
from . import _choices as choices
from ._classes import Classes, is_unknown
from ._setup import SearchProblem

Array = NDArray[np.floating]


class Links(NamedTuple):
    """The groups of rows.

    names : G of them; a row that is in no group is a group without a name, None
    codes : (N,) the group of each row, 0, ..., G - 1
    """

    names: list[Any]
    codes: NDArray[np.intp]


def links_of(groups: Any, n: int) -> Links:
    """The groups of n rows.

    groups : (n,) names of any types that can be hashed; rows with -1, None or NaN are in no group

    Raises
    ------
    ValueError, TypeError : names are not one for each row, are dates, or cannot be hashed.
    """
    given = as_array(groups, "groups")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.shape != (n,):
        raise ValueError(f"groups must hold one name for each of {n} rows; got shape {given.shape}.")
    code: dict[Any, int] = {}
    names: list[Any] = []
    codes = np.empty(n, np.intp)
    for row, value in enumerate(given.tolist()):
        alone = is_unknown(value, row, "groups")
        if alone or value not in code:
            names.append(None if alone else value)
        if alone:
            codes[row] = len(names) - 1
        else:
            codes[row] = code.setdefault(value, len(names) - 1)
    return Links(names, codes)


def check_rows(X: Any, source: ArraySource) -> None:
    """Refuse rows that are not dense and in memory."""
    if in_files(X) or is_spread(source) or isinstance(source, SparseSource):
        raise TypeError("groups are for dense rows in memory; pass an array or a frame, X.toarray(), or X.compute().")


def check_links(estimator: Any, X: Any, source: ArraySource, likelihood: Likelihood) -> None:
    """Refuse groups of rows that cannot be summed, or for an algorithm that visits rows by themselves."""
    check_rows(X, source)
    if not isinstance(choices.algorithm(estimator), (Memoized, Stochastic)):
        raise ValueError(
            f"groups need algorithm='memoized', 'full' or 'stochastic'; got {choices.algorithm(estimator)!r:.80}."
        )
    if not isinstance(estimator.init, str):
        raise ValueError(f"with groups init must be a name, such as 'one' or 'k-means++'; got {shown(estimator.init)}.")
    if estimator.seeds is not None:
        raise ValueError("seeds and groups cannot be used together; leave one of them out.")
    if estimator.device is not None:
        raise ValueError(f"groups are visited on processors alone; leave out device={estimator.device!r}.")
    refuse_gaps(likelihood)
    if likelihood.latent is not None:
        raise ValueError(
            f"groups need a family without latent variables of rows, such as Gaussian or DiagonalGaussian; got "
            f"{type(likelihood).__name__}."
        )


def refuse_gaps(family: Likelihood) -> None:
    """Refuse missing values that are latent variables of rows: a group has none of these."""
    if family.cells is not None:
        raise ValueError(
            f"groups need complete rows, or a family of independent columns such as DiagonalGaussian: to a "
            f"{type(family).__name__} missing values are latent variables of rows."
        )


def classes_of_groups(classes: Classes, links: Links) -> Classes:
    """The classes of groups, given those of some of their rows.

    Raises
    ------
    ValueError : rows of one group have different labels.
    """
    codes = np.zeros(len(links.names), np.int64)
    first = np.zeros(len(links.names), np.intp)
    for row in np.flatnonzero(classes.codes):
        g = links.codes[row]
        if codes[g] == 0:
            codes[g] = classes.codes[row]
            first[g] = row
        elif codes[g] != classes.codes[row]:
            names = classes.names.tolist()
            one = shown(names[codes[g] - 1])
            other = shown(names[classes.codes[row] - 1])
            raise ValueError(
                f"group {shown(links.names[g])} has rows of different classes: {one} in row {first[g]} and {other} in row "
                f"{row}.  Rows of one group are in one cluster; part the group, or leave out a label."
            )
    return Classes(classes.names, codes)


def linked_problem(problem: SearchProblem, groups: ArraySource, n_columns: int) -> SearchProblem:
    """The problem of groups, given that of rows of so many columns; it has no more batches than there are groups."""
    model = replace(problem.model, likelihood=Linked(problem.model.likelihood, n_columns, True))
    options = replace(problem.options, n_batches=min(problem.options.n_batches, groups.n_rows))
    return SearchProblem(model, groups, options)


def linked_source(family: Likelihood, source: ArraySource, links: Links, executor: Executor) -> ArraySource:
    """The groups as rows [T_g, m_g, log h(x_g)] (G, F + 2).

    A group whose rows have no weight has none, and sums in which each of its rows counts once.
    """
    G = len(links.names)
    width = family.n_statistics + BESIDE
    check_room(8.0 * G * width, f"the sums of {G:,} groups", "make groups larger, or use a simpler likelihood")
    counted = np.ones(G, np.bool_)
    if source.weights is not None:
        counted = np.bincount(links.codes, source.weights, G) > 0.0
    sums = np.zeros((G, width))
    for present, part in executor.over(source, partial(_summed, family, links.codes, counted), source.batches(1)[0]):
        sums[present] += part
    return ArraySource(sums, None if counted.all() else counted.astype(np.float64))


def _summed(
    family: Likelihood, codes: NDArray[np.intp], counted: NDArray[np.bool_], source: ArraySource, chunk: Chunk
) -> tuple[NDArray[np.intp], Array]:
    """The groups with rows in a chunk, and their sums there."""
    X, weights = source.read(chunk)
    X = X.astype(np.float64, copy=False)
    own = codes[chunk.start : chunk.stop]
    weights = np.where(counted[own], weights, 1.0)
    present, place = np.unique(own, return_inverse=True)
    n = len(own)
    R = sparse.csr_array((weights, place, np.arange(n + 1)), (n, len(present))).T.tocsr()
    T = R @ features(family, X)
    beside = R @ np.column_stack([np.ones(n), family.log_base(X)])
    return present, np.hstack([T.toarray() if sparse.issparse(T) else np.asarray(T), beside])


def labels_of_groups(
    model: Model, total: Summary, groups: ArraySource, links: Links, executor: Executor
) -> NDArray[np.intp]:
    """The most probable cluster of the group of each row."""
    reader = Reader(model, total, model.parameters(total, np.dtype(np.float64)))
    return np.asarray(np.concatenate(list(by_chunk(groups, executor, reader.labels)))[links.codes])
