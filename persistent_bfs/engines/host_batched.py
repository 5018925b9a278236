"""host_batched: K launches, then one look.

The loop's state is on the device, so the host can launch the next level before it knows whether
there is one. A level costs a launch but no round trip; up to K - 1 launches at the end find the
search over and return at once.
"""

from __future__ import annotations

from persistent_bfs import layout
from persistent_bfs.device.base import KernelArguments
from persistent_bfs.engines.base import Engine, Outcome


class HostBatched(Engine):
    """The host launches every level and looks at every K-th."""

    def prepare(self) -> None:
        """Lay out the arguments of even and odd levels, a launch a phase."""
        self.shape = self.grid("search_level")
        self.by_parity = [
            [
                KernelArguments(
                    self.workspace.parameters, layout.LaunchArguments(parity=parity, phase=phase)
                )
                for phase in range(self.config.phases)
            ]
            for parity in (0, 1)
        ]

    def search(self, source: int, max_depth: int) -> Outcome:
        """As `Engine.search`."""
        self.launch.request = layout.SearchRequest(source, max_depth)
        self.stream.launch(self.program["reset_search"], self.shape, self.arguments)
        kernel = self.program["search_level"]
        while True:
            for level in range(self.levels_per_launch):
                for arguments in self.by_parity[level % 2]:
                    self.stream.launch(kernel, self.shape, arguments)
            if self.look():
                return self.outcome()
