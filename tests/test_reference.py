from __future__ import annotations

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from graphs import FRONTIER_MODEL, SMALL, SmallGraph, directed, path, searches, undirected
from hypothesis import given, settings
from hypothesis import strategies as st

from persistent_bfs import reference
from persistent_bfs.generate import generate
from persistent_bfs.graph import Graph
from persistent_bfs.io import read_graph
from persistent_bfs.reference import (
    LaneSlots,
    WrongAnswer,
    bfs_reference,
    bfs_serial,
    check_distances,
    check_frontiers,
    check_predecessors,
    lane_slots,
    level_table,
    level_totals,
    prove_distances,
    verify,
)


@pytest.mark.parametrize("small", SMALL, ids=str)
def test_small_graphs_have_the_distances_worked_out_by_hand(small: SmallGraph) -> None:
    graph, source = small.graph, small.source
    fast, slow = bfs_reference(graph, source), bfs_serial(graph, source)
    assert fast.distances.tolist() == slow.distances.tolist() == small.distances
    assert fast.distances.dtype == fast.predecessors.dtype == slow.order.dtype == np.int32
    assert fast.frontier_sizes.tolist() == [
        small.distances.count(level) for level in range(max(small.distances) + 1)
    ]
    assert sorted(slow.order.tolist()) == [v for v, d in enumerate(small.distances) if d >= 0]
    for search in (fast, slow):
        verify(graph, source, search.distances, search.predecessors, fast.frontier_sizes)
    wide = bfs_reference(graph.with_offsets(64), source)
    assert wide.distances.tolist() == small.distances


def test_the_queue_gives_out_the_six_vertices_in_order() -> None:
    search = bfs_serial(FRONTIER_MODEL, 0)
    assert search.order.tolist() == [0, 1, 2, 3, 4, 5]
    assert search.predecessors.tolist() == [-1, 0, 0, 1, 2, 3]
    assert bfs_reference(FRONTIER_MODEL, 0).frontier_sizes.tolist() == [1, 2, 2, 1]


@given(searches())
@settings(max_examples=150, deadline=None)
def test_random_searches_agree_with_scipy_and_networkx(search: tuple[Graph, int]) -> None:
    graph, source = search
    lengths = scipy.sparse.csgraph.dijkstra(graph.to_scipy(), unweighted=True, indices=source)
    expected = np.where(np.isinf(lengths), -1, lengths).astype(int).tolist()
    ours, serial = bfs_reference(graph, source), bfs_serial(graph, source)
    assert ours.distances.tolist() == serial.distances.tolist() == expected
    verify(graph, source, *ours)
    check_predecessors(graph, source, serial.distances, serial.predecessors)
    peer = networkx.DiGraph()
    peer.add_nodes_from(range(graph.vertices))
    peer.add_edges_from(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))
    found = networkx.single_source_shortest_path_length(peer, source)
    assert {v: d for v, d in enumerate(expected) if d >= 0} == dict(found)


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_large_levels_are_expanded_in_parts(at_once: int, monkeypatch) -> None:
    graph = generate("kron:7")
    source = int(np.argmax(graph.degrees))
    whole = bfs_reference(graph, source)
    monkeypatch.setattr(reference, "ARCS_AT_ONCE", at_once)
    parts = bfs_reference(graph, source)
    assert parts.distances.tolist() == whole.distances.tolist()
    verify(graph, source, *parts, expected=whole.distances)


@pytest.mark.parametrize(("max_depth", "reached"), [(0, 1), (1, 2), (5, 6), (32, 33), (99, 33)])
def test_a_search_can_be_bounded(max_depth: int, reached: int) -> None:
    search = bfs_reference(path(33), 0, max_depth)
    assert search.frontier_sizes.tolist() == [1] * reached
    assert search.distances.tolist() == [*range(reached), *[-1] * (33 - reached)]
    verify(path(33), 0, *search, max_depth=max_depth)
    if reached < 33:
        with pytest.raises(WrongAnswer, match=f"vertex {reached}: distance -1, but its nearest"):
            verify(path(33), 0, *search)
        with pytest.raises(WrongAnswer, match="leaves the tree"):
            check_predecessors(path(33), 0, search.distances, search.predecessors)


