"""Edge lists with tabs, commas or semicolons, headers and comments: what is a column."""

from __future__ import annotations

from pathlib import Path

import pytest

from persistent_bfs.graph import Graph
from persistent_bfs.io import GraphFormatError, GraphFormatWarning, read_graph


@pytest.fixture(name="read")
def read_fixture(tmp_path: Path):
    def read(name: str, content: str, **options: object) -> Graph:
        file = tmp_path / name
        file.write_text(content, encoding="utf-8", newline="")
        return read_graph(file, **options)

    return read


def edges(graph: Graph) -> list[tuple[str, str]]:
    """Every edge once, by the labels of its ends."""
    pairs = zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True)
    return [(graph.label_of(u), graph.label_of(v)) for u, v in pairs if u < v]


CITIES = [("Berlin", "New York"), ("Lima", "San Jose"), ("New York", "San Jose")]


@pytest.mark.parametrize(
    "content",
    [
        "Berlin\tNew York\nNew York\tSan Jose\nSan Jose\tLima\n",
        "Berlin\tNew York\r\nNew York\tSan Jose\r\nSan Jose\tLima",
        "# flights\n  Berlin\tNew York\t3 hours\n\nNew York \t San Jose\t\nSan Jose\tLima\t\n",
        "Berlin,New York\nNew York,San Jose\nSan Jose,Lima\n",
        '"Berlin", "New York", 7\n"New York","San Jose"\nSan Jose,Lima\n',
        "Berlin;New York;1,5\nNew York;San Jose;2,5\nSan Jose;Lima;3,5\n",
        "Berlin\tNew York\rNew York\tSan Jose\rSan Jose\tLima\r",
    ],
    ids=["tabs", "crlf", "more-columns", "commas", "quotes", "semicolons", "cr-alone"],
)
@pytest.mark.parametrize("name", ["x.txt", "x.tsv", "x.csv"])
def test_what_every_line_has_separates_names_with_blanks(content, name, read) -> None:
    graph = read(name, content)
    assert graph.labels.tolist() == ["Berlin", "Lima", "New York", "San Jose"]
    assert edges(graph) == CITIES


def test_blanks_separate_where_some_line_has_no_tab(read) -> None:
    assert edges(read("x.tsv", "a\tb\nb c\n")) == [("a", "b"), ("b", "c")]
    with pytest.raises(GraphFormatError, match=r"x\.tsv:1: .*names with blanks need tabs"):
        read("x.tsv", "New York\tLima\nLima Quito\n")


@pytest.mark.parametrize(
    "content",
    [
        "0, 1\n1, 2\n2, 3\n",
        "0,1\n1,2\n2,3",
        "0;1;0,5\n1;2;0,5\n2;3;0,5\n",
        '"0","1"\n"1","2"\n"2","3"\n',
        "0\t1\tx y\n1\t2\t\n2\t3\tz\n",
        "# a\n0,1\n\n 1 , 2\n2,3,\r\n",
        "0 1\t\n1 2\t\n2 3\t\n",
    ],
)
def test_integers_stay_integers_whatever_separates_them(content: str, read) -> None:
    graph = read("x.csv", content)
    assert (graph.vertices, graph.edges, graph.labels) == (4, 3, None)
    assert graph.col_indices.tolist() == [1, 0, 2, 1, 3, 2]


@pytest.mark.parametrize(
    ("header", "mark"),
    [
        ("source target", " "),
        ("source\ttarget\n", "\t"),
        ("Source,Target,Weight", ","),
        ("# FromNodeId ToNodeId\nid_1,id_2", ","),
        ("user;friend", ";"),
        ("from 2", " "),
    ],
)
def test_a_header_over_integers_is_passed_over_aloud(header: str, mark: str, read) -> None:
    rows = "".join(f"{u}{mark}{v}\n" for u, v in ((0, 1), (1, 2), (2, 10)))
    line = header.rstrip("\n").count("\n") + 1
    with pytest.warns(GraphFormatWarning, match=rf"x\.txt:{line}: the header '.*' is passed over"):
        graph = read("x.txt", f"{header}\n{rows}".replace("\n\n", "\n"))
    assert (graph.vertices, graph.edges, graph.labels) == (11, 3, None)


def test_a_header_of_the_usual_words_is_passed_over_names_too(read) -> None:
    with pytest.warns(GraphFormatWarning, match=r"x\.csv:1: the header 'Source Target Type'"):
        graph = read("x.csv", "Source,Target,Type\nada,bob,x\nbob,eve,y\n")
    assert edges(graph) == [("ada", "bob"), ("bob", "eve")]
    with pytest.warns(GraphFormatWarning):
        assert read("x.txt", "src dst\nada bob\n").labels.tolist() == ["ada", "bob"]


def test_names_above_integers_are_no_header_where_other_names_follow(read) -> None:
    graph = read("x.txt", "seth adam\n10 20\nadam eve\n")
    assert edges(graph) == [("10", "20"), ("adam", "eve"), ("adam", "seth")]


def test_the_line_of_a_fault_under_a_header_is_the_files(read) -> None:
    with pytest.raises(GraphFormatError, match=r"x\.csv:4: negative id"):
        read("x.csv", "# a\nsource,target\n0,1\n1,-2\n")


@pytest.mark.parametrize(
    "content", ["0 1# x\n1 2#y\n", "0 1 # x\n1 2%\n", "0 1 7# x\n1 2 8\n", "0,1# x\n1,2 # y, z\n"]
)
def test_a_comment_may_be_glued_to_a_number(content: str, read) -> None:
    graph = read("x.txt", content)
    assert (graph.vertices, graph.edges, graph.labels) == (3, 2, None)


