"""Damaged input files: valid small files of every format, what can befall them, and a worker that reads the results.

As a script, ``python file_mutations.py SEED FIRST LAST`` reads the mutations FIRST, ..., LAST - 1 of a seed, each of
which depends on its number and the seed alone, within 4 GB of memory, and writes a line before and after each.
"""

import gzip
import io
import json
import os
import re
import resource
import select
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
from scipy import sparse

MEMORY, SECONDS = 4_000_000_000, 20.0
HUGE = [2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 10**30, 0, 1, -1]
NASTY = [b'"', b",", b";", b"\t", b"\n", b"\r", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"1e999", b"-nan", b"(", b"'"]
NASTY += [b"[" * 3000]


# Valid files ----------------------------------------------------------------------------------------------------------


def _written(write, *arguments, **options):
    buffer = io.BytesIO()
    write(buffer, *arguments, **options)
    return buffer.getvalue()


def _sparse_files(X):
    kinds = {kind: sparse.coo_array(X).asformat(kind) for kind in ("csr", "csc", "coo", "bsr", "dia")}
    return {f"{kind}.npz": _written(sparse.save_npz, matrix) for kind, matrix in kinds.items()}


def _arrow_files(table):
    from pyarrow import feather, parquet

    return {
        "a.parquet": _written(lambda file: parquet.write_table(table, file)),
        "groups.parquet": _written(lambda file: parquet.write_table(table, file, row_group_size=7, compression="zstd")),
        "plain.parquet": _written(
            lambda file: parquet.write_table(table, file, compression="none", use_dictionary=False)
        ),
        "a.feather": _written(lambda file: feather.write_feather(table, file)),
        "a.arrow": _written(lambda file: feather.write_feather(table, file, compression="uncompressed", chunksize=9)),
    }


def _ldac(X):
    return "".join(f"{len(w)} {' '.join(f'{v}:{row[v]:.0f}' for v in w)}\n" for row in X for w in [row.nonzero()[0]])


def _uci(X):
    entries = [f"{d + 1} {v + 1} {X[d, v]:.0f}\n" for d, v in np.argwhere(X)]
    return f"{X.shape[0]}\n{X.shape[1]}\n{len(entries)}\n" + "".join(entries)


def valid_files():
    """Contents by name: of files, and of the files of a corpus by name as a dictionary."""
    import pyarrow as pa

    from stickbreak.data.corpus import write_corpus

    rng = np.random.default_rng(0)
    X, counts = rng.standard_normal((20, 3)), rng.poisson(0.6, (12, 8))
    words = [["red", "blue", None, "green, or so"][i % 4] for i in range(20)]
    rows = [f"{a:.4f},{b:.17g},{word or ''}\n" for (a, b, _), word in zip(X, [w and f'"{w}"' for w in words])]
    csv = "width,height,colour\n" + "".join(rows)
    commas = "a;b\n" + "".join(f"{a:.3f};{b:.2e}\n".replace(".", ",") for a, b, _ in X)
    binarised = "K562\tchr1\nCTCF\tH3K4me1\n" + "".join(f"{a}\t{b}\n" for a, b in rng.integers(0, 3, (30, 2)))
    table = pa.table({"n": [*range(19), None], "x": X[:, 0], "f": X[:, 1].astype(np.float32), "kind": words})
    table = table.append_column("category", pa.array(words).dictionary_encode())
    files = {
        "a.npy": _written(np.save, X),
        "f.npy": _written(np.save, np.asfortranarray(X.astype(np.float32))),
        "a.npz": _written(np.savez, X=X, lengths=np.array([5, 15])),
        "packed.npz": _written(np.savez_compressed, X=X, doc_range=np.array([0, 5, 20])),
        "a.csv": csv.encode(),
        "plain.csv": _written(np.savetxt, X, delimiter=","),
        "commas.csv": commas.encode(),
        "utf16.csv": csv.encode("utf-16"),
        "a.tsv": csv.replace(",", "\t").encode(),
        "a.csv.gz": gzip.compress(csv.encode()),
        "a.ldac": _ldac(counts).encode(),
        "b.dat.gz": gzip.compress(_ldac(counts).encode()),
        "docword.a.txt": _uci(counts).encode(),
        "chr1_binary.txt": binarised.encode(),
        "chr2_binary.txt.gz": gzip.compress(binarised.encode()),
        **_sparse_files(counts.astype(np.int64)),
        **_arrow_files(table),
    }
    with tempfile.TemporaryDirectory() as folder:
        bags = Path(folder) / "bags.ldac"
        bags.write_text(_ldac(counts))
        bags.with_name("vocab.txt").write_text("".join(f"word{v}\n" for v in range(counts.shape[1])))
        write_corpus(Path(folder) / "corpus", bags)
        files["corpus"] = {file.name: file.read_bytes() for file in (Path(folder) / "corpus").iterdir()}
    return files


