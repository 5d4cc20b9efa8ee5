"""Clusters and topics that users name in advance: their words, or rows like theirs, as priors of their own."""

import warnings
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from copy import copy
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .._arguments import real, shown
from ..data import ArraySource
from ..inference import Executor
from ..likelihoods import Seeded
from ..likelihoods.features import Rows, features
from ..model import Model
from . import _likelihoods as likelihoods
from ._base import Columns, as_source, survey
from ._named import MOST_COUNT

Array = NDArray[np.floating]

FEW_ROWS = 10_000  # as which seeds may always count; beside many more, rounding would decide what single rows are worth
NEAR = 3  # words that an error names in place of one that is not known


def with_words(estimator: Any, model: Model, V: int) -> Model:
    """The model of words in which the topics that ``estimator.seeds`` names, if any, have pseudo-counts of their own.

    Raises
    ------
    ValueError, TypeError : a word is not known, or twice in a topic; a topic has no words; there are too many topics.
    """
    seeds = estimator.seeds
    if seeds is None:
        return model
    _check_room(seeds, model)
    number = _numbers(estimator, V)
    sums = np.zeros((len(seeds), V))
    for g, (name, words) in enumerate(seeds.items()):
        for word, count in _words(name, words):
            v = _column(word, name, number, V)
            if sums[g, v] > 0.0:
                raise ValueError(f"seeds[{name!r}] has the word {word!r} twice; name it once.")
            sums[g, v] = estimator.seed_weight if count is None else count
    return _seeded(model, tuple(seeds), np.zeros(len(seeds)), sums)


def with_rows(estimator: Any, model: Model, source: ArraySource, columns: Columns, executor: Executor) -> Model:
    """The model of rows in which the clusters that ``estimator.seeds`` names, if any, have a prior with rows like theirs.

    source : the rows of the fit
    columns : what they say of each column

    Raises
    ------
    ValueError, TypeError : prototypes are not rows like those of the fit; there are too many; the family takes no seeds.
    """
    seeds = estimator.seeds
    if seeds is None:
        return model
    _check_room(seeds, model)
    family = model.likelihood
    if family.cells is not None:
        raise ValueError(
            f"seeds need complete rows, or a family of independent columns such as DiagonalGaussian: to a "
            f"{type(family).__name__} missing values are latent variables of rows."
        )
    if family.latent is not None or not family.conjugate:
        raise ValueError(
            f"seeds need a conjugate family without latent variables of rows, such as Gaussian, DiagonalGaussian or a "
            f"Product; got {type(family).__name__}."
        )
    counts = np.zeros(len(seeds))
    sums = np.zeros((len(seeds), family.n_statistics))
    for g, (name, rows) in enumerate(seeds.items()):
        X = _prototypes(estimator, name, rows, family, columns, executor)
        T = features(family, X)
        counts[g] = estimator.seed_weight * X.shape[0]
        sums[g] = estimator.seed_weight * np.asarray(T.sum(axis=0)).ravel()
    most = max(FEW_ROWS, source.total_weight)
    if counts.sum() > most:
        raise ValueError(
            f"the rows of seeds count as {counts.sum():.3g} rows, and may count as no more than those of X, or {most:.3g}: "
            f"lower seed_weight={estimator.seed_weight!r}."
        )
    return _seeded(model, tuple(seeds), counts, sums)


def _seeded(model: Model, names: tuple[str, ...], counts: Array, sums: Array) -> Model:
    return replace(model, likelihood=Seeded(model.likelihood, counts, sums, names))


def _check_room(seeds: Mapping[str, Any], model: Model) -> None:
    """Refuse more seeds than there may be clusters."""
    if len(seeds) > model.max_clusters:
        raise ValueError(
            f"seeds has {len(seeds)} names, but there may be no more than {model.max_clusters} clusters or topics: name "
            "fewer, or raise n_init_topics or n_init_clusters of a finite allocation."
        )


