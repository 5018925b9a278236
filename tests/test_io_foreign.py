"""Text of other formats, or of none: refused by name or by line, never made a graph."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from persistent_bfs.io import GraphFormatError, read_graph

FOREIGN = {
    "graphml": ('<?xml version="1.0"?>\n<graphml><graph/></graphml>', "read_graphml and Graph.fr"),
    "graphml-comment": ("<?xml?><!-- a -->\n<graphml>\n", "GraphML"),
    "gexf": ('<gexf version="1.3"><graph/></gexf>', "read_gexf"),
    "html": ("<!DOCTYPE html>\n<html><body>404 not found</body></html>\n", "a web page"),
    "rdf": ('<http://a.b/c> <http://a.b/knows> "d" .\n', "XML or RDF"),
    "json-list": ("[[0, 1], [1, 2]]\n", "JSON.*json.load"),
    "json-graph": ('{"nodes": [{"id": 0}],\n "links": []}\n', "JSON"),
    "python-pairs": ("(0, 1)\n(1, 2)\n", "list of Python"),
    "gml": ('Creator "me"\ngraph [\n  node [\n id 0 ]\n]\n', "GML.*read_gml"),
    "gml-next-line": ("graph\n[\n node [ id 0 ]\n]\n", "GML"),
    "pajek": ('*Vertices 2\n1 "a"\n2 "b"\n*Edges\n1 2\n', "Pajek.*read_pajek"),
    "pajek-network": ("% by hand\r\n*Network x\n*vertices 2\n", "Pajek"),
    "dot": ("// map\ngraph roads {\n  a -- b;\n}\n", "DOT.*read_dot"),
    "dot-directed": ('strict digraph "G" {\n  a -> b;\n}\n', "DOT"),
    "leda": ("LEDA.GRAPH\nstring\nint\n-1\n2\n|{a}|\n", "LEDA"),
    "graph6": (">>graph6<<DQc\n", "graph6"),
    "sparse6": (">>sparse6<<:Fa@x^\n", "sparse6"),
    "ucinet": ("dl n=3\nformat = edgelist1\ndata:\n1 2\n", "UCINET"),
    "cnf": ("c a formula\np cnf 3 2\n1 -2 0\n2 3 0\n", r"DIMACS 'p cnf' \(a formula"),
    "maximum-flow": ("p max 4 2\nn 1 s\nn 4 t\na 1 2 5\n", "DIMACS 'p max'"),
    "minimum-cost": ("p min 4 2\nn 1 4\na 1 2 0 4 2\n", "DIMACS 'p min'"),
    "sources": ("p aux sp ss 3\ns 1\n", "DIMACS 'p aux'"),
    "adjacency-list": ("# nx\n0 1 2\n1 3\n2\n3\n", ":4: expected two integer ids, got '2'"),
    "adjacency-lists": ("0 1 2\n1 3\n2 3\n3 0 1 2\n", ":2: 3 numbers in the first line, 2 here"),
    "adjacency-matrix": ("0 1 0\n1 0 1\n0 1 0\n", "a matrix of 3 x 3 numbers"),
    "adjacency-matrix-commas": ("0,1,0\n1,0,1\n0,1,0\n", "a matrix of 3 x 3 numbers"),
    "weight-matrix": ("0 3 0 0 1\n" * 5, "a matrix of 5 x 5 numbers"),
    "matrix-with-names": (",a,b\na,0,1\nb,1,0\n", "an empty name"),
    "counts-first": (
        "4 5\n0 1\n0 2\n0 3\n1 2\n1 3\n",
        ":1: the first line counts 4 vertices and 5 edges: remove it",
    ),
    "points": ("0.5 1.5\n2.5 1.0\n", ":1: expected two integer ids, got '0.5 1.5'"),
    "saved-as-floats": ("0.0e+00 1.0e+00\n1.0e+00 2.0e+00\n", "expected two integer ids"),
    "prose": ("It was the best of times\nit was the worst\n", ":1: expected two vertices and at"),
    "triples": ("alice knows bob\nbob knows carol\n", ":1: expected two vertices and at most num"),
    "markdown": ("| a | b |\n|---|---|\n| 0 | 1 |\n", ":1: "),
    "yaml": ("a: b\nc: d\n", ":1: 'a:' is a piece of another format"),
    "toml": ("a = 1\nb = 2\n", ":1: '=' is no name"),
    "ini": ("[edges]\na = b\n", "JSON"),
    "arrows": ("a->b\nb->c\n", ":1: expected two vertices, got 'a->b' alone"),
    "arrows-apart": ("a -> b\nb -> c\n", ":1: expected two vertices and at most numbers"),
    "prolog": ("edge(a, b).\nedge(b, c).\n", r":1: 'edge\(a' is a piece of another format"),
    "sql": ("INSERT INTO e VALUES (1, 2);\n", ":1: an empty name"),
    "newick": ("a,(c,d)\nb,(a,c)\n", r":1: '\(c' is a piece of another format"),
    "open-quote": ('"a","b"\n"c,"d"\n', r":2: .*expected after '\"'"),
    "quote-over-lines": ('a,"b\nc,d",e\n', ":1: a quote that does not end in its line"),
    "index-column": (",source,target\n0,0,1\n1,1,2\n", ":1: a header without a name for the first"),
    "later-columns": ("id,source,target\n7,0,1\n8,1,2\n", ":1: .*edges are in columns 2 and 3"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_formats_are_refused_by_name_or_line(name: str, tmp_path: Path) -> None:
    content, message = FOREIGN[name]
    file = tmp_path / "x.txt"
    file.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(GraphFormatError, match=message):
        read_graph(file)
    # Nor do they become a graph where no extension says anything, or another does.
    for other in ("x", "x.mtx", "x.graph"):
        file = file.rename(tmp_path / other)
        with pytest.raises(GraphFormatError):
            read_graph(file)


BINARY = {
    b"\x93NUMPY\x01\x00v\x00{'descr'": "NumPy array.*numpy.load",
    b"\x89HDF\r\n\x1a\n\0\0": "HDF5",
    b"MATLAB 5.0 MAT-file, Platform: GLNXA64\0": "loadmat",
    b"PAR1\x15\x04": "read_parquet",
    b"SQLite format 3\0": "SQLite",
    b"\x80\x04\x95\x10\0": "pickles are never loaded",
    b"%PDF-1.7\n%\xe2\xe3": "a PDF",
    b"7z\xbc\xaf\x27\x1c\0\x04": "7z.*decompress it first",
    b"Rar!\x1a\x07\x01\0": "RAR",
    b"\x1f\x9d\x90": "compress",
    b"\x04\x22\x4d\x18\x64": "lz4",
    b"LZIP\x01": "lzip",
    "0 1\n1 2\n".encode("utf-16"): "UTF-16.*save it as UTF-8",
    b"0 1\n\0\0": "a binary file of no known format",
}


@pytest.mark.parametrize("content", BINARY, ids=lambda content: repr(content[:6]))
def test_binary_files_are_refused_by_name(content: bytes, tmp_path: Path) -> None:
    for name in ("x.txt", "x.bin"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(GraphFormatError, match=BINARY[content]):
            read_graph(tmp_path / name)


@pytest.mark.parametrize(
    "content", ["adam seth\n", "0 1\nadam seth\n", "0\n", "0 1 # x\nx\n", "\n"]
)
def test_an_unknown_extension_needs_content_that_proves_the_format(content, tmp_path) -> None:
    for name in ("names", "names.dat", "names.md"):
        (tmp_path / name).write_text(content)
        with pytest.raises(GraphFormatError, match=f"{name}: (of no known format|an empty file)"):
            read_graph(tmp_path / name)


def test_an_unknown_extension_is_read_if_the_format_is_said_or_plain(tmp_path: Path) -> None:
    file = tmp_path / "out.moreno"
    file.write_text("adam seth\n")
    assert read_graph(file, format="edgelist").labels.tolist() == ["adam", "seth"]
    file.write_text("% sym\n% 2 3 3\n1 2 1 1e9\n2 3 1 1e9\n")
    assert read_graph(file).edges == 2
    file.write_text("0,1\n1,2")
    assert read_graph(file).edges == 2


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("mark", "name"), [("%", "x.txt"), ("#", "x.dat"), ("c", "x.gr")])
def test_many_comments_with_crlf_are_refused_at_once(mark: str, name: str, tmp_path: Path) -> None:
    # A pattern that can match a carriage return in two ways takes 2**100 steps.
    (tmp_path / name).write_bytes((mark + " note\r\n").encode() * 100)
    with pytest.raises(GraphFormatError):
        read_graph(tmp_path / name)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.dat", "x.gr", "x.graph", "x.mtx"])
@pytest.mark.parametrize("run", ["9", " ", "\t", "\r", "<!", "p ", "\n", "#", '"', "("])
def test_long_runs_of_one_character_are_read_at_once(run: str, name: str, tmp_path: Path) -> None:
    for content in (run * 100_000, f"p {run * 100_000} x", f"0 {run * 9999}", f"{run * 99_999}x y"):
        (tmp_path / name).write_text(content, newline="")
        with suppress(GraphFormatError):
            assert read_graph(tmp_path / name).vertices <= 2
