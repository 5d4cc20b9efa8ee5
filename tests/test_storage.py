"""Model files: nothing is lost in them, and nothing damaged gets out of them."""

import json
import tracemalloc
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from model_file_mutations import as_version_1, read, written
from stickbreak import HMM, Mixture, TopicModel, load
from stickbreak.allocations import DirichletProcess
from stickbreak.inference import Lap, Memoized, Stochastic, trace
from stickbreak.likelihoods import REGISTRY, Bernoulli, Gaussian, Product
from stickbreak.storage import ModelFileError, file_version, save_model, values

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def fit(X, **parameters):
    return Mixture(**({"likelihood": "gaussian", "max_laps": 4, "random_state": 0, "n_jobs": 1} | parameters)).fit(X)


def assert_same_file(one, other):
    (metadata, record, tensors), (others, other_record, other_tensors) = read(one), read(other)
    assert metadata == others
    assert record == other_record
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, other_tensors[name])


def rewrite(path, change):
    """Change the record and the tensors of a model file, with a checksum to match."""
    metadata, record, tensors = read(path)
    change(record, tensors)
    path.write_bytes(written(metadata, record, tensors))


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(m, 1.0, (60, 3)) for m in (-6.0, 0.0, 6.0)])


@pytest.fixture(scope="module")
def saved(X, tmp_path_factory):
    """The bytes of a model file."""
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    fit(X).save(path)
    return path.read_bytes()


@pytest.fixture
def path(saved, tmp_path):
    target = tmp_path / "model.safetensors"
    target.write_bytes(saved)
    return target


def test_a_round_trip_keeps_every_bit(pair, naive, turn, tmp_path):
    family, allocation = pair
    dtype = (np.float64, np.float32)[turn % 2]
    rows = family.rows(np.random.default_rng(1), 200, 4).astype(dtype)
    D = rows.shape[1]
    prior = {k: v.copy(order="F") if isinstance(v, np.ndarray) else v for k, v in family.prior(D).items()}
    model = fit(rows, likelihood=family.make(D, **prior), allocation=allocation)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for name in ("predict", "predict_proba", "score_samples"):
        np.testing.assert_array_equal(getattr(again, name)(rows), getattr(model, name)(rows))
    one, other = (naive.leaves((found.posterior_, found.weights_)) for found in (again, model))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)
    assert {name for name in vars(model) if name.endswith("_")} - {"labels_"} <= vars(again).keys()
    np.testing.assert_array_equal(again.sample(20)[0], model.sample(20)[0])
    for name in ("lower_bound_", "history_", "n_laps_", "converged_", "dtype_", "n_features_in_", "n_clusters_"):
        assert getattr(again, name) == getattr(model, name)
    assert type(again.model_.likelihood) is type(model.model_.likelihood)
    assert again.model_.allocation == allocation


def test_a_second_round_trip_writes_the_same_contents(path, tmp_path):
    load(path).save(tmp_path / "second")
    assert_same_file(tmp_path / "second", path)


@pytest.mark.parametrize("algorithm", [Stochastic(decay=0.7), Memoized(accelerate=False)])
def test_constructor_parameters_come_back(X, tmp_path, algorithm):
    given = {
        "likelihood": Gaussian(mean=[1.0, 2.0, 3.0], scale=np.float32(2.5)),
        "allocation": DirichletProcess(np.float64(3.0)),
        "algorithm": algorithm,
        "moves": ("merge",),
        "init": "k-means++",
        "n_init_clusters": 3,
    }
    fit(X, **given).save(tmp_path / "m")
    found = load(tmp_path / "m").get_params(deep=False)
    for name in given.keys() - {"likelihood"}:
        assert found[name] == given[name]
        assert type(found[name]) is type(given[name])
    assert found["likelihood"].mean == [1.0, 2.0, 3.0]
    assert found["likelihood"].scale == np.float32(2.5)
    assert found["likelihood"].origin is None


def test_one_topic_with_logarithms_above_zero_by_rounding(tmp_path):
    X = np.array([[3.0, 2.0, 1.0]])
    model = TopicModel(allocation="lda", n_init_topics=1, algorithm="stochastic", random_state=0, n_jobs=1, max_laps=6)
    model.fit(X)
    model.summary_.P[:] = 4e-16
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(X), model.transform(X))


