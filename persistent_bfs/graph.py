"""A graph as compressed sparse rows (CSR), validated once and never changed.

``col_indices[row_offsets[v] : row_offsets[v + 1]]`` are the neighbours of vertex ``v``. Ids are
int32; offsets are int32 until the stored arcs outgrow it. Structure only: no weights are kept.

An *arc* is one stored entry; an undirected *edge* is stored as two arcs. Undirected graphs built
here from edges are simple: repeated pairs are merged and self-loops dropped, which no distance can
notice. Directed graphs and graphs made by :meth:`Graph.from_arrays` keep every arc they are given.
"""

from __future__ import annotations

import difflib
import operator
import os
import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from persistent_bfs.arguments import check_flag, check_integer, check_name, shown
from persistent_bfs.rows import by_rows

__all__ = ["MAX_VERTICES", "Graph", "check_id_gap", "plan_offsets"]

Int32Array = npt.NDArray[np.int32]
IntArray = npt.NDArray[np.integer[Any]]

INT32_MAX = 2**31 - 1
MAX_VERTICES = INT32_MAX
"""The most vertices that int32 ids can name."""

ARCS_AT_ONCE = 1 << 16
"""Arcs written in another order by one thread at a time."""


def plan_offsets(vertices: int, arcs: int) -> int:
    """Return the width of ``row_offsets`` that a graph of this size needs, without its data.

    Parameters
    ----------
    vertices, arcs : int
        The number of vertices and of stored arcs.

    Returns
    -------
    int
        32, or 64 when ``arcs`` exceeds 2**31 - 1.

    Raises
    ------
    ValueError
        If there is no vertex, more than int32 ids can name, or a negative number of arcs.
    """
    if vertices < 1:
        raise ValueError(f"a graph needs at least one vertex, got {vertices}")
    if vertices > MAX_VERTICES:
        raise ValueError(f"{vertices:,} vertices do not fit int32 ids (at most {MAX_VERTICES:,})")
    if arcs < 0:
        raise ValueError(f"the number of arcs cannot be negative, got {arcs}")
    return 32 if arcs <= INT32_MAX else 64


