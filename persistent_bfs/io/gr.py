"""The DIMACS text formats: a ``p`` line with the sizes, then a line per edge.

- DIMACS 9 (shortest paths): ``p sp n m``, then m lines ``a u v weight``: directed arcs.
- PACE (treewidth): ``p tw n m``, then m lines ``u v``: undirected edges.
- DIMACS 2 (colouring, cliques): ``p edge n m`` or ``p col n m``, then m lines ``e u v``:
  undirected edges. Some files of that challenge hold every edge twice and count it once; lines that
  begin with ``n``, ``d``, ``v`` or ``x`` describe vertices or a generator and are skipped.

Ids begin at 1; lines that begin with ``c`` are comments.

Sources: 2nd and 9th DIMACS Implementation Challenges, 1993 and 2006; PACE challenge, 2016.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import (
    Options,
    Source,
    data_lines,
    line_of_row,
    quote,
    without_comments,
)


class Problem(NamedTuple):
    """What follows a ``p`` line."""

    words: tuple[bytes, ...]
    directed: bool
    letter: bytes = b""
    """What an edge's line begins with."""
    skipped: bytes = b"c"
    """What lines that are no edges begin with."""
    twice: bool = False
    """Whether a file may hold every edge twice."""


SHORTEST_PATHS = Problem((b"sp",), directed=True, letter=b"a")
TREEWIDTH = Problem((b"tw",), directed=False)
COLOURING = Problem((b"edge", b"col"), directed=False, letter=b"e", skipped=b"cndvx", twice=True)

P_LINE = re.compile(rb"(?m)^[ \t]*p[ \t]+(\w+)([^\n]*)")


def looks_like(head: bytes, problems: tuple[bytes, ...]) -> bool:
    """Whether the first line that is no ``c`` comment is a ``p`` line of one of the problems."""
    match = re.match(rb"(?:[ \t\r]*(?:c[^\n]*)?\n)*[ \t]*p[ \t]+(\w+)", head)
    return match is not None and match[1] in problems


def read_dimacs(source: Source, options: Options) -> Graph:  # noqa: ARG001
    """Read a DIMACS 9 shortest-path graph, its weights skipped."""
    return _read(source, SHORTEST_PATHS)


def read_pace(source: Source, options: Options) -> Graph:  # noqa: ARG001
    """Read a PACE graph."""
    return _read(source, TREEWIDTH)


def read_colouring(source: Source, options: Options) -> Graph:  # noqa: ARG001
    """Read a graph of the DIMACS colouring or clique benchmarks."""
    return _read(source, COLOURING)


def _read(source: Source, problem: Problem) -> Graph:
    wanted = f"p {problem.words[0].decode()} VERTICES EDGES"
    data = without_comments(source.data, problem.skipped)
    match = P_LINE.search(data)
    if match is None or data[: match.start()].strip():
        source.fail(f"the first line should read '{wanted}'", 1)
    number = data.count(b"\n", 0, match.start()) + 1
    sizes = re.fullmatch(rb"\s+(\d{1,18})\s+(\d{1,18})\s*", match[2])
    if match[1] not in problem.words or sizes is None:
        source.fail(f"expected '{wanted}', got {quote(match[0])}", number)
    vertices, declared = int(sizes[1]), int(sizes[2])
    body = b"\n" * (number - 1) + data[match.end() :]
    # An edge takes a line of at least four bytes: the rest cannot be there.
    edges = min(declared, len(body) // 4 + 1) * (2 if problem.twice else 1)
    source.reserve_graph(vertices, edges, number)
    what = "two integer ids"
    if letter := problem.letter:
        # With the letters gone what is left is a table of integers, or an error. Plain replacement
        # is ten times as fast as a pattern that matches on every line.
        body = re.sub(
            rb"(?m)^(?:[ \t]+" + letter + rb"[ \t]|" + letter + rb"\t)", letter + b" ", body
        )
        body = b"\n" + body
        lettered = body.count(b"\n" + letter + b" ")
        body = body.replace(b"\n" + letter + b" ", b"\n ")[1:]
        what = f"'{letter.decode()}' and two integer ids"
    ends = source.integers(body, (0, 1), what)
    if letter and len(ends) != lettered:
        begun = re.compile(rb"\s*" + letter + rb"\s")
        lines = ((n, x) for n, x in data_lines(data) if n > number and not begun.match(x))
        at, line = next(lines, (number, b""))
        source.fail(f"expected {what}, got {quote(line)}", at)
    bad = ((ends < 1) | (ends > vertices)).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        source.fail(f"ids {ends[row]} are not in 1 to {vertices}", line_of_row(body, row))
    if len(ends) != declared and not (problem.twice and len(ends) == 2 * declared):
        source.fail(f"{declared:,} edges declared, but {len(ends):,} found", number)
    try:
        return Graph.from_edges(*(ends.T - 1), vertices=vertices, directed=problem.directed)
    except ValueError as error:
        source.fail(str(error), number)
