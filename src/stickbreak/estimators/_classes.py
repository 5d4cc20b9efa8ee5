"""Labels of some rows: what users pass as y, the classes, and which classes clusters have."""

from collections.abc import Hashable, Sequence
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._arguments import shown
from ..data import ArraySource, SequenceSource
from ..data.arrays import as_array, is_date, is_missing, numbers
from ..data.labelled_rows import with_classes
from ..likelihoods import Labelled
from ..model import Model
from ..model.cluster_classes import cluster_classes

MEASURED = "Mixture(LinearRegression())"  # takes targets that are measured

Array = NDArray[np.floating]


class Classes(NamedTuple):
    """The labels of rows.

    names : the classes, C
    codes : (N,) the class of each row, 1, ..., C, or 0 where it is unknown
    """

    names: NDArray[Any]
    codes: NDArray[np.int64]


def classes_of(y: Any, n: int, known: Sequence[Any] | None = None, cure: str = MEASURED) -> Classes | None:
    """The classes of n rows, or None where no label is known.

    y : (n,) labels of any types that can be hashed; -1, None and NaN are unknown
    known : the classes of a fitted model, to one of which every label must belong
    cure : what to use where y holds measurements

    Raises
    ------
    ValueError, TypeError : labels are not one for each row, are dates, fractions, cannot be hashed, or are new to the model.
    """
    if y is None:
        return None
    labels = as_array(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n,):
        raise ValueError(f"y must hold one label for each of {n} rows; got shape {labels.shape}.")
    values = labels.tolist()
    unknown = np.array([is_unknown(value, row) for row, value in enumerate(values)], np.bool_)
    if unknown.all():
        return None
    labelled = np.flatnonzero(~unknown)
    _refuse_measurements(values, labelled, cure)
    names = _sorted(dict.fromkeys(values[row] for row in labelled)) if known is None else list(known)
    code = {name: c + 1 for c, name in enumerate(names)}
    codes = np.zeros(n, np.int64)
    for row in labelled:
        if values[row] not in code:
            raise ValueError(f"y has {shown(values[row])} in row {row}, which is no class of the fit: {names[:10]}.")
        codes[row] = code[values[row]]
    return Classes(as_names(names), codes)


def require_rows(classes: Classes, weights: Array | None) -> None:
    """Refuse a class none of whose rows counts; ``weights`` (N,) are zero for those, or None where all count."""
    counts = classes.codes if weights is None else classes.codes[weights > 0.0]
    empty = np.setdiff1d(np.arange(len(classes.names)) + 1, counts)
    if len(empty):
        name = shown(classes.names.tolist()[empty[0] - 1])
        raise ValueError(
            f"y has the class {name}, but no row that counts: those with this label have a sample_weight of zero or no "
            "observation.  Leave these labels out, as None or -1."
        )


@overload
def with_known_classes(estimator: Any, source: SequenceSource, y: Any) -> SequenceSource: ...


@overload
def with_known_classes(estimator: Any, source: ArraySource, y: Any) -> ArraySource: ...


def with_known_classes(estimator: Any, source: ArraySource, y: Any) -> ArraySource:
    """The rows of a source with labels y of the classes of a fitted estimator, if it has any and labels are given."""
    names = getattr(estimator, "classes_", None)
    classes = None if names is None else classes_of(y, source.n_rows, names.tolist())
    return source if classes is None else with_classes(source, classes.codes)


