"""Numbers of tables that are asked for in advance."""

import numba
import numpy as np
import pytest

from stickbreak.kernels import _prefetch

COLUMNS = np.array([2, 0])
compiled = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def looked_up(table, columns):
    _prefetch.prefetch(table, 1, columns)
    return table[1, columns[0]]


def code(dtype):
    """The code of a kernel that asks for numbers, which is not kept, after a call."""
    kernel = numba.njit(looked_up)
    assert kernel(np.arange(6, dtype=dtype).reshape(2, 3), COLUMNS) == 5.0
    (text,) = kernel.inspect_llvm().values()
    return text


@compiled
def test_the_processor_is_asked():
    assert "call void @llvm.prefetch" in code(np.float64)


@compiled
def test_with_another_numba_it_is_not(monkeypatch):
    monkeypatch.setattr(_prefetch, "_KNOWN", ((9, 0), (9, 1)))
    assert "llvm.prefetch" not in code(np.float32)


def test_uncompiled_nothing_is_done():
    assert looked_up(np.arange(6.0).reshape(2, 3), COLUMNS) == 5.0
