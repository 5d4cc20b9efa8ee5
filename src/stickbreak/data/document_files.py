"""Paths as documents: corpora, bags of words in text, tables of counts, and columns that list the words of each document."""

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from scipy import sparse

from .corpus import is_corpus, open_bags, open_corpus, write_corpus
from .files import ARROW, ending, require_arrow
from .opening import IN_MEMORY, files_of, open_table
from .sources import CHUNK_NUMBERS
from .stored import Stored
from .table import DEFAULT, ReadOptions, Table


def open_documents(
    path: Any, options: ReadOptions = DEFAULT, n_words: int | None = None, in_memory: int = IN_MEMORY
) -> Table:
    """Counts of words (N, V), CSR, of the documents in files.

    Parameters
    ----------
    path : a corpus (`stickbreak.data.corpus.write_corpus`); bags of words in text (`stickbreak.data.bag_files`); a table of
        counts, a document in each row (`stickbreak.data.opening.open_table`); or one or several ``.parquet``, ``.feather`` or
        ``.arrow`` with a document in each row and a column ``words``, the list of its words by their numbers from 0.  A column
        ``counts`` beside it has as many numbers; without it each word counts once for every time that it is listed.
    options : what a file does not say itself, and the most that it may unpack to
    n_words : V of a model, where lists need not hold the last of its words
    in_memory : bytes; counts that take more are written to a corpus in a temporary folder, which goes with the result

    Returns
    -------
    The counts, mapped where they are a corpus, and the vocabulary or None.  V of lists is the largest word plus one.

    Raises
    ------
    DataError : a file is missing, damaged, of an unknown kind or does not go with others, or a word or count is wrong.
    """
    if is_corpus(path):
        return Table(*open_bags(path, options))
    files = files_of(path)
    if ending(files[0]) in ARROW and files[0].is_file():
        require_arrow(files[0])
        lists = import_module(".word_lists", __package__)
        if lists.has_lists(files[0]):
            return Table(_gathered(lists.blocks(files, options), n_words, in_memory), None)
    table = open_table(path, options)
    if isinstance(table.X, Stored):
        return table._replace(X=_gathered(_counts(table.X), table.X.shape[1], in_memory))
    return table


def _gathered(blocks: Iterable[sparse.csr_array], n_words: int | None, in_memory: int) -> sparse.csr_array:
    """Documents in memory or, where they take more bytes than that, in a temporary corpus, which is mapped."""
    first: list[sparse.csr_array] = []
    size = 0
    rest = iter(blocks)
    for block in rest:
        first.append(block)
        size += block.data.nbytes + block.indices.nbytes
        if size > in_memory:
            return _mapped(_chain(first, rest), n_words)
    V = max([n_words or 0, *(block.shape[1] for block in first)])
    for block in first:
        block.resize(block.shape[0], V)
    return sparse.vstack(first, format="csr")


def _chain(first: list[sparse.csr_array], rest: Iterator[sparse.csr_array]) -> Iterator[sparse.csr_array]:
    while first:
        yield first.pop(0)
    yield from rest


def _mapped(blocks: Iterable[sparse.csr_array], n_words: int | None) -> sparse.csr_array:
    """The documents of a corpus in a folder that is removed with them."""
    folder = Path(tempfile.mkdtemp(prefix="stickbreak-"))
    try:
        write_corpus(folder / "corpus", blocks)
        X = open_corpus(folder / "corpus")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if n_words is not None and n_words > X.shape[1]:
        X = _with_words(X, n_words)
    weakref.finalize(X, shutil.rmtree, folder, ignore_errors=True)
    return X


def _with_words(X: sparse.csr_array, V: int) -> sparse.csr_array:
    """The same documents of more words, without a copy of their counts."""
    wider = sparse.csr_array((X.shape[0], V), dtype=X.dtype)
    wider.indptr = X.indptr
    wider.indices = X.indices
    wider.data = X.data
    wider.has_canonical_format = True
    return wider


def _counts(X: Stored) -> Iterator[sparse.csr_array]:
    """The counts of a table in files, some rows at a time."""
    rows = max(1, CHUNK_NUMBERS // X.shape[1])
    for start in range(0, len(X), rows):
        yield sparse.csr_array(X[start : start + rows])
        X.release()
