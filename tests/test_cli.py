"""The command line: what it does, what it says, and how it ends."""

import gzip
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import stickbreak
from stickbreak import HMM, Mixture, cli, load
from stickbreak.cli import compiling, digits
from stickbreak.data.corpus import write_corpus
from stickbreak.kernels._jit import NOT_KEPT, folder_of
from stickbreak.kernels.assign import softmax_rows

EXAMPLES = Path(__file__).parents[1] / "examples"
REGISTRIES = (stickbreak.likelihoods.REGISTRY, stickbreak.allocations.REGISTRY)
COMMAND = [sys.executable, "-c", "from stickbreak.cli import main; main()"]


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.permutation(np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in (-9.0, 0.0, 9.0)]))


@pytest.fixture
def folder(tmp_path, X, monkeypatch):
    """An own folder with a table in three kinds of files, which is the current one."""
    np.save(tmp_path / "X.npy", X)
    np.savetxt(tmp_path / "X.csv", X, fmt="%.17g", delimiter=",", header="width,height", comments="")
    np.savetxt(tmp_path / "swapped.csv", X[:, ::-1], delimiter=",", header="height,width", comments="")
    np.save(tmp_path / "wide.npy", np.hstack([X, X]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capsys, monkeypatch):
    """Run the command in this process: exit code, stdout and stderr."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["stickbreak", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return call


def fails(run, *arguments):
    """The one line about a user's mistake."""
    code, out, err = run(*arguments)
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert (code, out, len(lines)) == (1, "", 1)
    assert "Traceback" not in err
    return lines[0]


@pytest.fixture(scope="module")
def fitted(X):
    return Mixture(random_state=1).fit(X)


@pytest.mark.parametrize("data", ["X.npy", "X.csv"])
def test_fit_info_predict(run, folder, X, fitted, data):
    code, out, err = run("fit", data, "--out", "model", "--seed", 1)
    assert code == 0
    assert "3 clusters" in out
    assert "450 rows, 2 columns" in err
    model = fitted
    for labels in ("labels.npy", "labels.csv"):
        assert run("predict", "model", data, "--out", labels)[0] == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    assert (folder / "labels.csv").read_text().startswith("cluster\n")
    np.testing.assert_array_equal(np.loadtxt("labels.csv", skiprows=1), model.labels_)
    for probabilities in ("p.npy", "p.csv"):
        assert run("predict", "model", data, "--out", probabilities, "--proba")[0] == 0
    np.testing.assert_array_equal(np.load("p.npy"), model.predict_proba(X))
    np.testing.assert_allclose(np.loadtxt("p.csv", delimiter=",", skiprows=1), model.predict_proba(X), atol=1e-9)
    code, out, err = run("info", "model", "--clusters", 2)
    assert (code, err) == (0, "")
    for words in ("450 rows", "float64", stickbreak.__version__, "DirichletProcess(concentration=1.0)", "Gaussian("):
        assert words in out
    assert f"{model.lower_bound_:,.2f}" in out
    assert "and 1 smaller" in out
    if data == "X.csv":
        assert "width" in out


def test_every_option_reaches_the_estimator(run):
    options = {
        "likelihood": "zero_mean_gaussian",
        "concentration": 2.5,
        "batches": 3,
        "algorithm": "full",
        "init": "random",
        "n-init": 4,
        "max-laps": 5,
        "seed": 9,
        "jobs": 1,
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", value)]
    code, out, err = run("fit", "X.npy", "--out", "model", "--float32", "--quiet", *flags)
    assert (code, out) == (0, "")
    assert err == "" or err.startswith("warning: not converged")
    assert len(err.splitlines()) <= 1
    model = load("model")
    found = model.get_params()
    renamed = {"batches": "n_batches", "n-init": "n_init_clusters", "max-laps": "max_laps"}
    renamed |= {"seed": "random_state", "jobs": "n_jobs"}
    for name, value in options.items():
        assert found[renamed.get(name, name)] == value
    assert model.dtype_ == np.float32


def test_findings_of_the_data_check_are_lines_of_their_own(run, folder, X):
    few = X[:90]
    table = np.column_stack([few, few[:, 0], np.ones(90)])
    np.savetxt("odd.csv", table, fmt="%.17g", delimiter=",", header="width,height,again,unit", comments="")
    code, _, err = run("fit", "odd.csv", "--out", "model", "--seed", 0, "--quiet", "--likelihood", "diagonal_gaussian")
    assert code == 0
    assert err.splitlines() == [
        "warning: a single value in column 'unit'; leave constant columns out.",
        "warning: the same numbers, but for their units, in columns 'width' and 'again'; leave all but one out.",
    ]
    assert load("model").data_check_[0].names == ("unit",)
    assert list(load("model").feature_names_in_) == ["width", "height", "again", "unit"]


def test_whole_numbers_are_fine(run):
    np.save("counts.npy", np.arange(40).reshape(20, 2) % 7)
    assert run("fit", "counts.npy", "--out", "model", "--seed", 0)[0] == 0


def test_tables_with_categories_and_missing_cells(run, folder):
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], 300)
    size = np.where(kind == "a", 0.0, 50.0) + rng.normal(size=300)
    lines = [f"{x:.6f},{k}" for x, k in zip(size, kind)]
    lines[5], lines[8] = ",a", "50.0,"

    def write(name, rows):
        (folder / name).write_text("\n".join(["size,kind", *rows]))

    write("X.csv", lines)
    assert run("fit", "X.csv", "--out", "model", "--likelihood", "auto", "--seed", 0, "--quiet")[0] == 0
    model = load("model")
    assert model.levels_ == {1: ["a", "b"]}
    assert "kind=a" in run("info", "model")[1]
    write("one.csv", [",b", "1.0,", "48.0,b"])  # one level has another code in this file than in the first
    assert run("predict", "model", "one.csv", "--out", "labels.npy")[0] == 0
    labels = np.load("labels.npy")
    assert labels[0] == labels[2] == model.predict(pd.DataFrame({"size": [50.0], "kind": ["b"]}))[0] != labels[1]
    write("other.csv", ["1.0,c", "2.0,a"])
    assert "'c'" in fails(run, "predict", "model", "other.csv", "--out", "labels.npy")


