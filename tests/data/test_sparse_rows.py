"""Sparse matrices that contradict themselves: refused with their place, whatever the format, the door and the flags."""

import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from stickbreak import Mixture, TopicModel
from stickbreak.data.corpus import open_corpus, write_corpus
from stickbreak.data.files import DataError, read_table
from stickbreak.data.sparse_rows import sparse_rows
from stickbreak.description.topics import coherence
from stickbreak.inference.topics.anchors import anchor_topics

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
KINDS = {f"{f}_{kind}": (f, kind) for f in FORMATS for kind in ("array", "matrix")}
every_kind = pytest.mark.parametrize("kind", KINDS)


def some_counts(D=20, V=12, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).poisson(0.7, (D, V)).astype(dtype)


def made(X, kind="csr_array"):
    name, container = KINDS[kind]
    return getattr(sparse, f"csr_{container}")(X).asformat(name)


# What is fine


@every_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint64, np.bool_])
def test_every_format_and_type_becomes_the_same_rows(kind, dtype):
    X = made(some_counts(dtype=dtype), kind)
    expected, before = X.toarray(), X.copy()
    found = sparse_rows(X)
    assert isinstance(found, sparse.csr_array)
    assert found.dtype == (np.float32 if dtype is np.float32 else np.float64)
    np.testing.assert_array_equal(found.toarray(), expected)
    fresh = sparse.csr_array((found.data, found.indices, found.indptr), found.shape)  # without flags
    fresh.check_format()
    assert fresh.has_canonical_format
    assert (found.data != 0.0).all()
    assert (before != X).nnz == 0


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (kind, shape)
        for kind in KINDS
        for shape in ((0, 3), (3, 0), (0, 0), (4, 3))
        if 0 not in shape or not kind.startswith(("bsr", "dia"))  # SciPy has no such empty matrix
    ],
)
def test_nothing_stored(kind, shape):
    found = sparse_rows(getattr(sparse, kind)(shape))
    assert (found.shape, found.nnz) == (shape, 0)


def test_rows_in_order_share_their_arrays():
    X = made(some_counts())
    found = sparse_rows(X)
    assert np.shares_memory(found.data, X.data)
    assert np.shares_memory(found.indices, X.indices)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float32, np.float64, np.int64])
@pytest.mark.parametrize("kind", ["coo_array", "coo_matrix", "csr_array", "csc_array"])
def test_repeated_entries_are_added_up_in_a_wide_type(kind, dtype):
    rows, columns = np.zeros(300, int), np.repeat([0, 2], 150)
    X = sparse.coo_array((np.ones(300, dtype), (rows, columns)), (2, 3))
    if kind.startswith("cs"):
        X = sparse.csr_array((X.data, columns, [0, 300, 300]), (2, 3))
        if kind == "csc_array":
            X = sparse.csc_array((X.data, rows, [0, 150, 150, 300]), (2, 3))
    np.testing.assert_array_equal(sparse_rows(X).toarray(), [[150, 0, 150], [0, 0, 0]])


def test_repeated_truths_are_one_truth():
    X = sparse.coo_array((np.ones(3, bool), ([0, 0, 1], [1, 1, 0])), (2, 2))
    np.testing.assert_array_equal(sparse_rows(X).toarray(), [[0, 1], [1, 0]])


def test_entries_that_cancel_are_not_stored():
    X = sparse.coo_array(([2.0, -2.0, 3.0, 0.0], ([0, 0, 1, 1], [1, 1, 0, 1])), (2, 2))
    assert sparse_rows(X).nnz == 1


@pytest.mark.parametrize("change", ["unsorted", "repeated", "zero"])
def test_stale_flags_are_not_believed(change):
    X = made(some_counts())
    assert X.has_canonical_format  # SciPy remembers that
    a, b = next((a, b) for a, b in zip(X.indptr, X.indptr[1:]) if b - a > 2)
    if change == "unsorted":
        X.indices[a:b] = X.indices[a:b][::-1].copy()
    elif change == "repeated":
        X.indices[a + 1] = X.indices[a]
    else:
        X.data[a] = 0.0
    indices, expected = X.indices.copy(), np.zeros(X.shape)
    np.add.at(expected, (np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices), X.data)
    found = sparse_rows(X)
    np.testing.assert_array_equal(found.toarray(), expected)
    assert (np.diff(found.indices)[np.diff(np.repeat(np.arange(20), np.diff(found.indptr))) == 0] > 0).all()
    assert (found.data != 0.0).all()
    np.testing.assert_array_equal(X.indices, indices)  # that of the user stays


