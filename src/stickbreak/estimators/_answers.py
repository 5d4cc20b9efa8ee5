"""What documents answer beside their words: what users pass as y, and what a fitted model says of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._arguments import shown
from ..cluster.sources import is_spread
from ..data import AnsweredBags, BagSource, GroupSource
from ..data.arrays import as_array, numbers
from ..inference import Streaming
from ..model import AnsweredBagKind, Model
from ..model.answered import FEWEST
from ..model.learning import OF_RESPONSE
from ..responses import CategoricalResponse, ClassResponse, GaussianResponse, NoResponse, NumericResponse, RidgeResponse
from ._classes import KnowsClasses, classes_of
from ._document_reader import DocumentReader

Array = NDArray[np.floating]

NAMED: dict[str, type[GaussianResponse] | type[CategoricalResponse]] = {
    "gaussian": GaussianResponse,
    "categorical": CategoricalResponse,
}
MEASURED = 'response="gaussian"'  # for numbers that are no classes
LARGEST = 1e100  # the square of a larger number may overflow in a sum


class Asked(NamedTuple):
    """What documents are asked.

    response : with all hyperparameters known;  learn : names of those that are learnt
    y : (N,) the answers as local steps read them, NaN where unknown
    names : the classes, or None where answers are numbers
    """

    response: NumericResponse | ClassResponse
    learn: tuple[str, ...]
    y: Array
    names: NDArray[Any] | None

    def of(self, source: BagSource | GroupSource) -> AnsweredBags:
        """Documents with their answers, once they are known to be counts of words."""
        assert isinstance(source, BagSource)
        return AnsweredBags(source, self.y)

    def model(self, model: Model) -> Model:
        """A model of documents with answers, from that without."""
        kind = AnsweredBagKind(n_outputs=self.response.n_outputs)
        return replace(model, kind=kind, response=self.response)


def asked(estimator: Any, y: Any, source: BagSource | GroupSource) -> Asked | None:
    """What ``y`` of `fit` asks of documents; None where nothing is known of any, or ``response`` is None.

    Raises
    ------
    ValueError, TypeError : y does not hold one answer for each document, or answers of one value; or the documents, or the
        settings of the estimator, do not go with answers.
    """
    if y is None or estimator.response is None:
        return None
    found = _read(estimator, y, source.n_rows)
    if found is None:
        return None
    if isinstance(estimator.algorithm, Streaming):
        raise ValueError("a stream learns from no answers; leave out y, or algorithm=Streaming(...).")
    if not isinstance(source, BagSource):
        raise TypeError("rows in groups take no y; leave it out, or pass counts of words.")
    if is_spread(source):
        raise TypeError("documents on a cluster take no y; leave it out, or pass X.compute() and executor=None.")
    for name, none in (("most_kept", None), ("restarts", 0)):
        if getattr(estimator, name) != none:
            raise ValueError(f"y goes with {name}={none} alone; got {shown(getattr(estimator, name))}.")
    if not (~np.isnan(found.y) & (source.sizes >= FEWEST)).any():
        raise ValueError("y has answers of empty documents alone, which say nothing of topics.")
    return found


def require_answers(estimator: Any, y: Any) -> None:
    """Refuse to fit a model with a response to documents without answers, as the response would be lost."""
    if y is None and not isinstance(estimator.model_.response, NoResponse):
        raise ValueError("this model was fitted with y, and is to be fitted again: pass y=, too.")


def answers_to(estimator: Any, y: Any, source: Any) -> Any:
    """The documents of a source with answers y to the response of a fitted model, if any are given."""
    response = estimator.model_.response
    if y is None or not isinstance(response, (NumericResponse, ClassResponse)):
        return source
    if isinstance(response, NumericResponse):
        return AnsweredBags(source, response.standardised(_numbers(y, source.n_rows)))
    classes = classes_of(y, source.n_rows, estimator.classes_.tolist(), cure=MEASURED)
    return source if classes is None else AnsweredBags(source, _coded(classes.codes))


def _read(estimator: Any, y: Any, n: int) -> Asked | None:
    given = estimator.response
    if given == "auto":
        given = "gaussian" if _are_measured(y) else "categorical"
    response = NAMED[given]() if isinstance(given, str) else given
    learn = estimator.learn if isinstance(estimator.learn, (bool, np.bool_)) else False
    names = tuple(OF_RESPONSE + name for name in response.learnable()) if learn else ()
    if isinstance(response, NumericResponse):
        return _measured(response, names, _numbers(y, n))
    classes = classes_of(y, n, cure=MEASURED)
    if classes is None:
        return None
    C = len(classes.names)
    if C < 2:
        raise ValueError(
            f"y has one class, {shown(classes.names.tolist()[0])}; a response needs two or more. Leave out y, or set "
            "response=None."
        )
    if response.n_classes not in (None, C):
        raise ValueError(f"the response has n_classes={response.n_classes}, but y has {C} classes.")
    return Asked(response.resolved(C), names, _coded(classes.codes), classes.names)


def _measured(response: NumericResponse, learn: tuple[str, ...], y: Array) -> Asked | None:
    known = y[~np.isnan(y)]
    if not len(known):
        return None
    if not known.std() > 1e-12 * np.abs(known).max() and response.scale is None:
        raise ValueError(
            f"all answers in y are {known[0]:g}; a response needs two or more values. Leave out y, or give the response a "
            "scale."
        )
    resolved = response.resolved(known)
    return Asked(resolved, learn, resolved.standardised(y), None)


def _are_measured(y: Any) -> bool:
    """Whether y holds numbers that are not all whole."""
    labels = as_array(y, "y")
    if labels.dtype.kind == "O":
        values = [value for value in labels.ravel().tolist() if isinstance(value, (float, np.floating))]
        labels = np.array([value for value in values if np.isfinite(value)])
    if labels.dtype.kind != "f":
        return False
    finite = labels[np.isfinite(labels)]
    return bool((finite != np.floor(finite)).any())


def _numbers(y: Any, n: int) -> Array:
    """Numbers y (n,), NaN where unknown."""
    values = numbers(y, "y").astype(np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n,):
        raise ValueError(f"y must hold one number for each of {n} documents; got shape {values.shape}.")
    wrong = ~np.isnan(values) & ~(np.abs(values) <= LARGEST)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"y must hold numbers up to {LARGEST:g}, or NaN; row {row} has {values[row]}.")
    return np.asarray(values)


def _coded(codes: NDArray[np.integer]) -> Array:
    """Codes 0, ..., C - 1 of classes, NaN where unknown, of those that begin with 1."""
    return np.where(codes > 0, codes - 1.0, np.nan)


class Reads(Protocol):
    """Results of a task on every chunk of documents, in order (`TopicModel._read`)."""

    def __call__(
        self, X: Any, lengths: Any, task: Callable[[DocumentReader], Callable[[Any], Any]]
    ) -> tuple[float, list[Any]]:
        """The number of tokens, and the results."""
        ...


class Answering(KnowsClasses):
    """What topic models that were fitted with y know of answers."""

    model_: Model
    summary_: Any
    _read: Reads

    @property
    def response_(self) -> RidgeResponse:
        """The response, with the hyperparameters that were learnt."""
        response: RidgeResponse = self._responding(RidgeResponse, "y: use fit(X, y)")
        return response

    @property
    def response_weights_(self) -> Array:
        """What a document of one topic answers, for each topic.

        Numbers: the mean answer, in their units, (K, 1).  Classes: the scores of ``classes_``, (K, C), of which the softmax are
        their probabilities, if the response is a `CategoricalResponse`.
        """
        return self.response_.means(self.summary_)

    def predict_targets(self, X: Any) -> Array:
        """The mean answer of documents, by their words alone, (N,); of a model that was fitted with numbers y.

        Examples
        --------
        >>> import numpy as np
        >>> from stickbreak import TopicModel
        >>> rng = np.random.default_rng(0)
        >>> topics = np.repeat(np.eye(3), 5, axis=1) / 5
        >>> shares = rng.dirichlet([0.3] * 3, 200)
        >>> counts = rng.multinomial(50, shares @ topics)
        >>> y = shares @ [1.0, 2.0, 5.0] + rng.normal(0.0, 0.1, 200)
        >>> model = TopicModel(random_state=0).fit(counts[:150], y[:150])
        >>> error = model.predict_targets(counts[150:]) - y[150:]
        >>> bool(error.var() < 0.1 * y.var())
        True
        """
        response = self._responding(NumericResponse, "numbers: use fit(X, y) with numbers")
        return np.asarray(response.predicted(self.summary_, self._shares(X)))

    def predict_class(self, X: Any) -> NDArray[Any]:
        """The most probable class of documents, by their words alone, (N,), one of ``classes_``; of a fit with classes y."""
        return self._most_probable(self.predict_class_proba(X))

    def predict_class_proba(self, X: Any) -> Array:
        """The probability of each of ``classes_`` for each document, by its words alone, at the mean weights, (N, C).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the model was fitted without classes: use ``fit(X, y)``.
        """
        response = self._responding(ClassResponse, "classes: use fit(X, y) with classes")
        return np.asarray(response.chances(self.summary_, self._shares(X)))

    def class_accuracy(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the labels y (N,) whose class `predict_class` finds; unknown labels do not count."""
        return self._accuracy(self.predict_class_proba(X), y, sample_weight)

    def _shares(self, X: Any) -> Array:
        """The shares of topics among the tokens of documents (N, K); those that are expected, where there are no tokens."""
        return np.concatenate(self._read(X, None, lambda reader: reader.shares)[1])

    def _responding(self, kind: Any, wanted: str) -> Any:
        """The response, of a kind."""
        check_is_fitted(self, "model_")
        response = self.model_.response
        if not isinstance(response, kind):
            raise NotFittedError(f"this model was fitted without {wanted}.")
        return response
