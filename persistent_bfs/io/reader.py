"""From a path or a name to a graph."""

from __future__ import annotations

import importlib.resources
import operator
import os
import re
from dataclasses import replace
from pathlib import Path

from persistent_bfs.generate import DEFAULT_SEED, GENERATORS, generate, is_spec
from persistent_bfs.graph import Graph
from persistent_bfs.io.formats import detect, stem
from persistent_bfs.io.opening import STANDARD_INPUT, open_source
from persistent_bfs.io.source import Options, Progress

__all__ = ["BUNDLED", "read_graph"]

BUNDLED: dict[str, str] = {"words-kjv": "words-kjv.tsv.gz"}
"""Graphs that come with the package: name, and file in ``persistent_bfs.data``."""


def read_graph(
    path_or_name: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    symmetrize: bool = False,
    drop_zeros: bool = False,
    format: str | None = None,
    relabel: bool = False,
    seed: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Graph:
    """Read a graph file, a bundled graph or a generator's spec.

    The format is found by content first, extension second; gzip, xz, bzip2 and zstd by content
    alone, as are tar and zip archives, of which the one graph is read. Other extensions, or none,
    are read if the content proves its format: text of integer pairs does, names do not.
    Files are read anew at every call.

    Parameters
    ----------
    path_or_name : str or path
        A file or a pipe; or, as a ``str``, ``"-"`` for standard input, a name in :data:`BUNDLED`
        or a spec such as ``"grid:512x512"``.
    directed : bool, optional
        By default as the format means it: MatrixMarket ``general`` and DIMACS 9 are directed, the
        other symmetries, METIS, PACE and DIMACS colouring undirected, npz by its pattern, edge
        lists undirected. True keeps the arcs of the file, an undirected format's in both
        directions; False reads any file as undirected.
    symmetrize : bool
        Make the result undirected whatever else is said.
    drop_zeros : bool
        In a matrix, ignore stored zeros.
    format : str, optional
        A name in :data:`persistent_bfs.io.FORMATS`, where the file does not tell.
    relabel : bool
        In an edge list of integers, number the ids that occur from 0 in ascending order and keep
        the old ones as labels: for negative ids and ids with large gaps.
    seed : int, optional
        Seed of a generated graph, if not the default one.
    memory_limit : int, optional
        The bytes that reading a file may take, its content included; what would take more, by the
        sizes that it declares or as it expands, is refused before anything is allocated. By default
        what is available; and at most 256 MiB of expanded content, or 100 times the compressed
        size if that is more, and 1 GiB and 128 bytes per byte of content for the graph.
    progress : callable, optional
        Called as ``progress(description, done_bytes, total_bytes)`` while the file is read;
        ``total_bytes`` is 0 if it is not known.

    Returns
    -------
    Graph
        Named by the file without its extensions, the bundled name or the spec.

    Raises
    ------
    GraphFormatError
        If the file is not a graph in its format, naming file and line; if it needs more memory
        than it may.
    ValueError
        If ``format`` or a spec is not known; if a ``format`` is given for a spec, or a ``seed``
        for anything else; if the path is a URL.
    OSError
        If there is no such file or it cannot be read.

    Warns
    -----
    GraphFormatWarning
        If the header of an edge list was passed over.
    """
    if memory_limit is not None:
        memory_limit = _positive("memory_limit", memory_limit)
    if isinstance(path_or_name, str) and is_spec(path_or_name):
        if format is not None:
            raise ValueError(f"a format is for files, and {path_or_name!r} is generated")
        graph = generate(path_or_name, seed=DEFAULT_SEED if seed is None else seed)
    elif seed is not None:
        raise ValueError(f"a seed is for generated graphs, and {str(path_or_name)!r} is none")
    else:
        path = _find(path_or_name)
        source = open_source(path, progress, memory_limit)
        source.reserve(0, f"{len(source.data):,} bytes of content and copies of them")
        reader = detect(source, format)
        if progress:
            progress(f"parsing {path.name}", 0, len(source.data))
        graph = reader.read(source, Options(directed, drop_zeros, relabel, format is not None))
        if progress:
            progress(f"parsing {path.name}", len(source.data), len(source.data))
        graph = replace(graph, name=stem(source.path.name)[0].strip("<>"))
    if graph.directed and (symmetrize or directed is False):
        return graph.symmetrized()
    if directed and not (graph.directed or symmetrize):
        return replace(graph, directed=True)
    return graph


def _find(path_or_name: str | os.PathLike[str]) -> Path:
    if isinstance(path_or_name, str) and path_or_name in BUNDLED:
        # Not zipped: setuptools installs packages as files.
        return Path(str(importlib.resources.files("persistent_bfs.data"))) / BUNDLED[path_or_name]
    if path_or_name == "-":
        return STANDARD_INPUT
    if isinstance(path_or_name, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path_or_name):
        raise ValueError(f"{path_or_name!r} is a URL, and only files are read: download it first")
    path = Path(path_or_name)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a graph file")
    if not path.exists():
        known = ", ".join([*BUNDLED, *(row.usage for row in GENERATORS.values())])
        raise FileNotFoundError(f"no file {str(path)!r}, nor any of: {known}")
    return path


def _positive(argument: str, value: int) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{argument} must be an integer, got {value!r}") from None
    if number < 1:
        raise ValueError(f"{argument} must be at least 1, got {number}")
    return number