@pytest.mark.parametrize("width", [">i4", "<i8", ">i8", "u1", "u8"])
def test_all_widths_and_orders_of_bytes(width):
    X, plain = made(some_counts()), some_counts()
    X.indices, X.indptr, X.data = X.indices.astype(width), X.indptr.astype(width), X.data.astype(">f8")
    found = sparse_rows(X)
    np.testing.assert_array_equal(found.toarray(), plain)
    assert all(array.dtype.isnative for array in (found.data, found.indices, found.indptr))


# What is not


def put(name, place, value):
    """A change of one number of an array."""

    def change(X):
        getattr(X, name)[place] = value

    return change


def replaced(name, new):
    """A change of a whole array."""
    return lambda X: setattr(X, name, new(getattr(X, name)))


WRONG = {
    "beyond": (put("indices", 5, 12), r"is damaged: entry 5, in row 0, is of column 12, but there are 12 columns"),
    "far beyond": (put("indices", -1, 10**6), r"entry \d+, in row 19, is of column 1000000"),
    "negative": (put("indices", 5, -1), r"is of column -1"),
    "start": (put("indptr", 0, 3), r"indptr starts at 3, not at 0"),
    "fall": (put("indptr", slice(7, 9), (60, 2)), r"indptr falls from 60 to 2 at row 7"),
    "end": (put("indptr", -1, 1000), r"indptr ends at 1000, beyond the \d+ entries"),
    "short pointers": (replaced("indptr", lambda a: a[:-1]), r"indptr has 20 numbers where 21 are expected"),
    "short data": (replaced("data", lambda a: a[:-1]), r"\d+ indices for \d+ values"),
    "floats": (
        replaced("indices", lambda a: a.astype(float)),
        r"indices must hold integers; got values of type float64",
    ),
    "text": (replaced("data", lambda a: a.astype(str)), r"data must hold real numbers; got values of type <U"),
    "complex": (replaced("data", lambda a: a + 1j), r"data must hold real numbers; got values of type complex128"),
    "two axes": (replaced("indices", lambda a: a[None]), r"indices must have 1 axes; got an array of shape"),
}


def broken(what, kind="csr_array"):
    """A matrix with one thing wrong, and what is said of it."""
    X, (change, message) = made(some_counts(), kind), WRONG[what]
    change(X)
    return X, message


every_wrong = pytest.mark.parametrize("what", WRONG)


@every_wrong
@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix"])
def test_damaged_rows_are_refused_with_their_place(what, kind):
    X, message = broken(what, kind)
    with pytest.raises(ValueError, match=message) as caught:
        sparse_rows(X)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind[:3] not in ("csr", "dia")])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("place", [-1, 1000, 10**6])
def test_places_that_do_not_exist_are_refused_in_every_format(kind, axis, place):
    X = made(some_counts(), kind)
    match X.format:
        case "coo":
            X.coords[axis][3] = place
        case "csc" | "bsr":
            if axis:
                X.indptr[3] = place
            else:
                X.indices[3] = place
        case "lil":
            X.rows[3][0] = place
        case "dok":
            X._dict[(place, 0) if axis == 0 else (0, place)] = 1.0
    with pytest.raises(ValueError, match=r"X(\.indptr)? (is damaged|falls|ends|starts)"):
        sparse_rows(X)


