"""Interleavings on demand: the naive claim discovers twice under some, the CAS claim under none."""

from __future__ import annotations

import pytest
from graphs import FRONTIER_MODEL, undirected
from loops import LOOPS, how, narrow_mappings, open_beside_waiting_blocks

from persistent_bfs import BFS, Options, read_graph
from persistent_bfs.config import ENGINES
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_serial

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

# Level 1 is {1, 2}; both see the unvisited vertex 3.
SIX = FRONTIER_MODEL


def _enqueued(loop: str, claim: str, schedule: str, seed: int, advance: str = "thread") -> int:
    with (
        EmulatedDevice(schedule=schedule, seed=seed) as device,
        BFS(
            SIX,
            **how(loop),
            advance=advance,
            claim=claim,
            device=device,
            block_threads=32,
            options=Options(tier_slots=2),
        ) as search,
    ):
        result = search.run(0)
        assert result.distances.tolist() == [0, 1, 1, 2, 2, 3]
        assert result.reached == 6
        return result.enqueued


def test_the_serial_search_gives_the_textbook_order() -> None:
    found = bfs_serial(SIX, 0)
    assert found.order.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.distances.tolist() == [0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("advance", ["thread", "warp"])
def test_seed_0_makes_the_naive_claim_discover_twice(engine: str, advance: str) -> None:
    assert _enqueued(engine, "naive", "adversarial", 0, advance) > 6


@pytest.mark.parametrize("schedule", ["roundrobin", "random"])
def test_schedules_that_cannot_split_check_from_write_do_not_show_it(schedule: str) -> None:
    assert {_enqueued("persistent", "naive", schedule, seed) for seed in range(20)} == {6}


def test_at_the_worst_level_1_discovers_vertex_3_twice() -> None:
    with (
        EmulatedDevice(schedule="adversarial", seed=0) as device,
        BFS(SIX, advance="thread", claim="naive", device=device, block_threads=32) as search,
    ):
        result = search.run(0, max_depth=2)
        assert result.distances.tolist() == [0, 1, 1, 2, 2, -1]
        assert result.enqueued == 6  # 0; 1 and 2; then 3, 3 and 4: three discoveries of two
        assert sorted(search.buffers["queue"].to_host(6)[3:].tolist()) == [3, 3, 4]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("advance", ["thread", "warp"])
@pytest.mark.parametrize("schedule", ["random", "adversarial"])
def test_the_cas_claim_never_discovers_twice(loop: str, advance: str, schedule: str) -> None:
    assert {_enqueued(loop, "cas", schedule, seed, advance) for seed in range(25)} == {6}


@pytest.mark.parametrize("slots", [2, 7, 64])
@pytest.mark.parametrize("schedule", ["random", "adversarial"])
@pytest.mark.parametrize("loop", [loop for loop in LOOPS if narrow_mappings(loop)])
def test_no_schedule_makes_a_tier_discover_twice_or_lose_a_vertex(
    loop: str, schedule: str, slots: int
) -> None:
    # Rows of up to 4 arcs, of 93, and of all lengths; some of the blocks wait for the tier.
    path = [(v, v + 1) for v in range(29)]
    hub = undirected(120, *path, *((15, v) for v in range(30, 120)))
    cases = [(read_graph("grid:9x5"), 0), (hub, 0), (hub, 119), (read_graph("kron:6:4"), 1)]
    for seed in range(8):
        for graph, source in cases:
            how_run = {"schedule": schedule, "seed": seed}
            with open_beside_waiting_blocks(loop, graph, slots, **how_run) as search:
                assert find_problem(graph, search.run(source)) is None, seed


def test_the_cas_claim_never_discovers_twice_in_1000_adversarial_seeds() -> None:
    duplicated = 0
    for seed in range(1000):
        with (
            EmulatedDevice(schedule="adversarial", seed=seed) as device,
            BFS(
                SIX, engine="host_loop", advance="thread", device=device, block_threads=32
            ) as search,
        ):
            result = search.run(0)
            assert find_problem(SIX, result) is None
            duplicated += result.enqueued != 6
    assert duplicated == 0


def test_some_adversarial_seeds_show_the_race_and_replay_it() -> None:
    seeds = [
        seed for seed in range(1, 200) if _enqueued("host_loop", "naive", "adversarial", seed) > 6
    ]
    assert seeds
    assert all(_enqueued("host_loop", "naive", "adversarial", seed) == 7 for seed in seeds[:3])


def test_both_compaction_orders_are_seen_over_schedules() -> None:
    orders = set()
    for seed in range(60):
        with (
            EmulatedDevice(schedule="adversarial", seed=seed) as device,
            BFS(SIX, engine="host_loop", advance="warp", device=device, block_threads=32) as search,
        ):
            search.run(0)
            orders.add(tuple(search.buffers["queue"].to_host().tolist()[3:5]))
    assert orders == {(3, 4), (4, 3)}