def test_a_comment_after_names_needs_a_blank(read) -> None:
    graph = read("x.txt", "C# java # sharp\njava go% % x\n")
    assert edges(graph) == [("C#", "java"), ("go%", "java")]
    with pytest.raises(GraphFormatError, match=r":2: expected two vertices, got 'b' alone"):
        read("x.txt", "a b\nb # c\n")


@pytest.mark.parametrize(
    ("line", "message", "content"),
    [
        (2, "expected two integer ids, got '1;2,3'", "0,1\n1;2,3\n"),
        (2, "expected two integer ids, got ',2'", "0,1\n,2\n"),
        (3, "expected two integer ids, got 'a,b'", "0,1\n\na,b\n"),
        (2, "expected ',' between two vertices, got '1;2'", "0,1\n1;2\n"),
        (3, "expected ',' between two vertices, got 'b'", "# x\na,b\nb\n"),
        (2, "an empty name", "a\tb\nb\t\tc\n"),
        (2, "'--' is no name", "a b\nb --\n"),
    ],
)
def test_faults_in_columns_are_named_by_line(line, message, content, read) -> None:
    with pytest.raises(GraphFormatError, match=rf"x\.csv:{line}: .*{message}"):
        read("x.csv", content)


def test_what_only_looks_like_another_format_can_be_said_to_be_an_edge_list(read) -> None:
    counts = "4 5\n0 1\n0 2\n0 3\n1 2\n1 3\n"
    assert read("x.txt", counts, format="edgelist").edges == 6
    assert read("x.txt", "0 1 0\n1 0 1\n0 1 0\n", format="edgelist").edges == 1
    assert read("x.txt", "0 1 7 7\n1 2\n", format="edgelist").edges == 2
    # A star's rows may count as many lines as its centre is far: not all such lines are counts.
    assert read("x.txt", "3 2\n2 1\n1 0\n").edges == 3


def test_a_long_name_does_not_widen_all_labels_beyond_memory(read) -> None:
    lines = "".join(f"a{i} b{i}\n" for i in range(2000)) + "x" * 100_000 + " y\n"
    with pytest.raises(
        GraphFormatError, match=r"4,002 labels as wide as the longest, 100,000 char"
    ):
        read("x.txt", lines)


@pytest.mark.parametrize("blank", [b"\xa0", b"\x85", b"\x1c", b"\x1f"])
def test_odd_blanks_are_no_blanks(blank: bytes, tmp_path: Path) -> None:
    for name, head in (("x.gr", b"p tw 3 0\n"), ("x.txt", b"0 1\n")):
        for odd in (blank * 5, b"1" + blank + b"2"):
            (tmp_path / name).write_bytes(head + odd)
            with pytest.raises(GraphFormatError, match=rf"{name}:2: expected two integer ids"):
                read_graph(tmp_path / name)
    # Where they do not matter they do not hurt.
    (tmp_path / "x.txt").write_bytes(b"0 1 Caf\xe9" + blank + b"\n")
    assert read_graph(tmp_path / "x.txt").edges == 1


class TestColouring:
    def test_edges_may_stand_twice_and_count_once(self, read) -> None:
        once = read("x.col", "c a graph\np edge 5 4\ne 1 2\ne 2 3\ne 3 4\ne 4 5\n")
        assert (once.vertices, once.edges, once.directed) == (5, 4, False)
        twice = read("x.clq", "p col 3 2\nn 1 4\ne 1 2\ne 2 1\ne 2 3\ne 3 2\n")
        assert (twice.vertices, twice.edges) == (3, 2)

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (1, "3 edges declared, but 1 found", "p edge 5 3\ne 1 2\n"),
            (2, r"ids \[1 6\] are not in 1 to 5", "p edge 5 1\ne 1 6\n"),
            (2, "expected 'e' and two integer ids, got '1 2'", "p edge 5 1\n1 2\n"),
            (1, "expected 'p edge VERTICES EDGES', got 'p edge 5'", "p edge 5\ne 1 2\n"),
        ],
    )
    def test_faults_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"x\.col:{line}: {message}"):
            read("x.col", content)


class TestMatrixMarketFaultsOfItsParser:
    """SciPy's parser ends the process on these: it must not see them."""

    @pytest.mark.parametrize(
        ("line", "message", "content"),
        [
            (4, "more values than the 1 declared", "array integer skew-symmetric\n2 2\n1\n1\n"),
            (6, "more values than the 3", "array integer skew-symmetric\n3 3\n" + "1\n" * 999),
            (3, "not text: a NUL character", "coordinate complex general\n2 2 2\n1 2 3\0 4\n"),
        ],
    )
    def test_they_are_named_by_line(self, line, message, content, read) -> None:
        with pytest.raises(GraphFormatError, match=rf"x\.mtx:{line}: {message}"):
            read("x.mtx", f"%%MatrixMarket matrix {content}")

    def test_a_wrong_last_line_needs_no_line_end(self, read) -> None:
        assert read("x.mtx", "%%MatrixMarket matrix array integer general\n1 1\n1F").arcs == 1
        entries = "coordinate complex general\n2 2 2\n1 2 3 4\n2 1 3"
        with pytest.raises(GraphFormatError, match=r"x\.mtx:4: Invalid floating"):
            read("x.mtx", f"%%MatrixMarket matrix {entries}")

    def test_nan_and_infinity_mean_no_edge_in_an_array(self, read) -> None:
        values = "0\n1\ninf\nnan\n0\n2\n1\n0\n0\n"
        graph = read("x.mtx", f"%%MatrixMarket matrix array real general\n3 3\n{values}")
        assert graph.arc_sources().tolist() == [0, 1, 2]
        assert graph.col_indices.tolist() == [2, 0, 1]