@pytest.fixture(scope="module")
def models():
    X = made(some_counts(60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        topics = TopicModel(random_state=0, n_init_topics=3, max_laps=5, moves=()).fit(X)
        rows = Mixture("multinomial", random_state=0, max_laps=5).fit(X)
        bits = Mixture("bernoulli", random_state=0, max_laps=5).fit(X > 0)
    return topics, rows, bits


DOORS = {
    "TopicModel.fit": lambda t, m, b, X: TopicModel(max_laps=1).fit(X),
    "TopicModel.partial_fit": lambda t, m, b, X: t.partial_fit(X),
    "transform": lambda t, m, b, X: t.transform(X),
    "score": lambda t, m, b, X: t.score(X),
    "perplexity": lambda t, m, b, X: t.perplexity(X),
    "completion_score of": lambda t, m, b, X: t.completion_score(X, made(some_counts())),
    "completion_score on": lambda t, m, b, X: t.completion_score(made(some_counts()), X),
    "coherence": lambda t, m, b, X: t.coherence(X),
    "to_pyldavis": lambda t, m, b, X: t.to_pyldavis(X),
    "report.coherence": lambda t, m, b, X: coherence(t.topics_, X),
    "anchor_topics": lambda t, m, b, X: anchor_topics(X, 2, np.random.default_rng(0)),
    "Mixture.fit": lambda t, m, b, X: Mixture("multinomial", max_laps=1).fit(X),
    "Mixture.fit auto": lambda t, m, b, X: Mixture("auto", max_laps=1).fit(X),
    "predict": lambda t, m, b, X: m.predict(X),
    "predict_proba": lambda t, m, b, X: m.predict_proba(X),
    "score_samples": lambda t, m, b, X: m.score_samples(X),
    "bits": lambda t, m, b, X: b.score_samples(X),
    "impute": lambda t, m, b, X: m.impute(X),
}


@every_wrong
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_damaged_rows(models, door, what):
    X, message = broken(what)
    with pytest.raises(ValueError, match=message):
        DOORS[door](*models, X)


# Files


def write_npz(path, **changes):
    X = made(some_counts())
    arrays = {"format": b"csr", "shape": X.shape, "data": X.data, "indices": X.indices, "indptr": X.indptr}
    np.savez(path, **arrays | changes)
    return path


@every_wrong
def test_damaged_npz_files_are_refused(tmp_path, what):
    X, _ = broken(what)
    path = write_npz(tmp_path / "X.npz", data=X.data, indices=X.indices, indptr=X.indptr)
    with pytest.raises(DataError, match=r"X\.npz") as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [{"shape": (20, 3)}, {"shape": (25, 12)}, {"shape": (20,)}, {"shape": "x"}, {"format": b"cow"}, {"indptr": 3}],
)
def test_npz_files_that_contradict_themselves_are_refused(tmp_path, changes):
    with pytest.raises(DataError, match=r"X\.npz"):
        read_table(write_npz(tmp_path / "X.npz", **changes))


def damage(folder, file, place, value):
    X = np.load(folder / file, mmap_mode="r+")
    X[place] = value
    X.flush()


@pytest.mark.parametrize(
    ("file", "place", "value", "message"),
    [
        ("indices.npy", 5, 10**6, r"indices\.npy is damaged: entry 5, in row 0, is of column 1000000"),
        ("indices.npy", -1, -7, r"indices\.npy is damaged: .* in row 19, is of column -7"),
        ("indptr.npy", 4, 10**12, r"indptr\.npy falls from 1000000000000 to \d+ at row 4"),
        ("indptr.npy", 4, -1, r"indptr\.npy falls from \d+ to -1 at row 3"),
    ],
)
def test_damaged_corpora_are_refused(tmp_path, models, file, place, value, message):
    write_corpus(tmp_path / "c", made(some_counts()))
    damage(tmp_path / "c", file, place, value)
    X = open_corpus(tmp_path / "c")
    for door in DOORS.values():
        with pytest.raises(ValueError, match=message + r".*Write the corpus again\."):
            door(*models, X)
    with pytest.raises(DataError, match=message):
        write_corpus(tmp_path / "d", X)
    assert not (tmp_path / "d").exists()


def test_a_corpus_of_fewer_words_than_it_has_is_refused(tmp_path, models):
    write_corpus(tmp_path / "c", made(some_counts()))
    record = json.loads((tmp_path / "c" / "corpus.json").read_text())
    (tmp_path / "c" / "corpus.json").write_text(json.dumps(record | {"n_words": 5}))
    with pytest.raises(ValueError, match=r"indices\.npy is damaged: .* but there are 5 columns"):
        TopicModel().fit(open_corpus(tmp_path / "c"))


def test_a_corpus_in_order_stays_on_disk_and_one_out_of_order_is_sorted(tmp_path):
    write_corpus(tmp_path / "c", made(some_counts()))
    found = sparse_rows(open_corpus(tmp_path / "c"))
    assert all(isinstance(array, np.memmap) for array in (found.data, found.indices, found.indptr))
    damage(tmp_path / "c", "indices.npy", slice(0, 3), found.indices[:3][::-1].copy())
    np.testing.assert_array_equal(
        np.sort(sparse_rows(open_corpus(tmp_path / "c")).toarray()[0]), np.sort(some_counts()[0])
    )


@pytest.mark.parametrize(("value", "stored"), [(1e-50, 0), (1e39, None)])
def test_a_corpus_holds_what_float32_can_hold(tmp_path, value, stored):
    X = sparse.csr_array(np.array([[value, 1.0]]))
    if stored is None:
        with pytest.raises(DataError, match="a count of 1e"):
            write_corpus(tmp_path / "c", X)
    else:
        write_corpus(tmp_path / "c", X)
        assert open_corpus(tmp_path / "c").nnz == 1


# An attack: random changes, in processes of their own, so that a crash or a hang is seen

NUMBERS = (-(10**12), -(2**31), -2, -1, 0, 1, 2, 3, 11, 12, 13, 20, 21, 100, 10**6, 2**31, 2**40)
TYPES = ("<i4", ">i8", "u1", "u8", "i1", "f4", "f8", ">f4", "f2", "g", "c16", "?", "U3", "O")


def twisted(array, rng):
    """An array with some numbers, its type or its shape changed."""
    array = np.array(array)
    for _ in range(rng.integers(1, 4)):
        match rng.integers(9):
            case 0 | 1 | 2 | 3 if array.size and array.dtype.kind in "iufb":
                with np.errstate(all="ignore"):
                    value = np.array(rng.choice(NUMBERS)).astype(array.dtype)
                array.ravel()[rng.integers(array.size)] = value
                array.flat[rng.integers(array.size)] = value
            case 4 if array.size > 1:
                i, j = rng.integers(array.size, size=2)
                array.flat[i], array.flat[j] = array.flat[j], array.flat[i]
            case 5:
                array = array[: rng.integers(len(array) + 1)] if array.ndim else array
            case 6:
                array = np.concatenate([array, array[:3]]) if array.ndim else array
            case 7:
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    array = array.astype(rng.choice(TYPES)) if array.dtype.kind in "iufb" else array
            case 8:
                array = array[::-1] if array.ndim and rng.random() < 0.8 else array.reshape(1, -1)
    return array


def mutant(rng):
    """A sparse matrix of a random format of which something was changed."""
    dtype = rng.choice(["f8", "f4", "i1", "i8", "?"])
    X = made(some_counts(20, 12, int(rng.integers(100)), dtype), rng.choice(list(KINDS)))
    if rng.random() < 0.5:
        X.nnz, getattr(X, "has_canonical_format", None)  # SciPy remembers
    for _ in range(rng.integers(1, 3)):
        match X.format:
            case "csr" | "csc" | "bsr":
                name = rng.choice(["indices", "indptr", "data"], p=[0.5, 0.3, 0.2])
                setattr(X, name, twisted(getattr(X, name), rng))
            case "coo":
                places = [twisted(place, rng) if rng.random() < 0.6 else place for place in X.coords]
                X.coords = tuple(places[: 1 if rng.random() < 0.02 else 2])
                X.data = twisted(X.data, rng) if rng.random() < 0.2 else X.data
            case "dia":
                name = rng.choice(["offsets", "data"])
                setattr(X, name, twisted(getattr(X, name), rng))
            case "lil":
                name, i = rng.choice(["rows", "data"], p=[0.8, 0.2]), rng.integers(20)
                if rng.random() < 0.1:
                    setattr(X, name, getattr(X, name)[: rng.integers(20)])
                    break
                row = getattr(X, name)[i]
                row = list(row) if isinstance(row, list) else []
                value = [*NUMBERS, "x", None, 0.5, 10**30][rng.integers(len(NUMBERS) + 4)]
                row[: int(rng.random() < 0.7)] = [value]
                getattr(X, name)[i] = row if rng.random() < 0.95 else value
            case "dok":
                keys = [int(k) for k in rng.choice(NUMBERS, 2)]
                key = [tuple(keys), (keys[0],), (0.5, 1), "x", (10**30, 1)][
                    rng.choice(5, p=[0.8, 0.05, 0.05, 0.05, 0.05])
                ]
                X._dict[key] = [1.0, "x", None, 10**30][rng.choice(4, p=[0.85, 0.05, 0.05, 0.05])]
    if rng.random() < 0.1:
        X._shape = tuple(int(size) for size in rng.choice([0, 3, 12, 19, 20, 21, 10**6], rng.choice([1, 2, 2, 2, 3])))
    return X


def dense(X):
    """What a matrix holds, by its definition, entry by entry; None where SciPy's own toarray is as good."""
    if X.format == "csr":
        sizes = np.diff(np.asarray(X.indptr).astype(np.int64))
        entries = np.repeat(np.arange(len(sizes)), sizes), np.asarray(X.indices).astype(np.int64)[: sizes.sum()]
    elif X.format == "coo":
        entries = tuple(np.asarray(place).astype(np.int64) for place in X.coords)
    else:
        return None
    full = np.zeros(X.shape)
    np.add.at(full, entries, np.asarray(X.data).astype(np.float64)[: len(entries[0])])
    return np.minimum(full, 1.0) if np.asarray(X.data).dtype == np.bool_ else full


def attack_matrix(rng, models):
    X = mutant(rng)
    found = sparse_rows(X)
    expected = dense(X) if X.shape[0] < 1000 and X.shape[1] < 1000 else None
    if expected is not None:
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-6)
    if found.shape[1] <= 12:
        door = list(DOORS)[rng.integers(len(DOORS))]
        DOORS[door](*models, X)


