"""Model files: nothing is lost in them, and nothing damaged gets out of them."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save, save_file
from sklearn.exceptions import NotFittedError

from stickbreak import Mixture, load, storage
from stickbreak.allocations import DirichletProcess
from stickbreak.inference import Stochastic
from stickbreak.likelihoods import REGISTRY, Bernoulli, Gaussian, Product
from stickbreak.storage import ModelFileError, replacing, save_model

pytestmark = pytest.mark.filterwarnings("ignore:not converged")


def fit(X, **parameters):
    return Mixture(**({"max_laps": 4, "random_state": 0, "n_jobs": 1} | parameters)).fit(X)


def read(path):
    with safe_open(path, framework="np") as file:
        names = file.keys()
        return file.metadata(), {name: file.get_tensor(name) for name in names}


def assert_same_file(one, other):
    (metadata, tensors), (others, other_tensors) = read(one), read(other)
    assert metadata == others
    assert tensors.keys() == other_tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor, other_tensors[name])


def rewrite(path, change):
    """Change the record and the tensors of a model file, with a checksum to match."""
    metadata, tensors = read(path)
    record = json.loads(metadata["model"])
    change(record, tensors)
    metadata = {k: v for k, v in metadata.items() if k != "checksum"} | {"model": json.dumps(record)}
    save_file(tensors, path, metadata | {"checksum": storage._checksum(metadata, tensors)})


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_round_trip_keeps_every_bit(pair, naive, dtype, tmp_path):
    family, allocation = pair
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


def test_constructor_parameters_come_back(X, tmp_path):
    given = {
        "likelihood": Gaussian(mean=[1.0, 2.0, 3.0], scale=np.float32(2.5)),
        "allocation": DirichletProcess(np.float64(3.0)),
        "algorithm": Stochastic(decay=0.7),
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
        save_model(Mixture(), tmp_path / "m")
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
        reference = json.loads(json.dumps(storage._encode({0: array}[0], "x", tensors)))
        back = storage._decode(reference, tensors, {})
        np.testing.assert_array_equal(back, array)
        assert type(back) is type(array)
        assert back.dtype == array.dtype.newbyteorder("=")
    with pytest.raises(TypeError, match="not supported"):
        storage._encode(np.array(["a"]), "x", {})


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
    ("version", "message"), [("2", "9.9, format 2; .* up to 1; upgrade"), ("0", "version"), ("x", "version is 'x'")]
)
def test_other_format_versions_are_refused(path, version, message):
    metadata, tensors = read(path)
    save_file(tensors, path, metadata | {"format_version": version, "stickbreak_version": "9.9"})
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
    metadata, tensors = read(path)
    metadata = {k: v for k, v in metadata.items() if k != "checksum"} | {"model": "[" * 100_000 + "]" * 100_000}
    other = path.with_name("nested")
    save_file(tensors, other, metadata | {"checksum": storage._checksum(metadata, tensors)})
    with pytest.raises(ModelFileError, match="damaged"):
        load(other)
    rewrite(path, lambda record, tensors: record["parameters"].update({"surprise": 1}))
    with pytest.raises(ModelFileError, match="surprise"):
        load(path)


def write_and_fail(target):
    with replacing(target) as file:
        file.write(b"half")
        raise RuntimeError


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_and_fail(target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
    with replacing(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"new"


def test_a_process_killed_while_it_writes_leaves_the_old_file(tmp_path):
    target = tmp_path / "file"
    target.write_bytes(b"old")
    code = (
        "import os, signal, sys\nfrom stickbreak.storage import replacing\n"
        "with replacing(sys.argv[1]) as file:\n    file.write(b'half')\n    file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    assert result.returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old"


def test_links_are_followed_and_devices_are_not_replaced(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    with replacing(os.devnull) as file:
        file.write(b"gone")
    assert not os.path.isfile(os.devnull)