def test_parameters_that_cannot_be_written_are_left_at_their_defaults(X, tmp_path):
    labels = np.repeat([0, 1, 2], 60)
    first = fit(X, init=labels, random_state=np.random.RandomState(0))
    fit(X, init=first).save(tmp_path / "b")
    first.save(tmp_path / "a")
    assert load(tmp_path / "a").init == load(tmp_path / "b").init == "one"
    assert load(tmp_path / "a").random_state is None


def test_column_names_come_back(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["left", "größe", "a,b"])
    model = fit(frame)
    model.save(tmp_path / "m")
    assert list(load(tmp_path / "m").feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(frame), model.predict_proba(frame))


@dataclass(frozen=True, eq=False)
class Mine(Gaussian):
    """A likelihood of a user."""


def test_a_likelihood_of_ones_own_must_be_registered(X, tmp_path, monkeypatch):
    model = fit(X, likelihood=Mine())
    with pytest.raises(TypeError, match="REGISTRY"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(REGISTRY, "mine", Mine)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").predict_proba(X), model.predict_proba(X))


def test_what_cannot_be_saved(X, tmp_path):
    with pytest.raises(NotFittedError):
        save_model(Mixture("gaussian"), tmp_path / "m")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fit(X).save(tmp_path / "missing" / "m")
    with pytest.raises(IsADirectoryError):
        fit(X).save(tmp_path)
    subclass = type("Subclass", (Mixture,), {})(max_laps=1).fit(X)
    with pytest.raises(TypeError, match="Subclass"):
        subclass.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_arrays_of_any_layout_are_written_by_value():
    A = np.arange(12.0).reshape(3, 4)
    for array in (A, A.T, A[::2, ::-1], A.astype(">f8"), np.asfortranarray(A), A > 3, np.float64(2.0), np.arange(3)):
        tensors = {}
        reference = json.loads(json.dumps(values.encode(array, "x", tensors)))
        back = values.decode(reference, tensors, {})
        np.testing.assert_array_equal(back, array)
        assert type(back) is type(array)
        assert back.dtype == array.dtype.newbyteorder("=")
    with pytest.raises(TypeError, match="not supported"):
        values.encode(np.array(["a"]), "x", {})


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)


def test_every_truncation_is_refused(saved, tmp_path):
    lengths = {*range(64), *range(0, len(saved), 97), *range(len(saved) - 32, len(saved))}
    for length in sorted(lengths):
        (tmp_path / "m").write_bytes(saved[:length])
        with pytest.raises(ModelFileError) as caught:
            load(tmp_path / "m")
        assert "\n" not in str(caught.value)


@given(data=st.data())
def test_a_changed_byte_is_refused_or_without_effect(saved, tmp_path_factory, data):
    position = data.draw(st.integers(0, len(saved) - 1))
    value = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("flip") / "m"
    path.write_bytes(saved[:position] + bytes([value]) + saved[position + 1 :])
    path.with_name("whole").write_bytes(saved)
    try:
        model = load(path)
    except ModelFileError:
        return
    model.save(path)
    assert_same_file(path, path.with_name("whole"))


@given(st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("random") / "m"
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        load(path)


def test_another_safetensors_file_is_refused(tmp_path):
    for metadata in (None, {"format": "pt"}, {"format": "stickbreak"}):
        (tmp_path / "m").write_bytes(save({"weight": np.zeros(3)}, metadata))
        with pytest.raises(ModelFileError, match="not a model"):
            load(tmp_path / "m")


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("4", "9.9, format 4; .* up to 3; upgrade"),
        ("0", "version"),
        ("x", "version is 'x'"),
        ("9" * 5000, "version is '99999"),
        ("\u0662", "version is"),
        ("-1", "version is"),
    ],
)
def test_other_format_versions_are_refused(path, version, message):
    metadata, record, tensors = read(path)
    path.write_bytes(written(metadata | {"format_version": version, "stickbreak_version": "9.9"}, record, tensors))
    with pytest.raises(ModelFileError, match=message):
        load(path)


TENSORS = [f"summary.{name}" for name in ("N", "S", "H", "base")]
TENSORS += [f"likelihood.{name}" for name in ("mean", "scale", "unit", "origin")]
SHAPES = {
    "longer": lambda a: np.concatenate([a, a]) if a.ndim else np.array([a, a]),
    "empty": lambda a: a[..., None][:0, ..., 0] if a.ndim else np.zeros(0),
    "one": lambda a: a.ravel()[:1],
    "scalar": lambda a: np.array(1.0) if a.ndim else np.zeros((1, 1)),
    "deeper": lambda a: a[None],
    "transposed": lambda a: np.ascontiguousarray(a.T) if a.ndim == 2 and a.shape[0] != a.shape[1] else a[None],
    "nan": lambda a: np.full_like(a, np.nan),
    "bool": lambda a: np.ones(a.shape, bool)[None],
}