def attack_npz(rng, models):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npz"
        sparse.save_npz(
            path, made(some_counts(), rng.choice([kind for kind in KINDS if kind[:3] not in ("lil", "dok")]))
        )
        arrays = dict(np.load(path))
        name = rng.choice(list(arrays))
        arrays[name] = twisted(arrays[name], rng) if rng.random() < 0.9 else np.array(3)
        if arrays[name].dtype.hasobject or rng.random() < 0.05:
            del arrays[name]
        np.savez(path, **arrays)
        X = read_table(path).X
        models[0].transform(X)


def attack_corpus(rng, models):
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "c"
        write_corpus(corpus, made(some_counts()))
        name = rng.choice(["indices", "indptr", "counts", "n_words"], p=[0.4, 0.3, 0.2, 0.1])
        if name == "n_words":
            record = json.loads((corpus / "corpus.json").read_text())
            (corpus / "corpus.json").write_text(json.dumps(record | {name: int(rng.choice([0, 1, 5, 11, 13, 2**40]))}))
        elif rng.random() < 0.5:
            content = bytearray((corpus / f"{name}.npy").read_bytes())
            for _ in range(rng.integers(1, 4)):
                content[rng.integers(128, len(content))] = rng.integers(256)  # the header is another matter
            (corpus / f"{name}.npy").write_bytes(content)
        else:
            array = np.load(corpus / f"{name}.npy")
            array[rng.integers(len(array))] = rng.choice(NUMBERS).astype(array.dtype)
            np.save(corpus / f"{name}.npy", array)
        X = open_corpus(corpus)
        if X.shape[1] < 1000:
            [models[0].transform, lambda X: TopicModel(max_laps=1).fit(X), models[0].score][rng.integers(3)](X)
        write_corpus(Path(folder) / "d", X)


