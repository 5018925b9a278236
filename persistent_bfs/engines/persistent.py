"""persistent: the whole search in one cooperative kernel, one grid barrier a level.

All blocks stay resident and keep the loop's variables in registers; the host launches once and
waits once. A tier runs narrow levels with one block or one cluster while the others wait. The
kernel is launched as a graph, which takes the host less time than a cooperative launch. One block
reads what is asked for in the host's pinned memory and tells the others, and the outcome is written
there, so that no copy comes before or after the kernel.
"""

from __future__ import annotations

from contextlib import suppress

from persistent_bfs import layout
from persistent_bfs.config import TIERS
from persistent_bfs.device.base import DeviceError, LaunchShape, LaunchTooLarge
from persistent_bfs.engines.base import Engine, Outcome
from persistent_bfs.tiers import cluster_sizes, shared_bytes, slots_that_fit

# So few vertices one block clears and searches in less time than a grid takes to meet.
ONE_BLOCK_VERTICES = 8192

# Of L2, for rows to be prefetched: since the A100 either half has copies of its own of what the
# multiprocessors beside it read (NVIDIA A100 Tensor Core GPU Architecture, 2020, "L2 cache").
ROWS_OF_L2 = 1 / 2


class Persistent(Engine):
    """One cooperative kernel a search, in a graph."""

    def prepare(self) -> None:
        """Size the grid by what the device holds of this kernel at once, and record the graph.

        Raises
        ------
        LaunchTooLarge
            The graph has more vertices than the tier has bits for, or the device no clusters.
        """
        self.shape = self._choose_shape()
        stream = self.stream
        self.summary = self.device.pinned(1, layout.SEARCH_SUMMARY)
        self.launch.asked = self.workspace.host_request.ctypes.data
        self.launch.summary = self.summary.ctypes.data
        self._tell_nothing()
        with stream.capture() as recorded:
            stream.launch_cooperative(self.program["search_persistent"], self.shape, self.arguments)
        self.graph = recorded()

    def _choose_shape(self) -> LaunchShape:
        tier = TIERS[self.config.tier]
        if not tier.exists:
            return self.grid("search_persistent")
        sizes = cluster_sizes(self.device.info.clusters) if tier.clusters else [1]
        if not sizes:
            raise LaunchTooLarge(
                f"{tier.name} tier: {self.device.info.name} has no thread block clusters; use "
                "tiers block or none"
            )
        problem: LaunchTooLarge | None = None
        for blocks in sizes:
            try:
                return self._shape(blocks)
            except LaunchTooLarge as error:
                problem = problem or error
        assert problem is not None
        raise problem

    def _shape(self, blocks: int) -> LaunchShape:
        """The grid where the tier has ``blocks`` blocks."""
        kernel = self.program["search_persistent"]
        vertices = self.workspace["distances"].count
        beside = kernel.resources.shared_bytes if kernel.resources else 0
        limit = self.device.info.shared_bytes_per_block - beside
        slots = slots_that_fit(self.config.tier, vertices, blocks, self.device.info, beside)
        if self.options.tier_slots is not None:
            slots = self.options.tier_slots
        needed = shared_bytes(vertices, max(slots, 2), blocks)
        if needed > limit:
            raise LaunchTooLarge(
                f"{self.config.tier} tier: {vertices:,} vertices need {needed:,} bytes of shared "
                f"memory a block, which has {limit:,}; use another tier, or tiers none"
            )
        self.launch.tier_slots = slots
        self.launch.prefetched_bytes = self._bytes_to_prefetch()
        self.device.allow_shared(kernel, needed)
        resident = self.device.max_resident_blocks(
            kernel, self.config.block_threads, needed, blocks
        )
        if resident < blocks:
            raise LaunchTooLarge(
                f"{self.config.tier} tier: {self.device.info.name} holds no cluster of {blocks} "
                f"blocks of {self.config.block_threads} threads with {needed:,} bytes each"
            )
        as_usual = self.options.blocks is None and self.options.tier_slots is None
        if blocks == 1 and as_usual and vertices <= ONE_BLOCK_VERTICES:
            return LaunchShape(1, self.config.block_threads, needed)
        return self.grid(kernel.name, needed, blocks)

    def _bytes_to_prefetch(self) -> int:
        """All of the packed rows, or none where L2 has not the room; see ``cuda/prefetch.cuh``."""
        rows, l2 = self.workspace["packed_rows"].nbytes, self.device.info.l2_bytes
        return rows if not l2 or rows <= l2 * ROWS_OF_L2 else 0

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.workspace.host_request[0] = (source, max_depth)
        try:
            self.stream.launch_graph(self.graph)
            self.mark_end()
            self.stream.synchronize()
        except BaseException:
            with suppress(DeviceError):
                self._tell_nothing()  # or the next search's blocks would hear of this one
            raise
        return self.outcome_of(self.summary[0])

    def _tell_nothing(self) -> None:
        """As a search leaves it that ends: see ``cuda/request.cuh``."""
        self.stream.fill(self.workspace["request"], -1)

    def close(self) -> None:
        """As `Engine.close`."""
        self.graph.free()
