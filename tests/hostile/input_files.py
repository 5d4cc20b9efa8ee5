"""Damaged and misleading data files: a DataError that names the file, or the table that is in it."""

import gzip
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from stickbreak import TopicModel
from stickbreak.data.corpus import open_bags, write_corpus
from stickbreak.data.files import DataError, ReadOptions, read_table
from stickbreak.data.sequence_files import read_sequences

from .attacker import FINE, REFUSED, Attacker, Outcome
from .errors import foreign
from .mutations import damaged_bytes, mutated_array, mutated_json, nested
from .verdict import watched


@dataclass(frozen=True)
class DataFile:
    """A file of some kind, what is done to it, and a seed for both."""

    kind: str = "csv"
    damage: str = "none"
    seed: int = 0


def numbers(rng: np.random.Generator) -> np.ndarray:
    return np.round(rng.normal(size=(int(rng.integers(2, 8)), int(rng.integers(2, 5)))), 3)


# Writers: the bytes of a good file and the table it should be read as --------------------------------------------------

CSV = {  # delimiter, decimal mark, names, line ends, quotes
    "csv": (",", ".", True, "\n", False),
    "csv without names": (",", ".", False, "\n", False),
    "csv with semicolons": (";", ".", True, "\r\n", False),
    "csv with decimal commas": (";", ",", True, "\n", False),
    "csv of decimal commas without names": (";", ",", False, "\n", False),
    "csv in quotes": (",", ".", True, "\n", True),
    "csv in tabs": ("\t", ".", True, "\n", False),
}


def _csv(kind: str, X: np.ndarray) -> bytes:
    delimiter, mark, named, end, quoted = CSV[kind]
    cells = [[str(v).replace(".", mark) for v in row] for row in X.tolist()]
    if quoted:
        cells = [[f'"{cell}"' for cell in row] for row in cells]
    head = [[f"c{d}" for d in range(X.shape[1])]] if named else []
    return (end.join(delimiter.join(row) for row in [*head, *cells]) + end).encode()


