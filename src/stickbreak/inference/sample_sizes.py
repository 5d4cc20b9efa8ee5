"""How many rows the samples of a search of clusters have."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Chosen by benchmarks/right_number.py (what is found) and benchmarks/many_rows.py (how soon).

    Attributes
    ----------
    fewest_rows, rows_per_statistic : rows of a sample, at least: so many, and so many for each statistic
    smaller : a search of many rows begins on one in so many
    worth_a_sample : times the fewest rows of a sample: more begin on one
    most_numbers : in a sample: 512 MiB
    """

    fewest_rows: int = 5000
    rows_per_statistic: int = 100
    smaller: int = 8
    worth_a_sample: int = 4
    most_numbers: int = 1 << 26


TUNING = Tuning()


def sample_rows(N: int, row_size: int, F: int) -> int:
    """Rows of the sample on which a search of N rows of so many numbers and F statistics begins; none where that is no help."""
    fewest = max(TUNING.fewest_rows, TUNING.rows_per_statistic * F)
    most = TUNING.most_numbers // max(row_size, 1)
    return min(max(fewest, N // TUNING.smaller), most) if fewest <= most and TUNING.worth_a_sample * fewest < N else 0


def smallest_sample(N: int, row_size: int, F: int) -> int:
    """Rows of the smallest sample of samples on which a search begins, or all."""
    while (rows := sample_rows(N, row_size, F)) > 0:
        N = rows
    return N


def most_larger(row_size: int, K: int) -> int:
    """Rows of a larger sample of one of K clusters at most, so that all have room."""
    return TUNING.most_numbers // max(row_size * K, 1)