# a hyperparameter may be a number
MISFITS = [(t, s) for t in TENSORS for s in SHAPES if not (t.startswith("likelihood") and s == "scalar")]


@pytest.mark.parametrize(("tensor", "shape"), MISFITS)
def test_arrays_that_do_not_fit_are_refused(path, tensor, shape):
    def change(record, tensors):
        tensors[tensor] = SHAPES[shape](tensors[tensor])

    rewrite(path, change)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_levels_that_do_not_fit_are_refused(tmp_path):
    """Compiled loops would write beyond the statistics."""
    X = np.random.default_rng(0).integers([15, 30], size=(200, 2)).astype(float)
    path = tmp_path / "m"
    for levels in ([15, 31], [44, 1, 0], [-15, 60], [45], [15.0, 30.0], [0, 45]):
        fit(X, likelihood="categorical").save(path)

        def change(record, tensors, levels=levels):
            tensors["likelihood.n_levels"] = np.array(levels)

        rewrite(path, change)
        with pytest.raises(ModelFileError, match="damaged"):
            load(path)


@pytest.mark.parametrize("columns", [[0, 9], [0, -9], [0, 0], [0], [0.0, 1.0], [[0, 1]]])
def test_columns_of_products_that_do_not_fit_are_refused(tmp_path, columns):
    X = np.random.default_rng(0).normal(size=(50, 3))
    X[:, 2] = X[:, 2] > 0.0
    path = tmp_path / "m"
    fit(X, likelihood=Product({"x": (Gaussian(), [0, 1]), "z": (Bernoulli(), [2])})).save(path)

    def change(record, tensors):
        (name,) = [name for name in tensors if name.endswith("parts.x.1")]
        tensors[name] = np.array(columns)

    rewrite(path, change)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_a_missing_array_is_refused(path):
    rewrite(path, lambda record, tensors: tensors.pop("summary.S"))
    with pytest.raises(ModelFileError, match=r"summary\.S"):
        load(path)


@pytest.mark.parametrize(
    "name", ["os.system", "Mixture", "Summary", "DirichletProcess", "Unknown", "", None, ["Gaussian"]]
)
@pytest.mark.parametrize("part", ["likelihood", "summary"])
def test_only_classes_of_the_right_kind_are_made(path, part, name):
    if (part, name) == ("summary", "Summary"):
        return
    rewrite(path, lambda record, tensors: record[part].update({"class": name}))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


RECORD = ("estimator", "parameters", "likelihood", "allocation", "summary", "dtype", "n_features", "history")


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [[[]]], {"tuple": 3}, {"tensor": "no"}])
@pytest.mark.parametrize("key", RECORD)
def test_records_that_make_no_sense_are_refused(path, key, value):
    if (key, value) == ("parameters", {}):
        return
    rewrite(path, lambda record, tensors: record.update({key: value}))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)
    rewrite(path, lambda record, tensors: record.pop(key))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_hostile_nesting_and_parameters_are_refused(path):
    for deep in ("[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000):
        other = path.with_name("nested")
        other.write_bytes(written(*read(path), deep))
        with pytest.raises(ModelFileError, match="damaged"):
            load(other)
    rewrite(path, lambda record, tensors: record["parameters"].update({"surprise": 1}))
    with pytest.raises(ModelFileError, match="surprise"):
        load(path)


def sizes(record, tensors):
    record["n_features"] = 10**8


def sizes_of_targets(record, tensors):
    record["n_targets"] = 10**8


def sizes_with_names(record, tensors):
    record |= {"n_features": 10**8, "feature_names": ["a"]}


def a_scale_to_be_made(record, tensors):
    """A matrix as wide as a vector that is there."""
    record["n_features"] = 40_000
    record["likelihood"]["fields"]["scale"] = None
    tensors.pop("likelihood.scale")
    for name in ("mean", "origin", "unit"):
        tensors[f"likelihood.{name}"] = np.ones(40_000)


@pytest.mark.parametrize("change", [sizes, sizes_of_targets, sizes_with_names, a_scale_to_be_made])
def test_no_array_is_made_of_a_size_that_a_file_names(path, change):
    rewrite(path, change)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match="damaged"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("columns", [10**8, 3.0, "3", -1])
def test_columns_that_no_part_uses_are_few(tmp_path, columns):
    X = np.random.default_rng(0).normal(size=(50, 3))
    path = tmp_path / "m"
    fit(X, likelihood=Product({"x": (Gaussian(), [0, 1])})).save(path)
    assert load(path).n_features_in_ == 3

    def change(record, tensors):
        record["n_features"] = columns
        record["likelihood"]["fields"]["n_columns"] = columns

    rewrite(path, change)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


VALUES = {
    "likelihood.unit": [0.0, -1.0, np.nan, np.inf, 1e-200, 1e200],
    "likelihood.origin": [np.nan, np.inf],
    "likelihood.mean": [np.nan, 1e200, -np.inf],
    "likelihood.scale": [0.0, -1.0, np.nan, np.inf, 5.0],
    "summary.N": [-1.0, np.nan, np.inf, 0.0, 1e300, 61.0],
    "summary.S": [np.nan, np.inf, 1e200, -1e5, 1.0],
    "summary.H": [np.nan, 1e5],
    "summary.base": [np.nan, 1e5],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in VALUES.items() for value in values])
