"""The choice of a likelihood for the rows of sequences: by what the columns hold, and among several by the bound."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cluster.sources import is_spread
from ..data import SequenceSource
from ..inference import Options, Session, StateSearch
from ..inference.init import one_cluster
from ..inference.paths import best_paths
from ..inference.visit import visit
from ..likelihoods import AutoregressiveGaussian, DiagonalGaussian, Likelihood
from ..model import SEQUENCES, Summary
from ..model.learning import OF_LIKELIHOOD, settled
from ..model.sequences import labelled
from ..moves.agglomeration import reduced
from . import _chains as chains
from . import _choices as choices
from . import _hyperparameters as hyperparameters
from . import _likelihoods as likelihoods
from . import _memory as memory
from . import _sequences as sequences
from ._automatic import FEW_CORRELATED, INDEPENDENT
from ._base import Columns, survey
from ._chosen import Candidate, Choice, Entry, Family, Fit, Found
from ._selection import Begun, Contest, begun, sample_rows
from ._setup import SearchProblem
from ._whole_fits import Fits, near

NUMBERS = (INDEPENDENT, "gaussian")  # families of several columns of numbers
ORDERS = {"autoregressive_gaussian": 1, "autoregressive_gaussian of order 2": 2}
MOST_LAPS = 15  # to begin a search with one family: those that fit badly need ever more states
BLOCK_LAPS = 80  # of ascents from blocks of rows, of a family that has found one state
EXCURSIONS, EXCURSION_LAPS = 3, 400  # that may fail in a row, and laps of all, of the best family
CLOSE = 5.0  # nats for each state, by which seeds differ: families so close are looked at as long as the best
FIRST_LAPS, MORE_LAPS = 6, 2  # of these, after which a search may be given up: what a lap gains is then known
SURELY = 2.0  # a family is given up that is behind by so many times what all laps left would gain at the last pace
TOLERANCE, ENOUGH = 0.1, 2  # as `Options.tol`, and quiet laps: a search has then begun well enough to be compared
MORE_STATES = 2  # times as many as are known may be found by a fit
LONG, SHORT = 2e9, 8e7  # products of numbers in all laps of a fit: beyond, it takes long; up to as many, little time
FAR = 0.25  # nats for each row, by which a family of another kind may be behind the best fit to be fitted, too
WITH_HISTORY = 0.9  # of the rows, the least share that must have one for autoregressive rows to be tried


def decide_family(estimator: Any, source: SequenceSource, session: Session, seed: int, alike: bool) -> Choice:
    """The family of the states of a fit, or the contest that whole fits are to settle.

    alike : whether the bounds of fits are those of the rows alone, and of all of them, so that they may be compared
    """
    if not likelihoods.automatically(estimator):
        return Family(chains.likelihood(estimator, source))
    kept = _family_of_start(estimator, source)
    if kept is not None:
        return Family(kept)
    found = _families(estimator, source)
    first = next(iter(found.values()))
    if len(found) == 1:
        return Family(first)

    def problem(likelihood: Likelihood, few: SequenceSource) -> SearchProblem:
        columns = survey(estimator, likelihood, few.flat, session.executor)
        return problem_of(estimator, likelihood, sequences.collapsed(few), columns)

    survey(estimator, first, source.flat, session.executor)  # refuses what no family can use, by its row
    sequences.check_observed(source)
    grown = isinstance(estimator.init, str) and estimator.init == "one"
    moves = choices.moves(estimator) if grown else choices.MOVES
    rng = np.random.default_rng([seed, 1])  # of its own: the fit is the same as with the likelihood given
    steps = max(chains.lags(family) for family in found.values())
    contest = StateContest(problem, source, steps, moves, session, rng)
    contest.enter(dict(reversed(found.items())))  # those that fit badly are then given up early
    settles = alike and choices.searches_freely(estimator) and not is_spread(source)
    if not (settles and contest.is_whole):
        contest.reconsider()
    return contest if settles else Family(contest.best.likelihood, contest.candidates)


def _family_of_start(estimator: Any, source: SequenceSource) -> Likelihood | None:
    """The family that the HMM given as ``init`` has chosen by itself, for as many columns; None if there is none."""
    init = estimator.init
    first: Any = getattr(init, "model_", None)
    if first is None or not first.kind.has_order or not likelihoods.automatically(init):
        return None
    if not likelihoods.as_wide(init, source):
        return None
    family = chains.family(first.likelihood).anew()
    return family.locate(None, (chains.lags(family) + 1) * source.n_columns)


def problem_of(estimator: Any, likelihood: Likelihood, source: SequenceSource, columns: Columns) -> SearchProblem:
    """The search for states of sequences with a likelihood."""
    room = memory.room(estimator, likelihood, source, columns)
    allocation = chains.allocation(estimator)
    model = likelihoods.model(estimator, likelihood, source.flat, columns, allocation, SEQUENCES, room)
    options = Options(memory.n_batches(estimator, model.likelihood, source), estimator.max_laps, estimator.tol)
    return SearchProblem(model, source, hyperparameters.learning(options, chains.learnt(estimator, likelihood)))


def _families(estimator: Any, source: SequenceSource) -> dict[str, Likelihood]:
    """The likelihoods that suit the columns (`_automatic.automatic`), by name; those of fewer parameters first.

    Where all columns are numbers, these are Gaussian rows with independent and with correlated columns, and autoregressive ones
    of order 1 and 2 if most rows have such a history: rows without one are not explained by them.  Counts of few values may
    also be categories: all are probabilities of whole numbers.  Those that a model given as ``init`` cannot start are left out.
    """
    found = likelihoods.candidates(estimator, source.flat, among=NUMBERS, coded=True)
    for name, order in ORDERS.items():
        if _follows_history(found, source, order):
            found[name] = AutoregressiveGaussian(order=order).locate(None, (order + 1) * source.n_columns)
    first: Any = getattr(estimator.init, "model_", None)
    if first is not None and first.kind.has_order:
        steps = chains.lags(first.likelihood)
        alike = {name: family for name, family in found.items() if chains.lags(family) == steps}
        return alike or found
    return found


@dataclass
class StateContest(Contest):
    """A contest for states of sequences, on a sample of these.

    A bound is that of the same rows for each, those with a history.  The density of an autoregressive row is given the row
    before, and that of the first is not modelled; so first rows count for none, and are steps without an observation.
    Default priors do not decide: each bound is that with the prior learnt for the states found, at the cost that `begun` has
    for that.  With such a prior, coefficients that are zero cost nothing; so every step back costs as much as one number more.

    problem : what a search with a likelihood on some sequences is
    lags : rows that a history has
    """

    problem: Callable[[Likelihood, SequenceSource], SearchProblem]
    source: SequenceSource
    lags: int
    moves: tuple[str, ...]
    session: Session
    rng: np.random.Generator
    whole: SequenceSource = field(init=False)
    sample: SequenceSource = field(init=False)

    def __post_init__(self) -> None:
        self.whole = self.source.with_lags(self.lags)
        self.sample = self.whole.sample(sample_rows(self.source), self.rng)

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all rows."""
        return self.sample is self.whole

    def begin(self, likelihood: Likelihood, before: Sequence[Likelihood]) -> Begun:
        """Begin a search of the sample from one state; what others found comes later (`StateContest.reconsider`).

        One state that no birth divides may be several in blocks of rows: those that differ in one of many columns, say.
        """
        search = self._search(likelihood)
        options = search.options
        self._ascend(search, likelihood, one_cluster(search.model))
        if search.total.K == 1:
            search.begin_with_blocks(_with_laps(options, len(search.history) + BLOCK_LAPS))
        return self._begun(search, likelihood)

    def reconsider(self) -> None:
        """Look longer for the states of the best family, and of those that are close to it.

        Which states a search finds that only begins is chance, and with more of them any family has the higher bound.  So all
        others follow the states of the best.
        """
        searched: set[str] = set()
        while (name := self._open(searched)) is not None:
            searched.add(name)
            self.entries[name] = self._following(self.entries[name], self._path(self.entries[name]), EXCURSIONS)
            if self.best.candidate.family != name:
                continue
            self.follow(name, [family for family in self.entries if family != name])

    def follow(self, name: str, others: Iterable[str]) -> None:
        """Let other families begin with the states of one, and keep what is better."""
        path = self._path(self.entries[name])
        for other in others:
            self.entries[other] = self._following(self.entries[other], path)

    def best_of(self, families: Iterable[str]) -> Entry:
        """The one with the highest bound."""
        return self.highest(families)

    def opened(self, entry: Entry) -> Family:
        """The family alone: each fit is what it is where its family is given."""
        return Family(entry.likelihood)

    def judge(self, entry: Entry, fit: Fit[Any]) -> None:
        """Take what a whole fit with a family has found for what a short search has.

        Its bound is that of the rows with so long a history, less what learning costs, as for all others.
        """
        likelihood = entry.likelihood
        steps = chains.lags(likelihood)
        rows = sequences.collapsed(self.whole if steps == self.lags else self.whole.with_fewer_lags(steps))
        model, total = fit.outcome.model, fit.outcome.total
        seen = visit(
            model, model.parameters(total, rows.dtype), rows, rows.batches(1)[0], self.session.executor
        ).summary
        bound = begun(Found(model, seen), 1.0, _learnt(likelihood), steps).bound
        known = entry.candidate
        candidate = Candidate(known.family, bound, total.K, known.seconds + fit.seconds)
        self.entries[known.family] = Entry(candidate, likelihood, Found(model, total))

    def rivals(self, fits: Fits) -> list[Entry]:
        """The families that have not been fitted; those alone whose fits do not take long where a sample was searched."""
        left = [entry for family, entry in self.entries.items() if family not in fits]
        return left if self.is_whole else [entry for entry in left if self._work(fits, entry) <= LONG]

    def next(self, fits: Fits, last: Entry) -> Entry | None:
        """The family to fit next, once others have followed the states of the last fit.

        One that comes close to the best fit.  Where fits are short there are two at least, and where they are very short one
        of each kind: with history, and without.  Where fits of many rows take long there is one: the searches have seen a
        sample.
        """
        self.follow(last.candidate.family, [entry.candidate.family for entry in self.rivals(fits)])
        rivals = sorted(self.rivals(fits), key=lambda rival: -rival.candidate.lower_bound)
        if not rivals:
            return None
        short = len(fits) == 1 and self._work(fits, rivals[0]) <= LONG
        if short or near(self.highest(fits).candidate, rivals[0].candidate):
            return rivals[0]
        return self._of_another_kind(fits, rivals)

    def _of_another_kind(self, fits: Fits, rivals: Sequence[Entry]) -> Entry | None:
        """The best of another kind than all that were fitted, if that takes little time and it is not far behind.

        Families with history are of one kind, and those without are of the other: where short searches miss the states of one,
        they miss those of its kind.
        """
        kinds = {_looks_back(self.entries[family]) for family in fits}
        least = self.highest(fits).candidate.lower_bound - FAR * self.whole.total_weight
        others = [entry for entry in rivals if _looks_back(entry) not in kinds and self._work(fits, entry) <= SHORT]
        return next((entry for entry in others if entry.candidate.lower_bound > least), None)

    def _work(self, fits: Fits, entry: Entry) -> float:
        """Products of numbers in a fit of a family, with as many laps as the longest so far, and more states than are known."""
        laps = max(len(fit.outcome.history) for fit in fits.values())
        rows = max(fit.prepared.setup.problem.source.n_rows for fit in fits.values())
        K = MORE_STATES * max(self.highest(fits).candidate.n_clusters, entry.candidate.n_clusters)
        return float(laps * rows * K * (K + entry.found.model.likelihood.n_statistics))

    def _open(self, searched: Collection[str]) -> str | None:
        """The best family that has not been ``searched`` for longer, if it is so close to the best that this may decide."""
        left = [c for c in self.candidates if c.family not in searched and c.n_clusters > 1]
        if not left:
            return None
        best = self.best.candidate
        behind = best.lower_bound - left[0].lower_bound
        return left[0].family if behind <= CLOSE * max(best.n_clusters, left[0].n_clusters) else None

    def _path(self, entry: Entry) -> NDArray[np.intp]:
        """The most probable states of the rows of the sample, (T,), according to what a family found."""
        model, total = entry.found
        sample = self._sample(entry.likelihood)
        return best_paths(model, total * (sample.total_weight / self.whole.total_weight), sample, self.session.executor)

    def _following(self, entry: Entry, path: NDArray[np.intp], excursions: int = 0) -> Entry:
        """What a family finds from these states of the rows, (T,), if that is better than what it has found.

        excursions : of these so many in a row may fail before the search ends
        """
        began = time.perf_counter()
        search = self._search(entry.likelihood)
        options = search.options
        model = search.model
        states = labelled(model.likelihood, self._sample(entry.likelihood), path)
        start = model.ordered(reduced(model, states, model.max_clusters))
        self._ascend(search, entry.likelihood, start)
        if excursions:
            search.explore_briefly(_with_laps(options, len(search.history) + EXCURSION_LAPS), excursions)
        bound, found = self._begun(search, entry.likelihood)
        known = entry.candidate
        seconds = known.seconds + time.perf_counter() - began
        if bound <= known.lower_bound:
            return entry._replace(candidate=replace(known, seconds=seconds))
        return Entry(Candidate(known.family, bound, found.total.K, seconds), entry.likelihood, found)

    def _sample(self, likelihood: Likelihood) -> SequenceSource:
        """The sample, its rows with as much history as a family looks at."""
        steps = chains.lags(likelihood)
        return self.sample if steps == self.lags else self.sample.with_fewer_lags(steps)

    def _search(self, likelihood: Likelihood) -> StateSearch:
        """A search of the sample that only begins."""
        model, few, options = self.problem(likelihood, self._sample(likelihood))
        options = replace(options, tol=max(options.tol, TOLERANCE))
        return StateSearch(model, few, self.moves, self.session.aside(), self.rng.spawn(1)[0], options)

    def _ascend(self, search: StateSearch, likelihood: Likelihood, start: Summary) -> None:
        """Ascend from a start.

        A family that is far behind the best one goes no further: one that fits badly needs ever more states, and time.
        """
        options = _with_laps(search.options, MOST_LAPS)
        search.options = _with_laps(options, FIRST_LAPS)
        search.begin(start, ENOUGH)
        while not search.converged and len(search.history) < options.max_laps:
            if self.entries and self._hope(search, likelihood, options.max_laps) < self.best.candidate.lower_bound:
                break
            search.go_on(_with_laps(options, len(search.history) + MORE_LAPS))

    def _hope(self, search: StateSearch, likelihood: Likelihood, most: int) -> float:
        """A bound that a search will hardly reach in so many laps, if the next gain no more than the last."""
        laps = search.history[-1 - MORE_LAPS :]
        pace = (laps[-1].explored_bound - laps[0].explored_bound) / max(len(laps) - 1, 1) * self._each(search)
        return self._begun(search, likelihood).bound + SURELY * pace * (most - len(search.history))

    def _each(self, search: StateSearch) -> float:
        """Rows that each of the sample stands for."""
        return self.whole.total_weight / search.source.total_weight

    def _begun(self, search: StateSearch, likelihood: Likelihood) -> Begun:
        """The outcome of a search so far, with the prior learnt for it."""
        total = search.total * self._each(search)
        model = settled(search.found, total, _learnt(likelihood), self.source.dtype)
        return begun(Found(model, total), self._each(search), _learnt(likelihood), chains.lags(likelihood))


def _looks_back(entry: Entry) -> bool:
    """Whether rows of a family follow their histories."""
    return chains.lags(entry.likelihood) > 0


def _learnt(likelihood: Likelihood) -> list[str]:
    """The hyperparameters of a likelihood that are learnt where families are compared."""
    return [OF_LIKELIHOOD + name for name in likelihood.not_given()]


def _with_laps(options: Options, most: int) -> Options:
    """Options with no more than so many laps."""
    return replace(options, max_laps=min(options.max_laps, most))


def _follows_history(found: Mapping[str, Likelihood], source: SequenceSource, order: int) -> bool:
    """Whether autoregressive rows are an alternative: columns are numbers, few enough and complete, and rows have a history."""
    D = source.n_columns
    numbers = isinstance(found.get("diagonal_gaussian"), DiagonalGaussian) and (D == 1 or "gaussian" in found)
    if not numbers or (order + 1) * D > FEW_CORRELATED:
        return False
    return source.with_lags(order).total_weight >= WITH_HISTORY * source.total_weight
