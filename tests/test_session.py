"""The session and its results: what is refused, what is kept, what is given back."""

from __future__ import annotations

import gc
import os
import re
import resource
import sys
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from devices import KERNEL_DEVICES

from persistent_bfs import (
    BFS,
    DeviceError,
    DeviceMemoryError,
    Graph,
    SearchTimeout,
    bfs,
    layout,
    read_graph,
)
from persistent_bfs.compiler import source_folder
from persistent_bfs.config import Config
from persistent_bfs.device import open_device
from persistent_bfs.device.base import Device
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.engines.base import memory_needed
from persistent_bfs.graph import plan_offsets
from persistent_bfs.layout import EVEN_DEGREE
from persistent_bfs.measure import Timing, find_problem, harmonic_mean, measure
from persistent_bfs.options import Options
from persistent_bfs.plan import (
    choose_advance,
    choose_engine,
    configure,
    looks_deep,
    suitable_levels,
)

SESSION = sys.modules[BFS.__module__]


@pytest.fixture(scope="module", params=["reference", *KERNEL_DEVICES])
def any_device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_one_call_answers(any_device: str) -> None:
    result = bfs(read_graph("grid:5x4"), 0, device=any_device, predecessors=True)
    x, y = np.meshgrid(np.arange(5), np.arange(4))
    np.testing.assert_array_equal(result.distances, (x + y).ravel())
    assert result.distances.dtype == result.predecessors.dtype == np.int32
    assert (result.levels, result.depth, result.reached) == (8, 7, 20)
    assert result.device == any_device
    assert result.predecessors[0] == -1
    assert result.predecessors[1] == 0


