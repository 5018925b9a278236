"""Breadth-first search on NVIDIA GPUs without a launch and a host round trip per level."""

from persistent_bfs.bfs import BFS, bfs
from persistent_bfs.compiler import CompileError
from persistent_bfs.config import ADVANCES, APPENDS, CLAIMS, DIRECTIONS, ENGINES, Config
from persistent_bfs.device.base import DeviceError, DeviceMemoryError, DeviceUnavailable
from persistent_bfs.engines.base import EngineOptions
from persistent_bfs.graph import Graph
from persistent_bfs.io import GraphFormatError, read_graph
from persistent_bfs.reference import WrongAnswer
from persistent_bfs.result import BFSResult, Counters, LevelTrace
from persistent_bfs.version import __version__

__all__ = [
    "ADVANCES",
    "APPENDS",
    "BFS",
    "CLAIMS",
    "DIRECTIONS",
    "ENGINES",
    "BFSResult",
    "CompileError",
    "Config",
    "Counters",
    "DeviceError",
    "DeviceMemoryError",
    "DeviceUnavailable",
    "EngineOptions",
    "Graph",
    "GraphFormatError",
    "LevelTrace",
    "WrongAnswer",
    "__version__",
    "bfs",
    "read_graph",
]
