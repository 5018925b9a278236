"""The table of formats, and how a file's own is found: by content first, then by extension."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from persistent_bfs.graph import Graph
from persistent_bfs.io import edge_list, gr, matrix_market, metis, npz
from persistent_bfs.io.source import SUFFIXES, Options, Source

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
            partial(gr.looks_like, problem=b"sp"),
        ),
        Format(
            "pace",
            "PACE (p tw)",
            (),
            gr.read_pace,
            partial(gr.looks_like, problem=b"tw"),
        ),
        Format("metis", "METIS", (".graph", ".metis"), metis.read),
        Format("npz", "SciPy npz", (".npz",), npz.read, npz.looks_like),
        Format(
            "edgelist",
            "edge list",
            (".txt", ".tsv", ".el", ".edges", ".edgelist"),
            edge_list.read,
        ),
    )
}
"""Every format by the name that ``format=`` takes."""

HEAD = 1 << 16


def stem(file_name: str) -> tuple[str, str]:
    """Split a file name into its base and its extension, a compression's set aside."""
    for suffix in SUFFIXES:
        file_name = file_name.removesuffix(suffix)
    for row in FORMATS.values():
        for extension in row.extensions:
            if file_name.lower().endswith(extension):
                return file_name[: -len(extension)], extension
    return file_name, ""


def _proven(source: Source) -> Format | None:
    """Return the format that the content proves, refusing what is no text at all."""
    head = source.data[:HEAD]
    for row in FORMATS.values():
        if row.looks_like is not None and row.looks_like(head):
            return row
    if b"\0" in head:
        source.fail("a binary file of no known format")
    return None


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
        If the content proves another format than the caller names, or is binary.
    ValueError
        If ``format`` is not in :data:`FORMATS`.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    proven = _proven(source)
    chosen = FORMATS[format] if format else proven or _by_extension(source)
    if proven is not None and proven is not chosen:
        source.fail(f"not {chosen.title}: the content is {proven.title}, format={proven.name!r}")
    if proven is None and chosen.looks_like is not None:
        edges = re.match(rb"(?:[#%][^\n]*\n)*\s*\d+\s+\d+\s", source.data[:HEAD])
        hint = "; it looks like an edge list, format='edgelist'" if edges else ""
        source.fail(f"not {chosen.title} by its content{hint}", 1)
    return chosen


def _by_extension(source: Source) -> Format:
    extension = stem(source.path.name)[1]
    return next(
        (row for row in FORMATS.values() if extension in row.extensions), FORMATS["edgelist"]
    )
