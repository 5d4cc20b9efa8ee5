"""Records of model files that earlier versions wrote, as this version has them."""

from dataclasses import replace
from typing import Any

import numpy as np

from .likelihoods import Likelihood, Product


def with_learn(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator: before format 3, ``learn`` was a flag by another name."""
    known = dict(parameters)
    if "empirical_bayes" in known:
        known["learn"] = known.pop("empirical_bayes")
    return known


def with_rounding(likelihood: Any) -> Any:
    """A likelihood: before format 3, values were taken as they are, and so they stay."""
    if isinstance(likelihood, Product):
        parts = {name: (with_rounding(part), columns) for name, (part, columns) in likelihood.parts.items()}
        return replace(likelihood, parts=parts)
    if not isinstance(likelihood, Likelihood) or getattr(likelihood, "rounding", 0.0) is not None:
        return likelihood
    known: Any = likelihood
    spread = known.scale if hasattr(known, "scale") else known.rate
    return replace(known, rounding=np.zeros(np.shape(spread)[:1])[()])
