"""The hyperparameters that an estimator learns, by name, and those that it takes over from the model it starts from."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..allocations import GammaConcentration
from ..data import ArraySource
from ..inference import Options
from ..likelihoods import Likelihood
from ..model.learning import OF_LIKELIHOOD
from ._choices import mixture_prior
from ._likelihoods import as_wide


def learnt(estimator: Any, likelihood: Likelihood, concentrations: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The hyperparameters that ``learn`` of an estimator names, as `stickbreak.model.learning.tuned` names them.

    likelihood : as it was given, before `Likelihood.resolve`
    concentrations : of the allocation, that ``learn`` may name, too; None: those of a mixture
    """
    concentrations = mixture_prior(estimator).learnable if concentrations is None else concentrations
    if isinstance(estimator.learn, (bool, np.bool_)):
        return tuple(OF_LIKELIHOOD + name for name in likelihood.not_given()) if estimator.learn else ()
    own = [OF_LIKELIHOOD + name for name in likelihood.tunables()]
    found = []
    for wanted in estimator.learn:
        named = [wanted] if wanted in concentrations else [n for n in own if f".{n}".endswith(f".{wanted}")]
        if not named:
            raise ValueError(
                f"learn names {wanted!r:.80}, but what can be learnt is {', '.join([*concentrations, *own])}."
            )
        found += named
    return tuple(dict.fromkeys(found))


def learnt_again(estimator: Any, concentrations: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """The same of a fitted model, whose likelihood no longer says what was given: of one that was named, nothing."""
    fitted = estimator.model_.likelihood
    if not isinstance(estimator.likelihood, str):
        return learnt(estimator, estimator.likelihood, concentrations)
    if isinstance(estimator.learn, (bool, np.bool_)):
        return tuple(OF_LIKELIHOOD + name for name in fitted.tunables()) if estimator.learn else ()
    return learnt(estimator, fitted, concentrations)


def without_priors(estimator: Any, concentrations: tuple[str, ...]) -> tuple[str, ...]:
    """The concentrations of an estimator that can be learnt: one with a prior has a posterior instead."""
    allocation = estimator if isinstance(estimator.allocation, str) else estimator.allocation
    return tuple(c for c in concentrations if not isinstance(getattr(allocation, c, None), GammaConcentration))


def with_concentrations(estimator: Any, named: tuple[str, ...], concentrations: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the concentrations that are "learn" or ``named``, and what else is named."""
    wanted = tuple(name for name in concentrations if isinstance(getattr(estimator, name), str) or name in named)
    return wanted + tuple(name for name in named if name not in concentrations)


def learning(options: Options, names: tuple[str, ...]) -> Options:
    """Options that learn hyperparameters: those of the allocation from the start, those of the likelihood late.

    A likelihood that is learnt from one topic or state would bar every split.
    """
    own = tuple(name for name in names if name.startswith(OF_LIKELIHOOD))
    return replace(options, learn=tuple(name for name in names if name not in own), learn_late=own)


def continued(estimator: Any, likelihood: Likelihood, source: ArraySource, learn: tuple[str, ...]) -> Likelihood:
    """A likelihood with the hyperparameters to learn as the model that a mixture starts from has learnt them, if it does."""
    first: Any = getattr(estimator.init, "model_", None)
    if first is None or not as_wide(estimator.init, source):
        return likelihood
    return taken_over(likelihood, first.likelihood.plain, learn)


def taken_over(likelihood: Likelihood, other: Likelihood, learn: tuple[str, ...]) -> Likelihood:
    """A likelihood with those of its hyperparameters to learn that another of its family has."""
    own = [name.removeprefix(OF_LIKELIHOOD) for name in learn if name.startswith(OF_LIKELIHOOD)]
    return likelihood.continued(own, other)
