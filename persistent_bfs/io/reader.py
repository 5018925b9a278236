"""From a path or a name to a graph."""

from __future__ import annotations

import importlib.resources
import os
from dataclasses import replace
from pathlib import Path

from persistent_bfs.generate import DEFAULT_SEED, GENERATORS, generate, is_spec
from persistent_bfs.graph import Graph
from persistent_bfs.io.formats import detect, stem
from persistent_bfs.io.source import Options, Progress, open_source

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
    progress: Progress | None = None,
) -> Graph:
    """Read a graph file, a bundled graph or a generator's spec.

    The format is found by content first, extension second; gzip, xz and bzip2 by content alone.
    Files are read anew at every call.

    Parameters
    ----------
    path_or_name : str or path
        A file; or, as a ``str``, a name in :data:`BUNDLED` or a spec such as ``"grid:512x512"``.
    directed : bool, optional
        By default as the format means it: MatrixMarket ``general`` and DIMACS 9 are directed, its
        other symmetries, METIS and PACE undirected, npz by its pattern, edge lists undirected.
        True keeps the arcs of the file, an undirected format's in both directions; False reads
        any file as undirected.
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
    progress : callable, optional
        Called as ``progress(description, done_bytes, total_bytes)`` while the file is read.

    Returns
    -------
    Graph
        Named by the file without its extensions, the bundled name or the spec.

    Raises
    ------
    GraphFormatError
        If the file is not a graph in its format, naming file and line.
    ValueError
        If ``format`` or a spec is not known; if a ``format`` is given for a spec, or a ``seed``
        for anything else.
    OSError
        If there is no such file or it cannot be read.
    """
    if isinstance(path_or_name, str) and is_spec(path_or_name):
        if format is not None:
            raise ValueError(f"a format is for files, and {path_or_name!r} is generated")
        graph = generate(path_or_name, seed=DEFAULT_SEED if seed is None else seed)
    elif seed is not None:
        raise ValueError(f"a seed is for generated graphs, and {str(path_or_name)!r} is none")
    else:
        path = _find(path_or_name)
        source = open_source(path, progress)
        reader = detect(source, format)
        if progress:
            progress(f"parsing {path.name}", 0, len(source.data))
        graph = reader.read(source, Options(directed, drop_zeros, relabel))
        if progress:
            progress(f"parsing {path.name}", len(source.data), len(source.data))
        graph = replace(graph, name=stem(path.name)[0])
    if graph.directed and (symmetrize or directed is False):
        return graph.symmetrized()
    if directed and not (graph.directed or symmetrize):
        return replace(graph, directed=True)
    return graph


def _find(path_or_name: str | os.PathLike[str]) -> Path:
    if isinstance(path_or_name, str) and path_or_name in BUNDLED:
        # Not zipped: setuptools installs packages as files.
        return Path(str(importlib.resources.files("persistent_bfs.data"))) / BUNDLED[path_or_name]
    path = Path(path_or_name)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a graph file")
    if not path.exists():
        known = ", ".join([*BUNDLED, *(row.usage for row in GENERATORS.values())])
        raise FileNotFoundError(f"no file {str(path)!r}, nor any of: {known}")
    return path
