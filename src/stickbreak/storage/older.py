"""Records of model files that earlier versions wrote, as this version has them."""

from dataclasses import replace
from typing import Any

import numpy as np

from ..likelihoods import DiagonalGaussian, Product, SphericalGaussian
from ..likelihoods._wishart_prior import WishartPrior, prior_scale


def with_learn(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator: before format 3, ``learn`` was a flag by another name."""
    known = dict(parameters)
    if "empirical_bayes" in known:
        known["learn"] = known.pop("empirical_bayes")
    return known


def as_known(likelihood: Any) -> Any:
    """A likelihood: before format 3, values were taken as they are, and so they stay; scale matrices were whole."""
    if isinstance(likelihood, Product):
        parts = {name: (as_known(part), columns) for name, (part, columns) in likelihood.parts.items()}
        return replace(likelihood, parts=parts)
    known: Any = likelihood
    if isinstance(known, WishartPrior) and known.pattern is None and np.ndim(known.scale) == 2:
        variances = np.diagonal(known.scale)
        known = replace(known, **prior_scale(known.scale, None, variances, known.scale, 1.0)._asdict())
    exact = isinstance(known, WishartPrior | DiagonalGaussian | SphericalGaussian) and known.rounding is None
    if exact:
        spread = known.scale if isinstance(known, WishartPrior) else known.rate
        known = replace(known, rounding=np.zeros(np.shape(spread)[:1])[()])
    return known
