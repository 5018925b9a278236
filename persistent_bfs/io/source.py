"""What every reader works on: the bytes of one file, unpacked, and errors that name a line."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import plan_offsets
from persistent_bfs.io.memory import available_memory

__all__ = ["GraphFormatError", "GraphFormatWarning", "Options", "Progress", "Source"]

Progress = Callable[[str, int, int], None]
"""Called as ``progress(description, done_bytes, total_bytes)`` while a file is read.

``total_bytes`` is 0 where it is not known, as for a pipe.
"""

SPARE = 1 << 30
"""Bytes that reading any file may take without being asked: 1 GiB."""
SPARE_PER_BYTE = 128
"""Bytes per byte of content, beyond that: twice what the shortest lines need."""


COPIES = 6
"""How often readers hold the content at most: itself, without comments, with marks replaced..."""


GRAPH_BYTES = (32, 96)
"""Upper bounds on what building a graph from its edges takes, per vertex and per edge."""


NO_BLANKS = bytes.maketrans(b"\x1c\x1d\x1e\x1f\x85\xa0", b"??????")
"""Makes bytes that are blanks to NumPy, and to nothing else here, no blanks."""


class GraphFormatError(ValueError):
    """A file that is not the graph it should be; the message names the file and the line."""


class GraphFormatWarning(UserWarning):
    """Something in a file was passed over; the message names the file and the line."""


class Options(NamedTuple):
    """What a caller may ask of a reader."""

    directed: bool | None = None
    drop_zeros: bool = False
    relabel: bool = False
    said: bool = False
    """Whether the caller named the format: then no guess is made that it is another."""


class Source(NamedTuple):
    """A file's name and its content, unpacked."""

    path: Path
    data: bytes
    memory_limit: int | None = None
    """The bytes that reading may take, if the caller says."""

    def fail(self, message: str, line: int | None = None) -> NoReturn:
        """Raise :class:`GraphFormatError` for this file."""
        raise GraphFormatError(f"{self._where(line)}: {one_line(message)}") from None

    def note(self, message: str, line: int | None = None) -> None:
        """Warn of something in this file."""
        warnings.warn(f"{self._where(line)}: {message}", GraphFormatWarning, stacklevel=2)

    def _where(self, line: int | None) -> str:
        return f"{self.path}:{line}" if line else f"{self.path}"

    def reserve(self, needed: int, what: str, line: int | None = None) -> None:
        """Refuse, before anything is allocated, what takes more memory than it may.

        Parameters
        ----------
        needed : int
            An upper bound on the bytes that will be allocated beside copies of the content.
        what : str
            What needs them, in the plural.
        line : int, optional
            Where the file says so.

        Raises
        ------
        GraphFormatError
            If that and the copies are more than ``memory_limit``; without one, more than is
            available, or out of proportion to the content.
        """
        needed += COPIES * len(self.data)
        if self.memory_limit is not None:
            allowed, of = self.memory_limit, "that memory_limit allows"
        else:
            allowed, of = SPARE + SPARE_PER_BYTE * len(self.data), "in proportion to its size"
            free = available_memory() if needed > SPARE // 4 else allowed
            if free < allowed:
                allowed, of = free, "available"
        if needed > allowed:
            self.fail(
                f"{what} need {needed:,} bytes of memory, more than the {allowed:,} {of}; "
                "memory_limit=BYTES (--memory-limit) sets another limit",
                line,
            )

    def reserve_graph(
        self, vertices: int, edges: int, line: int | None = None, *, also: int = 0
    ) -> None:
        """Refuse a graph of this size if it cannot be, or takes too much memory to build.

        ``also`` is what else is allocated meanwhile, in bytes.
        """
        try:
            plan_offsets(vertices, edges)
        except ValueError as error:
            self.fail(str(error), line)
        what = f"{vertices:,} {'vertex' if vertices == 1 else 'vertices'} and {edges:,} edges"
        self.reserve(GRAPH_BYTES[0] * vertices + GRAPH_BYTES[1] * edges + also, what, line)

    def integers(
        self, body: bytes, columns: Sequence[int], what: str, delimiter: str | None = None
    ) -> npt.NDArray[np.int64]:
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
        delimiter : str, optional
            What separates columns; by default any blanks.

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
        rows = body.count(b"\n") + 1
        self.reserve(table_bytes(rows, len(columns), longest_line(body)), f"{rows:,} lines")
        odd = not body.isascii() or any(blank in body for blank in b"\x1c\x1d\x1e\x1f")
        text = body.translate(NO_BLANKS) if odd else body
        try:
            with warnings.catch_warnings():
                # NumPy 1 reads 1.5 as the integer 1 and only warns.
                warnings.simplefilter("error", DeprecationWarning)
                return np.loadtxt(
                    io.BytesIO(text),
                    dtype=np.int64,
                    comments=None,
                    delimiter=delimiter,
                    usecols=columns,
                    ndmin=2,
                    encoding="latin-1",
                )
        except (ValueError, DeprecationWarning) as error:
            # NumPy parses fast but counts only rows: look for the line again, slowly.
            for number, line in data_lines(body):
                fields = line.split(delimiter.encode() if delimiter else None)
                for column in columns:
                    text = fields[column].strip() if column < len(fields) else b""
                    if not re.fullmatch(rb"[+-]?[0-9]{1,18}", text):
                        self.fail(f"expected {what}, got {quote(line)}", number)
            self.fail(str(error))


