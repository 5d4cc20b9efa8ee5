"""The command line: a thin layer over the estimators.

Exit codes: 0 done, 1 something to correct (one line on stderr says what), 2 wrong usage, 130 interrupted with nothing
kept.
"""

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from cyclopts import App, Parameter
from numpy.typing import NDArray

from .. import HMM, Mixture, TopicModel, __version__
from ..data.bed_files import write_bed
from ..data.frames import column_name
from ..data.opening import as_data
from ..data.sequence_files import is_binarised
from ..data.table import DEFAULT, DataError, ReadOptions
from ..likelihoods import Likelihood
from ..loading import load
from .files import check_bed, check_columns, check_output, check_shared, executor_at, read, write_labels
from .own import PRIORS, own_or_name, register
from .words import THINGS, count, description, listed, one_line_warnings, outcome

MISTAKES = (ValueError, TypeError, OSError, ImportError, MemoryError, FloatingPointError)
MODELS: dict[str, type] = {"mixture": Mixture, "topics": TopicModel, "hmm": HMM}

Own = Annotated[tuple[str, ...] | None, Parameter(name="--register", negative="")]

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
    from .digits import run

    run(out)


@app.command(name="compile")
def compile_ahead(*, quiet: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Compile the loops of default fits now, once for this processor, so that no later fit waits for that.

    Parameters
    ----------
    quiet: bool
        No progress and no report.
    """
    from .compiling import compile_loops

    compile_loops(quiet)


@app.command
def fit(
    data: Path,
    /,
    *,
    out: Path,
    model: Literal["mixture", "topics", "hmm"] = "mixture",
    sequence: str | None = None,
    likelihood: str | None = None,
    allocation: str | None = None,
    concentration: float | None = None,
    batches: int | None = None,
    algorithm: Literal["memoized", "full", "stochastic", "sequential"] = "memoized",
    init: Literal["one", "anchor", "k-means++", "k-means", "random", "permutation", "blocks"] | None = None,
    n_init: int | None = None,
    max_laps: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    checkpoint: Path | None = None,
    scheduler: str | None = None,
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
        autoregressive_gaussian, ....  Of topics: multinomial.  Or your own as module:Name, a class or an object with its
        parameters; the module may be a file of the current folder.  Later commands then need --register module:Name.
    allocation: str
        Prior of the clusters: dp (the default of mixtures), pitman-yor or finite; of topics hdp or lda; of hmm hdp or
        finite.  Or your own as module:Name, like --likelihood.
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
    checkpoint: Path
        File in which the state of the fit is kept, from which the same command goes on after a crash.
    scheduler: str
        Address of the scheduler of a Dask cluster whose workers find the data, a .npy file, under the same path; they fit it.
    float32: bool
        Work in single precision: faster, but the data are held in memory.
    quiet: bool
        No progress and no report.
    """
    check_output(out, data)
    if checkpoint is not None:
        check_output(checkpoint, data, option="--checkpoint")
        if out.resolve() == checkpoint.resolve():
            raise DataError(f"--checkpoint {checkpoint} would be replaced by --out; choose another name.")
    kind = MODELS[model]
    check_shared(data, scheduler, float32)
    family = own_or_name(likelihood, "--likelihood", Likelihood)
    prior = own_or_name(allocation, "--allocation", *PRIORS)
    if concentration is not None and isinstance(prior, PRIORS):
        raise DataError("--concentration is not used with an --allocation of your own; name an object that has it.")
    with one_line_warnings():
        table, lengths, sequences = read(data.resolve() if scheduler else data, kind, sequence, reading)
    X = table.X.astype(np.float32, copy=False) if float32 else table.X
    if kind is HMM and family is None and (data.is_dir() or is_binarised(data)):
        family = "bernoulli"
    if kind is HMM and family is None and sequence is None and table.levels:
        column = column_name(table.names, min(table.levels))
        raise DataError(
            f"{data}: column {column!r} holds categories; name it with --sequence if it says which sequence a row belongs to, "
            "or use --likelihood auto if it does not."
        )
    parameters: dict[str, Any] = {"likelihood": family, "allocation": prior, "concentration": concentration}
    parameters |= {"init": init, f"n_init_{THINGS[kind]}s": n_init, "max_laps": max_laps}
    estimator: Any = kind(
        algorithm=algorithm,
        n_batches=batches,
        n_jobs=jobs,
        random_state=seed,
        checkpoint=checkpoint,
        verbose=not quiet,
        **{name: value for name, value in parameters.items() if value is not None},
    )
    if not quiet:
        of = f"{count(len(sequences), 'sequence')}, " if sequences else ""
        print(f"{data}: {of}{X.shape[0]:,} rows, {X.shape[1]} columns{listed(table.names)}", file=sys.stderr)
    with one_line_warnings(), executor_at(scheduler) as executor:
        estimator.set_params(executor=executor)
        estimator.fit(as_data(table._replace(X=X)), **lengths)
    if table.names is not None:
        estimator.feature_names_in_ = np.array(table.names, dtype=object)
    estimator.save(out)
    if not quiet:
        print(f"{outcome(estimator)}; saved to {out}")


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
    register_: Own = None,
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
    register_: tuple
        A likelihood or prior of your own that the model has, as module:Name; may be given several times.
    """
    check_output(out, model, data)
    if out.suffix.lower() not in (".npy", ".csv", ".bed"):
        raise DataError(f"{out} has an unknown ending; labels are written as .npy or .csv, and states also as .bed.")
    register(register_)
    estimator: Any = load(model)
    check_bed(out, estimator, bin_size, proba)
    with one_line_warnings():
        table, lengths, sequences = read(data, type(estimator), sequence, reading)
    check_columns(estimator, table.names, data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")  # checked above
        X = as_data(table, estimator.levels_)
        if out.suffix.lower() == ".npy" and not proba and not isinstance(estimator, TopicModel):
            estimator.predict(X, out=out, **lengths)  # as they come
            return
        result = _predicted(estimator, X, lengths, proba)
    if bin_size is None:
        write_labels(out, result, THINGS[type(estimator)])
    else:
        write_bed(out, result, lengths["lengths"], sequences, bin_size)


@app.command
def report(
    model: Path,
    /,
    *,
    data: Path,
    out: Path,
    sequence: str | None = None,
    register_: Own = None,
    reading: Annotated[ReadOptions, Parameter(name="*")] = DEFAULT,
) -> None:
    """Write a page of HTML that shows what a model found in data, and why.

    Parameters
    ----------
    model: Path
        Model file.
    data: Path
        Table, documents or sequences with the columns the model was fitted to.
    out: Path
        Page to write, such as page.html; it holds all it needs and opens without a network.
    sequence: str
        For states: the column, by name or number from 0, that says which sequence a row belongs to.
    register_: tuple
        A likelihood or prior of your own that the model has, as module:Name; may be given several times.
    """
    check_output(out, model, data)
    register(register_)
    estimator: Any = load(model)
    with one_line_warnings():
        table, lengths, _ = read(data, type(estimator), sequence, reading)
    check_columns(estimator, table.names, data)
    with one_line_warnings():
        warnings.filterwarnings("ignore", message="X (does not have valid|has) feature names")  # checked above
        estimator.report(out, as_data(table, estimator.levels_), **lengths)


@app.command
def info(model: Path, /, *, clusters: int = 20, search: bool = False, register_: Own = None) -> None:
    """Show what is in a model file.

    Parameters
    ----------
    model: Path
        Model file.
    clusters: int
        Show this many of the largest clusters, topics or states.
    search: bool
        Show how they were found: every ascent, its moves, and whether it was kept.
    register_: tuple
        A likelihood or prior of your own that the model has, as module:Name; may be given several times.
    """
    from rich.console import Console

    from ..report.tables import search_table, summary_table

    register(register_)
    estimator: Any = load(model)
    for name, text in description(estimator, model):
        print(f"{name:8}{text}")
    print()
    console = Console(markup=False, emoji=False)  # names are shown as they are
    console.print(summary_table(estimator, clusters))
    if search:
        console.print(search_table(estimator.history_))


def _predicted(model: Any, X: Any, lengths: Mapping[str, Any], proba: bool) -> NDArray[Any]:
    """The label of each row or document, or the probability of each of them."""
    if isinstance(model, TopicModel):
        R: NDArray[Any] = model.transform(X)
        return R if proba else R.argmax(axis=1)
    found: NDArray[Any] = (model.predict_proba if proba else model.predict)(X, **lengths)
    return found
