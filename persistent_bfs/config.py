"""What a search can be made of: the tables of choices, and one frozen choice from each.

A new mapping, claim or append is one file under ``cuda/`` and one row here; a new engine is one
file under ``engines/`` and one row here. Tests, benchmarks, the CLI and ``persistent-bfs list``
follow from the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Choice:
    """A row of a table of device-code policies.

    ``header`` (under ``cuda/``) defines the C++ type ``type``; ``trade_off`` says in one line
    what it costs and when it pays.
    """

    name: str
    header: str
    type: str
    trade_off: str


@dataclass(frozen=True)
class AdvanceChoice(Choice):
    """A row of `ADVANCES`; ``lanes`` is how many threads a frontier vertex is given."""

    lanes: int = 1


@dataclass(frozen=True)
class EngineChoice:
    """A row of `ENGINES`: who runs the level loop.

    ``loop`` is the header that defines the kernels named in ``kernels``, each the C++ function
    of the same name; ``cooperative`` says whether they synchronise their grid.
    """

    name: str
    loop: str
    kernels: tuple[str, ...]
    trade_off: str
    cooperative: bool = False
    while_nodes: bool = False


def _table(*rows: Any) -> dict[str, Any]:
    return {row.name: row for row in rows}


ENGINES: Mapping[str, EngineChoice] = _table(
    EngineChoice(
        "host_loop",
        "loop_host.cuh",
        ("search_level_host",),
        "the naive loop: a launch and a blocking 4-byte copy a level; the baseline",
    ),
    EngineChoice(
        "host_batched",
        "loop_level.cuh",
        ("reset_search", "search_level"),
        "K launches, then one look: a launch a level, a host round trip every K",
    ),
    EngineChoice(
        "graph_unrolled",
        "loop_level.cuh",
        ("reset_search", "search_level"),
        "K levels recorded once in a CUDA Graph, replayed until done: no launch from the host "
        "a level, up to K - 1 empty levels at the end",
    ),
    EngineChoice(
        "graph_while",
        "loop_while.cuh",
        ("reset_search_requested", "search_level", "search_level_while"),
        "a conditional WHILE node repeats the level: one launch a search, no look; needs driver "
        "12.4, and each turn of the node costs more than a plain graph node",
        while_nodes=True,
    ),
    EngineChoice(
        "persistent",
        "loop_persistent.cuh",
        ("search_persistent",),
        "one cooperative kernel, one grid barrier a level: the least a level can cost; the grid "
        "must be resident, so wide levels have no more blocks than narrow ones",
        cooperative=True,
    ),
)

ADVANCES: Mapping[str, AdvanceChoice] = _table(
    AdvanceChoice(
        "thread",
        "advance/thread.cuh",
        "advance::Thread",
        "a thread a frontier vertex: a warp waits for its largest degree; best for small, even "
        "degrees (roads, meshes, mazes)",
    ),
    AdvanceChoice(
        "warp",
        "advance/warp.cuh",
        "advance::Warp",
        "a warp a frontier vertex, its lanes stride the row: coalesced reads, no waiting for a "
        "hub; wastes lanes on degrees below 32",
        lanes=32,
    ),
)

DIRECTIONS: Mapping[str, Choice] = _table(
    Choice(
        "push",
        "direction/push.cuh",
        "direction::Push",
        "frontier vertices look at their neighbours: work is the frontier's edges",
    ),
)

CLAIMS: Mapping[str, Choice] = _table(
    Choice(
        "cas",
        "claim/cas.cuh",
        "claim::CompareAndSwap",
        "atomicCAS on the distance after a plain test: exactly one discoverer",
    ),
    Choice(
        "naive",
        "claim/naive.cuh",
        "claim::Naive",
        "plain check, then write: no atomic, but a vertex may be discovered twice; for study",
    ),
)

APPENDS: Mapping[str, Choice] = _table(
    Choice(
        "warp",
        "append/warp.cuh",
        "append::Warp",
        "a warp counts its discoveries by ballots and reserves their slots with one atomic",
    ),
    Choice(
        "atomic",
        "append/atomic.cuh",
        "append::Atomic",
        "an atomic on the one counter for each discovery",
    ),
)

# Sound answers need exactly one discoverer a vertex. The others run, marked, and their
# duplicates are what one studies.
EXACT_CLAIMS = frozenset(CLAIMS) - {"naive"}

WARP_SIZE = 32


def choose(table: Mapping[str, Any], name: str, what: str) -> Any:
    """The row of ``table`` called ``name``.

    Raises
    ------
    ValueError
        There is none; the message lists those there are.
    """
    try:
        return table[name]
    except (KeyError, TypeError):
        raise ValueError(f"unknown {what} {name!r}; choose one of {', '.join(table)}") from None


@dataclass(frozen=True)
class Config:
    """One choice from each table: what a stub is rendered from and a program is keyed by.

    Parameters
    ----------
    engine, advance, direction, claim, append
        Names from the tables above.
    offset_bits
        Width of ``row_offsets``: 32 or 64.
    predecessors, trace
        Whether the kernels write predecessors and a record a level; compiled in or out.
    block_threads
        Threads a block, a multiple of 32 up to 1024.

    Raises
    ------
    ValueError
        A name that is in no table, or a number the kernels cannot take.
    """

    engine: str
    advance: str = "thread"
    direction: str = "push"
    claim: str = "cas"
    append: str = "warp"
    offset_bits: int = 32
    predecessors: bool = False
    trace: bool = False
    block_threads: int = 256

    def __post_init__(self) -> None:
        choose(ENGINES, self.engine, "engine")
        for table, name, what in self._choices():
            choose(table, name, what)
        if self.offset_bits not in (32, 64):
            raise ValueError(f"offset_bits is {self.offset_bits}; it must be 32 or 64")
        if self.block_threads % WARP_SIZE or not WARP_SIZE <= self.block_threads <= 1024:
            raise ValueError(
                f"block_threads is {self.block_threads}; it must be a multiple of 32, 32 to 1024"
            )

    def _choices(self) -> tuple[tuple[Mapping[str, Choice], str, str], ...]:
        return (
            (DIRECTIONS, self.direction, "direction"),
            (ADVANCES, self.advance, "advance"),
            (CLAIMS, self.claim, "claim"),
            (APPENDS, self.append, "append"),
        )

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers a stub includes: the loop, then one a policy."""
        policies = (table[name].header for table, name, _ in self._choices())
        return tuple(dict.fromkeys((ENGINES[self.engine].loop, *policies)))

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels the stub exports."""
        return ENGINES[self.engine].kernels

    @property
    def exact(self) -> bool:
        """Whether the claim promises one discoverer a vertex."""
        return self.claim in EXACT_CLAIMS

    def with_(self, **changes: Any) -> Config:
        """This choice with some fields changed."""
        return replace(self, **changes)

    def __str__(self) -> str:
        return f"{self.engine}, {self.advance} mapping, {self.claim} claim, {self.append} append"
