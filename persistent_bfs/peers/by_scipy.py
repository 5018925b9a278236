"""SciPy: a queue in compiled code, one core."""

from __future__ import annotations

from typing import Any

import numpy as np

from persistent_bfs.graph import Graph, Int32Array
from persistent_bfs.peers.search import PeerSearch
from persistent_bfs.queue_order import distances_of_order


def prepare(graph: Graph) -> PeerSearch:
    """The graph as a sparse matrix of doubles, which SciPy would make of any other at each call."""
    from scipy.sparse.csgraph import breadth_first_order

    matrix = graph.to_scipy().astype(np.float64)

    def run(source: int) -> Any:
        return breadth_first_order(matrix, source, directed=True, return_predecessors=True)

    def distances(answer: Any) -> Int32Array:
        order, parents = answer
        return distances_of_order(graph.vertices, order, parents)

    return PeerSearch(run, distances)
