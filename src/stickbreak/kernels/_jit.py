"""How loops are compiled, and a cache of machine code that tolerates damaged files.

Numba keeps machine code in files beside the source, or in the user's cache folder.  Here such a file is used only if it
is whole and was made for the same types and the current sources; everything else is compiled again.  This needs parts of
numba that other releases may not have: without them, numba's own cache is used, without these checks.
"""

import hashlib
import pickle
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
from numba.core import config

try:
    _caching: Any = import_module("numba.core.caching")
except ImportError:
    _caching = None
FunctionCache: Any = getattr(_caching, "FunctionCache", object)
IndexDataCacheFile: Any = getattr(_caching, "IndexDataCacheFile", object)

_SAFE_MATH = {"reassoc", "contract", "arcp", "nsz"}  # fast, but NaN and infinity keep their meaning
_CURE = "so every process compiles its loops again, which takes a while; set NUMBA_CACHE_DIR to a folder that can be written."
_CHANGED = (AttributeError, TypeError, NotImplementedError)  # errors of a release of numba with other parts

inline = numba.njit(inline="always")  # for functions that would not be vectorised otherwise


def jit(function: Any) -> Any:
    """Compile a function without the interpreter's lock and keep its machine code, if there is a place for it.

    No loop may both store to an array and sum numbers.  Vectorised, it adds them in another order, and it runs vectorised only
    if its arrays pass a check at run time, which fails if they lie close together in memory: the sum would depend on where.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy", fastmath=_SAFE_MATH)(function)
    if compiled is not function:  # they are the same with NUMBA_DISABLE_JIT
        try:
            compiled._cache = _cache_of(function, compiled)
        except RuntimeError:
            _warn(f"neither {Path(__file__).parent / '__pycache__'} nor the user's cache folder can be written")
    return compiled


def _cache_of(function: Any, compiled: Any) -> Any:
    """The cache of a function: one that checks its files, or numba's own if this numba lacks the parts."""
    try:
        return _Tolerant(_Cache(function))
    except _CHANGED:
        compiled.enable_caching()  # as cache=True does
        return _Tolerant(compiled._cache)


def _sources() -> str:
    """A digest of all kernels: functions of one file are compiled into those of others."""
    digest = hashlib.sha256(repr((sorted(_SAFE_MATH), vars(config).get("BOUNDSCHECK"))).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_stamp = _sources()
_warned = False


def _warn(reason: str) -> None:
    """Warn once that machine code cannot be kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"compiled code cannot be kept: {reason}, {_CURE}", RuntimeWarning, stacklevel=4)


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
        except (OSError, pickle.UnpicklingError, EOFError, *_CHANGED):
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep machine code."""
        try:
            self._cache.save_overload(*arguments)
        except OSError as error:
            _warn(f"{self._cache.cache_path} cannot be written ({error.strerror})")
        except _CHANGED as error:
            _warn(f"numba {numba.__version__} keeps it in another way ({error})")


class _File(IndexDataCacheFile):
    """Machine code with a checksum and its types: two processes that write at once may mix up their files."""

    def check(self):
        """Raise an AttributeError or a TypeError if numba lacks a method that is overridden here."""
        for name in ("save", "load", "_load_index", "_load_data", "_dump"):
            getattr(super(), name)
        hashlib.sha256(super()._dump(None))
        Path(self._data_path(""))

    def save(self, key, data):
        super().save(key, (key, data))

    def load(self, key):
        found = super().load(key)
        return None if found is None or found[0] != key else found[1]

    def _load_index(self):
        try:
            return super()._load_index()
        except Exception:  # a damaged file may raise anything when unpickled
            return {}

    def _load_data(self, name):
        data = Path(self._data_path(name)).read_bytes()
        if hashlib.sha256(data[:-32]).digest() != data[-32:]:
            return None
        return pickle.loads(data)

    def _dump(self, obj):
        data = super()._dump(obj)
        return data + hashlib.sha256(data).digest()  # which unpickling ignores


class _Cache(FunctionCache):
    """Numba's cache of a function, in files that are checked."""

    def __init__(self, function):
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), _stamp)
        self._cache_file = _File(self._cache_path, self._impl.filename_base, stamp)
        self._cache_file.check()
