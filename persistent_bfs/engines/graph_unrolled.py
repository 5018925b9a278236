"""graph_unrolled: K levels recorded once into a CUDA Graph, replayed until the search is over.

One graph launch serves K levels, and the device goes from node to node without the host. The
kernels are host_batched's; only who launches them differs.
"""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.engines.base import Engine, Outcome


class GraphUnrolled(Engine):
    """A graph of K levels and the copy of the state, replayed."""

    def prepare(self) -> None:
        """Record the graph."""
        self.shape = self.grid("search_level")
        kernel = self.program["search_level"]
        with self.stream.capture() as recorded:
            for level in range(self.levels_per_launch):
                self.launch.parity = level % 2
                for phase in range(self.config.phases):
                    self.launch.phase = phase
                    self.stream.launch_dependent(kernel, self.shape, self.arguments)
        self.graph = recorded()

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.launch.request = layout.SearchRequest(source, max_depth)
        self.stream.launch(self.program["reset_search"], self.shape, self.arguments)
        while True:
            self.stream.launch_graph(self.graph)
            if self.look():
                return self.outcome()

    def close(self) -> None:
        """As `Engine.close`."""
        self.graph.free()
