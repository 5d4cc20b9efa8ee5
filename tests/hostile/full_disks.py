"""A disk that is full after some bytes: an OSError that names the target, which stays as it was, and nothing beside it.

A limit on the size of files stands for the disk: writes beyond it fail in the same calls, with the same class of error.
"""

import resource
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

from stickbreak.cli.files import write_labels
from stickbreak.data.atomic import FULL
from stickbreak.data.corpus import write_corpus

from .attacker import FINE, REFUSED, Attacker, Outcome
from .ordinary_fits import fit, unfitted


@dataclass(frozen=True)
class FullDisk:
    """What is written, how many bytes of a file fit, and whether there is an older one."""

    writes: str = "model"
    room: int = 0
    older: bool = True


@cache
def model() -> Any:
    return fit(unfitted("Mixture"))


def _corpus(path: Path) -> None:
    write_corpus(path, sparse.csr_array(np.arange(60.0).reshape(6, 10)))


WRITERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "model": ("model.safetensors", lambda path: model().save(path)),
    "corpus": ("corpus", _corpus),
    "labels": ("labels.npy", lambda path: write_labels(path, np.arange(500), "cluster")),
    "table": ("labels.csv", lambda path: write_labels(path, np.full((50, 3), 1 / 3), "cluster")),
}


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(case: FullDisk) -> Outcome:
    name, write = WRITERS[case.writes]
    model()
    with tempfile.TemporaryDirectory(prefix="hostile") as temporary:
        folder = Path(temporary)
        path = folder / name
        if case.older:
            write(path)
        before = _contents(folder)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (case.room, hard))
        failed: Exception | None = None
        try:
            write(path)
        except Exception as error:
            failed = error
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        after = _contents(folder)
    if failed is None:
        return Outcome(FINE)
    said = f"{type(failed).__name__}: {failed}"
    if not isinstance(failed, OSError) or failed.errno not in FULL:
        return Outcome("foreign error", said)
    if str(path) not in said or "free some space" not in said:
        return Outcome("unclear error", said)
    if after != before:
        return Outcome("a full disk changes files", f"{sorted(before)} became {sorted(after)}"[:300])
    return Outcome(REFUSED, said)


CASES = st.builds(FullDisk, st.sampled_from(tuple(WRITERS)), st.integers(0, 20_000), st.booleans())
ATTACKERS = [Attacker("full disks", CASES, run, {"FullDisk": FullDisk}, seconds=30.0)]
