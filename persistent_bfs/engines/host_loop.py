"""host_loop: the naive loop, the baseline of every comparison.

Each level: clear the counter, launch, copy the size back and wait for it, move on. So launches =
host syncs = levels, and every level pays a launch and a round trip however small its frontier.
"""

from __future__ import annotations

import numpy as np

from persistent_bfs import layout
from persistent_bfs.engines.base import Engine, Outcome

RECORD_WORDS = layout.LEVEL_RECORD.itemsize // 4
SIZE_IN_RECORD = layout.LEVEL_RECORD.fields["frontier_size"][1] // 4  # type: ignore[index]
# The words of the state that a level tells the next.
NEWS_IN_STATE = layout.SEARCH_STATE.fields["news"][1] // 4  # type: ignore[index]
COUNT_WORDS = 2  # of a frontier's vertices and edges, which one atomic adds to
NEWS_WORDS = layout.SEARCH_STATE.fields["reached"][1] // 4 - NEWS_IN_STATE  # type: ignore[index]


class HostLoop(Engine):
    """The host runs the loop and looks at every level."""

    def prepare(self) -> None:
        """Make the window through which the host sees the counter.

        It is the state's first 4 bytes, the size; or all that is counted of a frontier beside it,
        if anything is.
        """
        self.totals = self.device.pinned(1, layout.FRONTIER_TOTALS)
        self.window = self.totals if self.config.counts_edges else self.totals.view(np.uint32)[:1]

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self._reset(source)
        stream, state, launch = self.stream, self.workspace["state"], self.launch
        kernel = self.program["search_level_host"]
        launch.level = launch.parity = launch.frontier_begin = launch.explored = 0
        launch.frontier_size = launch.discovered = 1
        reached = 1
        if self.config.counts_edges:
            launch.frontier_edges = launch.largest_degree = self.workspace.degree(source)
        while launch.level < max_depth:
            shape = self.grid_for(kernel.name, launch.frontier_size)
            stream.fill(state, 0, count=max(self.window.nbytes // 4, COUNT_WORDS))
            for phase in range(self.config.phases):
                launch.phase = phase
                if phase == 1:  # what follows the expansion goes by slots, not by vertices
                    shape = self.grid(kernel.name)
                stream.launch(kernel, shape, self.arguments)
            stream.copy_to_host(self.window, state)
            stream.synchronize()
            totals = layout.FrontierTotals(*self.totals.item())
            size = totals.vertices
            end = launch.frontier_begin + launch.frontier_size
            found = totals.discovered if self.config.padded else size
            reached += found
            if not self._fits(end, size, totals.edges):
                raise self.queue_full(reached)
            if size == 0:
                break
            self.check_time(launch.level)
            launch.level += 1
            launch.parity = 1 - launch.parity
            launch.explored += launch.frontier_edges
            launch.frontier_begin, launch.frontier_size, launch.discovered = end, size, found
            launch.left = totals.discovered
            launch.frontier_edges = totals.edges
            launch.largest_degree = totals.largest_degree
        else:
            self._trace_last(launch.level, launch.discovered)
        return Outcome(launch.level, reached)

    def _fits(self, begin: int, size: int, edges: int) -> bool:
        """As ``fits`` of frontier.cuh."""
        room = self.workspace["queue"].count - begin
        if self.config.padded:
            return size + edges <= room
        arcs = self.workspace["col_indices"].count
        return size <= room and (self.config.phases == 1 or edges <= arcs)

    def _reset(self, source: int) -> None:
        stream, buffers = self.stream, self.workspace.buffers
        stream.fill(buffers["distances"], -1)
        stream.fill(buffers["distances"], 0, start=source, count=1)
        stream.fill(buffers["queue"], source, count=1)
        if "predecessors" in buffers:
            stream.fill(buffers["predecessors"], -1)
        if "edge_begin" in buffers:
            stream.fill(buffers["edge_begin"], 0, count=1)
        if self.config.direction == "auto" or self.config.dense:
            # Whether the level before pulled, and what is stale of the bitmaps.
            stream.fill(buffers["state"], 0, start=NEWS_IN_STATE, count=NEWS_WORDS)
        if self.config.dense:
            stream.fill(buffers["bitmaps"], 0)
            stream.fill(buffers["bitmaps"], 1 << source % 32, start=source // 32, count=1)
        if "trace" in buffers:
            stream.fill(buffers["trace"], 0, count=RECORD_WORDS)

    def _trace_last(self, level: int, frontier_size: int) -> None:
        """Record the frontier at the depth limit, which no kernel expands."""
        if self.config.trace:
            trace, first = self.workspace["trace"], level * RECORD_WORDS
            self.stream.fill(trace, 0, start=first, count=RECORD_WORDS)
            self.stream.fill(trace, frontier_size, start=first + SIZE_IN_RECORD, count=1)
            self.stream.synchronize()
