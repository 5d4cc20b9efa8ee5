"""The choice of a likelihood by the bound: short searches on a sample of the rows, one for each candidate."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import ArraySource
from ..inference import Journal, LearningSearch, Session
from ..inference.init import one_cluster
from ..inference.learning_search import Rival
from ..likelihoods import DiagonalGaussian, Likelihood, LogScale, Sample
from ..likelihoods.features import features
from ..model.learning import OF_LIKELIHOOD
from ..model.local import responsibilities_of
from ..moves.better import accepts
from ._automatic import CORRELATED, INDEPENDENT, Reading
from ._choices import MOVES
from ._chosen import Ascend, Candidate, Entry, Family, Fit, Found, P
from ._likelihoods import FEW_COLUMNS
from ._setup import SearchProblem
from ._whole_fits import Fits, WholeFits, near

FEWEST_ROWS = 5000  # of the sample; enough for families whose clusters others start from
MOST_LAPS = 100  # to begin a search with one family
SMALLER, MOST_ROWS = 20, 20_000  # a sample has one row in so many, and no more than these
PLENTY = 100  # rows for each statistic of all covariances
FAMILY = "family"  # of a fit, among the results in its journal
MANY_TIMES = 2.0  # as many clusters as a fuller family finds: more are pieces of these


class Begun(NamedTuple):
    """A search that has begun: its bound, as if of all rows, less what learning costs, and its outcome."""

    bound: float
    found: Found


def recalled(journal: Journal) -> Family | None:
    """The family of a fit that is over, according to its journal; None if it is to be decided."""
    known = journal.results.get(FAMILY)
    return known if journal.is_over and isinstance(known, Family) else None


def remember(journal: Journal, family: Family) -> Family:
    """The family of a fit, once its journal knows."""
    journal.results[FAMILY] = Family(family.likelihood, family.candidates)
    journal.check(journal.results[FAMILY])
    return family


@dataclass
class Contest(ABC):
    """Searches of a sample that only begin, one for each likelihood; the bound, as if of all rows, says which is best."""

    entries: dict[str, Entry] = field(default_factory=dict, init=False)

    @abstractmethod
    def begin(self, likelihood: Likelihood, before: Sequence[Likelihood]) -> Begun:
        """Begin a search with a likelihood.

        before : those that were entered with it, before it
        """

    def enter(self, families: Mapping[str, Likelihood]) -> None:
        """Begin a search with each likelihood that has not been tried yet, in turn."""
        likelihoods = list(families.values())
        for i, (family, likelihood) in enumerate(families.items()):
            if family in self.entries:
                continue
            began = time.perf_counter()
            bound, found = self.begin(likelihood, likelihoods[:i])
            candidate = Candidate(family, bound, found.total.K, time.perf_counter() - began)
            self.entries[family] = Entry(candidate, likelihood, found)

    @abstractmethod
    def best_of(self, families: Iterable[str]) -> Entry:
        """The best of some."""

    @abstractmethod
    def opened(self, entry: Entry) -> Family:
        """A family, and what a fit with it begins with."""

    @abstractmethod
    def judge(self, entry: Entry, fit: Fit[Any]) -> None:
        """Take what a whole fit with a family has found for what a short search has."""

    @abstractmethod
    def rivals(self, fits: Fits) -> list[Entry]:
        """The families that have not been fitted and may be."""

    @abstractmethod
    def next(self, fits: Fits, last: Entry) -> Entry | None:
        """The family to fit next, if any is to be, once others have followed the clusters of the last fit."""

    def best_fit(self, fits: Iterable[str]) -> Entry:
        """The best of whole fits, in their order: clusters that a later one has more must be worth a nat each, as for moves."""
        best: Entry | None = None
        for name in fits:
            entry = self.entries[name]
            if best is None or (self.best_of([best.candidate.family, name]) is entry and _is_worth(entry, best)):
                best = entry
        assert best is not None
        return best

    def fit(self, prepare: Callable[[Family], P], ascend: Ascend) -> tuple[Family, Fit[P]]:
        """The best of whole fits."""
        return WholeFits(self, prepare, ascend).run()

    @property
    def best(self) -> Entry:
        """The one with the highest bound."""
        return self.highest(self.entries)

    def highest(self, families: Iterable[str]) -> Entry:
        """The one of some with the highest bound."""
        return max((self.entries[name] for name in families), key=lambda entry: entry.candidate.lower_bound)

    @property
    def candidates(self) -> list[Candidate]:
        """All of them, best first."""
        return sorted((entry.candidate for entry in self.entries.values()), key=lambda c: -c.lower_bound)


@dataclass
class RowContest(Contest):
    """A contest for clusters of rows, with all moves: fits have the same family with clusters given and without.

    problem : what a search with a likelihood on some rows is
    rows : of the sample
    """

    problem: Callable[[Likelihood, ArraySource], SearchProblem]
    source: ArraySource
    session: Session
    rng: np.random.Generator
    rows: int
    sample: ArraySource = field(init=False)

    def __post_init__(self) -> None:
        self.sample = self.source.sample(self.rows, self.rng)

    def enter(self, families: Mapping[str, Likelihood]) -> None:
        """Begin with the fullest where rows are plenty for it: the others need not be searched then."""
        D = self.source.n_columns
        plenty = D <= FEW_COLUMNS and self.sample.n_rows >= PLENTY * (D * (D + 1) // 2 + D)
        super().enter(dict(sorted(families.items(), key=lambda f: -self._fullness(f[1]))) if plenty else families)

    def begin(self, likelihood: Likelihood, before: Sequence[Likelihood]) -> Begun:
        """Begin a search of the sample, which may start from the best clusters so far.

        Those fuller than others may find what these have not.  The rest take the best clusters, if there are several, and
        merge and delete some.
        """
        rivals = [self.rival(self.best.found)] if self.entries else []
        search, each = self._search(likelihood, rivals)
        fuller = all(self._fullness(likelihood) > self._fullness(other) for other in before)
        if fuller or self.best.found.total.K == 1:
            search.begin(one_cluster(search.model))
        else:
            search.follow(rivals[0])
        return self._begun(search, each)

    def _search(self, likelihood: Likelihood, rivals: Sequence[Rival]) -> tuple[LearningSearch, float]:
        """A search of the sample that only begins, and how many rows each of the sample stands for."""
        model, few, options = self.problem(likelihood, self.sample)
        options = replace(options, max_laps=min(options.max_laps, MOST_LAPS))
        stream = self.rng.spawn(1)[0]
        search = LearningSearch(model, few, MOVES, self.session.aside(), stream, options, rivals=rivals)
        return search, self.source.total_weight / few.total_weight

    def _begun(self, search: LearningSearch, each: float) -> Begun:
        """The outcome of such a search."""
        return begun(Found(search.found, search.total * each), each, search.options.learn)

    def reconsider(self) -> None:
        """Let families follow the clusters of those after them that found more, but no pieces: a search may miss some."""
        entries = list(self.entries.items())
        for i, (_, entry) in enumerate(entries):
            known = entry.candidate
            more = [other for _, other in entries[i + 1 :] if other.candidate.n_clusters > known.n_clusters]
            more = [other for other in more if _no_pieces(other.candidate, known)]
            if not more:
                continue
            self._follow(entry, self.rival(max(more, key=lambda other: other.candidate.lower_bound).found))

    def _follow(self, entry: Entry, rival: Rival) -> None:
        """Let a family follow the clusters of a rival, and keep what is better."""
        began = time.perf_counter()
        search, each = self._search(entry.likelihood, [rival])
        search.follow(rival)
        bound, found = self._begun(search, each)
        known = entry.candidate
        if bound > known.lower_bound:
            seconds = known.seconds + time.perf_counter() - began
            candidate = Candidate(known.family, bound, found.total.K, seconds)
            self.entries[known.family] = Entry(candidate, entry.likelihood, found)

    def scale(self, reading: Reading, logs: Sequence[int], open_: Sequence[int]) -> list[int]:
        """The columns for the log scale: ``logs``, and those of the columns ``open_`` that are better there.

        Searches in which columns are independent, with all of these on the log scale and with none, find clusters; given
        those of the better search, the bound of each column by itself decides.
        """
        self.enter(reading.families(sorted([*logs, *open_]), [INDEPENDENT]))
        self.enter(reading.families(logs, [INDEPENDENT]))
        return sorted([*logs, *_log_scaled(self.sample, open_, self.rival(self.best.found))])

    @property
    def preferred(self) -> Entry:
        """The best of all."""
        return self.best_of(self.entries)

    def best_of(self, families: Iterable[str]) -> Entry:
        """The one with the highest bound whose clusters are no pieces of those of a fuller family.

        Many clusters of a simpler family often explain rows better than the few that people would name, as those of
        handwritten digits.  So simpler families, one after the other, are preferred where the bound is higher with at most
        `MANY_TIMES` as many clusters, or where the fuller family has found no clusters: its covariances may cost more than few
        rows can pay.
        """
        fullness = {name: self._fullness(self.entries[name].likelihood) for name in families}
        preferred: Entry | None = None
        for level in sorted(set(fullness.values()), reverse=True):
            best = self.highest(name for name in fullness if fullness[name] == level)
            if preferred is None or _better(best.candidate, preferred.candidate):
                preferred = best
        assert preferred is not None
        return preferred

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all rows."""
        return self.sample is self.source

    def family(self) -> Family:
        """The one chosen, and what came of its choice."""
        chosen = self.preferred
        others = [candidate for candidate in self.candidates if candidate is not chosen.candidate]
        return replace(self.opened(chosen), candidates=[chosen.candidate, *others])

    def opened(self, entry: Entry) -> Family:
        """A family, which goes on with what its search found, if the sample was all rows."""
        return Family(entry.likelihood, [], [self.rival(entry.found)], entry.found if self.is_whole else None)

    def judge(self, entry: Entry, fit: Fit[Any]) -> None:
        """Take what a whole fit with a family has found for what a short search has, less what learning costs."""
        found = Found(fit.outcome.model, fit.outcome.total)
        known = entry.candidate
        bound = begun(found, 1.0, fit.prepared.setup.problem.options.learn).bound
        candidate = Candidate(known.family, bound, found.total.K, known.seconds + fit.seconds)
        self.entries[known.family] = Entry(candidate, entry.likelihood, found)

    def rivals(self, fits: Fits) -> list[Entry]:
        """The families that have not been fitted and may be preferred to those that have been."""
        fitted = [self.entries[name] for name in fits]
        left = [entry for name, entry in self.entries.items() if name not in fits]
        return [entry for entry in left if not any(self._in_pieces(entry, other) for other in fitted)]

    def _in_pieces(self, entry: Entry, other: Entry) -> bool:
        """Whether the clusters of a family are pieces of those of another, a fuller one."""
        fuller = self._fullness(other.likelihood) > self._fullness(entry.likelihood)
        return fuller and not _no_pieces(entry.candidate, other.candidate)

    def next(self, fits: Fits, last: Entry) -> Entry | None:
        """The family to fit next, once others have followed the clusters of the last fit, if that is the best.

        One that comes close, or is behind by no more than that fit has gained over its short search: what short searches miss
        where clusters overlap is chance.
        """
        known = self.entries[last.candidate.family]
        best = self.best_fit(fits)
        if best is not known:
            return None
        rival = self.rival(known.found)
        for entry in self.rivals(fits):
            self._follow(entry, rival)
        left = self.rivals(fits)
        if not left:
            return None
        other = self.highest(entry.candidate.family for entry in left)
        behind = best.candidate.lower_bound - other.candidate.lower_bound
        gained = known.candidate.lower_bound - last.candidate.lower_bound
        return other if behind <= gained or near(best.candidate, other.candidate) else None

    def rival(self, found: Found) -> Rival:
        """The responsibilities of rows according to the outcome of a search, for others to start from."""
        return partial(
            responsibilities_of, found.model.likelihood, found.model.parameters(found.total, self.source.dtype)
        )

    def _fullness(self, likelihood: Likelihood) -> int:
        """How many ever simpler families there are."""
        other = likelihood.simpler(np.zeros(self.source.n_columns, np.bool_))
        return 0 if other is None else 1 + self._fullness(other)