def _saved(write: Callable[[io.BytesIO], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def _parquet(X: np.ndarray) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({f"c{d}": X[:, d] for d in range(X.shape[1])})
    return _saved(lambda file: pq.write_table(table, file))


def bag(rng: np.random.Generator) -> np.ndarray:
    X = rng.poisson(1.0, (int(rng.integers(2, 7)), int(rng.integers(3, 9)))).astype(float)
    X[:, -1] += 1.0
    return X


def _uci(X: np.ndarray) -> bytes:
    rows, columns = np.nonzero(X)
    lines = [f"{X.shape[0]}", f"{X.shape[1]}", f"{len(rows)}"]
    return "\n".join([*lines, *(f"{i + 1} {j + 1} {X[i, j]:.0f}" for i, j in zip(rows, columns)), ""]).encode()


def _ldac(X: np.ndarray) -> bytes:
    lines = [f"{np.count_nonzero(x)} " + " ".join(f"{j}:{x[j]:.0f}" for j in np.flatnonzero(x)) for x in X]
    return ("\n".join(lines) + "\n").encode()


def _binarised(X: np.ndarray) -> bytes:
    head = ["cell\tchr1", "\t".join(f"m{d}" for d in range(X.shape[1]))]
    return "\n".join([*head, *("\t".join(str(int(v)) for v in x) for x in X), ""]).encode()


def _table(path: Path) -> Any:
    X = read_table(path).X
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def _bags(path: Path) -> Any:
    X, _ = open_bags(path)
    if X.shape[0] * max(X.shape[1], 1) > 10**7:
        return None
    return sparse.csr_array(X).toarray()


def _sequences(path: Path) -> Any:
    return read_sequences(path).X


TABLES: dict[str, tuple[str, Callable, Callable, Callable]] = {  # ending, values, bytes, reader
    **{kind: (".csv", numbers, lambda X, kind=kind: _csv(kind, X), _table) for kind in CSV},
    "npy": (".npy", numbers, lambda X: _saved(lambda file: np.save(file, X)), _table),
    "npy of integers": (
        ".npy",
        lambda rng: np.arange(6).reshape(2, 3),
        lambda X: _saved(lambda f: np.save(f, X)),
        _table,
    ),
    "npz": (".npz", numbers, lambda X: _saved(lambda file: np.savez(file, X=X)), _table),
    "packed npz": (".npz", numbers, lambda X: _saved(lambda file: np.savez_compressed(file, X=X)), _table),
    "sparse npz": (".npz", bag, lambda X: _saved(lambda f: sparse.save_npz(f, sparse.csr_array(X))), _table),
    "parquet": (".parquet", numbers, _parquet, _table),
    "uci": (".txt", bag, _uci, _bags),
    "packed uci": (".txt.gz", bag, lambda X: gzip.compress(_uci(X)), _bags),
    "ldac": (".ldac", bag, _ldac, _bags),
    "binarised": (".txt", lambda rng: rng.integers(2, size=(6, 3)).astype(float), _binarised, _sequences),
    "sequences": (".npz", numbers, lambda X: _saved(lambda f: np.savez(f, X=X, lengths=[len(X)])), _sequences),
}

# Damages ---------------------------------------------------------------------------------------------------------------


def _bytes(data: bytes, rng: np.random.Generator) -> bytes:
    return damaged_bytes(data, rng)


def _digits(data: bytes, rng: np.random.Generator) -> bytes:
    """One number in the text replaced by a huge, negative or broken one."""
    import re

    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data
    match = found[rng.integers(min(len(found), 12) if rng.random() < 0.7 else len(found))]
    wrong = (
        b"0",
        b"-1",
        b"9" * 12,
        b"9" * 5000,
        b"2147483648",
        b"1e5",
        b"3.5",
        b"nan",
        b"",
        b"99999999",
        b"2000000000",
        b"x",
    )
    return data[: match.start()] + wrong[rng.integers(len(wrong))] + data[match.end() :]


def _lines(data: bytes, rng: np.random.Generator) -> bytes:
    """A line removed, repeated, emptied, or made very long."""
    lines = data.split(b"\n")
    i, kind = int(rng.integers(len(lines))), rng.integers(5)
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[i])
    elif kind == 2:
        lines[i] = b""
    elif kind == 3:
        lines[i] = lines[i] + b"," + b"x" * 140_000
    else:
        lines[i] = b",".join([b"1"] * 200_000)
    return b"\n".join(lines)


def _repacked(data: bytes, rng: np.random.Generator) -> bytes:
    return gzip.compress(_digits(gzip.decompress(data), rng))


DAMAGES: dict[str, Callable[[bytes, np.random.Generator], bytes]] = {
    "none": lambda data, rng: data,
    "bytes": _bytes,
    "digits": _digits,
    "lines": _lines,
    "repacked": _repacked,
    "empty": lambda data, rng: b"",
    "bom": lambda data, rng: b"\xef\xbb\xbf" + data,
    "utf-16": lambda data, rng: data.decode("latin-1").encode("utf-16"),
}
TEXT = {"uci", "ldac", "binarised", *CSV}


def _cases(kind: str) -> st.SearchStrategy:
    damages = ["none", "bytes", "bytes", "digits", "empty"]
    damages += ["lines", "lines", "bom", "utf-16"] if kind in TEXT else []
    damages += ["repacked", "repacked"] if kind == "packed uci" else []
    return st.builds(DataFile, st.just(kind), st.sampled_from(damages), st.integers(0, 10**6))


BOMBS = (".csv.gz", ".tsv.gz", ".txt.gz", ".ldac.gz", ".npz")
CORPUS = ("json", "json", "indices", "indptr", "counts", "array bytes", "missing file", "nested json", "vocabulary")
CASES = st.one_of(
    st.builds(DataFile, st.just("bomb"), st.sampled_from(BOMBS), st.integers(0, 10**6)),
    *(_cases(kind) for kind in TABLES),
    st.builds(DataFile, st.just("corpus"), st.sampled_from(CORPUS), st.integers(0, 10**6)),
    st.builds(DataFile, st.just("corpus"), st.sampled_from(CORPUS), st.integers(0, 10**6)),
    st.builds(
        DataFile,
        st.just("lying sparse npz"),
        st.sampled_from(("indices", "indptr", "data", "shape")),
        st.integers(0, 10**6),
    ),
)


def _corpus(case: DataFile, folder: Path, rng: np.random.Generator) -> tuple[Path, Any, Callable]:
    """A corpus folder of which one part is altered."""
    path = folder / "corpus"
    write_corpus(path, sparse.csr_array(bag(rng)))
    record = path / "corpus.json"
    if case.damage == "json":
        record.write_text(json.dumps(mutated_json(json.loads(record.read_text()), rng)))
    elif case.damage == "nested json":
        record.write_text(nested(100_000))
    elif case.damage in ("indices", "indptr", "counts"):
        array = mutated_array(np.load(path / f"{case.damage}.npy"), rng)
        np.save(path / f"{case.damage}.npy", array)
    elif case.damage == "array bytes":
        file = path / f"{('indices', 'indptr', 'counts')[rng.integers(3)]}.npy"
        file.write_bytes(damaged_bytes(file.read_bytes(), rng))
    elif case.damage == "missing file":
        files = sorted(path.iterdir())
        files[rng.integers(len(files))].unlink()
    else:
        (path / "vocabulary.txt").write_bytes(rng.bytes(50))
    return path, None, _fitted


def _lying(case: DataFile, folder: Path, rng: np.random.Generator) -> tuple[Path, Any, Callable]:
    """A sparse .npz one of whose arrays lies."""
    C = sparse.csr_array(bag(rng))
    arrays = {"indices": C.indices, "indptr": C.indptr, "data": C.data, "shape": np.array(C.shape), "format": b"csr"}
    arrays[case.damage] = mutated_array(arrays[case.damage], rng)
    path = folder / "X.npz"
    np.savez(path, **arrays)
    return path, None, _fitted_table


def _fitted(path: Path) -> Any:
    """Fit topics to a corpus, which reads every index in it, and say what it holds."""
    X, _ = open_bags(path)
    TopicModel(max_laps=1, n_init_topics=2, n_jobs=1, random_state=0).fit(X)
    return sparse.csr_array(X).toarray() if X.shape[0] * X.shape[1] < 10**7 else None


def _fitted_table(path: Path) -> Any:
    X = read_table(path).X
    TopicModel(max_laps=1, n_init_topics=2, n_jobs=1, random_state=0).fit(X)
    return None


def _bomb(case: DataFile, folder: Path, rng: np.random.Generator) -> tuple[Path, Any, Callable]:
    """A small file that unpacks to much more than the caller allows."""
    n = int(rng.integers(10_000, 1_000_000))
    path = folder / f"data{case.damage}"
    if case.damage == ".npz":
        np.savez_compressed(path, X=np.zeros((n, 2)))
    else:
        line = b"1 0:1\n" if "ldac" in case.damage else b"1 1 1\n" if "txt" in case.damage else b"1,2\n"
        head = b"%d\n1\n%d\n" % (1, n) if "txt" in case.damage else b""
        path.write_bytes(gzip.compress(head + line * n))
    return path, None, _limited


def _limited(path: Path) -> Any:
    """Read a bomb with a limit below its size, which must be refused with what to pass instead."""
    read = open_bags if path.name.endswith((".txt.gz", ".ldac.gz")) else read_table
    try:
        read(path, ReadOptions(max_bytes=20_000))
    except DataError as error:
        if "max_bytes" in str(error):
            raise
        raise RuntimeError(f"the limit is not named: {error}") from error
    raise RuntimeError("a file is unpacked beyond the limit")


def _file(case: DataFile, folder: Path, rng: np.random.Generator) -> tuple[Path, Any, Callable]:
    if case.kind == "corpus":
        return _corpus(case, folder, rng)
    if case.kind == "lying sparse npz":
        return _lying(case, folder, rng)
    if case.kind == "bomb":
        return _bomb(case, folder, rng)
    ending, values, write, read = TABLES[case.kind]
    X = values(rng)
    path = folder / f"data{ending}"
    path.write_bytes(DAMAGES[case.damage](write(X), rng))
    whole = case.damage == "none" or (case.damage == "bom" and case.kind in CSV)
    return path, X if whole else None, read


@watched
def run(case: DataFile) -> Outcome:
    rng = np.random.default_rng(case.seed)
    with tempfile.TemporaryDirectory(prefix="hostile") as name:
        path, expected, read = _file(case, Path(name), rng)
        return _read(path, expected, read)


def _read(path: Path, expected: Any, read: Callable) -> Outcome:
    try:
        found = read(path)
    except Exception as error:
        text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        reason = foreign(error)
        if reason in ("raised by others",) or (reason or "").endswith("type of ours"):
            return Outcome("foreign error", f"{reason}: {text}")
        if isinstance(error, DataError) and path.name not in str(error):
            return Outcome("unclear error", f"does not name {path.name}: {text}")
        if len(str(error)) > 2000 or "\n" in str(error):
            return Outcome("unclear error", f"{len(str(error))} characters: {text}")
        return Outcome("refused for nothing", text) if expected is not None else Outcome(REFUSED, text)
    if expected is None:
        return Outcome(FINE)
    same = found is not None and np.shape(found) == expected.shape and np.allclose(found, expected)
    return Outcome(FINE) if same else Outcome("file read otherwise", f"{np.shape(found)}: {str(found)[:200]}")


ATTACKERS = [Attacker("input files", CASES, run, {"DataFile": DataFile}, seconds=60.0)]
