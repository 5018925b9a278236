"""The emulated device with a clock put on it: its time is what its counters say, and no more.

So what the study makes of times can be tried without a GPU, against costs that are known exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from persistent_bfs.device.base import Event
from persistent_bfs.device.emulated import (
    EmulatedDevice,
    EmulatedGraph,
    EmulatedStream,
    EmulationCounters,
)

LAUNCH_NS = 4_000
NANOSECONDS: Mapping[str, int] = {
    "plain_loads": 250,
    "plain_stores": 10,
    "atomics": 300,
    "relaxed_loads": 200,
    "block_barriers": 15,
    "grid_barriers": 1_000,
}


@dataclass(frozen=True)
class ClockedEvent(Event):
    at: int


class ClockedStream(EmulatedStream):
    def record(self, event: Event | None = None) -> Event:  # noqa: ARG002
        assert isinstance(self._device, ClockedDevice)
        self._device.require_current()
        return ClockedEvent(self._device.now)

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        super().elapsed_ms(start, end)
        assert isinstance(start, ClockedEvent)
        assert isinstance(end, ClockedEvent)
        return (end.at - start.at) / 1e6


class ClockedDevice(EmulatedDevice):
    """It says that it is a GPU, for only those are timed; and like one it must be made current."""

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, kind="cuda", name="clocked device", l2_bytes=1 << 12)
        self.now = 0
        self._inside = 0

    @contextmanager
    def current(self) -> Iterator[None]:
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def require_current(self) -> None:
        assert self._inside, "CUDA has no context here"

    def max_resident_blocks(self, *arguments: Any, **how: Any) -> int:
        self.require_current()
        return super().max_resident_blocks(*arguments, **how)

    def while_graph(self, *arguments: Any, **how: Any) -> EmulatedGraph:
        self.require_current()
        return super().while_graph(*arguments, **how)

    def stream(self) -> EmulatedStream:
        return ClockedStream(self)

    def run(self, *arguments: Any, **how: Any) -> None:
        self.require_current()
        before = self._cost()
        super().run(*arguments, **how)
        self.now += LAUNCH_NS + self._cost() - before

    def _cost(self) -> int:
        return sum(
            getattr(self.counters, counter.name) * NANOSECONDS.get(counter.name, 0)
            for counter in fields(EmulationCounters)
        )
