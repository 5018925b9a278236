"""The study's plots, each one SVG element to be put into a page.

The same figures always give the same bytes: identifiers are salted and prefixed by hand, and
nothing tells the date. Text stays text, so that it can be searched and is printed sharp. What
many points take is kept small: a row's samples are one bar and its outliers, and coordinates are
told to a hundredth of a point.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from persistent_bfs.measure import Timing
from persistent_bfs.study.model import Figures, Fit, Split, median

Row = Mapping[str, Any]

STYLE = {
    "svg.hashsalt": "persistent_bfs",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib, so that all machines draw alike
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "legend.fontsize": 8,
    "figure.dpi": 72,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}

# Told apart in print without colours, too.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
MARKERS = "os^vDPX*"

# More points of a timeline than this are not seen apart.
POINTS = 250


def _draw(name: str, fill: Callable[[Any], None], width: float = 8.0, height: float = 4.0) -> str:
    """Draw a figure into an SVG element whose identifiers begin with ``name``."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        fill(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=NO_METADATA)
    text = file.getvalue()
    text = text[text.index("<svg") :].strip()
    text = _small(text)
    # One page holds several figures, and identifiers are the page's.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    return re.sub(r'href="#', f'href="#{name}-', text)


# Attributes that hold coordinates, and a coordinate that is told too exactly.
COORDINATES = re.compile(r'\b(d|x|y|x1|x2|y1|y2|points|transform|width|height|viewBox)="([^"]*)"')
EXACT = re.compile(r"-?\d+\.\d{3,}")
MARKS = re.compile(r'<g (clip-path="[^"]*")>((?:<use [^>]*/>)+)</g>')
DOT = re.compile(r"M (\S+) (\S+) L \1 \2(?= |$|\")")
STYLED = re.compile(r' style="([^"]*)"')


def _small(svg: str) -> str:
    """The same drawing without what no one sees."""

    def shorter(number: re.Match[str]) -> str:
        told = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
        return "0" if told == "-0" else told

    def rounded(found: re.Match[str]) -> str:
        return f'{found[1]}="{EXACT.sub(shorter, " ".join(found[2].split()))}"'

    def once(marks: re.Match[str]) -> str:
        styles = set(STYLED.findall(marks[2]))
        if len(styles) != 1:
            return marks[0]
        return f'<g {marks[1]} style="{styles.pop()}">{STYLED.sub("", marks[2])}</g>'

    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.S)
    svg = COORDINATES.sub(rounded, svg)
    svg = re.sub(r">\s+<", "><", svg)
    svg = MARKS.sub(once, svg)
    svg = DOT.sub(r"M \1 \2 h 0", svg)
    # Groups are not referred to, nor is text turned by nothing.
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    return re.sub(r'<g id="[^"]*"', "\n<g", svg)


def _segments(axes: Any, segments: Sequence[tuple[float, float, float, float]], **how: Any) -> None:
    """Draw many segments as one path; those of no length are dots, as wide as the line."""
    if not segments:
        return
    corners = [[(x0, y0), (x1, y1)] for x0, y0, x1, y1 in segments]
    codes = [Path.MOVETO, Path.LINETO] * len(segments)
    path = Path(list(chain.from_iterable(corners)), codes)
    path.should_simplify = False
    axes.add_patch(PathPatch(path, fill=False, capstyle="round", **how))


def _plain(value: float, _: int = 0) -> str:
    """A tick's number as it is read, not as a power."""
    return f"{value:,.10f}".rstrip("0").rstrip(".")


def _log_ticks(axis: Any, base: int = 10) -> None:
    """Ticks of a logarithmic axis as plain numbers; more of them where it is short."""
    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if base == 10 and high < 50 * low else (1.0,)
    axis.set_major_locator(LogLocator(base=base, subs=subs, numticks=9))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def _count_ticks(axis: Any) -> None:
    """Ticks of an axis of whole things."""
    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(FuncFormatter(_plain))