# What can befall them -------------------------------------------------------------------------------------------------


def flip_bits(content, rng):
    damaged = bytearray(content)
    for i in rng.integers(len(damaged), size=rng.integers(1, 6)):
        damaged[i] ^= 1 << rng.integers(8)
    return bytes(damaged)


def set_bytes(content, rng):
    damaged = bytearray(content)
    start, length = rng.integers(len(damaged)), rng.integers(1, 9)
    damaged[start : start + length] = rng.bytes(length)
    return bytes(damaged)


def truncate(content, rng):
    return content[: rng.integers(len(content))]


def cut_out(content, rng):
    start, stop = np.sort(rng.integers(len(content) + 1, size=2))
    return content[:start] + content[stop:]


def splice(content, rng):
    """A piece of the file in another place, in addition to or over what is there."""
    start, length, place = rng.integers(len(content)), rng.integers(1, 200), rng.integers(len(content))
    piece = content[start : start + length]
    return content[:place] + piece + content[place + len(piece) * rng.integers(2) :]


def insert_nasty(content, rng):
    place = rng.integers(len(content) + 1)
    return content[:place] + NASTY[rng.integers(len(NASTY))] + content[place:]


def huge_text(content, rng):
    """A number in text that is huge, negative or zero."""
    found = list(re.finditer(rb"\d+", content[:100_000]))
    if not found:
        return flip_bits(content, rng)
    number = found[rng.integers(min(len(found), 12) if rng.integers(2) else len(found))]
    return content[: number.start()] + str(HUGE[rng.integers(len(HUGE))]).encode() + content[number.end() :]


def huge_binary(content, rng):
    """A number in 2, 4 or 8 bytes that is huge, negative or zero."""
    code = "<" + "HIQ"[rng.integers(3)]
    size = struct.calcsize(code)
    place = rng.integers(max(len(content) - size, 0) + 1)
    number = HUGE[rng.integers(len(HUGE))] % 2 ** (8 * size)
    return content[:place] + struct.pack(code, number) + content[place + size :]


def repeat(content, rng):
    return content * int(rng.integers(2, 4))


ON_BYTES = [flip_bits, set_bytes, truncate, cut_out, splice, insert_nasty, huge_text, huge_binary, repeat]


def inside_gzip(content, rng):
    return gzip.compress(mutate(gzip.decompress(content), rng))


