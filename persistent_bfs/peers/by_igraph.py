"""igraph: a queue in C, one core."""

from __future__ import annotations

from typing import Any

import numpy as np

from persistent_bfs.graph import Graph, Int32Array
from persistent_bfs.peers.search import PeerSearch


def prepare(graph: Graph) -> PeerSearch:
    """The graph as igraph keeps one; of an undirected one, each edge once."""
    import igraph

    sources, targets = graph.arc_sources(), graph.col_indices
    if not graph.directed:
        once = sources <= targets
        sources, targets = sources[once], targets[once]
    edges = np.stack([sources, targets], axis=1)
    made = igraph.Graph(n=graph.vertices, edges=edges, directed=graph.directed)

    def run(source: int) -> Any:
        return made.bfs(source, mode="out")

    def distances(answer: Any) -> Int32Array:
        order, begins, _parents = answer
        found = np.full(graph.vertices, -1, np.int32)
        found[order] = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        return found

    return PeerSearch(run, distances)
