"""persistent: the whole search in one cooperative kernel, one grid barrier a level.

All blocks stay resident and keep the loop's variables in registers; the host launches once and
waits once. A tier runs narrow levels with one block or one cluster while the others wait.
"""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.config import TIERS
from persistent_bfs.device.base import LaunchShape, LaunchTooLarge
from persistent_bfs.engines.base import Engine, Outcome
from persistent_bfs.tiers import cluster_sizes, shared_bytes, slots_that_fit


class Persistent(Engine):
    """One cooperative launch a search."""

    def prepare(self) -> None:
        """Size the grid by what the device holds of this kernel at once.

        Raises
        ------
        LaunchTooLarge
            The graph has more vertices than the tier has bits for, or the device no clusters.
        """
        tier = TIERS[self.config.tier]
        if not tier.exists:
            self.shape = self.grid("search_persistent")
            return
        sizes = cluster_sizes(self.device.info.clusters) if tier.clusters else [1]
        if not sizes:
            raise LaunchTooLarge(
                f"{tier.name} tier: {self.device.info.name} has no thread block clusters; use "
                "tiers block or none"
            )
        problem: LaunchTooLarge | None = None
        for blocks in sizes:
            try:
                self.shape = self._shape(blocks)
                return
            except LaunchTooLarge as error:
                problem = problem or error
        assert problem is not None
        raise problem

    def _shape(self, blocks: int) -> LaunchShape:
        """The grid where the tier has ``blocks`` blocks."""
        kernel = self.program["search_persistent"]
        vertices = self.workspace["distances"].count
        limit = self.device.info.shared_bytes_per_block
        slots = slots_that_fit(self.config.tier, vertices, blocks, self.device.info)
        if self.options.tier_slots is not None:
            slots = self.options.tier_slots
        needed = shared_bytes(vertices, max(slots, 2), blocks)
        if needed > limit:
            raise LaunchTooLarge(
                f"{self.config.tier} tier: {vertices:,} vertices need {needed:,} bytes of shared "
                f"memory a block, which has {limit:,}; use another tier, or tiers none"
            )
        self.launch.tier_slots = slots
        self.device.allow_shared(kernel, needed)
        resident = self.device.max_resident_blocks(
            kernel, self.config.block_threads, needed, blocks
        )
        if resident < blocks:
            raise LaunchTooLarge(
                f"{self.config.tier} tier: {self.device.info.name} holds no cluster of {blocks} "
                f"blocks of {self.config.block_threads} threads with {needed:,} bytes each"
            )
        return self.grid(kernel.name, needed, blocks)

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.launch.request = layout.SearchRequest(source, max_depth)
        self.stream.launch_cooperative(
            self.program["search_persistent"], self.shape, self.arguments
        )
        self.look()
        return self.outcome()
