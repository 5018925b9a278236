"""What a search can be made of: the tables of choices, and one frozen choice from each.

A new mapping, claim or append is one file under ``cuda/`` and one row here; a new engine is one
file under ``engines/`` and one row here. Tests, benchmarks, the CLI and ``persistent-bfs list``
follow from the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from persistent_bfs.arguments import unknown_name

WARP_SIZE = 32
MOST_BLOCK_THREADS = 1024
MOST_BLOCK_QUEUE = 2048
MOST_ROW_SLOTS = 3  # of a vertex in a tier: so many or more

# Threads a multiprocessor whose registers suffice for kernels that both push and pull by bitmaps:
# 64 a thread. More registers would leave fewer threads to wait for memory; what is there for study,
# a block a vertex, which no search by bitmaps is quick with, and what has predecessors and a trace
# to write as well, are given them, lest they spill.
RESIDENT_THREADS, RESIDENT_FOR_STUDY = 1024, 768

# The same for kernels that only push, when they are traced: they take 48 registers or fewer
# otherwise, and a grid must not have fewer threads for being looked at.
RESIDENT_TRACED = 1280


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
    """A row of `ADVANCES`.

    ``lanes`` is how many threads a frontier vertex is given: a number, ``A_BLOCK``, or
    ``A_SHARE`` where the frontier's size alone does not say. ``counts_edges`` says that the
    appends must count the frontier's edges, ``by_arcs`` that the near end of every arc must be
    stored, ``by_frontier`` that arcs are handed out by the queue's order. ``resident_threads`` is
    how many threads of its walk alone a multiprocessor must have registers for: with fewer there is
    not enough to do while memory answers.
    """

    lanes: int = 1
    counts_edges: bool = False
    by_arcs: bool = False
    by_frontier: bool = True
    resident_threads: int = 0


A_BLOCK = -1
A_SHARE = 0


@dataclass(frozen=True)
class AppendChoice(Choice):
    """A row of `APPENDS`.

    ``phases`` is how many parts a level has, with a device-wide barrier between them: more than
    one where output slots are the arcs' places in the scan of the frontier's degrees. ``padded``
    says that the slots of arcs that discovered nobody stay in the frontier.
    """

    phases: int = 1
    padded: bool = False


@dataclass(frozen=True)
class DirectionChoice(Choice):
    """A row of `DIRECTIONS`; ``transposed`` says that it reads arcs backwards."""

    counts_edges: bool = False
    transposed: bool = False


@dataclass(frozen=True)
class TierChoice(Choice):
    """A row of `TIERS`: who runs the narrow levels of a persistent search.

    ``block_threads`` is how many threads a block suit it, ``slots`` how many slots a block, so
    that a larger frontier is better off on the grid, ``mappings`` how the trace calls its levels;
    a tier that ``exists`` reads packed rows.
    """

    block_threads: int = 256
    slots: int = 0
    exists: bool = True
    clusters: bool = False
    mappings: tuple[str, ...] = ()


@dataclass(frozen=True)
class FrontierChoice(Choice):
    """A row of `FRONTIERS`; ``dense`` says that a frontier has a bitmap of all vertices."""

    dense: bool = False


@dataclass(frozen=True)
class OrderChoice:
    """A row of `ORDERS`; `persistent_bfs.reorder` has a function for each but ``none``."""

    name: str
    trade_off: str


@dataclass(frozen=True)
class EngineChoice:
    """A row of `ENGINES`: who runs the level loop.

    ``loop`` is the header that defines the kernels named in ``kernels``, each the C++ function
    of the same name; ``cooperative`` says whether they synchronise their grid, ``block_threads``
    how many threads a block suit them, ``tiers`` whether narrow levels may be given to a tier;
    ``arguments`` is the C++ struct a launch takes beside the parameters. ``levels_per_launch`` are
    the levels it issues before anyone looks whether there are more: on graphs of many narrow
    levels, and on others, which end after a few (``docs/performance.md`` has what was measured);
    None for one that knows at every level.
    """

    name: str
    loop: str
    kernels: tuple[str, ...]
    trade_off: str
    cooperative: bool = False
    block_threads: int = 256
    tiers: bool = False
    while_nodes: bool = False
    levels_per_launch: tuple[int, int] | None = None
    arguments: str = "LaunchArguments"


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
        "K launches, then one look: a launch a level, a host round trip every K (32 on deep "
        "graphs, 16 on others)",
        levels_per_launch=(32, 16),
    ),
    EngineChoice(
        "graph_unrolled",
        "loop_level.cuh",
        ("reset_search", "search_level"),
        "K levels recorded once in a CUDA Graph, replayed until done: no launch from the host "
        "a level, up to K - 1 empty levels at the end (K: 64 on deep graphs, 16 on others)",
        levels_per_launch=(64, 16),
    ),
    EngineChoice(
        "graph_while",
        "loop_while.cuh",
        ("reset_search_requested", "search_level_in_turn", "search_level_while"),
        "a conditional WHILE node repeats the level: one launch a search, no look; needs driver "
        "12.4, and each turn of the node costs more than a plain graph node, so one runs 16 levels "
        "on deep graphs, 8 on others",
        while_nodes=True,
        levels_per_launch=(16, 8),
    ),
    EngineChoice(
        "persistent",
        "loop_persistent.cuh",
        ("search_persistent",),
        "one cooperative kernel, one grid barrier a level, or a tier that runs narrow levels with "
        "less: the least a level can cost; the grid must be resident, so wide levels have no more "
        "blocks than narrow ones",
        cooperative=True,
        tiers=True,
    ),
)

# No engine, since it searches nothing: a program of its own for `persistent_bfs.expand`.
WALK = EngineChoice(
    "walk",
    "walk.cuh",
    ("walk_level", "walk_level_by_vertex"),
    "one given frontier's arcs are read over and over: what a mapping costs alone",
    arguments="WalkArguments",
)

# Nor is this one: what a launch, a barrier or a load costs alone, for `persistent_bfs.study`.
PRIMITIVES = EngineChoice(
    "primitives",
    "primitives/primitives.cuh",
    (
        "empty_kernel",
        "empty_dependent",
        "count_turn",
        "sync_grid",
        "sync_grid_own",
        "sync_cluster",
        "sync_block",
        "chase_loads",
        "chain_atomics",
        "copy_words",
    ),
    "launches, barriers, loads and copies, each alone",
    block_threads=1024,
    arguments="PrimitiveArguments",
)

PROGRAMS: Mapping[str, EngineChoice] = _table(WALK, PRIMITIVES)

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
        lanes=WARP_SIZE,
    ),
    AdvanceChoice(
        "block",
        "advance/block.cuh",
        "advance::Block",
        "a block a frontier vertex: for rows of thousands; most of the block idles on the rest",
        lanes=A_BLOCK,
    ),
    AdvanceChoice(
        "bucketed",
        "advance/bucketed.cuh",
        "advance::Bucketed",
        "some lanes, a warp or a block a vertex, by its degree and by how many lanes there are: "
        "few idle lanes, a vote of the block a level; a hub still has one block only",
        lanes=A_SHARE,
    ),
    AdvanceChoice(
        "edge",
        "advance/edge.cuh",
        "advance::Edge",
        "equal edges a lane, whoever they belong to: no hub can unbalance it; pays a search, and "
        "a degree read for each vertex appended",
        lanes=A_SHARE,
        counts_edges=True,
        resident_threads=1536,
    ),
    AdvanceChoice(
        "topology",
        "advance/topology.cuh",
        "advance::Topology",
        "every thread tests every vertex at every level: n x levels tests; only for searches of "
        "a few levels",
        lanes=A_SHARE,
        by_frontier=False,
    ),
    AdvanceChoice(
        "edge_list",
        "advance/edge_list.cuh",
        "advance::EdgeList",
        "every arc is tested at every level: balanced and coalesced, but m x levels tests and 4 "
        "bytes an arc more",
        lanes=A_SHARE,
        by_arcs=True,
        by_frontier=False,
    ),
    AdvanceChoice(
        "auto",
        "advance/auto.cuh",
        "advance::Auto",
        "warp, thread or edge, chosen level by level on the device from the frontier's size and "
        "largest degree; counts edges only where the graph has large degrees",
        lanes=A_SHARE,
        counts_edges=True,
    ),
)

DIRECTIONS: Mapping[str, DirectionChoice] = _table(
    DirectionChoice(
        "push",
        "direction/push.cuh",
        "direction::Push",
        "frontier vertices look at their neighbours: work is the frontier's edges",
    ),
    DirectionChoice(
        "pull",
        "direction/pull.cuh",
        "direction::Pull",
        "unvisited vertices look for a parent and stop at the first: little work when the "
        "frontier is large, every unvisited arc when it is small",
        transposed=True,
    ),
    DirectionChoice(
        "auto",
        "direction/auto.cuh",
        "direction::Auto",
        "push or pull, chosen level by level on the device by what either would cost; the best on "
        "graphs of few, wide levels",
        counts_edges=True,
        transposed=True,
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
        "min",
        "claim/min.cuh",
        "claim::Minimum",
        "atomicMin on the distance; the old value says who discovered: as cas, and the form "
        "that shortest paths need",
    ),
    Choice(
        "naive",
        "claim/naive.cuh",
        "claim::Naive",
        "plain check, then write: no atomic, but a vertex may be discovered twice; for study",
    ),
)

APPENDS: Mapping[str, AppendChoice] = _table(
    AppendChoice(
        "warp",
        "append/warp.cuh",
        "append::Warp",
        "a warp counts its discoveries by ballots and reserves their slots with one atomic",
    ),
    AppendChoice(
        "atomic",
        "append/atomic.cuh",
        "append::Atomic",
        "an atomic on the one counter for each discovery",
    ),
    AppendChoice(
        "block",
        "append/block.cuh",
        "append::Block",
        "a block collects in shared memory and reserves slots once a level; spills when full",
    ),
    AppendChoice(
        "scan",
        "append/scan.cuh",
        "append::Scan",
        "slots by the scan of the frontier's degrees, then a filter compacts: no atomic, frontiers "
        "in the order of the arcs; a write an arc and three barriers a level",
        phases=3,
    ),
    AppendChoice(
        "scan_padded",
        "append/scan_padded.cuh",
        "append::ScanPadded",
        "as scan, without the filter: slots without a vertex stay, so a frontier is as long as the "
        "edges before it, and the queue as the arcs",
        phases=3,
        padded=True,
    ),
)

TIERS: Mapping[str, TierChoice] = _table(
    TierChoice(
        "none",
        "tier/none.cuh",
        "tier::None",
        "every level on the whole grid, with any mapping: what the others are compared with",
        exists=False,
    ),
    TierChoice(
        "block",
        "tier/block.cuh",
        "tier::Block",
        "one block runs narrow levels alone, frontier and visited bits in its shared memory: no "
        "device-wide barrier; needs a bit a vertex there (some 1.1 million vertices)",
        block_threads=1024,
        slots=3072,
        mappings=("one warp", "one block"),
    ),
    TierChoice(
        "cluster",
        "tier/cluster.cuh",
        "tier::Cluster",
        "the same by up to 16 blocks that reach each other's shared memory: for graphs of up to "
        "some 17 million vertices, on sm_90 and newer; a level costs two round trips between them",
        block_threads=384,
        slots=2048,
        clusters=True,
        mappings=("one cluster",),
    ),
)

FRONTIERS: Mapping[str, FrontierChoice] = _table(
    FrontierChoice(
        "sparse",
        "frontier/sparse.cuh",
        "frontier::Sparse",
        "a queue of its vertices: as large as the frontier is; pull looks for neighbours in the "
        "distances and appends as push does",
    ),
    FrontierChoice(
        "dense",
        "frontier/dense.cuh",
        "frontier::Dense",
        "a bit a vertex, set as they are discovered: pull looks for neighbours in n/8 bytes, a "
        "likely parent first (4 bytes a vertex more), and appends to no queue; an atomic for each "
        "discovery of a pushed level, and clearing",
        dense=True,
    ),
)

ORDERS: Mapping[str, OrderChoice] = _table(
    OrderChoice("none", "vertices as the graph numbers them: nothing to pay, nothing to gain"),
    OrderChoice(
        "rcm",
        "reverse Cuthill-McKee: neighbours get ids close to each other, so that what a level reads "
        "lies together; for roads, meshes and whatever else is deep",
    ),
    OrderChoice(
        "bfs",
        "as a search from the rim of each component discovers them: every level of that search is "
        "a run of ids; as rcm, without sorting neighbours by degree",
    ),
    OrderChoice(
        "degree",
        "descending degree: hubs share cache lines, vertices without an arc come last; for wide "
        "graphs: in deep ones it parts neighbours",
    ),
)

# Sound answers need exactly one discoverer a vertex. The others run, marked, and their
# duplicates are what one studies.
EXACT_CLAIMS = frozenset(CLAIMS) - {"naive"}


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
        raise unknown_name(what, name, table) from None


def check_block_threads(threads: int) -> None:
    """Refuse a number of threads that no block can have.

    Raises
    ------
    ValueError
        It is no multiple of 32 from 32 to 1024.
    """
    if threads % WARP_SIZE or not WARP_SIZE <= threads <= MOST_BLOCK_THREADS:
        raise ValueError(
            f"block_threads is {threads}; it must be a multiple of {WARP_SIZE}, {WARP_SIZE} to "
            f"{MOST_BLOCK_THREADS}"
        )


def rows_by_loop() -> Iterator[Config]:
    """Every row of every table once with every loop: not their product, but all their code.

    Engines that share a loop share its kernels.
    """
    loops = {row.loop: row.name for row in ENGINES.values()}
    for engine in loops.values():
        usual = Config(engine, predecessors=True, trace=True)
        yield usual
        tables: dict[str, Mapping[str, Choice]] = {
            "advance": ADVANCES,
            "direction": DIRECTIONS,
            "claim": CLAIMS,
            "append": APPENDS,
        }
        if usual.program.tiers:
            tables["tier"] = TIERS
        for field, table in tables.items():
            for name in table:
                if name != getattr(usual, field):
                    threads = TIERS[name].block_threads if field == "tier" else usual.block_threads
                    yield usual.with_(**{field: name}, block_threads=threads)
        for name in FRONTIERS:
            if name != usual.frontier:
                yield usual.with_(frontier=name, direction="auto")


def conflict(
    direction: str, advance: str, append: str = "warp", frontier: str = "sparse"
) -> str | None:
    """Why these choices do not combine; None if they do. All else combines."""
    if direction == "pull" and advance != "thread":
        return (
            f"direction pull does not combine with the {advance} mapping: pull goes by unvisited "
            "vertices, a thread each, and has no frontier to map; use advance thread, or "
            "direction auto"
        )
    if APPENDS[append].phases > 1:
        by_places = f"the {append} append takes the arcs' places in the order of the frontier"
        if direction != "push":
            return (
                f"direction {direction} does not combine with the {append} append: {by_places}, "
                "and pull goes by unvisited vertices; use direction push"
            )
        if not ADVANCES[advance].by_frontier:
            return (
                f"the {advance} mapping does not combine with the {append} append: {by_places}, "
                f"and {advance} does not go by it; use advance thread, warp, block, bucketed, "
                "edge or auto"
            )
    if FRONTIERS[frontier].dense:
        if APPENDS[append].phases > 1:
            return (
                f"the {append} append does not combine with a {frontier} frontier: its slots are a "
                "queue's, and a bitmap has no places; use append warp, atomic or block"
            )
        if direction == "push" and ADVANCES[advance].by_frontier:
            return (
                f"direction push with the {advance} mapping does not combine with a {frontier} "
                "frontier: the mapping goes by the queue, so that the bitmap would be written and "
                "never read; use direction auto or pull, or the topology mapping"
            )
        if direction == "push" and ADVANCES[advance].by_arcs:
            return (
                f"direction push with the {advance} mapping does not combine with a {frontier} "
                "frontier: it tests the distances of the arcs' near ends, so that the bitmap would "
                "be written and never read; use direction auto or pull, or the topology mapping"
            )
        if direction == "pull" and append != "warp":
            return (
                f"direction pull with a {frontier} frontier does not combine with the {append} "
                "append: nothing is appended, vertices enter by whole words of the bitmap; leave "
                "the append at warp, or use direction auto"
            )
    return None


def tier_conflict(direction: str, claim: str, append: str, frontier: str = "sparse") -> str | None:
    """Why no tier combines with these choices; None if every tier does."""
    if FRONTIERS[frontier].dense:
        return (
            f"{frontier} frontiers do not combine with a tier, which keeps slots of its own; use "
            "tiers none"
        )
    if claim not in EXACT_CLAIMS:
        return (
            f"the {claim} claim does not combine with a tier, whose visited bits let nobody "
            "discover a vertex twice; use tiers none"
        )
    if direction == "pull":
        return "direction pull does not combine with a tier, which pushes; use tiers none"
    if APPENDS[append].padded:
        return (
            f"the {append} append does not combine with a tier, whose frontiers have no slots "
            "without a vertex; use tiers none"
        )
    return None


@dataclass(frozen=True)
class Config:
    """One choice from each table: what a stub is rendered from and a program is keyed by.

    Parameters
    ----------
    engine, advance, direction, claim, append, frontier
        Names from the tables above; for ``engine`` also one from `PROGRAMS`.
    offset_bits
        Width of ``row_offsets``: 32 or 64.
    predecessors, trace
        Whether the kernels write predecessors and a record a level; compiled in or out.
    block_threads
        Threads a block, a multiple of 32 up to 1024.
    even_degrees
        Whether no degree of the graph is large: the automatic mapping then counts no edges.
    block_queue
        Vertices that the block append's shared queue holds before it spills.
    tier
        Who runs the narrow levels of the persistent engine: a name from `TIERS`.
    row_slots
        Slots of four arcs that a vertex of the graph takes at most in a tier: 1, 2, or 3 for any
        more.

    Raises
    ------
    ValueError
        A name that is in no table, a number the kernels cannot take, or choices that do not
        combine; the message says why.
    """

    engine: str
    advance: str = "thread"
    direction: str = "push"
    claim: str = "cas"
    append: str = "warp"
    frontier: str = "sparse"
    offset_bits: int = 32
    predecessors: bool = False
    trace: bool = False
    even_degrees: bool = False
    block_threads: int = 256
    block_queue: int = 1024
    tier: str = "none"
    row_slots: int = MOST_ROW_SLOTS

    def __post_init__(self) -> None:
        if self.engine not in PROGRAMS:
            choose(ENGINES, self.engine, "engine")
        for table, name, what in self._choices():
            choose(table, name, what)
        if self.offset_bits not in (32, 64):
            raise ValueError(f"offset_bits is {self.offset_bits}; it must be 32 or 64")
        check_block_threads(self.block_threads)
        if not 1 <= self.block_queue <= MOST_BLOCK_QUEUE:
            raise ValueError(
                f"block_queue is {self.block_queue}; it must be 1 to {MOST_BLOCK_QUEUE}"
            )
        if not 1 <= self.row_slots <= MOST_ROW_SLOTS:
            raise ValueError(f"row_slots is {self.row_slots}; it must be 1 to {MOST_ROW_SLOTS}")
        problem = conflict(self.direction, self.advance, self.append, self.frontier)
        problem = problem or self._tier_conflict()
        if problem is not None:
            raise ValueError(problem)

    def _choices(self) -> tuple[tuple[Mapping[str, Choice], str, str], ...]:
        return (
            (DIRECTIONS, self.direction, "direction"),
            (ADVANCES, self.advance, "advance"),
            (CLAIMS, self.claim, "claim"),
            (APPENDS, self.append, "append"),
            (FRONTIERS, self.frontier, "frontier"),
            (TIERS, self.tier, "tier"),
        )

    def _tier_conflict(self) -> str | None:
        if not TIERS[self.tier].exists:
            return None
        if not self.program.tiers:
            return f"the {self.engine} engine has no tiers; use engine persistent, or tiers none"
        return tier_conflict(self.direction, self.claim, self.append, self.frontier)

    @property
    def program(self) -> EngineChoice:
        """The row that says which loop and which kernels: an engine's, or one of `PROGRAMS`."""
        return PROGRAMS.get(self.engine) or ENGINES[self.engine]

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers a stub includes: the loop, then one a policy."""
        policies = (table[name].header for table, name, _ in self._choices())
        return tuple(dict.fromkeys((self.program.loop, *policies)))

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels the stub exports."""
        return self.program.kernels

    @property
    def counts_edges(self) -> bool:
        """Whether the frontiers' edges are counted: for mapping, direction or the append itself."""
        by_mapping = ADVANCES[self.advance].counts_edges
        if self.advance == "auto" and self.even_degrees:
            by_mapping = False
        return by_mapping or DIRECTIONS[self.direction].counts_edges or self.phases > 1

    @property
    def phases(self) -> int:
        """Parts of a level with a device-wide barrier between them."""
        return APPENDS[self.append].phases

    @property
    def padded(self) -> bool:
        """Whether frontiers have slots without a vertex."""
        return APPENDS[self.append].padded

    @property
    def dense(self) -> bool:
        """Whether frontiers have bitmaps."""
        return FRONTIERS[self.frontier].dense

    @property
    def resident_blocks(self) -> int:
        """Blocks a multiprocessor that the compiler is to leave registers for."""
        row, usual = ADVANCES[self.advance], self.claim == "cas" and self.append == "warp"
        threads = 0
        if self.dense and self.direction == "auto":
            usual &= (
                row.by_frontier
                and row.lanes != A_BLOCK
                and (self.program.cooperative or not self.trace)
                and not (self.predecessors and self.trace)
            )
            threads = RESIDENT_THREADS if usual else RESIDENT_FOR_STUDY
        elif self.dense or self.packed_rows:
            pass
        elif self.engine == WALK.name:
            threads = row.resident_threads
        elif self.trace and self.program.cooperative and usual:
            threads = RESIDENT_TRACED if self.direction == "push" else RESIDENT_THREADS
        return max(threads // self.block_threads, 1)

    @property
    def queues_all(self) -> bool:
        """Whether the queue ends as all vertices discovered, one after another."""
        return not self.padded and not (self.dense and self.direction != "push")

    @property
    def exact(self) -> bool:
        """Whether the claim promises one discoverer a vertex."""
        return self.claim in EXACT_CLAIMS

    @property
    def packed_rows(self) -> bool:
        """Whether the kernels read the first arcs of a vertex packed."""
        return TIERS[self.tier].exists

    @property
    def likely_parents(self) -> bool:
        """Whether the kernels read a likely parent of every vertex."""
        return self.dense and self.direction != "push"

    def with_(self, **changes: Any) -> Config:
        """This choice with some fields changed."""
        return replace(self, **changes)

    def __str__(self) -> str:
        tier = f", {self.tier} tier" if TIERS[self.tier].exists else ""
        return (
            f"{self.engine}, {self.direction}, {self.advance} mapping, {self.claim} claim, "
            f"{self.append} append, {self.frontier} frontier{tier}"
        )
