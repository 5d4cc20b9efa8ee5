"""What the C library is told while tasks run, by a record in its place."""

import pytest

from stickbreak.cluster import heap


@pytest.fixture
def told(monkeypatch):
    """The options that were set, in order."""
    options = []
    monkeypatch.setattr(heap, "_libc_mallopt", lambda: lambda option, value: options.append((option, value)))
    return options


def test_memory_is_kept_until_the_last_task_ends(told, monkeypatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    with heap.kept():
        began = list(told)
        with pytest.raises(RuntimeError, match="a task fails"), heap.kept():
            raise RuntimeError("a task fails")
        assert told == began
    assert [option for option, _ in began] == [heap.TRIM, heap.MMAP]
    assert told[2:] == [(heap.TRIM, 65536), (heap.MMAP, heap.DEFAULT)]


def test_processes_that_were_told_nothing_stay_as_they_are(told, monkeypatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    with heap.kept():
        assert told == []
    assert told == []


def test_the_real_library_takes_both():
    mallopt = heap._libc_mallopt()
    if mallopt is not None:
        heap._count(1, mallopt)
        heap._count(-1, mallopt)
        assert heap._tasks == 0
