"""Standard output that says when it cannot be written, and standard error that never fails.

A full disk, a closed descriptor and a reader that left are told from every other failure of the
operating system at the one place where bytes leave the process, whoever printed them.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputError(click.ClickException):
    """Something cannot be written; the message names it and says why."""

    exit_code = 4

    def __init__(self, what: object, error: OSError) -> None:
        super().__init__(f"cannot write {what}: {error.strerror or error}")


class ReaderLeft(Exception):
    """Whoever read standard output has closed it."""


class _StandardOutput(io.FileIO):
    """The raw end of standard output.

    Its errors are no `OSError`, of which Click and Rich take some for their own. After one it takes
    whatever comes and drops it, for the interpreter flushes what is left in buffers when it ends.
    """

    failed = False

    def write(self, data: ReadableBuffer, /) -> int:
        if self.failed:
            return memoryview(data).nbytes
        try:
            return super().write(data)
        except BrokenPipeError as error:
            self.failed = True
            raise ReaderLeft from error
        except OSError as error:
            self.failed = True
            raise OutputError("standard output", error) from error


class _StandardError(io.FileIO):
    """The raw end of standard error: what cannot be told is dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return memoryview(data).nbytes


@contextmanager
def standard_error() -> Iterator[None]:
    """Let nothing fail inside the ``with`` block for want of a standard error to write to.

    A stream that somebody else has put in its place is left alone; so it is by `standard_output`.
    """
    _fill_descriptors()
    before = sys.stderr
    if _is_own(before, sys.__stderr__):
        sys.stderr = _over(_StandardError(2, "w", closefd=False), before)
    try:
        yield
    finally:
        sys.stderr = before


@contextmanager
def standard_output() -> Iterator[None]:
    """Let what is printed inside the ``with`` block be written, or an error be raised.

    Raises
    ------
    OutputError
        Standard output cannot be written; before the block begins, where that can be known.
    ReaderLeft
        It is a pipe that nobody reads.
    """
    before = sys.stdout
    if before is None:  # as the interpreter found it
        raise OutputError("standard output", OSError("it is closed"))
    try:
        if _is_own(before, sys.__stdout__):
            raw = _StandardOutput(1, "w", closefd=False)
            sys.stdout = _over(raw, before)
            # An empty write has no effect, but the errors of another.
            if stat.S_IFMT(os.fstat(1).st_mode) in (stat.S_IFREG, stat.S_IFCHR):
                raw.write(b"")
        yield
        sys.stdout.flush()
    except BaseException:
        with suppress(OutputError, ReaderLeft):
            sys.stdout.flush()
        raise
    finally:
        sys.stdout = before


def _is_own(stream: object, original: object) -> bool:
    """Whether a stream is the interpreter's, and no console of Windows, which has its own ways."""
    if stream is not original:
        return False
    return os.name != "nt" or not (isinstance(stream, io.TextIOBase) and stream.isatty())


def _over(raw: io.FileIO, like: object) -> io.TextIOWrapper:
    """A text stream over ``raw`` that buffers and encodes as another one does."""
    encoding, line_buffering, write_through = "utf-8", True, False
    if isinstance(like, io.TextIOWrapper):
        encoding = like.encoding
        line_buffering, write_through = like.line_buffering, like.write_through
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        # Not every terminal's encoding has every label's letters.
        errors="replace" if raw.fileno() == 1 else "backslashreplace",
        line_buffering=line_buffering,
        write_through=write_through,
    )


def _fill_descriptors() -> None:
    """Put the null device where a standard descriptor is closed, lest another file get its number.

    What a compiler prints would end up in that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