def test_bad_requests_are_refused() -> None:
    for search in (bfs_reference, bfs_serial):
        with pytest.raises(ValueError, match="vertex 6 is out of range"):
            search(FRONTIER_MODEL, 6)
        with pytest.raises(TypeError, match="must be an integer"):
            search(FRONTIER_MODEL, 1.5)
    with pytest.raises(ValueError, match="max_depth cannot be negative"):
        bfs_reference(FRONTIER_MODEL, 0, -1)


def test_the_first_wrong_distance_is_named_by_id_label_and_both_values() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], labels=["adam", "seth", "enos", "cainan"])
    with pytest.raises(
        WrongAnswer,
        match=r"vertex 2 \('enos'\): distance 1, expected 2 \(2 of 4 vertices differ\)",
    ):
        check_distances(graph, 0, [0, 1, 1, 2])
    with pytest.raises(WrongAnswer, match="vertex 4: distance -1, expected 2"):
        check_distances(FRONTIER_MODEL, 0, [0, 1, 1, 2, -1, 3])
    with pytest.raises(WrongAnswer, match="vertex 0: distance 0, expected 7"):
        check_distances(FRONTIER_MODEL, 0, [0, 1, 1, 2, 2, 3], expected=[7, 1, 1, 2, 2, 3])


@pytest.mark.parametrize("answer", [[0, 1], [0.0, 1, 1, 2, 2, 3], [[0, 1, 1, 2, 2, 3]]])
def test_answers_of_another_shape_or_type_are_wrong(answer: list) -> None:
    with pytest.raises(WrongAnswer, match="6 integers expected"):
        check_distances(FRONTIER_MODEL, 0, answer)
    with pytest.raises(WrongAnswer, match="predecessors: 6 integers expected"):
        check_predecessors(FRONTIER_MODEL, 0, [0, 1, 1, 2, 2, 3], answer)


def test_any_valid_tree_is_right() -> None:
    for third in (1, 2):
        for fifth in (3, 4):
            check_predecessors(FRONTIER_MODEL, 0, [0, 1, 1, 2, 2, 3], [-1, 0, 0, third, 2, fifth])


@pytest.mark.parametrize(
    ("distances", "predecessors", "message"),
    [
        ([1, 1, 1, 2, 2, 3], [-1, 0, 0, 1, 2, 3], "source vertex 0: distance 1, not 0"),
        ([0, 1, 1, 2, 2, 3], [0, 0, 0, 1, 2, 3], "vertex 0 at distance 0: predecessor 0 where"),
        ([0, 1, 1, 2, 2, -1], [-1, 0, 0, 1, 2, 3], "vertex 5 at distance -1: predecessor 3 where"),
        ([0, 1, 1, 2, 2, 3], [-1, 0, 0, 1, -1, 3], "vertex 4 .* predecessor -1 is no vertex"),
        ([0, 1, 1, 2, 2, 3], [-1, 0, 0, 1, 6, 3], "vertex 4 .* predecessor 6 is no vertex"),
        ([0, 1, 1, -1, 2, 3], [-1, 0, 0, -1, 2, 3], "vertex 5 .* predecessor 3 is itself unreach"),
        ([0, 1, 1, 2, 2, 3], [-1, 0, 1, 1, 2, 3], "vertex 2 .* predecessor 1 is not one level"),
        ([0, 1, 1, 2, 2, 3], [-1, 0, 0, 1, 1, 3], "vertex 4 .* predecessor 1 has no arc to it"),
        ([0, 1, 1, 2, 2, -1], [-1, 0, 0, 1, 2, -1], "arc from vertex 3 .* to vertex 5 .* leaves"),
    ],
)
def test_each_fault_of_a_tree_is_found(distances, predecessors, message) -> None:
    with pytest.raises(WrongAnswer, match=message):
        check_predecessors(FRONTIER_MODEL, 0, distances, predecessors)


def test_an_arc_across_two_levels_is_found() -> None:
    shortcut = undirected(4, (0, 1), (1, 2), (2, 3), (0, 3))
    with pytest.raises(WrongAnswer, match=r"vertex 0 at distance 0 to vertex 3 .* spans more than"):
        check_predecessors(shortcut, 0, [0, 1, 2, 3], [-1, 0, 1, 2])
    one_way = directed(4, (0, 1), (1, 2), (2, 3), (3, 0))
    check_predecessors(one_way, 0, [0, 1, 2, 3], [-1, 0, 1, 2])


