"""Numba's cache of machine code, in files that are used only if they are whole and of the same types and current sources.

It is made of parts of numba that another release may not have: then the import of this file, or a `CheckedCache`, fails.
"""

import hashlib
import pickle
from pathlib import Path

from numba.core import config
from numba.core.caching import FunctionCache, IndexDataCacheFile


def _sources() -> str:
    """A digest of all kernels: functions of one file are compiled into those of others."""
    digest = hashlib.sha256(repr(vars(config).get("BOUNDSCHECK")).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_stamp = _sources()


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


class CheckedCache(FunctionCache):
    """Numba's cache of a function, in files that are checked."""

    def __init__(self, function):
        super().__init__(function)
        stamp = (self._impl.locator.get_source_stamp(), _stamp)
        self._cache_file = _File(self._cache_path, self._impl.filename_base, stamp)
        self._cache_file.check()
