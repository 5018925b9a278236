"""Thousands of files that are almost graphs: each a graph or one clear error, in little memory.

``PERSISTENT_BFS_FUZZ_FILES`` and ``PERSISTENT_BFS_FUZZ_SEED`` set how many and which.
"""

from __future__ import annotations

import os
import time
import tracemalloc
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
from mutations import mutated_files

from persistent_bfs.graph import Graph
from persistent_bfs.io import GraphFormatError, GraphFormatWarning, read_graph

FILES = int(os.environ.get("PERSISTENT_BFS_FUZZ_FILES", "2000"))
SEED = int(os.environ.get("PERSISTENT_BFS_FUZZ_SEED", "1"))
BUFFERS = 3 << 20
"""Bytes of buffers, and of what Python itself keeps, beside what a limit bounds."""
MOST = (1 << 30) + (1 << 28)
"""What small files may take where no limit is said."""


def test_no_file_gives_another_error_than_the_readers_or_takes_more_memory_than_it_may(
    tmp_path: Path,
) -> None:
    told: Counter[str] = Counter()
    longest = largest = 0.0
    tracemalloc.start()
    try:
        for number, (name, content, options) in enumerate(islice(mutated_files(SEED), FILES)):
            file = tmp_path / name
            file.write_bytes(content)
            what = f"file {number} of seed {SEED}: {name}, {options}, {content[:200]!r}"
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            start = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", GraphFormatWarning)
                    graph = read_graph(file, **options)
                _check(graph)
                told["graphs"] += 1
                message = name
            except GraphFormatError as error:
                message = str(error)
                told["refused"] += 1
            except BaseException as error:
                raise AssertionError(what) from error
            assert name in message, what
            assert "\n" not in message, what
            assert len(message) < 1500, what
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken <= options.get("memory_limit", MOST) + BUFFERS, (taken, what)
            longest = max(longest, time.perf_counter() - start)
            largest = max(largest, taken)
            assert longest < 30, what
    finally:
        tracemalloc.stop()
    print(dict(told), f"longest {longest:.2f} s, most memory {largest / 2**20:.0f} MiB")
    # The mutator must leave some files whole, or nothing but refusals is tested.
    assert told["graphs"] > FILES // 20
    assert told["refused"] > FILES // 20


def _check(graph: Graph) -> None:
    """Assert that a graph is one, by other means than its constructor's."""
    assert isinstance(graph, Graph)
    offsets, indices = graph.row_offsets, graph.col_indices
    assert offsets[0] == 0
    assert offsets[-1] == indices.size
    assert np.diff(offsets).min() >= 0
    assert not indices.size or 0 <= indices.min() <= indices.max() < graph.vertices
    if graph.labels is not None:
        assert graph.labels.size == graph.vertices
        assert all(any(c.isalnum() or c > "\x7f" for c in label) for label in graph.labels.tolist())