def test_a_cycle_apart_from_the_source_is_no_tree() -> None:
    with pytest.raises(WrongAnswer, match="not one level nearer"):
        check_predecessors(undirected(4, (2, 3)), 0, [0, -1, 1, 1], [-1, -1, 3, 2])


@pytest.mark.parametrize("arcs_at_once", [17, 1 << 18])
@pytest.mark.parametrize("small", SMALL, ids=str)
def test_a_proof_accepts_the_right_distances_and_no_others(
    small: SmallGraph, arcs_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "ARCS_CHECKED", arcs_at_once)
    graph, source = small.graph, small.source
    right = np.array(small.distances, np.int32)
    prove_distances(graph, source, right)
    if graph.vertices > 40:
        return
    # Every distance there is, where all arcs are looked at together; else those near the right one.
    together = arcs_at_once > graph.arcs
    for vertex in range(graph.vertices):
        near = range(max(-2, right[vertex] - 2), right[vertex] + 3)
        for value in range(-2, graph.vertices + 1) if together else {-2, -1, 0, *near}:
            wrong = right.copy()
            wrong[vertex] = value
            if value != right[vertex]:
                with pytest.raises(WrongAnswer):
                    prove_distances(graph, source, wrong)


@given(searches(), st.integers(0, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_a_proof_and_the_reference_agree(
    search: tuple[Graph, int], max_depth: int, data: st.DataObject
) -> None:
    """Also on answers wrong in many places, and on bounded ones."""
    graph, source = search
    for bound in (None, max_depth):
        right = bfs_reference(graph, source, bound).distances
        prove_distances(graph, source, right, bound)
        changes = data.draw(st.lists(st.integers(-1, 3), max_size=graph.vertices))
        answer = right.copy()
        answer[: len(changes)] = changes
        if np.array_equal(answer, right):
            prove_distances(graph, source, answer, bound)
        else:
            with pytest.raises(WrongAnswer):
                prove_distances(graph, source, answer, bound)


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        ([1, 1, 1, 2, 2, 3], "source vertex 0: distance 1, not 0"),
        ([0, 0, 1, 2, 2, 3], "vertex 1: distance 0, but it is not the source"),
        ([0, 1, 1, 2, 2, 9], "vertex 5: distance 9, none of -1 to 5"),
        ([0, 1, 1, 2, 2, -2], "vertex 5: distance -2, none of -1 to 5"),
        ([0, 1, 1, 2, 2, 4], "vertex 5: distance 4, but its nearest neighbour has 2"),
        ([0, 1, 1, 2, 2, -1], "vertex 5: distance -1, but its nearest neighbour has 2"),
        ([0, 1, 1, 2, 2], "6 integers expected"),
    ],
)
def test_each_fault_of_distances_is_named(distances, message) -> None:
    with pytest.raises(WrongAnswer, match=message):
        prove_distances(FRONTIER_MODEL, 0, distances)


def test_what_cannot_be_reached_has_no_distance() -> None:
    apart = undirected(5, (0, 1), (2, 3))
    prove_distances(apart, 0, [0, 1, -1, -1, -1])
    for wrong in ([0, 1, 1, 2, -1], [0, 1, 3, 4, -1], [0, 1, -1, -1, 2]):
        with pytest.raises(WrongAnswer, match="neighbour"):
            prove_distances(apart, 0, wrong)


@pytest.mark.parametrize("vertices", [254, 255, 256, 257, 65_535, 65_537])
def test_a_proof_holds_where_distances_outgrow_a_byte(vertices: int) -> None:
    graph = path(vertices)
    right = np.arange(vertices, dtype=np.int32)
    prove_distances(graph, 0, right)
    for wrong in (-1, vertices - 3, vertices - 2):
        answer = right.copy()
        answer[-1] = wrong
        with pytest.raises(WrongAnswer, match=f"vertex {vertices - 1}: distance {wrong}, but"):
            prove_distances(graph, 0, answer)


