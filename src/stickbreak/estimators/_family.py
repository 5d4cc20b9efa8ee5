"""The family of the clusters of a mixture: given, by what the columns hold, or chosen by the bound; and what others find."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import ArraySource
from ..inference import Memoized, Options, Session
from ..inference.learning_search import Rival, affords_rival
from ..inference.sample_sizes import smallest_sample
from ..likelihoods import Likelihood
from ..model import RowKind
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from . import _memory as memory
from ._base import Columns, survey
from ._chosen import Choice, Family
from ._selection import FEWEST_ROWS, RowContest, choose, sample_rows
from ._setup import SearchProblem
from ._told import Told


def decide_family(
    estimator: Any, source: ArraySource, rows: ArraySource, told: Told, session: Session, rng: np.random.Generator
) -> Choice:
    """The family of a fit, or the contest that whole fits are to settle: where all rows were searched, by any moves.

    rows : those of the source, repeated ones collapsed
    told : what is said of rows beside their values
    """
    ways = likelihoods.ways(estimator, source, told.latent)
    if not likelihoods.several(ways):
        return Family(ways[0].only() if ways else likelihoods.likelihood(estimator, source))
    contest = _contest(estimator, rows, sample_rows(rows), session, rng)
    choose(contest, ways)
    goes_on = choices.searches_freely(estimator) and estimator.n_init == 1
    plain = told.classes is None and told.links is None and estimator.seeds is None  # bounds are those of rows alone
    if goes_on and plain and contest.is_whole and isinstance(choices.algorithm(estimator), Memoized):
        return contest
    family = contest.family()
    return family if goes_on else replace(family, found=None)


def problem_of(
    estimator: Any, likelihood: Likelihood, rows: ArraySource, columns: Columns, learn: tuple[str, ...]
) -> SearchProblem:
    """The search for clusters of the rows with a likelihood, of which some hyperparameters are learnt."""
    room = memory.room(estimator, likelihood, rows, columns)
    kind = RowKind(estimator.most_kept, estimator.candidates)
    model = likelihoods.model(estimator, likelihood, rows, columns, choices.allocation(estimator), kind, room)
    batches = memory.n_batches(estimator, model.likelihood, rows)
    return SearchProblem(model, rows, Options(batches, estimator.max_laps, estimator.tol, learn=learn))


def rivals_of(
    estimator: Any, family: Family, problem: SearchProblem, columns: Columns, session: Session, rng: np.random.Generator
) -> Sequence[Rival]:
    """What the choice of the family found, for its search to start from; where there was no choice, what simpler families find.

    These see a sample of the rows, if the family learns, and a search from one cluster can afford an ascent from two.
    """
    if family.rivals or not problem.options.learn or session.journal.is_over:
        return family.rivals
    rows = problem.source
    n_statistics = problem.model.likelihood.n_statistics
    simpler = likelihoods.simpler(family.likelihood, columns.missing)
    grows = choices.from_one(estimator) and "birth" in choices.moves(estimator)
    affordable = affords_rival(smallest_sample(rows.n_rows, rows.row_size, n_statistics), 2, n_statistics)
    if not simpler or not grows or not affordable or not choices.algorithm(estimator).searches:
        return []
    contest = _contest(estimator, rows, FEWEST_ROWS, session, rng)
    contest.enter(dict(reversed(simpler.items())))
    return [contest.rival(contest.best.found)]


def _contest(estimator: Any, rows: ArraySource, n: int, session: Session, rng: np.random.Generator) -> RowContest:
    """Short searches of a sample of n of the rows."""

    def problem(likelihood: Likelihood, few: ArraySource) -> SearchProblem:
        learn = hyperparameters.learnt(estimator, likelihood)
        return problem_of(estimator, likelihood, few, survey(estimator, likelihood, few, session.executor), learn)

    return RowContest(problem, rows, session, rng.spawn(1)[0], n)
