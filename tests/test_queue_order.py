"""SciPy's queue in place of levels: where it takes over, and that its answers are the same."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from graphs import SMALL, SmallGraph, path, searches
from hypothesis import given, settings
from hypothesis import strategies as st

from persistent_bfs import reference
from persistent_bfs.device.base import DeviceError, SearchTimeout
from persistent_bfs.generate import generate
from persistent_bfs.graph import Graph
from persistent_bfs.queue_order import distances_of_order, level_begins, search_order
from persistent_bfs.reference import bfs_reference, bfs_serial, verify


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue takes over after one level, however short the search."""
    monkeypatch.setattr(reference, "FEWEST_NARROW_LEVELS", 0)
    monkeypatch.setattr(reference, "LEVEL_IN_ITEMS", 1 << 40)


class Queue:
    """`search_order`, counting how often it was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, graph: Graph, source: int) -> tuple[Any, Any]:
        self.calls += 1
        return search_order(graph, source)


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    counted = Queue()
    monkeypatch.setattr(reference, "search_order", counted)
    return counted


@pytest.mark.parametrize("small", SMALL, ids=str)
def test_the_queue_hands_out_what_the_textbooks_does(small: SmallGraph) -> None:
    for graph in (small.graph, small.graph.with_offsets(64)):
        order, predecessors = search_order(graph, small.source)
        expected = bfs_serial(graph, small.source)
        assert order.tolist() == expected.order.tolist()
        assert predecessors.tolist() == expected.predecessors.tolist()
        assert order.dtype == predecessors.dtype == np.int32
        assert distances_of_order(graph.vertices, order, predecessors).tolist() == small.distances


def test_levels_begin_where_the_first_child_of_the_level_before_does() -> None:
    assert level_begins(np.array([3, 1, 4, 0]), np.array([1, 3, -1, -1, 3])).tolist() == [
        0,
        1,
        3,
        4,
    ]
    assert level_begins(np.array([2]), np.array([-1, -1, -1])).tolist() == [0, 1]
    assert level_begins(np.array([], np.int32), np.array([-1])).tolist() == [0]
    # Levels of 1, 3, 1, 2: the children of the first level are not its last members'.
    parents = np.array([-1, 0, 0, 0, 1, 4, 4])
    assert level_begins(np.arange(7), parents).tolist() == [0, 1, 4, 5, 7]


@pytest.mark.parametrize("vertices", [1, 2, 3, 4, 5, 63, 64, 65, 66, 127, 128, 129, 1000])
def test_every_depth_is_counted_by_doubling(vertices: int) -> None:
    parents = np.arange(-1, vertices - 1)
    assert level_begins(np.arange(vertices), parents).tolist() == list(range(vertices + 1))


@given(st.lists(st.integers(1, 5), max_size=40), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_levels_of_any_sizes_are_found(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [1, *sizes]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    names = rng.permutation(int(begins[-1]) + 2)  # two are not reached
    order, parents = names[:-2], np.full(names.size, -7)
    for level in range(1, len(sizes)):
        before = rng.integers(begins[level - 1], begins[level], size=sizes[level])
        parents[order[begins[level] : begins[level + 1]]] = order[np.sort(before)]
    assert level_begins(order, parents).tolist() == begins.tolist()
    distances = distances_of_order(names.size, order, parents)
    assert distances[order].tolist() == np.repeat(np.arange(len(sizes)), sizes).tolist()
    assert distances[names[-2:]].tolist() == [-1, -1]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("small", SMALL, ids=str)
def test_small_graphs_searched_in_one_go(small: SmallGraph, queue: Queue) -> None:
    found = bfs_reference(small.graph, small.source)
    assert found.distances.tolist() == small.distances
    assert found.distances.dtype == found.predecessors.dtype == np.int32
    assert found.frontier_sizes.dtype == np.int64
    verify(small.graph, small.source, *found)
    assert queue.calls == (max(small.distances) > 0)


@given(searches(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_a_bounded_search_in_one_go_is_that_by_levels(
    search: tuple[Graph, int], max_depth: int
) -> None:
    graph, source = search
    for bound in (None, max_depth, 10**9):
        by_levels = bfs_reference(graph, source, bound)
        allowed = reference._Allowance(None)
        in_one_go = reference._search_in_one_go(graph, source, bound, allowed)
        assert in_one_go.distances.tolist() == by_levels.distances.tolist()
        assert in_one_go.frontier_sizes.tolist() == by_levels.frontier_sizes.tolist()
        verify(graph, source, *in_one_go, max_depth=bound)


def test_deep_graphs_are_searched_in_one_go_and_no_others(queue: Queue) -> None:
    deep = generate("path:300")
    assert bfs_reference(deep, 0).distances.tolist() == list(range(300))
    assert queue.calls == 1
    for spec in ("path:60", "kron:9", "star:5000", "tree:2:12"):
        graph = generate(spec)
        verify(graph, 0, *bfs_reference(graph, 0))
    assert queue.calls == 1


def test_three_hundred_thousand_levels_are_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int | None] = []
    plain = reference._Allowance.check

    def check(self: Any, level: int | None = None) -> None:
        looked_at.append(level)
        plain(self, level)

    monkeypatch.setattr(reference._Allowance, "check", check)
    graph = path_graph(300_000)
    found = bfs_reference(graph, 0)
    assert np.array_equal(found.distances, np.arange(300_000))
    assert np.array_equal(found.predecessors, np.arange(-1, 299_999))
    assert np.array_equal(found.frontier_sizes, np.ones(300_000))
    assert len(looked_at) < 300


def path_graph(vertices: int) -> Graph:
    return generate(f"path:{vertices}")


def test_more_arcs_than_scipy_numbers_are_searched_by_levels(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("persistent_bfs.queue_order.INT32_MAX", 597)
    assert bfs_reference(path(300), 0).distances.tolist() == list(range(300))
    assert queue.calls == 0
    monkeypatch.setattr("persistent_bfs.queue_order.INT32_MAX", 598)
    assert bfs_reference(path(300), 0).distances.tolist() == list(range(300))
    assert queue.calls == 1


class Clock:
    """Seconds that pass only when the clock is looked at, or made to."""

    def __init__(self, tick: float) -> None:
        self.now, self.tick = 100.0, tick

    def monotonic(self) -> float:
        self.now += self.tick
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock(1e-3)
    monkeypatch.setattr(reference, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


@pytest.mark.usefixtures("clock")
def test_a_time_limit_is_heeded_between_levels(queue: Queue) -> None:
    # One look per level here: a level is a millisecond.
    with pytest.raises(
        SearchTimeout, match=r"reference: stopped at level 50, after the time limit of 0\.0505 s"
    ) as stopped:
        bfs_reference(path(400), 0, time_limit=0.0505)
    assert isinstance(stopped.value, DeviceError)
    assert queue.calls == 0
    assert bfs_reference(path(400), 0, 20, time_limit=0.0505).frontier_sizes.sum() == 21
    assert bfs_reference(path(400), 0, time_limit=float("inf")).distances.max() == 399


@pytest.mark.usefixtures("clock")
def test_a_time_limit_is_heeded_within_a_wide_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "ARCS_AT_ONCE", 10)
    star = generate("star:500")
    with pytest.raises(SearchTimeout, match="stopped at level 1,"):  # in which all leaves are
        bfs_reference(star, 0, time_limit=0.02)
    monkeypatch.setattr(reference, "ARCS_AT_ONCE", 1000)
    assert bfs_reference(star, 0, time_limit=0.02).distances.max() == 1


def test_a_time_limit_is_heeded_after_a_compiled_search(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(graph: Graph, source: int) -> tuple[Any, Any]:
        clock.now += 60
        return search_order(graph, source)

    monkeypatch.setattr(reference, "search_order", slow)
    with pytest.raises(
        SearchTimeout, match="stopped after a compiled search, after the time limit"
    ):
        bfs_reference(path(400), 0, time_limit=30)
    assert bfs_reference(path(400), 0, time_limit=300).distances.max() == 399


@pytest.mark.usefixtures("clock")
def test_no_compiled_search_begins_that_cannot_end_in_time(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "QUICKEST_NS", 1e9 / 1000)  # 1.2 seconds for this path
    with pytest.raises(SearchTimeout, match="at level"):
        bfs_reference(path(400), 0, time_limit=0.4)
    assert queue.calls == 0
    assert bfs_reference(path(400), 0, time_limit=4).distances.max() == 399
    assert queue.calls == 1


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_time_limit_is_a_number_above_0(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"time_limit is .*; it must be a number of seconds above"):
        bfs_reference(path(3), 0, time_limit=seconds)
