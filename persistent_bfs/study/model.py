"""What the figures say: a cost model of each engine, who overtakes whom, and a level taken apart.

The model of a search's time is

    T = fixed + levels x (per_level + further blocks x per_block) + empty x per_empty + edges / rate

fitted by non-negative least squares to the medians of both sweeps, each weighted by the inverse of
its own time, so that it is relative errors that are squared: short searches count as much as long
ones. Empty levels are those that a loop issues past the search's end, because it issues several
before anyone looks; further blocks are those of the whole grid beyond the smallest grid of the
sweeps, for a grid grows with its graph, and so does what it costs to launch it or to bring it
together. Where the device chose among mappings from level to level, levels and edges of each (a
regime) have coefficients of their own. Intervals are those of a linear regression with Student's
t; a coefficient that the data push to zero stays there, and its upper end is what the data still
allow.
Source: C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", 1974 (the solver is SciPy's).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.stats

from persistent_bfs.config import ENGINES
from persistent_bfs.measure import Timing
from persistent_bfs.study.sweeps import DEPTH, WIDTH

Row = Mapping[str, Any]
Times = npt.NDArray[np.float64]

CONFIDENCE = 0.95

# Paths of at least one such part of the deepest one's levels tell what a level costs.
DEEP = 8

BASELINE = next(iter(ENGINES))
"""The engine that others are compared with: the first of the table. Its variant has its name."""

FIXED, LEVEL, BLOCK, EMPTY, EDGE = "fixed", "level", "block", "empty", "edge"

# Dependent accesses of a level of one vertex, read off the kernels. Whole grids: frontier size,
# queue, row_offsets, col_indices and distance are read one after another, then the claim and the
# slot are atomics. A tier with packed rows in shared memory: the neighbour's own row.
GRID_LOADS, GRID_ATOMICS, PACKED_LOADS = 5, 2, 1


def median(row: Row) -> float:
    """The median device time of a row, in milliseconds."""
    return Timing(tuple(row["device_ms"])).median


def fastest(row: Row) -> float:
    """The least device time of a row, in milliseconds."""
    return float(min(row["device_ms"]))


def mean_frontier(row: Row) -> float:
    """Vertices a level, on average."""
    return float(row["reached"]) / float(row["levels"])


@dataclass(frozen=True)
class Coefficient:
    """A fitted coefficient, in milliseconds, with its confidence interval.

    ``term`` is ``fixed``, ``level``, ``block`` (a level and further block), ``empty`` (an empty
    level) or ``edge``; ``regime`` the mapping it is of, empty where one coefficient serves all. An
    end that the data leave open is infinite.
    """

    term: str
    regime: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Residual:
    """A search's measured and modelled time, in milliseconds; ``relative`` to the measured one."""

    sweep: str
    graph: str
    levels: int
    edges: int
    measured: float
    modelled: float

    @property
    def relative(self) -> float:
        """By what part of the measured time the model is above it."""
        return self.modelled / self.measured - 1


@dataclass(frozen=True)
class Fit:
    """An engine's model: its coefficients, and what it leaves over at every search fitted.

    ``in_tier`` are the mappings whose levels are a tier's, not the whole grid's; ``blocks`` those
    of the smallest grid fitted, beyond which further ones are counted.
    """

    engine: str
    coefficients: tuple[Coefficient, ...]
    residuals: tuple[Residual, ...]
    in_tier: frozenset[str] = frozenset()
    blocks: int = 1

    @property
    def worst(self) -> float:
        """The largest relative residual, without its sign."""
        return max(abs(residual.relative) for residual in self.residuals)

    @property
    def typical(self) -> float:
        """The root of the mean square of the relative residuals."""
        return math.sqrt(np.mean([residual.relative**2 for residual in self.residuals]))

    def value(self, term: str, regime: str = "") -> float:
        """A coefficient's value; 0 for one that is not there."""
        for coefficient in self.coefficients:
            if (coefficient.term, coefficient.regime) == (term, regime):
                return coefficient.value
        return 0.0

    @property
    def regimes(self) -> tuple[str, ...]:
        """The regimes told apart; one, without a name, where none are."""
        return tuple(dict.fromkeys(c.regime for c in self.coefficients if c.term == LEVEL))

    def predict(self, row: Row) -> float | None:
        """The modelled time of a search, in milliseconds; None if it has a regime unknown here."""
        split = self.regimes != ("",)
        if split and not set(row["regimes"]) <= set(self.regimes):
            return None
        counts = counted(row, split=split, in_tier=self.in_tier, least=self.blocks)
        return sum(self.value(*key) * count for key, count in counts.items())


