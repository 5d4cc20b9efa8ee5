"""BED files: the states of sequences as segments of chromosomes."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from .atomic import replacing
from .sequence_files import Name, expect, integers

RUNS = 1 << 16  # lines that are held as text at once


def write_bed(
    path: Name,
    labels: ArrayLike,
    lengths: ArrayLike,
    chromosomes: Sequence[str],
    bin_size: int,
    names: Sequence[str] | None = None,
) -> None:
    """Write the states of sequences as a BED file: ``chromosome start end state`` for each run of bins in one state.

    Starts count from 0 and ends are not included, so bin t of a chromosome is [t bin_size, (t + 1) bin_size).  The file
    appears when all is written; a write that fails leaves an older file as it was.

    Parameters
    ----------
    labels : states of all sequences, one after another (T,), integers from 0
    lengths : the number of bins of each sequence (G,)
    chromosomes : their names, G different ones without white space
    bin_size : bases per bin, at least 1
    names : of the states (K,); by default those of ChromHMM: E1, E2, ...

    Raises
    ------
    DataError : the arguments do not go together.
    FileNotFoundError : the folder does not exist.
    """
    labels = integers("labels", labels, 0)
    lengths = integers("lengths", lengths, 1)
    T = len(labels)
    expect(lengths.sum() == T, f"the lengths add up to {lengths.sum()}, but there are {T} labels.")
    whole = isinstance(bin_size, (int, np.integer)) and 1 <= bin_size < 2**31
    expect(whole, f"bin_size must be a whole number of bases, at least 1; it is {bin_size!r}.")
    chromosomes = _checked("chromosomes", chromosomes, r"\S+")
    G = len(lengths)
    good = len(chromosomes) == len(set(chromosomes)) == G
    expect(good, f"chromosomes are {chromosomes!r:.80}; {G} different ones are needed, and a file for each cell type.")
    used = np.unique(labels).tolist()
    given = None if names is None else _checked("names", names, r"[^\t\r\n]+")
    states = {k: f"E{k + 1}" for k in used} if given is None else dict(enumerate(given))
    expect(used[-1] in states, f"label {used[-1]} has no name: there are {len(states)} names.")
    first = np.cumsum(lengths) - lengths
    new = np.concatenate([[True], labels[1:] != labels[:-1]])
    new[first] = True
    starts = np.flatnonzero(new)
    stops = np.append(starts[1:], T)
    with replacing(path) as file:
        for runs in (slice(i, i + RUNS) for i in range(0, len(starts), RUNS)):
            g = np.searchsorted(first, starts[runs], side="right") - 1
            bases = [((edge[runs] - first[g]) * int(bin_size)).tolist() for edge in (starts, stops)]
            rows = zip(g.tolist(), *bases, labels[starts[runs]].tolist())
            file.write("".join(f"{chromosomes[g]}\t{a}\t{b}\t{states[k]}\n" for g, a, b, k in rows).encode())


def _checked(what: str, names: Iterable[str], pattern: str) -> list[str]:
    checked = [str(name) for name in names]
    wrong = next((name for name in checked if not re.fullmatch(pattern, name)), None)
    expect(wrong is None, f"{what}: {wrong!r} is empty, or has white space that would break the lines of a BED file.")
    return checked
