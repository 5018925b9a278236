"""What a search answers, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Vertices = npt.NDArray[np.int32]


class Fetch(Protocol):
    """What copies an answer to the host."""

    def __call__(self) -> npt.NDArray[np.int32]:
        """Return the (n,) answer."""
        ...


@dataclass(frozen=True)
class Counters:
    """What a search asked of host and device.

    ``launches`` are kernel or graph launches, ``host_syncs`` waits of the host for the device,
    ``barriers`` device-wide barriers inside a kernel. ``device`` holds what only the emulated
    device counts (lane slots, atomics, ...); empty elsewhere.
    """

    launches: int = 0
    host_syncs: int = 0
    barriers: int = 0
    device: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelTrace:
    """One level of a search.

    ``begin_ns`` counts from the first level's begin and ``ns`` is this level's own duration, by
    the device's clock; both None where the device has no clock (emulated, reference).
    """

    level: int
    frontier: int
    edges: int
    mapping: str
    direction: str
    begin_ns: int | None
    ns: int | None


@dataclass(frozen=True)
class BFSResult:
    """The answer of one search.

    Distances and predecessors are copied from the device when first looked at, and stay this
    result's own: a later search with the same session changes nothing here once they have been
    looked at, and makes looking an error before. Where the session searched a reordered graph, that
    is also when the host brings them back to the caller's ids, distances by one gather and
    predecessors by two; no time here includes it.

    Attributes
    ----------
    source : int
    reached : int
        Vertices with a distance, the source included.
    depth : int
        Largest distance.
    levels : int
        Frontiers, the source's included: ``depth + 1``.
    enqueued : int
        Sum of the frontier sizes; equal to ``reached`` unless the claim lets a vertex be
        discovered twice.
    engine, advance, direction, claim, append, frontier, tier, device : str
        What ran.
    reason : str
        Why, where something was chosen automatically.
    reorder : str
        The order in which the session searched the vertices, ``none`` for the graph's own.
    reorder_ms : float
        Milliseconds by the host's clock that the session's reordering took, once; in no other time.
    counters : Counters
    trace : list of LevelTrace, or None
        If it was asked for.
    device_ms, wall_ms : float or None
        Milliseconds: by the device's events around everything the search enqueued; by the
        host's clock around the call. None on the emulated device, which has no time to tell.
    """

    source: int
    depth: int
    enqueued: int
    engine: str
    advance: str
    direction: str
    claim: str
    append: str
    frontier: str
    tier: str
    device: str
    reason: str
    reorder: str
    reorder_ms: float
    counters: Counters
    trace: list[LevelTrace] | None
    device_ms: float | None
    wall_ms: float | None
    _fetch_distances: Fetch = field(repr=False)
    _fetch_predecessors: Fetch | None = field(repr=False)

    @property
    def levels(self) -> int:
        """Frontiers, the source's included."""
        return self.depth + 1

    @property
    def has_predecessors(self) -> bool:
        """Whether predecessors were asked for."""
        return self._fetch_predecessors is not None

    @cached_property
    def distances(self) -> Vertices:
        """Distance of every vertex, (n,) int32, -1 where unreachable."""
        return self._fetch_distances()

    @cached_property
    def predecessors(self) -> Vertices:
        """A parent of every vertex, (n,) int32, -1 for the source and where unreachable.

        Any valid parent is right; which one it is may differ from run to run.

        Raises
        ------
        ValueError
            They were not asked for.
        """
        if self._fetch_predecessors is None:
            raise ValueError("predecessors were not asked for: pass predecessors=True")
        return self._fetch_predecessors()

    @cached_property
    def reached(self) -> int:
        """Vertices with a distance, the source included."""
        return int(np.count_nonzero(self.distances >= 0))

    @property
    def frontier_sizes(self) -> list[int] | None:
        """Frontier size of each level, if a trace was asked for."""
        return None if self.trace is None else [row.frontier for row in self.trace]

    def summary(self) -> dict[str, Any]:
        """The figures of this search under the names the CLI's JSON uses."""
        return {
            "source": self.source,
            "engine": self.engine,
            "advance": self.advance,
            "direction": self.direction,
            "claim": self.claim,
            "append": self.append,
            "frontier": self.frontier,
            "tier": self.tier,
            "device": self.device,
            "reorder": self.reorder,
            "reorder_ms": self.reorder_ms,
            "levels": self.levels,
            "depth": self.depth,
            "reached": self.reached,
            "enqueued": self.enqueued,
            "launches": self.counters.launches,
            "host_syncs": self.counters.host_syncs,
            "barriers": self.counters.barriers,
            "device_ms": self.device_ms,
            "wall_ms": self.wall_ms,
        }
