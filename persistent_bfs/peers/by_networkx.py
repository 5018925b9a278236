"""NetworkX: dictionaries, in Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from persistent_bfs.graph import Graph, Int32Array
from persistent_bfs.peers.search import PeerSearch


def prepare(graph: Graph) -> PeerSearch:
    """The graph as NetworkX keeps one, with every vertex in it."""
    import networkx

    made = networkx.DiGraph() if graph.directed else networkx.Graph()
    made.add_nodes_from(range(graph.vertices))
    made.add_edges_from(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))

    def run(source: int) -> Any:
        return dict(networkx.single_source_shortest_path_length(made, source))

    def distances(answer: Any) -> Int32Array:
        found = np.full(graph.vertices, -1, np.int32)
        found[list(answer.keys())] = list(answer.values())
        return found

    return PeerSearch(run, distances)
