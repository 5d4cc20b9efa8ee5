"""What a journal says of an ascent, checked against the problem: it may come from a file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..model import AnsweredSummary, Drawn, Memo, Model, Posterior, Summary
from .state import Problem, State


@contextmanager
def damages() -> Iterator[None]:
    """Whatever fails in the block is the fault of the journal."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"the journal is damaged: {error}  Begin the fit anew: without it, or with its file removed."
        ) from error


@damages()
def check_state(state: Any, problem: Problem, model: Model) -> None:
    """Refuse a state whose arrays do not fit each other, the data, or such a model.

    Raises
    ------
    ValueError : it is not one of the problem.
    """
    _expect(isinstance(state, State), "a posterior and a memo")
    posterior = state.posterior
    _check_posterior(posterior, model, problem.source.n_columns)
    total = posterior.summary
    K = total.K
    _expect(isinstance(state.memo, Memo), "a memo")
    _expect(len(state.memo.batches) == len(problem.batches), f"{len(problem.batches)} batches")
    for summary in state.memo.batches:
        if summary is not None:
            _check_summary(summary, model, K, whole=np.size(summary.N) > 0)
    if state.before is not None:
        _check_posterior(state.before, model, problem.source.n_columns)
        _expect(state.before.summary.K == K, f"{K} clusters a lap before")
    _expect(len(state.schedule.ids) == K, f"{K} identities")
    _expect(state.schedule.recipe == model.kind.recipe, "the recipe of its kind of data")
    if state.owners:
        sizes = [sum(chunk.stop - chunk.start for chunk in batch) for batch in problem.batches]
        _check_owners(state.owners, sizes)
    for outside in state.outside:
        _expect(isinstance(outside, float) and outside >= 0.0, "a mass of rows in far clusters")
    most_rows = max(problem.source.n_rows, problem.source.flat.n_rows)  # of documents, or of their rows
    for drawn in state.drawn:
        _check_drawn(drawn, most_rows)
    for proposal in state.proposals:
        _expect(all(0 <= k < K for k in proposal.removed), f"proposals for {K} clusters")
        if proposal.parameters is not None:
            J, F = np.shape(proposal.parameters.W)
            _expect(total.S.shape[1] == F and np.shape(proposal.parameters.bias) == (J,), "parameters of proposals")


@damages()
def check_posterior(posterior: Any, model: Model, D: int) -> None:
    """Refuse a posterior that is not one of such a model of data of D columns."""
    _check_posterior(posterior, model, D)


def _check_posterior(posterior: Any, model: Model, D: int) -> None:
    _expect(isinstance(posterior, Posterior), "a posterior")
    own = posterior.model
    same = type(own.likelihood) is type(model.likelihood) and type(own.allocation) is type(model.allocation)
    _expect(same and type(own.kind) is type(model.kind), f"a model with a {type(model.likelihood).__name__}")
    asked = type(own.response) is type(model.response) and own.response.n_outputs == model.response.n_outputs
    _expect(asked, f"a {type(model.response).__name__}")
    _expect(own.likelihood.n_statistics == model.likelihood.n_statistics, "as many statistics")
    summary = posterior.summary
    _check_summary(summary, model, len(summary.N))
    own.likelihood.check(D, summary.N, summary.S)


def _check_summary(summary: Any, model: Model, K: int, whole: bool = True) -> None:
    """Refuse a summary of other arrays; one that is not ``whole`` has only what is known of single documents."""
    F = model.likelihood.n_statistics
    _expect(type(summary) is model.kind.summary, f"a {model.kind.summary.__name__}")
    assert isinstance(summary, Summary)
    if isinstance(summary, AnsweredSummary) and whole:
        _expect(np.shape(summary.B)[1:] == (model.response.n_outputs,), f"{model.response.n_outputs} outputs")
    for name, values in vars(summary).items():
        field = type(summary).__dataclass_fields__[name].metadata
        if not whole and not field["local"]:
            continue
        shape = (K,) * field["cluster_axes"]
        ends = np.shape(values)[1:] if field["local"] else summary.trailing_axes(name, F)
        fits = isinstance(values, np.ndarray) and values.shape == shape + ends and values.dtype.kind == "f"
        _expect(fits and bool(np.isfinite(values).all()), f"finite {name} of {K} clusters")


def _check_owners(owners: Any, sizes: Sequence[int]) -> None:
    """Refuse identities of the clusters of rows that are not those of batches of so many rows."""
    arrays = isinstance(owners, tuple) and all(isinstance(own, np.ndarray) and own.dtype.kind == "i" for own in owners)
    _expect(arrays and [own.shape for own in owners] == [(n,) for n in sizes], "a cluster of each row")
    _expect(all(own.min(initial=0) >= 0 for own in owners), "identities of the clusters of rows")


def _check_drawn(drawn: Any, n_rows: int) -> None:
    _expect(isinstance(drawn, Drawn), "rows drawn")
    whole = all(isinstance(values, np.ndarray) and values.dtype.kind in "iu" for values in (drawn.owners, drawn.rows))
    _expect(whole and len(drawn.owners) == len(drawn.rows) == len(drawn.chosen), "rows drawn for clusters")
    inside = drawn.rows.size == 0 or (drawn.rows.min() >= 0 and drawn.rows.max() < n_rows)
    _expect(bool(inside), f"rows drawn of {n_rows}")


def _expect(fits: bool, what: str) -> None:
    if not fits:
        raise ValueError(f"a state must have {what}.")
