"""Families of clusters of which only whole fits tell which is better."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from stickbreak import Mixture
from stickbreak.data import ArraySource
from stickbreak.estimators import _whole_fits, mixture
from stickbreak.estimators._chosen import Candidate, Entry, Found
from stickbreak.estimators._selection import RowContest, begun
from stickbreak.inference import LearningSearch
from stickbreak.likelihoods import REGISTRY, Gaussian, StudentT
from stickbreak.model.learning import OF_LIKELIHOOD

SMALL = {"random_state": 0, "n_jobs": 1}
FIRST, SECOND = "gaussian", "student_t"


def tails():
    """Three clusters with heavy tails: short searches find a little more with covariances than with tails."""
    rng = np.random.default_rng(5)
    labels = rng.integers(3, size=150)
    means = 3.0 * rng.standard_normal((3, 2))
    return means[labels] + rng.standard_normal((150, 2)) * np.sqrt(3.0 / rng.chisquare(3, (150, 1)))


@cache
def fitted():
    """A fit of the rows, which no test may change, and the families of the searches that are no part of the choice."""
    runs = []
    run = LearningSearch.run

    def counted(self, start):
        runs.append(type(self.model.likelihood))
        run(self, start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LearningSearch, "run", counted)
        found = Mixture(**SMALL).fit(tails())
    return found, runs


def test_the_best_of_whole_fits_is_taken():
    """The second is better, so another family follows its clusters; that is no better, and the last."""
    found, runs = fitted()
    assert runs[:2] == [Gaussian, StudentT]
    assert len(runs) == 3
    assert isinstance(found.model_.likelihood, StudentT)
    assert found.selection_[0].family == SECOND
    assert found.selection_[0].lower_bound > found.selection_[1].lower_bound
    assert found.selection_[0].n_clusters == found.n_clusters_


def test_bounds_compare_with_those_of_fits_that_are_told_the_family():
    found, _ = fitted()
    costs = {}
    for candidate, family in zip(found.selection_, (StudentT(), Gaussian())):
        fit = Mixture(family, **SMALL).fit(tails())
        assert candidate.n_clusters == fit.n_clusters_
        costs[candidate.family] = fit.lower_bound_ - candidate.lower_bound
    assert 0.0 < costs[FIRST] < costs[SECOND]  # what BIC takes off for one number more, the degrees of freedom


def setups(monkeypatch, error=None):
    """The families of the setups of fits from now on; an error, if there is one, ends the second."""
    setup = mixture.row_setup
    families = []

    def counted(*given):
        families.append(given[-1])
        if len(families) == 2 and error is not None:
            raise error
        return setup(*given)

    monkeypatch.setattr(mixture, "row_setup", counted)
    return families


def test_no_family_that_is_far_behind_is_fitted(monkeypatch):
    families = setups(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) @ [[1.0, 0.9], [0.0, 0.3]] + np.repeat([[0.0], [20.0]], 100, axis=0)
    monkeypatch.setattr(_whole_fits, "NEAR", 0.1)
    assert Mixture(**SMALL).fit(X).n_clusters_ == 2
    assert len(families) == 1
    monkeypatch.setattr(_whole_fits, "NEAR", np.inf)
    assert Mixture(**SMALL).fit(X).selection_[0].family == "gaussian"
    assert len(families) == 3  # one, and two: the second is no better


def test_the_table_has_the_whole_fit_also_where_no_other_family_is_fitted(monkeypatch):
    """What a short search found may be far below."""
    monkeypatch.setattr(RowContest, "rivals", lambda self, fits: [])
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2)) @ [[1.0, 0.9], [0.0, 0.3]] + np.repeat([[0.0], [20.0]], 100, axis=0)
    judged = []
    judge = RowContest.judge
    monkeypatch.setattr(RowContest, "judge", lambda self, *given: (judged.append(given[0]), judge(self, *given)))
    model = Mixture(**SMALL).fit(X)
    assert [entry.candidate.family for entry in judged] == [model.selection_[0].family]
    assert model.selection_[0].seconds > judged[0].candidate.seconds
    assert model.selection_[0].n_clusters == model.n_clusters_


@pytest.mark.parametrize(
    "given",
    [{"moves": ()}, {"init": "k-means++"}, {"n_init": 2}, {"algorithm": "stochastic"}, {"seeds": {"a": [[0.0, 0.0]]}}],
)
def test_given_starts_and_other_algorithms_have_one_fit(monkeypatch, given):
    monkeypatch.setattr(_whole_fits, "NEAR", np.inf)
    families = setups(monkeypatch)
    with pytest.warns(ConvergenceWarning):
        Mixture(max_laps=2, **given, **SMALL).fit(tails())
    assert len(families) == 1


@pytest.mark.parametrize("told", ["y", "groups"])
def test_labels_and_groups_have_one_fit(monkeypatch, told):
    """Their bounds are not those of single rows alone."""
    monkeypatch.setattr(_whole_fits, "NEAR", np.inf)
    families = setups(monkeypatch)
    codes = np.full(150, -1)
    codes[:4] = [0, 0, 1, 1]
    with pytest.warns(ConvergenceWarning):
        Mixture(max_laps=2, **SMALL).fit(tails(), **{told: codes})
    assert len(families) == 1


def contest(**found):
    """A contest in which families found a bound and a number of clusters."""
    made = RowContest(None, ArraySource(np.zeros((5, 3))), None, np.random.default_rng(0), 5)
    for name, (bound, K) in found.items():
        made.entries[name] = Entry(Candidate(name, bound, K, 0.0), REGISTRY[name](), None)
    return made


def names(entries):
    return [entry.candidate.family for entry in entries]


def test_pieces_of_the_clusters_of_a_fuller_family_are_not_fitted():
    made = contest(
        gaussian=(-10.0, 3), diagonal_gaussian=(-5.0, 7), spherical_gaussian=(-9.0, 6), student_t=(-11.0, 40)
    )
    assert names(made.rivals({"gaussian": None})) == ["spherical_gaussian", "student_t"]
    assert names(made.rivals({"gaussian": None, "student_t": None})) == ["spherical_gaussian"]
    assert names(made.rivals({"spherical_gaussian": None})) == ["gaussian", "diagonal_gaussian", "student_t"]


@pytest.mark.parametrize(
    ("known", "bound", "following"),
    [
        (-18.0, -17.0, "student_t"),  # near: within a nat for each cluster
        (-18.0, -16.0, None),  # the first is ahead by more
        (-22.0, -15.0, "student_t"),  # by no more than its fit has gained
        (-20.0, -21.0, "student_t"),
    ],
)
def test_a_family_is_fitted_that_is_near_or_behind_by_what_short_searches_miss(monkeypatch, known, bound, following):
    made = contest(gaussian=(known, 3), student_t=(-20.0, 3), diagonal_gaussian=(-90.0, 3))
    monkeypatch.setattr(made, "_follow", lambda entry, rival: None)
    monkeypatch.setattr(made, "rival", lambda found: None)
    first = made.entries["gaussian"]
    made.entries["gaussian"] = first._replace(candidate=Candidate("gaussian", bound, 3, 0.0))
    following_entry = made.next({"gaussian": None}, first)
    assert (None if following_entry is None else following_entry.candidate.family) == following


@pytest.mark.parametrize(
    ("bound", "K", "best"), [(-9.0, 1, "student_t"), (-9.0, 3, "gaussian"), (-7.5, 3, "student_t")]
)
def test_clusters_that_a_later_fit_has_more_must_be_worth_a_nat_each(bound, K, best):
    made = contest(gaussian=(-10.0, 1), student_t=(bound, K))
    assert made.best_fit(["gaussian", "student_t"]) is made.entries[best]
    assert made.best_fit(["student_t", "gaussian"]) is made.entries["student_t"]


def test_a_fuller_family_is_better_whatever_pieces_explain():
    made = contest(diagonal_gaussian=(-5.0, 7), gaussian=(-10.0, 3))
    assert made.best_fit(["diagonal_gaussian", "gaussian"]) is made.entries["gaussian"]


def test_a_fit_that_is_no_better_is_the_last():
    made = contest(gaussian=(-10.0, 3), student_t=(-11.0, 3), diagonal_gaussian=(-10.5, 3))
    assert made.next({"gaussian": None, "student_t": None}, made.entries["student_t"]) is None


def interrupt_second(monkeypatch, late):
    """Let Ctrl-C end the second search that is no part of the choice, before its first lap, or after its last."""
    run = LearningSearch.run
    searches = []

    def interrupted(self, start):
        searches.append(self)
        if len(searches) == 2:
            if late:
                run(self, start)
            raise KeyboardInterrupt
        run(self, start)

    monkeypatch.setattr(LearningSearch, "run", interrupted)


@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_interrupt_of_the_second_fit_keeps_the_better_so_far(monkeypatch, late):
    interrupt_second(monkeypatch, late)
    found = Mixture(**SMALL)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ laps"):
        found.fit(tails())
    best = max(found.selection_, key=lambda candidate: candidate.lower_bound)
    assert found.selection_[0] == best
    assert best.family == (SECOND if late else FIRST)
    assert type(found.model_.likelihood) is REGISTRY[best.family]
    assert not found.converged_


def assert_first(found, monkeypatch):
    """A fit is the first one."""
    assert found.selection_[0].family == FIRST
    monkeypatch.undo()
    monkeypatch.setattr(RowContest, "next", lambda self, fits, last: None)
    first = Mixture(**SMALL).fit(tails())
    assert found.lower_bounds_ == first.lower_bounds_
    np.testing.assert_array_equal(found.labels_, first.labels_)


def test_an_interrupt_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch):
    setups(monkeypatch, KeyboardInterrupt())
    found = Mixture(**SMALL)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ laps"):
        found.fit(tails())
    assert not found.converged_
    assert_first(found, monkeypatch)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("no room"),
        *(pytest.param(error, marks=pytest.mark.long) for error in (ValueError("no rows"), TypeError("no device"))),
    ],
)
def test_an_error_while_the_second_fit_is_set_up_keeps_the_first(monkeypatch, error):
    setups(monkeypatch, error)
    found = Mixture(**SMALL)
    failed = rf"rows are {FIRST}: comparing them with other families failed \({type(error).__name__}: {error}\)"
    with pytest.warns(RuntimeWarning, match=failed):
        found.fit(tails())
    assert_first(found, monkeypatch)


def test_a_checkpoint_goes_on_with_the_second_fit(monkeypatch, tmp_path):
    path = tmp_path / "fit.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        interrupt_second(patch, True)
        with pytest.warns(ConvergenceWarning):
            Mixture(checkpoint=path, **SMALL).fit(tails())
    whole, _ = fitted()
    for run in (LearningSearch.run, None):  # the second time the fit is over, and nothing is searched
        monkeypatch.setattr(LearningSearch, "run", run)
        found = Mixture(checkpoint=path, **SMALL).fit(tails())
        assert found.lower_bounds_ == whole.lower_bounds_
        assert found.model_.bound(found.summary_) == whole.model_.bound(whole.summary_)
        bounds = [[(c.family, c.lower_bound, c.n_clusters) for c in one.selection_] for one in (found, whole)]
        assert bounds[0] == bounds[1]


def test_one_cluster_with_heavy_tails_competes_with_several_gaussians():
    """Two clusters with tails, into which those of Gaussians turn, are further behind than one."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((100, 2)) * np.sqrt(2.0 / rng.chisquare(2, (100, 1)))
    found = Mixture(**SMALL).fit(X)
    tails = next(candidate for candidate in found.selection_ if candidate.family == "student_t")
    one = Mixture(StudentT(), moves=(), **SMALL).fit(X)
    learnt = [OF_LIKELIHOOD + name for name in StudentT().not_given()]
    assert tails.n_clusters == 1
    assert tails.lower_bound == pytest.approx(begun(Found(one.model_, one.summary_), 1.0, learnt).bound, abs=0.5)
