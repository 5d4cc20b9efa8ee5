"""The command line: a thin layer over the estimators.

Exit codes: 0 done, 1 something to correct (one line on stderr says what), 2 wrong usage, 130 interrupted with nothing
kept.
"""

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray

from . import HMM, Mixture, TopicModel, __version__
from .data.atomic import replacing
from .data.bed_files import write_bed
from .data.corpus import is_corpus, open_bags
from .data.files import read_table
from .data.frames import Encoded, column_name
from .data.sequence_files import is_binarised, read_sequences
from .data.table import DEFAULT, DataError, ReadOptions, Table
from .storage import file_version, load

MISTAKES = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)
MODELS: dict[str, type] = {"mixture": Mixture, "topics": TopicModel, "hmm": HMM}
THINGS: dict[type, str] = {Mixture: "cluster", TopicModel: "topic", HMM: "state"}

app = App(
    name="stickbreak",
    version=__version__,
    help="Finds clusters, and how many there are.",
    suppress_keyboard_interrupt=False,
)


def main() -> None:
    """Run the command line; never shows a traceback for what a user can correct."""
    try:
        app(sys.argv[1:], result_action="return_value")
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted; nothing was kept.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MISTAKES as error:
        text = " ".join(str(error).split()) or type(error).__name__
        print(f"error: {text}", file=sys.stderr)
        sys.exit(1)


@app.command
def demo(*, out: Path = Path("demo")) -> None:
    """Cluster 1,797 handwritten digits, show the clusters found, and draw them.

    Parameters
    ----------
    out: Path
        Folder for the picture; made if it does not exist.
    """
    from .report.demo import run

    run(out)


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Path,
    model: Literal["mixture", "topics", "hmm"] = "mixture",
    sequence: str | None = None,
    likelihood: str | None = None,
    concentration: float | None = None,
    batches: int | None = None,
    algorithm: Literal["memoized", "full", "stochastic"] = "memoized",
    init: Literal["one", "anchor", "k-means++", "random", "blocks"] | None = None,
    n_init: int | None = None,
    max_laps: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    float32: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
    reading: Annotated[ReadOptions, Parameter(name="*")] = DEFAULT,
) -> None:
    """Find clusters of rows, topics of documents or states of sequences, and save the model.  Ctrl-C saves the best so far.

    Parameters
    ----------
    data: Path
        Table: .npy (read piece by piece, may be larger than memory), .npz (also of a sparse matrix), .csv, .tsv (each also
        with .gz), .parquet, .feather or .arrow.  Cells may be missing and columns may hold categories where the likelihood
        can use them.  For topics also bags of words: .ldac and .dat (LDA-C), .txt (UCI), each also with .gz, or a folder
        that write_corpus wrote.  For hmm a table whose rows are in order, also .npz with X and the lengths of its
        sequences, or binarised text of ChromHMM: .txt, .txt.gz, or a folder of chromosomes.
    out: Path
        Model file to write.
    model: str
        A mixture of the rows of a table, topics of documents, which are rows of counts of words, or hmm: a hidden Markov
        model of sequences of rows.
    sequence: str
        For hmm: the column, by name or number from 0, that says which sequence a row belongs to.
    likelihood: str
        Family of the clusters: auto (the default of mixtures and hmm), chosen column by column and by the bound, gaussian,
        diagonal_gaussian, bernoulli (the default for text of ChromHMM), categorical, poisson, multinomial,
        autoregressive_gaussian, ....  Of topics: multinomial.
    concentration: float
        Larger values expect more clusters; 1 by default, for hmm 5.
    batches: int
        Batches visited per lap; by default one per 5,000 rows, at most 10.
    algorithm: str
        Incremental over batches, all data at once, or noisy steps.
    init: str
        Start from one cluster, or from rows as seeds, far apart or at random; topics: at random, from anchor words, or from
        documents far apart; hmm: from one state or from contiguous blocks of rows.
    n_init: int
        Number of seeds, of topics at the start, or of blocks.
    max_laps: int
        Most passes over the data.
    seed: int
        The same seed gives the same result.
    jobs: int
        Threads; by default one per processor.
    float32: bool
        Work in single precision: faster, but the data are held in memory.
    quiet: bool
        No progress and no report.
    """
    _check_output(out, data)
    kind = MODELS[model]
    with _one_line_warnings():
        table, lengths, sequences = _read(data, kind, sequence, reading)
    X = table.X.astype(np.float32, copy=False) if float32 else table.X
    if kind is HMM and likelihood is None and (data.is_dir() or is_binarised(data)):
        likelihood = "bernoulli"
    if kind is HMM and likelihood is None and sequence is None and table.levels:
        column = column_name(table.names, min(table.levels))
        raise DataError(
            f"{data}: column {column!r} holds categories; name it with --sequence if it says which sequence a row belongs to, "
            "or use --likelihood auto if it does not."
        )
    given: dict[str, Any] = {"likelihood": likelihood, "concentration": concentration, "init": init}
    given |= {f"n_init_{THINGS[kind]}s": n_init, "max_laps": max_laps}
    estimator: Any = kind(
        algorithm=algorithm,
        n_batches=batches,
        n_jobs=jobs,
        random_state=seed,
        verbose=not quiet,
        **{name: value for name, value in given.items() if value is not None},
    )
    if not quiet:
        of = f"{_count(len(sequences), 'sequence')}, " if sequences else ""
        print(f"{data}: {of}{X.shape[0]:,} rows, {X.shape[1]} columns{_listed(table.names)}", file=sys.stderr)
    with _one_line_warnings():
        estimator.fit(_named(table._replace(X=X)), **lengths)
    if table.names is not None:
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
    estimator.save(out)
    if not quiet:
        print(f"{_outcome(estimator)}; saved to {out}")


