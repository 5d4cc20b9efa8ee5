"""The dialect of a .csv or .tsv file, found from its first rows: encoding, delimiter, decimal mark, column names."""

import codecs
import io
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .streams import open_stream
from .table import MISSING, DataError, ReadOptions

HEAD_LINES = 200  # lines from which the delimiter and the decimal mark are found
HEAD_CHARACTERS = 1 << 20  # the most characters of those lines
BLOCK_ROWS = 256  # rows of a block; every column costs time per block
LEAST_BLOCK = 1 << 20  # bytes
MOST_BLOCK = 1 << 27  # bytes
DELIMITERS = (",", ";", "\t")
NUMBER = {
    ".": r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$",
    ",": r"^[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?$",
}
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")  # 1,234 may be a number of thousands
QUOTED = re.compile('"(?:[^"]|"")*"')
HIDDEN = {ord(delimiter): 0xE000 + i for i, delimiter in enumerate(DELIMITERS)}  # for delimiters in quotes
SHOWN = {code: delimiter for delimiter, code in HIDDEN.items()}
MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
DECIMAL = 'decimal="," (--decimal ,)'


class Dialect(NamedTuple):
    """How to cut and read the rows of a text file, the most columns it can have, and the bytes of a block."""

    delimiter: str
    decimal: str
    encoding: str
    width: int
    block: int


def find_dialect(path: Path, options: ReadOptions) -> Dialect:
    """How to read a file: as the options say, else as its first rows suggest."""
    encoding = _encoding(path, options)
    rows = _head(path, options, encoding)
    if not rows:
        raise DataError(f"{path} is empty.")
    delimiter = _delimiter(path, options, rows)
    decimal = options.decimal or _decimal(rows, delimiter)
    if options.decimal is None and decimal == ",":
        warnings.warn(
            f"{path}: decimals follow a comma, as in 1,5 for 1.5; pass {DECIMAL} to say so.", UserWarning, stacklevel=2
        )
    block = min(max(LEAST_BLOCK, BLOCK_ROWS * len(rows[0])), MOST_BLOCK)
    return Dialect(delimiter, decimal, encoding, rows[0].count(delimiter) + 1, block)


def _encoding(path: Path, options: ReadOptions) -> str:
    if options.encoding is not None:
        try:
            return codecs.lookup(options.encoding).name.replace("utf-8", "utf8")  # Arrow reads utf8 as it is
        except LookupError:
            raise DataError(f"{path}: encoding {options.encoding!r} is unknown; use one such as latin-1.") from None
    with open_stream(path, options) as stream:
        return MARKS.get(stream.read(2), "utf8")


def _head(path: Path, options: ReadOptions, encoding: str) -> list[str]:
    """The first rows of a file; the last may be cut off."""
    found: list[str] = []
    size = 0
    try:
        for _, row in islice(rows_of(lines_of(path, options, encoding)), HEAD_LINES):
            if not (found or row.strip()):
                continue
            found.append(row)
            size += len(row)
            if size > HEAD_CHARACTERS:
                break
    except UnicodeError as error:
        raise not_text(path, options, encoding) from error
    return found


def _cells(row: str, delimiter: str) -> list[str]:
    """The cells of a row of the head, stripped and without their quotes."""
    if '"' not in row:
        return [cell.strip() for cell in row.split(delimiter)]
    hidden = QUOTED.sub(lambda quoted: quoted[0].translate(HIDDEN), row)
    return [cell.translate(SHOWN).strip().strip('"').strip() for cell in hidden.split(delimiter)]


