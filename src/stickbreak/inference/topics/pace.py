"""How many sweeps of annealing there are: at most so many, and fewer once the likelihood of the tokens rises no more."""

from typing import NamedTuple

import numpy as np

WINDOW = 10  # sweeps whose mean likelihood of the tokens is compared with the best mean before
QUIET = 2  # times in a row that this is not higher by enough, after which a phase is over
PRIOR_EVERY = 3  # sweeps from one step of learning the prior of documents to the next


class Pace(NamedTuple):
    """How far sweeps have come in two phases: one with a generous prior of documents, then one in which it is learnt.

    A phase is over after so many sweeps, or earlier: `WINDOW` sweeps are quiet if their mean likelihood of the tokens is not
    higher by enough than that of the best `WINDOW` sweeps before, and a phase ends once they were quiet `QUIET` times in a row.

    most : the most sweeps of each phase
    least : nats by which each sweep must raise the likelihood
    learning : whether this is the second phase
    sweep : sweeps so far, of both phases;  since : of this phase
    level : the highest mean likelihood of `WINDOW` sweeps;  total : the sum of the likelihoods since the last `WINDOW` sweeps
    quiet : how often in a row `WINDOW` sweeps were quiet
    """

    most: tuple[int, int]
    least: float
    learning: bool = False
    sweep: int = 0
    since: int = 0
    level: float = -np.inf
    total: float = 0.0
    quiet: int = 0

    @classmethod
    def of(cls, sweeps: int, share: float, least: float = 0.0) -> "Pace":
        """So many sweeps at most, this share of them with the first prior."""
        first = int(np.ceil(share * sweeps))
        return cls((first, sweeps - first), least)

    @property
    def over(self) -> bool:
        """Whether there are no more sweeps."""
        return self.learning and self.since >= self.most[1]

    @property
    def learns(self) -> bool:
        """Whether the prior is learnt after the next sweep."""
        return self.learning and self.since % PRIOR_EVERY == 0

    def after(self, likelihood: float) -> "Pace":
        """The pace after a sweep in which the tokens had a likelihood, in nats."""
        since = self.since + 1
        level = self.level
        total = self.total + likelihood
        quiet = self.quiet
        if since % WINDOW == 0:
            mean = total / WINDOW
            rises = mean > level + self.least * WINDOW
            quiet = 0 if rises else quiet + 1
            level = max(mean, level)
            total = 0.0
        done = since >= self.most[self.learning] or quiet == QUIET
        if done and not self.learning:
            return Pace(self.most, self.least, True, self.sweep + 1)
        most = (self.most[0], since) if done else self.most
        return self._replace(most=most, sweep=self.sweep + 1, since=since, level=level, total=total, quiet=quiet)