def check_id_gap(largest_id: int, edges: int) -> None:
    """Refuse ids so sparse that their rows would be almost all empty.

    A lone edge ``404647567 38719238`` must not silently allocate 400 million rows. Up to a million
    vertices are always accepted; beyond, at most 16 per edge endpoint.

    Raises
    ------
    ValueError
        If ``largest_id`` is out of proportion to ``edges``.
    """
    if largest_id >= max(2**20, 32 * edges):
        raise ValueError(
            f"largest id {largest_id} for only {edges:,} edges: the ids have large gaps, "
            "and every id up to the largest would become a vertex"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """A graph in CSR form.

    Build one with a ``from_*`` method, :func:`persistent_bfs.io.read_graph` or
    :func:`persistent_bfs.generate.generate`; the constructor takes arrays already in final form.

    Parameters
    ----------
    row_offsets : (n + 1,) int32 or int64 array
        Where each row starts in ``col_indices``.
    col_indices : (m,) int32 array
        Target of each arc.
    directed : bool
        False only if every arc's opposite is stored too.
    labels : (n,) str array, optional
        Distinct vertex names.
    name : str
        What reports call the graph.
    nodes : sequence of n hashable objects, optional
        What the vertices were before they were numbered, each distinct: see :meth:`vertex_of`.

    Raises
    ------
    ValueError
        If the arrays are not a CSR graph with at least one vertex.
    TypeError
        If one is no array, or of another dtype; if another argument is of another type.

    Notes
    -----
    Arrays of the right dtype and layout are shared, not copied, and exposed read-only; whoever
    owns them must not change them while the graph is in use.
    """

    row_offsets: IntArray
    col_indices: Int32Array
    directed: bool
    labels: npt.NDArray[np.str_] | None = None
    name: str = ""
    nodes: Sequence[Hashable] | None = None

    def __post_init__(self) -> None:
        offsets, indices = self.row_offsets, self.col_indices
        for field, given in (("row_offsets", offsets), ("col_indices", indices)):
            if not isinstance(given, np.ndarray):
                raise TypeError(
                    f"{field} must be a NumPy array, got {type(given).__name__}; "
                    "Graph.from_arrays converts"
                )
            _refuse_mask(field, given)
        object.__setattr__(self, "directed", check_flag("directed", self.directed))
        check_name("name", self.name)
        if offsets.dtype not in (np.int32, np.int64) or indices.dtype != np.int32:
            raise TypeError(
                "row_offsets must be int32 or int64 and col_indices int32, "
                f"got {offsets.dtype} and {indices.dtype}; Graph.from_arrays converts"
            )
        _check_csr(offsets, indices)
        labels = self.labels
        if labels is not None:
            labels = _names(labels)
            if labels.shape != (self.vertices,):
                raise ValueError(
                    f"{self.vertices} vertices need as many labels, got {labels.shape}"
                )
            names, counts = np.unique(labels, return_counts=True)
            if names.size < labels.size:
                raise ValueError(f"label {str(names[counts > 1][0])!r} names more than one vertex")
        for field, array in (
            ("row_offsets", offsets),
            ("col_indices", indices),
            ("labels", labels),
        ):
            if array is not None:
                view = np.ascontiguousarray(array).view(np.ndarray)
                view.flags.writeable = False
                object.__setattr__(self, field, view)
        if self.nodes is not None:
            try:
                nodes = tuple(self.nodes)
                distinct = len(set(nodes))
            except TypeError as error:
                raise TypeError(f"nodes must be a sequence of hashable objects: {error}") from None
            if len(nodes) != self.vertices:
                raise ValueError(f"{self.vertices} vertices need as many nodes, got {len(nodes)}")
            if distinct < len(nodes):
                raise ValueError("a node stands for more than one vertex")
            object.__setattr__(self, "nodes", nodes)

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come back from a pickle writeable: the constructor sees to that, and checks them.
        fields = (self.row_offsets, self.col_indices, self.directed)
        return type(self), (*fields, self.labels, self.name, self.nodes)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        name = f"{self.name!r}, " if self.name else ""
        return f"Graph({name}{self.vertices:,} vertices, {self.edges:,} edges, {kind})"

    @property
    def vertices(self) -> int:
        """Number of vertices, n."""
        return int(self.row_offsets.shape[0] - 1)

    @property
    def arcs(self) -> int:
        """Number of stored arcs, m."""
        return int(self.col_indices.shape[0])

    @cached_property
    def edges(self) -> int:
        """Number of edges: stored arcs if directed, else pairs (a self-loop is one of its own)."""
        if self.directed:
            return self.arcs
        loops = int(np.count_nonzero(self.col_indices == self.arc_sources()))
        return (self.arcs + loops) // 2

    @cached_property
    def degrees(self) -> IntArray:
        """(n,) out-degrees, of the dtype of ``row_offsets``, read-only."""
        degrees = np.diff(self.row_offsets)
        degrees.flags.writeable = False
        return degrees

    @cached_property
    def max_degree(self) -> int:
        """The largest out-degree."""
        return int(self.degrees.max())

    def arc_sources(self) -> Int32Array:
        """Return the (m,) int32 source of every arc: with ``col_indices``, the graph as COO."""
        return np.repeat(np.arange(self.vertices, dtype=np.int32), self.degrees)

    @classmethod
    def of(cls, thing: Any) -> Graph:
        """Return the graph that something is, or is a form of.

        Parameters
        ----------
        thing : Graph, NetworkX graph, SciPy sparse matrix, (n, n) array, pair of arrays, or path
            A ``Graph`` is returned as it is. A pair is ``(row_offsets, col_indices)``, a tuple. A
            path, or a ``str``, is what :func:`persistent_bfs.io.read_graph` takes.

        Raises
        ------
        TypeError
            If it is nothing of these.
        ValueError, OSError
            As :meth:`from_networkx`, :meth:`from_scipy`, :meth:`from_arrays` or ``read_graph``,
            whose defaults hold.
        """
        if isinstance(thing, Graph):
            return thing
        if isinstance(thing, (str, os.PathLike)):
            from persistent_bfs.io import read_graph

            return read_graph(thing)
        if scipy.sparse.issparse(thing) or (isinstance(thing, np.ndarray) and thing.ndim == 2):
            return cls.from_scipy(thing)
        if isinstance(thing, tuple) and len(thing) == 2:
            return cls.from_arrays(*thing)
        networkx = sys.modules.get("networkx")  # whoever has such a graph has imported it
        if networkx is not None and isinstance(thing, networkx.Graph):
            return cls.from_networkx(thing)
        shape = f" of shape {thing.shape}" if isinstance(thing, np.ndarray) else ""
        raise TypeError(
            "a graph is needed: a Graph, a NetworkX graph, a SciPy sparse matrix, a square NumPy "
            "array, a tuple (row_offsets, col_indices) or the path of a file; "
            f"got {type(thing).__name__}{shape}"
        )

    @classmethod
    def from_edges(
        cls,
        sources: npt.ArrayLike,
        targets: npt.ArrayLike | None = None,
        *,
        vertices: int | None = None,
        directed: bool = False,
        labels: Sequence[str] | npt.NDArray[np.str_] | None = None,
        name: str = "",
    ) -> Graph:
        """Build a graph from the two ends of each edge.

        Parameters
        ----------
        sources, targets : (k,) integer array-like
            Ends of edge i. Rows come out sorted by target.
        vertices : int, optional
            Number of vertices; by default the labels', else the largest id + 1.
        directed : bool
            If true each edge is one arc, kept as given, repeats and self-loops too. If false each
            distinct pair becomes two arcs; repeats are merged and self-loops dropped.
        labels : (n,) str array-like, optional
            Distinct vertex names.
        name : str
            What reports call the graph.

        Raises
        ------
        ValueError
            If an id is negative, not below ``vertices``, or so large that without ``vertices``
            nearly all rows would be empty; if there is no vertex.
        TypeError
            If the ids are not integers.
        """
        if targets is None:
            raise TypeError(
                "from_edges takes sources and targets apart; from pairs: "
                "Graph.from_edges(*zip(*pairs))"
            )
        directed = check_flag("directed", directed)
        labels = None if labels is None else _names(labels)
        check_name("name", name)
        s, t = _integers("sources", sources), _integers("targets", targets)
        if s.shape != t.shape:
            raise ValueError(f"sources and targets differ in length: {s.size} and {t.size}")
        largest = max(_largest_id("sources", s), _largest_id("targets", t))
        if vertices is None and labels is not None:
            vertices = len(labels)
        elif vertices is None:
            try:
                check_id_gap(largest, s.size)
            except ValueError as error:
                raise ValueError(f"{error}; relabel the ids, or pass vertices=") from None
            vertices = largest + 1
        vertices = check_integer("vertices", vertices, 0)
        plan_offsets(vertices, s.size)
        if largest >= vertices:
            raise ValueError(f"id {largest} is out of range for {vertices} vertices")
        s, t = s.astype(np.int32, copy=False), t.astype(np.int32, copy=False)
        if not directed:
            proper = s != t
            if not proper.all():
                s, t = s[proper], t[proper]
            s, t = np.concatenate([s, t]), np.concatenate([t, s])
        # SciPy sorts the rows in linear time and adds up repeated entries: here, their ones.
        ones: Any = np.ones(s.size, np.int32 if directed else np.bool_)
        csr = scipy.sparse.coo_array((ones, (s, t)), shape=(vertices, vertices)).tocsr()
        offsets, indices = csr.indptr, csr.indices
        if directed and csr.nnz < s.size:
            offsets = np.concatenate([[0], np.cumsum(csr.data, dtype=np.int64)])[offsets]
            indices = np.repeat(indices, csr.data)
        width = plan_offsets(vertices, indices.size)
        return cls(
            offsets.astype(f"int{width}", copy=False),
            indices.astype(np.int32, copy=False),
            directed,
            labels,
            name,
        )

    @classmethod
    def from_scipy(
        cls,
        matrix: Any,
        *,
        directed: bool | None = None,
        drop_zeros: bool = False,
        labels: Sequence[str] | npt.NDArray[np.str_] | None = None,
        name: str = "",
    ) -> Graph:
        """Build a graph from the pattern of a square matrix: entry (i, j) is the arc i -> j.

        Parameters
        ----------
        matrix : (n, n) SciPy sparse matrix or array, or dense array-like
            Only the pattern counts. In a sparse matrix what is stored is an edge, a zero too unless
            ``drop_zeros``; a dense one can leave nothing out, so there zero, NaN, infinity and a
            masked entry mean no edge, as for ``scipy.sparse.csgraph``.
        directed : bool, optional
            False reads each entry as an undirected edge. By default undirected if the pattern is
            symmetric.
        drop_zeros : bool
            Ignore stored zeros.
        labels, name
            As in :meth:`from_edges`.

        Raises
        ------
        ValueError
            If the matrix is not square or has no row.
        TypeError
            If a dense one does not hold numbers.
        """
        if directed is not None:
            directed = check_flag("directed", directed)
        drop_zeros = check_flag("drop_zeros", drop_zeros)
        labels = None if labels is None else _names(labels)
        check_name("name", name)
        sparse: Any = matrix
        if not scipy.sparse.issparse(matrix):
            sparse = scipy.sparse.coo_array(_dense_pattern(matrix))
        if len(sparse.shape) != 2 or sparse.shape[0] != sparse.shape[1]:
            shape = " x ".join(map(str, sparse.shape))
            raise ValueError(f"a graph needs a square matrix, this one is {shape}")
        coo = sparse.tocoo()
        s, t = coo.row, coo.col
        if drop_zeros:
            s, t = s[coo.data != 0], t[coo.data != 0]
        if directed is None:
            directed = _opposite_missing(s, t, coo.shape[0]) is not None
        return cls.from_edges(
            s, t, vertices=coo.shape[0], directed=directed, labels=labels, name=name
        )

    @classmethod
    def from_networkx(cls, graph: Any, *, name: str | None = None) -> Graph:
        """Build a graph from a NetworkX graph, directed if it is.

        Nodes that are the integers 0 to n - 1, in any order, keep their numbers. Others are
        numbered in the graph's order, stand in :attr:`nodes`, and their ``str`` become labels.
        Parallel edges count once if the graph is undirected.

        Raises
        ------
        TypeError
            If ``graph`` is no NetworkX graph.
        ValueError
            If it has no node, or two nodes with the same ``str``.
        """
        try:
            import networkx
        except ImportError:
            raise TypeError(f"a NetworkX graph is needed, got {type(graph).__name__}") from None
        if not isinstance(graph, networkx.Graph):
            raise TypeError(f"a NetworkX graph is needed, got {type(graph).__name__}")
        if name is not None:
            check_name("name", name)
        nodes = list(graph)
        plain = all(type(node) is int and 0 <= node < len(nodes) for node in nodes)
        index = {node: node if plain else i for i, node in enumerate(nodes)}
        ends = np.array([(index[u], index[v]) for u, v in graph.edges()], dtype=np.int64)
        s, t = ends.reshape(-1, 2).T
        made = cls.from_edges(
            s,
            t,
            vertices=len(nodes),
            directed=graph.is_directed(),
            labels=None if plain else [str(node) for node in nodes],
            name=str(graph.name) if name is None else name,
        )
        return made if plain else made._with_nodes(nodes)

    def _with_nodes(self, nodes: Sequence[Hashable] | None) -> Graph:
        """Return the graph with ``nodes``, which are known to be distinct."""
        if nodes is not None:
            object.__setattr__(self, "nodes", tuple(nodes))
        return self

    @classmethod
    def from_arrays(
        cls,
        row_offsets: Any,
        col_indices: Any,
        *,
        directed: bool = True,
        labels: Sequence[str] | npt.NDArray[np.str_] | None = None,
        name: str = "",
    ) -> Graph:
        """Build a graph from CSR arrays, keeping every arc, repeat and self-loop in its place.

        Parameters
        ----------
        row_offsets : (n + 1,) integer array-like
            From 0 to m, never falling.
        col_indices : (m,) integer array-like
            Ids from 0 to n - 1.
        directed : bool
            False promises that each arc's opposite is there too; this is checked.
        labels, name
            As in :meth:`from_edges`.

        Raises
        ------
        ValueError
            If the arrays are not CSR, saying where; if ``directed`` is false and an arc has no
            opposite; if there is no vertex.
        TypeError
            If they do not hold integers.

        Notes
        -----
        Any array with ``__array__`` will do: int64, read-only, memory-mapped, strided. None is
        written to. int32, contiguous ones are shared, not copied.
        """
        directed = check_flag("directed", directed)
        labels = None if labels is None else _names(labels)
        check_name("name", name)
        offsets = _integers("row_offsets", row_offsets)
        indices = _integers("col_indices", col_indices)
        _check_csr(offsets, indices)
        width = plan_offsets(offsets.size - 1, indices.size)
        graph = cls(
            offsets.astype(f"int{width}", copy=False),
            indices.astype(np.int32, copy=False),
            directed,
            labels,
            name,
        )
        if not directed:
            missing = _opposite_missing(graph.arc_sources(), graph.col_indices, graph.vertices)
            if missing is not None:
                raise ValueError(
                    "not undirected: arc {} -> {} is stored without its opposite".format(*missing)
                )
        return graph

    def symmetrized(self) -> Graph:
        """Return the undirected simple graph: two arcs for every distinct pair, no self-loops."""
        return Graph.from_edges(
            self.arc_sources(),
            self.col_indices,
            vertices=self.vertices,
            labels=self.labels,
            name=self.name,
        )._with_nodes(self.nodes)

    def transpose(self) -> Graph:
        """Return the graph with every arc turned round; an undirected graph is its own."""
        if not self.directed:
            return self
        return Graph.from_edges(
            self.col_indices,
            self.arc_sources(),
            vertices=self.vertices,
            directed=True,
            labels=self.labels,
            name=self.name,
        )._with_nodes(self.nodes)

    def permuted(self, order: npt.ArrayLike) -> Graph:
        """Return the same graph with its vertices numbered in another order.

        Parameters
        ----------
        order : (n,) integer array-like
            Each vertex once: ``order[i]`` is what vertex i of the result is called here.

        Returns
        -------
        Graph
            With offsets as wide, as many arcs and the labels gone along. If all rows are sorted
            they stay so; else each row keeps its stored order.

        Raises
        ------
        ValueError
            If ``order`` does not name every vertex exactly once.
        TypeError
            If it does not hold integers.
        """
        order = _permutation(order, self.vertices)
        rank = np.empty_like(order)
        rank[order] = np.arange(self.vertices, dtype=np.int32)
        degrees = self.degrees[order]
        offsets = np.zeros_like(self.row_offsets)
        degrees.cumsum(out=offsets[1:])
        indices = np.empty_like(self.col_indices)
        sort = self._rows_are_sorted()

        def write(rows: slice) -> None:
            first, last = int(offsets[rows.start]), int(offsets[rows.stop])
            # Arc k of a row lies as far from its row's start as before.
            shift = self.row_offsets[order[rows]] - offsets[rows]
            arcs = np.repeat(shift, degrees[rows]) + np.arange(first, last, dtype=shift.dtype)
            targets = rank.take(self.col_indices.take(arcs))
            if sort:
                row = np.arange(rows.stop - rows.start, dtype=np.int64) << 32
                keys = np.repeat(row, degrees[rows]) | targets
                keys.sort()
                targets = keys.astype(np.int32)  # the low bits
            indices[first:last] = targets

        by_rows(offsets, write, ARCS_AT_ONCE)
        labels = None if self.labels is None else self.labels[order]
        nodes = None if self.nodes is None else [self.nodes[vertex] for vertex in order]
        return Graph(offsets, indices, self.directed, labels, self.name, nodes)

    def _rows_are_sorted(self) -> bool:
        falls = self.col_indices[1:] < self.col_indices[:-1]
        starts = self.row_offsets[1:-1]
        falls[starts[(starts > 0) & (starts < self.arcs)] - 1] = False
        return not falls.any()

    def with_offsets(self, bits: int) -> Graph:
        """Return the same graph with ``row_offsets`` of 32 or 64 bits.

        Raises
        ------
        ValueError
            If ``bits`` is neither, or 32 is too narrow for the arcs.
        """
        bits = check_integer("bits", bits, 0)
        if bits not in (32, 64):
            raise ValueError(f"bits: offsets have 32 or 64 bits, not {bits}")
        if bits < plan_offsets(self.vertices, self.arcs):
            raise ValueError(f"{self.arcs:,} arcs need 64-bit offsets")
        offsets = self.row_offsets.astype(f"int{bits}", copy=False)
        return Graph(offsets, self.col_indices, self.directed, self.labels, self.name)._with_nodes(
            self.nodes
        )

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return an (n, n) SciPy CSR array of int8 ones, a copy that the caller may change."""
        return scipy.sparse.csr_array(
            (np.ones(self.arcs, np.int8), self.col_indices.copy(), self.row_offsets.copy()),
            shape=(self.vertices, self.vertices),
        )

    @cached_property
    def _vertex_of_label(self) -> dict[str, int]:
        return {} if self.labels is None else {x: i for i, x in enumerate(self.labels.tolist())}

    def label_of(self, vertex: int) -> str:
        """Return the label of a vertex, its id in digits where the graph has no labels."""
        vertex = self._check_vertex(vertex)
        return str(vertex) if self.labels is None else str(self.labels[vertex])

    @cached_property
    def _vertex_of_node(self) -> dict[Hashable, int]:
        return {} if self.nodes is None else {node: i for i, node in enumerate(self.nodes)}

    @cached_property
    def _labels_are_numbers(self) -> bool:
        """Whether some label is an integer, so that an integer in words may be meant as one."""
        return any(_number(label) is not None for label in self._vertex_of_label)

    def vertex_of(self, id_or_label: Any) -> int:
        """Return the vertex that a user means by a node, a label or an id.

        In a graph that has :attr:`nodes` that is one of them first. A string is looked up as a
        label, then read as an id; where labels are integers it is a label or nothing, and so is an
        integer where nodes are integers.

        Raises
        ------
        ValueError
            If no vertex has that node, label or id; similar labels are suggested.
        TypeError
            If it is none of these.
        """
        if self.nodes is not None and not isinstance(id_or_label, bool):
            try:
                return self._vertex_of_node[id_or_label]
            except KeyError:
                pass
            except TypeError:  # not hashable
                pass
        if not isinstance(id_or_label, str):
            vertex = self._integer(id_or_label)
            if self.nodes is not None and self._labels_are_numbers:
                raise ValueError(f"{shown(id_or_label)} is no node of this graph")
            return self._check_vertex(vertex)
        if id_or_label in self._vertex_of_label:
            return self._vertex_of_label[id_or_label]
        number = None if self._labels_are_numbers else _number(id_or_label)
        if number is None:
            close = difflib.get_close_matches(id_or_label, self._vertex_of_label, n=3)
            hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
            what = "label or id" if self._vertex_of_label else "id (this graph has no labels)"
            if self._labels_are_numbers:
                what = "label (labels are numbers here, so a number is one)"
            raise ValueError(f"{id_or_label!r} is no vertex {what}{hint}")
        return self._check_vertex(number)

    def check_source(self, source: Any) -> int:
        """Return ``source`` as a Python int, a vertex of this graph.

        Raises
        ------
        TypeError
            If it is not an integer (a bool, a float, a string are not).
        ValueError
            If it is out of range.
        """
        try:
            return self._check_vertex(source)
        except (TypeError, ValueError) as error:
            raise type(error)(f"source: {error}") from None

    def _check_vertex(self, value: Any) -> int:
        vertex = self._integer(value)
        if not 0 <= vertex < self.vertices:
            raise ValueError(
                f"vertex {shown(vertex)} is out of range: ids are 0 to {self.vertices - 1}"
            )
        return vertex

    @staticmethod
    def _integer(source: Any) -> int:
        try:
            if isinstance(source, (bool, np.bool_)) or np.ma.is_masked(source):
                raise TypeError
            return operator.index(source)
        except TypeError:
            kind = type(source).__name__
            raise TypeError(
                f"a vertex id must be an integer, got {shown(source)} of type {kind}"
            ) from None


def _names(labels: Any) -> npt.NDArray[np.str_]:
    """Return labels as an array of str; other things are none, however they would print."""
    array = _array("labels", labels)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "UTO"):
        raise TypeError(f"labels must be a sequence of str, got {type(labels).__name__}")
    if array.dtype.kind == "O" and not all(isinstance(label, str) for label in array):
        raise TypeError("labels must be a sequence of str, and one is none")
    return array.astype(np.str_, copy=False)


def _number(text: str) -> int | None:
    """Return the integer that a text is, None if it is none."""
    try:
        return int(text)
    except ValueError:
        return None


def _array(what: str, values: Any) -> npt.NDArray[Any]:
    """Return anything as NumPy reads it; an error that names it if NumPy cannot."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} cannot be made a NumPy array: {error}") from None


