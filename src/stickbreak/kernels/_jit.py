"""How loops are compiled, and a cache of machine code that survives what happens to files.

Numba keeps machine code in files beside the source, or in the user's cache folder.  Here such a file counts only if it is
whole, was made for the same types, and for the sources as they are now; everything else is compiled anew.
"""

import hashlib
import pickle
import warnings
from pathlib import Path
from typing import Any

import numba
from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile

_SAFE_MATH = {"reassoc", "contract", "arcp", "nsz"}  # fast, but NaN and infinity keep their meaning
_CURE = "so every process compiles its loops again, which takes a while; set NUMBA_CACHE_DIR to a folder that can be written."

inline = numba.njit(inline="always")  # where a function of its own would not be vectorised


def jit(function: Any) -> Any:
    """Compile a function without the interpreter's lock and keep its machine code, if there is a place for it."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy", fastmath=_SAFE_MATH)(function)
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        try:
            compiled._cache = _Cache(function)
        except RuntimeError:
            _warn(f"neither {Path(__file__).parent / '__pycache__'} nor the user's cache folder can be written")
    return compiled


def _sources() -> str:
    """A digest of all that machine code is made of: functions of one file are compiled into those of others."""
    digest = hashlib.sha256(repr((sorted(_SAFE_MATH), vars(config).get("BOUNDSCHECK"))).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_stamp = _sources()
_warned = False


def _warn(reason: str) -> None:
    """Say once that nothing can be kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"compiled code cannot be kept: {reason}, {_CURE}", RuntimeWarning, stacklevel=4)


class _File(IndexDataCacheFile):
    """Machine code with a checksum and the types it is for: two processes that write at once may mix up their files."""

    def save(self, key, data):
        super().save(key, (key, data))

    def load(self, key):
        found = super().load(key)
        return None if found is None or found[0] != key else found[1]

    def _load_index(self):
        try:
            return super()._load_index()
        except Exception:  # whatever the remains of a file unpickle to
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
    """Numba's cache of a function, in files that are checked; files that cannot be written are done without."""

    def __init__(self, function):
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), _stamp)
        self._cache_file = _File(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except (OSError, pickle.UnpicklingError, EOFError):
            return None

    def save_overload(self, sig, data):
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"{self._cache_path} cannot be written ({error.strerror})")
