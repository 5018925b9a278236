"""What the engines share: the device memory of a search, and the shape of an engine."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.config import A_BLOCK, A_SHARE, ADVANCES, DIRECTIONS, ENGINES, Config
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceBusy,
    DeviceError,
    DeviceMemoryError,
    Event,
    HostArray,
    KernelArguments,
    LaunchShape,
    LaunchTooLarge,
    RepeatedDiscovery,
    SearchTimeout,
    Stream,
)
from persistent_bfs.graph import Graph
from persistent_bfs.options import Options
from persistent_bfs.rows import by_rows
from persistent_bfs.watchdog import SECONDS_BETWEEN_BARKS, Watchdog

MAX_COUNTED_ARCS = 2**32 - 1  # a frontier's edges are the high half of its 64-bit count
MAX_QUEUE = 2**31 - 1
MOST_THREADS = 2**31 - 1  # of a grid: its kernels count strides in 32 bits
MAX_DEGREE = 2**31 - 2**20  # an arc's place in its row, and a stride beyond it, are int
LIKELY_ARCS = 1 << 20  # arcs that `likely_parents` looks at together
STOP_IN_STATE = layout.SEARCH_STATE.fields["stop"][1]  # type: ignore[index]

# A search that is told to stop leaves at its next barrier; one that has not begun after so long is
# kept from its device.
SECONDS_OF_GRACE = 2.0

# A thread of a grid that outlives one level gets about this many of the graph's arcs; fewer
# blocks than multiprocessors are never chosen, since narrow levels gain nothing from that.
ARCS_PER_THREAD = 64


@dataclass(frozen=True)
class Workspace:
    """The device memory one session searches in, and the host's pinned windows on it.

    ``buffers`` are named as the fields of `layout.SearchParameters` that point to them; the
    ``bitmaps`` of dense frontiers have the place of ``part_sums``, the ``likely_parents`` of those
    that are pulled that of ``packed_rows``.
    """

    buffers: Mapping[str, Buffer]
    host_state: HostArray
    host_request: HostArray
    host_offsets: HostArray
    parameters: layout.SearchParameters

    def __getitem__(self, name: str) -> Buffer:
        return self.buffers[name]

    def degree(self, vertex: int) -> int:
        """Arcs out of ``vertex``."""
        return int(self.host_offsets[vertex + 1]) - int(self.host_offsets[vertex])

    def free(self) -> None:
        """Give the device memory back."""
        for buffer in self.buffers.values():
            buffer.free()


@dataclass(frozen=True)
class Outcome:
    """What an engine knows of a finished search; fields as in `persistent_bfs.result`."""

    depth: int
    enqueued: int
    barriers: int = 0


class Engine(ABC):
    """Runs the level loop of searches in one workspace, prepared once.

    A subclass says in `search` what is enqueued and when the host looks; the kernels do the rest.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        config: Config,
        workspace: Workspace,
        options: Options,
    ) -> None:
        self.device = device
        self.stream = stream
        self.config = config
        self.workspace = workspace
        self.options = options
        self.program = device.load(config)
        self.launch = layout.LaunchArguments()
        self.arguments = KernelArguments(workspace.parameters, self.launch)
        self.watchdog: Watchdog | None = None
        self.is_running = False  # after a search that was left without its end
        self._begin: Event | None = None
        self._end: Event | None = None
        self._is_end_marked = False
        # Made now: while a persistent kernel runs, the host must not allocate.
        self._stop_stream = device.stream()
        self._stop_word = device.pinned(1, np.int32)
        self._stop_word[0] = 1
        self.prepare()

    def prepare(self) -> None:
        """Choose shapes and record graphs; once, before the first search."""

    @abstractmethod
    def search(self, source: int, max_depth: int) -> Outcome:
        """Search from ``source`` to at most ``max_depth``; returns when the device is done."""

    def run(self, source: int, max_depth: int, time_limit: float | None = None) -> Outcome:
        """As `search`, for at most ``time_limit`` seconds.

        Raises
        ------
        SearchTimeout
            The time was up. The kernels have left at their next barrier.
        DeviceBusy
            The time was up, and they have not: `is_running` tells so.
        """
        self._is_end_marked = self.is_running = False
        try:
            with Watchdog(self.device, self.stop, time_limit) as self.watchdog:
                self.stream.patience = self._lose_patience
                self._begin = self.stream.record(self._begin)  # as late: the device waits meanwhile
                outcome = self.search(source, max_depth)
        except DeviceBusy:
            self.is_running = True
            raise
        except KeyboardInterrupt:
            self.is_running = True  # and stays so if another one interrupts this
            self.end(SECONDS_OF_GRACE)
            raise
        finally:
            self.stream.patience = self.watchdog = None  # which know this engine
        if not self._is_end_marked:
            self.mark_end()
        return outcome

    def _lose_patience(self) -> None:
        """Wait no longer for a search that was told to stop and never began."""
        dog = self.watchdog
        if dog is not None and dog.seconds_expired > SECONDS_OF_GRACE:
            raise DeviceBusy(
                f"{self.config.engine}: stopped waiting after the time limit of {dog.seconds:g} s: "
                f"told to leave, the search has not ended in {SECONDS_OF_GRACE:g} s more; another "
                "kernel keeps it from the GPU"
            )

    def end(self, seconds: float) -> bool:
        """Tell a search to stop until it has, for at most so many seconds; whether it has."""
        until = time.monotonic() + seconds
        with suppress(DeviceError):
            while not self.is_idle():
                if time.monotonic() > until:
                    return False
                self.stop()
                time.sleep(SECONDS_BETWEEN_BARKS)
        self.is_running = False
        return True

    def mark_end(self) -> None:
        """Mark the end of what a search has enqueued so far; before the host waits for it."""
        self._end = self.stream.record(self._end)
        self._is_end_marked = True

    def device_ms(self) -> float | None:
        """Milliseconds of the last search by the device's clock, around all that it enqueued."""
        assert self._begin is not None
        assert self._end is not None
        return self.stream.elapsed_ms(self._begin, self._end)

    def stop(self) -> None:
        """Ask a search that runs to leave; from any thread, any number of times."""
        self._stop_stream.copy_to_device(
            self.workspace["state"], self._stop_word, start=STOP_IN_STATE
        )
        until = time.monotonic() + SECONDS_OF_GRACE
        # Or the word would come to the next search, if no other kernel keeps it from the device.
        while not self._stop_stream.is_idle() and time.monotonic() < until:
            time.sleep(0)

    def is_idle(self) -> bool:
        """Whether nothing that this engine asked for is still to be done."""
        return self.stream.is_idle() and self._stop_stream.is_idle()

    def check_time(self, level: int) -> None:
        """Raise `SearchTimeout` if the time is up, at ``level``."""
        if self.watchdog is not None and self.watchdog.expired:
            raise SearchTimeout(
                f"{self.config.engine}: stopped at level {level:,}, after the time limit of "
                f"{self.watchdog.seconds:g} s"
            )

    def close(self) -> None:
        """Give back what `prepare` made."""

    def grid(self, kernel: str, shared_bytes: int = 0, cluster: int = 1) -> LaunchShape:
        """The shape of a grid that serves every level: resident, and no larger than of use."""
        threads = self.config.block_threads
        limit = self.device.max_resident_blocks(
            self.program[kernel], threads, shared_bytes, cluster
        )
        if self.options.blocks is not None:
            if self.options.blocks > MOST_THREADS // threads:
                raise LaunchTooLarge(
                    f"kernel {kernel}: {self.options.blocks:,} blocks of {threads} threads asked "
                    f"for; a grid has {MOST_THREADS:,} threads at most"
                )
            return LaunchShape(self.options.blocks, threads, shared_bytes, cluster)
        useful = self.workspace["col_indices"].count // (threads * ARCS_PER_THREAD)
        blocks = min(limit, max(self.device.info.multiprocessors, useful))
        return LaunchShape(max(blocks // cluster, 1) * cluster, threads, shared_bytes, cluster)

    def grid_for(self, kernel: str, frontier_size: int) -> LaunchShape:
        """The shape of a grid for one frontier: the threads the mapping gives its vertices."""
        lanes = ADVANCES[self.config.advance].lanes
        if lanes == A_SHARE or self.config.direction != "push" or self.options.blocks is not None:
            return self.grid(kernel)
        threads = self.config.block_threads
        lanes = threads if lanes == A_BLOCK else lanes
        # Strides are counted in 32 bits without a sign.
        blocks = min(-(-frontier_size * lanes // threads), MOST_THREADS // threads)
        return LaunchShape(blocks, threads)

    @property
    def levels_per_launch(self) -> int:
        """Levels issued before anyone looks whether there are more.

        Made even, where they are launches: consecutive ones alternate between two copies of the
        state.
        """
        levels = self.options.levels_per_launch
        looks = ENGINES[self.config.engine].levels_per_launch is not None
        return levels + levels % 2 if looks and levels is not None else 1

    def look(self) -> bool:
        """Copy the state to the host, wait for it, and say whether the search is over."""
        self.stream.copy_to_host(self.workspace.host_state, self.workspace["state"])
        self.mark_end()
        self.stream.synchronize()
        state = self.workspace.host_state[0]
        if state["status"] != layout.RUNNING:
            return True
        self.check_time(int(state["level"][0]))
        return int(state["totals"]["vertices"][state["level"][0] % 3]) == 0

    def outcome(self) -> Outcome:
        """What the state that was last looked at says.

        Raises
        ------
        RepeatedDiscovery
            The frontiers held more vertices than the queue does: the claim let vertices be
            discovered more than once.
        """
        return self.outcome_of(self.workspace.host_state[0])

    def outcome_of(self, told: Any) -> Outcome:
        """The outcome told by a state or a `layout.SEARCH_SUMMARY`; raises as `outcome`."""
        if told["status"] == layout.STOPPED:
            self.check_time(int(told["depth"]))
            raise DeviceError(f"{self.config.engine}: the search was stopped")
        if told["status"] == layout.QUEUE_FULL:
            raise self.queue_full(int(told["enqueued"]))
        return Outcome(int(told["depth"]), int(told["enqueued"]), int(told["barriers"]))

    def queue_full(self, enqueued: int) -> RepeatedDiscovery:
        """The error for a search whose frontiers outgrew the queue."""
        room = f"the queue's {self.workspace['queue'].count}"
        if self.config.phases > 1:
            room += " with a slot for each of their arcs"
        return RepeatedDiscovery(
            f"{self.config.engine}: the {self.config.claim} claim put {enqueued} vertices into "
            f"frontiers, more than {room}: vertices were discovered more than once; use the cas "
            "claim"
        )


def uploads(graph: Graph, config: Config) -> dict[str, HostArray]:
    """The arrays of ``graph`` that a search of ``config`` reads, by their parameter's name."""
    arrays: dict[str, HostArray] = {
        "row_offsets": graph.row_offsets,
        "col_indices": graph.col_indices,
    }
    if DIRECTIONS[config.direction].transposed and graph.directed:
        backwards = graph.transpose()
        arrays["in_row_offsets"] = backwards.row_offsets.astype(graph.row_offsets.dtype)
        arrays["in_col_indices"] = backwards.col_indices
    if ADVANCES[config.advance].by_arcs:
        arrays["arc_sources"] = graph.arc_sources()
    if config.packed_rows:
        arrays["packed_rows"] = packed_rows(graph)
    if config.likely_parents:
        arrays["likely_parents"] = likely_parents(graph)
    return arrays


def likely_parents(graph: Graph) -> npt.NDArray[np.int32]:
    """Of the near ends of every vertex's in-arcs the one of the most arcs itself, (n,) int32.

    The first such in the row; -1 for a vertex that no arc leads to. See
    ``cuda/pull/likely_parents.cuh``.
    """
    backwards = graph.transpose() if graph.directed else graph
    offsets, indices, degrees = backwards.row_offsets, backwards.col_indices, graph.degrees

    def likely(rows: slice) -> npt.NDArray[np.int32]:
        begins = offsets[rows]
        filled = np.flatnonzero(offsets[rows.start + 1 : rows.stop + 1] > begins)
        found = np.full(begins.size, -1, np.int32)
        if filled.size:
            near = indices[int(offsets[rows.start]) : int(offsets[rows.stop])]
            place = np.arange(near.size, 0, -1, dtype=np.int64)  # the first of equals is largest
            key = (degrees[near].astype(np.int64) << 32) + place
            best = np.maximum.reduceat(key, begins[filled] - begins[0])
            found[filled] = near[near.size - (best & 0xFFFFFFFF)]
        return found

    return np.concatenate(by_rows(offsets, likely, LIKELY_ARCS))


def packed_rows(graph: Graph) -> HostArray:
    """The first arcs of every vertex as ``cuda/packed_rows.cuh`` says, (n or 2n, 4) int32.

    Row v holds the first four neighbours of v, row n + v the next four, if the graph has a vertex
    of more than four arcs. A neighbour u that has more than four itself is entered as u + 2**30.
    """
    degrees, offsets = graph.degrees, graph.row_offsets
    tables = 1 if graph.max_degree <= layout.PACKED else 2
    rows = np.full((tables, graph.vertices, layout.PACKED), layout.NO_NEIGHBOUR, np.int32)
    for place in range(tables * layout.PACKED):
        filled = np.flatnonzero(degrees > place)
        neighbours = graph.col_indices[offsets[filled] + place]
        rows[place // layout.PACKED, filled, place % layout.PACKED] = np.where(
            degrees[neighbours] > layout.PACKED, neighbours | layout.LONG, neighbours
        )
    rows[-1, degrees > tables * layout.PACKED, -1] = layout.MORE_NEIGHBOURS
    return rows.reshape(-1, layout.PACKED)


def packed_row_bytes(vertices: int, max_degree: int) -> int:
    """Bytes of `packed_rows`."""
    return (1 if max_degree <= layout.PACKED else 2) * 4 * layout.PACKED * vertices


def allocations(vertices: int, arcs: int, config: Config) -> dict[str, tuple[int, npt.DTypeLike]]:
    """What a search of ``config`` writes: items and their type, by their parameter's name.

    A claim that is not exact may discover vertices twice; its queue has room for as many again.
    Padded frontiers take a slot an arc, and one for the source.
    """
    capacity = arcs + 1 if config.padded else vertices
    if not config.exact:
        capacity = min(2 * capacity, MAX_QUEUE)
    needed: dict[str, tuple[int, npt.DTypeLike]] = {
        "distances": (vertices, np.int32),
        "queue": (capacity, np.int32),
        "state": (1, layout.SEARCH_STATE),
        "request": (1, np.uint64),
    }
    if config.counts_edges:
        needed["edge_begin"] = (capacity, np.uint32)
    if config.phases > 1:
        needed["part_sums"] = (2 * layout.SLOT_PARTS + (0 if config.padded else arcs), np.int32)
    if config.dense:
        needed["bitmaps"] = (layout.BITMAPS * layout.bitmap_words(vertices), np.int32)
    if config.predecessors:
        needed["predecessors"] = (vertices, np.int32)
    if config.trace:
        # A record a level, and those after the last, which are cleared early.
        needed["trace"] = (vertices + 3, layout.LEVEL_RECORD)
    return needed


def memory_needed(
    vertices: int, arcs: int, config: Config, *, directed: bool, max_degree: int = 0
) -> dict[str, int]:
    """Bytes of device memory that a session allocates, by buffer, from numbers alone.

    Examples
    --------
    >>> config = Config("persistent", offset_bits=64)
    >>> memory_needed(1_000, 3_000_000_000, config, directed=False)["row_offsets"]
    8008
    """
    offsets, indices = (vertices + 1) * config.offset_bits // 8, 4 * arcs
    needed = {"row_offsets": offsets, "col_indices": indices}
    if DIRECTIONS[config.direction].transposed and directed:
        needed |= {"in_row_offsets": offsets, "in_col_indices": indices}
    if ADVANCES[config.advance].by_arcs:
        needed["arc_sources"] = 4 * arcs
    if config.packed_rows:
        needed["packed_rows"] = packed_row_bytes(vertices, max_degree)
    if config.likely_parents:
        needed["likely_parents"] = 4 * vertices
    for name, (count, dtype) in allocations(vertices, arcs, config).items():
        needed[name] = count * np.dtype(dtype).itemsize
    return needed


def memory_of(graph: Graph, config: Config) -> dict[str, int]:
    """As `memory_needed`, of a graph that is there."""
    return memory_needed(
        graph.vertices,
        graph.arcs,
        config,
        directed=graph.directed,
        max_degree=graph.max_degree,
    )


def make_workspace(device: Device, graph: Graph, config: Config) -> Workspace:
    """Upload a graph and allocate what a search of it writes.

    Raises
    ------
    DeviceMemoryError
        It does not fit; says how many bytes are needed and free, and nothing is left allocated.
    DeviceError
        The frontiers' edges must be counted, and the graph has more than the counter holds.
    """
    if config.counts_edges and graph.arcs > MAX_COUNTED_ARCS:
        raise DeviceError(
            f"{config.advance} mapping, {config.direction}: a frontier's edges are counted in 32 "
            f"bits, and the graph has {graph.arcs:,} arcs; use the thread or warp mapping, push "
            "and the warp append"
        )
    if graph.max_degree >= MAX_DEGREE:
        raise DeviceError(
            f"a vertex has {graph.max_degree:,} arcs; kernels take fewer than {MAX_DEGREE:,}"
        )
    if config.padded and graph.arcs >= MAX_QUEUE:
        raise DeviceError(
            f"{config.append} append: the queue takes a slot an arc, {MAX_QUEUE:,} at most, and "
            f"the graph has {graph.arcs:,} arcs; use the scan append"
        )
    needed = memory_of(graph, config)
    free = device.free_bytes()
    if sum(needed.values()) > free:
        parts = ", ".join(f"{name} {nbytes:,}" for name, nbytes in needed.items())
        raise DeviceMemoryError(
            f"the search needs {sum(needed.values()):,} bytes of device memory ({parts}), "
            f"{free:,} are free"
        )
    made: dict[str, Buffer] = {}
    try:
        for name, array in uploads(graph, config).items():
            made[name] = device.upload(array, name)
        for name, (count, dtype) in allocations(graph.vertices, graph.arcs, config).items():
            made[name] = device.allocate(count, dtype, name)
        host_state = device.pinned(1, layout.SEARCH_STATE)
        host_request = device.pinned(1, layout.SEARCH_REQUEST)
    except BaseException:
        for buffer in made.values():
            buffer.free()
        raise
    addresses = {name: buffer.address for name, buffer in made.items()}
    if config.dense:  # no append that goes by the arcs' places is there beside bitmaps
        addresses["part_sums"] = addresses.pop("bitmaps")
    if config.likely_parents:  # nor packed rows, which a tier reads
        addresses["packed_rows"] = addresses.pop("likely_parents")
    # An undirected graph is its own transpose.
    addresses.setdefault("in_row_offsets", addresses["row_offsets"])
    addresses.setdefault("in_col_indices", addresses["col_indices"])
    parameters = layout.SearchParameters(
        **addresses,
        vertices=graph.vertices,
        queue_capacity=made["queue"].count,
        arcs=graph.arcs,
    )
    return Workspace(made, host_state, host_request, graph.row_offsets, parameters)
