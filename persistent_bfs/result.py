"""What a search answers, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from persistent_bfs.answer import Answer, Vertices


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


@dataclass(frozen=True, eq=False, repr=False)
class BFSResult:
    """The answer of one search.

    Plain values but for distances and predecessors, which are copied from the device when first
    looked at; a later search of the session, and its closing, copy them first. Where the session
    searched a reordered graph, that is also when the host brings them back to the caller's ids,
    distances by one gather and predecessors by two; no time here includes it.

    Results are equal if they say the same of the same source: which vertices are reached, and how
    far they are. They can be pickled, and take their arrays along.

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
    answer : Answer
        The arrays, by name; ``distances`` and ``predecessors`` are what it has.
    """

    source: int
    reached: int
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
    answer: Answer

    @property
    def levels(self) -> int:
        """Frontiers, the source's included."""
        return self.depth + 1

    @property
    def has_predecessors(self) -> bool:
        """Whether predecessors were asked for."""
        return "predecessors" in self.answer.names

    @property
    def distances(self) -> Vertices:
        """Distance of every vertex, (n,) int32, -1 where unreachable.

        Raises
        ------
        DeviceError
            The device failed, or was lost, before they were looked at.
        """
        return self.answer["distances"]

    @property
    def predecessors(self) -> Vertices:
        """A parent of every vertex, (n,) int32, -1 for the source and where unreachable.

        Any valid parent is right; which one it is may differ from run to run.

        Raises
        ------
        ValueError
            They were not asked for.
        DeviceError
            As ``distances``.
        """
        if not self.has_predecessors:
            raise ValueError("predecessors were not asked for: pass predecessors=True")
        return self.answer["predecessors"]

    @property
    def frontier_sizes(self) -> list[int] | None:
        """Frontier size of each level, if a trace was asked for."""
        return None if self.trace is None else [row.frontier for row in self.trace]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BFSResult):
            return NotImplemented
        mine, others = ((each.source, each.reached, each.depth) for each in (self, other))
        return mine == others and np.array_equal(self.distances, other.distances)

    def __hash__(self) -> int:
        return hash((self.source, self.reached, self.depth))

    def _facts(self) -> dict[str, str]:
        """What a reader looks for first, by its name."""
        tier = "" if self.tier == "none" else f" with {self.tier} tier"
        facts = {
            "source": f"{self.source}",
            "reached": f"{self.reached:,}",
            "levels": f"{self.levels:,}",
            "ms": "" if self.device_ms is None else f"{self.device_ms:.3g}",
            "engine": f"{self.engine}{tier}",
            "device": self.device,
        }
        return {name: value for name, value in facts.items() if value}

    def __repr__(self) -> str:
        return f"BFSResult({', '.join(f'{name}={x}' for name, x in self._facts().items())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{x}</td></tr>" for name, x in self._facts().items())
        return f"<table>{rows}</table>"

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
