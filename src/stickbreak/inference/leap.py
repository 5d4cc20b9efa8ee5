"""Extrapolation between laps: parameters beyond those of the total by a multiple of its last change."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..model import Parameters, Posterior

SHORTEST = 0.01  # a step that is shorter is none
TINY = 1e-300
FAR = 1.0  # log of the largest factor by which the prior of a topic is extrapolated


class Leap(NamedTuple):
    """The parameters for a lap, whether they are extrapolated, and how far."""

    parameters: Parameters
    taken: bool
    step: float


def leap_from(posterior: Posterior, before: Posterior | None, step: float, dtype: np.dtype[np.floating]) -> Leap:
    """Parameters beyond those of the total by a multiple of its change since one lap ago, where that is possible."""
    total = posterior.summary
    while before is not None and step > SHORTEST:
        change = total.N - before.summary.N
        largest = 0.5 * total.N / np.maximum(np.abs(change), 1e-9 * total.N + TINY)  # counts stay positive
        steps = np.minimum(step, largest)
        S = total.S - before.summary.S
        S *= steps[:, None]
        S += total.S
        posterior.model.likelihood.carry(total.S, S)
        try:
            further = replace(total, N=total.N + steps * change, S=S)
            parameters = Posterior.known(posterior.model, further, None, posterior.solution).parameters(dtype)
            parameters = _with_response_ahead(_with_prior_ahead(parameters, before, step), before, step)
            return Leap(parameters, True, step)
        except FloatingPointError:
            step *= 0.5
    return Leap(posterior.parameters(dtype), False, step)


def _with_prior_ahead(parameters: Parameters, before: Posterior, step: float) -> Parameters:
    """Of documents also the prior, in which coordinate ascent is slow where topics are in few documents."""
    if parameters.prior is None or before.step.prior is None:
        return parameters
    change = np.log(np.maximum(parameters.prior, TINY) / np.maximum(before.step.prior, TINY))
    return parameters._replace(prior=parameters.prior * np.exp(np.clip(step * change, -FAR, FAR)))


def _with_response_ahead(parameters: Parameters, before: Posterior, step: float) -> Parameters:
    """Of documents with answers also what is known of the answers."""
    if parameters.response is None or before.reading is None:
        return parameters
    return parameters._replace(response=parameters.response.ahead(before.reading, step))