def _integers(what: str, values: Any) -> IntArray:
    """Return any array-like of integers as a one-dimensional NumPy array."""
    if isinstance(values, Iterable) and not hasattr(values, "__len__"):
        values = list(values)
    _refuse_mask(what, values)
    array = _array(what, values)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    if array.size == 0:
        return np.zeros(0, np.int32)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold integers, got {array.dtype}")
    if array.dtype == np.uint64:
        if array.max() > np.iinfo(np.int64).max:
            raise ValueError(f"{what} holds {array.max()}, which no id or offset can be")
        return array.astype(np.int64)
    return array


def _largest_id(what: str, ids: IntArray) -> int:
    """Return the largest id, -1 for none, refusing a negative one by its position."""
    if ids.size == 0:
        return -1
    if ids.min() < 0:
        first = int(np.argmax(ids < 0))
        raise ValueError(f"{what}[{first}] = {ids[first]}: ids cannot be negative")
    return int(ids.max())


def _permutation(order: Any, vertices: int) -> Int32Array:
    """Return ``order`` as int32, refusing what does not name each vertex exactly once."""
    ids = _integers("order", order)
    if ids.size != vertices:
        raise ValueError(f"an order of {vertices} vertices is needed, got {ids.size} ids")
    if _largest_id("order", ids) >= vertices:
        first = int(np.argmax(ids >= vertices))
        raise ValueError(f"order[{first}] = {ids[first]} is out of range for {vertices} vertices")
    named = np.bincount(ids, minlength=vertices)
    if named.max() > 1:
        twice = int(named.argmax())
        raise ValueError(f"order names vertex {twice} {named[twice]} times: it is no permutation")
    return ids.astype(np.int32, copy=False)


