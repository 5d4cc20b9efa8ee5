"""What users pass as documents, as sources."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ..data import BagSource, GroupSource, SparseSource
from ..data.document_files import open_documents
from ..data.frames import Encoded, as_frame
from ..data.opening import as_data, is_path
from ..inference import Executor
from ..likelihoods import Likelihood
from ._base import Columns, as_source, survey
from ._given import check_columns, whole_numbers
from ._spread import goes_to_workers, spread_bags

MOST_TOKENS = 1e12  # of a document: the local step divides counts by numbers down to 1e-26 in float32
LEAST_TOKENS = 1e-100  # of all documents: the digamma function of less leaves the range of float64
UNIT = 1e-4  # within which rows have the same length


def as_documents(estimator: Any, X: Any, lengths: Any, reset: bool) -> BagSource | GroupSource:
    """Counts of words as bags, or dense rows with the lengths of their groups, remembering or comparing the columns."""
    if not reset and estimator.grouped_ != (lengths is not None):
        how = "rows in groups: pass lengths=" if estimator.grouped_ else "counts of words: pass no lengths"
        raise ValueError(f"this model was fitted to {how}.")
    if goes_to_workers(estimator, X, reset):
        if lengths is not None:
            raise TypeError(
                "rows in groups cannot be on a cluster; pass counts of words, or X.compute() and executor=None."
            )
        return spread_bags(estimator, X, reset)
    names = None
    if lengths is None and is_path(X):
        table = open_documents(X, n_words=None if reset else estimator.n_features_in_)
        names = table.names
        X = as_data(table)
    if lengths is None:
        _refuse_text(X)
    source = as_source(estimator, X, reset=reset)
    if names is not None:
        check_columns(estimator, names, source.n_columns, reset)
    if lengths is None:
        dense = not isinstance(source, SparseSource)
        return BagSource(sparse.csr_array(np.asarray(source.X, dtype=source.dtype)) if dense else source.X)
    if isinstance(source, SparseSource):
        raise TypeError("rows in groups must be dense; a sparse X holds counts of words, a document in each row.")
    return GroupSource(source.X, whole_numbers("lengths", lengths, 0, source.n_rows))


def _refuse_text(X: Any) -> None:
    """Refuse texts, with a message that says how to count their words."""
    frame = as_frame(X)
    if frame is not None:
        names = [name for name, column in zip(frame.columns, frame.iter_columns()) if _is_text(column.to_numpy())]
    elif isinstance(X, Encoded):
        names = [str(d) if X.names is None else X.names[d] for d in X.levels]
    else:
        names = ["X"] if _is_text(X) else []
    if names:
        raise ValueError(
            f"{names[0]!r} holds text, and a topic model takes the counts of words, a document in each row: pass counts, e.g. "
            "CountVectorizer().fit_transform(texts)."
        )


def _is_text(X: Any) -> bool:
    """Whether X is text, or an array or a nested list with text in it."""
    if isinstance(X, (list, tuple)):
        return any(isinstance(x, (str, bytes)) or (isinstance(x, (list, tuple, np.ndarray)) and _is_text(x)) for x in X)
    values = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object if hasattr(X, "__array__") else None)
    if values.dtype.kind == "O" and values.ndim:
        return any(isinstance(value, (str, bytes)) for value in values.ravel())
    return values.dtype.kind in "US"


def checked(estimator: Any, given: Likelihood, source: BagSource | GroupSource, executor: Executor) -> Columns:
    """Refuse values that the likelihood cannot use, and warn of values that are not counts."""
    columns = survey(estimator, given, source.flat, executor)
    check_counts(source)
    return columns


def check_tokens(source: BagSource | GroupSource) -> None:
    """Refuse documents without words, or with too few to tell from none."""
    if not source.total_weight > 0.0:
        raise ValueError("all documents are empty.")
    if source.total_weight < LEAST_TOKENS:
        raise ValueError(
            f"X holds {source.total_weight:.3g} words in all, too few to tell from none; multiply the counts by a "
            "constant first."
        )


def check_counts(source: BagSource | GroupSource) -> None:
    """Refuse counts of words beyond what documents can be read with, and warn of numbers that are not counts."""
    if not isinstance(source, BagSource):
        return
    row = int(source.sizes.argmax())
    if source.sizes[row] > MOST_TOKENS:
        raise ValueError(
            f"X has {source.sizes[row]:.3g} words in row {row}; a document may have at most {MOST_TOKENS:.0e}. Divide the "
            "counts by a constant first."
        )
    if source.whole:
        return
    what = "numbers that are not whole"
    for name, sizes in (("sum to 1", source.sizes), ("have length 1", source.lengths)):
        if (sizes > 0.0).any() and np.allclose(sizes[sizes > 0.0], 1.0, atol=UNIT):
            what = f"rows that {name}, as TfidfVectorizer makes them"
    warnings.warn(
        f"X holds {what}, and a topic model takes the counts of words: pass CountVectorizer().fit_transform(texts), or ignore "
        "this warning if fractions of words are meant.",
        UserWarning,
        stacklevel=2,
    )


def fingerprint(source: BagSource | GroupSource) -> str | None:
    """A hash of counts of words, by which they are known again; None for rows in groups."""
    return source.fingerprint() if isinstance(source, BagSource) else None