def table_bytes(rows: int, columns: int, longest: int) -> int:
    """Return an upper bound on the memory that parsing a table of integers takes."""
    # NumPy grows the array by a quarter at a time, and keeps a line's fields as UCS-4.
    return 20 * rows * columns + 16 * longest + (1 << 18)


def longest_line(body: bytes) -> int:
    """Return an upper bound on the length of a text's longest line: its length, or 4096."""
    page, longest, start = 1 << 12, 1 << 12, 0
    # A line longer than a page runs over the end of the page that begins with a line.
    while start + page < len(body):
        end = body.find(b"\n", start + page)
        end = len(body) if end < 0 else end
        longest = max(longest, end - max(body.rfind(b"\n", start, start + page) + 1, start))
        start = end + 1
    return longest


def data_lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line that is not blank."""
    return ((n, line) for n, line in enumerate(io.BytesIO(body), 1) if line.strip())


def one_line(message: str) -> str:
    """Return a message on one line, what it quotes from a file cut where it is very long."""
    return re.sub(r"\S{100,}", lambda word: word[0][:57] + "...", " ".join(message.split()))


def quote(line: bytes) -> str:
    """Return a line as an error shows it: in quotes, and not too long."""
    text = line[:400].strip().decode(errors="replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")


def count_tokens(body: bytes) -> int:
    """Return how many words, separated by any blanks, a text holds."""
    blank = np.frombuffer(body, np.uint8) <= ord(" ")
    return int(np.count_nonzero(blank[:-1] & ~blank[1:])) + (not blank[:1].all())


def tokens_per_line(body: bytes) -> npt.NDArray[np.int64]:
    """Return how many words, separated by any blanks, each line of a text holds."""
    characters = np.frombuffer(b"\n" + body, np.uint8)
    blank = characters <= ord(" ")
    begins = np.flatnonzero(blank[:-1] & ~blank[1:])
    ends = np.flatnonzero(characters[1:] == ord("\n"))
    return np.diff(begins.searchsorted(ends), prepend=0, append=begins.size)


def line_of_row(body: bytes, row: int) -> int:
    """Return the number of the line that holds data row ``row``, from 0, of a table."""
    return next(number for k, (number, _) in enumerate(data_lines(body)) if k == row)


def without_comments(data: bytes, marks: bytes) -> bytes:
    """Make blank every line whose first character, blanks aside, is one of ``marks``."""
    if not any(mark in data for mark in marks):
        return data
    # Line ends stay, so that line numbers do.
    return re.sub(rb"(?m)^[ \t]*[" + marks + rb"][^\n]*", b"", data)