def _check_csr(offsets: IntArray, indices: IntArray) -> None:
    """Raise ValueError unless the arrays are a CSR graph, saying where they are not."""
    if offsets.ndim != 1 or indices.ndim != 1:
        raise ValueError("row_offsets and col_indices must be one-dimensional")
    vertices, arcs = offsets.shape[0] - 1, indices.shape[0]
    plan_offsets(vertices, arcs)
    if offsets[0] != 0:
        raise ValueError(f"row_offsets must start at 0, not at {offsets[0]}")
    falls = offsets[1:] < offsets[:-1]
    if falls.any():
        row = int(np.argmax(falls))
        raise ValueError(
            f"row_offsets must not fall: row {row} goes from {offsets[row]} to {offsets[row + 1]}"
        )
    if offsets[-1] != arcs:
        raise ValueError(f"row_offsets end at {offsets[-1]}, but there are {arcs} col_indices")
    if arcs and (indices.min() < 0 or indices.max() >= vertices):
        arc = int(np.argmax((indices < 0) | (indices >= vertices)))
        raise ValueError(
            f"col_indices[{arc}] = {indices[arc]} is out of range for {vertices} vertices"
        )


def _opposite_missing(s: IntArray, t: IntArray, vertices: int) -> tuple[int, int] | None:
    """Return the first arc whose opposite is not among the arcs s -> t, None if there is none."""
    ones = np.ones(s.size, np.int8)
    # SciPy sorts rows, merges repeats and transposes in linear time.
    forward = scipy.sparse.coo_array((ones, (s, t)), shape=(vertices, vertices)).tocsr()
    backward = forward.T.tocsr()
    if np.array_equal(forward.indptr, backward.indptr) and np.array_equal(
        forward.indices, backward.indices
    ):
        return None
    forward.data[:] = backward.data[:] = 1  # repeats were added up, and may have come to nothing
    alone = (forward - backward).tocoo()
    first = int(np.argmax(alone.data > 0))
    return int(alone.row[first]), int(alone.col[first])


def _dense_pattern(matrix: Any) -> npt.NDArray[np.bool_]:
    """Return where a dense matrix has an edge: not at zero, NaN, infinity or a masked entry."""
    values = _array("matrix", matrix)
    if values.dtype.kind not in "biufc":
        raise TypeError(f"a matrix must hold numbers, got {values.dtype}")
    edges: npt.NDArray[np.bool_] = values != 0
    if values.dtype.kind in "fc":
        edges &= np.isfinite(values)
    if isinstance(matrix, np.ma.MaskedArray):
        edges &= ~np.ma.getmaskarray(matrix)
    return edges


def _refuse_mask(what: str, values: Any) -> None:
    """Refuse a masked id or offset; an array without any is like another."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        first = int(np.argmax(np.ma.getmaskarray(values)))
        raise ValueError(f"{what}[{first}] is masked: fill it or leave it out")
