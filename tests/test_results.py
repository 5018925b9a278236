"""Results own what they say, whatever their session does next."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

from persistent_bfs import BFS, BFSResult, Graph, bfs, read_graph
from persistent_bfs.device.base import Device, DeviceError, DeviceMemoryError
from persistent_bfs.device.emulated import EmulatedBuffer, emulated_problem
from persistent_bfs.measure import find_problem
from persistent_bfs.reference import bfs_reference

PATH = read_graph("path:40")
GRID = read_graph("grid:17x13")


def expected(source: int) -> list[int]:
    return [abs(v - source) for v in range(PATH.vertices)]


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the buffers that were copied to the host, as it happened."""
    if emulated_problem() is not None:
        pytest.skip(str(emulated_problem()))
    made: list[str] = []
    to_host = EmulatedBuffer.to_host

    def counted(self: EmulatedBuffer, *args: int, **how: int) -> np.ndarray:
        made.append(self.name)
        return to_host(self, *args, **how)

    monkeypatch.setattr(EmulatedBuffer, "to_host", counted)
    return made


def test_all_results_of_a_session_can_be_looked_at_in_any_order(device: Device) -> None:
    with BFS(PATH, device=device, predecessors=True) as search:
        results = [search.run(source) for source in range(12)]
        middle = results[5].distances.tolist()
    assert middle == expected(5)
    for source in (11, 0, 3, 7, 10):
        assert results[source].distances.tolist() == expected(source)
        assert find_problem(PATH, results[source]) is None
    assert [r.reached for r in results] == [40] * 12
    assert [r.depth for r in results] == [max(expected(source)) for source in range(12)]


def test_a_loop_that_keeps_only_its_last_result_copies_nothing(copies: list[str]) -> None:
    with BFS(PATH, device="emulated") as search:
        depths = []
        for source in range(10):
            result = search.run(source)  # the one before is there until this is over
            depths.append(result.depth)
        assert copies == []
        assert result.distances.tolist() == expected(9)
    assert depths == [max(expected(source)) for source in range(10)]
    assert copies == ["distances"]


def test_results_that_nobody_keeps_cost_no_memory(copies: list[str]) -> None:
    with BFS(PATH, device="emulated") as search:
        before = search.device.free_bytes()  # type: ignore[union-attr]
        for source in range(10):
            search.run(source)
        assert search.device.free_bytes() == before  # type: ignore[union-attr]
    assert copies == []


def test_each_kept_result_is_copied_once(copies: list[str]) -> None:
    with BFS(PATH, device="emulated") as search:
        results = [search.run(source) for source in range(6)]
    for source, result in enumerate(results * 2):
        assert result.distances.tolist() == expected(source % 6)
    assert len(copies) == 6


def test_where_memory_is_short_an_answer_goes_to_the_host_at_once(
    monkeypatch: pytest.MonkeyPatch, copies: list[str]
) -> None:
    with BFS(PATH, device="emulated") as search:
        first = search.run(1)

        def full(*_: object) -> None:
            raise DeviceMemoryError("full")

        monkeypatch.setattr(search.device, "allocate", full)
        second = search.run(2)
        assert copies == ["distances"]
        assert first.distances.tolist() == expected(1)
        assert second.distances.tolist() == expected(2)


