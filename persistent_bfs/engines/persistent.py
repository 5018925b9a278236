"""persistent: the whole search in one cooperative kernel, one grid barrier a level.

All blocks stay resident and keep the loop's variables in registers; the host launches once and
waits once.
"""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.engines.base import Engine, Outcome


class Persistent(Engine):
    """One cooperative launch a search."""

    def prepare(self) -> None:
        """Size the grid by what the device holds of this kernel at once."""
        self.shape = self.grid("search_persistent")

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.launch.request = layout.SearchRequest(source, max_depth)
        self.stream.launch_cooperative(
            self.program["search_persistent"], self.shape, self.arguments
        )
        self.look()
        return self.outcome()
