"""`TopicModel.fit(X, y)`: predictions of new documents, partly unknown answers, files, and refusals."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import stickbreak
from stickbreak import TopicModel
from stickbreak.inference import Memoized
from stickbreak.responses import CategoricalResponse, GaussianResponse, MarginResponse

pytestmark = pytest.mark.filterwarnings("ignore:not converged", "ignore:decay")
K, V, N = 3, 30, 240
NAMES = np.array(["low", "middle", "high"])


class World:
    """Documents of known topics, whose shares numbers and classes follow."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.topics = rng.dirichlet(np.full(V, 0.15), K)
        self.shares = rng.dirichlet(np.full(K, 0.3), N)
        self.X = np.array([rng.multinomial(50, p @ self.topics) for p in self.shares]).astype(float)
        self.weights = np.array([100.0, 140.0, 60.0])
        self.numbers = self.shares @ self.weights + rng.normal(0.0, 3.0, N)
        self.classes = NAMES[self.shares.argmax(axis=1)]
        self.fitted, self.test = slice(None, 160), slice(160, None)

    def fit(self, y, **given):
        settings = {"init": self.topics, "moves": ("merge",), "max_laps": 20, "random_state": 0, "n_jobs": 1} | given
        return TopicModel(**settings).fit(self.X[self.fitted], None if y is None else y[self.fitted])


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def of_numbers(world):
    return world.fit(world.numbers)


@pytest.fixture(scope="module")
def of_classes(world):
    return world.fit(world.classes)


def r2(model, world):
    y = world.numbers[world.test]
    return 1.0 - ((model.predict_targets(world.X[world.test]) - y) ** 2).mean() / y.var()


def test_numbers_of_new_documents(world, of_numbers):
    """Nearly as well as the true shares and weights do; the weights are the true ones."""
    truth = world.shares[world.test] @ world.weights
    best = 1.0 - ((truth - world.numbers[world.test]) ** 2).mean() / world.numbers[world.test].var()
    assert r2(of_numbers, world) > best - 0.12
    np.testing.assert_allclose(np.sort(of_numbers.response_weights_[:, 0]), np.sort(world.weights), atol=8.0)
    assert isinstance(of_numbers.response_, GaussianResponse)
    assert of_numbers.response_.noise(of_numbers.summary_) < 8.0
    assert (np.diff(of_numbers.lower_bounds_) >= 0.0).all()
    with pytest.raises(NotFittedError, match="without classes"):
        of_numbers.predict_class(world.X)


def test_units_of_numbers_do_not_matter(world, of_numbers):
    """The objective changes by the logarithm of the unit, for each answer."""
    other = world.fit(world.numbers * 1000.0 - 7.0)
    assert other.lower_bound_ == pytest.approx(of_numbers.lower_bound_ - 160 * np.log(1000.0), rel=1e-9)
    np.testing.assert_allclose(
        other.predict_targets(world.X), of_numbers.predict_targets(world.X) * 1000.0 - 7.0, rtol=1e-6
    )


def test_classes_of_new_documents(world, of_classes):
    X = world.X[world.test]
    chances = of_classes.predict_class_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(of_classes.classes_, np.sort(NAMES))
    np.testing.assert_array_equal(of_classes.predict_class(X), of_classes.classes_[chances.argmax(axis=1)])
    right = (of_classes.predict_class(X) == world.classes[world.test]).mean()
    assert right > 0.85
    assert of_classes.class_accuracy(X, world.classes[world.test]) == right
    assert of_classes.response_weights_.shape == (of_classes.n_topics_, K)
    nothing = of_classes.predict_class_proba(np.zeros((1, V)))
    assert np.isfinite(nothing).all()
    with pytest.raises(NotFittedError, match="without numbers"):
        of_classes.predict_targets(X)


