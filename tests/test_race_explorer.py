"""The race explorer: how many schedules duplicate, and one of them step by step."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FRONTIER_MODEL, hub, path, undirected

from persistent_bfs import BFS, Graph
from persistent_bfs.config import ENGINES
from persistent_bfs.device.base import DeviceError
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.race import RaceReport, explore

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

# Level 1 is {1, 2}; both lead to vertex 3, and level 2's {3, 4} both to 5.
SIX = FRONTIER_MODEL


@pytest.fixture(scope="module")
def naive() -> RaceReport:
    return explore(SIX, 0)


def test_the_naive_claim_duplicates_under_some_schedules_with_right_distances(
    naive: RaceReport,
) -> None:
    assert len(naive.runs) == 200
    assert [run.seed for run in naive.runs] == list(range(200))
    assert 0 < len(naive.duplicating) < 200
    assert naive.distances_right
    assert naive.reached == 6
    assert sum(naive.sums.values()) == 200
    assert min(naive.sums) == 6
    assert 200 - naive.sums[6] == len(naive.duplicating)


def test_the_worst_schedule_makes_three_discoveries_of_two_vertices(naive: RaceReport) -> None:
    worst = naive.runs[0]
    frontiers = naive.frontiers(worst)
    assert [sorted(frontier) for frontier in frontiers[:3]] == [[0], [1, 2], [3, 3, 4]]
    assert worst.duplicated == (3, 5)
    assert worst.enqueued == sum(map(len, frontiers)) > 6


def test_some_seed_discovers_exactly_one_vertex_twice(naive: RaceReport) -> None:
    seven = next(run for run in naive.runs if run.enqueued == 7)
    assert len(seven.duplicated) == 1
    assert sorted(seven.queue.tolist()) == sorted([0, 1, 2, 3, 4, 5, *seven.duplicated])


def test_the_check_flags_the_naive_claim_in_its_one_run(naive: RaceReport) -> None:
    (race,) = naive.races
    assert race.first.kernel == "search_persistent"
    assert (race.first.place, race.second.place) == ("distances[3]", "distances[3]")
    assert {race.first.source.file, race.second.source.file} == {"claim/naive.cuh"}


@pytest.mark.parametrize("claim", ["cas", "min"])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_exact_claim_never_duplicates(engine: str, claim: str) -> None:
    report = explore(SIX, 0, engine=engine, claim=claim, schedules=60)
    assert report.duplicating == ()
    assert report.sums == {6: 60}
    assert report.distances_right
    assert report.races == ()
    assert {len(report.frontiers(run)[2]) for run in report.runs} == {2}


@pytest.mark.parametrize("claim", ["cas", "min"])
def test_both_compaction_orders_are_seen(claim: str) -> None:
    report = explore(SIX, 0, advance="warp", claim=claim, schedules=60, check=False)
    assert {tuple(report.frontiers(run)[2]) for run in report.runs} == {(3, 4), (4, 3)}


def test_the_interleaving_tells_how_the_vertex_was_discovered_twice(naive: RaceReport) -> None:
    assert (naive.vertex, naive.seed) == (3, 0)
    told = naive.interleaving
    assert [each.step for each in told] == sorted(each.step for each in told)
    reset, *search = (each for each in told if each.buffer == "distances")
    assert (reset.kind, reset.before, reset.after) == ("write", None, -1)
    assert reset.source.file == "reset.cuh"
    # Both look before either writes.
    assert [(each.kind, each.before, each.after) for each in search] == [
        ("read", -1, -1),
        ("read", -1, -1),
        ("write", -1, 2),
        ("write", 2, 2),
    ]
    assert {each.place for each in search} == {"distances[3]"}
    lookers = [(each.block, each.thread) for each in search[:2]]
    assert len(set(lookers)) == 2
    assert sorted((each.block, each.thread) for each in search[2:]) == sorted(lookers)
    assert {each.source.text for each in search} == {
        "return distances[v] == UNVISITED;",
        "distances[v] = distance;",
    }
    appended = [each for each in told if each.buffer == "queue"]
    assert [(each.kind, each.before, each.after) for each in appended] == [("write", None, 3)] * 2
    slots = np.flatnonzero(naive.runs[0].queue == 3).tolist()
    assert sorted(each.index for each in appended) == slots
    assert {each.source.file for each in appended} == {"append/warp.cuh"}


def test_the_interleaving_of_an_exact_claim_shows_who_lost() -> None:
    report = explore(SIX, 0, claim="cas", schedules=3)
    assert (report.vertex, report.seed) == (3, 0)
    atomics = [each for each in report.interleaving if each.kind == "atomic"]
    assert [(each.before, each.after) for each in atomics] == [(-1, 2), (2, 2)]
    assert {each.source.file for each in atomics} == {"claim/cas.cuh"}
    winner, loser = atomics
    (append,) = (each for each in report.interleaving if each.buffer == "queue")
    assert (append.block, append.thread) == (winner.block, winner.thread)
    assert (append.block, append.thread) != (loser.block, loser.thread)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_replays_the_same_interleaving(engine: str) -> None:
    report = explore(SIX, 0, engine=engine, schedules=40, check=False)
    for run in report.duplicating[-2:]:
        first = report.replay(run.seed, run.duplicated[0])
        assert first == report.replay(run.seed, run.duplicated[0])
        writes = [each for each in first if each.buffer == "queue"]
        assert len(writes) == run.queue.tolist().count(run.duplicated[0]) == 2
    assert report.seed is not None
    assert report.vertex is not None
    assert report.replay(report.seed, report.vertex) == report.interleaving


def test_a_seed_means_the_same_on_a_device_of_its_own(naive: RaceReport) -> None:
    for run in naive.runs[1:200:17]:
        with (
            EmulatedDevice(schedule="adversarial", seed=run.seed) as device,
            BFS(
                SIX,
                engine="persistent",
                advance="thread",
                claim="naive",
                device=device,
                block_threads=32,
            ) as search,
        ):
            assert search.run(0).enqueued == run.enqueued


def test_a_depth_limit_ends_the_search_early() -> None:
    report = explore(SIX, 0, max_depth=2, schedules=5, check=False)
    assert report.distances.tolist() == [0, 1, 1, 2, 2, -1]
    assert report.distances_right
    assert report.reached == 5
    assert report.runs[0].enqueued == 6  # 0; 1 and 2; then 3, 3 and 4


@pytest.mark.parametrize("graph", [undirected(1), undirected(3), path(5), hub(40)])
def test_where_no_two_arcs_meet_nothing_is_told(graph: Graph) -> None:
    report = explore(graph, 0, schedules=3)
    assert report.duplicating == ()
    assert report.races == ()
    assert (report.vertex, report.seed, report.interleaving) == (None, None, ())


def test_duplicates_that_overflow_the_queue_are_counted() -> None:
    # Twenty vertices all lead to one, at once: three times the queue's two entries a vertex.
    ladder = [(0, v) for v in range(1, 21)] + [(u, v) for u in range(1, 21) for v in range(21, 24)]
    report = explore(undirected(24, *ladder), 0, schedules=1, check=False)
    (run,) = report.duplicating
    assert run.overflowed
    assert not report.distances_right
    assert run.enqueued == 0
    assert report.vertex == 21


def test_progress_is_told() -> None:
    done: list[int] = []
    explore(SIX, 0, schedules=4, check=False, progress=done.append)
    assert done == [1, 2, 3, 4]


def test_refusals() -> None:
    with pytest.raises(ValueError, match="schedules is 0; it must be at least 1"):
        explore(SIX, 0, schedules=0)
    with pytest.raises(ValueError, match="unknown claim 'hope'; choose one of"):
        explore(SIX, 0, claim="hope")
    with pytest.raises(ValueError, match="6"):
        explore(SIX, 6)
    with EmulatedDevice() as device:
        with pytest.raises(DeviceError, match="there is no buffer 'distances'"):
            device.watch("distances", 0)
        device.allocate(4, np.int32, "distances")
        with pytest.raises(DeviceError, match="item 4 of 'distances', which has 4"):
            device.watch("distances", 4)
        device.allocate(4, np.dtype([("a", np.int64), ("b", np.int64)]), "pairs")
        with pytest.raises(DeviceError, match="the items of 'pairs' have 16 bytes, more than 8"):
            device.watch("pairs", 0)


def test_an_append_that_leaves_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="scan_padded append leaves gaps"):
        explore(FRONTIER_MODEL, 0, append="scan_padded", schedules=1)