def grid_blocks(row: Row) -> int:
    """Blocks of the grid that serves a search's levels; 0 where each launch has its own shape."""
    return int(row["shape"].split()[0]) if row["shape"] else 0


def empty_levels(levels: int, batch: int) -> int:
    """Levels issued past a search's end, if ``batch`` are issued before anyone looks.

    Examples
    --------
    >>> empty_levels(1, 64), empty_levels(64, 64), empty_levels(65, 64), empty_levels(9, 1)
    (63, 0, 63, 0)
    """
    return -levels % batch


def counted(
    row: Row, *, split: bool, in_tier: Collection[str], least: int
) -> dict[tuple[str, str], int]:
    """How often a search had what each coefficient stands for, by term and regime."""
    if split:
        parts = {name: (part["levels"], part["edges"]) for name, part in row["regimes"].items()}
    else:
        parts = {"": (int(row["levels"]), int(row["edges"]))}
    counts = {(FIXED, ""): 1}
    for name, (levels, edges) in parts.items():
        counts[LEVEL, name] = levels
        counts[EDGE, name] = edges
    by_grid = sum(part["levels"] for name, part in row["regimes"].items() if name not in in_tier)
    counts[BLOCK, ""] = by_grid * max(grid_blocks(row) - least, 0)
    counts[EMPTY, ""] = empty_levels(int(row["levels"]), int(row["batch"]))
    return counts


