"""Fits on a Dask cluster beside the same fits in this process."""

import subprocess
import sys

import numpy as np
import pytest
from dask import array, bag, dataframe
from distributed import Client, LocalCluster
from pandas import DataFrame
from scipy import sparse
from sklearn.base import clone

from stickbreak import HMM, DaskExecutor, Mixture, TopicModel
from stickbreak.cli import app
from stickbreak.cluster.parts import MappedFile, Stacked
from stickbreak.data.opening import open_table
from stickbreak.loading import load

pytestmark = pytest.mark.filterwarnings("ignore:not converged")
EASY = {"random_state": 0, "n_jobs": 1, "max_laps": 5}
ROUNDING = 1e-12  # of a bound: sums of parts are added in another order


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (400, 2)) for m in (-8.0, 0.0, 8.0)])
    return X[rng.permutation(len(X))]


@pytest.fixture(scope="module")
def local(rows):
    return Mixture("gaussian", **EASY).fit(rows)


def assert_same(there, here):
    assert len(there.history_) == len(here.history_)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=ROUNDING, abs=0)
    np.testing.assert_allclose(there.summary_.S, here.summary_.S, rtol=1e-9, atol=1e-9)
    if hasattr(here, "labels_"):
        np.testing.assert_array_equal(there.labels_, here.labels_)


@pytest.mark.parametrize("chunks", [(500, 2), (97, 1), (1200, 2), ((1, 0, 1199), 2)])
def test_arrays(client, rows, local, chunks):
    assert_same(Mixture("gaussian", **EASY).fit(array.from_array(rows, chunks=chunks)), local)


def test_arrays_of_unknown_length(client, rows, local):
    X = array.from_array(rows, chunks=(500, 2))
    assert_same(Mixture("gaussian", **EASY).fit(X[X[:, 0] < np.inf]), local)


def test_frames(client, rows, local):
    model = Mixture("gaussian", **EASY).fit(dataframe.from_pandas(DataFrame(rows, columns=["a", "b"]), npartitions=3))
    assert_same(model, local)
    assert list(model.feature_names_in_) == ["a", "b"]
    X = dataframe.from_pandas(DataFrame(rows[:9], columns=["a", "b"]), npartitions=2)
    np.testing.assert_array_equal(model.predict(X), local.labels_[:9])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b", "a"]])


def test_weights(client, rows):
    weights = np.arange(len(rows)) % 3.0
    here = Mixture("gaussian", **EASY).fit(rows, sample_weight=weights)
    there = Mixture("gaussian", **EASY).fit(array.from_array(rows, chunks=(500, 2)), sample_weight=weights)
    assert_same(there, here)


def test_files(client, rows, local, tmp_path):
    np.save(tmp_path / "x.npy", np.concatenate([rows[:7] + 1.0, rows]))
    X = np.load(tmp_path / "x.npy", mmap_mode="r")[7:]
    assert_same(Mixture("gaussian", executor=DaskExecutor(client), **EASY).fit(X), local)


def test_paths(client, rows, local, tmp_path):
    for i, piece in enumerate(np.array_split(rows, 3)):
        np.save(tmp_path / f"{i}.npy", piece)
    model = Mixture("gaussian", executor=DaskExecutor(client), **EASY).fit(tmp_path / "*.npy")
    assert model.lower_bound_ == pytest.approx(local.lower_bound_, rel=ROUNDING, abs=0)
    DataFrame(rows, columns=["a", "b"]).to_parquet(tmp_path / "x.parquet", row_group_size=150)
    kept = Mixture("gaussian", executor=DaskExecutor(client), **EASY).fit(str(tmp_path / "x.parquet"))
    assert list(kept.feature_names_in_) == ["a", "b"]
    here = Mixture("gaussian", **EASY).fit(open_table(tmp_path / "x.parquet", in_memory=0).X)
    assert kept.lower_bound_ == pytest.approx(here.lower_bound_, rel=ROUNDING, abs=0)


def test_mapped_files_keep_their_place(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "c.npy", X)
    np.save(tmp_path / "f.npy", np.asfortranarray(X))
    c, f = (np.load(tmp_path / name, mmap_mode="r") for name in ("c.npy", "f.npy"))
    for given in (c, c[3:][2:9], f):
        np.testing.assert_array_equal(MappedFile(given)[:], given)
    with pytest.raises(TypeError, match="all columns"):
        MappedFile(c[:, 1:])


def test_stacked_arrays_read_like_one():
    parts = [np.arange(6.0).reshape(3, 2), np.ones((1, 2)), np.full((4, 2), 5.0)]
    X, whole = Stacked(parts), np.concatenate(parts)
    for start in range(9):
        for stop in range(start, 9):
            np.testing.assert_array_equal(X[start:stop], whole[start:stop])
    np.testing.assert_array_equal(X[np.array([7, 0, 3])], whole[[7, 0, 3]])


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(12, 0.1), 3)
    return np.array([rng.multinomial(20, p) for p in rng.dirichlet(np.full(3, 0.3), 90) @ topics]).astype(float)


