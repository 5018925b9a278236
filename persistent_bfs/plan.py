"""What is chosen for one graph on one device, with the reason for each choice.

The one place where engines, mappings, directions and tiers are picked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from persistent_bfs import layout
from persistent_bfs.config import (
    ENGINES,
    MOST_ROW_SLOTS,
    PROGRAMS,
    TIERS,
    Config,
    choose,
    conflict,
)
from persistent_bfs.device.base import Device, DeviceInfo
from persistent_bfs.engines.base import MAX_COUNTED_ARCS, memory_of
from persistent_bfs.graph import Graph
from persistent_bfs.options import Options
from persistent_bfs.tiers import AUTO, NONE, check_tiers, choose_tier

# Of a graph without larger degrees, a level's size alone can choose the mapping.
EVEN_DEGREE = layout.EVEN_DEGREE

# What a tier is compiled for at least: more would do for any graph, but take longer on short rows.
FEWEST_ROW_SLOTS = 1

# Rows longer than this keep the few warps of a tier long.
TIERED_DEGREE = 32

# With so many arcs a wide level takes longer than what pulling it needs beside; and with so many
# more, longer than what bitmaps need: their clearing, and fewer threads a multiprocessor.
WIDE_ARCS, DENSE_ARCS = 1 << 16, 1 << 23

# In this many levels a graph of narrow ones does not reach this many vertices.
PROBED_LEVELS, PROBED_VERTICES = 12, 2048


def looks_deep(graph: Graph) -> bool:
    """Whether the first levels of a few searches are narrow, as where there are many of them.

    Looks at little more than `PROBED_VERTICES` vertices from each of three starts, in
    milliseconds: from a vertex of a road, a mesh or a path few are within `PROBED_LEVELS` levels,
    from one of a random graph or a tree that many are.
    """
    offsets, indices = graph.row_offsets, graph.col_indices
    for start in {0, graph.vertices // 2, graph.vertices - 1}:
        seen = {start}
        frontier = [start]
        for _ in range(PROBED_LEVELS):
            neighbours = (indices[offsets[v] : offsets[v + 1]].tolist() for v in frontier)
            frontier = list({u for row in neighbours for u in row} - seen)
            seen.update(frontier)
            if len(seen) > PROBED_VERTICES:
                return False
    return True


def choose_engine(engine: str, device: Device) -> tuple[str, str]:
    """The engine that ``auto`` (or a name) means on ``device``, and why (which may be empty)."""
    info = device.info
    if engine == "auto":
        if not info.cooperative_launch:
            if info.while_nodes:
                return "graph_while", "graph_while: the device has no cooperative launch"
            return "graph_unrolled", "graph_unrolled: no cooperative launch, no WHILE nodes here"
        return "persistent", "persistent: the least a level of any width can cost"
    if engine == "graph_while" and not info.while_nodes:
        return (
            "graph_unrolled",
            f"graph_unrolled instead of graph_while: WHILE nodes need a driver of CUDA 12.4, "
            f"this one is {info.driver}",
        )
    return engine, ""


def choose_advance(advance: str, direction: str, graph: Graph) -> tuple[str, str]:
    """The mapping that ``auto`` (or a name) means with ``direction``, and why (may be empty)."""
    if advance == "auto" and direction == "pull":
        return "thread", "thread mapping: the one that pull combines with"
    uneven = graph.max_degree > EVEN_DEGREE
    if advance == "auto" and direction == "push" and uneven and graph.arcs > MAX_COUNTED_ARCS:
        return (
            "bucketed",
            f"bucketed mapping: {graph.arcs:,} arcs are more than a frontier's counter holds, and "
            "this mapping needs none",
        )
    return advance, ""


def suitable_frontier(graph: Graph, config: Config) -> str | None:
    """The form of frontiers with which wide levels of ``graph`` had better be pulled, if any.

    So it is in undirected graphs that are not deep: with bitmaps where there are very many arcs,
    without where there are many and some vertex has a large share of them, so that a search that
    only pushed would count the frontiers' arcs all the same. A directed graph would have to be
    transposed first; that is left to whoever asks for it.
    """
    form = "dense" if graph.arcs >= DENSE_ARCS else "sparse"
    counted = form == "dense" or graph.max_degree > EVEN_DEGREE
    if (
        graph.directed
        or not WIDE_ARCS <= graph.arcs <= MAX_COUNTED_ARCS
        or not (counted and config.exact)
        or conflict("auto", config.advance, config.append, form) is not None
        or looks_deep(graph)
    ):
        return None
    return form


def is_narrow(graph: Graph) -> bool:
    """Whether ``graph`` has many narrow levels and no long rows, by a look at it."""
    return graph.max_degree <= TIERED_DEGREE and looks_deep(graph)


def suitable_levels(engine: str, graph: Graph) -> int | None:
    """Levels that ``engine`` had better issue before anyone looks; None if it always knows."""
    levels = ENGINES[engine].levels_per_launch
    return levels and levels[0 if is_narrow(graph) else 1]


def configure(
    graph: Graph,
    *,
    engine: str = "auto",
    advance: str = "auto",
    direction: str = "push",
    block_threads: int | None = None,
    tiers: str = "auto",
    **choices: Any,
) -> Config:
    """What a session of ``graph`` is compiled as; arguments and errors are those of `BFS`.

    ``auto`` as an engine stands for the one it usually means, and as tiers for none; the device
    may have others.
    """
    engine = "persistent" if engine == "auto" else engine
    row = PROGRAMS.get(engine) or choose(ENGINES, engine, "engine")
    allowed = check_tiers(tiers)
    tier = allowed[0] if len(allowed) == 1 else NONE
    if block_threads is None:
        block_threads = TIERS[tier].block_threads if TIERS[tier].exists else row.block_threads
    return Config(
        engine=engine,
        tier=tier,
        advance=choose_advance(advance, direction, graph)[0],
        direction=direction,
        offset_bits=graph.row_offsets.dtype.itemsize * 8,
        even_degrees=graph.max_degree <= EVEN_DEGREE,
        block_threads=block_threads,
        **choices,
    )


def with_tier(
    config: Config,
    graph: Graph,
    tiers: str,
    info: DeviceInfo,
    *,
    block_threads: int | None = None,
) -> tuple[Config, str]:
    """``config`` with the tier that ``tiers`` means for ``graph``, and why (may be empty).

    ``block_threads`` is what the user asked for, or None for what suits the tier.
    """
    if not ENGINES[config.engine].tiers:
        return config, ""
    tier, why = choose_tier(
        tiers,
        vertices=graph.vertices,
        narrow=is_narrow(graph),
        direction=config.direction,
        claim=config.claim,
        append=config.append,
        frontier=config.frontier,
        info=info,
    )
    row = TIERS[tier]
    if block_threads is None:
        block_threads = row.block_threads if row.exists else ENGINES[config.engine].block_threads
    if row.exists:
        slots = -(-graph.max_degree // layout.PACKED)
        config = config.with_(row_slots=min(max(slots, FEWEST_ROW_SLOTS), MOST_ROW_SLOTS))
    return config.with_(tier=tier, block_threads=block_threads), why


@dataclass(frozen=True)
class Plan:
    """A configuration to try, and why it is this one."""

    config: Config
    reasons: tuple[str, ...] = ()


def plans(
    graph: Graph, engine: str, wishes: Options, wanted: Config, device: Device
) -> Iterator[Plan]:
    """What to search ``graph`` with, best first: more than one where the choice is ours.

    The next one is for a device that refuses the one before: no clusters of that size, no
    cooperative launch, not so much memory in one piece.

    Parameters
    ----------
    graph : Graph
    engine : str
        As the user named it, ``auto`` too.
    wishes : Options
    wanted : Config
        As `configure` made it of both.
    device : Device
    """
    name, why = choose_engine(engine, device)
    names = [name]
    if engine == AUTO and not TIERS[wanted.tier].exists and wishes.blocks is None:
        names += _stand_ins(name, device.info)
    free_direction = (
        wishes.direction is None
        and wishes.frontier is None
        and engine == wishes.advance == AUTO
        and wishes.tiers.strip() in (AUTO, NONE)
    )
    mapping = choose_advance(wishes.advance, wanted.direction, graph)[1]
    tried: set[Config] = set()
    for number, each in enumerate(names):
        config = wanted.with_(engine=each)
        if number and wishes.block_threads is None:
            config = config.with_(block_threads=ENGINES[each].block_threads)
        told = tuple(filter(None, (why if not number else "", mapping)))
        for directed, of_direction in _directions(graph, config, free_direction, device):
            for tiered, of_tier in _tiers(graph, directed, wishes, device):
                if tiered not in tried:
                    tried.add(tiered)
                    yield Plan(tiered, (*told, *filter(None, (of_direction, of_tier))))


def _stand_ins(engine: str, info: DeviceInfo) -> tuple[str, ...]:
    """Engines that ask less of a device than ``engine``, in the order of their speed."""
    return tuple(
        each
        for each in ("graph_while", "graph_unrolled", "host_batched")
        if each != engine and (info.while_nodes or each != "graph_while")
    )


def _directions(
    graph: Graph, config: Config, free: bool, device: Device
) -> Iterator[tuple[Config, str]]:
    """``config`` with the direction that suits, then as it is."""
    form = suitable_frontier(graph, config) if free else None
    if form is not None:
        pulling = config.with_(direction="auto", frontier=form)
        needed = memory_of(graph, pulling)
        if sum(needed.values()) <= device.free_bytes():
            yield pulling, f"direction auto, {form} frontiers: {graph.arcs:,} arcs in wide levels"
        else:
            yield config, f"push: direction auto would need {sum(needed.values()):,} bytes in all"
            return
    yield config, ""


def _tiers(
    graph: Graph, config: Config, wishes: Options, device: Device
) -> Iterator[tuple[Config, str]]:
    """``config`` with each tier that the user allows and the graph fits, then none."""
    asked, threads = wishes.tiers.strip(), wishes.block_threads
    allowed = check_tiers(wishes.tiers)
    if not ENGINES[config.engine].tiers or len(allowed) == 1:
        yield with_tier(config, graph, asked, device.info, block_threads=threads)
        return
    names, word = list(allowed), asked
    while True:
        tiered, why = with_tier(config, graph, word, device.info, block_threads=threads)
        if not TIERS[tiered.tier].exists:
            yield tiered, why
            return
        needed = memory_of(graph, tiered)
        if asked == AUTO and sum(needed.values()) > device.free_bytes():
            why = f"no tier: its packed rows take {needed['packed_rows']:,} bytes more"
            break
        yield tiered, why
        why = ""
        names = names[names.index(tiered.tier) + 1 :]
        if not names:
            break
        word = ", ".join(names)
    if asked == AUTO:
        yield with_tier(config, graph, NONE, device.info, block_threads=threads)[0], why
