"""Breadth-first search by SciPy's compiled queue, and distances out of the order of a queue.

A queue hands out vertices by ascending distance, and whoever discovered earlier vertices is handed
out earlier itself: so the places of the parents ascend along the order, and a level ends where the
first parent of the next one is met. Where level k + 1 begins is therefore a function of where
level k does, the same for every k, and a doubling of that function finds all beginnings in as many
steps as the depth has binary digits: no loop goes level by level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import INT32_MAX, Graph, Int32Array

__all__ = [
    "distances_of_levels",
    "distances_of_order",
    "is_searchable",
    "level_begins",
    "search_order",
]

Ids = npt.NDArray[np.integer[Any]]


def is_searchable(graph: Graph) -> bool:
    """Whether `search_order` takes ``graph``: SciPy's searches number arcs in 32 bits."""
    return graph.arcs <= INT32_MAX


def search_order(graph: Graph, source: int) -> tuple[Int32Array, Int32Array]:
    """Search with SciPy's compiled queue, one core, about 10 ns per vertex and arc.

    Neither a time limit nor an interrupt ends it before it is through.

    Parameters
    ----------
    graph : Graph
        One that `is_searchable`. Its arrays are used as they are; 64-bit offsets are copied.
    source : int
        A vertex of it.

    Returns
    -------
    order : (r,) int32 array
        The vertices reached, as the queue hands them out.
    predecessors : (n,) int32 array
        Who discovered each, -1 for the source and where unreachable.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    # SciPy wants a weight of 8 bytes per arc and looks at none: here it is the same one for all.
    ones = np.broadcast_to(np.float64(1), graph.arcs)
    offsets = graph.row_offsets.astype(np.int32, copy=False)
    matrix: Any = csr_array((ones, graph.col_indices, offsets), shape=(graph.vertices,) * 2)
    order, predecessors = breadth_first_order(matrix, source, return_predecessors=True)
    np.maximum(predecessors, -1, out=predecessors)  # SciPy has -9999 for none
    return order, predecessors


def level_begins(order: Ids, parents: Ids) -> npt.NDArray[np.int64]:
    """Where each level begins in a breadth-first order, and behind the last its end.

    Parameters
    ----------
    order : (r,) integer array
        Distinct vertices, as a queue hands them out: the source first.
    parents : (n,) integer array
        Who discovered a vertex; of no matter for the source and what is not in ``order``.

    Returns
    -------
    (levels + 1,) int64 array
        Ascending, from 0 to r.

    Examples
    --------
    >>> level_begins(np.array([3, 1, 4, 0]), np.array([1, 3, -1, -1, 3])).tolist()
    [0, 1, 3, 4]
    """
    reached = order.size
    if reached <= 1:
        return np.arange(reached + 1)
    place = np.zeros(parents.size, np.int32)
    place[order] = np.arange(reached, dtype=np.int32)
    children = np.bincount(place[parents[order[1:]]], minlength=reached)
    # A level that begins at b is followed by one that begins at after[b]: behind the source and
    # all children of those before b.
    after = np.ones(reached + 1, np.int32)
    after[1:] += children.cumsum(dtype=np.int32)
    begins = np.ones(1, np.int32)
    while begins[-1] < reached and begins.size < reached:
        begins = np.concatenate([begins, after[begins]])
        if begins[-1] < reached:
            after = after[after]  # as many levels further as there are beginnings now
    levels = int(begins.searchsorted(reached)) + 1
    return np.concatenate([[0], begins[:levels]]).astype(np.int64)


def distances_of_order(vertices: int, order: Ids, parents: Ids) -> Int32Array:
    """Distances from a breadth-first order and the parents of its vertices.

    Parameters
    ----------
    vertices : int
        Of the graph.
    order, parents
        As `level_begins` takes them.

    Returns
    -------
    (n,) int32 array
        -1 where unreachable.
    """
    return distances_of_levels(vertices, order, level_begins(order, parents))


def distances_of_levels(vertices: int, order: Ids, begins: npt.NDArray[np.int64]) -> Int32Array:
    """Distances where each level begins at ``begins`` in ``order``; the last is where it ends."""
    found = np.full(vertices, -1, np.int32)
    levels = np.arange(begins.size - 1, dtype=np.int32)
    found[order[: begins[-1]]] = np.repeat(levels, np.diff(begins))
    return found
