"""Other libraries' breadth-first searches, beside ours: one graph, one run, every answer checked.

A file a library, and a row of `PEERS`. What a library needs of a graph is made before anything is
timed; timed is its own call, by the host's clock, until the host has the answer or the GPU is done
with it; what it takes to read distances out of an answer is not. Nobody needs any of them to use
this program.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from persistent_bfs.graph import Graph
    from persistent_bfs.peers.search import PeerSearch


class PeerMissing(RuntimeError):
    """A peer's package is not there; the message says what to install."""


@dataclass(frozen=True)
class Peer:
    """A row of `PEERS`; ``by_<name>.py`` has its ``prepare``.

    Attributes
    ----------
    name : str
        As ``--with`` has it.
    function : str
        What is called, by its full name.
    runs_on : str
        ``host`` or ``GPU``.
    modules : tuple of str
        What must be there to be imported; the first one has the version.
    package : str
        What to install for it.
    """

    name: str
    function: str
    runs_on: str
    modules: tuple[str, ...]
    package: str

    @property
    def trade_off(self) -> str:
        """What it is, in a line."""
        return f"{self.function}, on the {self.runs_on}; needs {self.package}"

    @property
    def installed(self) -> bool:
        """Whether its modules are there, without importing them."""
        return all(importlib.util.find_spec(module) for module in self.modules)

    def require(self) -> str:
        """The version that is there.

        Raises
        ------
        PeerMissing
            None is.
        """
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise PeerMissing(
                    f"no {self.name} to compare with: {error}; install {self.package}"
                ) from None
        first = importlib.import_module(self.modules[0])
        return str(getattr(first, "__version__", "unknown"))

    def prepare(self, graph: Graph) -> PeerSearch:
        """The graph as the library has it, ready to be searched."""
        module = importlib.import_module(f"persistent_bfs.peers.by_{self.name}")
        prepared: PeerSearch = module.prepare(graph)
        return prepared


PEERS: Mapping[str, Peer] = {
    row.name: row
    for row in (
        Peer(
            "scipy",
            "scipy.sparse.csgraph.breadth_first_order",
            "host",
            ("scipy",),
            "scipy",
        ),
        Peer(
            "networkx",
            "networkx.single_source_shortest_path_length",
            "host",
            ("networkx",),
            "networkx",
        ),
        Peer("igraph", "igraph.Graph.bfs", "host", ("igraph",), "igraph"),
        Peer(
            "cugraph",
            "pylibcugraph.bfs",
            "GPU",
            ("pylibcugraph", "cupy"),
            "pylibcugraph and cupy for your CUDA version",
        ),
    )
}
"""Every other library, by name."""
