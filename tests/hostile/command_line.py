"""The command line on hostile files: exit status 0, or 1 and one line that says why; never a traceback."""

import io
import sys
import tempfile
import warnings
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import stickbreak
from stickbreak import cli

from . import input_files, model_files
from .attacker import FINE, REFUSED, Attacker, Outcome
from .input_files import DataFile

DAMAGED_MODEL = "damaged model"


@dataclass(frozen=True)
class Command:
    """A command, the kind of model, and the damaged file that it is given."""

    command: str = "fit"
    model: str = "mixture"
    file: DataFile = DataFile()


CASES = st.one_of(
    st.builds(Command, st.just("fit"), st.sampled_from(("mixture", "topics", "hmm")), input_files.CASES),
    st.builds(Command, st.just("predict"), st.sampled_from(("mixture", "topics", "hmm")), input_files.CASES),
    st.builds(
        Command,
        st.just("info"),
        st.just("mixture"),
        st.builds(DataFile, st.just(DAMAGED_MODEL), st.just("bytes"), st.integers(0, 10**6)),
    ),
)


def _model(name: str, folder: Path) -> Path:
    """A fitted model in a file."""
    kind = {"mixture": "Mixture", "topics": "TopicModel", "hmm": "HMM"}[name]
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (20, 3)).astype(float) + 1.0
    path = folder / "fitted.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(stickbreak, kind)(max_laps=2, n_jobs=1, random_state=0).fit(X).save(path)
    return path


def _arguments(case: Command, folder: Path) -> list[str]:
    rng = np.random.default_rng(case.file.seed)
    if case.command == "info":
        path = _model(case.model, folder)
        path.write_bytes(model_files.damaged_bytes(path.read_bytes(), rng))
        return ["info", str(path)]
    data = input_files._file(case.file, folder, rng)[0]
    limit = ["--max-bytes", "20000"] if case.file.kind == "bomb" else []
    if case.command == "predict":
        return ["predict", str(_model(case.model, folder)), str(data), "--out", str(folder / "z.npy"), *limit]
    out = str(folder / "model.safetensors")
    return ["fit", str(data), "--model", case.model, "--out", out, "--max-laps", "1", "--jobs", "1", "--quiet", *limit]


def run(case: Command) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="hostile") as name, warnings.catch_warnings():
        arguments = _arguments(case, Path(name))
        out, said, status = io.StringIO(), io.StringIO(), 0
        with patch.object(sys, "argv", ["stickbreak", *arguments]), redirect_stdout(out), redirect_stderr(said):
            try:
                cli.main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            except BaseException as error:
                return Outcome("traceback", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        lines = [line for line in said.getvalue().splitlines() if not line.startswith("warning: ")]
        if status == 0:
            return Outcome("says more than warnings", lines[0]) if lines else Outcome(FINE)
        if status != 1 or len(lines) != 1 or not lines[0].startswith("error: "):
            return Outcome("unclear end", f"status {status}: {' / '.join(lines)[:300]}")
        return Outcome(REFUSED, lines[0])


ATTACKERS = [Attacker("command line", CASES, run, {"Command": Command, "DataFile": DataFile}, seconds=60.0)]
