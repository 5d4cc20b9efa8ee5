"""The contents of a file of rows, the options for reading one, and the errors of reading."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from .frames import Levels

MISSING = frozenset({"", "nan", "na", "n/a", "null", "none"})  # cells of text, in upper or lower case
LEAST_LIMIT = 1 << 28  # the default of `max_bytes`: 256 MiB, or
LIMIT_RATIO = 200  # this many times the size of the file


class DataError(ValueError):
    """A data file that cannot be used as it is; the message says why in one line."""


class Table(NamedTuple):
    """Rows of numbers (N, D), the names of the columns if the file has any, and the levels of columns with categories.

    Missing values are NaN, and categories are codes of their sorted levels.
    """

    X: Any
    names: list[str] | None
    levels: Levels = MappingProxyType({})


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file that does not say so itself.

    Parameters
    ----------
    delimiter: str
        What separates cells of text: ",", ";" or tab; by default the one that cuts all rows into equally many cells.
    decimal: str
        What precedes decimals in text; by default a point, or a comma if the cells show it.
    encoding: str
        Of text; by default UTF-8, or UTF-16 if the file starts with its mark.
    max_bytes: int
        Most bytes that a packed file may unpack to, or that the sizes in a header may ask for; by default 256 MiB, or
        200 times the size of the file if that is more.
    """

    delimiter: Literal[",", ";", "tab"] | None = None
    decimal: Literal[".", ","] | None = None
    encoding: str | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, known in (("delimiter", (",", ";", "tab")), ("decimal", (".", ","))):
            value = getattr(self, name)
            if value is not None and value not in known:
                raise ValueError(f"{name} is {value!r}; use one of {', '.join(map(repr, known))}.")
        if self.max_bytes is not None and not self.max_bytes > 0:
            raise ValueError(f"max_bytes is {self.max_bytes!r}; use a number of bytes above 0.")

    def limit(self, path: Path) -> int:
        """The most bytes that a file may ask for."""
        if self.max_bytes is not None:
            return self.max_bytes
        return max(LEAST_LIMIT, LIMIT_RATIO * path.stat().st_size)

    def check_size(self, path: Path, n_bytes: int, what: str) -> None:
        """Refuse contents that take more bytes than the file may ask for."""
        if n_bytes > self.limit(path):
            raise DataError(
                f"{path}: {what} more than the {self.limit(path):,} bytes that are allowed; pass a larger max_bytes "
                "(--max-bytes) if that is right."
            )


DEFAULT = ReadOptions()


@contextmanager
def damage(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on reading a damaged file into one line that names the file."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # parsers of binary files raise almost anything on damaged ones, even MemoryError
        raise DataError(f"{path} is not {kind}, or is damaged: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """The message of an error, shortened to a line; its name if it has none."""
    return (" ".join(str(error).split()) or type(error).__name__)[:200]
