"""The collector of reference cycles waits while loops are compiled, and goes on after, also after an error."""

import gc

import numba
import pytest
from numba.core.caching import NullCache

from stickbreak._collector import paused
from stickbreak.kernels._jit import jit


def test_it_goes_on_as_it_was():
    with paused(), paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(RuntimeError, match="fails"), paused():
        raise RuntimeError("a compilation fails")
    assert gc.isenabled()
    gc.disable()
    try:
        with paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_waits_for_a_compilation():
    seen = []

    def watched(*arguments):
        seen.append(gc.isenabled())
        return compile_(*arguments)

    kernel = jit(lambda x: x + 1)
    kernel._cache = NullCache()  # an earlier run has compiled it
    compile_ = kernel._compiler.compile
    kernel._compiler.compile = watched
    assert kernel(2) == 3
    assert seen == ([] if numba.config.DISABLE_JIT else [False])
    assert gc.isenabled()
    with pytest.raises(numba.TypingError):
        kernel("a")
    assert gc.isenabled()
