"""The two text formats that share the extension ``.gr``, told apart by their ``p`` line.

- DIMACS 9 (shortest paths): ``p sp n m``, then m lines ``a u v weight``: directed arcs.
- PACE (treewidth): ``p tw n m``, then m lines ``u v``: undirected edges.

Ids begin at 1; lines that begin with ``c`` are comments.

Sources: 9th DIMACS Implementation Challenge, 2006; PACE challenge, 2016.
"""

from __future__ import annotations

import re

import numpy as np

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import Options, Source, line_of_row, without_comments

PROBLEM = re.compile(rb"(?m)^[ \t]*p[ \t]+(\w+)([^\n]*)")


def looks_like(head: bytes, problem: bytes) -> bool:
    """Whether the first line that is no ``c`` comment is a ``p`` line of this problem."""
    match = re.match(rb"(?:[ \t]*(?:c[^\n]*)?\r?\n)*[ \t]*p[ \t]+(\w+)", head)
    return match is not None and match[1] == problem


def read_dimacs(source: Source, options: Options) -> Graph:  # noqa: ARG001
    """Read a DIMACS 9 shortest-path graph, its weights skipped."""
    return _read(source, b"sp", directed=True)


def read_pace(source: Source, options: Options) -> Graph:  # noqa: ARG001
    """Read a PACE graph."""
    return _read(source, b"tw", directed=False)


def _read(source: Source, problem: bytes, *, directed: bool) -> Graph:
    wanted = f"p {problem.decode()} VERTICES EDGES"
    data = without_comments(source.data, b"c")
    match = PROBLEM.search(data)
    if match is None or data[: match.start()].strip():
        source.fail(f"the first line should read '{wanted}'", 1)
    number = data.count(b"\n", 0, match.start()) + 1
    sizes = match[2].split()
    if match[1] != problem or len(sizes) != 2 or not all(size.isdigit() for size in sizes):
        source.fail(f"expected '{wanted}', got {match[0].decode(errors='replace')!r}", number)
    vertices, declared = int(sizes[0]), int(sizes[1])
    body = b"\n" * (number - 1) + data[match.end() :]
    what = "two integer ids"
    if directed:
        # With the letters gone what is left is a table of integers, or an error. Plain replacement
        # is ten times as fast as a pattern that matches on every line.
        body = re.sub(rb"(?m)^(?:[ \t]+a[ \t]|a\t)", b"a ", body)
        body = (b"\n" + body).replace(b"\na ", b"\n ")[1:]
        what = "'a' and two integer ids"
    ends = source.integers(body, (0, 1), what)
    bad = ((ends < 1) | (ends > vertices)).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        source.fail(f"ids {ends[row]} are not in 1 to {vertices}", line_of_row(body, row))
    if len(ends) != declared:
        source.fail(f"{declared:,} edges declared, but {len(ends):,} found", number)
    try:
        return Graph.from_edges(*(ends.T - 1), vertices=vertices, directed=directed)
    except ValueError as error:
        source.fail(str(error), number)