def solve(
    features: npt.ArrayLike, times: npt.ArrayLike
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Non-negative coefficients of ``features`` that give ``times``, by relative errors.

    Parameters
    ----------
    features : (k, p) array-like
        A row a measurement.
    times : (k,) array-like
        Positive.

    Returns
    -------
    coefficients : (p,) float64 array
    intervals : (p, 2) float64 array
        At `CONFIDENCE`; infinite where there are no more measurements than coefficients.

    Examples
    --------
    >>> values, _ = solve([[1, 1], [1, 2], [1, 4]], [12, 14, 18])
    >>> values.round(6).tolist()
    [10.0, 2.0]
    """
    columns, wanted = np.asarray(features, float), np.asarray(times, float)
    weighted = columns / wanted[:, None]
    sizes = np.linalg.norm(weighted, axis=0)
    sizes[sizes == 0] = 1
    scaled, ones = weighted / sizes, np.ones(len(wanted))
    found, _ = scipy.optimize.nnls(scaled, ones)
    free = found > 0
    spare = len(wanted) - int(free.sum())
    half = np.full(found.shape, np.inf)
    if spare > 0:
        variance = float(np.sum((scaled @ found - ones) ** 2)) / spare
        quantile = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, spare))
        # Those that are held at zero have no part in the others' uncertainty.
        kept = np.linalg.pinv(scaled[:, free].T @ scaled[:, free])
        half[free] = quantile * np.sqrt(variance * np.maximum(np.diag(kept), 0))
        every = np.linalg.pinv(scaled.T @ scaled)
        half[~free] = quantile * np.sqrt(variance * np.maximum(np.diag(every)[~free], 0))
    low, high = np.maximum(found - half, 0), found + half
    return found / sizes, np.stack([low / sizes, high / sizes], axis=1)


def fit(
    engine: str, rows: Sequence[Row], *, split: bool = False, in_tier: Collection[str] = ()
) -> Fit:
    """Fit an engine's model to searches of it.

    Parameters
    ----------
    rows : sequence
        Rows with ``levels``, ``edges``, ``regimes``, ``shape``, ``batch`` and ``device_ms``.
    split : bool
        Whether each regime has coefficients of its own.
    in_tier : collection of str
        Mappings whose levels are a tier's.

    Raises
    ------
    ValueError
        There are fewer rows than the three coefficients that every model has.
    """
    if len(rows) < 3:
        raise ValueError(f"{engine}: {len(rows)} searches are too few for a model of three terms")
    grids = [grid_blocks(row) for row in rows if not set(row["regimes"]) <= set(in_tier)]
    least = min((blocks for blocks in grids if blocks), default=1)
    parts = [counted(row, split=split, in_tier=in_tier, least=least) for row in rows]
    known = dict.fromkeys(key for part in parts for key in part)
    # A term that no search has cannot be fitted, and is not shown.
    keys = [
        key for key in known if key[0] not in (BLOCK, EMPTY) or any(part.get(key) for part in parts)
    ]
    features = np.array([[float(part.get(key, 0)) for key in keys] for part in parts])
    times = np.array([median(row) for row in rows])
    values, intervals = solve(features, times)
    modelled = features @ values
    return Fit(
        engine,
        tuple(
            Coefficient(*key, float(value), float(low), float(high))
            for key, value, (low, high) in zip(keys, values, intervals, strict=True)
        ),
        tuple(
            Residual(
                row["sweep"],
                row["graph"],
                int(row["levels"]),
                int(row["edges"]),
                float(measured),
                float(model),
            )
            for row, measured, model in zip(rows, times, modelled, strict=True)
        ),
        frozenset(in_tier),
        least,
    )


@dataclass(frozen=True)
class Line:
    """The straight line through the depth sweep, by ordinary least squares: milliseconds."""

    fixed: float
    level: float
    r_squared: float


def straight_line(rows: Sequence[Row], time: Callable[[Row], float] | None = None) -> Line | None:
    """The line of time against levels through an engine's paths; None if there is none.

    ``time`` says which of a row's, by default the median. ``r_squared`` is the part of the
    variance of these times that the line accounts for.
    """
    levels = np.array([float(row["levels"]) for row in rows])
    if len(set(levels)) < 3:
        return None
    times = np.array([(time or median)(row) for row in rows])
    level, fixed = np.polyfit(levels, times, 1)
    left = float(np.sum((times - fixed - level * levels) ** 2))
    return Line(float(fixed), float(level), 1 - left / float(np.sum((times - times.mean()) ** 2)))


def swept(searches: Iterable[Row], engine: str, *sweeps: str) -> list[Row]:
    """An engine's timed rows of these sweeps, in order."""
    return [
        row
        for row in searches
        if row["engine"] == engine
        and row["sweep"] in sweeps
        and not row["refused"]
        and row["device_ms"]
    ]


def fits(searches: Sequence[Row], engines: Mapping[str, Row], *, split: bool) -> dict[str, Fit]:
    """The model of every engine that was timed at enough searches of the two sweeps.

    ``engines`` are their rows as the study kept them.
    """
    found = {}
    for engine, choice in engines.items():
        rows = swept(searches, engine, DEPTH, WIDTH)
        if len(rows) >= 3:
            found[engine] = fit(engine, rows, split=split, in_tier=choice["in_tier"])
    return found


@dataclass(frozen=True)
class Wins:
    """Where one time is under another: ranges of whole numbers, from the first to the last.

    ``None`` for a last one says that there is no end to it.
    """

    ranges: tuple[tuple[int, int | None], ...]

    def told(self, unit: str, units: str = "") -> str:
        """In words; ``units`` is the plural, if it is not made by an s.

        Examples
        --------
        >>> Wins(((3, None),)).told("level"), Wins(((1, 20),)).told("level")
        ('from 3 levels on', 'up to 20 levels')
        >>> Wins(((1, None),)).told("level"), Wins(()).told("level")
        ('always', 'never')
        >>> Wins(((1, 1), (5, 9), (20, None))).told("vertex", "vertices")
        'up to 1 vertex, from 5 to 9 vertices, from 20 vertices on'
        """
        units = units or f"{unit}s"
        if not self.ranges:
            return "never"
        if self.ranges == ((1, None),):
            return "always"
        parts = []
        for first, last in self.ranges:
            if last is None:
                parts.append(f"from {first:,} {units} on")
            else:
                up_to = f"{last:,} {unit if last == 1 else units}"
                parts.append(f"up to {up_to}" if first == 1 else f"from {first:,} to {up_to}")
        return ", ".join(parts)


def wins(here: Times, there: Times) -> Wins:
    """Where one engine's times are under another's, both for 1, 2, 3 ... of something.

    Examples
    --------
    >>> x = np.arange(1, 100)
    >>> wins(10 + 1 * x, 2 + 4 * x), wins(2 + 4 * x, 10 + 1 * x)
    (Wins(ranges=((3, None),)), Wins(ranges=((1, 2),)))
    """
    ahead = np.concatenate([[False], here < there, [False]])
    changes = np.flatnonzero(ahead[1:] != ahead[:-1]) + 1
    ends = [int(end) for end in changes]
    ranges = zip(ends[::2], ends[1::2], strict=True)
    return Wins(tuple((first, None if end > len(here) else end - 1) for first, end in ranges))


def depth_times(model: Fit, path: Row, most: int) -> Times:
    """Modelled times of 1, 2 ... ``most`` levels of one vertex, in milliseconds.

    ``path`` is the search that says how many edges such a level has, of which regime it is, and
    how many levels are issued at once.
    """
    regime = ""
    if model.regimes != ("",):
        regime = max(path["regimes"], key=lambda name: path["regimes"][name]["levels"])
    levels = np.arange(1, most + 1)
    edges = path["edges"] / path["levels"]
    per_level = model.value(LEVEL, regime) + edges * model.value(EDGE, regime)
    empty = -levels % int(path["batch"])
    times: Times = model.value(FIXED) + per_level * levels + model.value(EMPTY) * empty
    return times


def width_times(model: Fit, grids: Sequence[Row], most: int) -> Times:
    """Modelled times at a mean frontier of 1, 2 ... ``most`` vertices and the grids' levels.

    Edges a vertex are those of the widest of ``grids``; blocks are read off between them.
    """
    inside = sorted(grids, key=mean_frontier)
    widest = inside[-1]
    levels, frontier = int(widest["levels"]), np.arange(1, most + 1)
    blocks = np.interp(frontier, list(map(mean_frontier, inside)), list(map(grid_blocks, inside)))
    further = np.maximum(blocks - model.blocks, 0)
    edges = frontier * levels * (widest["edges"] / widest["reached"])
    times: Times = (
        model.value(FIXED)
        + levels * (model.value(LEVEL) + model.value(BLOCK) * further)
        + model.value(EMPTY) * empty_levels(levels, int(widest["batch"]))
        + model.value(EDGE) * edges
    )
    return times


def measured_wins(here: Sequence[Row], there: Sequence[Row], axis: str) -> list[int]:
    """Where, on a sweep's own points, one engine's median was under the other's."""
    others = {row["name"]: median(row) for row in there}
    return [
        int(row[axis])
        for row in here
        if row["name"] in others and median(row) < others[row["name"]]
    ]


@dataclass(frozen=True)
class Split:
    """What a level of one vertex costs and where that goes, in microseconds.

    ``barrier`` is what separates the level from the next, in the engine's own way, which
    ``barrier_by`` names; ``loads`` the accesses that wait for one another; the rest is the rest.
    None where a primitive was not measured.
    """

    engine: str
    level: float
    barrier: float | None
    barrier_by: str
    loads: float | None
    loads_by: str

    @property
    def rest(self) -> float | None:
        """What neither accounts for; negative if they overlap."""
        if self.barrier is None or self.loads is None:
            return None
        return self.level - self.barrier - self.loads


class Figures:
    """The medians of a study's primitives."""

    def __init__(self, primitives: Iterable[Row]) -> None:
        self._rows = {row["primitive"]: row for row in primitives}

    def points(self, name: str) -> list[tuple[dict[str, Any], Timing]]:
        """Points and samples of a primitive; none if it was not timed."""
        row = self._rows.get(name)
        if row is None:
            return []
        return [
            (point["point"], Timing(tuple(point["samples"])))
            for point in row["points"]
            if point["samples"]
        ]

    def median(self, name: str, **wanted: Any) -> float | None:
        """The median at the first point with these parameters, in the primitive's unit."""
        for point, timing in self.points(name):
            if all(point.get(key) == value for key, value in wanted.items()):
                return timing.median
        return None

    def nearest(self, name: str, **wanted: float) -> float | None:
        """The median at the point whose parameters are nearest, by their ratios."""

        def distance(point: dict[str, Any]) -> float:
            return sum(abs(math.log(point[key] / value)) for key, value in wanted.items())

        points = self.points(name)
        if not points:
            return None
        return min(points, key=lambda entry: distance(entry[0]))[1].median

    def per_node(self, name: str) -> float | None:
        """What one more node adds to such a graph on the device, in microseconds: the slope."""
        points = self.points(name)
        if len(points) < 2:
            return None
        nodes = [point["nodes"] for point, _ in points]
        times = [timing.median for _, timing in points]
        values, _ = solve([[1.0, float(count)] for count in nodes], times)
        return float(values[1])


def level_slope(rows: Sequence[Row]) -> float | None:
    """What a level more costs at the deep end of the depth sweep, in microseconds.

    The median of the slopes between any two of the deepest paths, so that no one of them rules; of
    those that issue no empty levels, where there are two.
    Source: P. K. Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968.
    """
    full = [row for row in rows if not empty_levels(row["levels"], row["batch"])]
    rows = full if len(full) > 1 else rows
    deepest = max((row["levels"] for row in rows), default=0)
    points = [(row["levels"], median(row)) for row in rows if DEEP * row["levels"] >= deepest]
    slopes = [
        1e3 * (there[1] - here[1]) / (there[0] - here[0])
        for here, there in combinations(sorted(points), 2)
        if there[0] != here[0]
    ]
    return float(np.median(slopes)) if slopes else None


def split_level(engine: str, choice: Row, rows: Sequence[Row], figures: Figures) -> Split | None:
    """Take a level of one vertex apart by the primitives.

    How the engine separates levels is read off its row of the table (``choice``, as the study kept
    it) and its counters: barriers a level inside the kernel, launches a level by the host, or else
    nodes of a graph.
    """
    level = level_slope(rows)
    if level is None:
        return None
    row = max(rows, key=lambda row: row["levels"])
    threads, turns = row["block_threads"], row["batch"]
    levels = row["levels"]
    barriers, launches, syncs = (
        row[name] / levels for name in ("barriers", "launches", "host_syncs")
    )
    main = max(row["regimes"], key=lambda name: row["regimes"][name]["levels"])
    in_tier = main in choice["in_tier"]
    barrier: float | None
    if in_tier:
        barrier, by = _tier_barrier(main, row, figures)
    elif choice["cooperative"]:
        each = figures.nearest("grid_sync", blocks=grid_blocks(row) or 1, threads=threads)
        barrier, by = each and each * barriers, f"{barriers:.2f} barriers of the grid"
    elif launches >= 0.5 and syncs >= 0.5:
        each = figures.median("round_trip")
        barrier, by = each and each * syncs, "launch, copy and wait"
    elif launches >= 0.5:
        each, wait = figures.median("launch_queued"), figures.median("round_trip")
        both = None if each is None or wait is None else each * launches + wait * syncs
        barrier, by = both, f"{launches:.2f} queued launches, {syncs:.2f} round trips"
    elif choice["while_nodes"] and row["ran"] == choice["engine"]:
        barrier, by = _turn_part(turns, figures), f"a node, and a turn every {turns}"
    else:
        # As graph_unrolled records them, or plain ones where no others were measured.
        barrier, by = figures.per_node("graph_dependent"), "a graph's dependent node"
        if barrier is None:
            barrier, by = figures.per_node("graph_device"), "a graph's node"
    load = figures.median("dependent_load", memory="L2")
    atomic = figures.median("dependent_atomic")
    if in_tier:
        loads, loads_by = load and PACKED_LOADS * load / 1e3, f"{PACKED_LOADS} load"
    else:
        both_known = load is not None and atomic is not None
        loads = (GRID_LOADS * load + GRID_ATOMICS * atomic) / 1e3 if both_known else None  # type: ignore[operator]
        loads_by = f"{GRID_LOADS} loads, {GRID_ATOMICS} atomics"
    return Split(engine, level, barrier, by, loads, loads_by)


def _turn_part(turns: int, figures: Figures) -> float | None:
    """A level's part of a WHILE node's turn of so many levels, a node each, in microseconds."""
    whole = figures.median("while_turn", nodes=turns)
    if whole is not None:
        return whole / turns
    node, turn = figures.per_node("graph_device"), figures.median("while_turn")
    return None if node is None or turn is None else node + (turn - node) / turns


def _tier_barrier(mapping: str, row: Row, figures: Figures) -> tuple[float | None, str]:
    """What separates the levels of a tier, in microseconds, and what that is."""
    threads = row["block_threads"]
    if mapping.endswith("warp"):
        return 0.0, "none, in one warp"
    if mapping.endswith("block"):
        nanoseconds = figures.nearest("block_sync", threads=threads)
        return nanoseconds and nanoseconds / 1e3, "__syncthreads, at least one"
    _, found, blocks = row["shape"].partition("clusters of ")
    size = int(blocks.split()[0]) if found else 16
    each = figures.nearest("cluster_barrier", blocks=size, threads=threads)
    return each, "a cluster's barrier, at least one"


def losses(searches: Sequence[Row], engine: str) -> list[tuple[Row, Row]]:
    """Searches at which another engine was faster: the engine's row and the fastest one's."""
    found = []
    names = dict.fromkeys((row["sweep"], row["name"]) for row in searches)
    for sweep, name in names:
        timed = [
            row
            for row in searches
            if (row["sweep"], row["name"]) == (sweep, name) and row.get("device_ms")
        ]
        own = [row for row in timed if row["engine"] == engine]
        if not own:
            continue
        fastest = min(timed, key=median)
        if fastest["engine"] != engine:
            found.append((own[0], fastest))
    return found


@dataclass(frozen=True)
class Analysis:
    """All that is read off a study's times; of a study that was cut short, what there is.

    ``simple`` and ``split`` are the models by engine, with one regime and with those of the
    traces; ``lines`` the straight lines through the depth sweep, by medians and by the fastest
    searches; ``best`` the engine of the least cost a level at the deep end.
    """

    simple: dict[str, Fit]
    split: dict[str, Fit]
    lines: dict[str, tuple[Line, Line]]
    splits: dict[str, Split]
    best: str | None

    @property
    def models(self) -> dict[str, Fit]:
        """The models that predict: with regimes, where more than one was seen."""
        return {
            engine: self.split[engine] if len(self.split[engine].regimes) > 1 else simple
            for engine, simple in self.simple.items()
        }


def analyse(study: Row) -> Analysis | None:
    """What a study's times say; None where the device tells no time."""
    if study["plan"]["kind"] != "cuda":
        return None
    searches = study["searches"]
    engines = {engine: study["engines"][engine] for engine in study["plan"]["engines"]}
    figures = Figures(study["primitives"])
    lines, splits = {}, {}
    for engine, choice in engines.items():
        rows = swept(searches, engine, DEPTH)
        split = split_level(engine, choice, rows, figures)
        line, least = straight_line(rows), straight_line(rows, fastest)
        if line is not None and least is not None:
            lines[engine] = line, least
        if split is not None:
            splits[engine] = split
    best = min(splits, key=lambda engine: splits[engine].level) if splits else None
    return Analysis(
        fits(searches, engines, split=False),
        fits(searches, engines, split=True),
        lines,
        splits,
        best,
    )
