"""The same search over and over: what a race that the emulated device cannot have would show in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from graphs import graph_file

from persistent_bfs import BFS, read_graph
from persistent_bfs.device import cuda_problem
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(cuda_problem() is not None, reason=str(cuda_problem())),
]


@pytest.mark.parametrize(("tiers", "repeats"), [("block", 1000), ("cluster", 200), ("none", 50)])
def test_a_road_network_is_answered_alike_every_time(tiers: str, repeats: int) -> None:
    graph = read_graph(Path(graph_file("road-USA-FLA.gr.xz")))
    with BFS(graph, device="cuda", tiers=tiers) as search:
        first = search.run(0)
        expected = first.distances
        assert (first.depth, first.reached) == (1920, 1_070_376)
        for _ in range(repeats):
            result = search.run(0)
            assert (result.depth, result.enqueued) == (1920, 1_070_376)
            np.testing.assert_array_equal(result.distances, expected)


def test_a_kronecker_graph_is_answered_alike_every_time() -> None:
    graph = read_graph("kron:18")
    how = {"direction": "auto", "frontier": "dense", "predecessors": True}
    source = int(np.argmax(graph.degrees))
    with BFS(graph, device="cuda", **how) as search:  # type: ignore[arg-type]
        first = search.run(source)
        assert find_problem(graph, first) is None
        for _ in range(1000):
            result = search.run(source)
            assert (result.depth, result.enqueued) == (first.depth, first.enqueued)
            np.testing.assert_array_equal(result.distances, first.distances)
        assert find_problem(graph, result) is None


@pytest.mark.parametrize("engine", ["persistent", "graph_while"])
def test_no_block_hears_of_another_search(engine: str) -> None:
    """Each search begins elsewhere, or ends sooner, than the one before."""
    graph = read_graph("words-kjv")
    chosen = np.random.default_rng(27)
    with BFS(graph, device="cuda", engine=engine, tiers="none") as search:
        for source in chosen.integers(0, graph.vertices, 300).tolist():
            limit = int(chosen.integers(0, 8))
            expected = bfs_reference(graph, source).distances
            np.testing.assert_array_equal(search.run(source).distances, expected)
            within = np.where(expected > limit, -1, expected)
            np.testing.assert_array_equal(search.run(source, max_depth=limit).distances, within)


def test_threads_that_share_a_session_get_their_own_answers() -> None:
    from concurrent.futures import ThreadPoolExecutor

    graph = read_graph("grid:300x300")
    ids = np.arange(graph.vertices)
    with BFS(graph, device="cuda", predecessors=True) as search:

        def is_wrong(source: int) -> bool:
            result = search.run(source)
            right = abs(ids // 300 - source // 300) + abs(ids % 300 - source % 300)
            return result.source != source or not np.array_equal(result.distances, right)

        sources = np.random.default_rng(16).integers(0, graph.vertices, 400).tolist()
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(is_wrong, sources)) == 0
