"""The HMM estimator: scikit-learn's contract, inputs and parameters, its scores, what survives a failure."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import stickbreak
from interrupted import Interrupted
from stickbreak import HMM, Mixture, TopicModel
from stickbreak.allocations import DirichletProcess, Duration, FiniteMarkovChain, HDPMarkovChain
from stickbreak.inference import Stochastic
from stickbreak.inference.states.excursions import TUNING
from stickbreak.likelihoods import AutoregressiveGaussian, Categorical

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LENGTHS = [150, 1, 59, 90]  # 300 rows


def toy(seed=0, lengths=LENGTHS, K=4, stay=20, D=2, spread=10.0):
    """Well separated states that last about 20 steps; every state is visited."""
    rng, z = np.random.default_rng(seed), []
    for n in lengths:
        runs = np.concatenate([rng.permutation(K) for _ in range(1 + n // (K * stay // 2))])
        z.append(np.repeat(runs, rng.integers(stay // 2, 2 * stay, len(runs)))[:n])
    z = np.concatenate(z)
    centers = spread * np.column_stack([np.cos(np.arange(K)), np.sin(np.arange(K))] * D)[:, :D] * np.sqrt(K)
    return rng.normal(centers[z], 1.0), z


def bits(seed=0, n=240, K=2, D=4):
    rng = np.random.default_rng(seed)
    z = np.repeat(rng.integers(K, size=n // 12), 12)
    return (rng.random((n, D)) < np.where(z[:, None] == np.arange(D) % K, 0.9, 0.1)).astype(float)


def codes(seed=0, n=240):
    rng = np.random.default_rng(seed)
    chances = np.array([[0.8, 0.1, 0.05, 0.05], [0.05, 0.05, 0.2, 0.7]])
    z = np.repeat(np.arange(n // 12) % 2, 12)
    return np.array([[rng.choice(4, p=chances[k])] for k in z], float)


def swings(seed=0, n=300, D=2):
    """Two regimes of an autoregressive process."""
    rng, X = np.random.default_rng(seed), np.zeros((n, D))
    for t in range(1, n):
        X[t] = (0.95 if (t // 50) % 2 else -0.9) * X[t - 1] + rng.standard_normal(D)
    return X


def hmm(**parameters):
    return HMM(**{"likelihood": "gaussian", "random_state": 0, "n_jobs": 1, "max_laps": 12, "tol": 1e-4, **parameters})


def fit(X, lengths=None, **parameters):
    return hmm(**parameters).fit(X, lengths=lengths)


def everything(estimator):
    """All attributes, arrays as bytes."""
    return pickle.dumps(vars(estimator))


@pytest.fixture(scope="module")
def data():
    return toy()


@pytest.fixture(scope="module")
def model(data):
    return fit(data[0], LENGTHS)


# The contract ----------------------------------------------------------------------------------------------------------


ORDERED = "the state of a row depends on the rows around it"


def rows_alone(estimator):
    """Conventions for estimators whose rows do not depend on each other."""
    return dict.fromkeys(["check_methods_sample_order_invariance", "check_methods_subset_invariance"], ORDERED)


@parametrize_with_checks([HMM("gaussian", max_laps=2, n_jobs=1)], expected_failed_checks=rows_alone)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@parametrize_with_checks([HMM(max_laps=2, n_jobs=1)], legacy=False)
def test_scikit_learn_conventions_where_the_family_is_chosen(estimator, check):
    """Those of parameters, tags and shapes: the choice takes longer than the fit."""
    check(estimator)


# What is found ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_search_among_few_rows_ends_before_its_laps_do():
    """The laps of all excursions count; a warning would say that the bound has not settled."""
    rng = np.random.default_rng(0)
    phase = 2.0 * np.pi * np.arange(400) / 11.0 + 0.2 * rng.standard_normal(400).cumsum()
    X = (np.sin(phase) ** 2 + 0.05 * rng.standard_normal(400))[:, None]
    found = HMM("diagonal_gaussian", random_state=0, n_jobs=1).fit(X)  # a warning is an error
    assert found.converged_
    assert found.n_laps_ > 1000


@pytest.mark.parametrize(
    ("seed", "start"), [(0, {}), (1, {"init": "blocks", "n_init_states": 20}), (1, {"algorithm": "full"})]
)
def test_states_far_apart_are_found(seed, start):
    X, z = toy(seed)
    found = fit(X, LENGTHS, max_laps=60, **start)
    assert found.n_states_ == 4
    assert adjusted_rand_score(z, found.labels_) == 1.0
    assert np.all(np.diff(found.lower_bounds_) >= -1e-9 * np.abs(found.lower_bounds_[1:]))


@pytest.mark.parametrize(("n", "init"), [(1, "one"), (2, "blocks"), (4, "one"), (7, "one"), (7, "blocks")])
def test_a_finite_chain_keeps_to_its_number_of_states(n, init, data):
    found = fit(data[0], LENGTHS, allocation="finite", n_init_states=n, init=init, max_laps=25)
    assert found.n_states_ == min(n, 4)
    assert found.transition_matrix_.shape == (found.n_states_, found.n_states_)
    with pytest.raises(ValueError, match="init has 4 clusters, but the allocation has no more than 3"):
        fit(data[0], LENGTHS, allocation=FiniteMarkovChain(3), init=data[1])


def test_what_is_reported(data, model):
    K = model.n_states_
    np.testing.assert_allclose(model.transition_matrix_.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.start_probabilities_.sum(), 1.0)
    assert model.transition_matrix_.shape == (K, K)
    assert model.start_probabilities_.shape == (K,)
    assert model.labels_.shape == (len(data[0]),)
    assert model.means_.shape == (K, 2)
    assert model.covariances_.shape == (K, 2, 2)
    assert model.lower_bound_ == model.lower_bounds_[-1] == model.model_.bound(model.summary_)
    assert model.n_laps_ == len(model.history_) <= 12
    assert model.n_features_in_ == 2
    assert model.stickiness_ > 0.0
    assert model.transition_concentration_ > 0.0
    np.testing.assert_allclose(model.durations(), 1.0 / (1.0 - model.transition_matrix_.diagonal()))
    changes = sum((np.diff(part) != 0).sum() for part in np.split(data[1], np.cumsum(LENGTHS)[:-1]))
    assert 0.3 < model.durations().mean() / (sum(LENGTHS) / (changes + len(LENGTHS))) < 3.0
    np.testing.assert_array_equal(fit(np.ones((9, 1)), likelihood="bernoulli").transition_matrix_, [[1.0]])
    assert fit(np.ones((9, 1)), likelihood="bernoulli").durations() == np.inf


def test_predictions_for_the_rows_fitted(data, model):
    X, K = data[0], model.n_states_
    np.testing.assert_array_equal(model.predict(X, LENGTHS), model.labels_)
    np.testing.assert_array_equal(model.decode(X, LENGTHS), model.labels_)
    np.testing.assert_array_equal(clone(model).fit_predict(X, lengths=LENGTHS), model.labels_)
    chances = model.predict_proba(X, LENGTHS)
    assert chances.shape == (len(X), K)
    assert (chances >= 0.0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.decode(X, LENGTHS, method="map"), chances.argmax(axis=1))
    np.testing.assert_allclose(chances.sum(axis=0), model.summary_.N, rtol=1e-2)
    with pytest.raises(ValueError, match="method must be 'viterbi' or 'map'"):
        model.decode(X, LENGTHS, method="best")
    with pytest.raises(NotFittedError):
        hmm().predict(X)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "autoregressive_gaussian"])
def test_sequences_do_not_depend_on_each_other(likelihood):
    X = {"gaussian": toy()[0][:240], "bernoulli": bits(), "autoregressive_gaussian": swings(n=240)}[likelihood]
    found, lengths = fit(X, [100, 140], likelihood=likelihood), [70, 1, 169]
    parts = np.split(X, np.cumsum(lengths)[:-1])
    for call in (found.predict, found.predict_proba):
        np.testing.assert_allclose(call(X, lengths), np.concatenate([call(part) for part in parts]), atol=1e-10)
        np.testing.assert_array_equal(call(parts), call(X, lengths))
    assert found.score(X, lengths=lengths) == pytest.approx(sum(found.score(part) for part in parts), rel=1e-10)
    order = [2, 0, 1]
    shuffled = np.concatenate([parts[i] for i in order])
    assert found.score(shuffled, lengths=[lengths[i] for i in order]) == pytest.approx(found.score(X, lengths=lengths))


def test_a_list_of_sequences(data, model):
    parts = np.split(data[0], np.cumsum(LENGTHS)[:-1])
    found = fit(parts)
    assert found.lower_bounds_ == model.lower_bounds_
    np.testing.assert_array_equal(found.labels_, model.labels_)
    np.testing.assert_array_equal(model.predict(parts), model.labels_)
    frames = [pd.DataFrame(part, columns=["a", "b"]) for part in parts]
    framed = fit(frames)
    assert list(framed.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(framed.labels_, model.labels_)
    with pytest.raises(ValueError, match="lengths go with one array"):
        fit(parts, LENGTHS)
    with pytest.raises(ValueError, match="all sequences must have the same columns"):
        fit([parts[0], parts[2][:, :1]])


def test_an_ascent_does_not_end_while_learning_gains(data):
    tol = 1e-4
    history = fit(data[0], LENGTHS, tol=tol).history_
    bounds = [lap.explored_bound for lap in history if lap.ascent == 1]
    assert history[-1].ascent > 1
    assert bounds[-1] - bounds[-2] < 4 * TUNING.per_row * len(data[0])  # of 4 states, to the tolerance of excursions


def test_frames_maps_and_short_floats(tmp_path, data, model):
    X = data[0]
    np.testing.assert_array_equal(fit(pd.DataFrame(X, columns=["a", "b"]), LENGTHS).labels_, model.labels_)
    np.save(tmp_path / "X.npy", X)
    mapped = fit(np.load(tmp_path / "X.npy", mmap_mode="r"), LENGTHS)
    assert mapped.lower_bounds_ == model.lower_bounds_
    np.testing.assert_array_equal(mapped.labels_, model.labels_)
    np.testing.assert_array_equal(mapped.predict(np.load(tmp_path / "X.npy", mmap_mode="r"), LENGTHS), model.labels_)
    short = fit(X.astype(np.float32), np.array(LENGTHS, np.uint8), max_laps=40)
    assert short.n_states_ == 4
    np.testing.assert_array_equal(short.labels_, model.labels_)
    assert short.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-4)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "autoregressive_gaussian"])
def test_the_result_does_not_depend_on_threads(likelihood, monkeypatch):
    monkeypatch.setattr("stickbreak.data.sequences.STEPS", 60)
    X = {"gaussian": toy()[0][:240], "bernoulli": bits(), "autoregressive_gaussian": swings(n=240)}[likelihood]
    one, two = (fit(X, [200, 40], likelihood=likelihood, n_jobs=n) for n in (1, 2))
    assert one.lower_bounds_ == two.lower_bounds_
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.transition_matrix_, two.transition_matrix_)


def test_one_batch_is_full_inference(data):
    one, full = fit(data[0], LENGTHS, n_batches=1), fit(data[0], LENGTHS, algorithm="full", n_batches=3)
    assert one.lower_bounds_ == full.lower_bounds_
    np.testing.assert_array_equal(one.labels_, full.labels_)
    more = fit(data[0], LENGTHS, n_batches=50)  # as many as there are sequences
    assert more.n_states_ == 4


# Scores ----------------------------------------------------------------------------------------------------------------


def emissions(found, X):
    """Log chances of rows under each state, from what the estimator reports; nothing for rows that are missing."""
    if isinstance(found.probabilities_, tuple):
        found_logs = [np.log(p[:, np.nan_to_num(x).astype(int)]).T for p, x in zip(found.probabilities_, X.T)]
        return np.where(np.isnan(X).all(axis=1)[:, None], 0.0, sum(found_logs))
    p = found.probabilities_
    return np.where(np.isnan(X)[:, None, :], 0.0, np.log(np.where(X[:, None, :] > 0.0, p, 1.0 - p))).sum(axis=2)


def forward(found, C, lengths):
    """Log evidence by the forward algorithm in the log domain."""
    total = 0.0
    for a, b in pairwise(np.cumsum([0, *lengths])):
        f = np.log(found.start_probabilities_) + C[a]
        for t in range(a + 1, b):
            f = logsumexp(f[:, None] + np.log(found.transition_matrix_), axis=0) + C[t]
        total += logsumexp(f)
    return total


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("likelihood", ["bernoulli", "categorical"])
@pytest.mark.parametrize("allocation", ["hdp", "finite"])
def test_the_score_is_the_forward_algorithm(likelihood, allocation, missing):
    X, lengths = bits() if likelihood == "bernoulli" else codes(), [100, 1, 139]
    if missing:
        X[[0, 7, 8, 9, 239]] = np.nan
    found = fit(X, lengths, likelihood=likelihood, allocation=allocation, n_init_states=3)
    assert found.n_states_ > 1
    C = emissions(found, X)
    assert found.score(X, lengths=lengths) == pytest.approx(forward(found, C, lengths), abs=1e-8)
    other = X[::-1].copy()
    assert found.score(other) == pytest.approx(forward(found, C[::-1], [240]), abs=1e-8)
    assert found.score(other[:1]) == pytest.approx(forward(found, C[::-1][:1], [1]), abs=1e-8)


def test_the_score_is_that_of_hmmlearn():
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    X, lengths = codes(), [100, 1, 139]
    found = fit(X, lengths, likelihood="categorical")
    other = hmmlearn.CategoricalHMM(found.n_states_)
    other.startprob_, other.transmat_ = found.start_probabilities_, found.transition_matrix_
    other.emissionprob_ = found.probabilities_[0]
    assert found.score(X, lengths=lengths) == pytest.approx(other.score(X.astype(int), lengths), abs=1e-8)


def test_the_bound_is_below_the_evidence_of_what_was_fitted(data, model):
    """Parameters chosen for rows explain them better than the mixture of all parameters does."""
    assert model.lower_bound_ < model.score(data[0], lengths=LENGTHS)


# Samples ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "categorical", "autoregressive_gaussian", "order 2"])
def test_samples(likelihood):
    X = {"gaussian": toy()[0], "bernoulli": bits(), "categorical": codes()}.get(likelihood, swings())
    kind = AutoregressiveGaussian(order=2) if likelihood == "order 2" else likelihood
    found = fit(X, likelihood=kind)
    for n in (1, 37):
        rows, states = found.sample(n)
        assert rows.shape == (n, X.shape[1])
        assert states.shape == (n,)
        assert np.isfinite(rows).all()
        assert set(states) <= set(range(found.n_states_))
    again = found.sample(37)
    np.testing.assert_array_equal(again[0], rows)
    assert np.isfinite(found.score(rows))
    if likelihood == "bernoulli":
        assert set(np.unique(rows)) <= {0.0, 1.0}
    for wrong in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n_samples must be a whole number"):
            found.sample(wrong)


def test_samples_move_as_the_chain_does(model):
    _, states = model.sample(20_000)
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (states[:-1], states[1:]), 1.0)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), model.transition_matrix_, atol=0.03)


# Files, more data, starts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["gaussian", "autoregressive_gaussian", AutoregressiveGaussian(order=2)])
def test_categories_are_no_numbers(likelihood):
    words = pd.DataFrame({"a": np.arange(60.0), "b": np.array(["x", "y", "z"])[np.arange(60) % 3]})
    with pytest.raises(ValueError, match=r"column 1 holds categories, which (Autoregressive)?Gaussian cannot use"):
        fit(words, likelihood=likelihood)


@pytest.mark.parametrize("case", ["hdp", "finite", "autoregressive", "codes"])
def test_a_file_keeps_everything(tmp_path, case):
    kinds = {"autoregressive": AutoregressiveGaussian(order=2), "codes": "categorical"}
    X = {"autoregressive": swings(), "codes": codes()}.get(case, toy()[0][:300])
    lengths = [len(X) - 60, 60]
    allocation = "finite" if case == "finite" else "hdp"
    found = fit(X, lengths, likelihood=kinds.get(case, "gaussian"), allocation=allocation, n_init_states=5, max_laps=12)
    found.save(tmp_path / "states.safetensors")
    again = stickbreak.load(tmp_path / "states.safetensors")
    assert isinstance(again, HMM)
    assert again.lower_bound_ == found.lower_bound_
    for call in ("predict", "predict_proba"):
        np.testing.assert_array_equal(getattr(again, call)(X, lengths), getattr(found, call)(X, lengths))
    assert again.score(X, lengths=lengths) == found.score(X, lengths=lengths)
    np.testing.assert_array_equal(again.transition_matrix_, found.transition_matrix_)
    np.testing.assert_array_equal(again.durations(), found.durations())
    np.testing.assert_array_equal(again.sample(9)[0], found.sample(9)[0])
    again.partial_fit(X, lengths=lengths)
    twin = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(twin.predict(X, lengths), found.labels_)


def test_partial_fit_adds_what_sequences_say(data):
    X = data[0]
    found = hmm().partial_fit(X[:210], lengths=[150, 1, 59])
    means = found.means_
    assert found.n_states_ == 4
    found.partial_fit(X[210:])
    assert found.summary_.N.sum() == pytest.approx(len(X))
    assert found.summary_.M.sum() == pytest.approx(len(X) - 4)
    assert found.summary_.begins.sum() == pytest.approx(4.0)
    assert found.lower_bound_ == found.model_.bound(found.summary_)
    assert np.abs(found.means_ - means).max() < 1.0
    np.testing.assert_array_equal(found.labels_, found.predict(X[210:]))
    with pytest.raises(ValueError, match="features"):
        found.partial_fit(X[:, :1])


def test_starts_that_are_given(data, model):
    X, z = data
    names = np.array(["d", "b", "c", "a"])[z]
    mixture = Mixture("gaussian", random_state=0, n_jobs=1).fit(X)
    for init in (z, names, z.astype(float), list(z), model, mixture):
        found = fit(X, LENGTHS, init=init, moves=())
        assert found.n_states_ == 4
        assert adjusted_rand_score(z, found.labels_) == 1.0
        assert found.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-3)
    fixed = fit(X, LENGTHS, init=z // 2, moves=())
    assert fixed.n_states_ == 2
    coded = fit(bits(), likelihood="bernoulli", init=np.arange(240) // 12 % 2, moves=())
    assert coded.n_states_ == 2
    swing = fit(swings(), likelihood="autoregressive_gaussian", init=np.arange(300) // 50 % 2, moves=())
    assert adjusted_rand_score(np.arange(300) // 50 % 2, swing.labels_) > 0.8
    again = fit(swings(1), likelihood="autoregressive_gaussian", init=swing, moves=())
    assert again.n_states_ == 2


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (np.zeros(5), "init must be labels"),
        (np.full(300, np.nan), "labels must not be NaN.*row 0 has nan"),
        (np.zeros((300, 2)), "init must be labels"),
        ("k-means++", "init must be one of 'one', 'blocks'"),
    ],
)
def test_starts_that_are_none(data, init, message):
    with pytest.raises(ValueError, match=message):
        fit(data[0], LENGTHS, init=init)


def test_starts_of_other_data(data):
    narrow, topics = fit(data[0][:, :1], max_laps=5), TopicModel(random_state=0, n_init_topics=2, max_laps=2)
    topics.fit(np.ones((4, 2), int))
    for init in (narrow, topics):
        with pytest.raises(ValueError, match="does not fit these rows"):
            fit(data[0], LENGTHS, init=init)
    with pytest.raises(NotFittedError):
        fit(data[0], LENGTHS, init=hmm())


@pytest.mark.parametrize("algorithm", ["stochastic", Stochastic(decay=0.7)])
def test_stochastic_inference(algorithm):
    lengths = [400, 1, 199, 200]
    X, z = toy(3, lengths)
    found = fit(X, lengths, algorithm=algorithm, n_batches=4, max_laps=40)
    assert found.n_states_ == 4
    assert adjusted_rand_score(z, found.labels_) > 0.98
    assert found.summary_.N.sum() == pytest.approx(len(X))
    assert found.summary_.M.sum() == pytest.approx(len(X) - 4)
    assert found.lower_bound_ == found.model_.bound(found.summary_)


def test_hyperparameters_given_and_learnt(data):
    X, z = data
    given = fit(X, LENGTHS, stickiness=3.0, transition_concentration=2.0, init=z, moves=())
    assert (given.stickiness_, given.transition_concentration_) == (3.0, 2.0)
    assert given.model_.allocation.concentration == 5.0
    lasting = fit(X, LENGTHS, stickiness=Duration(20), transition_concentration=2.0, init=z, moves=())
    assert lasting.stickiness_ == 38.0
    flat = fit(X, LENGTHS, stickiness=0.0, transition_concentration=2.0, init=z, moves=())
    learnt = fit(X, LENGTHS, init=z, moves=(), concentration="learn")
    assert learnt.lower_bound_ > max(given.lower_bound_, lasting.lower_bound_, flat.lower_bound_)
    prior = HDPMarkovChain(1.5, 4.0)
    kept = fit(X, LENGTHS, allocation=prior, stickiness=1.0, transition_concentration=1.0, init=z, moves=())
    assert kept.model_.allocation == prior


# Missing rows ----------------------------------------------------------------------------------------------------------


def test_rows_that_are_missing(data):
    X, z = data[0].copy(), data[1]
    gone = np.zeros(len(X), np.bool_)
    gone[[0, 5, 150, 299]] = gone[200:210] = True
    X[gone] = np.nan
    found = fit(X, LENGTHS)
    assert found.n_states_ == 4
    assert adjusted_rand_score(z[~gone], found.labels_[~gone]) == 1.0
    assert found.summary_.N.sum() == pytest.approx((~gone).sum())
    assert np.isfinite(found.predict_proba(X, LENGTHS)).all()
    assert np.isfinite(found.score(X, lengths=LENGTHS))
    with pytest.raises(ValueError, match="no row has an observation"):
        fit(np.full((5, 2), np.nan))
    one = fit(np.array([[1.0, 2.0], [np.nan, np.nan]]), likelihood="diagonal_gaussian", max_laps=5)
    assert one.labels_.shape == (2,)


@pytest.mark.parametrize("start", [{}, {"init": "blocks"}, {"init": "blocks", "n_init_states": 1}])
def test_rows_that_are_nearly_all_missing(start):
    """Blocks of rows may hold no row that is observed."""
    X = np.full((100, 2), np.nan)
    X[[3, 4, 60]] = [[1.0, 2.0], [2.0, 1.0], [0.0, 0.0]]
    found = fit(X, likelihood="diagonal_gaussian", max_laps=40, **start)
    assert found.n_states_ >= 1
    assert found.summary_.N.sum() == pytest.approx(3.0)


def test_the_place_of_a_value_that_cannot_be_used(data, model):
    X = data[0].copy()
    X[37, 1] = np.nan
    for call in (lambda: fit(X, LENGTHS), lambda: model.predict(X, LENGTHS), lambda: model.score(X, lengths=LENGTHS)):
        with pytest.raises(ValueError, match="row 37, column 1"):
            call()
    X[37, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 37, column 1 \('b'\)"):
        fit(pd.DataFrame(X, columns=["a", "b"]), LENGTHS)
    assert np.isfinite(fit(np.where(np.isinf(X), np.nan, X), likelihood="diagonal_gaussian", max_laps=9).lower_bound_)
    wrong = bits()  # rows that repeat
    wrong[100, 2] = 3.0
    with pytest.raises(ValueError, match="row 100, column 2"):
        fit(wrong, likelihood="bernoulli")
    moving = swings()
    moving[42, 1] = np.nan
    with pytest.raises(ValueError, match="row 42, column 1"):
        fit(moving, likelihood="autoregressive_gaussian")


def test_short_sequences_of_steps_with_history():
    X = swings()
    found = fit(X, [1, 2, 1, 196, 100], likelihood=AutoregressiveGaussian(order=2))
    assert found.summary_.N.sum() == pytest.approx(300 - (1 + 2 + 1 + 2 + 2))
    assert found.labels_.shape == (300,)
    assert np.isfinite(found.predict_proba(X[:1])).all()
    with pytest.raises(ValueError, match="no row has an observation"):
        fit(X[:4], [1, 1, 1, 1], likelihood="autoregressive_gaussian")


# What survives a failure -----------------------------------------------------------------------------------------------

BAD = {
    "sum": ({}, ([1, 2],), "lengths must be whole numbers"),
    "zero": ({}, ([300, 0],), "lengths must be whole numbers"),
    "negative": ({}, ([301, -1],), "lengths must be whole numbers"),
    "overflow": ({}, ([2**62] * 4 + [300],), "lengths must be whole numbers"),
    "floats": ({}, ([200.0, 100.0],), "lengths must be whole numbers"),
    "table": ({}, ([[300]],), "lengths must be whole numbers"),
    "nothing": ({}, ([],), "lengths must be whole numbers"),
    "name": ({"init": "random"}, (), "init must be one of"),
    "unit": ({"allocation": DirichletProcess()}, (), "an allocation of sequences"),
    "allocation": ({"allocation": "dp"}, (), "one of 'hdp', 'finite'"),
    "states": ({"n_init_states": 0}, (), "a whole number of at least 1"),
    "stickiness": ({"stickiness": -1.0}, (), "a number of at least 0, a Duration, or 'learn'"),
    "nan": ({"stickiness": np.nan}, (), "a number of at least 0, a Duration, or 'learn'"),
    "text": ({"stickiness": "auto"}, (), "a number of at least 0, a Duration, or 'learn'"),
    "alpha": ({"transition_concentration": 0.0}, (), "a positive number or 'learn'"),
    "huge": ({"transition_concentration": 1e12}, (), "from 1e-12 to 1e"),
    "start": ({"start_concentration": "learn"}, (), "a positive number"),
    "gamma": ({"concentration": -1.0}, (), "a positive number or 'learn'"),
    "moves": ({"moves": ("split",)}, (), "names among .* list, tuple or set"),
    "likelihood": ({"likelihood": "words"}, (), "likelihood must be one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_failure_leaves_the_estimator_as_it_was(case, data, model):
    parameters, arguments, message = BAD[case]
    estimator = pickle.loads(pickle.dumps(model))
    estimator.set_params(**parameters)
    before = everything(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.fit(data[0], None, *arguments)
    assert everything(estimator) == before
    never = hmm(**parameters)
    with pytest.raises(ValueError, match=message):
        never.fit(data[0], None, *arguments)
    assert vars(never).keys() == never.get_params().keys()


def test_tables_that_are_none(data, model):
    estimator = pickle.loads(pickle.dumps(model))
    before = everything(estimator)
    for wrong in ([], np.zeros((0, 2)), np.zeros(5), [np.zeros((0, 2))], [np.ones((3, 2)), np.zeros((0, 2))]):
        with pytest.raises(ValueError, match=r"0 sample|2D array|has no rows"):
            estimator.fit(wrong)
        with pytest.raises(ValueError, match=r"0 sample|2D array|has no rows"):
            estimator.predict(wrong)
    with pytest.raises(TypeError, match="dense"):
        estimator.fit(sparse.csr_array(data[0]))
    with pytest.raises(TypeError, match="dense"):
        estimator.set_params(likelihood="bernoulli").fit(sparse.csr_array(bits()))
    estimator.set_params(likelihood="gaussian")
    with pytest.raises(ValueError, match="lengths must be whole numbers"):
        estimator.predict(data[0], [3])
    assert everything(estimator) == before


@pytest.mark.parametrize("lap", [1, 3, 14])
def test_an_interrupted_fit_keeps_the_best_model(lap, data):
    kept = Interrupted("gaussian", random_state=0, n_jobs=1, tol=1e-9, verbose=lap)
    with pytest.warns(ConvergenceWarning, match=f"interrupted after {lap} laps"):
        assert kept.fit(data[0], lengths=LENGTHS) is kept
    assert kept.lower_bound_ == kept.lower_bounds_[-1]
    assert not kept.converged_
    assert kept.summary_.N.sum() == pytest.approx(len(data[0]))
    assert kept.labels_.shape == (len(data[0]),)


def test_an_interrupt_before_the_first_lap_changes_nothing(data, model, monkeypatch):
    estimator = pickle.loads(pickle.dumps(model))
    before = everything(estimator)

    def interrupted(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("stickbreak.inference.lap.visit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(data[0][:50])
    assert everything(estimator) == before


# Pipelines -------------------------------------------------------------------------------------------------------------


def test_lengths_are_routed_through_a_pipeline(data):
    X = data[0]
    with sklearn.config_context(enable_metadata_routing=True):
        last = hmm().set_fit_request(lengths=True).set_predict_request(lengths=True)
        last = last.set_predict_proba_request(lengths=True)
        pipeline = make_pipeline(StandardScaler(), last).fit(X, lengths=LENGTHS)
        direct = fit(StandardScaler().fit_transform(X), LENGTHS)
        np.testing.assert_array_equal(pipeline[-1].labels_, direct.labels_)
        np.testing.assert_array_equal(pipeline.predict(X, lengths=LENGTHS), direct.labels_)
        scaled = pipeline[0].transform(X)
        np.testing.assert_array_equal(pipeline.predict_proba(X, lengths=LENGTHS), direct.predict_proba(scaled, LENGTHS))
    plain = make_pipeline(StandardScaler(), hmm()).fit(X, hmm__lengths=LENGTHS)
    np.testing.assert_array_equal(plain[-1].labels_, direct.labels_)


def test_a_table_is_printed(model, capsys):
    model.summary(feature_names=["left", "right"])
    assert "left" in capsys.readouterr().out


@pytest.mark.parametrize("seed", range(1, 3))
def test_weak_states_are_found(seed):
    """What is learnt about transitions from copies of one state must not keep others from being found."""
    found = HMM(Categorical(n_levels=4), max_laps=100, random_state=seed).fit(codes(), lengths=[120, 120])
    assert found.n_states_ == 2
    assert found.lower_bound_ > -290.0


@pytest.mark.long
def test_processes_that_overlap_are_told_apart_in_short_sequences():
    """Two of four states explain each other's rows nearly as well; a fit of three is a local optimum, 6 nats below."""
    rng = np.random.default_rng([1, 4])
    z = []
    for _ in range(500):
        z.append(rng.choice(4, p=np.full(4, 0.25)))
        for _ in range(19):
            state = z[-1]
            if rng.random() < 0.2:
                weights = np.where(np.arange(4) == state, 0.0, 0.25)
                state = rng.choice(4, p=weights / weights.sum())
            z.append(state)
    slope = rng.uniform(-0.9, 0.9, (4, 1))
    level = 2.0 * rng.standard_normal((4, 1))
    X = np.zeros((10_201, 1))
    path = np.append(np.full(200, z[0]), z)
    for t in range(1, 10_200):
        X[t] = level[path[t]] + slope[path[t]] * X[t - 1] + 0.5 * rng.standard_normal(1)
    rows = X[200:6200]
    lengths = [20] * 300
    truth = HMM("autoregressive_gaussian", init=np.array(z[:6000]), moves=()).fit(rows, lengths=lengths)
    found = HMM("autoregressive_gaussian", max_laps=150, random_state=0).fit(rows, lengths=lengths)
    assert found.n_states_ == truth.n_states_ == 4
    assert found.lower_bound_ > truth.lower_bound_ - 1.0