def test_values_that_no_fit_gives_are_refused(path, name, value):
    def change(record, tensors):
        tensors[name].reshape(-1)[0] = value

    rewrite(path, change)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def lap(**changes):
    def change(record, tensors):
        record["history"][-1] |= changes

    return change


def entry(key, value):
    def change(record, tensors):
        record[key] = value

    return change


def parameter(key, value):
    def change(record, tensors):
        record["parameters"][key] = value

    return change


FINDING = {"kind": "outliers", "columns": [0, 2], "names": ["a", "c"], "rows": [7], "message": "m", "cure": "c"}


def test_findings_of_the_data_check_come_back(path):
    assert load(path).data_check_ == []
    rewrite(path, entry("data_check", [FINDING]))
    (finding,) = load(path).data_check_
    assert (finding.kind, finding.columns, finding.names, finding.rows) == ("outliers", (0, 2), ("a", "c"), (7,))


def test_files_without_a_data_check_can_be_read(path):
    rewrite(path, lambda record, tensors: record.pop("data_check"))
    assert load(path).data_check_ == []


@pytest.mark.parametrize(
    "change",
    [
        lap(number=0),
        lap(number=10**400),
        lap(number=True),
        lap(seconds=float("nan")),
        lap(lower_bound=float("inf")),
        lap(lower_bound=1e9),
        lap(n_clusters="x"),
        lap(moves=[{"kind": "birth", "tried": 1, "gains": [float("inf")]}]),
        lap(moves=[{"kind": "birth", "tried": 0, "gains": [1.0]}]),
        lap(more=1),
        entry("lower_bound", 0.0),
        entry("lower_bound", "x"),
        entry("converged", "yes"),
        entry("grouped", True),
        entry("grouped", 1),
        entry("n_targets", 1),
        entry("levels", [[0, ["a"]]]),
        entry("levels", [[0]]),
        entry("levels", {"0": []}),
        entry("feature_names", ["a", "b", 3]),
        entry("feature_names", "abc"),
        entry("more", 1),
        entry("data_check", "none"),
        entry("data_check", [{}]),
        entry("data_check", [FINDING | {"more": 1}]),
        entry("data_check", [FINDING | {"names": ["a"]}]),
        entry("data_check", [FINDING | {"columns": [-1, 2]}]),
        entry("data_check", [FINDING | {"rows": [0.5]}]),
        entry("data_check", [FINDING | {"message": 3}]),
        entry("estimator", "HMM"),
        entry("estimator", "TopicModel"),
        entry("estimator", ["Mixture"]),
        parameter("tol", -1.0),
        parameter("tol", 10**400),
        parameter("max_laps", 0),
        parameter("concentration", "x"),
        parameter("moves", ["fly"]),
        parameter("random_state", "x"),
        parameter("random_state", -1),
        parameter("likelihood", "nothing"),
        parameter("allocation", {"class": "HDPMarkovChain", "fields": {}}),
        parameter("likelihood", {"class": "Summary", "fields": {}}),
    ],
)
def test_records_that_do_not_fit_the_rest_are_refused(path, change):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


