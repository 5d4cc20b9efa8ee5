"""Parts of kernels have no machine code of their own."""

import importlib
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import codegen

from stickbreak.kernels import _jit

_inlined = pytest.importorskip("stickbreak.kernels._inlined", reason="another numba", exc_type=ImportError)


def a_kernel():
    """A kernel that was not compiled before, and its part."""

    @_jit.part
    def total(x):
        found = 0.0
        for k in range(x.size):
            found += x[k]
        return found

    @_jit.jit
    def twice(x):
        return total(x[1:]) + total(x)

    twice._cache._cache.load_overload = lambda *arguments: None
    return twice


def machine_code(monkeypatch):
    """The names of the libraries for which machine code is made from now on."""
    seen = []
    finish = codegen.JITCodeLibrary._finalize_specific

    def noted(library):
        seen.append(library.name.split(".")[-1])
        return finish(library)

    monkeypatch.setattr(codegen.JITCodeLibrary, "_finalize_specific", noted)
    return seen


def test_only_kernels_have_machine_code(monkeypatch):
    seen = machine_code(monkeypatch)
    assert a_kernel()(np.arange(4.0)) == 12.0
    assert "twice" in seen
    assert "total" not in seen


@pytest.mark.skipif(not numba.config.LOOP_VECTORIZE, reason="loops are not vectorised")
@pytest.mark.parametrize(("part", "checked"), [(_jit.part, True), (_jit.part_apart, False)])
def test_arrays_that_are_said_to_be_apart_are_not_checked_at_run_time(part, checked):
    @part
    def add(x, y):
        for k in range(x.size):
            x[k] += y[k]

    @_jit.jit
    def sum_of(x, y):
        add(x, y)

    sum_of._cache._cache.load_overload = lambda *arguments: None
    x, y = np.arange(9.0), np.ones(9)
    sum_of(x, y)
    np.testing.assert_array_equal(x, np.arange(9.0) + 1.0)
    code = next(iter(sum_of.inspect_llvm().values()))
    assert "vector.body" in code
    assert ("vector.memcheck" in code) == checked


def test_another_numba_compiles_parts_as_ever(monkeypatch):
    monkeypatch.setattr(_jit, "_ONLY_INLINED", {})
    seen = machine_code(monkeypatch)
    assert a_kernel()(np.arange(4.0)) == 12.0
    assert {"twice", "total"} <= set(seen)


def test_what_is_needed_of_numba_is_looked_for(monkeypatch):
    monkeypatch.delattr(codegen.CPUCodegen, "_module_pass_manager")
    with pytest.raises(AttributeError, match="_module_pass_manager"):
        importlib.reload(_inlined)


@pytest.mark.parametrize("version", [(0, 61), (0, 69), (1, 0)])
def test_numbas_that_are_not_known_compile_parts_as_ever(monkeypatch, version):
    monkeypatch.setattr(numba, "version_info", SimpleNamespace(short=version))
    with pytest.raises(ImportError, match="another way"):
        importlib.reload(_inlined)
