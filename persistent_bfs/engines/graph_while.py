"""graph_while: a conditional WHILE node repeats the level; one graph launch is the whole search.

The graph copies the request in, resets, repeats a few levels while there is a frontier, and
copies the state out. A turn of the WHILE node costs more than a plain node, so its body holds a
few levels, the last of which decides about another turn.
"""

from __future__ import annotations

from persistent_bfs.device.base import Stream
from persistent_bfs.engines.base import Engine, Outcome


class GraphWhile(Engine):
    """One graph with a WHILE node."""

    def prepare(self) -> None:
        """Record the graph."""
        self.shape = self.grid("search_level_while")
        self.graph = self.device.while_graph(self.stream, self._before, self._body, self._after)

    def _before(self, stream: Stream) -> None:
        stream.copy_to_device(self.workspace["request"], self.workspace.host_request)
        stream.launch(self.program["reset_search_requested"], self.shape, self.arguments)

    def _body(self, stream: Stream, condition: int) -> None:
        levels = self.levels_per_launch
        self.launch.condition = condition
        for level in range(levels):
            self.launch.parity = level % 2
            for phase in range(self.config.phases):
                self.launch.phase = phase
                last = level == levels - 1 and phase == self.config.phases - 1
                kernel = self.program["search_level_while" if last else "search_level_in_turn"]
                stream.launch(kernel, self.shape, self.arguments)

    def _after(self, stream: Stream) -> None:
        stream.copy_to_host(self.workspace.host_state, self.workspace["state"])

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.workspace.host_request[0] = (source, max_depth)
        self.stream.launch_graph(self.graph)
        self.mark_end()
        self.stream.synchronize()
        return self.outcome()

    def close(self) -> None:
        """As `Engine.close`."""
        self.graph.free()
