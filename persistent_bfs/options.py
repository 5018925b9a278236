"""What a user may set about the way a search runs, and the names there are to choose from."""

from __future__ import annotations

import math
import numbers
import operator
import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    FRONTIERS,
    ORDERS,
    choose,
)

# Their members are the tables' rows, which a test compares them with: a type cannot be computed.
EngineName = Literal[
    "auto", "host_loop", "host_batched", "graph_unrolled", "graph_while", "persistent"
]
AdvanceName = Literal[
    "topology", "thread", "warp", "block", "bucketed", "edge", "edge_list", "auto"
]
DirectionName = Literal["push", "pull", "auto"]
ClaimName = Literal["cas", "min", "naive"]
AppendName = Literal["warp", "atomic", "block", "scan", "scan_padded"]
FrontierName = Literal["sparse", "dense"]
OrderName = Literal["none", "rcm", "bfs", "degree"]
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
        tables: dict[str, tuple[Mapping[str, Any], bool]] = {
            "advance": (ADVANCES, False),
            "direction": (DIRECTIONS, True),
            "claim": (CLAIMS, False),
            "append": (APPENDS, False),
            "frontier": (FRONTIERS, True),
        }
        for name, (table, may_be_none) in tables.items():
            value = getattr(self, name)
            if value is not None or not may_be_none:
                choose(table, check_name(name, value), name)
        check_name("tiers", self.tiers)
        check_name("schedule", self.schedule)
        for name, least, may_be_none in (
            ("block_threads", 1, True),
            ("block_queue", 1, False),
            ("levels_per_launch", 1, True),
            ("blocks", 1, True),
            ("tier_slots", 2, True),
            ("seed", 0, False),
        ):
            value = getattr(self, name)
            if value is None and may_be_none:
                continue
            object.__setattr__(self, name, check_integer(name, value, least))

    @classmethod
    def of(cls, options: Options | None, choices: Mapping[str, Any]) -> Options:
        """``options`` (by default the default ones) with the fields that ``choices`` names.

        Raises
        ------
        TypeError, ValueError
            As the class, and for a keyword that is no field.
        """
        if options is not None and not isinstance(options, cls):
            raise TypeError(f"options is {options!r}; it must be an Options")
        known = {field.name: getattr(options or cls(), field.name) for field in fields(cls)}
        for name in choices:
            if name not in known:
                raise TypeError(f"unknown argument {name!r}; options are {', '.join(known)}")
        return cls(**{**known, **choices})


def check_name(argument: str, value: Any) -> str:
    """``value``, if it is a str; a TypeError that names the argument if not."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} is {value!r}; it must be a str")
    return value


def check_engine(value: Any) -> str:
    """The name of an engine, or ``auto``."""
    name = check_name("engine", value)
    if name != "auto" and name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; choose one of auto, {', '.join(ENGINES)}")
    return name


def check_order(value: Any) -> str:
    """The name of an order of vertices; None stands for the graph's own."""
    if value is None:
        return "none"
    name: str = choose(ORDERS, check_name("reorder", value), "order").name
    return name


def check_flag(argument: str, value: Any) -> bool:
    """``value``, if it is a bool; a TypeError that names the argument if not."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} is {value!r}; it must be a bool")
    return value


def check_integer(argument: str, value: Any, least: int) -> int:
    """``value`` as an int of at least ``least``; an error that names the argument if it is none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(
            f"{argument} is {value!r}; it must be an integer of at least {least}"
        ) from None
    if number < least:
        raise ValueError(f"{argument} is {number}; it must be at least {least}")
    return number


def check_time_limit(seconds: Any) -> float | None:
    """Seconds above 0; None for no limit, as infinity means, and more than any clock waits."""
    if seconds is None:
        return None
    what = f"time_limit is {seconds!r}; it must be a number of seconds above 0"
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(what)
    limit = float(seconds)
    if not limit > 0:
        raise ValueError(what)
    return None if math.isinf(limit) or limit > threading.TIMEOUT_MAX else limit