ATTACKS = (attack_matrix, attack_matrix, attack_matrix, attack_npz, attack_corpus)


def is_ours(error):
    """Whether an error says in one line what is wrong, and comes from a check: ours, or that of scikit-learn before it."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    checks = any(name in last for name in ("stickbreak", os.path.join("sklearn", "utils", "validation.py")))
    return isinstance(error, (ValueError, TypeError, OSError)) and checks and bool(str(error))


def attack(first, last):
    """Random attacks; raises the first error that is not ours."""
    warnings.simplefilter("ignore")
    X = made(some_counts(60))
    topics = TopicModel(random_state=0, n_init_topics=3, max_laps=2, moves=(), n_jobs=1).fit(X)
    rows = Mixture("multinomial", random_state=0, max_laps=2, n_jobs=1).fit(X)
    bits = Mixture("bernoulli", random_state=0, max_laps=2, n_jobs=1).fit(X > 0)
    refused = 0
    for seed in range(first, last):
        print(seed, file=sys.stderr, flush=True)
        rng = np.random.default_rng(seed)
        try:
            ATTACKS[rng.integers(len(ATTACKS))](rng, (topics, rows, bits))
        except Exception as error:
            if not is_ours(error):
                raise
            refused += 1
    print(refused)


def test_random_damage_never_crashes_and_is_never_silent():
    script = f"import runpy; runpy.run_path({__file__!r}, run_name='attack')['attack'](0, 100)"
    ran = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script], capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert 20 < int(ran.stdout) < 100
