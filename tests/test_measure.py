from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from persistent_bfs import BFS, measure, read_graph
from persistent_bfs.answer import Answer
from persistent_bfs.device import emulated_problem
from persistent_bfs.device.base import DeviceInfo
from persistent_bfs.measure import Timing

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))


def test_outliers_are_told_and_kept() -> None:
    timing = Timing((10.0, 11.0, 12.0, 13.0, 14.0, 100.0))
    assert timing.quartiles == (11.25, 13.75)
    assert timing.outliers == (100.0,)
    assert timing.max == 100.0
    assert timing.median == 12.5
    assert Timing((1.0,)).outliers == ()


def test_an_l2_state_that_there_is_not_is_refused() -> None:
    with (
        BFS(read_graph("path:3"), device="reference") as search,
        pytest.raises(ValueError, match="the L2 state is 'hot'; it must be one of warm, cold"),
    ):
        measure.measure(search, 0, l2="hot")


class TimedDevice:
    """As much of a device with a clock as `measure` asks for; each search takes a millisecond."""

    def __init__(self, l2_bytes: int) -> None:
        self.info = SimpleNamespace(kind="cuda", l2_bytes=l2_bytes)
        self.log: list[Any] = []

    @contextmanager
    def current(self) -> Iterator[None]:
        yield

    def allocate(self, count: int, *_: Any) -> Any:
        self.log.append(("allocate", count * 4))
        return SimpleNamespace(free=lambda: self.log.append("free"))

    def fill(self, *_: Any) -> None:
        self.log.append("evict")

    def synchronize(self) -> None:
        self.log.append("wait")


class TimedSession:
    """A session on such a device, whose answers are the reference's."""

    def __init__(self, device: TimedDevice) -> None:
        self.device = self.stream = device
        self.graph = read_graph("path:4")
        self._inner = BFS(self.graph, device="reference")

    def run(self, source: int, *, max_depth: int | None = None) -> Any:
        self.device.log.append("search")
        found = self._inner.run(source, max_depth=max_depth)
        object.__setattr__(found, "device_ms", 1.0)
        return found


@pytest.mark.parametrize(("l2_bytes", "written"), [(1 << 20, 4 << 20), (0, 1 << 28)])
def test_a_cold_l2_is_evicted_before_each_timed_search_and_waited_for(
    l2_bytes: int, written: int
) -> None:
    device = TimedDevice(l2_bytes)
    session: Any = TimedSession(device)
    found = measure.measure(session, 0, repeat=2, l2="cold")
    once = ["evict", "wait", "search"]
    untimed = ["search"] * (1 + measure.WARM_UPS)
    assert device.log == [*untimed, ("allocate", written), *once, *once, "free"]
    assert found.device == Timing((1.0, 1.0))


def test_a_warm_l2_is_left_alone() -> None:
    device = TimedDevice(1 << 20)
    session: Any = TimedSession(device)
    measure.measure(session, 0, repeat=2)
    assert device.log == ["search"] * (1 + measure.WARM_UPS + 2)


def test_what_is_not_verified_is_run_once_and_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "find_problem", lambda *_, **__: pytest.fail("checked"))
    device = TimedDevice(1 << 20)
    session: Any = TimedSession(device)
    found = measure.measure(session, 0, repeat=5, l2="cold", verify=False)
    assert device.log == ["search"]
    assert found.verified is found.problem is found.device is found.wall is None


@pytest.mark.parametrize("wrong_run", [0, 5])
def test_a_wrong_answer_has_no_time_whether_it_comes_first_or_last(wrong_run: int) -> None:
    class Wrong(TimedSession):
        """Wrong in one of its runs only."""

        runs = 0

        def run(self, source: int, *, max_depth: int | None = None) -> Any:
            found = super().run(source, max_depth=max_depth)
            if self.runs == wrong_run:
                wrong = found.distances + (found.distances == 3)
                found = replace(found, answer=Answer({"distances": wrong.astype(np.int32)}))
            self.runs += 1
            return found

    session: Any = Wrong(TimedDevice(1 << 20))
    found = measure.measure(session, 0, repeat=3)
    assert found.verified is False
    assert found.device is found.wall is None
    assert "vertex 3: distance 4, " in str(found.problem)
    assert session.runs == wrong_run + 1


def test_the_emulated_device_has_no_clocks() -> None:
    info = DeviceInfo("emulated", "e", "x86-64", 4, 1024, 1 << 10, 1 << 20, True, True, "g++")
    assert measure.describe_clocks(info) == {"problem": "the emulated device has no clocks"}


def gpu(bus: str = "") -> DeviceInfo:
    return DeviceInfo(
        "cuda", "G", "sm_90", 1, 1024, 1 << 10, 1 << 20, True, True, "CUDA", pci_bus_id=bus
    )


def test_clocks_are_asked_of_the_gpu_that_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def answer(command: list[str], **_: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(stdout="1980, 3201, 1980, [N/A], 41\n")

    monkeypatch.setattr(measure.subprocess, "run", answer)
    assert measure.describe_clocks(gpu("0000:1B:00.0")) == {
        "clocks.sm": 1980.0,
        "clocks.mem": 3201.0,
        "clocks.max.sm": 1980.0,
        "clocks.max.mem": None,
        "temperature.gpu": 41.0,
        "problem": None,
    }
    assert asked[0][0] == "nvidia-smi"
    assert asked[0][-2:] == ["-i", "0000:1B:00.0"]
    assert not [word for word in asked[0] if word.startswith(("-lgc", "-ac", "--lock"))]


def test_without_nvidia_smi_the_clocks_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(measure.subprocess, "run", missing)
    problem = measure.describe_clocks(gpu())["problem"]
    assert problem == "nvidia-smi does not answer: FileNotFoundError"


def test_outside_a_clone_there_is_no_revision_but_a_digest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError

    digest = measure.source_digest()
    monkeypatch.setattr(measure.subprocess, "run", missing)
    assert measure.git_revision() is None
    assert measure.source_digest() == digest
    assert len(digest) == 12


@emulated
def test_a_call_on_a_device_without_a_clock_is_counted_once() -> None:
    from persistent_bfs.device import open_device
    from persistent_bfs.study.primitives import SMALL, Bench, Effort

    opened = open_device("emulated").device
    assert opened is not None
    with opened, Bench(opened, Effort.of("emulated", True)) as bench:
        timed = bench.time(lambda: bench.launch("empty_kernel", SMALL))
    assert (timed.device, timed.issue, timed.completion) == (None, None, None)
    assert (timed.counters.launches, timed.counters.host_syncs) == (1, 0)