def test_states_that_differ_where_a_prior_learnt_for_two_says_that_none_do():
    """Two states differ in one of two columns; under the prior that they have learnt, none can differ in the other."""
    rng = np.random.default_rng(529)
    z = [rng.integers(4)]
    while len(z) < 1500:
        z.append(rng.choice([k for k in range(4) if k != z[-1]]) if rng.random() < 0.2 else z[-1])
    X = 2.0 * rng.standard_normal((4, 2))[z] + rng.standard_normal((1500, 2))
    found, known = (
        HMM("diagonal_gaussian", n_jobs=1, random_state=0, **given).fit(X, lengths=[5] * 300)
        for given in ({"max_laps": 250}, {"init": "blocks", "n_init_states": 3, "moves": ()})
    )
    assert found.n_states_ == known.n_states_ == 3
    assert found.lower_bound_ > known.lower_bound_ - 1.0


@pytest.mark.long
def test_states_that_no_sequence_leaves_are_left_where_that_gains():
    """Under a stickiness learnt from states that last as long as their sequences, none is ever left."""
    rng = np.random.default_rng(2)
    z = np.empty((500, 4), int)
    z[:, 0] = rng.random(500) < 0.5
    for t in range(1, 4):
        z[:, t] = rng.random(500) < np.array([0.05, 0.75])[z[:, t - 1]]
    X = np.array([[0.5, 0.0], [-0.3, 0.7]])[z.ravel()] + rng.standard_normal((2000, 2))
    found, known = (
        HMM("gaussian", n_jobs=1, random_state=0, **given).fit(X, lengths=[4] * 500)
        for given in ({"max_laps": 600}, {"init": "blocks", "n_init_states": 2, "moves": ()})
    )
    assert found.n_states_ == known.n_states_ == 2
    assert found.lower_bound_ > known.lower_bound_ - 1.0
    assert found.transition_matrix_[1, 0] > 0.1


