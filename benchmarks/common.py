"""Shared by the benchmarks: data, memory, and results as JSON beside a printed table."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import stickbreak

ROOT = Path(__file__).resolve().parent
DATA = Path(os.environ.get("STICKBREAK_DATA", ROOT.parent.parent / "shared" / "data"))


def mnist50(dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    """MNIST on its 50 leading principal components (60,000 x 50), and the digits.

    X / 255, centred, projected on the leading eigenvectors of X'X, each with its largest loading positive.
    """
    with np.load(DATA / "mnist_train.npz") as file:
        X, y = file["X"] / 255.0, file["y"]
    X -= X.mean(axis=0)
    vectors = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :50]
    vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(50)])
    projected = X @ vectors
    assert abs(projected.var(axis=0).sum() - 43.479535) < 1e-4, "this is not the projection the figures are for"
    return np.ascontiguousarray(projected, dtype=dtype), y


def mnist_prior() -> stickbreak.likelihoods.Gaussian:
    """The prior every figure on MNIST is for."""
    return stickbreak.likelihoods.Gaussian(mean=0.0, mean_precision=1e-4, degrees_of_freedom=52, scale=0.1)


def newsgroups(part: str = "tr") -> sparse.csr_array:
    """Counts of 3,072 words in 11,214 documents of 20 Newsgroups, or with "va" in 100 others."""
    return sparse.csr_array(sparse.load_npz(DATA / f"20news_{part}.npz"))


def memory(figure: str = "VmHWM") -> float:
    """Resident memory of this process in MB: the peak, or "VmRSS" for now.  (What getrusage calls a peak, a child inherits.)"""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(figure)) / 1024.0


def forget_peak() -> None:
    """Let the peak start from the memory in use now."""
    Path("/proc/self/clear_refs").write_text("5")


def report(name: str, rows: list[dict[str, Any]]) -> None:
    """Print rows as a table and write them to results/NAME.json."""
    show(rows)
    write(ROOT / "results" / f"{name}.json", {"rows": rows})


def show(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    texts = [[_text(row.get(c, "")) for c in columns] for row in rows]
    widths = [max(len(c), *(len(t[i]) for t in texts)) for i, c in enumerate(columns)]
    print("  ".join(c.ljust(w) for c, w in zip(columns, widths)))
    for text in texts:
        print("  ".join(t.ljust(w) for t, w in zip(text, widths)))


def write(file: Path, contents: dict[str, Any]) -> None:
    """Write contents as JSON, with what they were made by."""
    about = {"stickbreak": stickbreak.__version__, "python": platform.python_version(), "processors": os.cpu_count()}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"about": about} | contents, indent=1, default=float))


def _text(value: Any) -> str:
    return (
        f"{value:,.3f}"
        if isinstance(value, float) and abs(value) < 1000
        else f"{value:,}"
        if not isinstance(value, str)
        else value
    )
