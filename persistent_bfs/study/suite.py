"""The suite: the real graphs that the study and the benchmarks search, deep ones and wide ones.

Files are looked for in the folder that ``PERSISTENT_BFS_GRAPHS`` names; where one is not there, a
generated graph of the same kind and about the same size stands in for it, under its own name.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from persistent_bfs.graph import Graph
from persistent_bfs.io import read_graph
from persistent_bfs.reference import ReferenceSearch, bfs_reference

GRAPHS_VARIABLE = "PERSISTENT_BFS_GRAPHS"

MAX_DEGREE = "max-degree"


class Case(NamedTuple):
    """A graph to search and where from: a vertex's label, or `MAX_DEGREE`.

    ``stand_in`` is the spec of the graph that is generated where the file ``graph`` is not there;
    empty where ``graph`` is no file. ``small`` ones are small enough to be emulated.
    """

    name: str
    graph: str
    source: str = "0"
    stand_in: str = ""
    deep: bool = True
    small: bool = False

    def __str__(self) -> str:
        return self.name


SUITE = (
    Case("path-100", "path:100", small=True),
    Case("grid-32x32", "grid:32x32", small=True),
    Case("words-kjv", "words-kjv", "faithless", deep=False, small=True),
    Case("kron-10", "kron:10", MAX_DEGREE, deep=False, small=True),
    Case("path-10000", "path:10000"),
    Case("grid-512x512", "grid:512x512"),
    Case("maze", "maze512-1-0.txt.gz", stand_in="maze:362x362"),
    Case("luxembourg", "road-luxembourg-osm.mtx.gz", stand_in="road:339x339"),
    Case("new-york", "road-USA-NY.gr.xz", stand_in="road:514x514"),
    Case("florida", "road-USA-FLA.gr.xz", stand_in="road:1035x1035"),
    Case(
        "slashdot",
        "social-Slashdot0902.txt.gz",
        MAX_DEGREE,
        stand_in="random:82168:504230",
        deep=False,
    ),
    Case("cnr-2000", "web-cnr-2000.txt.xz", MAX_DEGREE, stand_in="kron:18:10", deep=False),
    Case("kron-20", "kron:20", MAX_DEGREE, deep=False),
)

CASES = {case.name: case for case in SUITE}

SMALL = tuple(case for case in SUITE if case.small)


def case_of(name: str) -> Case:
    """The suite's case of a name; else ``name`` is a file or a spec, from its largest degree."""
    return CASES.get(name) or Case(name, name, MAX_DEGREE)


class Prepared(NamedTuple):
    """A case's graph, its source, and what the reference answers."""

    graph: Graph
    source: int
    expected: ReferenceSearch
    stands_in: bool


def graphs_folder() -> Path | None:
    """The folder of graph files, if one is named."""
    named = os.environ.get(GRAPHS_VARIABLE)
    return Path(named) if named else None


# The cases of one graph follow each other, so one graph at a time is enough.
@lru_cache(maxsize=1)
def prepare(case: Case, folder: Path | None = None) -> Prepared:
    """Read or generate a case's graph, and search it by the reference.

    Parameters
    ----------
    folder : Path, optional
        Where files are; by default what `graphs_folder` says.
    """
    folder = folder or graphs_folder()
    file = None
    if case.stand_in and folder is not None and (folder / case.graph).is_file():
        file = folder / case.graph
    graph = read_graph(file or case.stand_in or case.graph)
    source = (
        int(graph.degrees.argmax()) if case.source == MAX_DEGREE else graph.vertex_of(case.source)
    )
    stands_in = bool(case.stand_in) and file is None
    return Prepared(graph, source, bfs_reference(graph, source), stands_in)
