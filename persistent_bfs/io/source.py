"""What every reader works on: the bytes of one file, decompressed, and errors that name a line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

__all__ = ["GraphFormatError", "Options", "Progress", "Source", "open_source"]

Progress = Callable[[str, int, int], None]
"""Called as ``progress(description, done_bytes, total_bytes)`` while a file is read."""

CHUNK = 1 << 20
COMPRESSIONS: dict[bytes, tuple[str, Callable[[IO[bytes]], Any]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
    b"BZh": ("bzip2", bz2.BZ2File),
}
SUFFIXES = (".gz", ".xz", ".bz2")


class GraphFormatError(ValueError):
    """A file that is not the graph it should be; the message names the file and the line."""


class Options(NamedTuple):
    """What a caller may ask of a reader."""

    directed: bool | None = None
    drop_zeros: bool = False
    relabel: bool = False


class Source(NamedTuple):
    """A file's name and its content, decompressed."""

    path: Path
    data: bytes

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        """Raise :class:`GraphFormatError` for this file."""
        where = f"{self.path}:{line}" if line else f"{self.path}"
        raise GraphFormatError(f"{where}: {message}") from None

    def integers(self, body: bytes, columns: Sequence[int], what: str) -> npt.NDArray[np.int64]:
        """Parse some columns of a table of integers, skipping blank lines and other columns.

        Parameters
        ----------
        body : bytes
            The file's text from line 1 on, with every line that is not data made blank, so that
            line numbers are right.
        columns : sequence of int
            Which columns to read.
        what : str
            What a line should hold, for the error.

        Returns
        -------
        (rows, len(columns)) int64 array

        Raises
        ------
        GraphFormatError
            Naming the first line that does not hold integers there.
        """
        if not body.strip():
            return np.zeros((0, len(columns)), np.int64)
        try:
            return np.loadtxt(
                io.BytesIO(body),
                dtype=np.int64,
                comments=None,
                usecols=columns,
                ndmin=2,
                encoding="latin-1",
            )
        except ValueError as error:
            # NumPy parses fast but counts only rows: look for the line again, slowly.
            for number, line in _data_lines(body):
                tokens = line.split()
                for column in columns:
                    text = tokens[column].decode(errors="replace") if column < len(tokens) else ""
                    if not re.fullmatch("[+-]?[0-9]{1,18}", text):
                        self.fail(f"expected {what}, got {quote(line)}", number)
            self.fail(str(error))


def _data_lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    return ((n, line) for n, line in enumerate(body.split(b"\n"), 1) if line.strip())


def quote(line: bytes) -> str:
    """Return a line as an error shows it: in quotes, and not too long."""
    text = line.strip().decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def count_tokens(body: bytes) -> int:
    """Return how many words, separated by any blanks, a text holds."""
    blank = np.frombuffer(body, np.uint8) <= ord(" ")
    return int(np.count_nonzero(blank[:-1] & ~blank[1:])) + (not blank[:1].all())


def line_of_row(body: bytes, row: int) -> int:
    """Return the number of the line that holds data row ``row``, from 0, of a table."""
    return next(number for k, (number, _) in enumerate(_data_lines(body)) if k == row)


def without_comments(data: bytes, marks: bytes) -> bytes:
    """Make blank every line whose first character, blanks aside, is one of ``marks``."""
    if not any(mark in data for mark in marks):
        return data
    # Line ends stay, so that line numbers do.
    return re.sub(rb"(?m)^[ \t]*[" + marks + rb"][^\n]*", b"", data)


def open_source(path: Path, progress: Progress | None = None) -> Source:
    """Read a file whole, plain or compressed by gzip, xz or bzip2 whatever its name says.

    Raises
    ------
    GraphFormatError
        If the compressed data is damaged or ends too early.
    OSError
        If the file cannot be read.
    """
    total = path.stat().st_size
    with path.open("rb") as raw:
        magic = raw.read(8)
        raw.seek(0)
        kind, stream = next(
            (
                (name, opener(raw))
                for signature, (name, opener) in COMPRESSIONS.items()
                if magic.startswith(signature)
            ),
            ("plain", raw),
        )
        chunks = []
        try:
            while chunk := stream.read(CHUNK):
                chunks.append(chunk)
                if progress:
                    progress(f"reading {path.name}", raw.tell(), total)
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if kind == "plain":
                raise
            raise GraphFormatError(f"{path}: {kind} data damaged or cut short: {error}") from None
    return Source(path, b"".join(chunks).removeprefix(b"\xef\xbb\xbf"))
