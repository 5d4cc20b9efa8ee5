"""How loops are compiled, and how their machine code is kept.

Numba keeps machine code in files beside the source, or in the user's cache folder.  Here such files are checked
(`_checked_cache`), and what cannot be used is compiled again.  A numba without the parts that this needs keeps its own files,
without these checks.

A loop is soon compiled, but a slice that is set, an argsort, a sum or a product of arrays brings dozens of functions along; so
kernels that every fit calls have loops in their place, and are called with arrays of one layout.  A part is compiled once more
with every call of it in a kernel; a number of an array that is used often is best read once.
"""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.extending import register_jitable

from .._collector import paused
from ._unrolling import without_unrolling

_SAFE_MATH = {"reassoc", "contract", "arcp", "nsz"}  # fast, but NaN and infinity keep their meaning
NOT_KEPT = "compiled code cannot be kept"
_CURE = "so every process compiles its loops again, which takes a while; set NUMBA_CACHE_DIR to a folder that can be written."
# What the inner parts of numba that are used here raise in a release that has changed them.
_INCOMPATIBLE = (ImportError, AttributeError, TypeError, NotImplementedError)

try:
    from ._inlined import ApartCompiler, InlinedCompiler, KernelCompiler

    _KERNEL: Any = {"pipeline_class": KernelCompiler}
    _ONLY_INLINED: Any = {"pipeline_class": InlinedCompiler}
    _APART: Any = {"pipeline_class": ApartCompiler}
except _INCOMPATIBLE:
    _KERNEL = {}
    _ONLY_INLINED = {}
    _APART = {}

_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "fastmath": _SAFE_MATH, "no_cfunc_wrapper": True}


def jit(function: Any) -> Any:
    """Compile a function without the interpreter's lock and keep its machine code, if there is a place for it.

    What a kernel calls is copied into its own machine code, and no other kernel runs that copy: copies are optimised for where
    they are, and differ in the last bits.  Nor does a kernel called by others inherit from the first that it is always inlined.
    So results do not depend on the order in which kernels were compiled or are loaded.

    No loop may both store to an array and sum numbers.  Vectorised, it adds them in another order, and it runs vectorised only
    if its arrays pass a check at run time, which fails if they lie close together in memory: the sum would depend on where.
    """
    compiled: Any = numba.njit(forceinline=False, **_OPTIONS, **_KERNEL)(function)
    if compiled is not function:  # they are the same with NUMBA_DISABLE_JIT
        compiled.compile = paused()(without_unrolling()(compiled.compile))
        try:
            compiled._cache = _cache_of(function, compiled)
        except RuntimeError:
            _warn(f"neither {Path(__file__).parent / '__pycache__'} nor the user's cache folder can be written")
    return compiled


def _cache_of(function: Any, compiled: Any) -> Any:
    """The cache of a function: one that checks its files, or numba's own if this numba lacks the parts."""
    try:
        from ._checked_cache import CheckedCache

        return _Tolerant(CheckedCache(function))
    except _INCOMPATIBLE:
        compiled.enable_caching()  # as cache=True does
        return _Tolerant(compiled._cache)


def part(function: Any) -> Any:
    """Let kernels call a function, of which each then has a copy; called from Python, it stays as it is.

    It is always inlined, and optimised only there.
    """
    inlined: Any = register_jitable(forceinline=True, **_OPTIONS, **_ONLY_INLINED)
    return inlined(function)


def part_apart(function: Any) -> Any:
    """As `part`, for functions that are never called with two arrays that share memory: LLVM may rely on it.

    Otherwise a loop is vectorised only behind a check of all its arrays, which costs more than a short loop does.
    """
    inlined: Any = register_jitable(forceinline=True, **_OPTIONS, **_APART)
    return inlined(function)


def folder_of(kernel: Any) -> Path | None:
    """The folder in which the machine code of a kernel is kept, if there is a place for it."""
    path = getattr(getattr(kernel, "_cache", None), "cache_path", None)
    return None if path is None else Path(path)


_warned = False


def _warn(reason: str) -> None:
    """Warn once that machine code cannot be kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"{NOT_KEPT}: {reason}, {_CURE}", RuntimeWarning, stacklevel=4)


class _Tolerant:
    """A cache that ignores files that cannot be read or written."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        """The machine code for some types, or None."""
        try:
            return self._cache.load_overload(*arguments)
        except (OSError, pickle.UnpicklingError, EOFError, *_INCOMPATIBLE):
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep machine code."""
        try:
            self._cache.save_overload(*arguments)
        except OSError as error:
            _warn(f"{self._cache.cache_path} cannot be written ({error.strerror})")
        except _INCOMPATIBLE as error:
            _warn(f"numba {numba.__version__} keeps it in another way ({error})")
