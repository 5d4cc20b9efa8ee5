"""Parts of kernels have no machine code of their own, and that of kernels does not depend on others."""

import importlib
import math
import re
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


def nested_kernels():
    """A kernel that is long enough not to be inlined, and one that calls it in a part, neither compiled before."""

    @_jit.jit
    def inner(x):
        for _ in range(9):
            s = math.sin(x) + math.cos(x) * math.lgamma(x) + math.atan(x) - math.exp(x) * math.tanh(x) + math.log1p(x)
            t = math.sinh(s) * math.erf(s) + math.cosh(s) - math.atan(s) * math.erfc(s) + math.sin(s) * math.expm1(s)
            x = 1.0 + abs(math.atan(t)) + abs(math.tanh(s + t))
        return x

    @_jit.part
    def middle(x):
        return inner(x) + inner(x + 1.0)

    @_jit.jit
    def outer(x):
        return middle(x) * middle(2.0 * x)

    for kernel in (inner, outer):
        kernel._cache._cache.load_overload = lambda *arguments: None
    return inner, outer


def intermediate_code(kernel):
    """What LLVM made of a kernel, without the numbers that its names have in this process."""
    (code,) = kernel.inspect_llvm().values()
    return re.sub(r"v\d+B", "vB", code)


def test_who_is_compiled_first_does_not_matter():
    first, second = nested_kernels(), nested_kernels()
    for kernel in (*first, *reversed(second)):
        kernel(2.0)
    for one, other in zip(first, second, strict=True):
        assert intermediate_code(one) == intermediate_code(other)


def test_no_kernel_runs_the_copy_in_another():
    """Neither the copy of what it calls nor that of itself."""
    inner, outer = nested_kernels()
    assert outer(2.0) == pytest.approx((inner(2.0) + inner(3.0)) * (inner(4.0) + inner(5.0)), rel=1e-12)
    code = intermediate_code(outer)
    assert re.search(r"^define internal .*inner", code, re.MULTILINE)
    assert "linkonce" not in code
    assert "linkonce" not in intermediate_code(inner)


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
