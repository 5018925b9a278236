"""Read graphs from files: one reader a format, one table of formats."""

from persistent_bfs.io.formats import FORMATS, Format
from persistent_bfs.io.reader import BUNDLED, read_graph
from persistent_bfs.io.source import GraphFormatError, GraphFormatWarning, Progress

__all__ = [
    "BUNDLED",
    "FORMATS",
    "Format",
    "GraphFormatError",
    "GraphFormatWarning",
    "Progress",
    "read_graph",
]