def _looks(engines: Sequence[str]) -> dict[str, dict[str, Any]]:
    return {
        engine: {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        for i, engine in enumerate(engines)
    }


def _by_engine(rows: Sequence[Row], engines: Sequence[str]) -> dict[str, list[Row]]:
    found = {engine: [row for row in rows if row["engine"] == engine] for engine in engines}
    return {engine: own for engine, own in found.items() if own}


def _legend(figure: Any, axes: Any) -> None:
    """One legend for all panels, below them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def sweep(
    name: str,
    rows: Sequence[Row],
    engines: Sequence[str],
    axis: Callable[[Row], float],
    label: str,
    models: Mapping[str, Fit],
) -> str:
    """Times against an axis: in all, and a level; samples as dots, the model as a line."""
    looks = _looks(engines)

    def fill(figure: Any) -> None:
        whole, level = figure.subplots(1, 2)
        for engine, own in _by_engine(rows, engines).items():
            look = looks[engine]
            for axes, unit in (
                (whole, lambda _: 1.0),
                (level, lambda row: 1e3 / row["levels"]),
            ):
                places = [axis(row) for row in own]
                axes.plot(
                    places,
                    [median(row) * unit(row) for row in own],
                    linestyle="none",
                    ms=4,
                    label=engine,
                    **look,
                )
                model = models.get(engine)
                if model is not None:
                    times = [model.predict(row) for row in own]
                    line = [
                        np.nan if time is None else time * unit(row)
                        for time, row in zip(times, own, strict=True)
                    ]
                    axes.plot(places, line, color=look["color"], lw=0.9)
            bars, dots = [], []
            for row in own:
                place, timing = axis(row), Timing(tuple(row["device_ms"]))
                inside = [x for x in timing.samples if x not in timing.outliers]
                low, high = (1e3 * x / row["levels"] for x in (min(inside), max(inside)))
                bars.append((place, low, place, high))
                outside = [1e3 * x / row["levels"] for x in timing.outliers]
                dots += [(place, x, place, x) for x in outside]
            _segments(level, bars, color=look["color"], lw=0.8)
            _segments(level, dots, color=look["color"], lw=1.6, alpha=0.6)
        whole.set_ylabel("ms a search")
        level.set_ylabel("µs a level")
        for axes in (whole, level):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel(label)
            _log_ticks(axes.xaxis, base=4)
            _log_ticks(axes.yaxis)
        _legend(figure, whole)

    return _draw(name, fill, width=9.5, height=4.4)


def residuals(name: str, models: Mapping[str, Fit], bound: float) -> str:
    """What the models leave over, a dot a search, in percent of the measured time."""
    looks = _looks(list(models))

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        for place, (engine, model) in enumerate(models.items()):
            own = [100 * residual.relative for residual in model.residuals]
            offsets = np.linspace(-0.3, 0.3, len(own))
            axes.plot(place + offsets, own, linestyle="none", ms=4, **looks[engine])
        axes.axhspan(-100 * bound, 100 * bound, color="0.9", zorder=0)
        axes.axhline(0, color="0.4", lw=0.8)
        axes.set_xticks(range(len(models)), list(models))
        axes.set_ylabel("model above measurement, %")

    return _draw(name, fill, width=9.5, height=3.2)


def splits(name: str, found: Mapping[str, Split]) -> str:
    """What a level of one vertex costs, in stacked bars."""

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        engines = list(found)[::-1]
        left = np.zeros(len(engines))
        parts: tuple[tuple[str, str, str], ...] = (
            ("barrier", "#0072b2", ""),
            ("loads", "#e69f00", "//"),
            ("rest", "#bbbbbb", "\\\\"),
        )
        for part, colour, hatch in parts:
            values = np.array([max(getattr(found[engine], part) or 0.0, 0.0) for engine in engines])
            axes.barh(
                engines, values, left=left, label=part, color=colour, hatch=hatch, edgecolor="white"
            )
            left += values
        axes.plot(
            [found[engine].level for engine in engines], engines, "k|", ms=18, label="measured"
        )
        axes.set_xlabel("µs a level")
        axes.legend()

    return _draw(name, fill, width=9.5, height=0.9 + 0.42 * len(found))


def barriers(name: str, figures: Figures) -> str:
    """Barriers against blocks, by threads a block; graphs against nodes; memories' latencies."""
    titles = {
        "grid_sync": "cooperative groups",
        "own_barrier": "one counter",
        "cluster_barrier": "cluster",
        "graph_issue": "call returns",
        "graph_device": "on the device",
        "graph_dependent": "nodes dependent",
        "graph_completion": "host knows",
    }

    def fill(figure: Any) -> None:
        grid, graph, memory = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 0.8))
        for number, primitive in enumerate(("grid_sync", "own_barrier", "cluster_barrier")):
            by_threads: dict[int, list[tuple[int, float]]] = {}
            for point, timing in figures.points(primitive):
                by_threads.setdefault(point["threads"], []).append((point["blocks"], timing.median))
            styles = ("-", "--", ":") if len(by_threads) > 1 else ("-",)
            for style, (threads, points) in zip(styles, by_threads.items(), strict=False):
                grid.plot(
                    *zip(*points, strict=True),
                    style,
                    color=COLOURS[number],
                    marker=MARKERS[number],
                    ms=3,
                    label=f"{titles[primitive]}, {threads:,}",
                )
        grid.set_xscale("log", base=2)
        _log_ticks(grid.xaxis, base=4)
        # Room for the legend above what is drawn.
        grid.set_ylim(0, 1.9 * max(grid.get_ylim()[1], 1e-9))
        grid.set_xlabel("blocks")
        grid.set_ylabel("µs a barrier")
        grid.legend(title="barrier, threads a block", fontsize=6.5, title_fontsize=6.5, ncols=2)
        graphs = ("graph_issue", "graph_device", "graph_completion", "graph_dependent")
        for number, primitive in enumerate(graphs):
            points = [(point["nodes"], t.median) for point, t in figures.points(primitive)]
            if points:
                graph.plot(
                    *zip(*points, strict=True),
                    color=COLOURS[number],
                    marker=MARKERS[number],
                    ms=3,
                    label=titles[primitive],
                )
        graph.set_xscale("log")
        graph.set_yscale("log")
        _log_ticks(graph.xaxis)
        _log_ticks(graph.yaxis)
        graph.set_xlabel("nodes of a graph")
        graph.set_ylabel("µs a launch")
        if graph.lines:
            graph.legend(fontsize=7)
        loads = [(point["memory"], t.median) for point, t in figures.points("dependent_load")]
        loads += [("atomic", t.median) for _, t in figures.points("dependent_atomic")]
        if loads:
            drawn = memory.bar(*zip(*loads, strict=True), color="#56b4e9")
            memory.bar_label(drawn, fmt="%.0f", fontsize=8)
        memory.set_ylabel("ns a dependent access")

    return _draw(name, fill, width=9.5, height=3.6)


