"""Other orders of a graph's vertices: what they are, and that nobody but the clock notices them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import graphs
import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from devices import KERNEL_DEVICES
from loops import LOOPS, how, narrow_mappings

from persistent_bfs import BFS, ORDERS, Graph, cli, read_graph
from persistent_bfs import reorder as module
from persistent_bfs.device import open_device
from persistent_bfs.device.base import Device
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference, bfs_serial
from persistent_bfs.reorder import Relabelling, order_of, reorder

SESSION = sys.modules[BFS.__module__]
OTHERS = [name for name in ORDERS if name != "none"]
Order = npt.NDArray[np.int32]


def shuffled(graph: Graph, seed: int = 7) -> Graph:
    return graph.permuted(np.random.default_rng(seed).permutation(graph.vertices))


def bandwidth(graph: Graph) -> int:
    return int(np.abs(graph.arc_sources() - graph.col_indices).max(initial=0))


def arcs_by_name(graph: Graph, names: npt.ArrayLike) -> list[tuple[int, int]]:
    """Every arc, with each end called by its name; sorted."""
    named = np.asarray(names)
    ends = zip(named[graph.arc_sources()], named[graph.col_indices], strict=True)
    return sorted((int(u), int(v)) for u, v in ends)


GRAPHS = {
    **{str(small): small.graph for small in graphs.SMALL},
    "shuffled-path": shuffled(graphs.path(99)),
    "grid": read_graph("grid:9x7"),
    "wide-offsets": read_graph("grid:9x7").with_offsets(64),
    "directed-components": graphs.directed(9, (8, 0), (0, 3), (3, 8), (7, 7), (5, 2), (5, 2)),
}


@pytest.fixture(scope="module", params=["reference", *KERNEL_DEVICES])
def device(request: pytest.FixtureRequest) -> Iterator[Device | str]:
    """A device that is open, or the word for the one that needs no opening."""
    choice = open_device(request.param)
    if choice.device is None:
        yield request.param
        return
    with choice.device:
        yield choice.device


# The orders themselves.


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_every_order_names_every_vertex_once_and_is_the_same_again(graph: Graph, name: str) -> None:
    order = order_of(graph, name)
    assert order.dtype == np.int32
    assert sorted(order.tolist()) == list(range(graph.vertices))
    np.testing.assert_array_equal(order_of(graph, name), order)


def test_there_is_a_way_to_make_every_order_of_the_table_and_no_other() -> None:
    assert list(module._FINDERS) == list(ORDERS)
    assert all(row.trade_off for row in ORDERS.values())


@pytest.mark.parametrize("name", ["rcm", "bfs"])
def test_a_shuffled_path_is_put_straight(name: str) -> None:
    tangled = shuffled(graphs.path(500))
    assert bandwidth(tangled) > 100
    assert bandwidth(tangled.permuted(order_of(tangled, name))) == 1


def test_rcm_and_bfs_narrow_a_shuffled_grid() -> None:
    # No numbering of an 8 x 40 grid has a bandwidth below 8; diagonals of 8 follow each other.
    tangled = shuffled(read_graph("grid:8x40"))
    for name in ("rcm", "bfs"):
        assert 8 <= bandwidth(tangled.permuted(order_of(tangled, name))) <= 16, name


@pytest.mark.parametrize(
    ("graph", "order"),
    [
        # From the last leaf over the hub to the other leaves.
        (graphs.hub(6), [5, 0, 1, 2, 3, 4]),
        # From the far end.
        (graphs.path(4), [3, 2, 1, 0]),
        # Component by component: that of 0, the lone 1, that of 2.
        (graphs.undirected(7, (0, 4), (4, 6), (2, 3), (3, 5)), [6, 4, 0, 1, 5, 3, 2]),
        # Arcs count both ways.
        (graphs.directed(4, (1, 0), (1, 2), (3, 2)), [3, 2, 1, 0]),
        (graphs.undirected(3), [0, 1, 2]),
    ],
)
def test_discovery_orders_worked_out_by_hand(graph: Graph, order: list[int]) -> None:
    assert order_of(graph, "bfs").tolist() == order


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_the_discovery_order_is_that_of_a_queue(graph: Graph) -> None:
    undirected = graph.symmetrized() if graph.directed else graph
    order = order_of(graph, "bfs").tolist()
    expected: list[int] = []
    for first in range(graph.vertices):
        if first not in set(expected):
            rim = int(bfs_serial(undirected, first).order[-1])
            expected += bfs_serial(undirected, rim).order.tolist()
    assert order == expected


@pytest.mark.parametrize(
    ("graph", "order"),
    [
        (graphs.hub(5), [0, 1, 2, 3, 4]),
        (graphs.undirected(6, (5, 1), (5, 3), (3, 1), (3, 4)), [3, 1, 5, 4, 0, 2]),
        # In and out count, a self-loop twice: 3 has four, 0 two, 1 and 4 one, 2 none.
        (graphs.directed(5, (0, 3), (1, 3), (3, 3), (4, 0)), [3, 0, 1, 4, 2]),
    ],
)
def test_degree_orders_worked_out_by_hand(graph: Graph, order: list[int]) -> None:
    assert order_of(graph, "degree").tolist() == order


def test_lone_vertices_come_last_by_degree() -> None:
    graph = read_graph("kron:9:4")
    degrees = graph.degrees[order_of(graph, "degree")]
    assert degrees[0] == graph.max_degree
    assert degrees[-1] == 0
    assert (np.diff(degrees) <= 0).all()


def test_an_order_that_needs_narrow_offsets_refuses_more_arcs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INT32_MAX", 30)
    for name in ("rcm", "bfs"):
        with pytest.raises(ValueError, match=f"the {name} order .* 24 arcs are too many"):
            order_of(read_graph("grid:3x3"), name)
    assert order_of(read_graph("grid:3x3"), "degree")[0] == 4


# A graph in another order.


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_a_permuted_graph_has_the_same_arcs(graph: Graph) -> None:
    order = np.random.default_rng(3).permutation(graph.vertices)
    permuted = graph.permuted(order)
    assert arcs_by_name(permuted, order) == arcs_by_name(graph, np.arange(graph.vertices))
    assert permuted.directed == graph.directed
    assert permuted.row_offsets.dtype == graph.row_offsets.dtype
    assert permuted.name == graph.name
    np.testing.assert_array_equal(permuted.degrees, graph.degrees[order])


def test_permuting_worked_out_by_hand() -> None:
    graph = Graph.from_edges([0, 1, 2], [1, 2, 3], directed=True, labels=list("abcd"))
    permuted = graph.permuted([2, 0, 3, 1])
    assert permuted.row_offsets.tolist() == [0, 1, 2, 2, 3]
    assert permuted.col_indices.tolist() == [2, 3, 0]
    assert permuted.labels is not None
    assert permuted.labels.tolist() == ["c", "a", "d", "b"]
    assert permuted.vertex_of("a") == 1


def test_sorted_rows_stay_sorted_and_others_keep_their_order() -> None:
    rows = read_graph("random:200:900")
    for graph in (rows, rows.with_offsets(64), graphs.REPEATS):
        permuted = shuffled(graph)
        assert permuted.row_offsets.dtype == graph.row_offsets.dtype
        for v in range(graph.vertices):
            row = permuted.col_indices[permuted.row_offsets[v] : permuted.row_offsets[v + 1]]
            assert row.tolist() == sorted(row.tolist())
    unsorted = Graph.from_arrays([0, 0, 3, 3, 4], [3, 0, 2, 1])
    assert unsorted.permuted([1, 3, 0, 2]).col_indices.tolist() == [1, 2, 3, 0]


def test_identity_and_there_and_back_change_nothing() -> None:
    graph = read_graph("words-kjv")
    order = np.random.default_rng(1).permutation(graph.vertices)
    for same in (
        graph.permuted(np.arange(graph.vertices)),
        graph.permuted(order).permuted(np.argsort(order)),
    ):
        np.testing.assert_array_equal(same.row_offsets, graph.row_offsets)
        np.testing.assert_array_equal(same.col_indices, graph.col_indices)
        np.testing.assert_array_equal(same.labels, graph.labels)


@pytest.mark.parametrize(
    ("order", "error", "words"),
    [
        ([0, 1], ValueError, "an order of 3 vertices is needed, got 2 ids"),
        ([0, 1, 1], ValueError, "names vertex 1 2 times"),
        ([0, 1, 3], ValueError, r"order\[2\] = 3 is out of range for 3 vertices"),
        ([0, -1, 2], ValueError, r"order\[1\] = -1: ids cannot be negative"),
        ([[0, 1, 2]], ValueError, "must be one-dimensional"),
        ([0.0, 1.0, 2.0], TypeError, "must hold integers"),
    ],
)
def test_what_is_no_permutation_is_refused(order: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        graphs.path(3).permuted(order)


def test_a_million_vertices_are_permuted_without_a_loop() -> None:
    graph = read_graph("grid:1000x1000")
    order = np.random.default_rng(2).permutation(graph.vertices)
    started = time.process_time()
    permuted = graph.permuted(order)
    # A loop over the vertices would take several times as long on any machine.
    assert time.process_time() - started < 2
    np.testing.assert_array_equal(permuted.degrees, graph.degrees[order])


# Searches of a graph in another order.


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("small", graphs.SMALL, ids=str)
def test_answers_are_in_the_callers_ids(
    device: Device | str, small: graphs.SmallGraph, name: str
) -> None:
    with BFS(
        small.graph, engine="persistent", tiers="none", device=device,
        reorder=name, predecessors=True, trace=True,
    ) as search:  # fmt: skip
        result = search.run(small.source)
        assert result.source == small.source
        assert result.distances.tolist() == small.distances
        assert find_problem(small.graph, result) is None
        assert result.reorder == search.reorder == name
        assert search.graph is small.graph


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("loop", LOOPS)
def test_every_engine_answers_alike(device: Device | str, loop: str, name: str) -> None:
    if device == "reference" and loop != "persistent":
        pytest.skip("the reference has no engines")
    for graph in (shuffled(read_graph("grid:17x9")), read_graph("kron:6:4")):
        with BFS(
            graph, **how(loop), device=device, reorder=name, predecessors=True, trace=True
        ) as search:
            for source, max_depth in ((0, None), (graph.vertices - 1, None), (5, 3), (5, 0)):
                expected = bfs_reference(graph, source, max_depth)
                result = search.run(source, max_depth=max_depth)
                assert find_problem(graph, result, max_depth=max_depth) is None
                np.testing.assert_array_equal(result.distances, expected.distances)
                assert result.distances.dtype == result.predecessors.dtype == np.int32
                assert result.frontier_sizes == expected.frontier_sizes.tolist()


@pytest.mark.parametrize("direction", ["pull", "auto"])
@pytest.mark.parametrize("name", OTHERS)
def test_pulls_read_the_reordered_arcs_backwards(
    device: Device | str, name: str, direction: str
) -> None:
    graph = Graph.from_edges(*np.random.default_rng(5).integers(0, 90, (2, 400)), directed=True)
    with BFS(graph, device=device, direction=direction, reorder=name, predecessors=True) as search:
        for source in (0, 41, 89):
            assert find_problem(graph, search.run(source)) is None


def test_traces_are_those_of_the_graph_as_it_is(device: Device | str) -> None:
    graph = read_graph("words-kjv")
    source = graph.vertex_of("faithless")
    rows = []
    for name in ORDERS:
        with BFS(graph, device=device, advance="warp", reorder=name, trace=True) as search:
            trace = search.run(source).trace
            assert trace is not None
            rows.append([(row.level, row.frontier, row.edges, row.mapping) for row in trace])
    assert [edges for _, _, edges, _ in rows[0]] == [1, 99, 10_584, 51_413, 8_817, 48, 2]
    assert rows.count(rows[0]) == len(ORDERS)


@pytest.mark.parametrize("loop", ["persistent+block", "persistent+cluster"])
def test_a_tiers_arcs_are_those_of_the_graph_as_it_is(loop: str) -> None:
    # Rows of one arc to four, in another place in every order.
    graph = read_graph("maze:20x20")
    distances = bfs_reference(graph, 7).distances
    arcs = np.bincount(distances[distances >= 0], weights=graph.degrees[distances >= 0])
    for name in ORDERS:
        with BFS(graph, **how(loop), device="emulated", reorder=name, trace=True) as search:
            trace = search.run(7).trace
            assert trace is not None
            assert {row.mapping for row in trace} <= narrow_mappings(loop)
            assert [row.edges for row in trace] == arcs.tolist()


def test_the_tier_is_chosen_by_the_graph_as_the_caller_numbers_it() -> None:
    for spec, tier in (("grid:90x90", "block"), ("random:9000:27000", "none")):
        graph = read_graph(spec)
        for name in ORDERS:
            with BFS(graph, device="emulated", reorder=name) as search:
                assert search.config.tier == tier, (spec, name)


def test_results_of_a_session_that_was_closed_or_searched_again(device: Device | str) -> None:
    if device == "reference":
        pytest.skip("the reference's results are on the host")
    with BFS(graphs.path(40), device=device, reorder="rcm") as search:
        first, second = search.run(0), search.run(3)
        assert second.distances[0] == 3
        unseen = search.run(1)
    assert first.distances.tolist() == list(range(40))
    assert second.distances[39] == 36
    assert unseen.distances[39] == 38
    with pytest.raises(ValueError, match="closed"):
        search.run(0)


@pytest.mark.parametrize(
    ("what", "wrong", "words"),
    [
        ("predecessors", lambda _, found: found, "predecessor"),
        ("predecessors", lambda self, found: found[self.rank], "predecessor"),
        ("distances", lambda _, found: found, "distance"),
        ("distances", lambda self, found: found[self.order], "distance"),
        ("source", lambda _, vertex: vertex, "distance"),
    ],
)
@pytest.mark.parametrize("name", OTHERS)
def test_a_way_back_that_is_wrong_is_caught(
    device: Device | str, name: str, what: str, wrong: Any, words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    graph = shuffled(read_graph("road:12x12"))
    with BFS(graph, device=device, reorder=name, predecessors=True) as search:
        assert find_problem(graph, search.run(3)) is None
        monkeypatch.setattr(Relabelling, what, wrong)
        problem = find_problem(graph, search.run(3))
        assert problem is not None
        assert words in problem


def test_ids_that_are_none_are_left_for_the_check_to_find() -> None:
    back = Relabelling.from_order(np.array([2, 0, 1], np.int32))
    assert back.predecessors(np.array([0, -1, 2], np.int32)).tolist() == [-1, 1, 2]
    assert back.predecessors(np.array([7, -5, 0], np.int32)).tolist() == [-5, 2, 7]


# What is paid, and what is not.


def test_no_order_is_no_detour(device: Device | str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("something was mapped")

    for method in ("source", "distances", "predecessors"):
        monkeypatch.setattr(Relabelling, method, refuse)
    monkeypatch.setattr(Graph, "permuted", refuse)
    for name in ({}, {"reorder": None}, {"reorder": "none"}):
        with BFS(graphs.path(9), device=device, **name) as search:
            assert search._relabelling is None
            assert (search.reorder, search.reorder_ms) == ("none", 0.0)
            result = search.run(2)
            assert result.distances[8] == 6
            assert (result.reorder, result.reorder_ms) == ("none", 0.0)


def test_what_reordering_took_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    find = module._FINDERS["rcm"]

    def slowly(graph: Graph) -> Order:
        time.sleep(0.2)
        return find(graph)

    monkeypatch.setitem(module._FINDERS, "rcm", slowly)  # type: ignore[arg-type]
    with BFS(graphs.path(50), device="reference", reorder="rcm") as search:
        result = search.run(0)
    assert search.reorder_ms == result.reorder_ms >= 200
    assert result.wall_ms is not None
    assert result.wall_ms < 200
    told = result.summary()
    assert (told["reorder"], told["reorder_ms"]) == ("rcm", search.reorder_ms)


def test_one_reordering_serves_several_sessions(
    device: Device | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = shuffled(read_graph("grid:9x9"))
    made = reorder(graph, "bfs")
    assert made is not None
    assert made.milliseconds > 0
    monkeypatch.setattr(Graph, "permuted", lambda *_: pytest.fail("made again"))
    for engine in ("persistent", "host_loop"):
        with BFS(graph, device=device, engine=engine, tiers="none", reorder=made) as search:
            assert find_problem(graph, search.run(7)) is None
            assert (search.reorder, search.reorder_ms) == ("bfs", made.milliseconds)
    with pytest.raises(ValueError, match="this reordering is of another graph"):
        BFS(graphs.path(81), device=device, reorder=made)


def test_a_session_uploads_one_graph_and_keeps_no_copy_on_the_host() -> None:
    import gc
    import weakref

    from persistent_bfs.device.emulated import EmulatedDevice

    graph = shuffled(read_graph("grid:50x50"))
    used = []
    with EmulatedDevice() as opened:
        for name in ("none", "rcm"):
            before = opened.free_bytes()
            with BFS(graph, device=opened, reorder=name) as search:
                used.append(before - opened.free_bytes())
                assert find_problem(graph, search.run(0)) is None
        made = reorder(graph, "rcm")
        assert made is not None
        copy = weakref.ref(made.graph)
        with BFS(graph, device=opened, reorder=made) as search:
            del made
            gc.collect()
            assert copy() is None
            assert find_problem(graph, search.run(0)) is None
    assert used[0] == used[1]


@pytest.mark.parametrize("name", ["metis", "", "RCM", 3])
def test_an_unknown_order_is_refused_before_the_device(
    name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SESSION, "open_device", lambda *_, **__: pytest.fail("opened"))
    error, words = ValueError, r"unknown order .*choose one of none, rcm, bfs, degree"
    if not isinstance(name, str):
        error, words = TypeError, "reorder is 3; it must be a str"
    with pytest.raises(error, match=words):
        BFS(graphs.path(6), reorder=name)


def test_a_failure_while_reordering_gives_the_device_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from persistent_bfs.device.emulated import EmulatedDevice

    closed = []
    monkeypatch.setattr(EmulatedDevice, "close", lambda self: closed.append(self))
    monkeypatch.setattr(module, "INT32_MAX", 1)
    with pytest.raises(ValueError, match="are too many"):
        BFS(graphs.path(6), device="emulated", reorder="rcm")
    assert len(closed) == 1


# The command line.


def call(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize("on", ["reference", *KERNEL_DEVICES])
def test_run_tells_the_order_and_what_it_took(on: str) -> None:
    arguments = ("run", "words-kjv", "--source", "faithless", "--device", on)
    told = json.loads(call(*arguments, "--reorder", "degree", "--predecessors", "--json").stdout)
    assert (told["reorder"], told["verified"], told["label"]) == ("degree", True, "faithless")
    assert (told["levels"], told["reached"]) == (7, 5_520)
    assert told["reorder_ms"] > 0
    assert "order" in call(*arguments, "--reorder", "rcm").stdout
    assert "rcm, made by the host in" in call(*arguments, "--reorder", "rcm").stdout
    plain = json.loads(call(*arguments, "--json").stdout)
    assert (plain["reorder"], plain["reorder_ms"]) == ("none", 0.0)
    assert "made by the host" not in call(*arguments).stdout


@pytest.mark.parametrize("on", KERNEL_DEVICES)
def test_compare_reorders_once_for_all_rows(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    permuted = Graph.permuted
    monkeypatch.setattr(Graph, "permuted", lambda *how: made.append(1) or permuted(*how))
    arguments = ("compare", "road:9x9", "--device", on, "--advances", "warp", "--repeat", "1")
    told = json.loads(call(*arguments, "--reorder", "bfs", "--json").stdout)
    assert made == [1]
    assert told["reorder"] == "bfs"
    assert told["reorder_ms"] > 0
    for row in told["rows"]:
        assert row["verified"]
        assert (row["reorder"], row["reorder_ms"]) == ("bfs", told["reorder_ms"])
    shown = call(*arguments, "--reorder", "bfs", "--engines", "persistent").stdout
    assert "vertices in the order bfs, made by the host in" in shown
    assert "made by the host" not in call(*arguments, "--engines", "persistent").stdout


@pytest.mark.parametrize("on", ["reference", *KERNEL_DEVICES])
def test_the_command_catches_a_wrong_way_back(on: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Relabelling, "predecessors", lambda self, found: found[self.rank])
    result = call(
        *("run", "maze:9x9", "--device", on, "--reorder", "rcm", "--predecessors", "--json"), code=1
    )
    told = json.loads(result.stdout)
    assert not told["verified"]
    assert "predecessor" in told["problem"]
    assert told["reorder_ms"] is told["wall_ms"] is None


@pytest.mark.parametrize("command", ["run", "compare"])
def test_the_command_refuses_an_unknown_order_in_one_line(command: str) -> None:
    result = call(command, "path:5", "--reorder", "metis", code=2)
    (line,) = result.stderr.splitlines()
    assert "'metis' is not one of 'none', 'rcm', 'bfs', 'degree'" in line


def test_the_list_shows_the_orders() -> None:
    told = json.loads(call("list", "--json").stdout)["orders"]
    assert [row["name"] for row in told] == list(ORDERS)
    assert all(row["trade_off"] for row in told)
