"""A search ends when its time is up or somebody interrupts it, and leaves nothing running."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from persistent_bfs import BFS, DeviceBusy, Graph, SearchTimeout, read_graph
from persistent_bfs.config import ENGINES
from persistent_bfs.device.base import Device, DeviceError
from persistent_bfs.engines import base as engines
from persistent_bfs.measure import find_problem

LONG = read_graph("path:60000")

LOOPS: dict[str, dict[str, Any]] = {
    **{engine: {"engine": engine, "tiers": "none"} for engine in ENGINES},
    "block tier": {"engine": "persistent", "tiers": "block"},
    "cluster tier": {"engine": "persistent", "tiers": "cluster"},
}


@pytest.fixture(autouse=True)
def hears_interrupts() -> Iterator[None]:
    """A process that was begun in the background may have been told to ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def after(seconds: float, number: int = signal.SIGINT) -> threading.Timer:
    """Send this process a signal."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    return timer


@pytest.mark.parametrize("loop", LOOPS)
def test_an_interrupt_ends_a_search_at_once(device: Device, loop: str) -> None:
    if device.info.kind == "cuda":
        graph = read_graph("path:20000000" if "tier" not in loop else "path:1000000")
    else:
        graph = LONG
    with BFS(graph, device=device, **LOOPS[loop]) as search:
        search.run(0, max_depth=4)
        timer, began = after(0.05), time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            search.run(0)
        assert time.monotonic() - began < 1.0
        timer.join()
        result = search.run(graph.vertices - 1, max_depth=30)
        assert result.reached == 31
        assert result.distances[-31:].tolist() == list(range(30, -1, -1))


def test_an_interrupt_with_a_handler_of_the_callers_own_is_left_to_it(device: Device) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with BFS(read_graph("path:3000"), device=device, tiers="none") as search:
            timer = after(0.002)
            assert search.run(0).depth == 2999
            timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT]


class Stuck:
    """A search that does not end for as long as `is_over` is false."""

    def __init__(self, search: BFS, monkeypatch: pytest.MonkeyPatch) -> None:
        assert search._resident is not None
        self.engine = search._resident.engine
        self.is_over = False
        self.stops = 0
        monkeypatch.setattr(self.engine, "search", self.search)
        monkeypatch.setattr(self.engine, "is_idle", lambda: self.is_over)
        monkeypatch.setattr(self.engine, "stop", self.stop)

    def stop(self) -> None:
        self.stops += 1

    def search(self, *_: int) -> Any:
        while True:
            self.engine.stream.lose_patience()
            time.sleep(1e-3)


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SECONDS_OF_GRACE", 0.05)
    monkeypatch.setattr("persistent_bfs.resident.SECONDS_TO_END", 0.05)


def allocated(device: Device) -> int:
    gc.collect()
    return device.info.memory_bytes - device.free_bytes()


@pytest.mark.usefixtures("short_grace")
def test_a_search_that_never_begins_is_given_up_and_its_memory_kept_until_it_is_over(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device.info.kind == "cuda":
        pytest.skip("what stands here for a busy device is real in the tests below")
    before = allocated(device)
    search = BFS(read_graph("path:50"), device=device, time_limit=0.02)
    first = search.run(3)
    stuck = Stuck(search, monkeypatch)
    with pytest.raises(DeviceBusy, match=r"after the time limit of 0.02 s: told to leave, the se"):
        search.run(0)
    assert stuck.stops > 1
    with pytest.raises(DeviceError, match="cannot search any more: its last one did not end"):
        search.run(0)
    assert first.distances[0] == 3  # moved out of the way before
    search.close()
    assert allocated(device) > before
    device.reap()
    assert allocated(device) > before
    stuck.is_over = True
    device.reap()
    assert allocated(device) == before


@pytest.mark.usefixtures("short_grace")
def test_two_interrupts_in_a_row_free_nothing_that_a_kernel_may_use(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if device.info.kind == "cuda":
        pytest.skip("what stands here for a busy device is real in the tests below")
    monkeypatch.setattr(engines, "SECONDS_OF_GRACE", 30.0)
    before = allocated(device)
    with BFS(read_graph("path:50"), device=device) as search:
        stuck = Stuck(search, monkeypatch)

        def stop_and_interrupt() -> None:
            stuck.stops += 1
            if stuck.stops == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(stuck.engine, "stop", stop_and_interrupt)
        timer = after(0.02)
        with pytest.raises(KeyboardInterrupt):
            search.run(0)
        timer.join()
        assert stuck.stops == 3
        with pytest.raises(DeviceError, match="cannot search any more"):
            search.run(0)
    assert allocated(device) > before
    stuck.is_over = True
    with BFS(read_graph("path:9"), device=device) as search:  # reaps
        assert search.run(0).depth == 8
    assert allocated(device) == before


HOG = """
import sys
from persistent_bfs import BFS, read_graph
with BFS(read_graph("path:30000000"), device="cuda", engine="persistent", tiers="none",
         time_limit=60) as search:
    print("ready", flush=True)
    search.run(0)
"""


@pytest.mark.cuda
def test_a_search_is_stopped_while_another_process_holds_the_gpu() -> None:
    hog = subprocess.Popen(
        [sys.executable, "-c", HOG],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    try:
        assert hog.stdout is not None
        assert hog.stdout.readline() == "ready\n"
        time.sleep(0.5)
        graph = read_graph("path:20000000")
        with BFS(graph, device="cuda", tiers="none", time_limit=0.5) as search:
            began = time.monotonic()
            with pytest.raises(SearchTimeout, match=r"time limit of 0.5 s"):
                search.run(0)
            assert time.monotonic() - began < 5.0
        assert hog.poll() is None  # it was there all the time
    finally:
        hog.kill()
        hog.communicate()


def _holder(graph: Graph, seconds: float) -> BFS:
    """A session whose kernel leaves no room for another one's."""
    from persistent_bfs.device import open_device

    opened = open_device("cuda").device
    assert opened is not None
    options: dict[str, Any] = {"engine": "persistent", "tiers": "none", "block_threads": 1024}
    with BFS(read_graph("path:9"), device="cuda", **options) as probe:
        assert probe._resident is not None
        kernel = probe._resident.engine.program["search_persistent"]
        blocks = opened.max_resident_blocks(kernel, 1024)
    return BFS(graph, device="cuda", blocks=blocks, time_limit=seconds, **options)


@pytest.mark.cuda
def test_a_search_that_cannot_begin_is_given_up() -> None:
    graph, small = read_graph("path:20000000"), read_graph("path:3000")
    ended: list[BaseException] = []
    with _holder(graph, 8.0) as holder:

        def hold() -> None:
            try:
                holder.run(0)
            except SearchTimeout as error:
                ended.append(error)

        waits = BFS(small, device="cuda", tiers="none", block_threads=1024, time_limit=0.3)
        assert waits.run(0).depth == 2999
        thread = threading.Thread(target=hold)
        thread.start()
        time.sleep(0.5)
        began = time.monotonic()
        with pytest.raises(DeviceBusy, match="another kernel keeps it from the GPU"):
            waits.run(0)
        assert time.monotonic() - began < 4.0
        waits.close()
        thread.join()
    assert len(ended) == 1
    with BFS(small, device="cuda") as search:
        assert find_problem(small, search.run(7)) is None
