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
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray

from . import Mixture, TopicModel, __version__
from .data.corpus import is_corpus, open_bags
from .data.files import DataError, Table, read_table
from .data.frames import Encoded
from .storage import file_version, load, replacing

MISTAKES = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)

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
    model: Literal["mixture", "topics"] = "mixture",
    likelihood: str | None = None,
    concentration: float = 1.0,
    batches: int | None = None,
    algorithm: Literal["memoized", "full", "stochastic"] = "memoized",
    init: Literal["one", "anchor", "k-means++", "random"] | None = None,
    n_init: int | None = None,
    max_laps: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    float32: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Find the clusters of a table, or the topics of documents, and save the model.  Ctrl-C saves the best model so far.

    Parameters
    ----------
    data: Path
        Table: .npy (read piece by piece, may be larger than memory), .npz (also of a sparse matrix), .csv or .parquet.
        Cells may be missing and columns may hold categories where the likelihood can use them.  For topics also bags of
        words: .ldac and .dat (LDA-C), .txt (UCI), each also with .gz, or a folder that write_corpus wrote.
    out: Path
        Model file to write.
    model: str
        A mixture of the rows of a table, or topics of documents: rows of counts of words.
    likelihood: str
        Family of the clusters: gaussian (the default), diagonal_gaussian, bernoulli, categorical, poisson, multinomial,
        ..., or auto, chosen column by column.  Of topics: multinomial.
    concentration: float
        Larger values expect more clusters.
    batches: int
        Batches visited per lap; by default one per 5,000 rows, at most 10.
    algorithm: str
        Incremental over batches, all data at once, or noisy steps.
    init: str
        Start from one cluster, or from rows as seeds, far apart or at random; topics: at random, from anchor words, or from
        documents far apart.
    n_init: int
        Number of seeds, or of topics at the start.
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
    table = _read(data, bags=model == "topics")
    X = table.X.astype(np.float32, copy=False) if float32 else table.X
    kind, n_init_name = (Mixture, "n_init_clusters") if model == "mixture" else (TopicModel, "n_init_topics")
    given: dict[str, Any] = {"likelihood": likelihood, "init": init, n_init_name: n_init, "max_laps": max_laps}
    estimator: Any = kind(
        concentration=concentration,
        algorithm=algorithm,
        n_batches=batches,
        n_jobs=jobs,
        random_state=seed,
        verbose=not quiet,
        **{name: value for name, value in given.items() if value is not None},
    )
    if not quiet:
        print(f"{data}: {X.shape[0]:,} rows, {X.shape[1]} columns{_listed(table.names)}", file=sys.stderr)
    with _one_line_warnings():
        estimator.fit(_with_levels(table._replace(X=X)))
    if table.names is not None:
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
    estimator.save(out)
    if not quiet:
        print(f"{_outcome(estimator)}; saved to {out}")


@app.command
def predict(model: Path, data: Path, /, *, out: Path, proba: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Give each row of a table its cluster, or each document its largest topic.

    Parameters
    ----------
    model: Path
        Model file.
    data: Path
        Table with the columns the model was fitted to.
    out: Path
        Where to write the labels: .npy or .csv.
    proba: bool
        Write the probability of every cluster, or the proportions of the topics, instead.
    """
    _check_output(out, model, data)
    if out.suffix.lower() not in (".npy", ".csv"):
        raise DataError(f"{out} has an unknown ending; labels are written as .npy or .csv.")
    estimator: Any = load(model)
    table = _read(data, bags=isinstance(estimator, TopicModel))
    _check_columns(estimator, table.names, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # checked above
        R = estimator.transform(_with_levels(table, estimator.levels_))
    _write(out, R if proba else R.argmax(axis=1))


@app.command
def info(model: Path, /, *, clusters: int = 20) -> None:
    """Show what is in a model file.

    Parameters
    ----------
    model: Path
        Model file.
    clusters: int
        Show this many of the largest clusters.
    """
    from rich.console import Console

    from .report.tables import cluster_table, topic_table

    estimator: Any = load(model)
    summary: Any = estimator.summary_
    rows = summary.N.sum()
    documents = f"{summary.D:,.0f} documents, " if isinstance(estimator, TopicModel) else ""
    end = "converged" if estimator.converged_ else "not converged"
    for name, text in (
        ("file", f"{model}, written by stickbreak {file_version(model)}"),
        ("data", f"{documents}{rows:,.0f} rows, {estimator.n_features_in_} columns, {estimator.dtype_}"),
        ("prior", f"{_hyperparameters(estimator.model_.allocation)}"),
        ("", f"{_hyperparameters(estimator.model_.likelihood)}"),
        ("fit", f"{_count(estimator.n_laps_, 'lap')}, {end}, {estimator.history_[-1].seconds:.1f} s"),
        ("ELBO", f"{estimator.lower_bound_:,.2f}, {estimator.lower_bound_ / rows:.4f} per row"),
    ):
        print(f"{name:6}{text}")
    print()
    table = topic_table if isinstance(estimator, TopicModel) else cluster_table
    Console(markup=False, emoji=False).print(table(estimator, clusters))  # names are shown as they are


def _read(data: Path, bags: bool) -> Table:
    """A table, or bags of words with their vocabulary for names."""
    return Table(*open_bags(data)) if bags and is_corpus(data) else read_table(data)


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


def _check_columns(model: Any, names: list[str] | None, data: Path) -> None:
    expected = getattr(model, "feature_names_in_", None)
    if names is None or expected is None or names == list(expected):
        return
    raise DataError(f"{data} has the columns{_listed(names)}; the model was fitted to{_listed(list(expected))}.")


def _with_levels(table: Table, known: Mapping[int, Any] | None = None) -> Any:
    """What an estimator takes: the numbers, with the levels of categories where there are, or should be, any."""
    if not table.levels and not known:
        return table.X
    names = table.names or [f"x{d}" for d in range(table.X.shape[1])]
    return Encoded(table.X, names, table.levels)


def _write(out: Path, result: NDArray[Any]) -> None:
    """Labels (n,) or probabilities (n, K) as .npy, or as .csv with a line of names."""
    with replacing(out) as file:
        if out.suffix.lower() == ".npy":
            np.save(file, result)
        elif result.ndim == 1:
            np.savetxt(file, result, fmt="%d", header="cluster", comments="")
        else:
            names = ",".join(f"cluster_{k}" for k in range(result.shape[1]))
            np.savetxt(file, result, fmt="%.10g", delimiter=",", header=names, comments="")


def _outcome(model: Any) -> str:
    laps, topics = _count(model.n_laps_, "lap"), isinstance(model, TopicModel)
    found = _count(model.n_topics_, "topic") if topics else _count(model.n_clusters_, "cluster")
    return f"{found}, ELBO {model.lower_bound_:,.2f} after {laps} in {model.history_[-1].seconds:.1f} s"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"


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
                print(f"warning: {warning.message}", file=sys.stderr)