@pytest.mark.parametrize(
    "source",
    [0, np.int32(3), np.int64(3), np.uint8(3), np.array(3)],
    ids=lambda s: type(s).__name__,
)
def test_any_integer_is_a_source(source: object) -> None:
    result = bfs(read_graph("path:6"), source, device="reference")  # type: ignore[arg-type]
    assert result.distances[int(source)] == 0  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("source", "error"),
    [(-1, ValueError), (6, ValueError), (2**40, ValueError), (1.5, TypeError), (True, TypeError),
     ("a", (TypeError, ValueError)), (None, TypeError), (np.float32(1), TypeError)],
)  # fmt: skip
def test_a_bad_source_is_refused_before_any_device_work(
    source: object, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SESSION, "open_device", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(error):
        bfs(read_graph("path:6"), source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("max_depth", "error"), [(-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_a_bad_depth_is_refused(max_depth: object, error: type[Exception]) -> None:
    with BFS(read_graph("path:6"), device="reference") as search, pytest.raises(error):
        search.run(0, max_depth=max_depth)  # type: ignore[arg-type]


def test_a_depth_limit_past_any_depth_is_none(any_device: str) -> None:
    result = bfs(read_graph("path:6"), 0, device=any_device, max_depth=2**40)
    assert result.depth == 5


@pytest.mark.parametrize("name", ["quantum", "cuda:x", "emulated:1", "reference:0"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown device"):
        BFS(read_graph("path:6"), device=name)


def test_a_name_in_no_table_is_refused_before_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SESSION, "open_device", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(ValueError, match="unknown advance"):
        BFS(read_graph("path:6"), advance="lane")


def test_a_closed_session_searches_no_more(device: Device) -> None:
    with BFS(read_graph("path:40"), device=device) as search:
        search.run(0)
    with pytest.raises(ValueError, match="closed"):
        search.run(0)
    search.close()


def test_predecessors_that_were_not_asked_for_are_refused(any_device: str) -> None:
    result = bfs(read_graph("path:4"), 0, device=any_device)
    with pytest.raises(ValueError, match="pass predecessors=True"):
        _ = result.predecessors


def test_int64_read_only_and_strided_arrays_are_accepted_and_not_written(device: Device) -> None:
    wide = np.zeros(14, np.int64)
    wide[::2] = [0, 2, 4, 6, 8, 9, 9]
    offsets = wide[::2]
    indices = np.array([1, 2, 2, 3, 3, 4, 4, 5, 5], np.int64)
    offsets.flags.writeable = indices.flags.writeable = False
    before = offsets.copy(), indices.copy()
    result = bfs(Graph.from_arrays(offsets, indices), 0, device=device)
    assert result.distances.tolist() == [0, 1, 1, 2, 2, 3]
    np.testing.assert_array_equal(offsets, before[0])
    np.testing.assert_array_equal(indices, before[1])


def test_memory_is_estimated_from_numbers_alone() -> None:
    def needed(
        vertices: int, arcs: int, *, directed: bool = False, **choices: Any
    ) -> dict[str, int]:
        bits = plan_offsets(vertices, arcs)
        config = Config("persistent", offset_bits=bits, **choices)
        return memory_needed(vertices, arcs, config, directed=directed)

    plain = needed(1_000, 3_000_000_000, predecessors=True, trace=True)
    assert plain == {
        "row_offsets": 1001 * 8,
        "col_indices": 12_000_000_000,
        "distances": 4_000,
        "queue": 4_000,
        "state": layout.SEARCH_STATE.itemsize,
        "request": 8,
        "predecessors": 4_000,
        "trace": 1003 * 32,
    }
    assert needed(1_000, 1_000)["row_offsets"] == 1001 * 4
    assert needed(1_000, 1_000, claim="naive")["queue"] == 8_000
    assert needed(1_000, 1_000, advance="edge")["edge_begin"] == 4_000
    assert needed(1_000, 1_000, advance="edge_list")["arc_sources"] == 4_000
    scan = needed(1_000, 2_000, append="scan")
    assert (scan["queue"], scan["edge_begin"]) == (4_000, 4_000)
    assert scan["part_sums"] == 2048 * 8 + 8_000
    padded = needed(1_000, 2_000, append="scan_padded")
    assert (padded["queue"], padded["edge_begin"]) == (2001 * 4, 2001 * 4)
    assert needed(1_000, 2_000, append="scan_padded", claim="naive")["queue"] == 2 * 2001 * 4
    assert padded["part_sums"] == 2048 * 8
    # Four bitmaps of 1,000 bits each, in whole cache lines.
    assert needed(1_000, 1_000, direction="auto", frontier="dense")["bitmaps"] == 4 * 128
    dense = needed(1_025, 1_000, direction="auto", frontier="dense")
    assert (dense["bitmaps"], dense["likely_parents"]) == (4 * 256, 4_100)
    assert "likely_parents" not in needed(1_025, 1_000, advance="topology", frontier="dense")
    backwards = needed(1_000, 1_000, directed=True, direction="auto")
    assert (backwards["in_row_offsets"], backwards["in_col_indices"]) == (4_004, 4_000)
    assert "in_row_offsets" not in needed(1_000, 1_000, direction="auto")


def test_the_even_degree_is_the_device_codes() -> None:
    text = (source_folder() / "frontier.cuh").read_text()
    assert re.findall(r"EVEN_DEGREE = (\d+);", text) == [str(EVEN_DEGREE)]


@pytest.mark.parametrize(
    ("advance", "direction", "append", "frontier"),
    [
        *product(["thread", "edge", "edge_list"], ["push", "auto"], ["warp"], ["sparse"]),
        *product(["thread", "edge"], ["push"], ["scan", "scan_padded"], ["sparse"]),
        *product(["thread", "edge"], ["auto"], ["block"], ["dense"]),
    ],
)
def test_the_estimate_is_what_is_allocated(
    advance: str, direction: str, append: str, frontier: str
) -> None:
    from persistent_bfs.device.emulated import EmulatedDevice

    graph = Graph.from_edges([0, 1, 2, 5], [1, 2, 3, 0], directed=True)
    with (
        EmulatedDevice() as device,
        BFS(
            graph,
            device=device,
            advance=advance,
            direction=direction,
            append=append,
            frontier=frontier,
            trace=True,
        ) as search,
    ):
        assert {name: buffer.nbytes for name, buffer in search.buffers.items()} == (
            memory_needed(6, 4, search.config, directed=True)
        )
        assert find_problem(graph, search.run(0)) is None


def test_a_graph_that_does_not_fit_is_refused_with_numbers_and_leaks_nothing() -> None:
    from persistent_bfs.device.emulated import EmulatedDevice

    graph = read_graph("grid:100x100")
    config = Config("persistent")
    needed = sum(memory_needed(graph.vertices, graph.arcs, config, directed=False).values())
    with EmulatedDevice(memory_bytes=needed - 1) as device:
        free = device.free_bytes()
        with pytest.raises(
            DeviceMemoryError, match=rf"needs {needed:,} bytes .* {free:,} are free"
        ):
            BFS(graph, engine="persistent", device=device)
        assert device.free_bytes() == free


def test_edges_that_cannot_be_counted_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.engines.base.MAX_COUNTED_ARCS", 100)
    with pytest.raises(DeviceError, match="counted in 32 bits, and the graph has 360 arcs"):
        BFS(read_graph("grid:10x10"), device="emulated", advance="edge")
    with BFS(read_graph("grid:10x10"), device="emulated", advance="warp") as search:
        assert search.run(0).reached == 100


def _granularity(device: Device) -> int:
    """What free memory may be off by: the driver hands it out in pages of 2 MiB."""
    return 4 * 2**20 if device.info.kind == "cuda" else 0


def test_a_failure_while_preparing_gives_the_memory_back(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _bytes_in_buffers(device)
    monkeypatch.setattr(device, "load", lambda _: (_ for _ in ()).throw(DeviceError("no")))
    with pytest.raises(DeviceError, match="no"):
        BFS(read_graph("grid:2000x2000"), device=device)  # 180 MB
    assert _bytes_in_buffers(device) == before


def test_two_small_graphs_in_turn_leave_memory_flat(device: Device) -> None:
    graphs = [read_graph("grid:20x20"), read_graph("star:300")]

    def turns(count: int) -> int:
        for turn in range(count):
            with BFS(graphs[turn % 2], device=device, block_threads=64) as search:
                assert search.run(0).enqueued == graphs[turn % 2].vertices
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = turns(100)
    taken, buffers = [], _bytes_in_buffers(device)
    for _ in range(3):
        free = device.free_bytes()
        after = turns(300)
        taken.append(free - device.free_bytes())
        assert _bytes_in_buffers(device) == buffers
    assert after - before < 16 * 1024  # kB
    # What lies outside buffers shows in the whole GPU's free memory alone, which other processes
    # move, too; but what leaks here is gone in every round.
    assert min(taken) <= _granularity(device)


def _bytes_in_buffers(device: Device) -> int:
    """Device memory in buffers of this process, whatever others do: by the device's own account."""
    if device.info.kind == "emulated":
        return device.info.memory_bytes - device.free_bytes()
    return int(device.allocated_bytes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["grid:40x40", "kron:9:8", "star:3000"])
def test_a_session_allocates_what_was_estimated_to_the_byte(device: Device, name: str) -> None:
    graph = read_graph(name)
    before = _bytes_in_buffers(device)
    with BFS(graph, device=device, predecessors=True, trace=True) as search:
        needed = memory_needed(
            graph.vertices,
            graph.arcs,
            search.config,
            directed=graph.directed,
            max_degree=graph.max_degree,
        )
        assert _bytes_in_buffers(device) - before == sum(needed.values())
        search.run(0)
        assert _bytes_in_buffers(device) - before == sum(needed.values())
    assert _bytes_in_buffers(device) == before


def test_a_leak_would_show(device: Device) -> None:
    before = _bytes_in_buffers(device)
    with device.current():
        buffer = device.allocate(1 << 20, np.int32, "what is forgotten")
    assert _bytes_in_buffers(device) >= before + (4 << 20)
    with device.current():
        buffer.free()
    assert _bytes_in_buffers(device) == before


def test_the_same_search_again_and_again_gives_the_same_distances(device: Device) -> None:
    graph = read_graph("kron:8:16")
    source = int(np.argmax(graph.degrees))
    with BFS(graph, device=device) as search:
        first = search.run(source).distances
        assert find_problem(graph, search.run(source)) is None
        repeats = 1000 if device.info.kind == "cuda" else 50
        for _ in range(repeats):
            np.testing.assert_array_equal(search.run(source).distances, first)


def test_measuring_checks_first_and_times_only_what_has_a_clock(device: Device) -> None:
    with BFS(read_graph("grid:30x30"), device=device) as search:
        measured = measure(search, 0, repeat=3)
        assert measured.verified
        if device.info.kind == "cuda":
            assert measured.device is not None
            assert measured.wall is not None
            assert len(measured.device.samples) == 3
            assert 0 < measured.device.min <= measured.device.median <= measured.wall.max
        else:
            assert measured.device is None
            assert measured.result.wall_ms is None
        wrong = np.zeros(900, np.int32)
        assert not measure(search, 0, repeat=1, expected=wrong).verified
        with pytest.raises(ValueError, match="repeat is 0"):
            measure(search, 0, repeat=0)


def test_spreads_and_means() -> None:
    assert Timing((3.0, 1.0, 2.0)).spread() == {"min": 1.0, "median": 2.0, "max": 3.0}
    assert harmonic_mean([1.0, 3.0]) == 1.5


@pytest.mark.parametrize(
    ("cooperative", "while_nodes", "engine"),
    [(True, True, "persistent"), (False, True, "graph_while"), (False, False, "graph_unrolled")],
)
def test_the_automatic_engine_is_one_the_device_has(
    cooperative: bool, while_nodes: bool, engine: str
) -> None:
    from dataclasses import replace

    from persistent_bfs.device.emulated import EmulatedDevice

    with EmulatedDevice() as device:
        device.info = replace(
            device.info, cooperative_launch=cooperative, while_nodes=while_nodes, driver="CUDA 12.2"
        )
        assert choose_engine("auto", device)[0] == engine
        name, why = choose_engine("graph_while", device)
        assert name == ("graph_while" if while_nodes else "graph_unrolled")
        assert ("12.4" in why) != while_nodes
        with BFS(read_graph("path:9"), engine=name, device=device) as search:
            assert find_problem(search.graph, search.run(0)) is None


def test_a_look_at_the_first_levels_tells_deep_from_wide() -> None:
    for spec in ("path:10000", "grid:300x300", "maze:200x200", "road:200x200", "cycle:9000"):
        assert looks_deep(read_graph(spec)), spec
    for spec in ("random:20000:60000", "tree:2:14", "tree:4:8"):
        assert not looks_deep(read_graph(spec)), spec


@pytest.mark.parametrize(
    ("engine", "deep", "wide"),
    [
        ("host_loop", None, None),
        ("host_batched", 32, 16),
        ("graph_unrolled", 64, 16),
        ("graph_while", 16, 8),
        ("persistent", None, None),
    ],
)
def test_so_many_levels_are_issued_as_suit_the_graph(
    engine: str, deep: int | None, wide: int | None
) -> None:
    for spec in ("path:10000", "grid:300x300"):
        assert suitable_levels(engine, read_graph(spec)) == deep, spec
    for spec in ("words-kjv", "star:3000", "random:20000:60000"):
        assert suitable_levels(engine, read_graph(spec)) == wide, spec


needs_emulation = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)


PUSH = ("push", "sparse")


@pytest.mark.parametrize(
    ("spec", "how", "chosen"),
    [
        ("kron:15", {}, ("auto", "sparse")),
        ("kron:15", {"tiers": "none", "predecessors": True, "append": "block"}, ("auto", "sparse")),
        ("kron:15", {"direction": "push"}, PUSH),
        ("kron:15", {"frontier": "sparse"}, PUSH),
        ("kron:15", {"engine": "persistent"}, PUSH),
        ("kron:15", {"advance": "edge"}, PUSH),
        ("kron:15", {"append": "scan"}, PUSH),
        ("kron:15", {"claim": "naive"}, PUSH),
        ("kron:10", {}, PUSH),  # few arcs
        ("grid:400x400", {}, PUSH),  # deep
        ("random:20000:100000", {}, PUSH),  # no degree is large
    ],
)
@needs_emulation
def test_wide_graphs_are_pulled_where_nobody_says_otherwise(
    spec: str, how: dict[str, Any], chosen: tuple[str, str]
) -> None:
    graph = read_graph(spec)
    with BFS(graph, device="emulated", **how) as search:
        assert (search.config.direction, search.config.frontier) == chosen
        told = f"direction auto, {chosen[1]} frontiers: {graph.arcs:,} arcs" in search.reason
        assert told == (chosen != PUSH)


@needs_emulation
@pytest.mark.parametrize("spec", ["kron:15", "random:20000:100000"])
def test_very_many_arcs_are_worth_bitmaps(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.plan.DENSE_ARCS", 1 << 17)
    graph = read_graph(spec)
    with BFS(graph, device="emulated") as search:
        result = search.run(int(np.argmax(graph.degrees)))
        assert find_problem(graph, result) is None
        assert (result.direction, result.frontier) == ("auto", "dense")
        assert f"direction auto, dense frontiers: {graph.arcs:,} arcs" in result.reason


@needs_emulation
def test_a_directed_graph_is_not_transposed_unasked() -> None:
    graph = read_graph("kron:15")
    arcs = Graph.from_arrays(graph.row_offsets, graph.col_indices, directed=True)
    with BFS(arcs, device="emulated") as search:
        assert search.config.direction == "push"


@needs_emulation
def test_bitmaps_that_do_not_fit_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.plan.DENSE_ARCS", 1 << 19)
    graph = read_graph("kron:15")
    plain = configure(graph, engine="persistent", advance="auto")
    pushed = sum(memory_needed(graph.vertices, graph.arcs, plain, directed=False).values())
    with EmulatedDevice() as device:
        monkeypatch.setattr(device, "free_bytes", lambda: pushed + 100)
        with BFS(graph, device=device) as search:
            assert search.config.direction == "push"
            assert "push: direction auto would need" in search.reason


def test_the_automatic_engine_has_a_tier_where_levels_are_narrow() -> None:
    for spec, tier in (("grid:90x90", "block"), ("random:9000:27000", "none")):
        with BFS(read_graph(spec), device="emulated") as search:
            assert (search.config.engine, search.config.tier) == ("persistent", tier)
            assert ("block tier: the first levels are narrow" in search.reason) == (tier != "none")


def test_tiers_are_tried_in_the_order_given() -> None:
    graph = read_graph("grid:9x9")
    for tiers, tier in (("block,cluster", "block"), ("cluster,block", "cluster")):
        with BFS(graph, tiers=tiers, device="emulated") as search:
            assert search.config.tier == tier
            assert find_problem(graph, search.run(0)) is None


@pytest.mark.parametrize(
    ("tiers", "words"),
    [
        ("warp", "unknown tier 'warp'; choose one of none, block, cluster"),
        ("block,none", "none allows no other"),
        ("", "unknown tier ''"),
    ],
)
def test_tiers_that_are_none_are_refused(tiers: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BFS(read_graph("path:9"), tiers=tiers, device="emulated")


def test_only_the_persistent_engine_has_tiers() -> None:
    with pytest.raises(ValueError, match="host_loop engine has no tiers"):
        BFS(read_graph("path:9"), engine="host_loop", tiers="block", device="emulated")


def test_the_automatic_mapping_counts_edges_only_where_degrees_are_large() -> None:
    for spec, counts in (("grid:9x9", False), ("star:66", True), ("star:65", False)):
        with BFS(read_graph(spec), device="emulated", advance="auto") as search:
            assert search.config.counts_edges == counts
            assert find_problem(search.graph, search.run(0)) is None
    hub = read_graph("star:90")
    assert choose_advance("auto", "push", hub) == ("auto", "")
    assert choose_advance("auto", "pull", hub)[0] == "thread"


@needs_emulation
def test_more_arcs_than_are_counted_are_searched_without_counting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("plan", "engines.base"):
        monkeypatch.setattr(f"persistent_bfs.{module}.MAX_COUNTED_ARCS", 100)
    for name, advance in (("star:90", "bucketed"), ("grid:9x9", "auto")):
        graph = read_graph(name)
        assert graph.arcs > 100
        with BFS(graph, device="emulated") as search:
            assert (search.config.advance, search.config.counts_edges) == (advance, False)
            assert ("more than a frontier's counter holds" in search.reason) == (name == "star:90")
            assert find_problem(graph, search.run(5)) is None
        with pytest.raises(DeviceError, match="a frontier's edges are counted in 32 bits"):
            BFS(graph, device="emulated", advance="edge")


def test_what_was_chosen_and_why_is_in_the_result() -> None:
    with BFS(read_graph("star:99"), device="emulated", direction="pull") as search:
        result = search.run(0)
    assert (result.engine, result.advance) == ("persistent", "thread")
    assert "emulated device: asked for" in result.reason
    assert "persistent: the least a level of any width can cost" in result.reason
    assert "thread mapping: the one that pull combines with" in result.reason


@pytest.mark.cuda
def test_a_forked_process_is_told_to_spawn() -> None:
    choice = open_device("cuda")
    assert choice.device is not None
    with choice.device as device, BFS(read_graph("path:9"), device=device) as search:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                search.run(0)
                message = b"ran"
            except DeviceError as error:
                message = str(error).encode()
            os.write(writer, message)
            os._exit(0)
        os.waitpid(child, 0)
        assert b'get_context("spawn")' in os.read(reader, 4096)
        assert search.run(0).reached == 9


@pytest.mark.cuda
def test_a_small_session_takes_no_shared_memory_from_a_large_one() -> None:
    large, small = read_graph("path:900000"), read_graph("path:3000")
    with BFS(large, device="cuda", tiers="block") as first:
        assert first.run(0, max_depth=40).reached == 41
        with BFS(small, device="cuda", tiers="block", predecessors=False) as second:
            assert first.config == second.config  # one kernel
            assert second.run(0).reached == 3000
            assert first.run(9, max_depth=40).reached == 50
        with BFS(large, device="cuda", tiers="block") as third:
            assert third.run(0, max_depth=4).reached == 5


@pytest.mark.cuda
def test_pytorch_in_the_same_process_still_works() -> None:
    torch = pytest.importorskip("torch")
    before = torch.arange(10, device="cuda").sum().item()
    assert bfs(read_graph("path:9"), 0, device="cuda").reached == 9
    assert torch.arange(10, device="cuda").sum().item() == before == 45
    assert bfs(read_graph("path:9"), 0, device="cuda").reached == 9


@pytest.mark.cuda
def test_another_thread_at_work_during_capture_does_no_harm() -> None:
    import threading

    choice = open_device("cuda")
    assert choice.device is not None
    with choice.device as device:
        stop = threading.Event()
        failures: list[Exception] = []

        def disturb() -> None:
            try:
                while not stop.is_set():
                    with device.current():
                        assert not device.cu.cuCtxSynchronize()[0]  # type: ignore[attr-defined]
                        device.allocate(256, np.int32, "beside").free()
            except Exception as error:
                failures.append(error)

        thread = threading.Thread(target=disturb)
        thread.start()
        try:
            for engine in ("graph_unrolled", "graph_while"):
                for _ in range(5):
                    with BFS(read_graph("path:90"), engine=engine, device=device) as search:
                        assert search.run(0).reached == 90
        finally:
            stop.set()
            thread.join()
        assert not failures


@pytest.mark.parametrize("engine", ["host_loop", "host_batched", "graph_while", "persistent"])
@pytest.mark.parametrize("tiers", ["none", "block", "cluster"])
def test_a_search_that_takes_too_long_is_stopped(device: Device, engine: str, tiers: str) -> None:
    if tiers != "none" and engine != "persistent":
        pytest.skip("the persistent engine alone has tiers")
    graph = read_graph("path:300000")
    with BFS(graph, device=device, engine=engine, tiers=tiers, time_limit=0.02) as search:
        with pytest.raises(
            SearchTimeout, match=rf"{engine}: stopped at level [\d,]+, after .* 0.02 s"
        ):
            search.run(0)
        # The session goes on: the other end of the path is near.
        search.time_limit = None
        result = search.run(graph.vertices - 1, max_depth=30)
        assert find_problem(graph, result, max_depth=30) is None


emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))

HEARD_BY = {
    "host_batched": "loop_level.cuh",
    "graph_unrolled": "loop_level.cuh",
    "graph_while": "loop_level.cuh",
    "persistent": "loop_persistent.cuh",
}


@emulated
@pytest.mark.parametrize("append", ["warp", "block"])
@pytest.mark.parametrize("engine", HEARD_BY)
def test_all_threads_do_as_the_leader_hears(
    engine: str, append: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    """The host's word may come between the looks of two threads; here it depends on who looks."""
    word = "load_relaxed(&state_.stop)" if engine == "persistent" else "load_relaxed(&state.stop)"
    seed_fault(HEARD_BY[engine], word, "static_cast<int>(threadIdx.x % 2)")
    how = {"engine": engine, "append": append, "tiers": "none", "device": "emulated"}
    with BFS(read_graph("grid:9x9"), **how) as search:
        assert find_problem(search.graph, search.run(40)) is None


@emulated
@pytest.mark.parametrize("engine", HEARD_BY)
def test_a_search_that_is_stopped_says_so(
    engine: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    word = "load_relaxed(&state_.stop)" if engine == "persistent" else "load_relaxed(&state.stop)"
    seed_fault(HEARD_BY[engine], word, "1")
    with (
        BFS(read_graph("path:90"), engine=engine, tiers="none", device="emulated") as search,
        pytest.raises(DeviceError, match=f"{engine}: the search was stopped"),
    ):
        search.run(0)


@emulated
def test_one_warp_stops_if_any_lane_hears(seed_fault: Callable[[str, str, str], None]) -> None:
    heard = "load_relaxed(&parameters.state->stop) != 0"
    seed_fault("position.cuh", heard, "(threadIdx.x % 32 == 7)")
    with BFS(read_graph("path:200"), tiers="block", device="emulated") as search:
        assert find_problem(search.graph, search.run(0)) is None


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "1", True])
def test_time_limits_that_are_none_are_refused(seconds: object) -> None:
    error = TypeError if isinstance(seconds, (str, bool)) else ValueError
    with pytest.raises(error, match=r"time_limit is .*; it must be a number of seconds above 0"):
        BFS(read_graph("path:9"), device="emulated", time_limit=seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [float("inf"), 1e10, np.float32("inf")])
def test_a_limit_that_nothing_reaches_is_none(seconds: float) -> None:
    with BFS(read_graph("path:9"), device="reference", time_limit=seconds) as search:
        assert search.time_limit is None
        assert search.run(0).depth == 8


def test_a_search_in_time_is_not_stopped(device: Device) -> None:
    with BFS(read_graph("path:99"), device=device, time_limit=60) as search:
        assert find_problem(search.graph, search.run(5)) is None


@needs_emulation
@pytest.mark.parametrize(
    ("engine", "asked", "issued"),
    [
        ("host_batched", None, 16),
        ("graph_unrolled", None, 16),
        ("graph_while", None, 8),
        ("graph_while", 5, 6),
        ("graph_unrolled", 1, 2),
        ("host_loop", 5, 1),
        ("persistent", None, 1),
    ],
)
def test_a_session_says_how_many_levels_it_issues(
    engine: str, asked: int | None, issued: int
) -> None:
    options = Options(levels_per_launch=asked)
    with BFS(read_graph("star:90"), engine=engine, device="emulated", options=options) as search:
        assert search.levels_per_launch == issued
    with BFS(read_graph("star:90"), device="reference") as search:
        assert search.levels_per_launch == 1
