"""What the engines share: the device memory of a search, and the shape of an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from persistent_bfs import layout
from persistent_bfs.config import ADVANCES, Config
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    HostArray,
    KernelArguments,
    LaunchShape,
    Stream,
)

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
    """The device memory one session searches in, and the host's pinned windows on it."""

    row_offsets: Buffer
    col_indices: Buffer
    distances: Buffer
    predecessors: Buffer | None
    queue: Buffer
    trace: Buffer | None
    state: Buffer
    request: Buffer
    host_state: HostArray
    host_request: HostArray
    parameters: layout.SearchParameters

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Every buffer there is."""
        optional = (self.predecessors, self.trace)
        return (
            self.row_offsets,
            self.col_indices,
            self.distances,
            *(buffer for buffer in optional if buffer is not None),
            self.queue,
            self.state,
            self.request,
        )


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

    @property
    def lanes(self) -> int:
        """Threads that one frontier vertex is given."""
        return ADVANCES[self.config.advance].lanes

    def grid(self, kernel: str) -> LaunchShape:
        """The shape of a grid that serves every level: resident, and no larger than of use."""
        threads = self.config.block_threads
        limit = self.device.max_resident_blocks(self.program[kernel], threads)
        if self.options.blocks is not None:
            return LaunchShape(self.options.blocks, threads)
        useful = self.workspace.col_indices.count // (threads * ARCS_PER_THREAD)
        return LaunchShape(min(limit, max(self.device.info.multiprocessors, useful)), threads)

    def levels_per_launch(self, default: int) -> int:
        """The option, made even: consecutive launches alternate between two copies of the state."""
        levels = self.options.levels_per_launch or default
        return levels + levels % 2

    def look(self) -> bool:
        """Copy the state to the host, wait for it, and say whether the search is over."""
        self.stream.copy_to_host(self.workspace.host_state, self.workspace.state)
        self.stream.synchronize()
        state = self.workspace.host_state[0]
        if state["status"] != layout.RUNNING:
            return True
        return int(state["frontier_size"][state["level"][0] % 3]) == 0

    def outcome(self) -> Outcome:
        """What the state that was last looked at says.

        Raises
        ------
        DeviceError
            The frontiers held more vertices than the queue does: the claim let vertices be
            discovered more than once.
        """
        state = self.workspace.host_state[0]
        if state["status"] == layout.QUEUE_FULL:
            raise self.queue_full(int(state["enqueued"]))
        return Outcome(int(state["depth"]), int(state["enqueued"]), int(state["barriers"]))

    def queue_full(self, enqueued: int) -> DeviceError:
        """The error for a search whose frontiers outgrew the queue."""
        return DeviceError(
            f"{self.config.engine}: the {self.config.claim} claim put {enqueued} vertices into "
            f"frontiers, more than the queue's {self.workspace.queue.count}: vertices were "
            "discovered more than once; use the cas claim"
        )


def make_workspace(
    device: Device,
    row_offsets: HostArray,
    col_indices: HostArray,
    *,
    predecessors: bool,
    trace: bool,
    exact: bool,
) -> Workspace:
    """Upload a graph and allocate what a search of it writes.

    A claim that is not exact may discover vertices twice; its queue has room for as many again.
    """
    vertices = len(row_offsets) - 1
    capacity = vertices if exact else min(2 * vertices, 2**31 - 1)
    made: list[Buffer] = []

    def keep(buffer: Buffer) -> Buffer:
        made.append(buffer)
        return buffer

    try:
        offsets = keep(device.upload(row_offsets, "row_offsets"))
        indices = keep(device.upload(col_indices, "col_indices"))
        distances = keep(device.allocate(vertices, np.int32, "distances"))
        parents = (
            keep(device.allocate(vertices, np.int32, "predecessors")) if predecessors else None
        )
        queue = keep(device.allocate(capacity, np.int32, "queue"))
        # A record a level, one more for the level after the last, whose edges are cleared early.
        records = (
            keep(device.allocate(vertices + 2, layout.LEVEL_RECORD, "trace")) if trace else None
        )
        state = keep(device.allocate(1, layout.SEARCH_STATE, "state"))
        request = keep(device.allocate(1, layout.SEARCH_REQUEST, "request"))
        host_state = device.pinned(1, layout.SEARCH_STATE)
        host_request = device.pinned(1, layout.SEARCH_REQUEST)
    except BaseException:
        for buffer in made:
            buffer.free()
        raise
    parameters = layout.SearchParameters(
        row_offsets=offsets.address,
        col_indices=indices.address,
        distances=distances.address,
        predecessors=parents.address if parents else None,
        queue=queue.address,
        trace=records.address if records else None,
        state=state.address,
        request=request.address,
        vertices=vertices,
        queue_capacity=capacity,
    )
    return Workspace(
        offsets,
        indices,
        distances,
        parents,
        queue,
        records,
        state,
        request,
        host_state,
        host_request,
        parameters,
    )