def test_documents(client, counts):
    here = TopicModel(n_init_topics=4, **EASY).fit(sparse.csr_array(counts))
    assert_same(TopicModel(n_init_topics=4, **EASY).fit(array.from_array(counts, chunks=(37, 12))), here)
    documents = bag.from_sequence([np.repeat(np.arange(12), c.astype(int)) for c in counts], npartitions=3)
    assert_same(TopicModel(n_init_topics=4, **EASY).fit(documents), here)


def test_documents_of_text(client, counts):
    names = [f"w{v:02d}" for v in range(12)]
    texts = bag.from_sequence([{names[v]: int(c[v]) for v in np.flatnonzero(c)} for c in counts], npartitions=2)
    model = TopicModel(n_init_topics=4, **EASY).fit(texts)
    seen = counts.any(axis=0)
    assert list(model.feature_names_in_) == [name for name, there in zip(names, seen) if there]
    here = TopicModel(n_init_topics=4, **EASY).fit(sparse.csr_array(counts[:, seen]))
    np.testing.assert_allclose(model.transform(texts), here.transform(counts[:, seen]), atol=1e-9)
    with pytest.raises(TypeError, match=r"bag\.map\(str\.split\)"):
        TopicModel().fit(bag.from_sequence(["some text"]))


def test_sequences(client):
    rng = np.random.default_rng(2)
    z = np.repeat(rng.integers(0, 3, 40), 10)
    X = rng.normal(0.0, 1.0, (400, 2)) + 6.0 * z[:, None]
    X[50] = np.nan
    lengths = [90, 10, 200, 100]
    here = HMM("gaussian", **EASY).fit(X, lengths=lengths)
    assert_same(HMM("gaussian", **EASY).fit(array.from_array(X, chunks=(120, 2)), lengths=lengths), here)


def test_command(client, rows, local, tmp_path):
    np.save(tmp_path / "x.npy", rows)
    address = client.cluster.scheduler_address
    arguments = [
        "fit",
        str(tmp_path / "x.npy"),
        "--out",
        str(tmp_path / "m"),
        "--likelihood",
        "gaussian",
        "--seed",
        "0",
    ]
    app(
        [*arguments, "--max-laps", str(EASY["max_laps"]), "--jobs", "1", "--quiet", "--scheduler", address],
        result_action="return_value",
    )
    assert load(tmp_path / "m").lower_bound_ == pytest.approx(local.lower_bound_, rel=ROUNDING, abs=0)


def test_what_a_cluster_cannot_fit_is_refused(client, rows):
    with pytest.raises(TypeError, match="in the memory of this process"):
        Mixture(executor=DaskExecutor(client)).fit(rows)
    with pytest.raises(TypeError, match=r"distributed\.Client; got a int"):
        DaskExecutor(3)
    with pytest.raises(ValueError, match="executor must be None"):
        Mixture(executor="dask").fit(rows)
    with pytest.raises(ValueError, match="rows and columns; got a Dask array of 1 axes"):
        Mixture().fit(array.ones(5))
    with pytest.raises(ValueError, match="'b' of the Dask frame is no column of numbers"):
        Mixture().fit(dataframe.from_pandas(DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), npartitions=1))
    X = array.from_array(np.where(np.arange(len(rows))[:, None] == 700, np.inf, rows), chunks=(500, 2))
    with pytest.raises(ValueError, match="row 700, column 0"):
        Mixture("gaussian").fit(X)


def test_checkpoints_know_the_data(client, rows, tmp_path):
    given = EASY | {"checkpoint": tmp_path / "fit", "max_laps": 60}
    first = Mixture("gaussian", **given).fit(array.from_array(rows, chunks=(500, 2)))
    again = Mixture("gaussian", **given).fit(array.from_array(rows, chunks=(500, 2)))
    assert again.lower_bound_ == first.lower_bound_
    with pytest.raises(ValueError, match="other data"):
        Mixture("gaussian", **given).fit(array.from_array(rows + 1.0, chunks=(500, 2)))


def test_classes_and_groups_are_refused(client, rows, counts):
    X = array.from_array(rows, chunks=(500, 2))
    with pytest.raises(TypeError, match="cannot have classes"):
        Mixture("gaussian").fit(X, y=np.arange(len(rows)) % 2)
    with pytest.raises(TypeError, match="rows in groups cannot be on a cluster"):
        TopicModel("gaussian").fit(X, lengths=[len(rows)])


def test_executors_are_values(client):
    model = Mixture(executor=DaskExecutor(client))
    assert clone(model).executor == DaskExecutor(client)


def test_missing_dask_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"stickbreak\[dask\]"):
        DaskExecutor(None)


def test_dask_is_imported_only_when_asked_for_and_needs_a_client():
    code = (
        "import sys, stickbreak; stickbreak.Mixture; assert not {'dask', 'distributed'} & set(sys.modules)\n"
        "import dask.array, stickbreak\n"
        "try: stickbreak.Mixture().fit(dask.array.ones((9, 2)))\n"
        "except RuntimeError as error: assert 'make one first' in str(error)\n"
        "else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