def test_a_search_that_fails_leaves_earlier_results_alone(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BFS(PATH, device=device) as search:
        first = search.run(3)
        engine = search._resident.engine  # type: ignore[union-attr]
        with monkeypatch.context() as broken:
            broken.setattr(engine, "search", lambda *_: pytest.fail("as a launch fails"))
            with pytest.raises(pytest.fail.Exception):
                search.run(4)
        assert first.distances.tolist() == expected(3)
        assert search.run(5).distances.tolist() == expected(5)


@pytest.mark.parametrize("how", ["device", "reference"])
def test_results_are_plain_data_once_pickled(device: Device, how: str) -> None:
    where = device if how == "device" else "reference"
    with BFS(PATH, device=where, predecessors=True, trace=True) as search:
        result = search.run(7)
        again = pickle.loads(pickle.dumps(result))
        search.run(8)
    assert isinstance(again, BFSResult)
    assert again == result
    assert again.distances.tolist() == expected(7)
    assert again.predecessors.tolist() == result.predecessors.tolist()
    assert again.trace == result.trace
    assert again.summary() == result.summary()


def test_equal_results_say_the_same_of_the_same_source(device: Device) -> None:
    with BFS(GRID, device=device) as search:
        a, b, other = search.run(4), search.run(4), search.run(5)
    assert a == b
    assert hash(a) == hash(b)
    assert a != other
    assert a == bfs(GRID, 4, device="reference")
    assert a != bfs(GRID, 4, device="reference", max_depth=3)
    assert a != "a result"


def test_a_result_shows_itself_shortly() -> None:
    result = bfs(PATH, 0, device="reference")
    assert repr(result) == (
        "BFSResult(source=0, reached=40, levels=40, engine=reference, device=reference)"
    )
    html = result._repr_html_()
    assert "<th>reached</th><td>40</td>" in html
    assert html.count("<tr>") == 5


def test_reached_counts_vertices_where_a_claim_lets_several_win() -> None:
    if emulated_problem() is not None:
        pytest.skip(str(emulated_problem()))
    graph = read_graph("random:60:240", seed=3)
    with BFS(
        graph,
        device="emulated",
        claim="naive",
        tiers="none",
        schedule="adversarial",
        block_threads=32,
    ) as search:
        result = search.run(0)
    right = bfs_reference(graph, 0).distances
    assert result.enqueued > result.reached == int((right >= 0).sum())


def test_threads_share_a_session(device: Device) -> None:
    """Distances of both, all right: one waits for the other."""
    wrong: list[tuple[int, int]] = []
    sources = np.random.default_rng(5).integers(0, GRID.vertices, 24).tolist()
    right = {source: bfs_reference(GRID, source) for source in set(sources)}
    with BFS(GRID, device=device, predecessors=True) as search:

        def ask(source: int) -> None:
            for limit in (None, 3):
                result = search.run(source, max_depth=limit)
                far = right[source].distances
                far = far if limit is None else np.where(far > limit, -1, far)
                if not np.array_equal(result.distances, far) or result.source != source:
                    wrong.append((source, int((result.distances != far).sum())))
                if find_problem(GRID, result, max_depth=limit):
                    wrong.append((source, -1))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, sources))
    assert wrong == []


def test_threads_look_at_results_while_others_search(device: Device) -> None:
    with BFS(PATH, device=device) as search:
        results = [search.run(source) for source in range(20)]
        failures: list[BaseException] = []

        def look() -> None:
            try:
                for source, result in enumerate(results):
                    assert result.distances.tolist() == expected(source)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for source in range(10):
            assert search.run(source).distances.tolist() == expected(source)
        for thread in threads:
            thread.join()
    assert failures == []


def test_closing_waits_for_another_threads_search(device: Device) -> None:
    search = BFS(read_graph("path:3000"), device=device)
    began, answers = threading.Event(), []

    def ask() -> None:
        began.set()
        try:
            answers.append(search.run(0).depth)
        except ValueError as error:
            answers.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    began.wait()
    search.close()
    thread.join()
    assert answers[0] in (2999, "this session is closed")


def test_a_session_that_is_dropped_gives_its_memory_back(device: Device) -> None:
    before = device.free_bytes()
    search = BFS(PATH, device=device)
    result = search.run(6)
    there = weakref.ref(search)
    del search
    gc.collect()
    assert there() is None
    assert result.distances.tolist() == expected(6)
    if device.info.kind == "emulated":  # elsewhere other processes move it, too
        assert device.free_bytes() == before


def test_an_answer_that_a_failing_device_took_along_says_so(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BFS(PATH, device=device) as search:
        result = search.run(0)

        def fail(*_: object, **__: object) -> None:
            raise DeviceError("a copy that fails")

        monkeypatch.setattr(type(search.buffers["distances"]), "to_host", fail)
    assert (result.reached, result.depth) == (40, 39)
    with pytest.raises(DeviceError, match="the distances of this search are gone: the device"):
        _ = result.distances


def test_sessions_of_two_graphs_in_two_threads_on_one_device(device: Device) -> None:
    def ask(graph: Graph) -> list[int]:
        with BFS(graph, device=device) as search:
            return [search.run(source).reached for source in range(8)]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(ask, [PATH, GRID, PATH, GRID]))
    assert found == [[40] * 8, [221] * 8] * 2
    assert all(a != b for a, b in pairwise(found))
