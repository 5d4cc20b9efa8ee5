"""Paths as documents: lists of words in columns, tables of counts, corpora; in memory or mapped, the same counts."""

import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy import sparse

from stickbreak import TopicModel
from stickbreak.data.corpus import write_corpus
from stickbreak.data.document_files import open_documents
from stickbreak.data.files import DataError

LISTS = [[3, 0, 3], [], [1], [5, 2]]
COUNTS = [[1, 2, 1], [], [4], [1, 0]]
EXPECTED = np.array([[2, 0, 0, 2, 0, 0], [0] * 6, [0, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]])


def table(lists=LISTS, counts=COUNTS):
    columns = {"id": np.arange(len(lists)), "words": pa.array(lists, pa.list_(pa.int32()))}
    return pa.table(columns if counts is None else {**columns, "counts": pa.array(counts, pa.large_list(pa.float32()))})


@pytest.fixture
def folder(tmp_path):
    parquet.write_table(table()[:1], tmp_path / "part9.parquet")
    parquet.write_table(table()[1:], tmp_path / "part10.parquet", row_group_size=2)
    return tmp_path


@pytest.mark.parametrize("in_memory", [0, 1 << 20])
def test_lists_of_words_are_counts(folder, in_memory):
    X = open_documents(folder, in_memory=in_memory).X
    assert isinstance(X.data, np.memmap) == (in_memory == 0)
    np.testing.assert_array_equal(X.toarray(), EXPECTED)
    wider = open_documents(folder, n_words=9, in_memory=in_memory).X
    np.testing.assert_array_equal(wider.toarray(), np.pad(EXPECTED, ((0, 0), (0, 3))))


def test_a_temporary_corpus_goes_with_its_documents(folder, tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(place))
    X = open_documents(folder, in_memory=0).X
    assert len(list(place.iterdir())) == 1
    del X
    assert not list(place.iterdir())
    parquet.write_table(table([[-1]], None), folder / "part11.parquet")
    with pytest.raises(DataError):
        open_documents(folder, in_memory=0)
    assert not list(place.iterdir())


def test_words_without_counts_count_once_each(tmp_path):
    feather.write_feather(table(counts=None), tmp_path / "x.feather")
    expected = [[1, 0, 0, 2, 0, 0], [0] * 6, [0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 1]]
    np.testing.assert_array_equal(open_documents(tmp_path / "x.feather").X.toarray(), expected)


def test_large_tables_of_counts_become_a_corpus(tmp_path):
    for i, X in enumerate(np.split(EXPECTED, 2)):
        np.save(tmp_path / f"{i}.npy", X)
    X = open_documents(tmp_path, in_memory=0).X
    assert isinstance(X.data, np.memmap)
    np.testing.assert_array_equal(X.toarray(), EXPECTED)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (table([[0, -1]], None), "words must be whole numbers from 0"),
        (table([[0, 1]], [[1]]), "a document has 2 words but 1 counts"),
        (table([[0]], [[np.nan]]), "counts must be finite and at least 0"),
        (table([None], None), "a document has no list"),
        (table([[None]], None), "none of them missing"),
        (pa.table({"words": [["a", "b"]]}), "must hold numbers"),
        (pa.table({"words": [[0]], "counts": [1]}), "may have one 'counts' of as many numbers"),
    ],
)
def test_wrong_lists_are_refused_by_file(tmp_path, columns, words):
    parquet.write_table(columns, tmp_path / "x.parquet")
    with pytest.raises(DataError, match=re.escape(words)) as caught:
        open_documents(tmp_path / "x.parquet")
    assert "x.parquet" in str(caught.value)


def test_topics_of_a_path_are_those_of_its_counts(tmp_path):
    rng = np.random.default_rng(0)
    topics = np.repeat(np.eye(2), 4, axis=1) / 4
    counts = rng.multinomial(20, rng.dirichlet([0.3] * 2, 60) @ topics)
    lists = [np.repeat(np.arange(8), row).tolist() for row in counts]
    parquet.write_table(table(lists, None), tmp_path / "x.parquet")
    write_corpus(tmp_path / "corpus", sparse.csr_array(counts.astype(np.float32)))
    settings = {"init": topics, "moves": (), "random_state": 0}
    expected = TopicModel(**settings).fit(sparse.csr_array(counts.astype(np.float64)))
    model = TopicModel(**settings).fit(tmp_path / "x.parquet")
    assert model.lower_bound_ == expected.lower_bound_
    np.testing.assert_allclose(model.transform(tmp_path / "corpus"), expected.transform(counts), atol=1e-4)
    parquet.write_table(table([[0, 1]], None), tmp_path / "few.parquet")
    assert model.transform(tmp_path / "few.parquet").shape == (1, 2)
