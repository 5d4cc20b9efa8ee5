"""Streams of the bytes of files; files packed with gzip are unpacked as they are read, up to a limit."""

import gzip
import io
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

from .table import DataError, ReadOptions

GZIP = b"\x1f\x8b"  # the first bytes of a packed file


class _Unpacked(io.RawIOBase):
    """The contents of a file packed with gzip, refused where they are damaged or longer than is allowed."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self._options = options
        self._size = 0
        self._file = gzip.GzipFile(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        try:
            n = self._file.readinto(buffer)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self._path} cannot be unpacked, or is cut off: {error}") from error
        self._size += n
        self._options.check_size(self._path, self._size, "it unpacks to")
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def open_stream(path: Path, options: ReadOptions) -> BinaryIO:
    """The contents of a file as a stream of bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    return cast(BinaryIO, io.BufferedReader(_Unpacked(path, options), 1 << 16)) if packed else path.open("rb")