def test_one_state_under_the_prior_learnt_for_it_is_a_rival_of_several():
    rng = np.random.default_rng(0)
    edges = rng.dirichlet(np.full(20, 0.3), 3).cumsum(axis=1)
    z = np.repeat(rng.integers(3, size=500), 2)
    X = (rng.random((1000, 1)) > edges[z]).sum(axis=1)[:, None].clip(0, 19).astype(float)
    found, one = (
        HMM("categorical", n_jobs=1, random_state=0, **given).fit(X, lengths=[2] * 500)
        for given in ({"max_laps": 550}, {"moves": ()})
    )
    assert found.n_states_ == one.n_states_ == 1
    assert found.lower_bound_ > one.lower_bound_ - 1.0


def test_levels_of_a_frame():
    frame = pd.DataFrame(
        {"mood": pd.Categorical(np.array(["calm", "glad", "sad", "cross"])[codes()[:, 0].astype(int)])}
    )
    found = fit(frame, [120, 120], likelihood="auto", max_laps=100)
    plain = fit(codes(), [120, 120], likelihood=Categorical(n_levels=4), max_laps=100)
    assert found.n_states_ == plain.n_states_ == 2
    assert adjusted_rand_score(found.labels_, plain.labels_) == 1.0
    np.testing.assert_array_equal(found.predict(frame, [120, 120]), found.labels_)


