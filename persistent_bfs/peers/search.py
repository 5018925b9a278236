"""A graph as another library has it, and how its search is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from persistent_bfs.graph import Int32Array


class PeerSearch(NamedTuple):
    """A graph as a library has it.

    Attributes
    ----------
    run : callable
        From a vertex: the library's own search, which is timed; returns what the library does.
    distances : callable
        From that: (n,) int32 distances, -1 where unreachable.
    """

    run: Callable[[int], Any]
    distances: Callable[[Any], Int32Array]
