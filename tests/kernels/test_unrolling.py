"""Loops of kernels are not unrolled, and other code of the process is compiled as ever."""

import pytest
from llvmlite import binding

from stickbreak.kernels._jit import jit
from stickbreak.kernels._unrolling import without_unrolling


def unrolls():
    return binding.create_pipeline_tuning_options().loop_unrolling


def test_options_hold_within_alone():
    assert unrolls()
    with without_unrolling():
        assert not unrolls()
    assert unrolls()


def test_options_are_put_back_after_an_error():
    with pytest.raises(ValueError, match="meanwhile"), without_unrolling():
        raise ValueError("meanwhile")
    assert unrolls()


def test_kernels_are_compiled_with_them(monkeypatch):
    seen = []
    make = binding.create_pipeline_tuning_options

    def noted(*arguments, **named):
        seen.append(make(*arguments, **named))
        return seen[-1]

    monkeypatch.setattr(binding, "create_pipeline_tuning_options", noted)

    @jit
    def double(x):
        return 2.0 * x

    double._cache._cache.load_overload = lambda *arguments: None
    assert double(3.0) == 6.0
    assert seen
    assert not any(options.loop_unrolling for options in seen)


def test_another_llvmlite_compiles_as_ever(monkeypatch):
    monkeypatch.delattr(binding, "create_pipeline_tuning_options")
    with without_unrolling():
        pass
    assert not hasattr(binding, "create_pipeline_tuning_options")
