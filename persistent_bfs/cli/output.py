"""Where commands write: reports on stdout and to files, progress on stderr."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from persistent_bfs.cli.program import BROKEN_PIPE, RIGHT, UNWRITABLE, WRONG, say
from persistent_bfs.cli.streams import OutputError, ReaderLeft

if TYPE_CHECKING:
    from persistent_bfs.io import Progress

Report = dict[str, Any]

FORMAT_VERSION = 1
"""Of the JSON of all commands: raised when a field is renamed, removed or changes its meaning."""


def deliver(
    report: Report,
    view: str,
    *,
    as_json: bool,
    files: Iterable[tuple[Path, Callable[[Path], None]]] = (),
    wrong: Iterable[tuple[str, str]] = (),
) -> int:
    """Write all that a command has found, as much of it as can be written.

    Parameters
    ----------
    report, view, as_json
        As `present` takes them; it comes after the files.
    files : iterable of (path, writer)
        Each writer is called with its path.
    wrong : iterable of (kind, message)
        What was wrong, for stderr; after the report.

    Returns
    -------
    int
        The exit code: that anything was wrong goes before that something was not written.
    """
    code = RIGHT
    for path, write in files:
        try:
            write(path)
        except OutputError as error:
            say("error", error)
            code = UNWRITABLE
    try:
        present(report, as_json, view)
        sys.stdout.flush()
    except OutputError as error:
        say("error", error)
        code = UNWRITABLE
    except ReaderLeft:
        code = code or BROKEN_PIPE
    for kind, message in wrong:
        say(kind, message)
        code = WRONG
    return code


def present(report: Report, as_json: bool, view: str) -> None:
    """Print a report: as JSON, or as `persistent_bfs.display` shows it by the function ``view``."""
    if as_json:
        print_json(report, view)
        return
    from persistent_bfs import display

    display.show(getattr(display, view)(report))


def print_json(report: Report, view: str, file: IO[str] | None = None) -> None:
    """Write one JSON object, refusing what JSON cannot say (NaN, infinity).

    It begins with ``format``, which names the kind of report, and ``version``.
    """
    stamp = {"format": f"persistent-bfs {view}", "version": FORMAT_VERSION}
    print(json.dumps({**stamp, **report}, indent=2, allow_nan=False), file=file)


def write_json(report: Report, view: str) -> Callable[[Path], None]:
    """Make a writer for `deliver` that writes what `print_json` prints."""

    def write(path: Path) -> None:
        with published(path) as file:
            print_json(report, view, file)

    return write


@contextmanager
def published(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing that appears at ``path`` only once it is whole.

    Raises
    ------
    OutputError
        It cannot be written; what was at ``path`` is there still.
    """
    target = Path(os.path.realpath(path))  # a link stays one
    beside = target.with_name(f".{secrets.token_hex(4)}.persistent-bfs")
    try:
        try:
            with beside.open(mode.replace("w", "x"), encoding=_encoding(mode)) as file:
                yield file
            beside.replace(target)
        except OSError as error:
            raise OutputError(path, error) from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def _encoding(mode: str) -> str | None:
    return None if "b" in mode else "utf-8"


def try_file(path: Path) -> None:
    """Refuse a file that cannot be written, by writing one beside it that is removed again.

    Raises
    ------
    OutputError
        It cannot; what was at ``path`` is there still, and nothing else is.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{secrets.token_hex(4)}.persistent-bfs")
    try:
        if target.exists():
            if target.is_dir():
                raise OSError("it is a folder")
            if not target.is_file():
                raise OSError("it is no regular file")
            # Opened, not written: rights that protect the file itself are heeded, too.
            os.close(os.open(target, os.O_WRONLY))
        elif not target.parent.exists():
            raise OSError(f"there is no folder {str(path.parent)!r}")
        with beside.open("xb"):
            pass
        beside.unlink()
    except OSError as error:
        raise OutputError(path, error) from error


def try_folder(folder: Path, *names: str) -> None:
    """Refuse a folder that cannot be made, or in which files of these names cannot be written.

    What had to be made to find out is removed again.

    Raises
    ------
    OutputError
        As `try_file`.
    """
    made: list[Path] = []
    try:
        for each in [*reversed(folder.parents), folder]:
            if not each.exists():
                each.mkdir()
                made.append(each)
        if not folder.is_dir():
            raise OSError("a file is in the way")
        for name in names:
            try_file(folder / name)
    except OSError as error:
        raise OutputError(folder, error) from error
    finally:
        for each in reversed(made):
            with suppress(OSError):  # somebody has put something in it
                each.rmdir()


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give a progress function; what it is told shows on stderr, if a terminal, after 1 s."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _description, _done, _total: None
        return
    from persistent_bfs.display import LateProgress

    with LateProgress() as progress:
        yield progress
