from __future__ import annotations

from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse
from graphs import FRONTIER_MODEL, REPEATS, SMALL, SmallGraph, directed, undirected

from persistent_bfs.graph import Graph, plan_offsets

SIX_OFFSETS = [0, 2, 4, 6, 8, 9, 9]
SIX_INDICES = [1, 2, 2, 3, 3, 4, 4, 5, 5]


def arcs(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))


def test_arrays_are_kept_verbatim_and_read_only() -> None:
    graph = Graph.from_arrays(SIX_OFFSETS, SIX_INDICES)
    assert graph.row_offsets.tolist() == SIX_OFFSETS
    assert graph.col_indices.tolist() == SIX_INDICES
    assert (graph.row_offsets.dtype, graph.col_indices.dtype) == (np.int32, np.int32)
    assert (graph.vertices, graph.arcs, graph.edges, graph.max_degree) == (6, 9, 9, 2)
    assert graph.degrees.tolist() == [2, 2, 2, 2, 1, 0]
    assert graph.directed
    for array in (graph.row_offsets, graph.col_indices, graph.degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_undirected_edges_become_two_arcs_without_repeats_or_loops() -> None:
    graph = Graph.from_edges([0, 1, 0, 2, 2], [1, 0, 1, 2, 0])
    assert arcs(graph) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert (graph.edges, graph.directed) == (2, False)


def test_directed_edges_are_kept_with_repeats_and_loops_and_sorted() -> None:
    graph = directed(4, (2, 1), (0, 3), (0, 1), (2, 2), (0, 1), (2, 0), (0, 1))
    assert arcs(graph) == [(0, 1), (0, 1), (0, 1), (0, 3), (2, 0), (2, 1), (2, 2)]
    assert graph.row_offsets.tolist() == [0, 4, 4, 7, 7]
    assert graph.edges == 7


def test_undirected_arrays_count_each_pair_and_loop_once() -> None:
    assert (REPEATS.arcs, REPEATS.edges) == (12, 7)  # 0-1 twice, 0-2, 1-2, 2-3, two loops


@pytest.mark.parametrize("small", SMALL, ids=str)
def test_symmetrizing_holds_each_distinct_pair_twice(small: SmallGraph) -> None:
    graph = small.graph.symmetrized()
    pairs = {frozenset(arc) for arc in arcs(small.graph) if arc[0] != arc[1]}
    assert sorted(arcs(graph)) == sorted(
        (u, v) for pair in pairs for u in pair for v in pair if u != v
    )
    assert (graph.edges, graph.arcs, graph.directed) == (len(pairs), 2 * len(pairs), False)


def test_opposite_arcs_and_a_loop_symmetrize_to_one_edge() -> None:
    graph = directed(2, (0, 1), (1, 0), (1, 1)).symmetrized()
    assert (graph.arcs, graph.edges) == (2, 1)


def test_transpose_turns_arcs_round() -> None:
    graph = directed(3, (0, 1), (0, 1), (2, 0), (1, 1)).transpose()
    assert arcs(graph) == [(0, 2), (1, 0), (1, 0), (1, 1)]
    assert graph.directed
    same = undirected(3, (0, 1))
    assert same.transpose() is same


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_any_integer_width_gives_int32(dtype: type) -> None:
    graph = Graph.from_arrays(np.array(SIX_OFFSETS, dtype), np.array(SIX_INDICES, dtype))
    assert (graph.row_offsets.dtype, graph.col_indices.dtype) == (np.int32, np.int32)
    assert arcs(graph) == arcs(FRONTIER_MODEL)
    edges = Graph.from_edges(np.array([0, 2], dtype), np.array([1, 1], dtype))
    assert arcs(edges) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_strided_read_only_and_memory_mapped_arrays_are_accepted(tmp_path: Path) -> None:
    wide = np.zeros((2, 9), np.int32)
    wide[0] = SIX_INDICES
    strided = np.asfortranarray(wide)[0]
    assert not strided.flags.c_contiguous
    strided.flags.writeable = False
    mapped = np.memmap(tmp_path / "offsets", np.int64, "w+", shape=7)
    mapped[:] = SIX_OFFSETS
    mapped.flush()
    read_only = np.memmap(tmp_path / "offsets", np.int64, "r", shape=7)
    graph = Graph.from_arrays(read_only, strided)
    assert arcs(graph) == arcs(FRONTIER_MODEL)
    assert graph.col_indices.flags.c_contiguous
    backwards = np.array(SIX_INDICES[::-1], np.int64)[::-1]
    assert arcs(Graph.from_arrays(SIX_OFFSETS, backwards)) == arcs(FRONTIER_MODEL)


def test_the_callers_arrays_stay_writeable_and_unchanged() -> None:
    indices = np.array(SIX_INDICES, np.int32)
    graph = Graph.from_arrays(SIX_OFFSETS, indices)
    graph.symmetrized()
    graph.to_scipy().data[:] = 0
    assert indices.flags.writeable
    assert indices.tolist() == SIX_INDICES
    assert np.shares_memory(indices, graph.col_indices)


def test_anything_with_array_is_accepted() -> None:
    class Column:
        def __init__(self, values: list[int]) -> None:
            self.values = values

        def __len__(self) -> int:
            return len(self.values)

        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.array(self.values)

    assert arcs(Graph.from_arrays(Column(SIX_OFFSETS), Column(SIX_INDICES))) == arcs(FRONTIER_MODEL)


@pytest.mark.parametrize(
    ("offsets", "indices", "message"),
    [
        ([], [], "at least one vertex"),
        ([0], [], "at least one vertex"),
        ([1, 1], [0], "start at 0, not at 1"),
        ([0, 2, 1], [0], "row 1 goes from 2 to 1"),
        ([0, 1, 3], [0, 1], "end at 3, but there are 2"),
        ([0, 1, 2], [0, 2], r"col_indices\[1\] = 2 is out of range for 2 vertices"),
        ([0, 1, 2], [-1, 1], r"col_indices\[0\] = -1"),
        ([0, 1], [2**32], r"col_indices\[0\] = 4294967296"),
        ([[0, 1]], [0], "row_offsets must be one-dimensional"),
        (np.array([0, 2**63], np.uint64), [0], "9223372036854775808, which no id"),
    ],
)
def test_what_is_no_csr_is_refused_by_place(offsets, indices, message) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_arrays(offsets, indices)


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(TypeError, match="col_indices must hold integers, got float64"):
        Graph.from_arrays([0, 1], [0.0])
    with pytest.raises(TypeError, match="sources must hold integers, got bool"):
        Graph.from_edges([True], [False])
    with pytest.raises(TypeError, match=r"Graph\.from_arrays converts"):
        Graph(np.array([0, 0]), np.zeros(0, np.int64), True)


def test_undirected_arrays_must_be_symmetric() -> None:
    with pytest.raises(ValueError, match="arc 0 -> 1 is stored without its opposite"):
        Graph.from_arrays([0, 1, 1], [1], directed=False)


@pytest.mark.parametrize(
    ("sources", "targets", "options", "message"),
    [
        ([0, 1], [1], {}, "differ in length: 2 and 1"),
        ([0, -3], [1, 1], {}, r"sources\[1\] = -3: ids cannot be negative"),
        ([0], [5], {"vertices": 5}, "id 5 is out of range for 5 vertices"),
        ([], [], {}, "at least one vertex"),
        ([], [], {"vertices": 0}, "at least one vertex"),
        ([404647567], [38719238], {}, "large gaps.*relabel the ids, or pass vertices="),
        ([0], [1], {"vertices": 2**31}, "do not fit int32 ids"),
        ([0], [1], {"labels": ["a", "a"]}, "label 'a' names more than one vertex"),
        ([0], [1], {"labels": ["a", "b"], "vertices": 3}, "3 vertices need as many labels"),
    ],
)
def test_edges_that_make_no_graph_are_refused(sources, targets, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edges(sources, targets, **options)


@pytest.mark.parametrize(
    ("vertices", "arcs", "bits"),
    [(1, 0, 32), (10, 2**31 - 1, 32), (10, 2**31, 64), (2**31 - 1, 3_000_000_000, 64)],
)
def test_offset_width_follows_the_arcs(vertices: int, arcs: int, bits: int) -> None:
    assert plan_offsets(vertices, arcs) == bits


@pytest.mark.parametrize(
    ("vertices", "arcs", "message"),
    [
        (0, 0, "at least one vertex"),
        (2**31, 0, "2,147,483,648 vertices do not fit int32 ids"),
        (1, -1, "negative"),
    ],
)
def test_the_planner_refuses(vertices: int, arcs: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan_offsets(vertices, arcs)


def test_offsets_can_be_widened() -> None:
    wide = FRONTIER_MODEL.with_offsets(64)
    assert (wide.row_offsets.dtype, wide.degrees.dtype) == (np.int64, np.int64)
    assert arcs(wide) == arcs(FRONTIER_MODEL)
    assert wide.with_offsets(32).row_offsets.dtype == np.int32
    with pytest.raises(ValueError, match="32 or 64 bits, not 16"):
        wide.with_offsets(16)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
def test_every_scipy_format_gives_its_pattern(kind: str) -> None:
    matrix = FRONTIER_MODEL.to_scipy().asformat(kind)
    graph = Graph.from_scipy(matrix)
    assert arcs(graph) == arcs(FRONTIER_MODEL)
    assert graph.directed
    assert Graph.from_scipy(matrix.T + matrix).edges == 9


def test_scipy_direction_is_by_the_pattern_unless_told() -> None:
    symmetric = scipy.sparse.csr_array(np.array([[1, 2], [3, 0]]))
    assert not Graph.from_scipy(symmetric).directed
    assert arcs(Graph.from_scipy(symmetric)) == [(0, 1), (1, 0)]
    assert arcs(Graph.from_scipy(symmetric, directed=True)) == [(0, 0), (0, 1), (1, 0)]
    triangle = scipy.sparse.csr_array(np.array([[0, 1], [0, 0]]))
    assert arcs(Graph.from_scipy(triangle, directed=False)) == [(0, 1), (1, 0)]


def test_stored_zeros_are_edges_unless_dropped() -> None:
    matrix = scipy.sparse.coo_array(([0, 7], ([0, 1], [1, 2])), shape=(3, 3))
    assert arcs(Graph.from_scipy(matrix)) == [(0, 1), (1, 2)]
    assert arcs(Graph.from_scipy(matrix, drop_zeros=True)) == [(1, 2)]
    assert arcs(Graph.from_scipy([[0, 1], [0, 0]])) == [(0, 1)]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (scipy.sparse.csr_array((2, 3)), "square matrix, this one is 2 x 3"),
        (np.zeros(4), "this one is 4"),
        (scipy.sparse.csr_array((0, 0)), "at least one vertex"),
    ],
)
def test_matrices_that_are_no_graph_are_refused(matrix, message) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_scipy(matrix)


def test_to_scipy_is_the_adjacency_matrix() -> None:
    dense = FRONTIER_MODEL.to_scipy().toarray()
    assert [(int(u), int(v)) for u, v in np.argwhere(dense)] == arcs(FRONTIER_MODEL)
    assert dense.max() == 1


def test_networkx_graphs_keep_direction_order_and_names() -> None:
    karate = Graph.from_networkx(networkx.karate_club_graph())
    assert (karate.vertices, karate.edges, karate.directed) == (34, 78, False)
    assert (karate.labels, karate.name) == (None, "Zachary's Karate Club")
    words = networkx.DiGraph([("b", "a"), ("a", "c"), ("a", "a")])
    graph = Graph.from_networkx(words, name="words")
    assert graph.labels.tolist() == ["b", "a", "c"]
    assert arcs(graph) == [(0, 1), (1, 1), (1, 2)]
    assert graph.directed
    multi = networkx.MultiGraph([(0, 1), (0, 1), (1, 1)])
    assert arcs(Graph.from_networkx(multi)) == [(0, 1), (1, 0)]
    multi = networkx.MultiDiGraph([(0, 1), (0, 1)])
    assert arcs(Graph.from_networkx(multi)) == [(0, 1), (0, 1)]


def test_networkx_refusals() -> None:
    with pytest.raises(TypeError, match="a NetworkX graph is needed, got list"):
        Graph.from_networkx([(0, 1)])
    with pytest.raises(ValueError, match="at least one vertex"):
        Graph.from_networkx(networkx.Graph())
    with pytest.raises(ValueError, match="label '1' names more than one"):
        Graph.from_networkx(networkx.Graph([(1, "1")]))


@pytest.mark.parametrize("source", [5, np.int32(5), np.int64(5), np.uint8(5), np.array(5)])
def test_integers_of_any_kind_are_sources(source: object) -> None:
    vertex = FRONTIER_MODEL.check_source(source)
    assert vertex == 5
    assert type(vertex) is int


@pytest.mark.parametrize("source", [1.5, 1.0, True, np.True_, "1", None, np.float32(1), [1]])
def test_sources_that_are_no_integers_are_refused(source: object) -> None:
    with pytest.raises(TypeError, match="vertex id must be an integer"):
        FRONTIER_MODEL.check_source(source)


@pytest.mark.parametrize("source", [6, -1, np.int64(2**40), 10**30])
def test_sources_out_of_range_are_refused(source: int) -> None:
    with pytest.raises(ValueError, match=r"out of range: ids are 0 to 5"):
        FRONTIER_MODEL.check_source(source)


def test_vertices_are_found_by_label_first_then_by_id() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], labels=["abel", "moses", "aaron"])
    assert graph.vertex_of("moses") == 1
    assert graph.vertex_of("1") == 1
    assert graph.vertex_of(np.int64(2)) == 2
    assert [graph.label_of(v) for v in range(3)] == ["abel", "moses", "aaron"]
    assert FRONTIER_MODEL.label_of(4) == "4"
    assert FRONTIER_MODEL.vertex_of("4") == 4


def test_unknown_labels_are_refused_with_a_hint() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], labels=["abel", "moses", "aaron"])
    with pytest.raises(ValueError, match="'mose' is no vertex label or id; did you mean 'moses'"):
        graph.vertex_of("mose")
    with pytest.raises(ValueError, match="'x' is no vertex id \\(this graph has no labels\\)"):
        FRONTIER_MODEL.vertex_of("x")
    with pytest.raises(ValueError, match="vertex 17 is out of range"):
        graph.vertex_of("17")
    with pytest.raises(ValueError, match="vertex -1 is out of range"):
        FRONTIER_MODEL.vertex_of("-1")
    with pytest.raises(TypeError, match="must be an integer"):
        graph.vertex_of(1.5)


def test_a_graph_prints_itself_briefly() -> None:
    graph = Graph.from_edges([0, 1], [1, 2], name="twig")
    assert repr(graph) == "Graph('twig', 3 vertices, 2 edges, undirected)"
