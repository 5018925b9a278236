"""What a study says, as a list of headings, sentences, tables and figures; no format yet.

Everything is worked out of the kept study, so that the same study always says the same. Where the
device told no time there is no word of time here, only counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from persistent_bfs.measure import Timing
from persistent_bfs.study.blocks import (
    Block,
    Heading,
    Items,
    Paragraph,
    Picture,
    Table,
    number,
    percent,
    told_point,
)
from persistent_bfs.study.comparison import beside
from persistent_bfs.study.model import (
    BASELINE,
    BLOCK,
    CONFIDENCE,
    EDGE,
    EMPTY,
    FIXED,
    LEVEL,
    Analysis,
    Figures,
    Fit,
    Wins,
    analyse,
    depth_times,
    losses,
    mean_frontier,
    measured_wins,
    median,
    swept,
    width_times,
    wins,
)
from persistent_bfs.study.sweeps import DEPTH, GRAPHS, WIDTH

Row = Mapping[str, Any]

# Model errors up to this are small enough to reason with; marked in the plot.
BOUND = 0.15

# What is ahead by less is not told in short.
CLEARLY = 1.01

# A model is not believed further beyond the largest search it was fitted to.
BEYOND = 4


def compose(
    study: Row, other: Row | None = None, *, names: tuple[str, str] = ("this", "the other")
) -> list[Block]:
    """All that a study says; beside it, if given, another one, whose set-up must be the same.

    Raises
    ------
    ValueError
        The set-ups differ, in one line.
    """
    analysis = analyse(study)
    blocks: list[Block] = [*_opening(study, analysis)]
    if other is not None:
        blocks += beside(study, other, names)
    if analysis is None:
        blocks += [*_primitive_counts(study), *_swept_counts(study), *_graph_counts(study)]
    else:
        blocks += [
            *_primitives(study),
            *_sweeps(study, analysis),
            *_models(analysis),
            *_overtaking(study, analysis),
            *_level(analysis),
            *_graphs(study, analysis),
        ]
    return [*blocks, *_rules(study, analysis)]


def _mean(row: Row) -> float:
    return mean_frontier(row)


def _levels(row: Row) -> float:
    return float(row["levels"])


# Opening


def _opening(study: Row, analysis: Analysis | None) -> Iterator[Block]:
    device, environment, plan = study["device"], study["environment"], study["plan"]
    timed = analysis is not None
    yield Heading(1, f"The cost of a level: {device['name']}")
    yield Paragraph(
        "A level-synchronous breadth-first search has a level for every distance, and whoever runs "
        "the loop over the levels must separate each from the next: by a launch and a look of the "
        "host, by a node of a graph, or by a barrier inside the kernel. This study measures what "
        "each of these costs on this machine, alone and in searches."
        if timed
        else "The emulated device runs the same kernels on the CPU and counts exactly what is "
        "asked of host and device. It tells no time, and so there is none in this report."
    )
    rows = [
        ("device", f"{device['name']}, {device['architecture']}"),
        ("multiprocessors", f"{environment['multiprocessors']:,}"),
        ("driver", str(environment["driver"])),
        # Studies that were kept before NVRTC was the first choice name nvcc.
        *((name, str(environment[name])) for name in ("compiler", "nvcc") if name in environment),
        (
            "program",
            f"persistent_bfs {environment['persistent_bfs']}, revision "
            f"{environment['git_revision'] or 'unknown'}, sources {environment['sources']}",
        ),
        (
            "host",
            f"Python {environment['python']}, NumPy {environment['numpy']}, SciPy "
            f"{environment['scipy']}, {environment['platform']}",
        ),
        ("form", "quick" if plan["quick"] else "full"),
    ]
    if timed:
        rows += [
            ("L2 before a search", plan["l2"]),
            (
                "timed searches a row",
                f"{plan['repeat']}, those of the depth sweep in {plan['passes']} passes"
                if plan["passes"] > 1
                else str(plan["repeat"]),
            ),
            ("clocks before", _clocks(study["clocks"]["before"])),
            ("clocks after", _clocks(study["clocks"]["after"])),
        ]
    yield Table(("what", "as found"), tuple(rows), "What was measured, and with what.", words=2)
    cut = study["incomplete"]
    if cut is not None:
        yield Paragraph(
            f"This study is not complete: {cut['missing']:,} of its {cut['of']:,} measurements are "
            f"missing ({cut['reason']}). What follows is of those that were made."
        )
    if analysis is not None:
        yield Heading(2, "In short")
        yield Items(tuple(_in_short(study, analysis)))


def _clocks(found: Row) -> str:
    if found["problem"]:
        return str(found["problem"])
    return (
        f"{number(found['clocks.sm'], 4)} MHz of {number(found['clocks.max.sm'], 4)}, memory "
        f"{number(found['clocks.mem'], 4)} MHz of {number(found['clocks.max.mem'], 4)}, "
        f"{number(found['temperature.gpu'], 2)} degrees Celsius"
    )


def _in_short(study: Row, analysis: Analysis) -> Iterator[str]:
    figures = Figures(study["primitives"])
    trip, sync = figures.median("round_trip"), _barrier(study, figures)
    if trip is not None and sync is not None:
        yield (
            f"A launch, a 4-byte copy and a wait take {number(trip)} µs; a barrier of the whole "
            f"grid takes {number(sync)}, {number(trip / sync)} times less."
        )
    best = analysis.best
    if best is not None and BASELINE in analysis.splits and best != BASELINE:
        here, there = analysis.splits[best].level, analysis.splits[BASELINE].level
        yield (
            f"Of levels of one vertex, {best} runs one in {number(here)} µs, {BASELINE} in "
            f"{number(there)}: {number(there / here)} times as long."
        )
    for engine, model in analysis.models.items():
        if engine != BASELINE and BASELINE in analysis.simple:
            won = _by_depth(study, analysis, engine, BASELINE)
            told = "-" if won is None else won.told("level").replace("always", "at any depth")
            yield (
                f"{engine} beats {BASELINE} {told} at a frontier of one vertex; its model is "
                f"within {percent(model.worst)} of every search of both sweeps."
            )
    if best is not None:
        lost = losses(study["searches"], best)
        if not lost:
            yield f"No other engine was faster than {best} at any search."
        else:
            by = sorted(((median(own) / median(fast), own, fast) for own, fast in lost), key=_first)
            listed = ", ".join(
                f"{fast['engine']} on {own['name']} {number(ratio)} times"
                for ratio, own, fast in by[-1:-7:-1]
                if ratio >= CLEARLY
            )
            yield (
                f"{best} is not the fastest at {len(lost)} of the searches"
                + (f"; most clearly: {listed}." if listed else ", but nowhere by 1 %.")
            )


def _first(entry: tuple[float, Row, Row]) -> float:
    return entry[0]


def _barrier(study: Row, figures: Figures) -> float | None:
    blocks = study["environment"]["multiprocessors"]
    return figures.nearest("grid_sync", blocks=blocks, threads=256)


def _by_depth(study: Row, analysis: Analysis, here: str, there: str) -> Wins | None:
    """From how many levels of one vertex on one engine's model is under another's."""
    paths = [swept(study["searches"], engine, DEPTH) for engine in (here, there)]
    if not all(paths):
        return None
    deepest = [max(rows, key=_levels) for rows in paths]
    most = BEYOND * int(deepest[0]["levels"])
    mine, other = (
        depth_times(analysis.models[engine], path, most)
        for engine, path in zip((here, there), deepest, strict=True)
    )
    return wins(mine, other)


# Primitives


def _primitives(study: Row) -> Iterator[Block]:
    yield Heading(2, "Primitives")
    rows = []
    for row in study["primitives"]:
        if row["skipped"]:
            rows.append((row["title"], f"not measured: {row['skipped']}", *("",) * 6))
        for place, point in enumerate(row["points"]):
            timing = Timing(tuple(point["samples"]))
            first, third = timing.quartiles
            rows.append(
                (
                    "" if place else row["title"],
                    told_point(point["point"]),
                    row["unit"],
                    number(timing.median),
                    f"{number(first)} to {number(third)}",
                    f"{number(timing.min)} to {number(timing.max)}",
                    f"{len(timing.samples)}",
                    f"{len(timing.outliers)}",
                )
            )
    head = ("primitive", "point", "unit", "median", "quartiles", "range", "samples", "outliers")
    yield Table(
        head,
        tuple(rows),
        "Each thing alone. What the host's clock timed is from Python, as the engines call it. "
        "Outliers are samples outside Tukey's fences; they are kept and counted in.",
        words=3,
    )

    def draw(name: str) -> str:
        from persistent_bfs.study import plots

        return plots.barriers(name, Figures(study["primitives"]))

    dependent = Figures(study["primitives"]).points("graph_dependent")
    kind = " (of dependent nodes, as graph_unrolled's)" if dependent else ""
    yield Picture(
        "primitives",
        draw,
        "Left: a barrier against the blocks that meet at it: as long as it is flat, one "
        "cooperative grid serves narrow and wide levels alike. Middle: the launch of a graph "
        "against its nodes; past a few nodes the slope is what a level in a graph cannot be "
        f"cheaper than{kind}. Right: one access that waits for the one before, by the memory that "
        "answers.",
    )


def _primitive_counts(study: Row) -> Iterator[Block]:
    yield Heading(2, "Primitives")
    shown = ("grid_barriers", "block_barriers", "atomics", "plain_loads", "plain_stores")
    rows = []
    for row in study["primitives"]:
        if row["skipped"]:
            rows.append((row["title"], f"not run: {row['skipped']}", *("",) * (3 + len(shown))))
        for point in row["points"]:
            counts = point["counts"] or {}
            rows.append(
                (
                    row["title"],
                    told_point(point["point"]),
                    f"{point['repeats']:,}",
                    f"{point['launches']:,}",
                    f"{point['host_syncs']:,}",
                    *(f"{counts.get(name, 0):,}" for name in shown),
                )
            )
    head = ("primitive", "point", "repeated", "launches", "host syncs")
    yield Table(
        (*head, *(name.replace("_", " ") for name in shown)),
        tuple(rows),
        "What each primitive asked of host and device, exactly: the proof that its kernel does "
        "what it is named after, as often as it says.",
        words=2,
    )


# Sweeps


def _sweeps(study: Row, analysis: Analysis) -> Iterator[Block]:
    texts = {
        DEPTH: (
            "Depth",
            "levels",
            _levels,
            "Paths: one vertex a level, and the levels doubled from search to search. Left: flat "
            "where the fixed cost rules, then straight: every level costs the same. Right: the "
            "same a level; where a curve has come down to its floor, the floor is the engine's "
            "cost of a level.",
        ),
        WIDTH: (
            "Width",
            "vertices a level, on average",
            _mean,
            "Grids of the same number of levels, ever wider. Where a curve is flat a level's cost "
            "is the loop's; where it bends up, the work's; where curves meet, who runs the loop "
            "has stopped to matter.",
        ),
    }
    for which, (title, label, axis, caption) in texts.items():
        rows = [row for row in study["searches"] if row["sweep"] == which and row.get("device_ms")]
        if not rows:
            continue
        yield Heading(2, title)
        yield _sweep_table(study, which)

        def draw(
            name: str,
            rows: Sequence[Row] = rows,
            axis: Callable[[Row], float] = axis,
            label: str = label,
        ) -> str:
            from persistent_bfs.study import plots

            engines = study["plan"]["engines"]
            return plots.sweep(name, rows, engines, axis, label, analysis.models)

        yield Picture(
            which,
            draw,
            f"{caption} Marks are medians, bars the range of the samples, small dots outliers; "
            "lines are the model.",
        )


def _sweep_table(study: Row, which: str) -> Table:
    engines = study["plan"]["engines"]
    cells: dict[str, dict[str, Row]] = {}
    for row in study["searches"]:
        if row["sweep"] == which:
            cells.setdefault(row["name"], {})[row["engine"]] = row
    rows = []
    for name, by_engine in cells.items():
        known = next((row for row in by_engine.values() if not row["refused"]), None)
        if known is None:
            continue
        rows.append(
            (
                name,
                f"{known['levels']:,}",
                number(_mean(known)),
                *(_microseconds(by_engine.get(engine)) for engine in engines),
            )
        )
    head = ("graph", "levels", "mean frontier", *engines)
    return Table(
        head,
        tuple(rows),
        "Microseconds a level: the median search over its levels, reset included. A dash: the "
        "engine refused the graph.",
    )


def _microseconds(row: Row | None) -> str:
    if row is None or not row.get("device_ms"):
        return "-"
    return number(1e3 * median(row) / row["levels"])


def _swept_counts(study: Row) -> Iterator[Block]:
    axes = {
        DEPTH: ("Depth", "levels", _levels),
        WIDTH: ("Width", "vertices a level, on average", _mean),
    }
    captions = {
        DEPTH: "Paths of one vertex a level. What grows with the levels is what the engine pays "
        "for each: launches and host syncs of those whose loop the host runs, barriers of those "
        "whose loop is in one kernel.",
        WIDTH: "Grids of the same number of levels, ever wider. Launches, host syncs and barriers "
        "stay as they are, whatever the work; atomics and lane slots are the work.",
    }
    for which, (title, label, axis) in axes.items():
        rows = [row for row in study["searches"] if row["sweep"] == which and not row["refused"]]
        if not rows:
            continue
        yield Heading(2, title)
        yield _count_table(rows)

        def draw(
            name: str,
            rows: Sequence[Row] = rows,
            axis: Callable[[Row], float] = axis,
            label: str = label,
        ) -> str:
            from persistent_bfs.study import plots

            return plots.counts(name, rows, study["plan"]["engines"], axis, label)

        yield Picture(which, draw, captions[which])


def _count_table(rows: Sequence[Row]) -> Table:
    shown = ("launches", "host_syncs", "barriers")
    counted = ("atomics", "lane_slots")
    return Table(
        (
            *("graph", "engine", "levels", "mean frontier"),
            *(name.replace("_", " ") for name in (*shown, *counted)),
        ),
        tuple(
            (
                row["name"],
                row["engine"],
                f"{row['levels']:,}",
                number(_mean(row)),
                *(f"{row[name]:,}" for name in shown),
                *(f"{(row['counts'] or {}).get(name, 0):,}" for name in counted),
            )
            for row in rows
        ),
        "What one search asked of host and device, exactly; every answer was checked.",
        words=2,
    )


# Models


def _interval(model: Fit, term: str, regime: str, scale: float) -> str:
    for found in model.coefficients:
        if (found.term, found.regime) == (term, regime):
            low, high = number(found.low * scale), number(found.high * scale)
            return f"{number(found.value * scale)} ({low} to {high})"
    return "-"


def _rate(model: Fit, regime: str) -> str:
    """Edges a second, from milliseconds an edge, whose interval it turns over."""
    for found in model.coefficients:
        if (found.term, found.regime) == (EDGE, regime):
            rates = [
                "unbounded" if value == 0 else number(1e-6 / value)
                for value in (found.value, found.high, found.low)
            ]
            return f"{rates[0]} ({rates[1]} to {rates[2]})"
    return "-"


MODEL_HEAD = (
    *("fixed, µs", "per level, µs", "per further block, ns", "per empty level, µs"),
    *("rate, G edges/s", "typical error", "worst error"),
)


def _models(analysis: Analysis) -> Iterator[Block]:
    yield Heading(2, "Model")
    if not analysis.simple:
        yield Paragraph("Too few searches of the sweeps were timed for a model.")
        return
    yield Paragraph(
        "T = fixed + levels x (per_level + further blocks x per_block) + empty x per_empty + edges "
        "/ rate, fitted to the medians of both sweeps by non-negative least squares of the "
        "relative errors. Further blocks are those of the whole grid beyond the smallest of the "
        "sweeps, one a multiprocessor: a grid grows with its graph. Empty levels are those that a "
        "loop issues past the end, because it issues several before anyone looks. An edge is one "
        f"arc looked at. In brackets: {CONFIDENCE:.0%} confidence intervals; a dash: no search has "
        "any."
    )
    yield Table(
        ("engine", *MODEL_HEAD),
        tuple(_model_row(engine, model, "") for engine, model in analysis.simple.items()),
        "One set of coefficients an engine. The typical error is the root of the mean square.",
    )
    told_apart = {
        engine: model for engine, model in analysis.split.items() if len(model.regimes) > 1
    }
    if told_apart:
        yield Table(
            ("engine, regime", *MODEL_HEAD),
            tuple(
                _model_row(f"{engine}, {regime}", model, regime)
                for engine, model in told_apart.items()
                for regime in model.regimes
            ),
            "Where the device chose among mappings level by level, each with coefficients of its "
            "own, by the levels and edges that traces count for it. This is the model drawn, where "
            "there is one.",
        )
    yield Table(
        (
            *("engine", "searches", "median: per level, µs", "R²"),
            *("fastest: per level, µs", "R²"),
        ),
        tuple(
            (
                engine,
                f"{sum(residual.sweep == DEPTH for residual in analysis.simple[engine].residuals)}",
                *(
                    cell
                    for line in lines
                    for cell in (number(1e3 * line.level), f"{line.r_squared:.4f}")
                ),
            )
            for engine, lines in analysis.lines.items()
            if engine in analysis.simple
        ),
        "The depth sweep alone, at one vertex a level: the straight line of time against levels, "
        "by ordinary least squares, and the part of the variance that it accounts for; through the "
        "medians, and through each row's fastest search, which is what is left when nothing "
        "disturbs the host. The deepest searches rule such a line, as they do not rule the model.",
    )

    def draw(name: str) -> str:
        from persistent_bfs.study import plots

        return plots.residuals(name, analysis.models, BOUND)

    yield Picture(
        "residuals",
        draw,
        f"What the model leaves over at every search, in the order of the sweeps: depth, then "
        f"width. The band is {BOUND:.0%}. A pattern inside an engine's dots is something the model "
        "does not know of; where the host runs the loop, dots scatter as the host's own speed "
        "does from one search to another.",
    )
    worst = [
        (engine, max(model.residuals, key=lambda residual: abs(residual.relative)))
        for engine, model in analysis.models.items()
    ]
    yield Table(
        ("engine", "worst at", "levels", "measured, ms", "model, ms", "error"),
        tuple(
            (
                engine,
                residual.graph,
                f"{residual.levels:,}",
                number(residual.measured),
                number(residual.modelled),
                percent(residual.relative, sign=True),
            )
            for engine, residual in worst
        ),
        "Where each model is farthest off.",
        words=2,
    )


def _model_row(name: str, model: Fit, regime: str) -> tuple[str, ...]:
    return (
        name,
        _interval(model, FIXED, "", 1e3),
        _interval(model, LEVEL, regime, 1e3),
        _interval(model, BLOCK, "", 1e6),
        _interval(model, EMPTY, "", 1e3),
        _rate(model, regime),
        percent(model.typical),
        percent(model.worst),
    )


def told_points(won: Sequence[int], seen: Sequence[int], unit: str, units: str = "") -> str:
    """Where, of the points seen, one engine was faster, in words.

    Examples
    --------
    >>> told_points([4, 8], [1, 2, 4, 8], "level")
    'from 4 levels on'
    >>> told_points([1], [1, 2, 4], "level"), told_points([], [1, 2], "level")
    ('up to 1 level', 'never')
    >>> told_points([1, 4], [1, 2, 4], "level")
    'at 1, 4 levels'
    """
    units = units or f"{unit}s"
    if not won:
        return "never"
    if len(won) == len(seen):
        return "always"
    if list(won) == list(seen[-len(won) :]):
        return f"from {won[0]:,} {units} on"
    if list(won) == list(seen[: len(won)]):
        return Wins(((1, won[-1]),)).told(unit, units)
    return f"at {', '.join(f'{point:,}' for point in won)} {units}"


def _overtaking(study: Row, analysis: Analysis) -> Iterator[Block]:
    searches, engines = study["searches"], list(analysis.simple)
    if len(engines) < 2:
        return
    yield Heading(2, "Who overtakes whom")
    grids = {engine: swept(searches, engine, WIDTH) for engine in engines}
    paths = {engine: swept(searches, engine, DEPTH) for engine in engines}
    widest = max((row for rows in grids.values() for row in rows), key=_mean, default=None)
    rows = []
    for number_, later in enumerate(engines):
        for earlier in engines[:number_]:
            seen = sorted({row["levels"] for row in paths[later]})
            by_depth = _by_depth(study, analysis, later, earlier)
            depth = told_points(
                sorted(measured_wins(paths[later], paths[earlier], "levels")), seen, "level"
            )
            width = measured = "-"
            if widest is not None and grids[later] and grids[earlier]:
                regimes = [len(analysis.models[engine].regimes) for engine in (later, earlier)]
                if max(regimes) == 1:
                    most = round(_mean(widest))
                    mine, its = (
                        width_times(analysis.simple[engine], grids[engine], most)
                        for engine in (later, earlier)
                    )
                    width = wins(mine, its).told("vertex", "vertices")
                measured = _measured_width(grids[later], grids[earlier])
            rows.append(
                (
                    f"{later} beats {earlier}",
                    "-" if by_depth is None else by_depth.told("level"),
                    depth,
                    width,
                    measured,
                )
            )
    levels = "-" if widest is None else f"{widest['levels']:,}"
    yield Table(
        (
            *("engines", "by depth, model", "by depth, measured"),
            *(f"by width at {levels} levels, model", "by width, measured"),
        ),
        tuple(rows),
        "By depth: at a frontier of one vertex, by the model that is drawn. By width: vertices in "
        "the mean frontier; a dash where one of the two has several regimes, for then no one model "
        f"tells. The models by depth up to {BEYOND} times the deepest path, by width up to the "
        "widest grid; measured are the sweeps' own points, by medians.",
        words=5,
    )
    yield from _losses(study, analysis)


def _measured_width(here: Sequence[Row], there: Sequence[Row]) -> str:
    def rounded(rows: Sequence[Row]) -> list[Row]:
        return [dict(row) | {"width": max(1, round(_mean(row)))} for row in rows]

    seen = sorted({row["width"] for row in rounded(here)})
    return told_points(
        sorted(measured_wins(rounded(here), rounded(there), "width")), seen, "vertex", "vertices"
    )


def _losses(study: Row, analysis: Analysis) -> Iterator[Block]:
    if analysis.best is None:
        return
    lost = losses(study["searches"], analysis.best)
    if not lost:
        yield Paragraph(f"No other engine was faster than {analysis.best} at any search.")
        return
    yield Table(
        ("search", "levels", "mean frontier", "faster", "ms", f"{analysis.best}, ms", "times"),
        tuple(
            (
                own["name"],
                f"{own['levels']:,}",
                number(_mean(own)),
                fast["engine"],
                number(median(fast)),
                number(median(own)),
                number(median(own) / median(fast)),
            )
            for own, fast in lost
        ),
        f"Where {analysis.best}, which has the cheapest level of one vertex, is not the fastest.",
        also=(3,),
    )


def _level(analysis: Analysis) -> Iterator[Block]:
    if not analysis.splits:
        return
    yield Heading(2, "Where a level's time goes")
    yield Table(
        ("engine", "level, µs", "barrier, µs", "by", "loads, µs", "by", "rest, µs"),
        tuple(
            (
                engine,
                number(split.level),
                number(split.barrier),
                split.barrier_by,
                number(split.loads),
                split.loads_by,
                number(split.rest),
            )
            for engine, split in analysis.splits.items()
        ),
        "A level of one vertex: the median slope between any two of the deepest paths. The barrier "
        "is what the engine puts between two levels, by its counters and the primitives; the loads "
        "wait for one another, at the latency of L2. The rest is instructions, stores, and what "
        "the launch of a kernel with work takes over an empty one; below zero the two overlap.",
        also=(3, 5),
    )

    def draw(name: str) -> str:
        from persistent_bfs.study import plots

        return plots.splits(name, analysis.splits)

    yield Picture(
        "level",
        draw,
        "The same in bars, the mark being what was measured. Where the whole grid works at a "
        "level, what is read and claimed is the same, and the barrier alone tells engines apart.",
    )


# Graphs


def _named(row: Row) -> str:
    return f"{row['name']} ({row['graph']} stands in)" if row["stands_in"] else str(row["name"])


def _graphs(study: Row, analysis: Analysis) -> Iterator[Block]:
    yield Heading(2, "Graphs")
    engines = study["plan"]["engines"]
    by_graph: dict[str, list[Row]] = {}
    for row in study["searches"]:
        if row["sweep"] == GRAPHS and row.get("device_ms"):
            by_graph.setdefault(row["name"], []).append(row)
    if not by_graph:
        yield Paragraph("None was searched.")
        return
    rows, fast = [], []
    for own in by_graph.values():
        found = {row["engine"]: row for row in own}
        fastest = min(own, key=median)
        slowest = found.get(BASELINE)
        rows.append(
            (
                _named(own[0]),
                f"{own[0]['vertices']:,}",
                f"{own[0]['levels']:,}",
                *(_microseconds(found.get(engine)) for engine in engines),
            )
        )
        fast.append(
            (
                _named(own[0]),
                fastest["engine"],
                number(median(fastest)),
                number(Timing(tuple(fastest["wall_ms"])).median),
                "-" if slowest is None else number(median(slowest)),
                "-" if slowest is None else number(median(slowest) / median(fastest)),
            )
        )
    yield Table(
        ("graph", "vertices", "levels", *engines),
        tuple(rows),
        "Microseconds a level of searches of whole graphs, medians, every answer checked.",
    )
    yield Table(
        ("graph", "fastest", "its ms", "by the host's clock", f"{BASELINE}, ms", "times"),
        tuple(fast),
        "The fastest engine of each graph: its milliseconds by the device's clock and by the "
        "host's around the synchronised call, and how many times as long the baseline takes.",
        words=2,
    )
    predicted = []
    for own in by_graph.values():
        for row in own:
            model = analysis.models.get(row["engine"])
            time = None if model is None else model.predict(row)
            if time is not None and row["engine"] in (BASELINE, analysis.best):
                predicted.append(
                    (
                        row["name"],
                        row["engine"],
                        number(median(row)),
                        number(time),
                        percent(time / median(row) - 1, sign=True),
                    )
                )
    yield Table(
        ("graph", "engine", "measured, ms", "model, ms", "error"),
        tuple(predicted),
        "What the model, fitted to paths and grids alone, says of these graphs. It knows nothing "
        "of degrees and of where vertices lie in memory: how far it is off is what those cost. "
        "Searches that took a mapping which the sweeps never took are left out.",
        words=2,
    )
    for name, own in by_graph.items():
        traced = [row for row in own if row["trace"] and row["trace"]["begin_ns"]]
        if not traced:
            continue

        def draw(label: str, traced: Sequence[Row] = traced) -> str:
            from persistent_bfs.study import plots

            return plots.timeline(label, traced, engines)

        yield Picture(
            f"timeline-{file_name(name)}",
            draw,
            f"{name}: {' beside '.join(row['engine'] for row in traced)}, level by level, by the "
            "device's own clock in a traced search. Left: how far each is after how long. Right: "
            "from one level's beginning to the next, over the frontier in grey: what does not "
            "follow the grey is the loop's.",
        )


def file_name(graph: str) -> str:
    """A graph's name as a part of a file's.

    Examples
    --------
    >>> file_name("road:30x30"), file_name("kept/some graph.mtx")
    ('road-30x30', 'kept-some-graph.mtx')
    """
    return re.sub(r"[^\w.-]+", "-", graph, flags=re.ASCII)


def _graph_counts(study: Row) -> Iterator[Block]:
    yield Heading(2, "Graphs")
    rows = [row for row in study["searches"] if row["sweep"] == GRAPHS and not row["refused"]]
    if not rows:
        yield Paragraph("None was searched.")
        return
    yield _count_table(rows)
    traced = [row for row in rows if row["trace"]]
    if not traced:
        return

    def draw(name: str) -> str:
        from persistent_bfs.study import plots

        return plots.frontiers(name, traced)

    yield Picture(
        "frontiers",
        draw,
        "Vertices in the frontier and their edges, level by level: deep graphs have many levels "
        "with little in each, wide ones few with much.",
    )


def _rules(study: Row, analysis: Analysis | None) -> Iterator[Block]:
    yield Heading(2, "How it was measured")
    if analysis is None:
        yield Items(
            (
                "Each search ran once and its answer was checked against the reference.",
                "Counts are of the kernels as compiled for the CPU from the same sources.",
            )
        )
        return
    yield Items(
        (
            "A search's time counts only if its answer is right: the first and the last of each "
            "row are checked against the reference.",
            "Upload, compilation and two warm-up searches are outside. The device's time is by "
            "events on the stream around all that a search enqueues, its reset included; the "
            "host's clock around the synchronised call is kept beside it in study.json.",
            f"L2 is {study['plan']['l2']} when a search begins: "
            + (
                "what the search before left there."
                if study["plan"]["l2"] == "warm"
                else "a buffer several times its size was written first."
            ),
            "Medians are shown, no sample is left out. Clocks are recorded and never set.",
            "Every figure is worked out of study.json: persistent-bfs study --from study.json "
            "makes this report anew.",
        )
    )