COUNTS = ("launches", "host_syncs", "barriers", "atomics", "lane_slots")


def counts(
    name: str,
    rows: Sequence[Row],
    engines: Sequence[str],
    axis: Callable[[Row], float],
    label: str,
) -> str:
    """What is asked of host and device against an axis, a panel each; no time anywhere."""
    looks = _looks(engines)

    def fill(figure: Any) -> None:
        panels = figure.subplots(1, len(COUNTS))
        for axes, what in zip(panels, COUNTS, strict=True):
            for engine, own in _by_engine(rows, engines).items():
                values = [counted(row, what) for row in own]
                places = [axis(row) for row in own]
                axes.plot(places, values, ms=3, lw=0.9, label=engine, **looks[engine])
            axes.set_xscale("log", base=2)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_ylim(bottom=0)
            axes.set_title(what.replace("_", " "), fontsize=9)
            axes.set_xlabel(label, fontsize=8)
        _legend(figure, panels[0])

    return _draw(name, fill, width=10, height=3.2)


def counted(row: Row, what: str) -> int:
    """A counter of a search, the engine's own or the device's."""
    return int(row[what] if what in row else (row["counts"] or {}).get(what, 0))


def timeline(name: str, rows: Sequence[Row], engines: Sequence[str]) -> str:
    """When each level began, and how long it took until the next, by engine; the frontier below."""
    looks = _looks(engines)

    def fill(figure: Any) -> None:
        when, took = figure.subplots(1, 2)
        shown = [np.nan]
        for row in rows:
            begin = np.array(row["trace"]["begin_ns"], float)
            levels = np.arange(len(begin))
            step = max(1, len(begin) // POINTS)
            colour = looks[row["engine"]]["color"]
            when.plot(
                begin[::step] / 1e6, levels[::step], color=colour, lw=1.2, label=row["engine"]
            )
            if len(begin) > 1:
                took_us = np.diff(begin) / 1e3
                # The device's clock ticks more slowly than some levels pass.
                took_us[took_us <= 0] = np.nan
                places, middle = _binned(took_us, step)
                shown += middle
                dots = [(x, y, x, y) for x, y in zip(places, middle, strict=True) if np.isfinite(y)]
                _segments(took, dots, color=colour, lw=2.4 if step > 1 else 4)
        frontier = np.array(rows[0]["trace"]["frontier"], float)
        places, middle = _binned(frontier, max(1, len(frontier) // POINTS))
        below = took.twinx()
        below.grid(visible=False)
        below.fill_between(places, middle, color="0.85", zorder=0)
        below.set_ylabel("vertices in the frontier", color="0.5")
        below.set_ylim(bottom=0)
        took.set_zorder(below.get_zorder() + 1)
        took.patch.set_visible(False)
        if np.isfinite(shown).any():
            took.set_yscale("log")
            took.set_ylim(0.7 * np.nanmin(shown), 1.4 * np.nanmax(shown))
            _log_ticks(took.yaxis)
        took.set_xlabel("level")
        took.set_ylabel("µs to the next level")
        when.set_xlabel("ms since the first level began")
        when.set_ylabel("levels begun")
        when.legend()
        for axis in (when.yaxis, took.xaxis, below.yaxis):
            _count_ticks(axis)

    return _draw(name, fill, width=9.5, height=3.0)


def _binned(values: Any, step: int) -> tuple[list[float], list[float]]:
    """Places and medians of so many values each."""
    edges = [*range(0, len(values), step), len(values)]
    pairs = [(low, high) for low, high in pairwise(edges) if high > low]
    return (
        [(low + high - 1) / 2 for low, high in pairs],
        [float(np.median(values[low:high])) for low, high in pairs],
    )


def frontiers(name: str, rows: Sequence[Row]) -> str:
    """Frontier and edges of every level, a panel a graph."""

    def fill(figure: Any) -> None:
        panels = figure.subplots(1, len(rows), squeeze=False)[0]
        for axes, row in zip(panels, rows, strict=True):
            for what, style in (("frontier", "-"), ("edges", "--")):
                axes.plot(row["trace"][what], style, color="#0072b2", lw=1, label=what)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_ylim(bottom=0)
            axes.set_title(row["name"], fontsize=9)
            axes.set_xlabel("level")
        panels[0].legend()

    return _draw(name, fill, width=2.6 * len(rows) + 1, height=2.8)


def ratios(name: str, here: Mapping[str, Sequence[tuple[float, float]]], label: str) -> str:
    """Ratios of two studies' medians against an axis, a line an engine."""
    looks = _looks(list(here))

    def fill(figure: Any) -> None:
        axes = figure.subplots()
        for engine, points in here.items():
            axes.plot(*zip(*points, strict=True), ms=4, lw=0.9, label=engine, **looks[engine])
        axes.axhline(1, color="0.4", lw=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xlabel(label)
        axes.set_ylabel("time here over time there")
        _legend(figure, axes)

    return _draw(name, fill, height=3.2)
