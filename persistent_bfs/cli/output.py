"""Where commands write: reports on stdout and to files, progress on stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from persistent_bfs.cli.program import bad_input

if TYPE_CHECKING:
    from persistent_bfs.io import Progress

Report = dict[str, Any]


def present(report: Report, as_json: bool, view: str) -> None:
    """Print a report: as JSON, or as `persistent_bfs.display` shows it by the function ``view``."""
    if as_json:
        print_json(report)
        return
    from persistent_bfs import display

    display.show(getattr(display, view)(report))


def print_json(report: Report, file: IO[str] | None = None) -> None:
    """Write one JSON object, refusing what JSON cannot say (NaN, infinity)."""
    print(json.dumps(report, indent=2, allow_nan=False), file=file)


@contextmanager
def published(path: Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a file for writing that appears at ``path`` only once it is whole."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with bad_input():
        try:
            with beside.open(mode, encoding=None if "b" in mode else "utf-8") as file:
                yield file
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Give a progress function; what it is told shows on stderr, if a terminal, after 1 s."""
    if not sys.stderr.isatty():
        yield lambda _description, _done, _total: None
        return
    from persistent_bfs.display import LateProgress

    with LateProgress() as progress:
        yield progress
