"""Small named graphs with distances worked out by hand, and the way to the real graph files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from persistent_bfs.graph import Graph

REPOSITORY = Path(__file__).resolve().parent.parent


class SmallGraph(NamedTuple):
    name: str
    graph: Graph
    source: int
    distances: list[int]

    def __str__(self) -> str:
        return self.name


def undirected(vertices: int, *edges: tuple[int, int]) -> Graph:
    return Graph.from_edges([u for u, _ in edges], [v for _, v in edges], vertices=vertices)


def directed(vertices: int, *arcs: tuple[int, int]) -> Graph:
    return Graph.from_edges(
        [u for u, _ in arcs], [v for _, v in arcs], vertices=vertices, directed=True
    )


def path(vertices: int) -> Graph:
    return undirected(vertices, *((v, v + 1) for v in range(vertices - 1)))


def hub(vertices: int) -> Graph:
    return undirected(vertices, *((0, v) for v in range(1, vertices)))


FRONTIER_MODEL = Graph.from_arrays([0, 2, 4, 6, 8, 9, 9], [1, 2, 2, 3, 3, 4, 4, 5, 5])
"""The 6-vertex graph on which two threads race to discover vertex 3."""

REPEATS = Graph.from_arrays(
    [0, 4, 8, 11, 12], [0, 1, 1, 2, 0, 0, 1, 2, 0, 1, 3, 2], directed=False, name="repeats"
)
"""Edges 0-1 (twice), 0-2, 1-2, 2-3; self-loops at 0 and 1."""

SMALL: list[SmallGraph] = [
    SmallGraph("six", FRONTIER_MODEL, 0, [0, 1, 1, 2, 2, 3]),
    SmallGraph("six-from-the-end", FRONTIER_MODEL, 5, [-1, -1, -1, -1, -1, 0]),
    SmallGraph("one-vertex", undirected(1), 0, [0]),
    SmallGraph("one-vertex-self-loop", directed(1, (0, 0)), 0, [0]),
    SmallGraph("no-edges", undirected(5), 2, [-1, -1, 0, -1, -1]),
    SmallGraph("one-edge", undirected(2, (0, 1)), 1, [1, 0]),
    SmallGraph("path-33", path(33), 0, list(range(33))),
    SmallGraph("path-65-from-the-middle", path(65), 32, [abs(v - 32) for v in range(65)]),
    SmallGraph(
        "cycle-33",
        undirected(33, *((v, (v + 1) % 33) for v in range(33))),
        0,
        [*range(17), *range(16, 0, -1)],
    ),
    SmallGraph("star-70", hub(70), 0, [0] + [1] * 69),
    SmallGraph("star-70-from-a-leaf", hub(70), 69, [1] + [2] * 68 + [0]),
    SmallGraph(
        "complete-34",
        undirected(34, *((u, v) for u in range(34) for v in range(u))),
        3,
        [1] * 3 + [0] + [1] * 30,
    ),
    SmallGraph(
        "two-components",
        undirected(7, (0, 1), (1, 2), (3, 4), (4, 5), (5, 3), (5, 6)),
        3,
        [-1, -1, -1, 0, 1, 1, 2],
    ),
    SmallGraph("isolated-source", undirected(4, (0, 1), (1, 2)), 3, [-1, -1, -1, 0]),
    SmallGraph("repeats-and-self-loops", REPEATS, 0, [0, 1, 1, 2]),
    SmallGraph(
        "directed-diamond", directed(5, (0, 1), (0, 2), (1, 3), (2, 3), (3, 0)), 0, [0, 1, 1, 2, -1]
    ),
    SmallGraph("directed-two-cycle-against", directed(3, (0, 1), (1, 0), (2, 0)), 1, [1, 0, -1]),
    SmallGraph(
        "binary-tree-63",
        undirected(63, *(((v - 1) // 2, v) for v in range(1, 63))),
        0,
        [int(np.log2(v + 1)) for v in range(63)],
    ),
]


def graph_folder() -> Path:
    """Return the folder of the real graphs: PERSISTENT_BFS_GRAPHS, or ../shared/graphs."""
    default = REPOSITORY.parent / "shared" / "graphs"
    return Path(os.environ.get("PERSISTENT_BFS_GRAPHS", default))


def graph_file(name: str) -> Path:
    """Return the path of a real graph file, skipping the test where it is absent."""
    file = graph_folder() / name
    if not file.is_file():
        pytest.skip(f"no {name} in {graph_folder()}; PERSISTENT_BFS_GRAPHS names another folder")
    return file


@st.composite
def searches(draw: st.DrawFn) -> tuple[Graph, int]:
    vertices = draw(st.integers(1, 70))
    vertex = st.integers(0, vertices - 1)
    arcs = draw(st.lists(st.tuples(vertex, vertex), max_size=200))
    graph = directed(vertices, *arcs)
    return (graph if draw(st.booleans()) else graph.symmetrized()), draw(vertex)