def _numbers(estimator: Any, V: int) -> dict[str, int] | None:
    """The column of each word, or None where words have no names."""
    names = estimator._vocabulary(None)
    if names is None:
        return None
    if len(names) != V:
        raise ValueError(f"vocabulary has {len(names)} words, but X has {V} columns; pass one word for each column.")
    return {str(name): v for v, name in enumerate(names)}


def _words(name: str, words: Any) -> list[tuple[Any, float | None]]:
    """The words of a topic and their pseudo-counts, None where these are not given."""
    pairs: list[tuple[Any, float | None]]
    if isinstance(words, Mapping):
        pairs = [(word, real(count)) for word, count in words.items()]
        wrong = [(word, count) for word, count in words.items() if not 0.0 < real(count) <= MOST_COUNT]
        if wrong:
            word, count = wrong[0]
            raise ValueError(
                f"seeds[{name!r}] has the pseudo-count {shown(count)} for {shown(word)}; it must be a number above 0, at "
                f"most {MOST_COUNT:g}."
            )
    elif isinstance(words, (list, tuple, np.ndarray, AbstractSet)):
        pairs = [(word, None) for word in (sorted(words, key=str) if isinstance(words, AbstractSet) else words)]
    else:
        raise TypeError(
            f'seeds[{name!r}] must be a list of words, or a mapping from words to pseudo-counts, as ["match", "team"]; got '
            f"{shown(words)}."
        )
    if not pairs:
        raise ValueError(f"seeds[{name!r}] has no words; name some, or leave it out.")
    return pairs


def _column(word: Any, name: str, number: dict[str, int] | None, V: int) -> int:
    """The column of a word, which may be given by its name or number."""
    if isinstance(word, (int, np.integer)) and not isinstance(word, bool):
        if not 0 <= word < V:
            raise ValueError(f"seeds[{name!r}] names column {shown(int(word))}; X has the columns 0 to {V - 1}.")
        return int(word)
    if not isinstance(word, str):
        raise TypeError(f"seeds[{name!r}] must hold words or numbers of columns; got {shown(word)}.")
    if number is None:
        raise ValueError(
            f"seeds[{name!r}] names the word {word!r:.80}, but the columns of X have no names: pass vocabulary=, such as "
            "CountVectorizer's get_feature_names_out(), or numbers of columns."
        )
    if word not in number:
        _refuse_word(word, name, number)
    return number[word]


def _refuse_word(word: str, name: str, number: dict[str, int]) -> NoReturn:
    """Raise a ValueError that names the words that are most like one that is not known."""
    near = get_close_matches(word.lower(), number, NEAR)
    hint = f"; near it are {', '.join(map(repr, near))}" if near else ""
    raise ValueError(
        f"seeds[{name!r}] has the word {word!r:.80}, which is not among the {len(number)} words of X{hint}."
    )


def _prototypes(estimator: Any, name: str, rows: Any, family: Any, columns: Columns, executor: Executor) -> Rows:
    """The rows of a seed, checked like those of the fit."""
    local = copy(estimator)
    local.executor = None
    local.n_targets_ = 0
    if isinstance(rows, (list, tuple, np.ndarray)) and np.ndim(np.asarray(rows, dtype=object)) == 1:
        if len(rows) == 0:
            raise ValueError(f"seeds[{name!r}] has no rows; give some, or leave it out.")
        rows = [rows]  # one row
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            source = as_source(local, rows, reset=False)
        likelihoods.check_sparse(family, source)
        found = survey(estimator, family, source, executor)
    except (ValueError, TypeError) as error:
        raise type(error)(f"seeds[{name!r}] must hold rows like those of X: {error}") from error
    new = np.flatnonzero(found.missing & ~columns.missing)
    if len(new):
        raise ValueError(
            f"seeds[{name!r}] has missing values in column {new[0]}, where X has none; fill them in, or leave the row out."
        )
    X = source.take(np.arange(source.n_rows))[0]
    return X.astype(np.float64)
