"""A search at home on a device: what was prepared once, one search at a time, and the way out.

Nothing here refers to the session that owns it, so that a session nobody has any more can be
closed by its finaliser, in whichever thread that runs.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from persistent_bfs import layout
from persistent_bfs.answer import Answer, MapBack, Shelf
from persistent_bfs.config import Config
from persistent_bfs.device.base import Device, DeviceError
from persistent_bfs.engines import engine_class
from persistent_bfs.engines.base import Outcome, make_workspace
from persistent_bfs.graph import Graph
from persistent_bfs.options import Options
from persistent_bfs.trace import Records, read_records

# A session that is closed waits so long for a search that was interrupted; what still runs then
# keeps its memory until it is over.
SECONDS_TO_END = 2.0
SECONDS_BETWEEN_STOPS = 0.02


@dataclass(frozen=True)
class Found:
    """One search's outcome, answer and cost; ``records`` of its trace, if it has one."""

    outcome: Outcome
    answer: Answer
    launches: int
    host_syncs: int
    device_ms: float | None
    wall_ms: float
    counts: dict[str, int]
    records: Records | None


class ResidentSearch:
    """Graph and kernels on a device, ready to search; any thread may, and one waits for the other.

    Raises
    ------
    DeviceError, CompileError
        As `persistent_bfs.session.BFS`; nothing is left allocated.
    """

    def __init__(
        self,
        device: Device,
        graph: Graph,
        config: Config,
        options: Options,
        map_back: MapBack | None,
    ) -> None:
        self.lock = threading.RLock()
        self.device = device
        self.config = config
        self._closed = self._abandoned = False
        self._parked = threading.Event()
        self._spoiled = ""
        with device.turn(), device.current():
            self.workspace = make_workspace(device, graph, config)
            try:
                self.stream = device.stream()
                if config.trace:
                    # Records are copied whole, and a tier leaves parts of its own out.
                    self.stream.fill(self.workspace["trace"], layout.NO_RECORD)
                self.engine = engine_class(config.engine)(
                    device, self.stream, config, self.workspace, options
                )
            except BaseException:
                self.workspace.free()
                raise
        names = ("distances", "predecessors") if config.predecessors else ("distances",)
        buffers = {name: self.workspace[name] for name in names}
        self._shelf = Shelf(device, self.stream, buffers, self.lock, map_back)
        _open.add(self)
        _close_all_at_exit()

    def run(self, source: int, max_depth: int, time_limit: float | None) -> Found:
        """Search from ``source``, by its id in the graph on the device.

        Raises
        ------
        ValueError
            It was closed.
        DeviceError
            As `persistent_bfs.session.BFS.run`.
        """
        if _exiting.is_set():
            threading.Event().wait()  # in a daemon thread, which ends with the process
        with self.lock:
            if self._closed:
                raise ValueError("this session is closed")
            if self._spoiled:
                raise DeviceError(f"this session cannot search any more: {self._spoiled}")
            try:
                with self.device.turn(), self.device.current():
                    return self._search(source, max_depth, time_limit)
            except BaseException:
                if _exiting.is_set():
                    self._parked.set()
                    threading.Event().wait()  # the lock held, until the process ends
                raise

    def _search(self, source: int, max_depth: int, time_limit: float | None) -> Found:
        device, stream, engine = self.device, self.stream, self.engine
        self._shelf.make_room()
        device.take_counts()
        stream.counters.reset()
        started = time.perf_counter()
        try:
            outcome = engine.run(source, max_depth, time_limit)
        except BaseException:
            if engine.is_running:
                self._spoiled = "its last one did not end when it was told to"
            raise
        launches, host_syncs = stream.counters.launches, stream.counters.host_syncs
        wall_ms = (time.perf_counter() - started) * 1e3
        device_ms = engine.device_ms()
        counts = device.take_counts()
        trace = self.workspace["trace"] if self.config.trace else None
        records = None if trace is None else read_records(trace, outcome.depth + 1)
        answer = self._shelf.put()
        if not self.config.exact:
            answer.settle()  # how many were reached is not what was counted
        return Found(outcome, answer, launches, host_syncs, device_ms, wall_ms, counts, records)

    def close_at_exit(self) -> None:
        """As `close`, before the interpreter ends, which waits for no other thread.

        One that searches in a loop waits until the process is over, as daemon threads do.
        """
        until = time.monotonic() + SECONDS_TO_END
        while time.monotonic() < until:
            # The lock is kept: a thread that has it waits in `run` until the process ends.
            if self._parked.is_set() or self.lock.acquire(timeout=SECONDS_BETWEEN_STOPS):
                self._close()
                return
            with suppress(DeviceError), self.device.current():
                self.engine.stop()
        self._abandoned = True
        self.device.abandon()

    def close(self) -> None:
        """Give everything back; harmless twice, and never raises.

        Waits for another thread's search. What a search that was left without its end may still
        use is given back once it has ended.
        """
        if not (self._abandoned or self._parked.is_set()):
            with self.lock:
                self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with suppress(DeviceError), self.device.turn(), self.device.current():
            if self._spoiled and not self.engine.end(SECONDS_TO_END):
                self._shelf.clear(self._spoiled)
                self.device.leave_running(self.engine.is_idle, self._free)
                return
            self._shelf.clear()
            self._free()
        self._shelf.clear("the device failed before they were looked at")

    def _free(self) -> None:
        self.engine.close()
        self.workspace.free()


_exiting = threading.Event()
_open: weakref.WeakSet[ResidentSearch] = weakref.WeakSet()


@cache
def _close_all_at_exit() -> None:
    """Close what is open when the interpreter ends, before anything of it is given back.

    What is registered last is called first, and all finalisers are registered with their first.
    """
    weakref.finalize(_open, lambda: None)

    def close_all() -> None:
        _exiting.set()
        for resident in tuple(_open):
            resident.close_at_exit()

    atexit.register(close_all)
