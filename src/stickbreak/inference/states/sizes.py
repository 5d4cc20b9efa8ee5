"""Where searches for states differ by size: rows so many that a sample comes first, and laps that take long."""

from dataclasses import dataclass

from ...data import SequenceSource


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_states.py and benchmarks/hmm_chromatin.py.

    Attributes
    ----------
    many_rows : a search of more begins on a sample
    long_lap : rows times pairs of states, beyond which a lap takes so long that there are few excursions
    longest_lap : the same of an excursion with phrases in place of rows, beyond which there are none
    path_rows : of more rows no path is looked at, and there are no excursions
    """

    many_rows: int = 120_000
    long_lap: int = 1 << 28
    longest_lap: int = 1 << 31
    path_rows: int = 1 << 23


TUNING = Tuning()


def has_many_rows(source: SequenceSource) -> bool:
    """Whether a search begins on a sample."""
    return source.n_rows > TUNING.many_rows


def has_long_laps(source: SequenceSource, K: int) -> bool:
    """Whether laps with so many states take so long that there are few excursions."""
    return has_many_rows(source) and source.n_rows * K**2 > TUNING.long_lap


def may_lap(source: SequenceSource, K: float) -> bool:
    """Whether laps with so many states are not too long for an excursion."""
    return source.n_steps * K**2 <= TUNING.longest_lap


def most_states(source: SequenceSource) -> int:
    """The most states with which they are not."""
    return int((TUNING.longest_lap / source.n_steps) ** 0.5)


def has_paths(source: SequenceSource) -> bool:
    """Whether the best path of all rows may be looked at."""
    return source.n_rows <= TUNING.path_rows
