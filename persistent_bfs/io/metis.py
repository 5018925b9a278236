"""METIS adjacency lists: line i after the header holds the neighbours of vertex i, from 1.

The header is ``n m [fmt [ncon]]``. The digits of ``fmt`` say, from the right, whether edges have
weights, whether vertices have (``ncon`` each), and whether vertices have sizes. A blank line is an
isolated vertex; lines that begin with % are comments. Every edge stands in both its rows.

Source: Karypis, METIS 5.1 manual, section 4.1.1.
"""

from __future__ import annotations

import io
import re

import numpy as np

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import Options, Source, count_tokens, quote, tokens_per_line

HEADER = re.compile(rb"\s*(\d{1,18})\s+(\d{1,18})(?:\s+([01]{1,3})(?:\s+(\d{1,9}))?)?\s*")
ONE_A_LINE = bytes.maketrans(b" \t\r\v\f", b"\n" * 5)


def read(source: Source, options: Options) -> Graph:  # noqa: ARG001 (weights are not structure)
    """Read a METIS graph, its weights skipped."""
    # Unlike blank lines, comments are no rows: they go, with their line ends.
    text = re.sub(rb"(?m)^[ \t]*%[^\n]*(?:\n|\Z)", b"", source.data)
    blank = re.match(rb"(?:[ \t\r]*\n)*", text)
    start = blank.end() if blank else 0
    end = text.find(b"\n", start)
    header = text[start:] if end < 0 else text[start:end]
    body = b"" if end < 0 else text[end + 1 :]
    skipped = text.count(b"\n", 0, start) + 1
    if not header.strip():
        source.fail("no header in the file")
    match = HEADER.fullmatch(header)
    if match is None:
        source.fail(
            "expected the header: vertices, edges, and perhaps fmt, ncon", _line(source, skipped)
        )
    vertices, edges = int(match[1]), int(match[2])
    has_sizes, has_weights, has_edge_weights = (digit == 49 for digit in (match[3] or b"").zfill(3))
    skip = has_sizes + (int(match[4] or 1) if has_weights else 0)
    stride = 1 + has_edge_weights

    def line_of(row: int) -> int:
        return _line(source, skipped + 1 + row)

    # The last row needs no line end; blank lines beyond the rows count for nothing.
    written = 0 if end < 0 else body.count(b"\n") + 1
    filled = body.rstrip()
    full = filled.count(b"\n") + bool(filled)
    if not full <= vertices <= written:
        found = full if full > vertices else written
        source.fail(f"{vertices:,} vertices declared, {found:,} rows found", _last_line(source))
    tokens = count_tokens(body)
    source.reserve_graph(vertices, tokens, line_of(-1), also=64 * tokens)
    counts = tokens_per_line(body)[:vertices]
    ragged = (counts < skip) | ((counts - skip) % stride != 0)
    if ragged.any():
        row = int(np.argmax(ragged))
        source.fail(
            f"{counts[row]} numbers do not fit fmt {(match[3] or b'0').decode()}: {skip} for the "
            f"vertex, then {stride} an edge",
            line_of(row),
        )

    try:
        values = source.integers(body.translate(ONE_A_LINE), (0,), "integers")[:, 0]
    except ValueError:
        # The line in that error is the rearranged body's; find the file's own.
        for row, line in enumerate(io.BytesIO(body)):
            if not all(re.fullmatch(rb"[+-]?\d{1,18}", word) for word in line.split()):
                source.fail(f"expected integers, got {quote(line)}", line_of(row))
        raise
    if values.size != counts.sum():
        source.fail("control characters between the numbers")
    row_of = np.repeat(np.arange(vertices), counts)
    place = np.arange(values.size) - np.repeat(counts.cumsum() - counts, counts)
    is_neighbour = (place >= skip) & ((place - skip) % stride == 0)
    s, t = row_of[is_neighbour], values[is_neighbour]
    bad = (t < 1) | (t > vertices)
    if bad.any():
        arc = int(np.argmax(bad))
        source.fail(f"neighbour {t[arc]} is not in 1 to {vertices}", line_of(int(s[arc])))
    if t.size != 2 * edges:
        source.fail(
            f"{edges:,} edges declared, so {2 * edges:,} neighbours, but {t.size:,} found",
            line_of(-1),
        )
    try:
        graph = Graph.from_edges(s, t - 1, vertices=vertices)
    except ValueError as error:
        source.fail(str(error), line_of(-1))
    if graph.edges > edges:
        source.fail("an edge is missing from the row of one of its ends")
    return graph


def _line(source: Source, number: int) -> int:
    """Return where in the file line ``number`` of those that are no comments stands."""
    lines = (
        at
        for at, line in enumerate(io.BytesIO(source.data), 1)
        if not line.lstrip(b" \t").startswith(b"%")
    )
    return next((at for found, at in enumerate(lines, 1) if found == number), _last_line(source))


def _last_line(source: Source) -> int:
    return source.data.count(b"\n") + 1
