"""Whole fits of states with the families that a choice leaves open: the best is taken, by the bound of the same rows."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..likelihoods import Likelihood
from . import _chains as chains
from ._chosen import Candidate, Family, Found
from ._estimator import interruption
from ._selection import Entry
from ._sequence_setup import SequenceSetup
from ._setup import Outcome, Setup
from ._state_selection import StateContest

NEAR = 1.0  # nats for each state, by which a family may be behind the best fit to be fitted, too
MORE_STATES = 2  # times as many as are known may be found by a fit
LONG, SHORT = 2e9, 8e7  # products of numbers in all laps of a fit: beyond, it takes long; up to as many, little time
FAR = 0.25  # nats for each row, by which a family of another kind may be behind the best fit to be fitted, too


class Fit(NamedTuple):
    """A fit of states: what it consisted of, what came of it, and how many seconds it took."""

    setup: SequenceSetup
    outcome: Outcome
    seconds: float


@dataclass
class WholeFits:
    """Fits with the families of a contest, best first, until none that is left comes close to the best fit.

    Short searches may miss most states of a family, and then put another first that needs few.  So all others follow the states
    of each fit before the next is chosen; where fits are short there are two at least, and where they are very short one of
    each kind: with history, and without.  Where fits of many rows take long there is one: the searches have seen a sample.

    Each fit is what it is where its family is given.  Nobody has asked for more than one: if another fails, the best so far is
    the outcome, with a warning.

    contest : what short searches found
    setup : that of a fit with a likelihood
    ascend : what comes of a setup
    """

    contest: StateContest
    setup: Callable[[Likelihood], SequenceSetup]
    ascend: Callable[[Setup], Outcome]
    fits: dict[str, Fit] = field(default_factory=dict, init=False)

    def run(self) -> tuple[Family, Fit]:
        """The best family, and its fit; Ctrl-C keeps the best so far."""
        first = self.contest.best
        interrupted = self._fit(first)
        if not interrupted and self._rivals():
            try:
                interrupted = self._fit_others(first)
            except KeyboardInterrupt:
                interrupted = True
            except Exception as error:  # memory, a device, numbers: a fit is good whatever another lacks
                _warn_of_failure(self._best, error)
        best = self._best
        others = [candidate for candidate in self.contest.candidates if candidate is not best]
        family = Family(self.contest.entries[best.family].likelihood, [best, *others])
        fit = self.fits[best.family]
        return family, _interrupted(fit) if interrupted else fit

    def _fit(self, entry: Entry) -> bool:
        """Fit a family; whether Ctrl-C ended the fit."""
        began = time.perf_counter()
        setup = self.setup(entry.likelihood)
        outcome = self.ascend(setup.setup)
        self.fits[entry.candidate.family] = Fit(setup, outcome, time.perf_counter() - began)
        return outcome.interrupted

    def _fit_others(self, last: Entry) -> bool:
        """Fit the families that come close to the best fit, ``last`` being the first; whether Ctrl-C ended a fit."""
        self._judge(last)
        while (entry := self._next(last)) is not None:
            last = entry
            interrupted = self._fit(entry)
            self._judge(entry)
            if interrupted:
                return True
        return False

    def _judge(self, entry: Entry) -> None:
        """Let the contest know what the fit of a family has found."""
        fit = self.fits[entry.candidate.family]
        self.contest.judge(entry, Found(fit.outcome.model, fit.outcome.total), fit.seconds)

    def _next(self, last: Entry) -> Entry | None:
        """The family to fit next, if any is to be, once others have followed the states of the last fit."""
        self.contest.follow(last.candidate.family, [entry.candidate.family for entry in self._rivals()])
        rivals = sorted(self._rivals(), key=lambda rival: -rival.candidate.lower_bound)
        if not rivals:
            return None
        best = self._best
        known = rivals[0].candidate
        near = best.lower_bound - known.lower_bound <= NEAR * max(best.n_clusters, known.n_clusters)
        if near or (len(self.fits) == 1 and self._work(rivals[0]) <= LONG):
            return rivals[0]
        return self._of_another_kind(rivals)

    def _of_another_kind(self, rivals: Sequence[Entry]) -> Entry | None:
        """The best of another kind than all that were fitted, if that takes little time and it is not far behind.

        Families with history are of one kind, and those without are of the other: where short searches miss the states of one,
        they miss those of its kind.
        """
        kinds = {self._looks_back(self.contest.entries[family]) for family in self.fits}
        least = self._best.lower_bound - FAR * self.contest.whole.total_weight
        others = [entry for entry in rivals if self._looks_back(entry) not in kinds and self._work(entry) <= SHORT]
        return next((entry for entry in others if entry.candidate.lower_bound > least), None)

    def _looks_back(self, entry: Entry) -> bool:
        """Whether rows of a family follow their histories."""
        return chains.lags(entry.likelihood) > 0

    def _rivals(self) -> list[Entry]:
        """The families that have not been fitted and may be."""
        left = [entry for family, entry in self.contest.entries.items() if family not in self.fits]
        return left if self.contest.is_whole else [entry for entry in left if self._work(entry) <= LONG]

    @property
    def _best(self) -> Candidate:
        """The family with the best fit."""
        return next(candidate for candidate in self.contest.candidates if candidate.family in self.fits)

    def _work(self, entry: Entry) -> float:
        """Products of numbers in a fit of a family, with as many laps as the longest so far, and more states than are known."""
        laps = max(len(fit.outcome.history) for fit in self.fits.values())
        rows = max(fit.setup.visited.n_rows for fit in self.fits.values())
        K = MORE_STATES * max(self._best.n_clusters, entry.candidate.n_clusters)
        return float(laps * rows * K * (K + entry.found.model.likelihood.n_statistics))


def best_fit(
    choice: Family | StateContest, setup: Callable[[Likelihood], SequenceSetup], ascend: Callable[[Setup], Outcome]
) -> tuple[Family, Fit]:
    """The family of a fit and the fit: that of the family chosen, or the best of a contest (`WholeFits`)."""
    if isinstance(choice, StateContest):
        return WholeFits(choice, setup, ascend).run()
    began = time.perf_counter()
    found = setup(choice.likelihood)
    outcome = ascend(found.setup)
    return choice, Fit(found, outcome, time.perf_counter() - began)


def _warn_of_failure(best: Candidate, error: Exception) -> None:
    """Say why other families are not compared any more."""
    warnings.warn(
        f"rows are {best.family}: comparing them with other families failed ({type(error).__name__}: {error}); "
        "give likelihood= to fit one family only.",
        RuntimeWarning,
        stacklevel=2,
    )


def _interrupted(fit: Fit) -> Fit:
    """A fit whose outcome warns that Ctrl-C ended a search for a better one."""
    outcome = fit.outcome
    return fit._replace(outcome=outcome._replace(trouble=interruption(outcome.history), interrupted=True))