def test_a_sparse_table(run):
    rng = np.random.default_rng(0)
    X = rng.multinomial(50, [0.5, 0.3, 0.1, 0.1], 100)
    X[::2] = X[::2, ::-1]
    sparse.save_npz("X.npz", sparse.csr_array(X))
    assert run("fit", "X.npz", "--out", "model", "--likelihood", "multinomial", "--seed", 0, "--quiet")[0] == 0
    assert run("predict", "model", "X.npz", "--out", "labels.npy")[0] == 0
    labels = np.load("labels.npy")
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]


def test_column_names_are_shown_as_they_are(run, folder):
    rows = (folder / "X.csv").read_text().split("\n", 1)[1]
    (folder / "named.csv").write_text("price [m],[/x] :smile:\n" + rows)
    assert run("fit", "named.csv", "--out", "model", "--quiet")[0] == 0
    code, out, _ = run("info", "model")
    assert code == 0
    assert "price [m] " in out
    assert "[/x] :smile: " in out


def test_mistakes_are_one_line(run, folder):
    assert run("fit", "X.csv", "--out", "model", "--max-laps", 3)[0] == 0
    (folder / "text.csv").write_text("a,b\n1,2\n3,x\n")
    (folder / "broken").write_bytes((folder / "model").read_bytes()[:-7])
    np.save("nan.npy", np.array([[1.0, 2.0], [np.nan, 3.0]]))
    mistakes = {
        ("fit", "none.csv", "--out", "m"): "no file none.csv",
        ("fit", "text.csv", "--out", "m"): "line 3, column 2 ('b'): 'x'",
        ("fit", "nan.npy", "--out", "m", "--likelihood", "spherical_gaussian"): "row 1, column 0",
        ("fit", "X.npy", "--out", "missing/m"): "does not exist",
        ("fit", "X.npy", "--out", folder): "is a directory",
        ("fit", "X.npy", "--out", "./X.npy"): "would replace an input",
        ("fit", "X.npy", "--out", "m", "--likelihood", "poison"): "poison",
        ("fit", "X.npy", "--out", "m", "--concentration", "-1"): "concentration",
        ("fit", "X.npy", "--out", "m", "--max-laps", "0"): "max_laps",
        ("fit", "X.npy", "--out", "m", "--batches", "0"): "n_batches",
        ("predict", "none", "X.npy", "--out", "l.npy"): "no file none",
        ("predict", "X.npy", "X.npy", "--out", "l.npy"): "not a model file",
        ("predict", "broken", "X.npy", "--out", "l.npy"): "cut short",
        ("predict", "model", "X.npy", "--out", "l.txt"): ".npy or .csv",
        ("predict", "model", "X.npy", "--out", "X.npy"): "would replace an input",
        ("predict", "model", "wide.npy", "--out", "l.npy"): "4 features",
        ("predict", "model", "swapped.csv", "--out", "l.npy"): "height, width; the model was fitted to: width, height",
        ("info", "none"): "no file none",
        ("info", "X.csv"): "not a model file",
    }
    before = sorted(path.name for path in folder.iterdir())
    for arguments, words in mistakes.items():
        assert words in fails(run, *arguments)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_output_is_checked_before_the_fit(run, monkeypatch):
    monkeypatch.setattr(Mixture, "fit", lambda *_: pytest.fail("fitted before the output was checked"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "not writable" in fails(run, "fit", "X.npy", "--out", "m")


@pytest.mark.parametrize(
    "arguments", [["fit"], ["fit", "X.npy"], ["frobnicate"], ["fit", "X.npy", "--out", "m", "--seed", "x"]]
)
def test_wrong_usage_is_code_2(run, arguments):
    assert run(*arguments)[0] == 2


def test_version_and_help(run):
    code, out, _ = run("--version")
    assert (code, out.strip()) == (0, stickbreak.__version__)
    code, out, _ = run("fit", "--help")
    assert code == 0
    assert "--n-init" in out


def test_loops_are_compiled_ahead(run, monkeypatch):
    fitted = []
    monkeypatch.setattr(compiling, "_fits", lambda shows: [("mixtures", lambda: fitted.append(shows))])
    code, out, err = run("compile")
    assert (code, fitted) == (0, [True])
    assert re.search("^mixtures: [0-9.]+ s$", err)
    assert str(folder_of(softmax_rows)) in out
    assert run("compile", "--quiet") == (0, "", "")
    assert fitted == [True, False]


def test_what_is_compiled_ahead_must_be_kept(run, monkeypatch):
    def unwritable():
        warnings.warn(f"{NOT_KEPT}: /cache cannot be written.", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(compiling, "_fits", lambda shows: [("mixtures", unwritable)])
    assert "/cache cannot be written" in fails(run, "compile", "--quiet")
    monkeypatch.setattr(compiling, "folder_of", lambda kernel: None)
    assert "NUMBA_CACHE_DIR" in fails(run, "compile")


def test_the_demonstration_is_called(run, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(digits, "run", seen.append)
    assert run("demo", "--out", tmp_path / "pictures")[0] == 0
    assert seen == [tmp_path / "pictures"]


def test_an_interrupt_before_anything_is_worth_keeping(run, folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Mixture, "fit", interrupt)
    code, _, err = run("fit", "X.npy", "--out", "m")
    assert code == 130
    assert "interrupted" in err
    assert not (folder / "m").exists()


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A table whose fit takes a while."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("slow") / "slow.npy"
    np.save(path, np.concatenate([rng.normal(m, 1.0, (1000, 8)) for m in 2.0 * rng.standard_normal((20, 8))]))
    return path


def fit_until(text, data, out):
    """Start a fit with a terminal for stderr; come back when it has shown the text."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "fit", str(data), "--out", str(out), "--seed", "0", "--likelihood", "gaussian"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | {"COLUMNS": "120"})
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + 60
    while not re.search(text, seen):
        assert time.monotonic() < deadline, seen
        seen += os.read(ours, 4096)
    return process, ours, seen


def rest(process, terminal):
    """Everything the process writes until its end."""
    seen = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            piece = b""
        if not piece:
            break
        seen += piece
    os.close(terminal)
    out, _ = process.communicate(timeout=60)
    return seen.decode(), out.decode()


def test_ctrl_c_keeps_a_model_that_loads(slow, tmp_path):
    process, terminal, _ = fit_until(rb"lap [2-9] ", slow, tmp_path / "m")
    process.send_signal(signal.SIGINT)
    err, out = rest(process, terminal)
    assert process.returncode == 0, err
    assert "interrupted after" in err
    assert "saved to" in out
    model = load(tmp_path / "m")
    assert not model.converged_
    assert 1 < model.n_laps_ < model.max_laps
    assert model.summary_.N.sum() == pytest.approx(20_000)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_killed_fit_leaves_the_old_model(slow, X, tmp_path):
    Mixture("gaussian", init="k-means++", n_init_clusters=3, moves=(), random_state=0).fit(X).save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    process, terminal, seen = fit_until(rb"lap [2-9] ", slow, tmp_path / "m")
    process.kill()
    rest(process, terminal)
    assert b"ELBO/row" in seen
    assert (tmp_path / "m").read_bytes() == before
    assert load(tmp_path / "m").n_clusters_ == 3


def test_a_closed_pipe_is_no_traceback(X, tmp_path):
    Mixture("gaussian", moves=(), random_state=0).fit(X).save(tmp_path / "m")
    process = subprocess.Popen([*COMMAND, "info", str(tmp_path / "m")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(timeout=60) == 1
    assert err == ""


def test_importing_the_package_is_light():
    heavy = ("matplotlib", "polars", "rich", "cyclopts", "dask")
    code = f"import sys, stickbreak; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("data", ["bags.ldac", "folder", "bags.npz"])
def test_topics(run, folder, data):
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.multinomial(40, rng.dirichlet([0.3] * 3, 150) @ np.repeat(np.eye(3) / 4, 4, axis=1)))
    rows = [counts[[d]] for d in range(150)]
    lines = (f"{row.nnz} " + " ".join(f"{v}:{n}" for v, n in zip(row.indices, row.data)) for row in rows)
    (folder / "bags.ldac").write_text("\n".join(lines) + "\n")
    (folder / "vocab.txt").write_text("".join(f"word{v}\n" for v in range(12)))
    write_corpus("folder", folder / "bags.ldac")
    sparse.save_npz("bags.npz", counts)
    code, out, err = run("fit", data, "--model", "topics", "--out", "model", "--seed", 1, "--n-init", 5)
    assert code == 0
    assert "3 topics" in out
    assert "150 rows, 12 columns" in err
    assert run("predict", "model", data, "--out", "p.npy", "--proba")[0] == 0
    assert run("predict", "model", data, "--out", "labels.npy")[0] == 0
    proportions = stickbreak.load("model").transform(counts)
    np.testing.assert_allclose(np.load("p.npy"), proportions, atol=1e-4)
    np.testing.assert_array_equal(np.load("labels.npy"), np.load("p.npy").argmax(axis=1))
    code, out, err = run("info", "model", "--clusters", 2)
    assert (code, err) == (0, "")
    for words in ("150 documents, 6,000 rows", "HierarchicalDirichletProcess(", "3 topics", "and 1 smaller topics"):
        assert words in out
    assert bool(re.search(r"word\d", out)) == (data != "bags.npz")


@pytest.fixture(scope="module")
def steps():
    """Rows of states that last, the states, bits in which they differ, and the lengths of three sequences of them."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(3, size=30), 20)
    X = rng.normal(3.0 * states[:, None], 1.0, (600, 2))
    bits = (rng.random((600, 6)) < np.where(np.eye(3)[states].repeat(2, axis=1) > 0.0, 0.9, 0.05)).astype(int)
    return X, bits, [300, 200, 100]


@pytest.fixture(scope="module")
def fitted_steps(steps):
    X, _, lengths = steps
    return HMM("gaussian", random_state=1).fit(X, lengths=lengths)


@pytest.fixture
def sequences(folder, steps):
    """Three sequences of bits and numbers with states that last: a table in several kinds of files, and text of ChromHMM."""
    X, bits, lengths = steps
    who = np.repeat(["one", "two", "three"], lengths)
    rows = "".join(f"{a:.17g},{name},{b:.17g}\n" for (a, b), name in zip(X, who))
    (folder / "S.csv").write_text("width,who,height\n" + rows)
    pd.read_csv("S.csv").to_parquet("S.parquet")
    np.save("S.npy", np.column_stack([X, np.repeat([1.0, 2.0, 3.0], lengths)]))
    np.savez("S.npz", X=X, lengths=lengths)
    (folder / "marks").mkdir()
    for g, part in enumerate(np.split(bits, np.cumsum(lengths)[:-1])):
        lines = [f"K562\tchr{g + 9}", "\t".join("ABCDEF"), *("\t".join(map(str, row)) for row in part)]
        (folder / "marks" / f"chr{g + 9}.txt").write_text("\n".join(lines) + "\n")
    return X, bits, lengths


@pytest.mark.parametrize(
    ("data", "column"), [("S.csv", ["--sequence", "who"]), ("S.parquet", ["--sequence", "1"]), ("S.npz", [])]
)
def test_states_of_sequences(run, sequences, fitted_steps, data, column):
    X, _, lengths = sequences
    family = "--likelihood", "gaussian"  # the other tests choose one
    code, out, err = run("fit", data, "--model", "hmm", "--out", "model", "--seed", 1, *family, *column)
    assert code == 0
    assert "3 states, ELBO" in out
    assert f"{data}: 3 sequences, 600 rows, 2 columns" in err
    model = fitted_steps
    for out in ("labels.npy", "labels.csv", "p.csv"):
        more = ["--proba"] if out == "p.csv" else []
        assert run("predict", "model", data, "--out", out, *column, *more)[0] == 0
    np.testing.assert_array_equal(np.load("labels.npy"), model.labels_)
    np.testing.assert_array_equal(np.loadtxt("labels.csv", skiprows=1), model.labels_)
    expected = model.predict_proba(X, lengths)
    np.testing.assert_allclose(np.loadtxt("p.csv", delimiter=",", skiprows=1), expected, atol=1e-9)
    code, out, err = run("info", "model", "--clusters", 2)
    assert (code, err) == (0, "")
    for words in ("3 sequences, 600 rows", "HDPMarkovChain(", "concentration=5.0", "3 states", "and 1 smaller states"):
        assert words in out
    assert ("width" in out) == bool(column)


def test_the_headers_of_states(run, folder, sequences):
    assert run("fit", "S.npy", "--model", "hmm", "--out", "model", "--sequence", 2, "--quiet", "--seed", 1)[0] == 0
    assert load("model").n_features_in_ == 2
    for more, header in (([], "state"), (["--proba"], "state_0,state_1,state_2")):
        assert run("predict", "model", "S.npy", "--out", "l.csv", "--sequence", 2, *more)[0] == 0
        assert (folder / "l.csv").read_text().startswith(header + "\n")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_segments_of_chromosomes(run, folder, sequences):
    _, bits, lengths = sequences
    assert run("fit", "marks", "--model", "hmm", "--out", "model", "--seed", 1, "--quiet")[0] == 0
    model = load("model")
    assert model.likelihood == "bernoulli"
    assert list(model.feature_names_in_) == list("ABCDEF")
    assert run("predict", "model", "marks", "--out", "states.bed", "--bin-size", 200)[0] == 0
    table = pd.read_csv("states.bed", sep="\t", header=None)
    bins = (table[2] - table[1]) // 200
    assert list(table[0].unique()) == ["chr9", "chr10", "chr11"]
    assert list(bins.groupby(table[0], sort=False).sum()) == lengths
    states = np.repeat(table[3].str[1:].astype(int) - 1, bins)
    np.testing.assert_array_equal(states, model.predict(bits, lengths))
    options = ["--likelihood", "gaussian", "--max-laps", 1, "--quiet"]
    assert run("fit", "marks/chr9.txt", "--model", "hmm", "--out", "other", *options)[0] == 0
    assert load("other").likelihood == "gaussian"


def test_options_of_states_reach_the_estimator(run, sequences):
    options = ["--concentration", 2.5, "--init", "blocks", "--n-init", 7, "--max-laps", 2, "--float32", "--quiet"]
    assert run("fit", "S.npz", "--model", "hmm", "--out", "model", *options)[0] == 0
    model = load("model")
    assert (model.concentration, model.init, model.n_init_states, model.max_laps) == (2.5, "blocks", 7, 2)
    assert model.dtype_ == np.float32


def test_mistakes_with_sequences_are_one_line(run, folder, sequences):
    assert run("fit", "S.npz", "--model", "hmm", "--out", "model", "--quiet", "--seed", 1, "--max-laps", 2)[0] == 0
    assert run("fit", "X.npy", "--out", "mixture", "--quiet", "--max-laps", 2)[0] == 0
    hmm = ("--model", "hmm", "--out", "m")
    mistakes = {
        (
            "fit",
            "S.csv",
            "--out",
            "m",
            "--sequence",
            "who",
        ): "--sequence who is for a hidden Markov model, not a Mixture",
        ("fit", "S.csv", "--out", "m", "--sequence", "0", "--model", "topics"): "not a TopicModel",
        ("fit", "S.csv", *hmm, "--sequence", "whom"): "no columns 'whom'; its columns are width, who, height",
        ("fit", "S.csv", *hmm): "categories",
        ("fit", "S.npz", *hmm, "--sequence", "0"): "leave out column '0'",
        ("fit", "marks", *hmm, "--sequence", "A"): "leave out column 'A'",
        ("fit", "S.npz", *hmm, "--init", "k-means++"): "one of 'one', 'blocks'",
        ("fit", "X.npy", "--out", "m", "--init", "blocks"): "init must be one of 'one', 'k-means++'",
        ("fit", ".", *hmm): "name a file in it",
        ("predict", "mixture", "X.npy", "--out", "l.npy", "--sequence", "0"): "not a Mixture; leave it out",
        ("predict", "mixture", "X.npy", "--out", "l.bed", "--bin-size", "200"): "this is a Mixture",
        ("predict", "model", "S.npz", "--out", "l.bed"): "such as --bin-size 200",
        ("predict", "model", "S.npz", "--out", "l.bed", "--bin-size", "0"): "bin_size must be a whole number",
        ("predict", "model", "S.npz", "--out", "l.bed", "--bin-size", "9", "--proba"): "leave out --proba",
        ("predict", "model", "S.npz", "--out", "l.npy", "--bin-size", "9"): "--bin-size is for .bed",
        ("predict", "model", "S.npy", "--out", "l.npy"): "3 features",
        ("predict", "model", "marks", "--out", "l.npy"): "6 features",
    }
    before = sorted(path.name for path in folder.iterdir())
    for arguments, words in mistakes.items():
        assert words in fails(run, *arguments)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_fewer_columns_than_a_model_whose_last_column_is_a_category(folder, run):
    rows = [f"{n % 7},{n % 3},{'ab'[n % 2]}" for n in range(40)]
    (folder / "mixed.csv").write_text("x,y,kind\n" + "\n".join(rows) + "\n")
    assert run("fit", "mixed.csv", "--out", "model", "--likelihood", "auto", "--quiet", "--max-laps", 2)[0] == 0
    np.save("narrow.npy", np.ones((5, 2)))
    assert "X has 2 features" in fails(run, "predict", "model", "narrow.npy", "--out", "labels.npy")


def test_options_of_text_tables(folder, run):
    rows = [f"{n % 7},5;{n % 3},25" for n in range(40)]
    (folder / "commas.csv").write_text("\n".join(rows) + "\n")
    fit = ("fit", "commas.csv", "--out", "model", "--quiet", "--max-laps", 2)
    code, _, errors = run(*fit)
    assert code == 0
    assert "warning: commas.csv: decimals follow a comma" in errors
    assert "decimals" not in run(*fit, "--decimal", ",", "--delimiter", ";")[2]
    assert run("predict", "model", "commas.csv", "--out", "labels.npy", "--decimal", ",")[2] == ""
    (folder / "commas.csv.gz").write_bytes(gzip.compress((folder / "commas.csv").read_bytes()))
    wrong = ("fit", "commas.csv.gz", "--out", "model", "--max-bytes", 10)
    assert "more than the 10 bytes that are allowed; pass a larger max_bytes (--max-bytes)" in fails(run, *wrong)


# Likelihoods and priors of the user's own ---------------------------------------------------------------------------------

OWN = """
from geometric import Geometric
from beta_sticks import BetaSticks
few = BetaSticks(0.5, 2.0)
even = Geometric(a=1.0, b=1.0)
class Gaussian(Geometric):
    pass
class Demanding(BetaSticks):
    def __init__(self, concentration):
        super().__init__(concentration)
"""


@pytest.fixture
def own(folder, monkeypatch):
    """Modules of the user's own in the current folder, and counts in a file; all is forgotten afterwards."""
    for name in ("geometric", "beta_sticks"):
        shutil.copy(EXAMPLES / f"{name}.py", folder)
        monkeypatch.delitem(sys.modules, name, raising=False)
    (folder / "own.py").write_text(OWN)
    (folder / "broken.py").write_text("1 / 0")
    monkeypatch.delitem(sys.modules, "own", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = [dict(registry) for registry in REGISTRIES]
    rng = np.random.default_rng(0)
    np.save("counts.npy", np.concatenate([rng.geometric(p, (150, 2)) - 1.0 for p in (0.9, 0.05)]))
    yield lambda: forget(before)
    forget(before)
    for name in ("geometric", "beta_sticks", "own"):
        sys.modules.pop(name, None)


def forget(before):
    """Registries as another process would have them."""
    for registry, old in zip(REGISTRIES, before, strict=True):
        for name in set(registry) - set(old):
            del registry[name]


def test_a_likelihood_and_a_prior_of_ones_own(run, own):
    fit = ("fit", "counts.npy", "--out", "model", "--seed", "0", "--quiet")
    assert run(*fit, "--likelihood", "geometric:Geometric", "--allocation", "own:few") == (0, "", "")
    own()
    code, _, error = run("info", "model")
    assert code == 1
    assert "--register" in error
    known = ("--register", "geometric:Geometric", "--register", "own:few")
    code, out, error = run("info", "model", *known)
    assert (code, error) == (0, "")
    assert "BetaSticks(concentration=0.5, shape=2.0)" in out
    own()
    assert run("predict", "model", "counts.npy", "--out", "labels.npy", *known) == (0, "", "")
    assert len(set(np.load("labels.npy"))) == load("model").n_clusters_ == 2


def test_an_object_has_its_parameters(run, own):
    fit = ("fit", "counts.npy", "--out", "model", "--max-laps", "2", "--quiet")
    code, _, error = run(*fit, "--likelihood", "own:even")
    assert code == 0
    assert error.startswith("warning: not converged")
    _, out, _ = run("info", "model")
    assert "Geometric(a=array (2,), b=array (2,))" in out


def test_a_prior_by_name(run, folder):
    assert run("fit", "X.npy", "--out", "model", "--quiet", "--allocation", "pitman-yor")[0] == 0
    assert "PitmanYor(" in run("info", "model")[1]
    code, _, error = run("fit", "X.npy", "--out", "model", "--quiet", "--allocation", "pitman")
    assert code == 1
    assert "allocation must be" in error


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--likelihood", "nowhere:Geometric"], "nowhere cannot be imported .* No module named 'nowhere'"),
        (["--likelihood", "geometric:Other"], "there is no Other in geometric"),
        (["--likelihood", "geometric:np"], "is a module, not a Likelihood"),
        (["--likelihood", "own:few"], "is a BetaSticks, not a Likelihood"),
        (["--likelihood", "own:Gaussian"], "has another class Gaussian; give yours a name of its own"),
        (["--likelihood", "geometric:"], "must be module:Name"),
        (["--likelihood", "../geometric:Geometric"], "must be module:Name"),
        (["--likelihood", "broken:Geometric"], "ZeroDivisionError: division by zero"),
        (["--allocation", "geometric:Geometric"], "is a Geometric, not a MixturePrior or TopicPrior or ChainPrior"),
        (["--allocation", "own:Demanding"], r"Demanding\(\) failed: .* `name = Demanding\(...\)` in the module"),
        (["--allocation", "own:few", "--concentration", "2"], "--concentration is not used"),
        (["--model", "hmm", "--allocation", "own:few"], "allocation must be"),
    ],
)
def test_what_is_wrong_with_a_likelihood_or_prior_is_said_in_one_line(run, own, options, error):
    code, out, said = run("fit", "counts.npy", "--out", "model", "--quiet", *options)
    assert (code, out) == (1, "")
    assert len(said.splitlines()) == 1
    assert re.search(error, said)