@app.command
def predict(
    model: Path,
    data: Path,
    /,
    *,
    out: Path,
    sequence: str | None = None,
    bin_size: int | None = None,
    proba: Annotated[bool, Parameter(negative="")] = False,
    reading: Annotated[ReadOptions, Parameter(name="*")] = DEFAULT,
) -> None:
    """Give each row of a table its cluster or, in a sequence, its state, or each document its largest topic.

    Parameters
    ----------
    model: Path
        Model file.
    data: Path
        Table, documents or sequences with the columns the model was fitted to.
    out: Path
        Where to write the labels: .npy or .csv.  States, those of the most probable path, also as .bed: segments of
        chromosomes, which the sequences are.
    sequence: str
        For states: the column, by name or number from 0, that says which sequence a row belongs to.
    bin_size: int
        For .bed: the number of bases that a row stands for, such as 200.
    proba: bool
        Write the probability of every cluster or state, or the proportions of the topics, instead.
    """
    _check_output(out, model, data)
    if out.suffix.lower() not in (".npy", ".csv", ".bed"):
        raise DataError(f"{out} has an unknown ending; labels are written as .npy or .csv, and states also as .bed.")
    estimator: Any = load(model)
    _check_bed(out, estimator, bin_size, proba)
    with _one_line_warnings():
        table, lengths, sequences = _read(data, type(estimator), sequence, reading)
    _check_columns(estimator, table.names, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # checked above
        result = _predicted(estimator, _with_levels(table, estimator.levels_), lengths, proba)
    if bin_size is None:
        _write(out, result, THINGS[type(estimator)])
    else:
        write_bed(out, result, lengths["lengths"], sequences, bin_size)


@app.command
def info(model: Path, /, *, clusters: int = 20, search: bool = False) -> None:
    """Show what is in a model file.

    Parameters
    ----------
    model: Path
        Model file.
    clusters: int
        Show this many of the largest clusters, topics or states.
    search: bool
        Show how they were found: every ascent, its moves, and whether it was kept.
    """
    from rich.console import Console

    from .report.tables import cluster_table, search_table, topic_table

    estimator: Any = load(model)
    summary: Any = estimator.summary_
    rows = summary.N.sum()
    end = "converged" if estimator.converged_ else "not converged"
    for name, text in (
        ("file", f"{model}, written by stickbreak {file_version(model)}"),
        ("data", f"{_units(estimator)}{rows:,.0f} rows, {estimator.n_features_in_} columns, {estimator.dtype_}"),
        ("prior", f"{_hyperparameters(estimator.model_.allocation)}"),
        ("", f"{_hyperparameters(estimator.model_.likelihood)}"),
        ("fit", f"{_count(estimator.n_laps_, 'lap')}, {end}, {estimator.history_[-1].seconds:.1f} s"),
        *_choice(estimator),
        ("ELBO", f"{estimator.lower_bound_:,.2f}, {estimator.lower_bound_ / rows:.4f} per row"),
    ):
        print(f"{name:8}{text}")
    print()
    table = topic_table if isinstance(estimator, TopicModel) else cluster_table
    console = Console(markup=False, emoji=False)  # names are shown as they are
    console.print(table(estimator, clusters))
    if search:
        console.print(search_table(estimator.history_))


class Data(NamedTuple):
    """What an estimator reads: rows and, where they form sequences, their ``lengths`` for `fit`, with the names of all."""

    table: Table
    lengths: Mapping[str, Any]
    sequences: list[str]


def _read(data: Path, kind: type, sequence: str | None, reading: ReadOptions) -> Data:
    """A table, bags of words with their vocabulary for names, or sequences, for a kind of estimator."""
    if kind is HMM:
        X, lengths, names, sequences, levels = read_sequences(data, sequence, reading)
        return Data(Table(X, names, levels), {"lengths": lengths}, sequences)
    if sequence is not None:
        raise DataError(f"--sequence {sequence} is for a hidden Markov model, not a {kind.__name__}; leave it out.")
    if kind is TopicModel and is_corpus(data):
        return Data(Table(*open_bags(data, reading)), {}, [])
    return Data(read_table(data, reading), {}, [])


def _predicted(model: Any, X: Any, lengths: Mapping[str, Any], proba: bool) -> NDArray[Any]:
    """The label of each row or document, or the probability of each of them."""
    if isinstance(model, HMM):
        return (model.predict_proba if proba else model.predict)(X, **lengths)
    R: NDArray[Any] = model.transform(X)
    return R if proba else R.argmax(axis=1)


def _check_output(out: Path, *inputs: Path) -> None:
    """Refuse, before any work is done, an output that cannot be written or that would replace an input."""
    folder = Path(os.path.realpath(out)).parent
    if out.is_dir():
        raise IsADirectoryError(f"--out {out} is a directory; name a file.")
    if not folder.is_dir():
        raise FileNotFoundError(f"--out {out}: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"--out {out}: the folder {folder} is not writable.")
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise DataError(f"--out {out} would replace an input; choose another name.")


def _check_bed(out: Path, model: Any, bin_size: int | None, proba: bool) -> None:
    """Refuse what cannot be written as segments of chromosomes."""
    if out.suffix.lower() != ".bed":
        if bin_size is not None:
            raise DataError(f"--bin-size is for .bed, which {out} is not; leave it out.")
    elif not isinstance(model, HMM):
        raise DataError(f"{out}: .bed holds states of a hidden Markov model, and this is a {type(model).__name__}.")
    elif proba:
        raise DataError(f"{out}: .bed holds no probabilities; leave out --proba, or name a .npy or .csv.")
    elif bin_size is None:
        raise DataError(f"{out}: say how many bases a row stands for, such as --bin-size 200.")


def _check_columns(model: Any, names: list[str] | None, data: Path) -> None:
    expected = getattr(model, "feature_names_in_", None)
    if names is None or expected is None or names == list(expected):
        return
    raise DataError(f"{data} has the columns{_listed(names)}; the model was fitted to{_listed(list(expected))}.")


def _named(table: Table) -> Any:
    """What `fit` takes: dense rows with the names of their columns, where these have any."""
    if table.names is None or not isinstance(table.X, np.ndarray):
        return _with_levels(table)
    return Encoded(table.X, table.names, table.levels)


def _with_levels(table: Table, known: Mapping[int, Any] | None = None) -> Any:
    """What an estimator takes: the numbers, with the levels of categories where there are, or should be, any."""
    if not table.levels and not known:
        return table.X
    names = table.names or [f"x{d}" for d in range(table.X.shape[1])]
    return Encoded(table.X, names, table.levels)


def _write(out: Path, result: NDArray[Any], thing: str) -> None:
    """Labels (n,) or probabilities (n, K) as .npy, or as .csv with a line of names."""
    with replacing(out) as file:
        if out.suffix.lower() == ".npy":
            np.save(file, result)
        elif result.ndim == 1:
            np.savetxt(file, result, fmt="%d", header=thing, comments="")
        else:
            names = ",".join(f"{thing}_{k}" for k in range(result.shape[1]))
            np.savetxt(file, result, fmt="%.10g", delimiter=",", header=names, comments="")


def _choice(model: Any) -> list[tuple[str, str]]:
    """The family that was chosen, and how far it is from the best of the others."""
    candidates = getattr(model, "selection_", [])
    if not candidates:
        return []
    chosen, second, *_ = candidates
    ahead = chosen.lower_bound - second.lower_bound
    if ahead >= 0.0:
        distance = f"by {ahead:,.1f} nats before {second.family}"
    else:
        distance = f"{-ahead:,.1f} nats behind {second.family}, which needs {_count(second.n_clusters, 'cluster')}"
    return [("family", f"{chosen.family}, {distance}, of {len(candidates)} tried")]


def _units(model: Any) -> str:
    """How many documents or sequences a model has seen, where rows form such."""
    seen: Any = model.summary_
    if isinstance(model, TopicModel):
        return f"{_count(round(float(seen.D)), 'document')}, "
    return f"{_count(round(float(seen.begins.sum())), 'sequence')}, " if isinstance(model, HMM) else ""


def _outcome(model: Any) -> str:
    found = _count(model.summary_.K, THINGS[type(model)])
    laps = _count(model.n_laps_, "lap")
    return f"{found}, ELBO {model.lower_bound_:,.2f} after {laps} in {model.history_[-1].seconds:.1f} s"


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def _hyperparameters(prior: Any) -> str:
    """A likelihood or allocation with its hyperparameters, arrays by their shape."""
    values = ((f.name, getattr(prior, f.name)) for f in fields(prior) if f.repr)
    shown = (f"{name}={f'array {value.shape}' if isinstance(value, np.ndarray) else value}" for name, value in values)
    return f"{type(prior).__name__}({', '.join(shown)})"


def _listed(names: list[str] | None, most: int = 8) -> str:
    """``: a, b, c``, shortened, or nothing."""
    if names is None:
        return ""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ": " + ", ".join(names[:most]) + rest


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default", UserWarning)  # a model is kept even where warnings are errors
        try:
            yield
        finally:
            for warning in caught:
                for line in str(warning.message).splitlines():
                    print(f"warning: {line}", file=sys.stderr)
