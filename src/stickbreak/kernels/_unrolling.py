"""Compilation without unrolled loops.

Copies of the bodies of loops cost LLVM time and gain little here: loops over numbers are vectorised, and what is left is short.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from llvmlite import binding

_lock: Any
try:
    from numba.core.compiler_lock import global_compiler_lock as _lock
except ImportError:  # another numba
    _lock = nullcontext()


@contextmanager
def without_unrolling() -> Iterator[None]:
    """What is compiled within has vectorised loops, but none unrolled; an llvmlite without such options compiles as ever.

    The lock keeps other threads from compiling meanwhile, so that neither their code nor this depends on who is first.
    """
    with _lock:
        make: Any = getattr(binding, "create_pipeline_tuning_options", None)

        def options(*arguments: Any, **named: Any) -> Any:
            made = make(*arguments, **named)
            made.loop_unrolling = False
            return made

        if make is not None:
            binding.create_pipeline_tuning_options = options
        try:
            yield
        finally:
            if make is not None:
                binding.create_pipeline_tuning_options = make
