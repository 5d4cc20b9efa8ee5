"""The family of states that a choice puts first, and the one next to it: where fits are short, both are fitted."""

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

from ..data import SequenceSource
from ..inference import Session
from ..likelihoods import Likelihood
from ._chosen import Candidate, Family
from ._estimator import interruption
from ._sequence_setup import SequenceSetup
from ._setup import Outcome, Setup
from ._state_selection import bound_of_same_rows

MORE_STATES = 4  # times as many as a short search has found may be found by a fit
LONG = 2e9  # products of numbers in all laps of a fit with so many states, beyond which it takes too long


class Fit(NamedTuple):
    """A fit of states with a family.

    candidate : what the choice says of it
    """

    candidate: Candidate
    likelihood: Likelihood
    setup: SequenceSetup
    outcome: Outcome
    seconds: float

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        likelihood: Likelihood,
        setup: SequenceSetup,
        ascend: Callable[[Setup], Outcome],
    ) -> "Fit":
        """What comes of a setup."""
        began = time.perf_counter()
        outcome = ascend(setup.setup)
        return cls(candidate, likelihood, setup, outcome, time.perf_counter() - began)

    def judged(self, source: SequenceSource, lags: int, session: Session) -> Candidate:
        """The candidate with the bound of this fit."""
        model, total = self.outcome.model, self.outcome.total
        bound = bound_of_same_rows(self.likelihood, model, total, source, lags, session.executor)
        return Candidate(self.candidate.family, bound, total.K, self.candidate.seconds + self.seconds)


def better_fit(
    family: Family,
    source: SequenceSource,
    setup: Callable[[Likelihood], SequenceSetup],
    ascend: Callable[[Setup], Outcome],
    session: Session,
) -> tuple[Family, SequenceSetup, Outcome]:
    """The better of the fits with the family chosen and with its runner-up, by the bound of the same rows.

    Short searches may miss most states of a family, and then put another first that needs few.  Each fit is what it is where
    its family is given.  Nobody has asked for the second: if it fails, the first is the outcome, with a warning.

    setup : that of a fit with a likelihood
    ascend : what comes of a setup
    """
    found = setup(family.likelihood)
    if family.runner_up is None:
        return family, found, ascend(found.setup)
    first = Fit.of(family.candidates[0], family.likelihood, found, ascend)
    if first.outcome.interrupted:
        return family, found, first.outcome
    try:
        other = setup(family.runner_up)
        if _takes_long(other, family.candidates[:2], len(first.outcome.history)):
            return family, found, first.outcome
        second = Fit.of(family.candidates[1], family.runner_up, other, ascend)
    except KeyboardInterrupt:
        return family, found, _interrupted(first.outcome)
    except Exception as error:  # memory, a device, numbers: the first fit is good whatever the second lacks
        _warn_of_failure(family, error)
        return family, found, first.outcome
    fits = {fit.judged(source, family.lags, session): fit for fit in (first, second)}
    candidates = sorted([*fits, *family.candidates[2:]], key=lambda candidate: -candidate.lower_bound)
    chosen = max(fits, key=lambda candidate: candidate.lower_bound)
    best = fits[chosen]
    candidates = [chosen, *(candidate for candidate in candidates if candidate is not chosen)]
    outcome = _interrupted(best.outcome) if second.outcome.interrupted else best.outcome
    return Family(best.likelihood, candidates), best.setup, outcome


def _takes_long(setup: SequenceSetup, candidates: list[Candidate], laps: int) -> bool:
    """Whether a fit of so many laps may take too long, with many more states than the candidates have."""
    K = MORE_STATES * max(candidate.n_clusters for candidate in candidates)
    F = setup.setup.problem.model.likelihood.n_statistics
    return laps * setup.visited.n_rows * K * (K + F) > LONG


def _warn_of_failure(family: Family, error: Exception) -> None:
    """Say that there is no second fit to compare with, and why."""
    chosen, other = (candidate.family for candidate in family.candidates[:2])
    warnings.warn(
        f"rows are {chosen}: a fit with {other}, to compare with, failed ({type(error).__name__}: {error}); "
        "give likelihood= to fit one family only.",
        RuntimeWarning,
        stacklevel=2,
    )


def _interrupted(outcome: Outcome) -> Outcome:
    """An outcome with the warning that the fit was interrupted."""
    return outcome._replace(trouble=interruption(outcome.history), interrupted=True)
