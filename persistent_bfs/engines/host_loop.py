"""host_loop: the naive loop, the baseline of every comparison.

Each level: clear the counter, launch, copy the 4-byte size back and wait for it, move on. So
launches = host syncs = levels, and every level pays a launch and a round trip however small its
frontier.
"""

from __future__ import annotations

import numpy as np

from persistent_bfs import layout
from persistent_bfs.device.base import LaunchShape
from persistent_bfs.engines.base import Engine, Outcome

SIZE_WORD = 0  # frontier_size[0], the first word of the state, is this loop's one counter
RECORD_WORDS = layout.LEVEL_RECORD.itemsize // 4
SIZE_IN_RECORD = layout.LEVEL_RECORD.fields["frontier_size"][1] // 4  # type: ignore[index]


class HostLoop(Engine):
    """The host runs the loop and looks at every level."""

    def prepare(self) -> None:
        """Make the window through which the host sees the counter."""
        self.size = self.device.pinned(1, np.int32)

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self._reset(source)
        stream, state, launch = self.stream, self.workspace.state, self.launch
        kernel = self.program["search_level_host"]
        launch.level, launch.frontier_begin, launch.frontier_size = 0, 0, 1
        while launch.level < max_depth:
            stream.fill(state, 0, start=SIZE_WORD, count=1)
            stream.launch(kernel, self._shape(launch.frontier_size), self.arguments)
            stream.copy_to_host(self.size, state, start=4 * SIZE_WORD)
            stream.synchronize()
            size = int(self.size[0])
            end = launch.frontier_begin + launch.frontier_size
            if end + size > self.workspace.queue.count:
                raise self.queue_full(end + size)
            if size == 0:
                break
            launch.level += 1
            launch.frontier_begin, launch.frontier_size = end, size
        else:
            self._trace_last(launch.level, launch.frontier_size)
        return Outcome(launch.level, launch.frontier_begin + launch.frontier_size)

    def _reset(self, source: int) -> None:
        stream, workspace = self.stream, self.workspace
        stream.fill(workspace.distances, -1)
        stream.fill(workspace.distances, 0, start=source, count=1)
        stream.fill(workspace.queue, source, start=0, count=1)
        if workspace.predecessors is not None:
            stream.fill(workspace.predecessors, -1)
        if workspace.trace is not None:
            stream.fill(workspace.trace, 0, count=RECORD_WORDS)

    def _trace_last(self, level: int, frontier_size: int) -> None:
        """Record the frontier at the depth limit, which no kernel expands."""
        trace = self.workspace.trace
        if trace is not None:
            first = level * RECORD_WORDS
            self.stream.fill(trace, 0, start=first, count=RECORD_WORDS)
            self.stream.fill(trace, frontier_size, start=first + SIZE_IN_RECORD, count=1)
            self.stream.synchronize()

    def _shape(self, frontier_size: int) -> LaunchShape:
        """A thread (or a warp, as the mapping has it) for each vertex of the frontier."""
        threads = self.config.block_threads
        return LaunchShape(
            self.options.blocks or -(-frontier_size * self.lanes // threads), threads
        )