def begun(found: Found, each: float, learn: Sequence[str], n_more: int = 0) -> Begun:
    """An outcome with its bound, less what BIC takes off for the hyperparameters that are learnt.

    A family that others hold as a special case is otherwise never ahead.  The rows that are not in the sample are explained as
    those in it are by parameters no surer than these make them.

    each : rows that each row of the sample stands for
    n_more : numbers that are learnt beside those of the prior
    """
    model, total = found
    sample = total * (1.0 / each)
    excess = model.posterior(total).explained.sum() - each * model.posterior(sample).explained.sum()
    cost = 0.5 * np.log(total.N.sum()) * n_more + _cost_of_learning(model.likelihood, learn, total.N)
    return Begun(model.bound(total) - float(cost + excess), found)


def sample_rows(source: ArraySource) -> int:
    """Rows of the sample on which families are compared."""
    return min(max(FEWEST_ROWS, source.n_rows // SMALLER), MOST_ROWS)


def choose(contest: RowContest, ways: Sequence[Reading]) -> None:
    """Look for the family that explains a sample best, of all ways to take the columns of a table, and scales of these.

    Where columns are correlated, logarithms may also make their relations linear, as those of lengths and areas: the best such
    family is tried with all columns in question on the log scale, too.
    """
    logs: list[int] = []
    judged: list[int] = []
    for reading in ways:
        open_ = [int(d) for d in np.flatnonzero(reading.long_tailed) if d not in judged]
        if open_:
            logs = contest.scale(reading, logs, open_)
            judged = sorted([*judged, *open_])
        contest.enter(reading.families(logs))
        if contest.preferred.candidate.family in reading.families(logs, CORRELATED):
            contest.enter(reading.families(judged, CORRELATED))
    contest.reconsider()


def _is_worth(entry: Entry, best: Entry) -> bool:
    """Whether a fit that is preferred has no more clusters than its bound pays for."""
    gain = entry.candidate.lower_bound - best.candidate.lower_bound
    more = entry.candidate.n_clusters - best.candidate.n_clusters
    return gain <= 0.0 or accepts(gain, more, best.candidate.lower_bound)


def _better(candidate: Candidate, fuller: Candidate) -> bool:
    """Whether the clusters of a simpler family are preferred to those of a fuller one, which may have found none."""
    return _no_pieces(candidate, fuller) and candidate.lower_bound > fuller.lower_bound


def _no_pieces(candidate: Candidate, fuller: Candidate) -> bool:
    """Whether one family found so few clusters that they are no pieces of those of another, which may have found none."""
    return fuller.n_clusters == 1 or candidate.n_clusters <= MANY_TIMES * fuller.n_clusters


def _log_scaled(sample: ArraySource, columns: Sequence[int], rival: Rival) -> list[int]:
    """The columns that independent Gaussians explain better on the log scale, given responsibilities."""
    read = [sample.read(chunk) for chunk in sample.batches(1)[0]]
    R = np.concatenate([weights[:, None] * rival(X) for X, weights in read])
    X, weights = (np.concatenate(parts) for parts in zip(*read))
    return [d for d in columns if _gain(X[:, [d]].astype(np.float64), weights, R) > 0.0]


def _gain(x: NDArray[np.floating], weights: NDArray[np.floating], R: NDArray[np.floating]) -> float:
    """How much more the log scale explains of one column (n, 1), in nats, given weighted responsibilities (n, K)."""
    explained = []
    for likelihood in (LogScale(DiagonalGaussian()), DiagonalGaussian()):
        family = likelihood.resolve(Sample.of(x, weights))
        S = R.T @ features(family, x)
        explained.append(family.log_marginal(R.sum(axis=0), S).sum() + weights @ family.log_base(x))
    return float(explained[0] - explained[1])


def _cost_of_learning(likelihood: Likelihood, names: Sequence[str], N: NDArray[np.floating]) -> float:
    """What BIC takes off for those of the hyperparameters ``names`` that are of the likelihood, in nats."""
    own = [name.removeprefix(OF_LIKELIHOOD) for name in names if name.startswith(OF_LIKELIHOOD)]
    return sum(likelihood.cost_of_learning(name, N) for name in own)
