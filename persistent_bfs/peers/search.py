"""A graph as another library has it, and distances out of what its search answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import Int32Array


class PeerSearch(NamedTuple):
    """A graph as a library has it.

    Attributes
    ----------
    run : callable
        From a vertex: the library's own search, which is timed; returns what the library does.
    distances : callable
        From that: (n,) int32 distances, -1 where unreachable.
    """

    run: Callable[[int], Any]
    distances: Callable[[Any], Int32Array]


def distances_of_order(
    vertices: int, order: npt.NDArray[np.integer], parents: npt.NDArray[np.integer]
) -> Int32Array:
    """Distances from a breadth-first order and the parents of its vertices.

    Parameters
    ----------
    vertices : int
        Of the graph.
    order : (r,) integer array
        The vertices reached, as a queue hands them out: the source first.
    parents : (n,) integer array
        Who discovered a vertex; of no matter for the source and what was not reached.

    Returns
    -------
    (n,) int32 array
        -1 where unreachable.
    """
    place = np.zeros(vertices, np.int64)
    place[order] = np.arange(order.size)
    # Of a queue the parents' places ascend: a level is whoever has parents in the one before.
    places = place[parents[order[1:]]]
    found = np.full(vertices, -1, np.int32)
    begin, end, level = 0, min(1, order.size), 0
    while begin < end:
        found[order[begin:end]] = level
        begin, end = end, 1 + int(np.searchsorted(places, end))
        level += 1
    return found
