"""tiered: one cooperative kernel that gives a small frontier to one block.

One launch a search, as persistent. While one block runs levels alone there is no device-wide
barrier; the rest of the grid waits at the next one.
"""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.device.base import LaunchTooLarge
from persistent_bfs.engines.base import Engine, Outcome


def shared_bytes_needed(vertices: int, tier_vertices: int) -> int:
    """Shared memory of a block: two frontiers, and a bit a vertex, in whole words."""
    frontiers = layout.BLOCK_TIER_BYTES_A_VERTEX * tier_vertices
    return layout.BLOCK_TIER_BYTES + frontiers + 4 * -(-vertices // 32)


class Tiered(Engine):
    """One cooperative launch a search, of one block a multiprocessor."""

    def prepare(self) -> None:
        """Give the kernel its shared memory and size the grid.

        Raises
        ------
        LaunchTooLarge
            The graph has more vertices than one block has bits for.
        """
        kernel = self.program["search_tiered"]
        vertices = self.workspace["distances"].count
        needed = shared_bytes_needed(vertices, self.config.tier_vertices)
        limit = self.device.info.shared_bytes_per_block
        if needed > limit:
            raise LaunchTooLarge(
                f"tiered: {vertices:,} vertices need {needed:,} bytes of a block's shared memory, "
                f"which has {limit:,}; use the persistent engine"
            )
        self.device.allow_shared(kernel, needed)
        self.shape = self.grid(kernel.name, needed)

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.launch.request = layout.SearchRequest(source, max_depth)
        self.stream.launch_cooperative(self.program["search_tiered"], self.shape, self.arguments)
        self.look()
        return self.outcome()
