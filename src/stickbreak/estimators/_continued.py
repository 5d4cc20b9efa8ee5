"""Fits of topics and states that begin with a fitted model: with what this has learnt, and topics no lower on its documents."""

from dataclasses import replace
from typing import Any

from ..data import BagSource, GroupSource
from ..model import Model, Posterior, Summary
from ..model.documents import DocumentKind
from . import _chains as chains
from . import _hyperparameters as hyperparameters
from ._setup import Outcome


def continued(estimator: Any, model: Model, source: BagSource | GroupSource, learn: tuple[str, ...]) -> Model:
    """The model with the hyperparameters to learn as the topic model that a fit begins with has learnt them, if it does."""
    if not isinstance(estimator.init, type(estimator)):
        return model
    first: Any = getattr(estimator.init, "model_", None)
    if first is None or type(first.allocation) is not type(model.allocation):
        return model
    likelihood = hyperparameters.continued(estimator, model.likelihood, source.flat, learn)
    return replace(
        model, likelihood=likelihood, allocation=_with_concentrations(model.allocation, first.allocation, learn)
    )


def learnt_along(estimator: Any, model: Model, learn: tuple[str, ...]) -> Model | None:
    """The model with the hyperparameters to learn as the HMM that a fit begins with has learnt them; None if it does not."""
    first: Any = getattr(estimator.init, "model_", None)
    if first is None or not first.kind.has_order:
        return None
    likelihood = hyperparameters.taken_over(model.likelihood, chains.family(first.likelihood), learn)
    return replace(
        model, likelihood=likelihood, allocation=_with_concentrations(model.allocation, first.allocation, learn)
    )


def _with_concentrations(allocation: Any, other: Any, learn: tuple[str, ...]) -> Any:
    """An allocation with those of its concentrations to learn that another of its kind has as numbers."""
    if type(other) is not type(allocation):
        return allocation
    known = {name: getattr(other, name) for name in learn if hasattr(allocation, name)}
    return replace(allocation, **{name: value for name, value in known.items() if isinstance(value, float)})


def known(estimator: Any, model: Model, fingerprint: str | None) -> Posterior | None:
    """What the topic model that a fit begins with knows of the same documents, for a model; None where it is of others.

    Its summary is of all documents, so the bound is exact for any prior.

    fingerprint : of the documents (`BagSource.fingerprint`), None for rows in groups
    """
    init = estimator.init
    if not isinstance(init, type(estimator)) or fingerprint is None or init._fingerprint != fingerprint:
        return None
    summary: Summary = init.summary_
    if summary.S.shape[1] != model.likelihood.n_statistics or model.named(summary).any():
        return None  # their priors differ
    if model.max_clusters < summary.K or not _allows(model.kind, init.model_.kind):
        return None
    if init.model_.response.question != model.response.question:
        return None
    return model.posterior(summary)


def no_lower(before: Posterior | None, outcome: Outcome) -> Outcome:
    """The outcome of a fit, or what it began with where that has the higher bound; the last lap then says so."""
    if before is None or not before.bound > outcome.model.bound(outcome.total):
        return outcome
    history = outcome.history
    last = replace(history[-1], lower_bound=before.bound, n_clusters=before.summary.K)
    return outcome._replace(total=before.summary, model=before.model, history=[*history[:-1], last])


def _allows(kind: Any, other: Any) -> bool:
    """Whether documents of the one kind may have as many topics as those of the other have."""
    assert isinstance(kind, DocumentKind)
    assert isinstance(other, DocumentKind)
    return kind.most_kept is None or (other.most_kept is not None and other.most_kept <= kind.most_kept)
