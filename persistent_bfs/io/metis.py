"""METIS adjacency lists: line i after the header holds the neighbours of vertex i, from 1.

The header is ``n m [fmt [ncon]]``. The digits of ``fmt`` say, from the right, whether edges have
weights, whether vertices have (``ncon`` each), and whether vertices have sizes. A blank line is an
isolated vertex; lines that begin with % are comments. Every edge stands in both its rows.

Source: Karypis, METIS 5.1 manual, section 4.1.1.
"""

from __future__ import annotations

import re

import numpy as np

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import Options, Source, quote


def read(source: Source, options: Options) -> Graph:  # noqa: ARG001 (weights are not structure)
    """Read a METIS graph, its weights skipped."""
    numbered = [
        (number, line)
        for number, line in enumerate(source.data.split(b"\n"), 1)
        if not line.lstrip().startswith(b"%")
    ]
    first = next((i for i, (_, line) in enumerate(numbered) if line.strip()), None)
    if first is None:
        source.fail("no header in the file")
    header_line, header = numbered[first]
    match = re.fullmatch(rb"\s*(\d{1,18})\s+(\d{1,18})(?:\s+([01]{1,3})(?:\s+(\d+))?)?\s*", header)
    if match is None:
        source.fail("expected the header: vertices, edges, and perhaps fmt, ncon", header_line)
    vertices, edges = int(match[1]), int(match[2])
    has_sizes, has_weights, has_edge_weights = (digit == 49 for digit in (match[3] or b"").zfill(3))
    skip = has_sizes + (int(match[4] or 1) if has_weights else 0)
    stride = 1 + has_edge_weights

    rows = numbered[first + 1 :]
    while len(rows) > vertices and not rows[-1][1].strip():
        rows.pop()
    if len(rows) != vertices:
        source.fail(f"{vertices:,} vertices declared, {len(rows):,} rows found", numbered[-1][0])
    tokens = [line.split() for _, line in rows]
    counts = np.array([len(row) for row in tokens], dtype=np.int64)
    ragged = (counts < skip) | ((counts - skip) % stride != 0)
    if ragged.any():
        row = int(np.argmax(ragged))
        source.fail(
            f"{counts[row]} numbers do not fit fmt {match[3].decode()}: {skip} for the vertex, "
            f"then {stride} an edge",
            rows[row][0],
        )

    body = b"\n".join(b"\n".join(row) for row in tokens if row)
    try:
        values = source.integers(body, (0,), "integers")[:, 0]
    except ValueError:
        # The line in that error is the rearranged body's; find the file's own.
        for (number, line), words in zip(rows, tokens, strict=True):
            if not all(re.fullmatch(rb"[+-]?\d{1,18}", word) for word in words):
                source.fail(f"expected integers, got {quote(line)}", number)
        raise
    row_of = np.repeat(np.arange(vertices), counts)
    place = np.arange(values.size) - np.repeat(counts.cumsum() - counts, counts)
    is_neighbour = (place >= skip) & ((place - skip) % stride == 0)
    s, t = row_of[is_neighbour], values[is_neighbour]
    bad = (t < 1) | (t > vertices)
    if bad.any():
        arc = int(np.argmax(bad))
        source.fail(f"neighbour {t[arc]} is not in 1 to {vertices}", rows[int(s[arc])][0])
    if t.size != 2 * edges:
        source.fail(
            f"{edges:,} edges declared, so {2 * edges:,} neighbours, but {t.size:,} found",
            header_line,
        )
    graph = Graph.from_edges(s, t - 1, vertices=vertices)
    if graph.edges > edges:
        source.fail("an edge is missing from the row of one of its ends")
    return graph