def test_arrays_belong_to_one_place_each(path):
    rewrite(path, lambda record, tensors: tensors.update(stray=np.zeros(3)))
    with pytest.raises(ModelFileError, match="stray"):
        load(path)
    rewrite(path, lambda record, tensors: tensors.pop("stray"))
    load(path)
    rewrite(path, lambda record, tensors: record["summary"]["fields"].update(N=record["summary"]["fields"]["H"]))
    with pytest.raises(ModelFileError, match="damaged"):
        load(path)


@pytest.mark.parametrize("text", ["x" * 100_000, "1\n2\t3", "\u202e9", "", "\U0001f986" * 30])
def test_a_version_may_be_any_text(path, text):
    metadata, record, tensors = read(path)
    path.write_bytes(written(metadata | {"stickbreak_version": text}, record, tensors))
    load(path)
    assert len(file_version(path)) <= 40
    assert file_version(path).isprintable()


def test_files_of_the_first_version_can_be_read(X, path, tmp_path):
    older = tmp_path / "older"
    older.write_bytes(as_version_1(path.read_bytes(), tmp_path / "copy"))
    np.testing.assert_array_equal(load(older).predict_proba(X), load(path).predict_proba(X))
    load(older).save(older)
    assert_same_file(older, path)


def test_a_file_of_the_first_version_as_it_was_written(X):
    model = load(Path(__file__).parent / "files" / "version_1.model")
    assert model.n_clusters_ == 3
    assert (np.bincount(model.predict(X)) == 60).all()


def test_names_of_parts_may_hold_dots(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    inner = Product({"y": (Gaussian(), [0])})
    model = fit(X, likelihood=Product({"x": (inner, [0, 1]), "x.0.parts.y": (Gaussian(mean=3.0), [2, 3])}))
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").score_samples(X), model.score_samples(X))


@pytest.mark.parametrize("kind", [HMM, TopicModel])
def test_a_stream_keeps_a_history_that_is_bounded(kind, tmp_path, monkeypatch):
    """Visits are listed in twos, fours, ... when they are many; laps, seconds and moves of all of them count."""
    monkeypatch.setattr(trace, "MOST", 16)
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([[9.0, 1.0], [1.0, 9.0]], 30, axis=0))
    model = kind(max_laps=5, random_state=0).fit(X)
    first, moves = model.n_laps_, [record for lap in model.history_ for record in lap.moves]
    bounds = []
    for _ in range(100):
        model.partial_fit(X[:10])
        bounds.append(model.lower_bound_)
    assert len(model.history_) <= 16
    assert model.n_laps_ == model.history_[-1].number == first + 100
    numbers, seconds = np.array([(lap.number, lap.seconds) for lap in model.history_]).T
    assert (np.diff(numbers) > 0).all()
    assert (np.diff(seconds) >= 0).all()
    assert [record for lap in model.history_ for record in lap.moves] == moves
    assert model.lower_bounds_ == [bounds[int(n) - first - 1] for n in numbers if n > first] or first >= numbers[0]
    assert model.lower_bounds_[-1] == model.lower_bound_
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").n_laps_ == model.n_laps_


def test_speed_of_laps_listed_together_is_that_of_their_rows():
    laps = [Lap(n + 1, float(n + 1), 0.0, 1, 0.0, 1, (), 10.0 * n) for n in range(4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "MOST", 4)
        assert [(lap.number, lap.rows_per_second) for lap in trace.shortened(laps)] == [(2, 5.0), (4, 25.0)]


def test_records_of_any_size_can_be_saved(X, tmp_path):
    """The header of the format has a limit of 100 MB, which half a million laps once reached."""
    model = fit(X)
    last = model.history_[-1]
    model.history_ = [replace(last, number=n + 1) for n in range(20_000)]
    model.feature_names_in_ = np.array([letter * 40_000_000 for letter in "abc"], dtype=object)
    model.save(tmp_path / "m")
    found = load(tmp_path / "m")
    assert found.n_laps_ == 20_000
    assert list(found.feature_names_in_) == list(model.feature_names_in_)


@pytest.mark.parametrize("scale", [1e140, 1e100, 1e-100, 1e-139])
@pytest.mark.parametrize(
    "likelihood",
    ["gaussian", "diagonal_gaussian", "spherical_gaussian", "zero_mean_gaussian", "linear_regression"],
)
def test_models_of_data_in_any_unit_are_read_back(likelihood, scale, tmp_path):
    X = scale * np.random.default_rng(0).normal([[0.0, 0.0], [8.0, 1.0]] * 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = Mixture(likelihood, random_state=0, n_jobs=1, max_laps=4).fit(X)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), fitted.predict_proba(X))