class KnowsClasses:
    """What estimators know of the classes that a fit was given."""

    classes_: NDArray[Any]

    def _name_classes(self, names: NDArray[Any] | None) -> None:
        """Set the classes of a fit, or forget those of an earlier one."""
        self.__dict__.pop("classes_", None)
        if names is not None:
            self.classes_ = names

    def _most_probable(self, chances: Array) -> NDArray[Any]:
        """The classes that have the largest of the chances (n, C), (n,)."""
        return np.asarray(self.classes_[chances.argmax(axis=1)])

    def _accuracy(self, chances: Array, y: Any, sample_weight: Any = None) -> float:
        """The share of the labels y (n,) that are known whose class is the most probable one, given chances (n, C)."""
        n = len(chances)
        classes = classes_of(y, n, self.classes_.tolist())
        if classes is None:
            raise ValueError("y must have at least one label that is known; got none.")
        known = classes.codes > 0
        weights = np.ones(n) if sample_weight is None else numbers(sample_weight, "sample_weight").astype(np.float64)
        if weights.shape != (n,) or not (weights >= 0.0).all() or not weights[known].sum() > 0.0:
            raise ValueError(f"sample_weight must hold {n} numbers of at least 0, some of labelled rows above it.")
        right = chances.argmax(axis=1) + 1 == classes.codes
        return float(np.average(right[known], weights=weights[known]))


class Classified(KnowsClasses):
    """What estimators that were fitted with labels know of the classes of clusters."""

    model_: Model
    summary_: Any

    @property
    def label_error_(self) -> float:
        """The error rate of labels, given or learnt."""
        return self._labelled.error

    @property
    def class_counts_(self) -> Array:
        """Labels of each class among the rows of each cluster, (K, C)."""
        return self._labelled.label_counts(self.summary_.S)

    @property
    def cluster_classes_(self) -> Array:
        """The probability of each class in each cluster, (K, C): see `cluster_classes`."""
        self._require_classes()
        return cluster_classes(self.model_, self.summary_)

    @property
    def _labelled(self) -> Labelled:
        """The likelihood of a fit with labels."""
        check_is_fitted(self, "model_")
        likelihood = self.model_.likelihood
        if not isinstance(likelihood, Labelled):
            raise NotFittedError("this model was fitted without labels: use fit(X, y).")
        return likelihood

    def _require_classes(self) -> None:
        """Refuse a model that was fitted without labels."""
        _ = self._labelled

    def _refuse_first_labels(self, y: Any, n: int) -> None:
        """Refuse labels of n more rows where those before had none, so that clusters have no classes."""
        if not hasattr(self, "classes_") and classes_of(y, n) is not None:
            raise ValueError(
                "y has labels, but the rows that this model was fitted to had none, so its clusters have no classes: leave y "
                "out, or fit again with labels."
            )

    def _require_labels(self, y: Any) -> None:
        """Refuse to fit a model with labels to rows without, as its clusters would lose their classes."""
        if y is None and isinstance(self.model_.likelihood, Labelled):
            raise ValueError("this model was fitted with labels, and is to be fitted again: pass y=, too.")

    def _class_chances(self, R: Array) -> Array:
        """The probability of each class (n, C), given that of each cluster (n, K)."""
        return np.asarray(R @ self.cluster_classes_.astype(R.dtype))


def is_unknown(value: Any, row: int, name: str = "y") -> bool:
    """Whether a label is not known; a label that cannot be one is refused.

    name : of the argument that holds it
    """
    if is_missing(value):
        return True
    if is_date(value) or not isinstance(value, Hashable):
        raise TypeError(f"{name} must hold labels that can be hashed, and no dates; row {row} has {shown(value)}.")
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == -1


def _refuse_measurements(values: list[Any], rows: NDArray[np.integer], cure: str) -> None:
    """Refuse numbers that are not all whole where labels are expected; beside text a fraction is a label like any other."""
    if not all(isinstance(values[row], Real) for row in rows):
        return
    for row in rows:
        if not isinstance(values[row], Integral) and not float(values[row]).is_integer():
            raise ValueError(
                f"y must hold labels of classes, but row {row} has {values[row]}; for targets that are measured use {cure}."
            )


def _sorted(names: Any) -> list[Any]:
    """Classes in order, or in order of appearance where they are of mixed types."""
    with suppress(TypeError):
        return sorted(names)
    return list(names)


def as_names(names: list[Any]) -> NDArray[Any]:
    """Classes (C,) as an array: of numbers or text, or of objects where types are mixed."""
    if len({type(name) for name in names}) == 1 and isinstance(names[0], (bool, int, float, str)):
        return np.array(names)
    found = np.empty(len(names), dtype=object)
    found[:] = names
    return found
