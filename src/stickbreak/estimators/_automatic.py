"""``likelihood="auto"``: what the columns of a table hold, and the likelihoods that suit them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource, SparseSource
from ..data.check import long_tailed, sampled_rows
from ..likelihoods import (
    Bernoulli,
    Categorical,
    DiagonalGaussian,
    Gaussian,
    GaussianNetwork,
    Likelihood,
    LogScale,
    Multinomial,
    Poisson,
    Product,
    SphericalGaussian,
    StudentT,
)

Array = NDArray[np.floating]

PARTS: dict[str, type[Likelihood]] = {
    "numbers": DiagonalGaussian,
    "counts": Poisson,
    "bits": Bernoulli,
    "categories": Categorical,
}
ASIDE = "identifiers"  # columns of no part
NUMBERS: dict[str, type[Likelihood]] = {  # those whose clusters the others start from first
    "diagonal_gaussian": DiagonalGaussian,
    "gaussian_network": GaussianNetwork,
    "gaussian": Gaussian,
    "spherical_gaussian": SphericalGaussian,
    "student_t": StudentT,
}
INDEPENDENT = "diagonal_gaussian"
FULL = "gaussian"
NETWORK = "gaussian_network"
SCALED = "student_t"
EQUAL = "spherical_gaussian"
WHOLE = (FULL, SCALED)  # with covariances of all columns
CORRELATED = (NETWORK, *WHOLE)
FEW_CORRELATED, MOST_CORRELATED = 200, 300  # columns of numbers of which all covariances are tried: always, and ever
AFFORDABLE = (
    2e9  # products of columns, in all rows, that a lap may look at for each cluster where columns are more than few
)
QUICKLY_FILLED = 2e8  # steps for each cluster in which a lap may always fill in the missing values of all rows
MOST_FILLED = 3.0  # times the products of columns: more steps than these, where rows are many
MOST_LINKED = 1000  # columns of which a network is tried
FEW = 10.0
MOST_CODES = 30  # levels of a column of counts that may be codes of categories
FEWEST_IDENTIFIED = 20  # rows whose values are identifiers where each has its own


@dataclass(frozen=True)
class Reading:
    """One way to take the columns of a table.

    kinds : (D,) what each holds: a name in `PARTS`, or `ASIDE`
    missing : (D,) the columns with missing values
    constant : (D,) those of one value
    long_tailed : (D,) columns of positive numbers that the log scale may suit
    names : of the columns
    n_rows : N
    note : what the names of families say of this reading
    latent : whether rows may have latent variables
    fills_in : whether missing values may be such
    gaps : (n, D) where values are missing in a sample of the rows
    """

    kinds: NDArray[Any]
    missing: NDArray[np.bool_]
    constant: NDArray[np.bool_]
    long_tailed: NDArray[np.bool_]
    names: Sequence[str]
    n_rows: int
    note: str = ""
    latent: bool = True
    fills_in: bool = False
    gaps: NDArray[np.bool_] | None = None

    def families(self, logs: Sequence[int] = (), among: Collection[str] = tuple(NUMBERS)) -> dict[str, Likelihood]:
        """The likelihoods of the table by name, with the columns ``logs`` of numbers on the log scale.

        among : the families for numbers that may be used
        """
        numbers = self.kinds == "numbers"
        if not numbers.any():
            held = [kind for kind in PARTS if kind in self.kinds]
            name = " and ".join(PARTS[kind].__name__.lower() for kind in held)
            return {name + self.note: self._likelihood(DiagonalGaussian(), logs)}
        fit = set(among)
        if numbers.sum() == 1:
            fit &= {INDEPENDENT, SCALED}
        if self.missing[numbers].any():
            fit &= {INDEPENDENT, FULL} if self.fills_in and self._affords_filling(numbers) else {INDEPENDENT}
        fit -= {NETWORK} if self._affords_covariances(int(numbers.sum())) else set(WHOLE)
        if numbers.sum() > MOST_LINKED:
            fit -= {NETWORK}
        if not (self.latent and numbers.all()):  # no part of a Product has latent variables
            fit -= {SCALED}
        if self.constant[numbers].any():  # variances that are all the same would follow the column that does not vary
            fit -= {EQUAL}
        families = {name: family for name, family in NUMBERS.items() if name in fit}
        return {self._name(name, logs): self._likelihood(family(), logs) for name, family in families.items()}

    def _affords_covariances(self, D: int) -> bool:
        """Whether laps with all covariances of D columns are quick enough."""
        return D <= FEW_CORRELATED or (D <= MOST_CORRELATED and self.n_rows * D * (D + 1) // 2 <= AFFORDABLE)

    def _affords_filling(self, numbers: NDArray[np.bool_]) -> bool:
        """Whether laps that fill in missing values of these columns are quick, or take not much longer than those without.

        Judged by a sample: a row with m missing cells takes about 2 m (D + m) steps for each cluster, and rows with the same
        missing cells together m^3 / 3 + 2 m D.
        """
        if self.gaps is None:
            return True
        D = int(numbers.sum())
        gaps = self.gaps[:, numbers]
        m = gaps.sum(axis=1)
        alike = np.unique(gaps, axis=0).sum(axis=1)
        steps = ((2.0 * m * (D + m)).sum() + (alike**3 / 3.0 + 2.0 * alike * D).sum()) / len(gaps)
        return bool(steps * self.n_rows <= QUICKLY_FILLED or steps <= MOST_FILLED * 0.5 * D * (D + 1))

    def only(self) -> Likelihood:
        """The first of them."""
        return next(iter(self.families().values()))

    def _name(self, family: str, logs: Sequence[int]) -> str:
        scale = f", log scale: {', '.join(self.names[d] for d in logs)}" if len(logs) else ""
        return family + self.note + scale

    def _likelihood(self, numbers: Likelihood, logs: Sequence[int]) -> Likelihood:
        """The likelihood of the table, with a family for its columns of numbers."""
        parts = {kind: (family(), np.flatnonzero(self.kinds == kind)) for kind, family in PARTS.items()}
        parts = {kind: (family, columns) for kind, (family, columns) in parts.items() if len(columns)}
        if "numbers" in parts:
            columns = parts["numbers"][1]
            own = np.flatnonzero(np.isin(columns, logs))
            parts["numbers"] = (LogScale(numbers, columns=own) if len(own) else numbers, columns)
        only, columns = next(iter(parts.values()))
        D = len(self.kinds)
        return (only if len(columns) == D else Product(parts)).locate(None, D)


def readings(
    source: ArraySource, levels: Mapping[int, Any], names: Sequence[str] | None = None, aside: bool = False
) -> list[Reading]:
    """The ways to take the columns of a table of dense rows by what they hold.

    Categories: `Categorical`.  Zeros and ones: `Bernoulli`.  Whole numbers from 0 to 1e12, with some below 10: `Poisson`, or
    numbers, too, in a second reading.  Others are numbers.  So is a column of one value above 1, of which `Poisson` would
    expect others, and any column of one value beside numbers alone, whose families it must not decide.

    levels : of the columns of categories
    aside : whether columns that name the rows, by a text for each or by counting them in steps of one, are left aside, unless
        there are no others
    """
    facts = _Facts.of(source)
    counted = facts.whole & (facts.least >= 0.0) & (facts.least < FEW) & (facts.largest <= Poisson().largest)
    constant = facts.least == facts.largest
    counted &= ~constant | (facts.largest <= 1.0)
    kinds = np.where(counted, np.where(facts.largest <= 1.0, "bits", "counts"), "numbers").astype(object)
    kinds[list(levels)] = "categories"
    constant &= kinds != "categories"
    if not constant.all() and (kinds[~constant] == "numbers").all():
        kinds[constant] = "numbers"
    identifiers = [*np.flatnonzero(facts.counting & (kinds != "categories")), *_unique_texts(source, levels, facts)]
    if aside and len(identifiers) < len(kinds):
        kinds[identifiers] = ASIDE
    positive = np.zeros(len(kinds), np.bool_)
    sample = sampled_rows(source)
    if sample is not None:
        with np.errstate(all="ignore"):  # infinite values are refused later
            positive = (facts.least > 0.0) & long_tailed(sample)
    shown = [str(d) if names is None else str(names[d]) for d in range(len(kinds))]
    gaps = None if sample is None else np.isnan(sample.X)
    tailed = positive & (kinds == "numbers")
    first = Reading(kinds, facts.missing, constant, tailed, shown, source.n_rows, gaps=gaps)
    if "counts" not in kinds:
        return [first]
    measured = np.where(kinds == "counts", "numbers", kinds)  # counts may as well be measurements, such as grey values
    as_numbers = positive & (measured == "numbers")
    second = Reading(measured, facts.missing, constant, as_numbers, shown, source.n_rows, ", counts too", gaps=gaps)
    return [first, second]


def automatic(
    source: ArraySource, levels: Mapping[int, Any], among: Collection[str] = tuple(NUMBERS), coded: bool = False
) -> dict[str, Likelihood]:
    """The likelihoods that suit a table by what its columns hold, by the family of its numbers; CSR: Multinomial.

    among : the families that several columns of numbers may have
    coded : whether counts may also be codes of categories
    """
    if isinstance(source, SparseSource):
        return {"multinomial": Multinomial()}
    ways = readings(source, levels)
    if coded and _may_be_codes(source, ways[0]):
        kinds = np.where(ways[0].kinds == "counts", "categories", ways[0].kinds)
        ways.append(replace(ways[0], kinds=kinds, note=", counts as categories"))
    found: dict[str, Likelihood] = {}
    for reading in ways:
        found |= reading.families(among=among)
    return found


def _may_be_codes(source: ArraySource, reading: Reading) -> bool:
    """Whether there are columns of counts, and all have few different values, from 0 on without a gap."""
    columns = np.flatnonzero(reading.kinds == "counts")
    occurs = np.zeros((len(columns), MOST_CODES), np.bool_)
    for X in _chunks(source):
        values = X[:, columns]
        if (values >= MOST_CODES).any():
            return False
        for own, column in zip(occurs, values.T):
            own[column[~np.isnan(column)].astype(np.intp)] = True
    return len(columns) > 0 and bool((occurs[:, :-1] >= occurs[:, 1:]).all())


class _Facts(NamedTuple):
    """What all rows say of each column, (D,) each.

    counting : whether its values count the rows, in steps of one
    """

    missing: NDArray[np.bool_]
    whole: NDArray[np.bool_]
    least: Array
    largest: Array
    counting: NDArray[np.bool_]

    @classmethod
    def of(cls, source: ArraySource) -> Self:
        """Those of a table of dense rows."""
        whole, least, most = (np.full(source.n_columns, value) for value in (True, np.inf, -np.inf))
        missing = np.zeros(source.n_columns, np.bool_)
        counting = np.full(source.n_columns, source.n_rows >= FEWEST_IDENTIFIED)
        last = np.full((1, source.n_columns), np.nan)
        for X in _chunks(source):
            absent = np.isnan(X)
            missing |= absent.any(axis=0)
            whole &= (absent | (np.floor(X) == X)).all(axis=0)
            least = np.fmin(least, np.fmin.reduce(X, axis=0))
            most = np.fmax(most, np.fmax.reduce(X, axis=0))
            with np.errstate(invalid="ignore", over="ignore"):  # infinite values are refused later
                steps = np.diff(X, axis=0, prepend=X[:1] - 1.0 if np.isnan(last).all() else last)
            counting &= (steps == 1.0).all(axis=0)
            last = X[-1:].copy()
        return cls(missing, whole, least, most, counting & whole)


def _chunks(source: ArraySource) -> Iterator[Array]:
    for chunk in source.batches(1)[0]:
        X, _ = source.read(chunk)
        source.release()
        yield X


def _unique_texts(source: ArraySource, levels: Mapping[int, Any], facts: _Facts) -> list[int]:
    """The columns of categories of which each row has its own."""
    n = source.n_rows
    if n < FEWEST_IDENTIFIED:
        return []
    columns = [d for d, known in levels.items() if len(known) >= n and not facts.missing[d]]
    if not columns:
        return []
    codes = np.concatenate([X[:, columns] for X in _chunks(source)])
    return [d for d, own in zip(columns, codes.T) if len(np.unique(own)) == n]
