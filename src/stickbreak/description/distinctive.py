"""What sets the clusters of a model apart: the values that describe a row, against the whole model."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..likelihoods import Profile

Array = NDArray[np.floating]


class Distinctive(NamedTuple):
    """The profile of K clusters in J values, and how far each is from the whole model.

        z_kj = (mean_kj - center_j) / spread_j

    profile : means and variances (K, J) of each cluster
    names : of the J values, a column or a level of one
    center : (J,) the means of the whole model
    z : (K, J) differences from these, in standard deviations of the whole model
    """

    profile: Profile
    names: list[str]
    center: Array
    z: Array

    @classmethod
    def of(cls, model: Any, names: Sequence[Any] | None = None) -> Self:
        """What sets the clusters, states or topics of a fitted model apart.

        names : of the columns, by default those at the fit; x0, x1, ... beyond them
        """
        names = getattr(model, "feature_names_in_", ()) if names is None else names
        N = model.summary_.N
        profile = model.model_.likelihood.profile(N, model.summary_.S)
        weights = shares(model)
        center = weights @ profile.means
        spread = np.sqrt(weights @ ((profile.means - center) ** 2 + profile.variances))
        z = (profile.means - center) / np.where(spread > 0.0, spread, 1.0)
        return cls(profile, _value_names(profile, names, model.levels_), center, z)


def shares(model: Any) -> Array:
    """The shares (K,) of the clusters: their weights, those of topics, or for states the share of all rows."""
    for name in ("weights_", "topic_shares_"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name))
    return np.asarray(model.summary_.N / model.summary_.N.sum())


def _value_names(profile: Profile, names: Sequence[Any], levels: Mapping[int, Sequence[Any]]) -> list[str]:
    return [_value_name(int(d), int(level), names, levels) for d, level in zip(profile.columns, profile.levels)]


def _value_name(column: int, level: int, names: Sequence[Any], levels: Mapping[int, Sequence[Any]]) -> str:
    """The column that a value describes, with the level whose chance it is."""
    name = str(names[column]) if column < len(names) else f"x{column}"
    if level < 0:
        return name
    known = levels.get(column, ())
    return f"{name}={known[level] if level < len(known) else level}"
