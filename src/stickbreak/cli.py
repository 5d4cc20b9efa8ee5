"""The command line: a thin layer over `Mixture`.

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

from . import Mixture, __version__
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
    likelihood: str = "gaussian",
    concentration: float = 1.0,
    batches: int | None = None,
    algorithm: Literal["memoized", "full", "stochastic"] = "memoized",
    init: Literal["one", "k-means++", "random"] = "one",
    n_init_clusters: int = 10,
    max_laps: int = 1000,
    seed: int | None = None,
    jobs: int | None = None,
    float32: Annotated[bool, Parameter(negative="")] = False,
    quiet: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Find the clusters of a table and save the model.  Ctrl-C saves the best model so far.

    Parameters
    ----------
    data: Path
        Table: .npy (read piece by piece, may be larger than memory), .npz (also of a sparse matrix), .csv or .parquet.
        Cells may be missing and columns may hold categories where the likelihood can use them.
    out: Path
        Model file to write.
    likelihood: str
        Family of the clusters: gaussian, diagonal_gaussian, bernoulli, categorical, poisson, multinomial, ..., or auto,
        chosen column by column.
    concentration: float
        Larger values expect more clusters.
    batches: int
        Batches visited per lap; by default one per 5,000 rows, at most 10.
    algorithm: str
        Incremental over batches, all data at once, or noisy steps.
    init: str
        Start from one cluster, or from rows as seeds, far apart or at random.
    n_init_clusters: int
        Number of seeds.
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
    table = read_table(data)
    X = table.X.astype(np.float32, copy=False) if float32 else table.X
    model = Mixture(
        likelihood,
        concentration=concentration,
        algorithm=algorithm,
        n_batches=batches,
        init=init,
        n_init_clusters=n_init_clusters,
        max_laps=max_laps,
        n_jobs=jobs,
        random_state=seed,
        verbose=not quiet,
    )
    if not quiet:
        print(f"{data}: {X.shape[0]:,} rows, {X.shape[1]} columns{_listed(table.names)}", file=sys.stderr)
    with _one_line_warnings():
        model.fit(_with_levels(table._replace(X=X)))
    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
    model.save(out)
    if not quiet:
        print(f"{_outcome(model)}; saved to {out}")


@app.command
def predict(model: Path, data: Path, /, *, out: Path, proba: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Give each row of a table its cluster.

    Parameters
    ----------
    model: Path
        Model file.
    data: Path
        Table with the columns the model was fitted to.
    out: Path
        Where to write the labels: .npy or .csv.
    proba: bool
        Write the probability of every cluster instead.
    """
    _check_output(out, model, data)
    if out.suffix.lower() not in (".npy", ".csv"):
        raise DataError(f"{out} has an unknown ending; labels are written as .npy or .csv.")
    estimator = load(model)
    table = read_table(data)
    _check_columns(estimator, table.names, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # checked above
        X = _with_levels(table, estimator.levels_)
        result = estimator.predict_proba(X) if proba else estimator.predict(X)
    _write(out, result)


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

    from .report.tables import cluster_table

    estimator = load(model)
    rows = estimator.summary_.N.sum()
    end = "converged" if estimator.converged_ else "not converged"
    for name, text in (
        ("file", f"{model}, written by stickbreak {file_version(model)}"),
        ("data", f"{rows:,.0f} rows, {estimator.n_features_in_} columns, {estimator.dtype_}"),
        ("prior", f"{_hyperparameters(estimator.model_.allocation)}"),
        ("", f"{_hyperparameters(estimator.model_.likelihood)}"),
        ("fit", f"{_count(estimator.n_laps_, 'lap')}, {end}, {estimator.history_[-1].seconds:.1f} s"),
        ("ELBO", f"{estimator.lower_bound_:,.2f}, {estimator.lower_bound_ / rows:.4f} per row"),
    ):
        print(f"{name:6}{text}")
    print()
    Console(markup=False, emoji=False).print(cluster_table(estimator, clusters))  # names are shown as they are


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


def _check_columns(model: Mixture, names: list[str] | None, data: Path) -> None:
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


def _outcome(model: Mixture) -> str:
    clusters, laps = _count(model.n_clusters_, "cluster"), _count(model.n_laps_, "lap")
    return f"{clusters}, ELBO {model.lower_bound_:,.2f} after {laps} in {model.history_[-1].seconds:.1f} s"


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
