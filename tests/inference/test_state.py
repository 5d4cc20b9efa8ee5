"""States: laps one at a time, searches that are stopped, written down and taken up again, and tasks that travel."""

import pickle
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from stickbreak import HMM, Mixture, TopicModel
from stickbreak.allocations import DirichletProcess, HDPMarkovChain
from stickbreak.data import ArraySource, SequenceSource
from stickbreak.estimators._estimator import Estimator
from stickbreak.inference import Journal, Options, Threads, TruncationFree
from stickbreak.inference.init import one_cluster
from stickbreak.inference.lap import first_lap, lap
from stickbreak.inference.state import Floor, Problem
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import SEQUENCES, Model
from stickbreak.model.learning import tuned
from stickbreak.model.sequences import labelled
from stickbreak.moves import AdoptedBirth, BatchBirth, Schedule

pytestmark = pytest.mark.filterwarnings("ignore:not converged", "ignore:.*did not settle")
MOVES = "birth", "merge", "delete"


def rows(n=400, D=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0, 6, (4, D))[rng.integers(4, size=n)] + rng.normal(size=(n, D))


def series():
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(3, size=20), 12)
    return np.array([[0.0, 5.0], [5.0, 0.0], [9.0, 9.0]])[states] + rng.normal(size=(len(states), 2))


def counts():
    rng = np.random.default_rng(2)
    topics, shares = rng.dirichlet(np.full(30, 0.1), 3), rng.dirichlet(np.full(3, 0.3), 80)
    return np.array([rng.multinomial(40, p) for p in shares @ topics]).astype(float)


CASES = {
    "mixture": lambda: Mixture("gaussian", n_batches=3, random_state=0).fit(rows()),
    "mixture, not learnt": lambda: Mixture("diagonal_gaussian", learn=False, random_state=0).fit(rows()),
    "mixture, births at batches": lambda: Mixture(
        "gaussian", moves=(BatchBirth(n_new=5), "merge"), n_batches=2, random_state=0
    ).fit(rows()),
    "mixture, stochastic": lambda: Mixture(
        "gaussian", algorithm="stochastic", init="k-means++", n_init_clusters=5, n_batches=4, max_laps=8, random_state=0
    ).fit(rows()),
    "mixture, adopted births": lambda: Mixture(
        "gaussian", moves=(AdoptedBirth(n_new=4, n_rows=100), "merge"), n_batches=2, max_laps=25, random_state=0
    ).fit(rows(200)),
    "mixture, truncation-free": lambda: Mixture(
        "diagonal_gaussian", algorithm=TruncationFree(1), n_batches=2, max_laps=5, random_state=0
    ).fit(rows(200)),
    "topics": lambda: TopicModel(random_state=0, n_init_topics=6, max_laps=30).fit(counts()),
    "groups": lambda: TopicModel("gaussian", n_init_topics=4, max_laps=40, random_state=0).fit(
        rows(), lengths=[20] * 20
    ),
    "states": lambda: HMM("gaussian", random_state=0, max_laps=30).fit(series()),
    "symbols": lambda: HMM("categorical", n_batches=2, random_state=0, max_laps=40).fit(
        series().round() % 3, lengths=[120, 120]
    ),
}
every = pytest.mark.parametrize("name", CASES)


