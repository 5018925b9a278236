"""What the engines share: the device memory of a search, and the shape of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.config import A_BLOCK, A_SHARE, ADVANCES, DIRECTIONS, Config
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    DeviceMemoryError,
    HostArray,
    KernelArguments,
    LaunchShape,
    RepeatedDiscovery,
    Stream,
)
from persistent_bfs.graph import Graph

MAX_COUNTED_ARCS = 2**32 - 1  # a frontier's edges are the high half of its 64-bit count
MAX_QUEUE = 2**31 - 1

# A thread of a grid that outlives one level gets about this many of the graph's arcs; fewer
# blocks than multiprocessors are never chosen, since narrow levels gain nothing from that.
ARCS_PER_THREAD = 64


@dataclass(frozen=True)
class EngineOptions:
    """What a user may set about the way an engine runs; None leaves it to the engine.

    ``levels_per_launch`` is the number of levels between two looks of the host (host_batched,
    graph_unrolled) or two turns of the WHILE node (graph_while); ``blocks`` the grid's blocks,
    refused when a cooperative grid cannot hold them.
    """

    levels_per_launch: int | None = None
    blocks: int | None = None

    def __post_init__(self) -> None:
        for name in ("levels_per_launch", "blocks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")


@dataclass(frozen=True)
class Workspace:
    """The device memory one session searches in, and the host's pinned windows on it.

    ``buffers`` are named as the fields of `layout.SearchParameters` that point to them; the
    ``bitmaps`` of dense frontiers have the place of ``part_sums``.
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
        options: EngineOptions,
    ) -> None:
        self.device = device
        self.stream = stream
        self.config = config
        self.workspace = workspace
        self.options = options
        self.program = device.load(config)
        self.launch = layout.LaunchArguments()
        self.arguments = KernelArguments(workspace.parameters, self.launch)
        self.prepare()

    def prepare(self) -> None:
        """Choose shapes and record graphs; once, before the first search."""

    @abstractmethod
    def search(self, source: int, max_depth: int) -> Outcome:
        """Search from ``source`` to at most ``max_depth``; returns when the device is done."""

    def close(self) -> None:
        """Give back what `prepare` made."""

    def grid(self, kernel: str, shared_bytes: int = 0) -> LaunchShape:
        """The shape of a grid that serves every level: resident, and no larger than of use."""
        threads = self.config.block_threads
        limit = self.device.max_resident_blocks(self.program[kernel], threads, shared_bytes)
        if self.options.blocks is not None:
            return LaunchShape(self.options.blocks, threads, shared_bytes)
        useful = self.workspace["col_indices"].count // (threads * ARCS_PER_THREAD)
        blocks = min(limit, max(self.device.info.multiprocessors, useful))
        return LaunchShape(blocks, threads, shared_bytes)

    def grid_for(self, kernel: str, frontier_size: int) -> LaunchShape:
        """The shape of a grid for one frontier: the threads the mapping gives its vertices."""
        lanes = ADVANCES[self.config.advance].lanes
        if lanes == A_SHARE or self.config.direction != "push" or self.options.blocks is not None:
            return self.grid(kernel)
        threads = self.config.block_threads
        lanes = threads if lanes == A_BLOCK else lanes
        return LaunchShape(-(-frontier_size * lanes // threads), threads)

    def levels_per_launch(self, default: int) -> int:
        """The option, made even: consecutive launches alternate between two copies of the state."""
        levels = self.options.levels_per_launch or default
        return levels + levels % 2

    def look(self) -> bool:
        """Copy the state to the host, wait for it, and say whether the search is over."""
        self.stream.copy_to_host(self.workspace.host_state, self.workspace["state"])
        self.stream.synchronize()
        state = self.workspace.host_state[0]
        if state["status"] != layout.RUNNING:
            return True
        return int(state["totals"]["vertices"][state["level"][0] % 3]) == 0

    def outcome(self) -> Outcome:
        """What the state that was last looked at says.

        Raises
        ------
        RepeatedDiscovery
            The frontiers held more vertices than the queue does: the claim let vertices be
            discovered more than once.
        """
        state = self.workspace.host_state[0]
        if state["status"] == layout.QUEUE_FULL:
            raise self.queue_full(int(state["enqueued"]))
        return Outcome(int(state["depth"]), int(state["enqueued"]), int(state["barriers"]))

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
    if config.program.packed_rows:
        arrays["packed_rows"] = packed_rows(graph)
    return arrays


def packed_rows(graph: Graph) -> HostArray:
    """The first neighbours of every vertex, (n, 4) int32, as ``cuda/types.cuh`` says."""
    degrees = graph.degrees
    rows = np.full((graph.vertices, layout.PACKED), layout.NO_NEIGHBOUR, np.int32)
    for place in range(layout.PACKED):
        filled = np.flatnonzero(degrees > place)
        rows[filled, place] = graph.col_indices[graph.row_offsets[filled] + place]
    rows[degrees > layout.PACKED, -1] = layout.MORE_NEIGHBOURS
    return rows


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
        "request": (1, layout.SEARCH_REQUEST),
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
        # A record a level, one more for the level after the last, whose edges are cleared early.
        needed["trace"] = (vertices + 2, layout.LEVEL_RECORD)
    return needed


def memory_needed(vertices: int, arcs: int, config: Config, *, directed: bool) -> dict[str, int]:
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
    if config.program.packed_rows:
        needed["packed_rows"] = 4 * layout.PACKED * vertices
    for name, (count, dtype) in allocations(vertices, arcs, config).items():
        needed[name] = count * np.dtype(dtype).itemsize
    return needed


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
    if config.padded and graph.arcs >= MAX_QUEUE:
        raise DeviceError(
            f"{config.append} append: the queue takes a slot an arc, {MAX_QUEUE:,} at most, and "
            f"the graph has {graph.arcs:,} arcs; use the scan append"
        )
    needed = memory_needed(graph.vertices, graph.arcs, config, directed=graph.directed)
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
