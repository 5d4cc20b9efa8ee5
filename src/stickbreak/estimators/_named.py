"""Names and weights of clusters that users name in advance: what can be checked before X is seen."""

from collections.abc import Mapping
from typing import Any

from .._arguments import real, shown
from ..inference import Algorithm, Memoized, Stochastic
from ._births import published_birth

MOST_COUNT = 1e9  # pseudo-counts of a word, or rows that a prototype counts as


def check_seeds(estimator: Any, algorithm: Algorithm) -> None:
    """Refuse seeds that are no mapping from names, or an algorithm that cannot keep to them."""
    weight = real(estimator.seed_weight)
    if not 0.0 < weight <= MOST_COUNT:
        raise ValueError(
            f"seed_weight must be a number above 0, at most {MOST_COUNT:g}; got {shown(estimator.seed_weight)}."
        )
    seeds = estimator.seeds
    if seeds is None:
        return
    if not isinstance(seeds, Mapping) or not seeds:
        raise ValueError(f'seeds must map names to words or rows, as {{"sport": [...], ...}}; got {shown(seeds)}.')
    for name in seeds:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"names of seeds must be texts that are not empty; got {shown(name)}.")
    if not isinstance(algorithm, (Memoized, Stochastic)) or published_birth(estimator) is not None:
        raise ValueError(
            f"seeds need the usual moves and algorithm='memoized', 'full' or 'stochastic'; got {algorithm!r:.80} and "
            f"moves={estimator.moves!r:.80}."
        )