def test_answers_that_are_unknown(world, of_classes):
    """As None, NaN or -1; the other documents still tell topics, and documents without words have no say."""
    some = np.where(np.arange(N) % 3 == 0, world.classes, None)
    model = world.fit(some)
    assert model.class_accuracy(world.X[world.test], world.classes[world.test]) > 0.8
    assert model.summary_.A == 54.0
    codes = np.searchsorted(np.sort(NAMES), world.classes)
    coded = world.fit(np.where(np.arange(N) % 3 == 0, codes, -1))
    assert coded.lower_bound_ == model.lower_bound_
    assert coded.classes_.tolist() == [0, 1, 2]
    holes = np.where(np.arange(N) % 3 == 0, world.numbers, np.nan)
    assert world.fit(holes).summary_.A == 54.0
    X = world.X[world.fitted].copy()
    X[:9] = 0.0
    empty = TopicModel(init=world.topics, moves=(), max_laps=2, n_jobs=1).fit(X, world.classes[world.fitted])
    assert empty.summary_.A == 151.0


def test_topics_with_names_follow_answers(world):
    """Seeds and answers together: the topic of a class is that of its words."""
    seeds = {f"topic {k}": np.argsort(-world.topics[k])[:3].tolist() for k in range(K)}
    model = world.fit(world.classes, seeds=seeds, init="random", n_init_topics=K, moves=(), max_laps=8)
    assert (np.diff(model.lower_bounds_) >= 0.0).all()
    assert model.class_accuracy(world.X[world.test], world.classes[world.test]) > 0.8


def test_without_y_nothing_changes(world):
    plain = world.fit(None)
    ignored = world.fit(world.classes, response=None)
    unknown = world.fit(np.full(N, np.nan))
    for model in (ignored, unknown):
        assert model.lower_bounds_ == plain.lower_bounds_
        np.testing.assert_array_equal(model.topics_, plain.topics_)
    with pytest.raises(NotFittedError, match="without y"):
        _ = plain.response_


def test_what_y_is_taken_for(world):
    """By itself, or as asked for; and a response of one's own."""
    whole = np.round(world.numbers / 40.0)
    assert isinstance(world.fit(whole, max_laps=2).response_, CategoricalResponse)
    assert isinstance(world.fit(whole, max_laps=2, response="gaussian").response_, GaussianResponse)
    assert isinstance(world.fit(world.numbers.astype(object), max_laps=2).response_, GaussianResponse)
    heavy = world.fit(world.numbers, response=GaussianResponse(weight=50.0, precision=0.2))
    assert heavy.response_.precision == 0.2
    assert heavy.response_.weight == 50.0
    assert heavy.summary_.A == 50.0 * 160


def test_margins(world):
    """Errors within the tolerance cost nothing, and answers that are far off move nothing further."""
    y = world.numbers.copy()
    y[::20] += 2000.0
    margins = MarginResponse(20.0, 0.05, center=100.0, scale=30.0)
    assert r2(world.fit(y, response=margins), world) > 0.7
    assert r2(world.fit(y, response=GaussianResponse()), world) < 0.0
    with pytest.raises(AttributeError):
        _ = world.fit(y, response=margins, max_laps=1).response_.noise


def test_a_heavier_answer_is_followed_more_closely(world, of_numbers):
    heavy = world.fit(world.numbers, response=GaussianResponse(weight=50.0))
    assert heavy.response_.noise(heavy.summary_) < of_numbers.response_.noise(of_numbers.summary_)


@pytest.mark.parametrize("fixture", ["of_numbers", "of_classes"])
def test_files(world, fixture, request, tmp_path):
    model = request.getfixturevalue(fixture)
    model.save(tmp_path / "model")
    loaded = stickbreak.load(tmp_path / "model")
    assert loaded.lower_bound_ == model.lower_bound_
    assert loaded.response_ == model.response_
    predict = "predict_targets" if fixture == "of_numbers" else "predict_class_proba"
    np.testing.assert_array_equal(getattr(loaded, predict)(world.X), getattr(model, predict)(world.X))
    assert list(getattr(loaded, "classes_", [])) == list(getattr(model, "classes_", []))


def test_a_fit_goes_on_from_a_checkpoint(world, of_classes, tmp_path):
    path = tmp_path / "fit"
    part = {"checkpoint": path, "checkpoint_seconds": 0.0}
    world.fit(world.classes, **part, max_laps=5)
    assert world.fit(world.classes, **part).lower_bounds_ == of_classes.lower_bounds_
    with pytest.raises(ValueError, match="data"):
        world.fit(world.numbers, **part)


