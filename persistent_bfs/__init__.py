"""Breadth-first search on NVIDIA GPUs without a launch and a host round trip per level.

The names below are imported when first used, so that ``persistent-bfs --help`` need not wait for
NumPy and SciPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from persistent_bfs.version import __version__

if TYPE_CHECKING:
    from persistent_bfs.compiler import CompileError
    from persistent_bfs.config import (
        ADVANCES,
        APPENDS,
        CLAIMS,
        DIRECTIONS,
        ENGINES,
        FRONTIERS,
        ORDERS,
        TIERS,
        Config,
    )
    from persistent_bfs.device.base import (
        DeviceBusy,
        DeviceError,
        DeviceLost,
        DeviceMemoryError,
        DeviceUnavailable,
        SearchTimeout,
    )
    from persistent_bfs.graph import Graph
    from persistent_bfs.io import GraphFormatError, GraphFormatWarning, read_graph
    from persistent_bfs.options import Options
    from persistent_bfs.reference import WrongAnswer
    from persistent_bfs.result import BFSResult, Counters, LevelTrace
    from persistent_bfs.session import BFS, bfs

_MODULES = {
    "session": ("BFS", "bfs"),
    "compiler": ("CompileError",),
    "config": (
        "ADVANCES",
        "APPENDS",
        "CLAIMS",
        "DIRECTIONS",
        "ENGINES",
        "FRONTIERS",
        "ORDERS",
        "TIERS",
        "Config",
    ),
    "device.base": (
        "DeviceBusy",
        "DeviceError",
        "DeviceLost",
        "DeviceMemoryError",
        "DeviceUnavailable",
        "SearchTimeout",
    ),
    "graph": ("Graph",),
    "io": ("GraphFormatError", "GraphFormatWarning", "read_graph"),
    "options": ("Options",),
    "reference": ("WrongAnswer",),
    "result": ("BFSResult", "Counters", "LevelTrace"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ADVANCES",
    "APPENDS",
    "BFS",
    "CLAIMS",
    "DIRECTIONS",
    "ENGINES",
    "FRONTIERS",
    "ORDERS",
    "TIERS",
    "BFSResult",
    "CompileError",
    "Config",
    "Counters",
    "DeviceBusy",
    "DeviceError",
    "DeviceLost",
    "DeviceMemoryError",
    "DeviceUnavailable",
    "Graph",
    "GraphFormatError",
    "GraphFormatWarning",
    "LevelTrace",
    "Options",
    "SearchTimeout",
    "WrongAnswer",
    "__version__",
    "bfs",
    "read_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"persistent_bfs.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