def _delimiter(path: Path, options: ReadOptions, rows: list[str]) -> str:
    """The delimiter that cuts all rows into equally many cells, with the largest share of numbers among them."""
    if options.delimiter is not None:
        return "\t" if options.delimiter == "tab" else options.delimiter
    if "\t" in rows[0] and path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t"
    commas = options.decimal != "," or any('"' in row for row in rows)  # quotes tell commas in cells from delimiters
    possible = DELIMITERS if commas else DELIMITERS[1:]
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in possible:
        table = [_cells(row, delimiter) for row in rows]
        widths = {len(cells) for cells in table}
        if widths != {1} and len(widths) == 1:
            scores[delimiter] = _numeric(table[1:] or table, delimiter, options.decimal), widths.pop()
    if not scores:
        return max(possible, key=rows[0].count)
    best = max(scores.values())
    chosen = [delimiter for delimiter, score in scores.items() if score == best]
    if len(chosen) > 1:
        raise DataError(
            f"{path}: {' and '.join(map(repr, chosen))} both cut its rows into {best[1]} cells; "
            'say which it is, with delimiter=";" (--delimiter ";") or another.'
        )
    return chosen[0]


def _numeric(table: list[list[str]], delimiter: str, decimal: str | None) -> float:
    """The share of cells that are numbers, or missing."""
    possible = [decimal] if decimal is not None else ["."] if delimiter == "," else [".", ","]
    cells = [cell for row in table for cell in row]
    return max(sum(value_of(cell, point) is not None for cell in cells) for point in possible) / len(cells)


def _decimal(rows: list[str], delimiter: str) -> str:
    """A comma if it certainly precedes the decimals in the first rows and no number there has a point, else a point."""
    if delimiter == ",":
        return "."
    numbers = [cell for row in rows for cell in _cells(row, delimiter) if re.fullmatch(NUMBER[","][1:-1], cell)]
    commas = [cell for cell in numbers if "," in cell]
    points = any("." in cell and value_of(cell, ".") is not None for row in rows for cell in _cells(row, delimiter))
    sure = any(not THOUSANDS.fullmatch(cell) for cell in commas)
    return "," if sure and not points else "."


def header(path: Path, first: list[str], decimal: str) -> list[str] | None:
    """The names of the columns if the first row holds names, None if it holds values."""
    cells = [cell.strip() for cell in first]
    if all(value_of(cell, decimal) is not None for cell in cells):
        return None
    if "" in cells:
        raise DataError(
            f"{path}: column {cells.index('') + 1} has no name, like an index that pandas wrote; "
            "give it one or leave the column out (index=False)."
        )
    return cells


def value_of(cell: str, decimal: str) -> float | None:
    """The number in a cell, NaN if it is missing, or None if it holds something else."""
    if cell.lower() in MISSING:
        return np.nan
    if "_" in cell or (decimal == "," and "." in cell):
        return None
    try:
        value = float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return None
    return None if np.isnan(value) else value


def lines_of(path: Path, options: ReadOptions, encoding: str, errors: str = "strict") -> Iterator[str]:
    """Lines of text; ends of lines are kept."""
    encoding = "utf-8-sig" if encoding == "utf8" else encoding
    with io.TextIOWrapper(open_stream(path, options), encoding, errors, newline="") as text:
        yield from text


def rows_of(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """Non-empty rows with the numbers of their first lines; a row with quoted line breaks takes several lines."""
    held: list[str] = []
    quoted = False
    for number, line in enumerate(lines, 1):
        held.append(line)
        quoted ^= line.count('"') % 2 == 1
        if not quoted:
            row = "".join(held).rstrip("\r\n")
            if row:
                yield number - len(held) + 1, row
            held = []
    if held:
        yield number - len(held) + 1, "".join(held)


def not_text(path: Path, options: ReadOptions, encoding: str) -> DataError:
    """An error that names the first line that is not text in the encoding, and the cure."""
    lines = enumerate(lines_of(path, options, encoding, errors="replace"), 1)
    number = next((number for number, line in lines if "\ufffd" in line), 1)
    return DataError(
        f"{path}, line {number}: not text in {encoding.upper().replace('UTF8', 'UTF-8')}; save it as UTF-8, or name its "
        'encoding, such as encoding="latin-1" (--encoding latin-1).'
    )
