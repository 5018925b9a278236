"""Formats that are not read here, known by how they begin, each with what to do about it."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["foreign"]


class Foreign(NamedTuple):
    """A format, the pattern that its files begin with, and the remedy."""

    name: str
    begins: re.Pattern[bytes]
    remedy: str


def _by_networkx(function: str) -> str:
    return f"read it with networkx.{function} and Graph.from_networkx"


DECOMPRESS = "decompress it first"
# Each line is matched in one way: a pattern that lets two of its parts take a CR takes for ever.
HASHES = rb"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*"
XML = rb"\s*(?:<[?!][^>]*>\s*)*"

BINARY = (
    ("a NumPy array (.npy)", rb"\x93NUMPY", "load it with numpy.load, then Graph.from_edges"),
    ("an HDF5 or MATLAB 7.3 file", rb"\x89HDF", "load it with h5py, then Graph.from_scipy"),
    ("a MATLAB file", rb"MATLAB 5\.0", "load it with scipy.io.loadmat, then Graph.from_scipy"),
    ("a Parquet file", rb"PAR1", "load it with pandas.read_parquet, then Graph.from_edges"),
    ("an SQLite database", rb"SQLite format 3", "query it with sqlite3, then Graph.from_edges"),
    ("a pickle", rb"\x80[\x02-\x05]", "pickles are never loaded from files here"),
    ("a PDF", rb"%PDF-", "give the graph file itself"),
    ("a 7z archive", rb"7z\xbc\xaf\x27\x1c", DECOMPRESS),
    ("a RAR archive", rb"Rar!\x1a", DECOMPRESS),
    ("compressed by compress (.Z)", rb"\x1f\x9d", DECOMPRESS),
    ("compressed by lz4", rb"\x04\x22\x4d\x18", DECOMPRESS),
    ("compressed by lzip", rb"LZIP", DECOMPRESS),
    ("text in UTF-16", rb"\xff\xfe|\xfe\xff", "save it as UTF-8"),
)
TEXT = (
    ("GraphML", XML + rb"<graphml\b", _by_networkx("read_graphml")),
    ("GEXF", XML + rb"<gexf\b", _by_networkx("read_gexf")),
    ("a web page", XML + rb"<(?:html|head|body)\b|\s*<!doctype html", "download the file itself"),
    ("XML or RDF", rb"\s*<", "convert it to an edge list"),
    (
        "JSON",
        rb"\s*[\[{]",
        "load it with json.load, then Graph.from_edges or networkx.node_link_graph",
    ),
    ("a list of Python's or Lisp's", rb"\s*\(", "build it with Graph.from_edges"),
    (
        "GML",
        rb"(?:[ \t\r]*(?:(?:creator|version|comment|#)[^\n]*)?\n)*[ \t]*graph\s*\[",
        _by_networkx("read_gml"),
    ),
    (
        "Pajek",
        rb"(?:[ \t\r]*(?:%[^\n]*)?\n)*[ \t]*"
        rb"\*(?:network|vertices|arcs|edges|arcslist|edgeslist|matrix|partition|vector)\b",
        _by_networkx("read_pajek"),
    ),
    (
        "DOT (Graphviz)",
        rb"(?:[ \t\r]*(?:(?://|#|/\*)[^\n]*)?\n)*[ \t]*(?:strict\s+)?(?:di)?graph\b[^\[{]*\{",
        _by_networkx("nx_agraph.read_dot"),
    ),
    ("LEDA", HASHES + rb"LEDA\.GRAPH", _by_networkx("read_leda")),
    ("graph6", rb"\s*>>(?:di)?graph6<<", _by_networkx("read_graph6")),
    ("sparse6", rb"\s*>>sparse6<<", _by_networkx("read_sparse6")),
    ("UCINET DL", rb"\s*dl\s+(?:n\s*=|nr?\s)", "convert it to an edge list"),
)
FORMATS = tuple(
    Foreign(name, re.compile(begins, re.IGNORECASE), remedy)
    for name, begins, remedy in (*BINARY, *TEXT)
)
DIMACS = re.compile(rb"(?:[ \t\r]*(?:c\b[^\n]*)?\n)*[ \t]*p[ \t]+([a-z]+)[ \t][^\n]*\d")
PROBLEMS = {
    b"cnf": "a formula, not a graph",
    b"sat": "a formula, not a graph",
    b"max": "a maximum-flow network",
    b"min": "a minimum-cost-flow network",
    b"asn": "an assignment problem",
    b"aux": "sources and targets, not a graph",
}


def foreign(head: bytes) -> str | None:
    """Return what a file is that begins with ``head`` and is not read here, None if not known."""
    for known in FORMATS:
        if known.begins.match(head):
            return f"{known.name}, which is not read here: {known.remedy}"
    problem = DIMACS.match(head)
    if problem:
        name = problem[1].decode()
        what = PROBLEMS.get(problem[1], "a problem unknown here")
        return (
            f"DIMACS 'p {name}' ({what}), which is not read here: of DIMACS files, "
            "'p sp', 'p edge' and 'p col' are"
        )
    return None
