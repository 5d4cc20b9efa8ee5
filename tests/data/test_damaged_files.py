"""Damaged files of every format: each is read, or refused in one line that names the file, in bounded time and memory."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
SPEC = importlib.util.spec_from_file_location("file_mutations", Path(__file__).with_name("file_mutations.py"))
mutations = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mutations)


def test_valid_files_are_read(tmp_path):
    for name, content in mutations.valid_files().items():
        assert mutations.outcome(mutations.put(tmp_path, name, content)) == "read", name


def test_mutations_are_what_the_seed_says():
    files = mutations.valid_files()
    for number in range(60):
        assert mutations.mutation(files, 3, number) == mutations.mutation(files, 3, number)


def test_damaged_files_are_read_or_refused():
    wrong, ended = mutations.attack(seed=0, count=1000)
    assert not wrong
    assert sum(ended.values()) == 1000
    assert min(ended["read"], ended["refused"]) > 50
