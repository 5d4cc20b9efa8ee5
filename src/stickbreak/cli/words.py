"""The words of the commands: what a model is and what came of a fit, and warnings in one line each."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from .. import HMM, Mixture, TopicModel
from ..report.family import family, lead
from ..storage import file_version

THINGS: dict[type, str] = {Mixture: "cluster", TopicModel: "topic", HMM: "state"}


def description(model: Any, path: Path) -> list[tuple[str, str]]:
    """What is in a model file, line by line: a name, empty where a line goes on with the one before, and a text."""
    summary: Any = model.summary_
    rows = summary.N.sum()
    end = "converged" if model.converged_ else "not converged"
    return [
        ("file", f"{path}, written by stickbreak {file_version(path)}"),
        ("data", f"{_units(model)}{rows:,.0f} rows, {model.n_features_in_} columns, {model.dtype_}"),
        ("prior", _hyperparameters(model.model_.allocation)),
        ("", _hyperparameters(model.model_.likelihood)),
        ("fit", f"{count(model.n_laps_, 'lap')}, {end}, {model.history_[-1].seconds:.1f} s"),
        *_choice(model),
        ("ELBO", f"{model.lower_bound_:,.2f}, {model.lower_bound_ / rows:.4f} per row"),
    ]


def outcome(model: Any) -> str:
    """What came of a fit, in one line."""
    found = count(model.summary_.K, THINGS[type(model)])
    laps = count(model.n_laps_, "lap")
    return f"{found}, ELBO {model.lower_bound_:,.2f} after {laps} in {model.history_[-1].seconds:.1f} s"


def count(n: int, thing: str) -> str:
    """So many of a thing, such as ``1 lap`` or ``1,200 laps``."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def listed(names: list[str] | None, most: int = 8) -> str:
    """``: a, b, c``, shortened, or nothing."""
    if names is None:
        return ""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ": " + ", ".join(names[:most]) + rest


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print the warnings of a block on stderr, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)  # a model is kept even where warnings are errors
        try:
            yield
        finally:
            for warning in caught:
                for line in str(warning.message).splitlines():
                    print(f"warning: {line}", file=sys.stderr)


def _choice(model: Any) -> list[tuple[str, str]]:
    """The family that was chosen, and how far it is from the best of the others."""
    distance = lead(model)
    return [("family", f"{family(model)}, {distance}")] if distance else []


def _units(model: Any) -> str:
    """How many documents or sequences a model has seen, where rows form such."""
    seen: Any = model.summary_
    if isinstance(model, TopicModel):
        return f"{count(round(float(seen.D)), 'document')}, "
    return f"{count(round(float(seen.begins.sum())), 'sequence')}, " if isinstance(model, HMM) else ""


def _hyperparameters(prior: Any) -> str:
    """A likelihood or allocation with its hyperparameters, arrays by their shape."""
    values = ((f.name, getattr(prior, f.name)) for f in fields(prior) if f.repr)
    shown = (f"{name}={f'array {value.shape}' if isinstance(value, np.ndarray) else value}" for name, value in values)
    return f"{type(prior).__name__}({', '.join(shown)})"
