"""cuGraph, by the thin layer over its C API: level by level on the GPU.

The call waits for the GPU; that of CuPy after it makes sure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from persistent_bfs.graph import Graph, Int32Array
from persistent_bfs.peers.search import PeerSearch

NO_LIMIT = -1  # of the depth


def prepare(graph: Graph) -> PeerSearch:
    """The graph on the GPU, by its rows."""
    import cupy
    import pylibcugraph

    handle = pylibcugraph.ResourceHandle()
    properties = pylibcugraph.GraphProperties(is_symmetric=not graph.directed, is_multigraph=True)
    made = pylibcugraph.SGGraph(
        handle,
        properties,
        cupy.asarray(graph.row_offsets),
        cupy.asarray(graph.col_indices),
        weight_array=None,
        store_transposed=False,
        renumber=False,
        do_expensive_check=False,
        input_array_format="CSR",
    )

    def run(source: int) -> Any:
        start = cupy.asarray([source], dtype=cupy.int32)
        # Push or pull where arcs have opposites; no predecessors.
        answer = pylibcugraph.bfs(handle, made, start, not graph.directed, NO_LIMIT, False, False)
        cupy.cuda.Device().synchronize()
        return answer

    def distances(answer: Any) -> Int32Array:
        levels, _parents, vertices = (cupy.asnumpy(part) for part in answer)
        reached = (levels >= 0) & (levels < graph.vertices)  # else the largest number there is
        found = np.full(graph.vertices, -1, np.int32)
        found[vertices[reached]] = levels[reached]
        return found

    return PeerSearch(run, distances)