def assert_equal_fits(found, other):
    for a, b in zip(vars(found.summary_).values(), vars(other.summary_).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.lower_bound_ == other.lower_bound_  # which depends on all hyperparameters
    for one, same in zip(found.history_, other.history_, strict=True):
        assert replace(one, seconds=0.0, rows_per_second=0.0) == replace(same, seconds=0.0, rows_per_second=0.0)


def test_proposals_for_all_states_are_judged_over_a_lap_that_is_undone():
    """Each state is there twice; an extrapolation far too long lowers the bound, but a merge has parameters of its own."""
    X = series()
    source = SequenceSource(X, np.array([len(X)]))
    model = Model(Gaussian().resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
    labels = np.argmin(((X[:, None] - np.array([[0.0, 5.0], [5.0, 0.0], [9.0, 9.0]])) ** 2).sum(axis=2), axis=1)
    start = labelled(model.likelihood, source, labels + 3 * (np.arange(len(X)) % 2))
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(1, 50, 1e-3))
        schedule = Schedule(("merge",), model.kind.recipe)
        state, _ = first_lap(problem, model, model.ordered(start), schedule, np.random.default_rng(0), 0)
        assert state.total.K == 6
        assert state.proposals
        elsewhere = model.posterior(labelled(model.likelihood, source, np.arange(len(X)) * 6 // len(X)))
        after, record = lap(problem, state._replace(before=elsewhere, step=20.0))
    assert after.before is None  # the lap was undone
    assert after.step < 20.0
    assert [move.kind for move in record.moves if move.gains] == ["merge"]
    assert after.bound > state.bound
    assert after.total.K < 6
    assert after.bound == pytest.approx(model.bound(after.total), rel=1e-12)


@pytest.mark.parametrize("rests", [0, 3])
def test_laps_learn_where_that_gains_and_before_an_ascent_ends(rests, monkeypatch):
    X = series()
    source = SequenceSource(X, np.array([len(X)]))
    monkeypatch.setattr(type(SEQUENCES), "recipe", SEQUENCES.recipe._replace(rests=rests))
    model = Model(Gaussian().resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
    labels = (np.arange(len(X)) // 12 + np.random.default_rng(0).integers(2, size=len(X))) % 4
    learn = ("stickiness", "transition_concentration", "likelihood.scale")
    calls = []

    def counted(*task):
        calls.append(task)
        return tuned(*task)

    monkeypatch.setattr("stickbreak.inference.lap_end.tuned", counted)
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(1, 50, 1e-3, learn=learn, check=True))
        start = model.ordered(labelled(model.likelihood, source, labels))
        state, _ = first_lap(problem, model, start, Schedule((), model.kind.recipe), np.random.default_rng(0), 0)
        laps = 1
        while not state.done and laps < 200:
            state, _ = lap(problem, state)
            laps += 1
    assert state.done
    assert (len(calls) < laps - 4) == (rests > 0)
    assert tuned(state.posterior, learn, source.dtype).bound - state.bound < 1e-3 * state.total.K


def test_excursions_learn_late_and_seldom(monkeypatch):
    """They begin with what the model in hand has learnt, and what next gains next to nothing beside the tolerance rests."""
    X = series()
    source = SequenceSource(X, np.array([len(X)]))
    model = Model(Gaussian().resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
    start = labelled(model.likelihood, source, np.arange(len(X)) // 12 % 4)
    learn = ("stickiness", "likelihood.scale")
    seen = []

    def counted(*task):
        seen.append(task[0].bound)
        return tuned(*task)

    monkeypatch.setattr("stickbreak.inference.lap_end.tuned", counted)
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(1, 50, 1e-3, learn=learn))
        for floor, tol in ((None, 1e-3), (Floor(0.0, 4), 1e-3), (Floor(0.0, 4), 1e3)):
            excursion = replace(problem, floor=floor, options=replace(problem.options, tol=tol))
            seen.clear()
            schedule = Schedule((), model.kind.recipe)
            state, _ = first_lap(excursion, model, model.ordered(start), schedule, np.random.default_rng(0), 0)
            assert len(seen) == (floor is None)
            for _ in range(8):
                state, _ = lap(excursion, state)
            assert len(seen) >= 3 if tol < 1.0 else len(seen) == 2


def test_laps_learn_after_moves_that_were_accepted():
    X = series()
    source = SequenceSource(X, np.array([len(X)]))
    model = Model(Gaussian().resolve(Sample.of(X)), HDPMarkovChain(2.0, 5.0), SEQUENCES)
    labels = np.argmin(((X[:, None] - np.array([[0.0, 5.0], [5.0, 0.0], [9.0, 9.0]])) ** 2).sum(axis=2), axis=1)
    start = labelled(model.likelihood, source, labels + 3 * (np.arange(len(X)) % 2))
    with Threads(1) as threads:
        problem = Problem(source, threads, Options(1, 50, 1e-3, learn=("likelihood.scale",)))
        schedule = Schedule(("merge",), model.kind.recipe)
        state, _ = first_lap(problem, model, model.ordered(start), schedule, np.random.default_rng(0), 0)
        after, record = lap(problem, state._replace(rests=3, learnt=0.0))
        assert any(move.gains for move in record.moves)
        assert after.model.likelihood.scale != pytest.approx(state.model.likelihood.scale, rel=1e-6)


class Counting(Journal):
    """Counts laps."""

    notes = 0

    def note(self, leg):
        super().note(leg)
        self.notes += 1


class Stopped(Exception):
    """With the journal so far, as bytes."""


class Stopping(Counting):
    """Stops the search after some laps."""

    def note(self, leg):
        super().note(leg)
        if self.notes == self.last:
            raise Stopped(pickle.dumps(self.legs))


def stopped(case, notes, monkeypatch, legs=()):
    """The journal, as bytes, of a fit that goes on from another's and is stopped."""
    journal = Stopping(list(legs))
    journal.last = notes
    monkeypatch.setattr(Estimator, "_journal", lambda self: journal)
    with pytest.raises(Stopped) as found:
        case()
    return found.value.args[0]


@cache
def whole_fit(name):
    """A fit of `CASES`, which no test may change, and its journal."""
    written = Counting()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Estimator, "_journal", lambda self: written)
        return CASES[name](), written


@every
def test_a_search_taken_up_again_ends_in_the_same_bits(name, monkeypatch):
    """Stopped after any lap, written down, read, and gone on with; also when stopped twice."""
    whole, written = whole_fit(name)
    laps = len(whole.history_)
    before = written.notes - laps  # laps of other searches, such as those that choose a family
    rng = np.random.default_rng(0)
    for stop in {before + int(rng.integers(1, laps)), written.notes}:
        legs = pickle.loads(stopped(CASES[name], stop, monkeypatch))
        if stop < written.notes:
            legs = pickle.loads(stopped(CASES[name], 1, monkeypatch, legs))
        steps = {(one.number, one.explored_bound) for one in whole.history_}
        known = sum((one.number, one.explored_bound) in steps for leg in legs for one in leg.laps)
        assert known > 0
        new = []
        monkeypatch.setattr(Estimator, "_journal", lambda self, legs=legs: Journal(list(legs)))
        monkeypatch.setattr(Estimator, "_progress", lambda self, source, new=new: nullcontext(new.append))
        assert_equal_fits(CASES[name](), whole)
        assert len(new) == laps - known  # what was known is not done again


class Interrupted(Journal):
    """As if Ctrl-C came with a lap."""

    def note(self, leg):
        super().note(leg)
        if len(leg.laps) == 2 and len(self.legs) == self.last:
            raise KeyboardInterrupt


def fit_that_begins_on_a_sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24_000, 2)) + rng.integers(4, size=(24_000, 1)) * 6.0
    return Mixture("gaussian", random_state=0, n_jobs=1, learn=()).fit(X)


uninterrupted = cache(fit_that_begins_on_a_sample)


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize("ascent", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_search_that_was_interrupted_on_a_sample_is_taken_up_again(ascent, monkeypatch):
    """The lap that makes the sample's model one of all rows is not part of the search."""
    whole = uninterrupted()
    assert any(lap.sample_rows for lap in whole.history_)
    journal = Interrupted()
    journal.last = ascent
    monkeypatch.setattr(Estimator, "_journal", lambda self: journal)
    assert fit_that_begins_on_a_sample().history_[-2].sample_rows > 0
    monkeypatch.setattr(Estimator, "_journal", lambda self: Journal(journal.legs, journal.fit))
    assert_equal_fits(fit_that_begins_on_a_sample(), whole)


@pytest.mark.filterwarnings("ignore:not converged")
def test_a_fit_that_ran_out_of_laps_goes_on_with_more(monkeypatch):
    X = np.random.default_rng(0).standard_normal((500, 2)) + np.arange(500)[:, None] % 4 * 6.0

    def fit(laps):
        return Mixture("gaussian", random_state=0, n_jobs=1, max_laps=laps, tol=1e-9).fit(X)

    whole = fit(1000)
    journal = Journal()
    monkeypatch.setattr(Estimator, "_journal", lambda self: journal)
    fit(3)
    again = pickle.loads(pickle.dumps(journal))
    monkeypatch.setattr(Estimator, "_journal", lambda self: again)
    assert_equal_fits(fit(1000), whole)


def test_a_journal_of_another_fit_is_refused(monkeypatch):
    X = np.random.default_rng(0).standard_normal((90, 2))
    journal = Journal()
    monkeypatch.setattr(Estimator, "_journal", lambda self: journal)
    Mixture("gaussian", random_state=0).fit(X)
    others = [
        (Mixture("gaussian", random_state=0), X + 1.0),
        (Mixture("gaussian", random_state=1), X),
        (Mixture("gaussian", random_state=0), X[:80]),
    ]
    for estimator, data in others:
        monkeypatch.setattr(Estimator, "_journal", lambda self: Journal(journal.legs, journal.fit))
        with pytest.raises(ValueError, match="the journal is that of another fit"):
            estimator.fit(data)
    Mixture("gaussian", random_state=0, n_jobs=2, max_laps=900).fit(X)


class Travelling(Threads):
    """Every task, item and result is pickled on its way, as if workers were elsewhere."""

    travelled = 0

    def map(self, task, items):
        there = pickle.dumps(task)
        for item in items:
            Travelling.travelled += 1
            yield pickle.loads(pickle.dumps(pickle.loads(there)(pickle.loads(pickle.dumps(item)))))

    def over(self, source, task, items):
        there = pickle.loads(pickle.dumps(source))
        for item in items:
            Travelling.travelled += 1
            result = pickle.loads(pickle.dumps(task))(there, pickle.loads(pickle.dumps(item)))
            yield pickle.loads(pickle.dumps(result))


@every
def test_tasks_can_run_elsewhere(name, monkeypatch):
    (here, _), before = whole_fit(name), Travelling.travelled
    monkeypatch.setattr(Estimator, "_executor", lambda self, X=None: Travelling(1))
    assert_equal_fits(CASES[name](), here)
    assert Travelling.travelled > before + 10


def problem(threads, X, **options):
    return Problem(ArraySource(X), threads, Options(check=True, **options))


def begun(task, X, seed=0):
    model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
    return first_lap(task, model, one_cluster(model), Schedule(MOVES), np.random.default_rng(seed), 0)[0]


def digest(state):
    return pickle.dumps(state._replace(posterior=(state.model, state.total)))


def test_a_lap_is_a_function():
    """It leaves its state as it was; called again, it gives the same; the bound rises, and births find the clusters."""
    X = rows()
    with Threads(1) as threads:
        task = problem(threads, X, n_batches=2)
        state = begun(task, X)
        for _ in range(12):
            before = digest(state)
            after, record = lap(task, state)
            again, same = lap(task, state)
            assert digest(state) == before
            np.testing.assert_array_equal(after.total.S, again.total.S)
            assert (after.bound, record.moves) == (again.bound, same.moves)
            assert after.bound >= state.bound - 1e-9 * abs(state.bound)
            assert after.bound == after.model.bound(after.total)
            assert after.total.N.sum() == pytest.approx(len(X), rel=1e-12)
            state = pickle.loads(pickle.dumps(after))
    assert state.total.K == 4


def test_an_ascent_without_moves_ends_where_nothing_changes():
    X = rows()
    with Threads(1) as threads:
        task = problem(threads, X, tol=1e-6)
        model = Model(Gaussian().resolve(Sample.of(X)), DirichletProcess(1.0))
        state, _ = first_lap(task, model, one_cluster(model), Schedule(()), np.random.default_rng(0), 0)
        laps = 0
        while not state.done:
            state, _ = lap(task, state)
            laps += 1
    assert laps < 10
    assert state.total.K == 1
