"""Edge lists as the SNAP collection keeps them: two vertices a line, ``#`` or ``%`` for comments.

The vertices are integers, taken as ids from 0 (a gap makes isolated vertices), or words, which
become labels: ids follow their sorted order. The first edge decides which. Columns after the second
(weights, times) are ignored. Undirected unless the caller says ``directed=True``.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import Graph, check_id_gap
from persistent_bfs.io.source import Options, Source, count_tokens, line_of_row, without_comments


def read(source: Source, options: Options) -> Graph:
    """Read an edge list of integers or of words."""
    body = without_comments(source.data, rb"#%")
    first = body.split(maxsplit=2)[:2]
    if not first:
        source.fail("no edge in the file")
    integral = all(re.fullmatch(rb"[+-]?\d+", token) for token in first)
    return (_read_integers if integral else _read_words)(source, body, options)


def _read_integers(source: Source, body: bytes, options: Options) -> Graph:
    ends = source.integers(body, (0, 1), "two integer ids")
    tokens = count_tokens(body)
    # A METIS file under another name would be read without complaint, and wrongly.
    if tokens % len(ends) and tokens == 2 + 2 * ends[0, 1]:
        source.fail("not an edge list: the first line is a METIS header; give format='metis'")
    directed = bool(options.directed)
    if options.relabel:
        ids, s, t = _relabelled(*ends.T)
        return Graph.from_edges(s, t, directed=directed, labels=ids.astype(np.str_))
    if ends.min() < 0:
        row = int(np.argmax((ends < 0).any(axis=1)))
        source.fail("negative id; relabel=True accepts any ids", line_of_row(body, row))
    try:
        check_id_gap(int(ends.max()), len(ends))
    except ValueError as error:
        row = int(np.argmax(ends.max(axis=1)))
        source.fail(f"{error}; relabel=True numbers them afresh", line_of_row(body, row))
    return Graph.from_edges(*ends.T, directed=directed)


def _read_words(source: Source, body: bytes, options: Options) -> Graph:
    pairs: list[list[str]] = []
    for number, line in enumerate(body.split(b"\n"), 1):
        try:
            words = line.decode().split(maxsplit=2)
        except UnicodeDecodeError:
            source.fail("neither text in UTF-8 nor a known binary format", number)
        if len(words) >= 2:
            pairs.append(words[:2])
        elif words:
            source.fail(f"expected two vertices, got {words[0]!r} alone", number)
    labels, s, t = _relabelled(*np.array(pairs, dtype=np.str_).T)
    return Graph.from_edges(s, t, directed=bool(options.directed), labels=labels)


def _relabelled(sources: npt.NDArray[Any], targets: npt.NDArray[Any]) -> tuple[Any, Any, Any]:
    """Return the sorted distinct names, and both ends as ranks among them."""
    names, ranks = np.unique(np.stack([sources, targets]), return_inverse=True)
    return names, *ranks.reshape(2, -1)