def test_more_documents_and_fewer_topics(world, of_classes):
    model = world.fit(world.classes)
    model.partial_fit(world.X[world.test], world.classes[world.test])
    assert model.summary_.A == N
    fewer = of_classes.merge_topics(2, world.X[world.fitted], y=world.classes[world.fitted])
    assert fewer.n_topics_ == 2
    assert fewer.summary_.A == 160.0
    assert fewer.classes_.tolist() == of_classes.classes_.tolist()
    for again in (lambda: of_classes.merge_topics(2, world.X), lambda: of_classes.stability(world.X)):
        with pytest.raises(ValueError, match="pass y="):
            again()
    again = world.fit(world.classes, init=of_classes)
    assert again.lower_bound_ >= of_classes.lower_bound_
    heavier = world.fit(world.classes, init=of_classes, response=CategoricalResponse(weight=9.0))
    assert heavier.summary_.A == 9.0 * 160.0


def test_topics_are_found_with_answers(world):
    """The whole search, on the objective with answers; batches, threads and steps."""
    few = {
        "init": "random",
        "moves": ("birth", "merge", "delete"),
        "allocation": "lda",
        "n_init_topics": 5,
        "max_laps": 400,
    }
    searched = world.fit(world.numbers, **few, n_jobs=2, n_batches=2)
    assert searched.n_topics_ == K
    assert (np.diff(searched.lower_bounds_) >= 0.0).all()
    assert r2(searched, world) > 0.8
    steps = world.fit(world.numbers, algorithm="stochastic", n_batches=4, max_laps=20)
    assert r2(steps, world) > 0.75


@pytest.mark.parametrize(
    ("y", "given", "error", "message"),
    [
        (lambda w: w.numbers[:5], {}, ValueError, "one number for each of 160"),
        (lambda w: w.classes[:5], {}, ValueError, "one label for each of 160"),
        (lambda w: np.where(np.arange(160) == 7, np.inf, w.numbers[:160]), {}, ValueError, "row 7 has inf"),
        (lambda w: np.where(np.arange(160) == 7, 1e200, w.numbers[:160]), {}, ValueError, "row 7 has 1e"),
        (lambda w: np.full(160, "same"), {}, ValueError, "one class, 'same'"),
        (lambda w: np.full(160, 0.5), {}, ValueError, "all answers in y are 0.5"),
        (lambda w: w.numbers[:160], {"response": "categorical"}, ValueError, 'response="gaussian"'),
        (lambda w: w.classes[:160], {"response": "gaussian"}, ValueError, "text is no number"),
        (lambda w: w.classes[:160], {"response": CategoricalResponse(7)}, ValueError, "n_classes=7"),
        (lambda w: w.classes[:160], {"response": "poisson"}, ValueError, "response must be one of"),
        (lambda w: w.classes[:160], {"most_kept": 2}, ValueError, "most_kept=None alone"),
        (lambda w: w.classes[:160], {"restarts": 2}, ValueError, "restarts=0 alone"),
        (lambda w: np.column_stack([w.numbers[:160]] * 2), {}, ValueError, "shape"),
        (lambda w: {"a": 1}, {}, TypeError, "y must be an array"),
    ],
)
def test_refusals(world, y, given, error, message):
    with pytest.raises(error, match=message):
        TopicModel(n_jobs=1, **given).fit(world.X[world.fitted], y(world))


def test_refusals_of_documents(world):
    with pytest.raises(TypeError, match="rows in groups take no y"):
        TopicModel("gaussian").fit(np.random.default_rng(0).normal(size=(6, 2)), [0, 1], lengths=[3, 3])
    X = np.zeros((3, V))
    X[0] = 1.0
    with pytest.raises(ValueError, match="empty documents alone"):
        TopicModel().fit(sparse.csr_array(X), [None, "a", "b"])


def test_answers_that_count_many_times_are_soon_followed(world):
    """Parabolas follow scores slowly where classes are told well apart: extrapolated weights, as those of words, go faster."""
    heavy = CategoricalResponse(weight=30.0)
    plain = Memoized(accelerate=False)
    fast = world.fit(world.classes, response=heavy, moves=(), max_laps=60)
    slow = world.fit(world.classes, response=heavy, moves=(), max_laps=60, algorithm=plain)
    assert fast.lower_bound_ > slow.lower_bound_ + 50.0