def test_frontier_sizes_show_duplicates_that_distances_hide() -> None:
    distances = [0, 1, 1, 2, 2, 3]
    check_frontiers([1, 2, 2, 1], distances)
    with pytest.raises(WrongAnswer, match=r"add up to 7, but 6 vertices .*: 1 entered more than"):
        check_frontiers([1, 2, 3, 1], distances)
    with pytest.raises(WrongAnswer, match=r"add up to 5, but 6 vertices .*: 1 never entered"):
        check_frontiers([1, 2, 2], distances)
    with pytest.raises(WrongAnswer, match="level 1: frontier of 3, but 2 vertices lie there"):
        check_frontiers([1, 3, 1, 1], distances)
    with pytest.raises(WrongAnswer, match="5 frontiers, but the distances have 4 levels"):
        check_frontiers([1, 2, 2, 1, 0], distances)
    with pytest.raises(WrongAnswer, match="add up to 7"):
        verify(FRONTIER_MODEL, 0, distances, frontier_sizes=[1, 2, 3, 1])


WORDS_TABLE = [
    (0, 1, 1, 1, "faithless", 1),
    (1, 1, 99, 99, "o", 1),
    (2, 98, 10584, 896, "that", 4),
    (3, 1986, 51413, 3218, "and", 63),
    (4, 3394, 8817, 30, "cubits", 107),
    (5, 38, 48, 7, "duke", 2),
    (6, 2, 2, 1, "timnah", 1),
]


def test_the_level_table_of_the_word_graph() -> None:
    graph = read_graph("words-kjv")
    rows = level_table(graph, graph.vertex_of("faithless"))
    assert [
        (r.level, r.frontier, r.edges, r.max_degree, graph.label_of(r.busiest), r.warps)
        for r in rows
    ] == WORDS_TABLE
    assert rows[0].lane_slots == LaneSlots(thread=32, warp=32, edge=1)
    assert rows[1].lane_slots == LaneSlots(thread=99 * 32, warp=128, edge=99)
    # Two vertices of degree 1: one warp of one step, or two.
    assert rows[6].lane_slots == LaneSlots(thread=32, warp=64, edge=2)
    totals = level_totals(rows)
    assert totals[:5] == (7, 5520, 70964, 3218, 179)
    assert totals.lane_slots.edge == 70964
    assert totals.lane_slots.thread == sum(row.lane_slots.thread for row in rows)


@pytest.mark.parametrize("small", SMALL, ids=str)
def test_level_tables_count_every_reached_vertex_once(small: SmallGraph) -> None:
    rows = level_table(small.graph, small.source)
    totals = level_totals(rows)
    reached = [v for v, d in enumerate(small.distances) if d >= 0]
    assert totals.levels == max(small.distances) + 1
    assert totals.frontier == len(reached)
    assert totals.edges == totals.lane_slots.edge == small.graph.degrees[reached].sum()
    assert rows == level_table(small.graph, small.source, small.distances)


def test_of_several_busiest_the_largest_id_is_named() -> None:
    rows = level_table(undirected(5, (0, 1), (0, 2), (0, 3), (1, 4), (2, 4)), 0)
    assert [(row.busiest, row.max_degree) for row in rows] == [(0, 3), (2, 2), (4, 2)]


def test_worked_lane_slots_of_one_frontier() -> None:
    degrees = [1255, 43, 40, 35, 14, 1012, 14, 13, 13, 13]
    assert lane_slots(degrees) == (40_160, 2_656, 2_452)
    assert lane_slots([]) == (0, 0, 0)
    assert lane_slots([0] * 40) == (0, 0, 0)
    assert lane_slots([32, 33, 1]) == (33 * 32, 32 + 64 + 32, 66)
    # The 33rd vertex opens a second warp.
    assert lane_slots([1] * 32 + [5]) == (32 + 5 * 32, 33 * 32, 37)


def test_worked_useful_share_of_a_search() -> None:
    first, second = [4000] + [385] * 31, [3871] + [385] * 30 + [402]
    slots = LaneSlots(*(lane_slots(first)[i] + lane_slots(second)[i] for i in range(3)))
    assert (slots.edge, slots.thread) == (31_758, 251_872)
    assert f"{slots.useful_share()['thread']:.1%}" == "12.6%"
    assert slots.useful_share()["edge"] == 1
    assert LaneSlots(0, 0, 0).useful_share() == {"thread": 1, "warp": 1, "edge": 1}
