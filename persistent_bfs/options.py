"""What a user may set about the way a search runs, and the names there are to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from persistent_bfs.arguments import (
    INT32_MAX,
    check_choice,
    check_integer,
    check_name,
    shown,
    unknown_name,
)
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    FRONTIERS,
    MOST_BLOCK_QUEUE,
    MOST_BLOCK_THREADS,
    WARP_SIZE,
    check_block_threads,
)
from persistent_bfs.device import SCHEDULES
from persistent_bfs.tiers import check_tiers

MOST_LEVELS_PER_LAUNCH = 1 << 16
"""As many nodes a CUDA Graph has at most; more would take longer to make than to run."""

# Their members are the tables' rows, which a test compares them with: a type cannot be computed.
EngineName = Literal[
    "auto", "host_loop", "host_batched", "graph_unrolled", "graph_while", "persistent"
]
AdvanceName = Literal[
    "thread", "warp", "block", "bucketed", "edge", "topology", "edge_list", "auto"
]
DirectionName = Literal["push", "pull", "auto"]
ClaimName = Literal["cas", "min", "naive"]
AppendName = Literal["warp", "atomic", "block", "scan", "scan_padded"]
FrontierName = Literal["sparse", "dense"]
OrderName = Literal["none", "rcm", "bfs", "degree"]
# Or ``cuda:N``, which no type can spell out.
DeviceName = Literal["auto", "cuda", "emulated", "reference"]
ScheduleName = Literal["roundrobin", "random", "adversarial"]


class Choices(TypedDict, total=False):
    """The fields of `Options`, as keywords."""

    advance: AdvanceName
    direction: DirectionName | None
    claim: ClaimName
    append: AppendName
    frontier: FrontierName | None
    tiers: str
    block_threads: int | None
    block_queue: int
    levels_per_launch: int | None
    blocks: int | None
    tier_slots: int | None
    schedule: ScheduleName
    seed: int


@dataclass(frozen=True)
class Options:
    """How a search runs, for those who compare: `BFS` finds what suits by itself.

    `persistent-bfs list` shows what every name means.

    Attributes
    ----------
    advance : str
        How a frontier's edges are given to threads: a name from ``ADVANCES``, or ``auto``.
    direction, frontier : str, optional
        Names from ``DIRECTIONS`` and ``FRONTIERS``. By default what suits the graph where engine
        and mapping are ``auto``, and else ``push`` and ``sparse``; the result says which.
    claim, append : str
        Names from ``CLAIMS`` and ``APPENDS``.
    tiers : str
        Who may run the narrow levels of the persistent engine: names from ``TIERS`` with commas
        between, of which the first that fits is taken; or ``auto``.
    block_threads : int, optional
        Threads per block; by default what suits the engine.
    block_queue : int
        Vertices that the block append's shared queue holds before it spills.
    levels_per_launch : int, optional
        Levels between two looks of the host (host_batched, graph_unrolled) or two turns of the
        WHILE node (graph_while); by default what suits the graph.
    blocks : int, optional
        Blocks of the grid; refused when a cooperative grid cannot hold them.
    tier_slots : int, optional
        Slots of four arcs that each block of a tier has for a frontier: one that needs more goes
        to the grid.
    schedule, seed
        How the emulated device interleaves threads: ``roundrobin``, ``random`` or
        ``adversarial``, and the number that starts it.

    Raises
    ------
    TypeError
        A value of a wrong type; the message names the argument.
    ValueError
        A name that is in no table, or a number out of range.
    """

    advance: AdvanceName = "auto"
    direction: DirectionName | None = None
    claim: ClaimName = "cas"
    append: AppendName = "warp"
    frontier: FrontierName | None = None
    tiers: str = "auto"
    block_threads: int | None = None
    block_queue: int = 1024
    levels_per_launch: int | None = None
    blocks: int | None = None
    tier_slots: int | None = None
    schedule: ScheduleName = "roundrobin"
    seed: int = 0

    def __post_init__(self) -> None:
        tables: dict[str, tuple[Iterable[str], bool]] = {
            "advance": (ADVANCES, False),
            "direction": (DIRECTIONS, True),
            "claim": (CLAIMS, False),
            "append": (APPENDS, False),
            "frontier": (FRONTIERS, True),
            "schedule": (SCHEDULES, False),
        }
        for name, (known, may_be_none) in tables.items():
            value = getattr(self, name)
            if value is not None or not may_be_none:
                check_choice(name, value, known)
        check_tiers(check_name("tiers", self.tiers))
        for name, least, most, may_be_none in (
            ("block_threads", WARP_SIZE, MOST_BLOCK_THREADS, True),
            ("block_queue", 1, MOST_BLOCK_QUEUE, False),
            ("levels_per_launch", 1, MOST_LEVELS_PER_LAUNCH, True),
            ("blocks", 1, INT32_MAX, True),
            ("tier_slots", 2, INT32_MAX, True),
            ("seed", 0, 2**64 - 1, False),
        ):
            value = getattr(self, name)
            if value is None and may_be_none:
                continue
            object.__setattr__(self, name, check_integer(name, value, least, most))
        if self.block_threads is not None:
            check_block_threads(self.block_threads)

    @classmethod
    def of(
        cls, options: Options | None, choices: Mapping[str, Any], beside: Iterable[str] = ()
    ) -> Options:
        """``options`` (by default the default ones) with the fields that ``choices`` names.

        ``beside`` are the other keywords there are, one of which may have been meant.

        Raises
        ------
        TypeError, ValueError
            As the class, and for a keyword that is no field.
        """
        if options is not None and not isinstance(options, cls):
            raise TypeError(f"options is {shown(options)}; it must be an Options")
        known = {field.name: getattr(options or cls(), field.name) for field in fields(cls)}
        for name in choices:
            if name not in known:
                raise TypeError(str(unknown_name("argument", name, [*beside, *known])))
        return cls(**{**known, **choices})
