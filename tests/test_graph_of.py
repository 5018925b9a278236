"""What may stand for a graph, what its class says, and what comes back of it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse
from graphs import FRONTIER_MODEL

from persistent_bfs.graph import Graph, _opposite_missing
from persistent_bfs.reference import bfs_reference

MASKED = np.ma.masked_equal([[0, 1, 9], [1, 0, 1], [9, 1, 0]], 9)
CHAIN = [(0, 1), (1, 0), (1, 2), (2, 1)]


def arcs(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))


class TestOf:
    @pytest.mark.parametrize(
        "thing",
        [
            networkx.path_graph(3),
            scipy.sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])),
            scipy.sparse.coo_matrix(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])),
            np.array([[0, 1.5, 0], [1, 0, 1], [0, 1, 0]]),
            MASKED,
            np.array([[0, 1, np.inf], [1, 0, 1], [np.nan, 1, 0]]),
            ([0, 1, 3, 4], np.array([1, 0, 2, 1])),
            "path:3",
        ],
        ids=lambda thing: type(thing).__name__,
    )
    def test_everything_that_is_a_graph_becomes_one(self, thing: object) -> None:
        assert arcs(Graph.of(thing)) == CHAIN

    def test_a_graph_is_itself_and_a_path_is_read(self, tmp_path: Path) -> None:
        assert Graph.of(FRONTIER_MODEL) is FRONTIER_MODEL
        (tmp_path / "g.txt").write_text("0 1\n1 2\n")
        for path in (tmp_path / "g.txt", str(tmp_path / "g.txt")):
            assert arcs(Graph.of(path)) == CHAIN

    @pytest.mark.parametrize(
        ("thing", "got"),
        [
            (None, "NoneType"),
            ([[0, 1], [1, 0]], "list"),
            ((1, 2, 3), "tuple"),
            (np.zeros(4), r"ndarray of shape \(4,\)"),
            ({0: [1]}, "dict"),
            (b"g.txt", "bytes"),
            (object(), "object"),
        ],
    )
    def test_anything_else_is_refused_with_what_is_accepted(self, thing, got) -> None:
        with pytest.raises(TypeError, match=rf"a NetworkX graph, a SciPy .* path.*; got {got}$"):
            Graph.of(thing)

    def test_networkx_need_not_be_there(self) -> None:
        program = (
            "import sys; from persistent_bfs.graph import Graph\n"
            "try: Graph.of(5)\n"
            "except TypeError as error: print('networkx' in sys.modules, error)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stdout.startswith("False a graph is needed: ")


class TestNodes:
    def test_numbers_from_0_keep_theirs_in_any_order(self) -> None:
        turned = networkx.Graph([(2, 0), (0, 1)])
        assert list(turned) == [2, 0, 1]
        graph = Graph.from_networkx(turned)
        assert arcs(graph) == [(0, 1), (0, 2), (1, 0), (2, 0)]
        assert (graph.labels, graph.nodes) == (None, None)

    @pytest.mark.parametrize("nodes", [[1, 2, 3], [0, 1, 3], [0, 1, "2"], [0.0, 1, 2], [-1, 0, 1]])
    def test_other_nodes_are_kept_as_they_are(self, nodes) -> None:
        graph = Graph.from_networkx(networkx.path_graph(nodes))
        assert graph.nodes == tuple(nodes)
        assert [type(node) for node in graph.nodes] == [type(node) for node in nodes]
        assert graph.labels.tolist() == [str(node) for node in nodes]
        assert [graph.vertex_of(node) for node in nodes] == [0, 1, 2]
        assert arcs(graph) == CHAIN

    def test_nodes_of_any_kind_are_sources(self) -> None:
        grid = Graph.from_networkx(networkx.grid_2d_graph(3, 2))
        assert grid.vertex_of((2, 1)) == 5
        assert grid.vertex_of("(2, 1)") == 5
        assert grid.vertex_of(3) == 3  # no node is an integer: so this is an id
        distances = bfs_reference(grid, grid.vertex_of((0, 1))).distances
        assert distances[grid.vertex_of((2, 0))] == 3
        with pytest.raises(TypeError, match="must be an integer"):
            grid.vertex_of((3, 1))
        with pytest.raises(TypeError, match="must be an integer"):
            grid.vertex_of([0, 1])

    def test_an_integer_is_a_node_where_nodes_are_integers(self) -> None:
        graph = Graph.from_networkx(networkx.path_graph([30, 20, 1]))
        assert [graph.vertex_of(node) for node in (30, np.int64(20), 1, "1")] == [0, 1, 2, 2]
        with pytest.raises(ValueError, match="0 is no node of this graph"):
            graph.vertex_of(0)
        with pytest.raises(TypeError, match="must be an integer, got True"):
            graph.vertex_of(True)

    def test_they_go_along(self) -> None:
        nodes = [("a", 1), ("b", 2), ("c", 3)]
        graph = Graph.from_networkx(networkx.path_graph(nodes, create_using=networkx.DiGraph))
        for other in (graph.symmetrized(), graph.transpose(), graph.with_offsets(64)):
            assert other.nodes == tuple(nodes)
        assert graph.permuted([2, 0, 1]).nodes == (("c", 3), ("a", 1), ("b", 2))

    def test_they_are_as_many_as_vertices_and_distinct(self) -> None:
        parts = (FRONTIER_MODEL.row_offsets, FRONTIER_MODEL.col_indices, True, None, "")
        with pytest.raises(ValueError, match="6 vertices need as many nodes, got 2"):
            Graph(*parts, nodes=[1, 2])
        with pytest.raises(ValueError, match="a node stands for more than one vertex"):
            Graph(*parts, nodes=[1, 2, 3, 4, 5, 1.0])


class TestNumberedLabels:
    def test_a_number_is_a_label_or_nothing(self) -> None:
        graph = Graph.from_edges([0, 1], [1, 2], labels=["7", "x", "1"])
        assert [graph.vertex_of(label) for label in ("7", "x", "1")] == [0, 1, 2]
        assert graph.vertex_of(0) == 0
        for missing in ("0", "2", "-1", "8"):
            with pytest.raises(ValueError, match=f"'{missing}' is no vertex label .*numbers here"):
                graph.vertex_of(missing)


class TestClassesThatSayMore:
    def test_masked_entries_are_no_edges(self) -> None:
        graph = Graph.from_scipy(MASKED)
        assert arcs(graph) == CHAIN
        assert bfs_reference(graph, 0).distances.tolist() == [0, 1, 2]
        assert arcs(Graph.from_scipy(np.ma.masked_array([[0, 1], [1, 0]]))) == [(0, 1), (1, 0)]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
    def test_dense_nan_and_infinity_are_no_edges(self, dtype: type) -> None:
        dense = np.array([[0, 1, np.nan], [np.inf, 0, 1], [-np.inf, 0, 0]], dtype)
        assert arcs(Graph.from_scipy(dense)) == [(0, 1), (1, 2)]

    def test_what_a_sparse_matrix_stores_is_an_edge_as_for_scipy(self) -> None:
        stored = scipy.sparse.csr_array(([np.inf, np.nan, 0.0], ([0, 1, 2], [1, 2, 3])), (4, 4))
        found = scipy.sparse.csgraph.breadth_first_order(stored, 0, return_predecessors=False)
        assert found.tolist() == [0, 1, 2, 3]
        assert arcs(Graph.from_scipy(stored)) == [(0, 1), (1, 2), (2, 3)]

    def test_sub_classes_of_arrays_are_arrays(self) -> None:
        class Named(np.ndarray):
            pass

        dense = np.array([[0, 1], [0, 0]])
        with pytest.warns(PendingDeprecationWarning):
            old = np.asmatrix(dense)
        for matrix in (old, dense.view(Named), dense.tolist(), dense != 0):
            assert arcs(Graph.from_scipy(matrix)) == [(0, 1)]
        offsets = np.array([0, 1, 1], np.int32).view(Named)
        graph = Graph(offsets, np.array([1], np.int32).view(Named), True)
        assert {type(graph.row_offsets), type(graph.col_indices)} == {np.ndarray}

    @pytest.mark.parametrize("dense", [[["a", "b"], ["c", "d"]], [[None, 1], [1, None]]])
    def test_matrices_of_other_things_are_refused(self, dense) -> None:
        with pytest.raises(TypeError, match="a matrix must hold numbers"):
            Graph.from_scipy(np.array(dense))

    def test_masked_ids_are_refused(self) -> None:
        ids = np.ma.masked_equal(np.array([0, 1, 9], np.int32), 9)
        with pytest.raises(ValueError, match=r"targets\[2\] is masked"):
            Graph.from_edges([0, 1, 2], ids)
        with pytest.raises(ValueError, match=r"col_indices\[2\] is masked"):
            Graph.from_arrays([0, 3], ids)
        with pytest.raises(ValueError, match=r"col_indices\[2\] is masked"):
            Graph(np.array([0, 3], np.int32), ids, True)
        with pytest.raises(TypeError, match="must be an integer"):
            FRONTIER_MODEL.check_source(ids[2])
        assert Graph.from_edges(ids[:2], [1, 2]).edges == 2


class TestConstructor:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0, 1], [0], False), "row_offsets must be a NumPy array, got list; Graph.from_array"),
            ((np.array([0, 0]), (), False), "col_indices must be a NumPy array, got tuple"),
            (
                (np.array([0, 0]), np.zeros(0, np.int32), "yes"),
                "directed is 'yes'; it must be a bool",
            ),
            ((np.array([0, 0]), np.zeros(0, np.int32), 1), "directed is 1; it must be a bool"),
            (
                (np.array([0, 0]), np.zeros(0, np.int32), True, None, 5),
                "name is 5; it must be a str",
            ),
        ],
    )
    def test_arguments_of_other_types_are_named(self, arguments, message) -> None:
        with pytest.raises(TypeError, match=message):
            Graph(*arguments)

    def test_pairs_are_refused_with_the_way(self) -> None:
        pairs = [(0, 1), (1, 2)]
        with pytest.raises(TypeError, match=r"Graph\.from_edges\(\*zip\(\*pairs\)\)"):
            Graph.from_edges(pairs)
        assert arcs(Graph.from_edges(*zip(*pairs, strict=True))) == CHAIN


class TestCopies:
    @pytest.mark.parametrize(
        "again",
        [
            lambda graph: pickle.loads(pickle.dumps(graph)),
            lambda graph: pickle.loads(pickle.dumps(graph, protocol=2)),
            copy.copy,
            copy.deepcopy,
        ],
        ids=["pickle", "protocol-2", "copy", "deepcopy"],
    )
    def test_copies_are_the_same_and_read_only(self, again) -> None:
        tuples = Graph.from_networkx(networkx.grid_2d_graph(2, 2), name="square")
        for graph in (tuples, FRONTIER_MODEL, FRONTIER_MODEL.with_offsets(64)):
            assert graph.degrees.size
            assert graph.vertex_of(0) == 0
            other = again(graph)
            assert (other.directed, other.name, other.nodes) == (
                *(graph.directed, graph.name, graph.nodes),
            )
            for field in ("row_offsets", "col_indices", "labels", "degrees"):
                mine, its = getattr(graph, field), getattr(other, field)
                if mine is None:
                    assert its is None
                    continue
                assert its.tolist() == mine.tolist()
                assert its.dtype == mine.dtype
                with pytest.raises(ValueError, match="read-only"):
                    its[0] = its[0]


@pytest.mark.parametrize(
    ("s", "t", "missing"),
    [
        ([], [], None),
        ([0, 1, 1, 1, 0], [1, 0, 1, 0, 1], None),
        ([0, 1, 2, 1], [1, 0, 1, 3], (1, 3)),
        ([2, 0], [1, 2], (0, 2)),
        ([0, 1] + [0, 1] * 128, [1, 0] + [1, 0] * 128, None),
        ([0] * 256, [1] * 256, (0, 1)),  # as often as an int8 counts to nothing
    ],
)
def test_the_first_arc_without_its_opposite(s, t, missing) -> None:
    found = _opposite_missing(np.array(s, np.int32), np.array(t, np.int32), 4)
    assert found == missing
