"""Each text format: all that it may say, and every fault, named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from persistent_bfs.graph import Graph
from persistent_bfs.io import GraphFormatError, read_graph


@pytest.fixture(name="read")
def read_fixture(tmp_path: Path):
    def read(name: str, content: str, **options: object) -> Graph:
        file = tmp_path / name
        file.write_text(content, encoding="utf-8", newline="")
        return read_graph(file, **options)

    return read


PATTERN = "%%MatrixMarket matrix coordinate pattern general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


def arcs(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))


class TestMatrixMarket:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("pattern", ""),
            ("integer", "-3"),
            ("unsigned-integer", "3"),
            ("real", "1.5e-3"),
            ("real", "nan"),
            ("double", "2"),
            ("complex", "0.5 -1"),
        ],
    )
    @pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
    def test_every_field_and_symmetry(self, field, value, symmetry, read) -> None:
        content = f"3 3 2\n2 1 {value}\n3 2 {value}\n"
        graph = read("m.mtx", f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{content}")
        if symmetry == "general":
            assert (arcs(graph), graph.directed) == ([(1, 0), (2, 1)], True)
        else:
            assert (arcs(graph), graph.directed) == ([(0, 1), (1, 0), (1, 2), (2, 1)], False)

    def test_general_keeps_loops_and_repeats(self, read) -> None:
        graph = read(
            "m.mtx",
            PATTERN + "2 2 4\n1 1\n1 2\n1 2\n2 1\n",
        )
        assert arcs(graph) == [(0, 0), (0, 1), (0, 1), (1, 0)]
        assert arcs(graph.symmetrized()) == [(0, 1), (1, 0)]

    @pytest.mark.parametrize(
        ("header", "values", "expected"),
        [
            ("real general", "0 4 0 0 0 5 0 0 0", [(1, 0), (2, 1)]),
            ("integer symmetric", "0 4 0 0 5 0", [(0, 1), (1, 0), (1, 2), (2, 1)]),
            ("real skew-symmetric", "4 0 5", [(0, 1), (1, 0), (1, 2), (2, 1)]),
            ("complex general", "0_0 4_1 0_0 0_0 0_0 0_5 0_0 0_0 0_0", [(1, 0), (2, 1)]),
            ("complex hermitian", "0_0 4_1 0_0 0_0 0_5 0_0", [(0, 1), (1, 0), (1, 2), (2, 1)]),
        ],
    )
    def test_arrays_are_dense_by_column(self, header, values, expected, read) -> None:
        lines = values.replace(" ", "\n").replace("_", " ")
        graph = read("m.mtx", f"%%MatrixMarket matrix array {header}\n3 3\n{lines}\n")
        assert arcs(graph) == expected

    def test_blank_lines_comments_and_case(self, read) -> None:
        graph = read(
            "m.mtx",
            "%%matrixmarket MATRIX Coordinate Pattern General\r\n%a\r\n\r\n  %b\r\n"
            " \t3  3\t2 \r\n\r\n  1\t 2\r\n\r\n2 3  \r\n\r\n",
        )
        assert arcs(graph) == [(0, 1), (1, 2)]

    def test_stored_zeros_are_edges_unless_dropped(self, read) -> None:
        content = "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 0.0\n2 3 4\n"
        assert arcs(read("m.mtx", content)) == [(0, 1), (1, 2)]
        assert arcs(read("m.mtx", content, drop_zeros=True)) == [(1, 2)]

    def test_no_entries(self, read) -> None:
        graph = read("m.mtx", PATTERN + "3 3 0\n")
        assert (graph.vertices, graph.arcs) == (3, 0)

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (1, "begins with '%%MatrixMarket", PATTERN[1:] + "1 1 0\n"),
            (1, "banner should read", "%%MatrixMarket matrix coordinate pattern\n1 1 0\n"),
            (1, "banner should read", "%%MatrixMarket vector coordinate real general\n1 1 0\n"),
            (1, "'dense' in the banner", "%%MatrixMarket matrix dense real general\n1 1\n"),
            (1, "'quaternion' in the", "%%MatrixMarket matrix array quaternion general\n1 1\n"),
            (1, "'lower' in the banner", "%%MatrixMarket matrix array real lower\n1 1\n"),
            (3, "size line", PATTERN + "%\n1 2\n2 3\n"),
            (2, "size line", PATTERN + "3 3 x\n"),
            (1, "size line", PATTERN),
            (4, "Row index out of", PATTERN + "3 3 2\n1 2\n0 3\n"),
            (5, "Column index out", PATTERN + "%\n3 3 2\n1 2\n3 4\n"),
            (4, "Invalid integer", PATTERN + "3 3 2\n1 2\nx 3\n"),
            (3, "Invalid floating", "%%MatrixMarket matrix coordinate real general\n3 3 1\n1 2\n"),
            (4, "ends after 2 of 3 d", PATTERN + "3 3 3\n1 2\n2 3\n"),
            (3, "ends after 1 of 9,9", PATTERN + "3 3 9999999999\n1 2\n"),
            (4, "ends after 2 of 4 d", ARRAY + "2 2\n1\n2\n"),
            (4, "Too many lines", PATTERN + "3 3 1\n1 2\n2 3\n"),
            (2, "matrix is 3 x 4; a graph", PATTERN + "3 4 1\n1 2\n"),
            (2, "at least one vertex", PATTERN + "0 0 0\n"),
            (2, "do not fit int32", PATTERN + "99999999999 99999999999 1\n1 2\n"),
        ],
    )
    def test_faults_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"m\.mtx:{line}: .*{message}"):
            read("m.mtx", content)


class TestEdgeList:
    def test_comments_blanks_and_further_columns(self, read) -> None:
        content = (
            "# SNAP\n% KONECT\n\n0\t1 5 1082\n  # more\n 1    2 7 1083\n2 2 1 1084\n1 0 9 1085\n"
        )
        assert arcs(read("e.txt", content)) == [(0, 1), (1, 0), (1, 2), (2, 1)]
        assert arcs(read("e.txt", content, directed=True)) == [(0, 1), (1, 0), (1, 2), (2, 2)]

    def test_attributes_may_differ_in_length(self, read) -> None:
        assert read("e.edgelist", "0 1 {}\n1 2 {'weight': 3}\n").edges == 2

    def test_a_byte_order_mark_is_no_vertex(self, read) -> None:
        assert arcs(read("e.txt", "\ufeff0 1\n")) == [(0, 1), (1, 0)]

    def test_gaps_make_isolated_vertices(self, read) -> None:
        graph = read("e.txt", "0 7\n")
        assert (graph.vertices, graph.edges, graph.labels) == (8, 1, None)

    def test_words_become_sorted_labels(self, read) -> None:
        graph = read("e.tsv", "# kin\nseth\tadam\nadam\têve\n10 seth\n", directed=True)
        assert graph.labels.tolist() == ["10", "adam", "seth", "êve"]
        assert arcs(graph) == [(0, 2), (1, 3), (2, 1)]
        assert not read("e.tsv", "a b\nb c\n").directed

    def test_large_gaps_are_refused_or_relabelled(self, read) -> None:
        content = "0 3\n404647567 38719238\n"
        with pytest.raises(
            GraphFormatError, match=r"e\.txt:2: largest id 404647567 .*relabel=True"
        ):
            read("e.txt", content)
        graph = read("e.txt", content, relabel=True)
        assert graph.labels.tolist() == ["0", "3", "38719238", "404647567"]
        assert arcs(graph) == [(0, 1), (1, 0), (2, 3), (3, 2)]
        assert graph.vertex_of("38719238") == 2

    def test_negative_ids_are_refused_or_relabelled(self, read) -> None:
        with pytest.raises(GraphFormatError, match=r"e\.txt:3: negative id; relabel=True"):
            read("e.txt", "# a\n0 1\n1 -2\n")
        assert read("e.txt", "0 1\n1 -2\n", relabel=True).labels.tolist() == ["-2", "0", "1"]

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (4, "expected two integer ids, got '5'", "# a\n0 1\n\n5\n"),
            (2, "expected two integer ids, got '1 x'", "0 1\n1 x\n"),
            (2, "expected two integer ids, got '1.5 2'", "0 1\n1.5 2\n"),
            (2, "expected two integer ids", "0 1\n1 99999999999999999999\n"),
            (3, "expected two vertices, got 'c' alone", "a b\nb c\nc\n"),
            (2, "expected two vertices, got '1;2' alone", "a b\n1;2\n"),
        ],
    )
    def test_faults_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"e\.txt:{line}: {message}"):
            read("e.txt", content)

    def test_what_is_no_utf8_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "e.txt").write_bytes(b"adam seth\n\xff\xfe x\n")
        with pytest.raises(GraphFormatError, match=r"e\.txt:2: neither text in UTF-8"):
            read_graph(tmp_path / "e.txt")

    def test_nothing_but_comments_is_refused(self, read) -> None:
        with pytest.raises(GraphFormatError, match=r"e\.txt: no edge in the file"):
            read("e.txt", "# 0 1\n\n")

    def test_a_metis_file_under_another_name_is_refused(self, read) -> None:
        with pytest.raises(GraphFormatError, match="first line is a METIS header"):
            read("e.txt", "4 5\n2 3\n1 3 4\n1 2 4\n2 3\n")


class TestMetis:
    @pytest.mark.parametrize(
        "content",
        [
            "6 4\n2 3\n1 3\n1 2\n\n6\n5\n",
            "6 4 0\n2 3\n1 3\n1 2\n\n6\n5\n",
            "% c\n6 4 1\n2 9 3 8\n% c\n1 9 3 7\n1 8 2 7\n\n6 5\n5 5\n",
            "6 4 10\n7 2 3\n7 1 3\n7 1 2\n7\n7 6\n7 5\n",
            "6 4 11\n7 2 9 3 8\n7 1 9 3 7\n7 1 8 2 7\n7\n7 6 5\n7 5 5\n",
            "6 4 011 2\n7 7 2 9 3 8\n7 7 1 9 3 7\n7 7 1 8 2 7\n7 7\n7 7 6 5\n7 7 5 5\n",
            "6 4 100\n1 2 3\n1 1 3\n1 1 2\n1\n1 6\n1 5\n",
            "6 4 110 2\n1 7 7 2 3\n1 7 7 1 3\n1 7 7 1 2\n1 7 7\n1 7 7 6\n1 7 7 5\n\n\n",
        ],
    )
    def test_weights_comments_and_isolated_vertices(self, content: str, read) -> None:
        graph = read("m.graph", content)
        assert arcs(graph) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (4, 5), (5, 4)]
        assert graph.degrees.tolist() == [2, 2, 2, 0, 1, 1]
        assert (graph.edges, graph.directed) == (4, False)

    def test_trailing_isolated_vertices(self, read) -> None:
        assert read("m.graph", "4 1\n2\n1\n\n\n").degrees.tolist() == [1, 1, 0, 0]
        assert read("m.graph", "3 0\n\n\n\n").vertices == 3

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (2, "expected the header", "% c\nsix four\n"),
            (1, "expected the header", "6 4 2\n"),
            (3, "3 vertices declared, 2 rows found", "3 2\n2\n1 3"),
            (4, "2 vertices declared, 3 rows found", "2 1\n2\n1\n1"),
            (3, "neighbour 0 is not in 1 to 3", "3 2\n2\n0 3\n2\n"),
            (2, "neighbour 4 is not in 1 to 3", "3 2\n4\n1 3\n2\n"),
            (4, "expected integers, got '2 x'", "3 2\n2\n1 3\n2 x\n"),
            (3, "expected integers, got '9999", "% c\n3 2\n99999999999999999999\n1 3\n2\n"),
            (3, "3 numbers do not fit fmt 1: 0 for the vertex, then 2", "2 1 1\n2 5\n1 5 1\n"),
            (3, "0 numbers do not fit fmt 10", "2 0 10\n7\n\n"),
            (1, "3 edges declared, so 6 neighbours, but 4 found", "3 3\n2\n1 3\n2\n"),
        ],
    )
    def test_faults_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"m\.graph:{line}: {message}"):
            read("m.graph", content)

    def test_an_edge_in_one_row_only_is_refused(self, read) -> None:
        with pytest.raises(GraphFormatError, match="missing from the row of one of its ends"):
            read("m.graph", "3 1\n2 3\n\n\n")


class TestGr:
    def test_dimacs_is_directed_and_weights_do_not_matter(self, read) -> None:
        graph = read("r.gr", "c USA\nc\np sp 4 3\na 1 2 803\nc mid\na 2 3 0\na 1 2 5\n")
        assert arcs(graph) == [(0, 1), (0, 1), (1, 2)]
        assert (graph.directed, graph.vertices) == (True, 4)
        assert read("r.gr", "p sp 2 1\na 1 2 3\n", directed=False).edges == 1

    def test_pace_is_undirected(self, read) -> None:
        graph = read("r.gr", "c treewidth\np tw 4 2\n1 2\nc mid\n2 3\n")
        assert (arcs(graph), graph.directed) == ([(0, 1), (1, 0), (1, 2), (2, 1)], False)
        assert graph.vertices == 4

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (2, "expected 'e' and two integer ids", "p edge 3 2\n1 2\n2 3\n"),
            (3, "expected 'a' and two integer ids", "p sp 3 2\na 1 2 4\n2 3 4\n"),
            (2, "expected 'p sp VERTICES EDGES', got 'p sp 3'", "c\np sp 3\na 1 2 1\n"),
            (1, "expected 'p tw VERTICES EDGES'", "p tw -3 2\n1 2\n"),
            (1, "2 edges declared, but 1 found", "p tw 3 2\n1 2\n"),
            (2, "1 edges declared, but 2 found", "c\np tw 3 1\n1 2\n2 3\n"),
            (1, "2 edges declared, but 0 found", "p sp 3 2\n"),
            (3, r"ids \[0 2\] are not in 1 to 3", "p tw 3 2\n1 2\n0 2\n"),
            (4, r"ids \[1 4\] are not in 1 to 3", "p sp 3 2\na 1 2 5\n\na 1 4 5\n"),
            (3, "expected 'a' and two integer ids, got 'e 2 3 1'", "p sp 3 2\na 1 2 1\ne 2 3 1\n"),
            (3, "expected two integer ids, got 'a 1 2 1'", "p tw 3 2\n1 2\na 1 2 1\n"),
            (1, "a graph needs at least one vertex", "p tw 0 0\n"),
        ],
    )
    def test_faults_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"r\.gr:{line}: {message}"):
            read("r.gr", content)
