"""Other orders of a graph's vertices, and the way back to the caller's.

A search reads rows, distances and bits of the vertices it meets, wherever their ids put them. An
order that gives neighbours ids close to each other lets those reads share cache lines; what the
graph's own order is worth depends on where it came from. `persistent_bfs.config.ORDERS` lists the
orders; here is how each is made, and how answers are brought back to the caller's ids.

All orders are made on the host, from the structure alone, and are the same on every call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

from persistent_bfs.config import ORDERS, choose
from persistent_bfs.graph import INT32_MAX, Graph, Int32Array

__all__ = ["NO_ORDER", "ORDERS", "Relabelling", "Reordering", "order_of", "reorder"]

NO_ORDER = "none"


@dataclass(frozen=True, eq=False, repr=False)
class Relabelling:
    """Two names for each vertex: the caller's id, and the id in a graph of another order.

    Attributes
    ----------
    order : (n,) int32 array
        The caller's id of each vertex of the other graph.
    rank : (n,) int32 array
        The other graph's id of each vertex of the caller's: the inverse of ``order``.
    """

    order: Int32Array
    rank: Int32Array

    @classmethod
    def from_order(cls, order: Int32Array) -> Relabelling:
        """Build both directions from a permutation."""
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size, dtype=order.dtype)
        return cls(order, rank)

    def source(self, vertex: int) -> int:
        """Return the other graph's id of the caller's ``vertex``."""
        return int(self.rank[vertex])

    def distances(self, found: Int32Array) -> Int32Array:
        """Return the (n,) distances found in the other graph in the caller's order."""
        return found[self.rank]

    def predecessors(self, found: Int32Array) -> Int32Array:
        """Return the (n,) predecessors found in the other graph as the caller's ids and order.

        What is no id stays as it is: -1, and whatever a wrong search left for a check to find.
        """
        parents = found[self.rank]
        named = (parents >= 0) & (parents < self.order.size)
        return np.where(named, self.order[np.where(named, parents, 0)], parents)


@dataclass(frozen=True, eq=False, repr=False)
class Reordering:
    """A graph in another order, how its vertices are called in the original, and what it cost.

    Attributes
    ----------
    name : str
        A name from `ORDERS`.
    original, graph : Graph
        The caller's graph, and the same in the other order.
    relabelling : Relabelling
    milliseconds : float
        By the host's clock: finding the order and writing the graph in it.
    """

    name: str
    original: Graph
    graph: Graph
    relabelling: Relabelling
    milliseconds: float

    def __repr__(self) -> str:
        return f"Reordering({self.name!r}, {self.graph!r}, {self.milliseconds:,.1f} ms)"


def reorder(graph: Graph, name: str) -> Reordering | None:
    """Write ``graph`` in the order called ``name``; None for ``none``.

    Parameters
    ----------
    graph : Graph
    name : str
        A name from `ORDERS`.

    Raises
    ------
    ValueError
        If there is no such order, or the graph has too many arcs for it.

    Examples
    --------
    >>> from persistent_bfs import read_graph
    >>> made = reorder(read_graph("star:4"), "bfs")
    >>> made.relabelling.order.tolist()  # from the last leaf
    [3, 0, 1, 2]
    """
    choose(ORDERS, name, "order")
    if name == NO_ORDER:
        return None
    started = time.perf_counter()
    order = order_of(graph, name)
    permuted = graph.permuted(order)
    relabelling = Relabelling.from_order(order)
    return Reordering(name, graph, permuted, relabelling, (time.perf_counter() - started) * 1e3)


def order_of(graph: Graph, name: str) -> Int32Array:
    """Return the order called ``name``: (n,) int32, the ids of ``graph`` in their new order.

    Raises
    ------
    ValueError
        If there is no such order, or the graph has too many arcs for it.
    """
    choose(ORDERS, name, "order")
    return _FINDERS[name](graph)


def _own(graph: Graph) -> Int32Array:
    return np.arange(graph.vertices, dtype=np.int32)


def _reverse_cuthill_mckee(graph: Graph) -> Int32Array:
    """Levels from a vertex of small degree, each parent's children by degree, all turned round.

    E. Cuthill and J. McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969; reversed
    by A. George, 1971. SciPy's, on the undirected structure.
    """
    structure = _structure(graph, "rcm")
    order = csgraph.reverse_cuthill_mckee(structure, symmetric_mode=True)
    return np.ascontiguousarray(order, dtype=np.int32)


def _discovery(graph: Graph) -> Int32Array:
    """The order in which a search of each component from its rim discovers vertices.

    Components come in the order of their first vertices. The rim is the vertex that a search from
    the first one discovers last, so that levels are many and narrow (one round of what A. George
    and J. Liu do to find a pseudo-peripheral vertex, "An implementation of a pseudoperipheral
    node finder", 1979).

    All components are searched at once from one more vertex with an arc to each start: a queue's
    entries of one component are in the order in which a search of that component alone would
    put them, and a stable sort by component takes them apart.
    """
    structure = _structure(graph, "bfs")
    _, component = csgraph.connected_components(structure, directed=False)
    vertices = np.arange(graph.vertices, dtype=np.int32)
    # Of several writes to one place the last stays.
    first = np.empty(component.max() + 1, np.int32)
    first[component[::-1]] = vertices[::-1]
    found = _search_from(structure, np.sort(first))
    rim = np.empty_like(first)
    rim[component[found]] = found
    found = _search_from(structure, rim)
    return found[np.argsort(first[component[found]], kind="stable")]


def _search_from(structure: Any, starts: Int32Array) -> Int32Array:
    """The (n,) vertices in the order in which a search from all ``starts`` discovers them."""
    vertices = structure.shape[0]
    offsets = np.append(structure.indptr, structure.indptr[-1] + starts.size).astype(np.int32)
    indices = np.concatenate([structure.indices, starts]).astype(np.int32, copy=False)
    joined = scipy.sparse.csr_array(
        (np.ones(indices.size), indices, offsets), shape=(vertices + 1, vertices + 1)
    )
    found = csgraph.breadth_first_order(joined, vertices, return_predecessors=False)
    return np.asarray(found[1:], dtype=np.int32)


def _descending_degree(graph: Graph) -> Int32Array:
    """By arcs in and out, most first, equal ones in their own order.

    One of the lightweight orders of V. Balaji and B. Lucia, "When is graph reordering an
    optimization?", 2018.
    """
    degrees = graph.degrees.astype(np.int64)
    if graph.directed:
        degrees += np.bincount(graph.col_indices, minlength=graph.vertices)
    return np.argsort(-degrees, kind="stable").astype(np.int32)


def _structure(graph: Graph, name: str) -> Any:
    """The undirected structure as a SciPy array of its own."""
    undirected = graph.symmetrized() if graph.directed else graph
    if undirected.arcs + undirected.vertices > INT32_MAX:
        raise ValueError(
            f"the {name} order is made with 32-bit offsets: {undirected.arcs:,} arcs are too many"
        )
    return undirected.to_scipy()


_FINDERS: Mapping[str, Callable[[Graph], Int32Array]] = {
    NO_ORDER: _own,
    "rcm": _reverse_cuthill_mckee,
    "bfs": _discovery,
    "degree": _descending_degree,
}
