"""The family of states that a choice puts first, and those next to it: where fits are short, several are fitted."""

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
LONG = 2e9  # products of numbers in all laps of a fit with so many states, beyond which a second one takes too long
LATER = 100.0  # a third fit may take so many times less than the second


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


def best_fit(
    family: Family,
    source: SequenceSource,
    setup: Callable[[Likelihood], SequenceSetup],
    ascend: Callable[[Setup], Outcome],
    session: Session,
) -> tuple[Family, SequenceSetup, Outcome]:
    """The best of the fits with the family chosen and with its runners-up, by the bound of the same rows.

    Short searches may miss most states of a family, and then put another first that needs few.  Each fit is what it is where
    its family is given.  Nobody has asked for those after the first: if one fails, the others decide, with a warning.

    setup : that of a fit with a likelihood
    ascend : what comes of a setup
    """
    found = setup(family.likelihood)
    if not family.runners_up:
        return family, found, ascend(found.setup)
    first = Fit.of(family.candidates[0], family.likelihood, found, ascend)
    fits = [first]
    interrupted = first.outcome.interrupted
    for limit, (candidate, likelihood) in zip((LONG, LONG / LATER), family.runners_up):
        if interrupted:
            break
        try:
            other = setup(likelihood)
            if _work(other, [family.candidates[0], candidate], first) <= limit:
                fits.append(Fit.of(candidate, likelihood, other, ascend))
                interrupted = fits[-1].outcome.interrupted
        except KeyboardInterrupt:
            interrupted = True
        except Exception as error:  # memory, a device, numbers: the first fit is good whatever another lacks
            _warn_of_failure(family, candidate, error)
    best = first
    if len(fits) > 1:
        family, best = _judged(family, source, fits, session)
    return family, best.setup, _interrupted(best.outcome) if interrupted else best.outcome


def _work(setup: SequenceSetup, candidates: list[Candidate], first: Fit) -> float:
    """Products of numbers in a fit of as many laps as the first, with many more states than the candidates have."""
    K = MORE_STATES * max(candidate.n_clusters for candidate in candidates)
    F = setup.setup.problem.model.likelihood.n_statistics
    return float(len(first.outcome.history) * setup.visited.n_rows * K * (K + F))


def _judged(family: Family, source: SequenceSource, fits: list[Fit], session: Session) -> tuple[Family, Fit]:
    """The best of several fits, and its family, whose candidates have the bounds of these."""
    judged = {fit.judged(source, family.lags, session): fit for fit in fits}
    fitted = {candidate.family for candidate in judged}
    chosen = max(judged, key=lambda candidate: candidate.lower_bound)
    others = [candidate for candidate in judged if candidate is not chosen]
    others += [candidate for candidate in family.candidates if candidate.family not in fitted]
    others.sort(key=lambda candidate: -candidate.lower_bound)
    return Family(judged[chosen].likelihood, [chosen, *others]), judged[chosen]


def _warn_of_failure(family: Family, other: Candidate, error: Exception) -> None:
    """Say that there is no other fit to compare with, and why."""
    warnings.warn(
        f"a fit with {other.family}, to compare with {family.candidates[0].family}, failed "
        f"({type(error).__name__}: {error}); give likelihood= to fit one family only.",
        RuntimeWarning,
        stacklevel=2,
    )


def _interrupted(outcome: Outcome) -> Outcome:
    """An outcome with the warning that the fit was interrupted."""
    return outcome._replace(trouble=interruption(outcome.history), interrupted=True)
