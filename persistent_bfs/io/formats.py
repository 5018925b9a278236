"""The table of formats, and how a file's own is found: by content first, then by extension."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from persistent_bfs.graph import Graph
from persistent_bfs.io import edge_list, gr, matrix_market, metis, npz
from persistent_bfs.io.foreign import foreign
from persistent_bfs.io.opening import SUFFIXES
from persistent_bfs.io.source import Options, Source

__all__ = ["FORMATS", "Format", "detect", "stem"]


class Format(NamedTuple):
    """One row of :data:`FORMATS`."""

    name: str
    title: str
    extensions: tuple[str, ...]
    read: Callable[[Source, Options], Graph]
    looks_like: Callable[[bytes], bool] | None = None
    """Whether a file's first bytes prove the format; None where nothing can."""


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "matrixmarket",
            "MatrixMarket",
            (".mtx", ".mm"),
            matrix_market.read,
            matrix_market.looks_like,
        ),
        Format(
            "dimacs",
            "DIMACS 9 (p sp)",
            (".gr",),
            gr.read_dimacs,
            partial(gr.looks_like, problems=(b"sp",)),
        ),
        Format(
            "colouring",
            "DIMACS colouring (p edge)",
            (".col", ".clq"),
            gr.read_colouring,
            partial(gr.looks_like, problems=(b"edge", b"col")),
        ),
        Format(
            "pace",
            "PACE (p tw)",
            (),
            gr.read_pace,
            partial(gr.looks_like, problems=(b"tw",)),
        ),
        Format("metis", "METIS", (".graph", ".metis"), metis.read),
        Format("npz", "SciPy npz", (".npz",), npz.read, npz.looks_like),
        Format(
            "edgelist",
            "edge list",
            (".txt", ".tsv", ".csv", ".el", ".edges", ".edgelist"),
            edge_list.read,
        ),
    )
}
"""Every format by the name that ``format=`` takes."""

HEAD = 1 << 16


def stem(file_name: str) -> tuple[str, str]:
    """Split a file name into its base and its extension, a compression's set aside."""
    for suffix in SUFFIXES:
        if file_name.lower().endswith(suffix):
            file_name = file_name[: -len(suffix)]
    for row in FORMATS.values():
        for extension in row.extensions:
            if file_name.lower().endswith(extension):
                return file_name[: -len(extension)], extension
    return file_name, ""


def detect(source: Source, format: str | None = None) -> Format:
    """Return the format of a file.

    Parameters
    ----------
    source : Source
        The file.
    format : str, optional
        What the caller says it is.

    Raises
    ------
    GraphFormatError
        If the content proves another format than the caller names, or one that is not read here;
        if it is binary; if neither content, extension nor caller tell.
    ValueError
        If ``format`` is not in :data:`FORMATS`.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    head = source.data[:HEAD]
    proven = next(
        (row for row in FORMATS.values() if row.looks_like and row.looks_like(head)), None
    )
    if proven is None and (format is None or b"\0" in head) and (known := foreign(head)):
        source.fail(known)
    if proven is None and b"\0" in head:
        source.fail("a binary file of no known format")
    chosen = FORMATS[format] if format else proven or _by_extension(source)
    if proven is not None and proven is not chosen:
        source.fail(f"not {chosen.title}: the content is {proven.title}, format={proven.name!r}")
    if proven is None and chosen.looks_like is not None:
        edges = re.match(rb"(?:[#%][^\n]*\n)*\s*\d+\s+\d+\s", head)
        hint = "; it looks like an edge list, format='edgelist'" if edges else ""
        source.fail(f"not {chosen.title} by its content{hint}", 1)
    return chosen


def _by_extension(source: Source) -> Format:
    extension = stem(source.path.name)[1]
    named = next((row for row in FORMATS.values() if extension in row.extensions), None)
    if named is not None:
        return named
    if not edge_list.is_plain(source.data[:HEAD]):
        if not source.data.strip():
            source.fail("an empty file")
        extensions = ", ".join(e for row in FORMATS.values() for e in row.extensions)
        source.fail(
            "of no known format: neither its content tells nor its name, which should end in "
            f"{extensions}; or say format= (--format), one of {', '.join(FORMATS)}"
        )
    return FORMATS["edgelist"]