@pytest.mark.parametrize("allocation", ["hdp", "finite"])
@pytest.mark.parametrize("options", [{"moves": ()}, {"algorithm": "stochastic"}])
def test_states_without_rows_are_not_counted(allocation, options):
    z = np.repeat(np.random.default_rng(0).integers(3, size=40), 25)
    X = np.random.default_rng(1).normal(10.0 * z[:, None], 1.0, (1000, 2))
    found = HMM("gaussian", allocation=allocation, init="blocks", n_init_states=12, random_state=0, n_jobs=1, **options)
    found.fit(X)
    assert found.n_states_ == len(np.unique(found.labels_)) < 12


def test_lengths_in_the_place_of_labels_are_named():
    X = np.random.default_rng(0).normal(size=(20, 2))
    for y in ([8, 12], np.array([8, 12])):
        with pytest.raises(ValueError, match="pass the lengths of sequences as lengths="):
            HMM("gaussian").fit(X, y)


def test_states_that_never_last_are_found_though_their_rows_overlap():
    """Rows of two states in turn are too near each other for rows, or for segments, to show more than one."""
    rng = np.random.default_rng(0)
    z = np.concatenate([(np.arange(6) + rng.integers(2)) % 2 for _ in range(120)])
    X = 1.2 * z[:, None] + rng.standard_normal((720, 1))
    found, known = (
        HMM("gaussian", n_jobs=1, random_state=0, **given).fit(X, lengths=[6] * 120)
        for given in ({"max_laps": 400}, {"init": z, "moves": ()})
    )
    assert found.n_states_ == known.n_states_ == 2
    assert found.lower_bound_ > known.lower_bound_ - 1.0
    assert np.diag(found.transition_matrix_).max() < 0.1


@pytest.mark.long
def test_states_of_one_duration_are_several_that_pass_in_order():
    """Three states in turn, each for seven rows: a chain of 21 knows when the next one comes."""
    t = np.arange(2100)
    X = 2.0 * (t // 7 % 3)[:, None] + np.random.default_rng(506).standard_normal((2100, 1))
    found, known = (
        HMM("diagonal_gaussian", n_jobs=1, random_state=0, **given).fit(X)
        for given in ({"max_laps": 220}, {"init": t % 21, "moves": ()})
    )
    assert found.n_states_ == known.n_states_ == 21
    assert found.lower_bound_ > known.lower_bound_ - 1.0
    assert "phases" in {lap.origin for lap in found.history_}
