"""The ELBO never decreases: what is refused, and what is a defect."""

import numpy as np

from .state import Problem


class BoundDecreased(AssertionError):
    """The ELBO went down where it cannot: a defect of a likelihood, an allocation or a move."""


def check_bound(problem: Problem, after: float, before: float, step: str) -> float:
    """The bound after a step, if it is finite and, where that is checked, no lower than before it."""
    if not np.isfinite(after):
        raise FloatingPointError(
            f"the bound is {after} after {step}: numbers in the data or in sample_weight are too large or too small "
            "together. Multiply the columns, or the weights, by constants that bring them nearer to one."
        )
    slack = 1e-6 if problem.source.dtype == np.float32 else 1e-9
    if problem.options.check and not after >= before - slack * max(1.0, abs(before)):
        raise BoundDecreased(f"the bound fell from {before!r} to {after!r} after {step}")
    return after