def inside_zip(content, rng):
    """A member of an archive that is damaged, with a checksum that fits, or is left out or there twice."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    i = rng.integers(len(members))
    name, inner = members[i]
    members[i] = name, (damaged_header if rng.integers(2) else mutate)(inner, rng)
    if rng.integers(10) == 0:
        members += members[:1] if rng.integers(2) else []
        members = members[int(rng.integers(2)) :]
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names
        with zipfile.ZipFile(buffer, "w", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED][rng.integers(2)]) as archive:
            for name, inner in members:
                archive.writestr(name, inner)
    return buffer.getvalue()


def damaged_header(content, rng):
    """A .npy file whose header, 128 bytes with its ends, announces something else."""
    header = content[10:128]
    changed = rng.choice([flip_bits, huge_text, insert_nasty, cut_out, splice])(header, rng)[:3000]
    changed = changed.rstrip(b" \n").ljust(117) + b"\n"
    return content[:8] + struct.pack("<H", len(changed)) + changed + content[128:]


def mutate(content, rng, name=""):
    """Damaged content; the name tells what is inside."""
    if not content:
        return rng.bytes(8)
    ways = list(ON_BYTES)
    if name.endswith(".gz") and content.startswith(b"\x1f\x8b"):
        ways += [inside_gzip] * 6
    if name.endswith(".npz") and rng.integers(4):
        ways = [inside_zip]
    if name.endswith(".npy"):
        ways += [damaged_header] * 9
    for _ in range(rng.integers(1, 3)):
        content = ways[rng.integers(len(ways))](content, rng) if content else content
        ways = ON_BYTES
    return content


def mutation(files, seed, number):
    """The name and content of a damaged file, or of the files of a damaged corpus."""
    rng = np.random.default_rng([seed, number])
    name = sorted(files)[number % len(files)]
    content = files[name]
    if isinstance(content, bytes):
        return name, mutate(content, rng, name)
    which = sorted(content)[rng.integers(len(content))]
    damaged = dict(content)
    if which == "corpus.json" and rng.integers(2):
        damaged[which] = damaged_record(content[which], rng)
    elif rng.integers(20) == 0:
        del damaged[which]
    else:
        damaged[which] = mutate(content[which], rng, which)
    return name, damaged


def damaged_record(content, rng):
    record = json.loads(content)
    key = sorted(record)[rng.integers(len(record))]
    value = [*HUGE, 3.5, True, None, "", "x", [], {}, [[]], "../../x"][rng.integers(len(HUGE) + 9)]
    return json.dumps(record | {key: value}).encode()


# Reading them ---------------------------------------------------------------------------------------------------------


def put(folder, name, content):
    """The path of a file, or of a corpus, with some content."""
    path = Path(folder) / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.mkdir()
        for part, inner in content.items():
            (path / part).write_bytes(inner)
    return path


def readers(name):
    """What reads a file of this name: each gives arrays, or raises DataError."""
    from stickbreak.data.corpus import open_bags, write_corpus
    from stickbreak.data.files import read_table
    from stickbreak.data.sequence_files import read_sequences

    if name == "corpus":
        return [lambda path: checked_bags(*open_bags(path))]
    if "binary" in name:
        return [lambda path: checked_sequences(read_sequences(path))]
    if ".txt" in name or ".ldac" in name or ".dat" in name:
        return [
            lambda path: checked_bags(*open_bags(path)),
            lambda path: write_corpus(path.with_name("written"), path),
        ]
    return [
        lambda path: checked_table(read_table(path), path),
        lambda path: checked_sequences(read_sequences(path)),
    ]


def checked_table(table, path):
    assert table.X.ndim == 2
    if path.suffix == ".npy":
        np.testing.assert_array_equal(table.X, np.load(path))
    assert table.X.dtype.kind in "biuf"
    assert table.names is None or len(table.names) == table.X.shape[1]
    if sparse.issparse(table.X):
        checked_bags(table.X, None)
    else:
        np.isnan(table.X).sum()  # reads all of it
    for d, levels in table.levels.items():
        codes = table.X[:, d]
        assert set(codes[~np.isnan(codes)]) == set(range(len(levels)))
        assert list(levels) == sorted(set(levels))


def checked_sequences(table):
    assert table.X.ndim == 2
    assert sum(table.lengths.tolist()) == len(table.X)
    assert len(table.sequences) == len(table.lengths)


def checked_bags(X, words):
    """Offsets and indices may still be damaged within arrays of the right sizes: that is what their own check is for."""
    assert len(X.indptr) == X.shape[0] + 1
    assert len(X.indices) == len(X.data) == X.indptr[-1]
    assert words is None or len(words) == X.shape[1]


def outcome(path):
    """What came of a file: "read", "refused", or what is wrong with that."""
    from stickbreak.data.files import DataError

    results = set()
    for read in readers(path.name):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.filterwarnings("ignore", message=".*decimals follow a comma", category=UserWarning)
                read(path)
            results.add("read")
        except DataError as error:
            message = str(error)
            whole = "\n" not in message and path.name in message and len(message) < 1000
            results.add("refused" if whole else f"WRONG message {message[:300]!r}")
        except Exception as error:
            results.add(f"WRONG {type(error).__name__}: {str(error)[:300]!r}")
    return min(results)  # what is wrong comes first


def work(seed, first, last):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    files = valid_files()
    for number in range(first, last):
        print(number, "starts", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            name, content = mutation(files, seed, number)
            print(number, name, outcome(put(folder, name, content)), flush=True)


def attack(seed, count, first=0):
    """Read mutations in processes of their own; the lines of those that went wrong, and how many ended in which way."""
    wrong, ended, stop = [], {}, first + count
    while first < stop:
        command = [sys.executable, __file__, str(seed), str(first), str(stop)]
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "NUMBA")}
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | threads) as worker:
            number = first - 1
            while line := _line(worker, SECONDS if number >= first else 120.0):
                number = int(line.split(" ", 1)[0])
                if not line.endswith("starts\n"):
                    ending = line.split(" ", 2)[2].strip()
                    ended[ending.split(":")[0][:40]] = ended.get(ending.split(":")[0][:40], 0) + 1
                    if ending not in ("read", "refused"):
                        wrong.append(line.strip())
            worker.kill()
        if worker.wait() != 0:
            wrong.append(f"{number} ended the process with {worker.returncode}, or took too long")
        elif number == stop - 1:
            break
        first = number + 1
    return wrong, ended


def _line(worker, seconds):
    """The next line of a worker, empty if there is none in time."""
    ready, _, _ = select.select([worker.stdout], [], [], seconds)
    return worker.stdout.readline() if ready else ""


if __name__ == "__main__":
    work(*map(int, sys.argv[1:]))
