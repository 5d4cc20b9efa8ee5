"""Whole fits with the families that a choice leaves open: the best is taken, by the bound of the same rows."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol

from ._chosen import Ascend, Candidate, Entry, Family, Fit, P, fitted
from ._estimator import interruption

NEAR = 1.0  # nats for each cluster, by which a family may be behind the best fit to be fitted, too

Fits = Mapping[str, Fit[Any]]  # by the names of their families


class Open(Protocol):
    """What short searches with several families found: a choice that whole fits are to settle."""

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The families, by name."""
        ...

    @property
    def candidates(self) -> list[Candidate]:
        """All of them, best first."""
        ...

    def best_of(self, families: Iterable[str]) -> Entry:
        """The best of some."""
        ...

    def best_fit(self, fits: Iterable[str]) -> Entry:
        """The best of whole fits, in their order."""
        ...

    def opened(self, entry: Entry) -> Family:
        """A family, and what a fit with it begins with."""
        ...

    def judge(self, entry: Entry, fit: Fit[Any]) -> None:
        """Take what a whole fit with a family has found for what a short search has."""
        ...

    def rivals(self, fits: Fits) -> list[Entry]:
        """The families that have not been fitted and may be."""
        ...

    def next(self, fits: Fits, last: Entry) -> Entry | None:
        """The family to fit next, if any is to be, once others have followed the clusters of the last fit."""
        ...


@dataclass
class WholeFits(Generic[P]):
    """Fits with the families of a contest, best first, until none that is left comes close to the best fit.

    Short searches may miss most clusters of a family, and then put another first that needs few.  So all others follow the
    clusters of each fit before the next is chosen.  Nobody has asked for more than one fit: if another fails, the best so far
    is the outcome, with a warning.

    contest : what short searches found
    prepare : the setup of a fit with a family
    ascend : what comes of a setup
    """

    contest: Open
    prepare: Callable[[Family], P]
    ascend: Ascend
    fits: dict[str, Fit[P]] = field(default_factory=dict, init=False)

    def run(self) -> tuple[Family, Fit[P]]:
        """The best family, and its fit; Ctrl-C keeps the best so far."""
        first = self.contest.best_of(self.contest.entries)
        interrupted = self._fit(first)
        try:
            self._judge(first)
            if not interrupted and self.contest.rivals(self.fits):
                interrupted = self._fit_others(first)
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:  # memory, a device, numbers: a fit is good whatever another lacks
            _warn_of_failure(self._best.candidate, error)
        best, likelihood, _ = self._best
        others = [candidate for candidate in self.contest.candidates if candidate is not best]
        fit = self.fits[best.family]
        return Family(likelihood, [best, *others]), _interrupted(fit) if interrupted else fit

    def _fit(self, entry: Entry) -> bool:
        """Fit a family; whether Ctrl-C ended the fit."""
        fit = fitted(self.contest.opened(entry), self.prepare, self.ascend)
        self.fits[entry.candidate.family] = fit
        return fit.outcome.interrupted

    def _fit_others(self, last: Entry) -> bool:
        """Fit the families that come close to the best fit, ``last`` being the first; whether Ctrl-C ended a fit."""
        while (entry := self.contest.next(self.fits, last)) is not None:
            last = entry
            interrupted = self._fit(entry)
            self._judge(entry)
            if interrupted:
                return True
        return False

    def _judge(self, entry: Entry) -> None:
        """Let the contest know what the fit of a family has found."""
        self.contest.judge(entry, self.fits[entry.candidate.family])

    @property
    def _best(self) -> Entry:
        """The family with the best fit."""
        return self.contest.best_fit(self.fits)


def near(best: Candidate, other: Candidate) -> bool:
    """Whether a family comes close to the best."""
    return best.lower_bound - other.lower_bound <= NEAR * max(best.n_clusters, other.n_clusters)


def _warn_of_failure(best: Candidate, error: Exception) -> None:
    """Say why other families are not compared any more."""
    warnings.warn(
        f"rows are {best.family}: comparing them with other families failed ({type(error).__name__}: {error}); "
        "give likelihood= to fit one family only.",
        RuntimeWarning,
        stacklevel=2,
    )


def _interrupted(fit: Fit[P]) -> Fit[P]:
    """A fit whose outcome warns that Ctrl-C ended a search for a better one."""
    outcome = fit.outcome
    return fit._replace(outcome=outcome._replace(trouble=interruption(outcome.history), interrupted=True))
