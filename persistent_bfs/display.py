"""What the command line shows a person: tables, a late progress bar, a plot.

Each function turns the report that ``--json`` would print into something to look at.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import IO, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

Report = dict[str, Any]

NO_TIME = "The emulated device tells no time: compare what is asked of host and device."

# Of a long table the first and last rows are shown; --json has them all.
FIRST_ROWS, LAST_ROWS = 24, 8
# So it is with the sums of the frontier sizes.
FIRST_SUMS, LAST_SUMS = 4, 2
# Rich wraps at 80 columns where there is no terminal, which would break tables in files.
FILE_WIDTH = 240


class _Console(Console):
    """A console that leaves a reader who went away to the caller."""

    def on_broken_pipe(self) -> None:
        """As `rich.console.Console.on_broken_pipe`."""
        raise BrokenPipeError


def show(content: RenderableType) -> None:
    """Write to stdout, labels taken literally."""
    console = _Console(
        markup=False,
        highlight=False,
        emoji=False,
        width=None if sys.stdout.isatty() else FILE_WIDTH,
    )
    console.print(content)


class LateProgress:
    """A progress bar on stderr that shows only if the work takes long.

    Call it as ``progress(description, done, total)``.
    """

    def __init__(self, seconds: float = 1.0) -> None:
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._timer = threading.Timer(seconds, self._bar.start)
        self._timer.daemon = True

    def __call__(self, description: str, done: int, total: int) -> None:
        """Say what is being done, and how much of it is; of an unknown ``total``, give 0."""
        self._bar.update(self._task, description=description, completed=done, total=total or None)

    def __enter__(self) -> LateProgress:
        self._timer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._bar.stop()


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


_PLURALS = {
    "vertex": "vertices",
    "discovery": "discoveries",
    "launch": "launches",
    "search": "searches",
}


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, f'{noun}s')}"


def _source(report: Report) -> str:
    label = str(report["label"])
    return f"vertex {report['source']}{'' if label == str(report['source']) else f' ({label})'}"


def _graph(report: Report) -> str:
    return f"{report['graph']}: {report['vertices']:,} vertices, {report['arcs']:,} arcs"


def _table(*columns: str, title: str = "", words: int = 1) -> Table:
    """A table whose first ``words`` columns hold words, the others numbers."""
    table = Table(
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        title=title or None,
        title_justify="left",
        title_style="",
    )
    # On a narrow terminal numbers are folded, never cut.
    for position, column in enumerate(columns):
        name = position < words
        table.add_column(column, justify="left" if name else "right", no_wrap=name, overflow="fold")
    return table


def _fill(table: Table, rows: Sequence[Sequence[str]]) -> Table:
    """Add rows, of many only the first and last."""
    left_out = len(rows) - FIRST_ROWS - LAST_ROWS
    if left_out <= 1:
        first, last = rows, rows[:0]
    else:
        first, last = rows[:FIRST_ROWS], rows[-LAST_ROWS:]
    for row in first:
        table.add_row(*row)
    if last:
        table.add_row("...", f"{left_out:,} more", style="dim")
    for row in last:
        table.add_row(*row)
    return table


def _verdict(verified: bool | None, right: str) -> str:
    """``right`` for an answer that is; None is one that was not checked."""
    return "unverified" if verified is None else right if verified else "WRONG"


def search(report: Report) -> RenderableType:
    """Show what ``run`` found: a summary and, if traced, the levels."""
    verdict = _verdict(report["verified"], "verified")
    cost = (
        _plural(report["launches"], "launch"),
        _plural(report["host_syncs"], "host sync"),
        _plural(report["barriers"], "barrier"),
    )
    how = (
        "NumPy"
        if report["device"] == "reference"
        else f"{_loop(report)}, {report['direction']}, {report['advance']} mapping, "
        f"{report['claim']} claim, {report['append']} append, {report['frontier']} frontier"
    )
    lines = {
        "graph": _graph(report),
        "source": _source(report),
        "engine": how + (f", {report['shape']}" if report["shape"] else ""),
        "device": report["reason"],
        "answer": f"{_plural(report['levels'], 'level')}, depth {report['depth']:,}, "
        f"{report['reached']:,} reached: {verdict}",
        "frontiers": f"{report['enqueued']:,} vertices in all",
        "cost": ", ".join(cost),
        "time": _time(report),
    }
    if report["reorder"] != "none":
        lines["order"] = _order(report)
    if report["counts"]:
        shown = (f"{name.replace('_', ' ')} {n:,}" for name, n in report["counts"].items() if n)
        lines["counts"] = ", ".join(shown)
    summary = Table.grid(padding=(0, 2))
    for name, line in lines.items():
        wrong = name == "answer" and report["verified"] is False
        summary.add_row(Text(name, style="dim"), Text(line, style="bold red" if wrong else ""))
    return Group(summary, "", _trace(report["trace"])) if report["trace"] else summary


def _order(report: Report) -> str:
    """In which order the vertices were searched, and what that took beforehand."""
    if report["reorder_ms"] is None:
        return str(report["reorder"])
    took = f"made by the host in {report['reorder_ms']:,.1f} ms, which no time here includes"
    return f"{report['reorder']}, {took}"


def _time(report: Report) -> str:
    if not report["verified"]:
        return f"none, for {'an unverified' if report['verified'] is None else 'a wrong'} answer"
    if report["device"] == "emulated":
        return "none: the emulated device tells no time"
    if report["device_ms"] is None:
        return f"{report['wall_ms']:,.3f} ms"
    rate = f", {report['teps'] / 1e9:,.3f} GTEPS" if report["teps"] else ""
    return (
        f"{report['device_ms']:,.3f} ms by the device, {report['wall_ms']:,.3f} by the host{rate}"
    )


def _trace(rows: list[Report]) -> Table:
    timed = rows[0]["begin_ns"] is not None
    table = _table(
        "level", "frontier", "edges", "mapping", "direction", *(("µs",) if timed else ()), words=0
    )
    cells = [
        (
            str(row["level"]),
            _count(row["frontier"]),
            _count(row["edges"]),
            row["mapping"],
            row["direction"],
            *((("-" if row["ns"] is None else f"{row['ns'] / 1e3:,.2f}"),) if timed else ()),
        )
        for row in rows
    ]
    return _fill(table, cells)


def comparison(report: Report) -> RenderableType:
    """Show what ``compare`` found: a row an engine and mapping, the fastest marked."""
    rows = report["rows"]
    emulated = report["device"] == "emulated"
    own = ("lane slots", "atomics") if emulated else ("ms", "min - max", "µs a level", "speedup")
    table = _table("engine", "mapping", "launches", "syncs", "barriers", *own, "answer", words=2)
    fastest = min((row["device_ms"] for row in rows if row["device_ms"]), default=None)
    for row in rows:
        style = "bold green" if fastest and row["device_ms"] == fastest else ""
        table.add_row(
            _loop(row),
            row["advance"],
            *(_count(row[name]) for name in ("launches", "host_syncs", "barriers")),
            *(_counts(row) if emulated else _times(row)),
            _verdict(row["verified"], "right"),
            style="bold red" if row["verified"] is False else style,
        )
    heading = (
        f"{_graph(report)}; from {_source(report)}: {report['levels']:,} levels, "
        f"{report['reached']:,} reached"
    )
    if emulated:
        note = NO_TIME
    elif all(row["verified"] is None for row in rows):
        note = "No times: no answer was verified."
    else:
        note = (
            f"Median of {_plural(report['repeat'], 'search')} by the device's clock; speedup over "
            "host_loop with the same mapping."
        )
    if report["reorder"] != "none":
        heading += f"; vertices in the order {_order(report)}"
    device = f"{report['device_name']}, {report['environment']['driver']}; {report['reason']}"
    told: list[RenderableType] = [Text(heading), Text(device, style="dim"), "", table, ""]
    told.append(Text(note, style="dim"))
    if report["peers"]:
        told += ["", _peers(report)]
    return Group(*told)


def _peers(report: Report) -> RenderableType:
    """Show what other libraries took, by the host's clock."""
    table = _table(
        "library", "version", "call", "on", "ms", "min - max", "x ours", "answer", words=4
    )
    for peer in report["peers"]:
        ms, times = peer["wall_ms"], peer["times_ours"]
        table.add_row(
            *(peer[name] for name in ("name", "version", "function", "runs_on")),
            f"{ms['median']:,.3f}" if ms else "-",
            f"{ms['min']:,.3f} - {ms['max']:,.3f}" if ms else "-",
            "-" if times is None else f"{times:,.2f}",
            _verdict(peer["verified"], "right"),
            style="bold red" if peer["verified"] is False else "",
        )
    note = "Other libraries, by the host's clock around the call; their graphs were made before."
    if any(peer["times_ours"] for peer in report["peers"]):
        note += " Ours: the fastest row above, by the same clock."
    return Group(table, "", Text(note, style="dim"))


def _loop(row: Report) -> str:
    """Who ran the levels."""
    return f"{row['engine']}{'' if row['tier'] == 'none' else ' + ' + row['tier']}"


def _counts(row: Report) -> tuple[str, str]:
    return _count(row["lane_slots"]), _count(row["atomics"])


def _times(row: Report) -> tuple[str, ...]:
    if row["ms"] is None:
        return ("-",) * 4
    ms, speedup = row["ms"], row["speedup_vs_host_loop"]
    return (
        f"{ms['median']:,.3f}",
        f"{ms['min']:,.3f} - {ms['max']:,.3f}",
        f"{row['us_per_level']:,.2f}",
        "-" if speedup is None else f"{speedup:,.2f}x",
    )


def expansion(report: Report) -> RenderableType:
    """Show what ``expand`` found: a table a level, a row a mapping, the best marked."""
    emulated = report["device"] == "emulated"
    walk, search = (
        (("lane slots", "atomics"), ("search slots", "search atomics"))
        if emulated
        else (("ms", "min - max", "G edges/s"), ("search ms",))
    )
    columns = ("mapping", *walk, "vs best", *search, "answer")
    searches = {row["advance"]: row for row in report["searches"]}
    shown = [(row, _walk(row, searches[row["advance"]], emulated)) for row in report["rows"]]
    # The tables of all levels line up.
    widths = [max(map(len, cells)) for cells in zip(columns, *(c for _, c in shown), strict=True)]
    tables: list[RenderableType] = []
    for _, level in groupby(shown, lambda pair: pair[0]["level"]):
        rows = list(level)
        first = rows[0][0]
        table = _table(
            *columns,
            title=f"level {first['level']}: frontier {first['frontier']:,}, "
            f"{_plural(first['edges'], 'edge')}, max degree {first['max_degree']:,}",
        )
        for column, width in zip(table.columns, widths, strict=True):
            column.min_width = width
        for row, cells in rows:
            right = row["verified"] and searches[row["advance"]]["verified"]
            best = "bold green" if row["ratio_to_best"] == 1 else ""
            table.add_row(*cells, style=best if right else "bold red")
        tables += ["", table]
    walks = f"{_plural(report['repeat'], 'walk')} of the level in one launch"
    note = (
        f"Lane slots of one walk, atomics of {walks}; beside them those of the whole search. "
        f"{NO_TIME}"
        if emulated
        else f"One walk, by the device's clock over {walks}: median of "
        f"{report['samples']:,}; beside it the whole search by the persistent engine."
    )
    heading = f"{_graph(report)}; from {_source(report)}"
    device = f"{report['device_name']}, {report['environment']['driver']}; {report['reason']}"
    return Group(Text(heading), Text(device, style="dim"), *tables, "", Text(note, style="dim"))


def _walk(row: Report, search: Report, emulated: bool) -> tuple[str, ...]:
    ratio = row["ratio_to_best"]
    walk: tuple[str, ...]
    whole: tuple[str, ...]
    if emulated:
        walk, whole = _counts(row), _counts(search)
    else:
        rate = row["edges_per_second"]
        walk = (*_spread(row["ms"]), "-" if rate is None else f"{rate / 1e9:,.2f}")
        whole = _spread(search["ms"])[:1]
    answers = {"walk": row["verified"], "search": search["verified"]}
    wrong = " and ".join(what for what, right in answers.items() if not right)
    return (
        row["advance"],
        *walk,
        "-" if ratio is None else f"{ratio:,.2f}x",
        *whole,
        f"{wrong} WRONG" if wrong else "right",
    )


def _spread(ms: dict[str, float] | None) -> tuple[str, str]:
    if ms is None:
        return "-", "-"
    return f"{ms['median']:,.4f}", f"{ms['min']:,.4f} - {ms['max']:,.4f}"


def races(report: Report) -> RenderableType:
    """Show what ``race`` found: how many schedules, which accesses, and one interleaving."""
    told = report["interleaving"]
    found = report["duplicating"]
    lines = {
        "graph": f"{_graph(report)}; from {_source(report)}, {report['reached']:,} reached",
        "search": f"{report['engine']}, {report['direction']}, {report['advance']} mapping, "
        f"{report['claim']} claim, {report['append']} append, {report['frontier']} frontier, "
        f"blocks of {report['block_threads']}",
        "schedules": f"{found:,} of {report['schedules']:,} discover a vertex more than once"
        + (f", first that of seed {report['first_seed']}" if found else ""),
        "frontiers": _sums(report),
        "distances": "right under every schedule"
        if not report["wrong"]
        else f"WRONG under {_plural(report['wrong'], 'schedule')}",
        "data races": _data_races(report["data_races"]),
    }
    bad = {
        "schedules": bool(found),
        "distances": bool(report["wrong"]),
        "data races": bool(report["data_races"]),
    }
    summary = Table.grid(padding=(0, 2))
    for name, line in lines.items():
        style = "bold red" if bad.get(name) else ""
        summary.add_row(Text(name, style="dim"), Text(line, style=style))
    parts: list[RenderableType] = [summary]
    accesses: list[Report] = []
    for race in report["data_races"] or ():
        pair = [race["first"], race["second"]]
        title = f"data race on {race['place']} in kernel {race['kernel']}"
        parts += ["", _accesses(pair, title, values=False)]
        accesses += pair
    if told is None:
        parts += ["", Text("No vertex has two rivals to discover it.", style="dim")]
    else:
        parts += ["", _accesses(told["accesses"], _told(told), values=True)]
        accesses += told["accesses"]
    if accesses:
        parts += ["", _code(accesses)]
    if report["replay"]:
        parts += ["", Text("replay", style="dim"), Text(f"  {report['replay']}")]
    return Group(*parts)


def _sums(report: Report) -> str:
    sums = [(f"{row['enqueued']:,}", row["schedules"]) for row in report["sums"]]
    if report["overflowed"]:
        sums.append(("more than the queue holds", report["overflowed"]))
    shown = [f"{total} ({_plural(schedules, 'schedule')})" for total, schedules in sums]
    if len(shown) > FIRST_SUMS + LAST_SUMS:
        shown[FIRST_SUMS:-LAST_SUMS] = ["..."]
    return f"vertices in all: {', '.join(shown)}"


def _data_races(races: list[Report] | None) -> str:
    if races is None:
        return "not looked for"
    if not races:
        return "none in one run"
    places = sorted({race["place"].partition("[")[0] for race in races})
    pairs = _plural(len(races), "pair")
    return f"{pairs} of accesses that nothing orders, to {', '.join(places)}, in one run"


def _told(told: Report) -> str:
    label = str(told["vertex_label"])
    name = "" if label == str(told["vertex"]) else f" ({label})"
    level = (
        "its level overflows the queue"
        if told["overflowed"]
        else f"level {told['level']} has {_plural(told['discoveries'], 'discovery')} of "
        f"{_plural(told['discovered'], 'vertex')}"
    )
    return f"seed {told['seed']}, vertex {told['vertex']}{name}: {level}"


def _accesses(accesses: list[Report], title: str, *, values: bool) -> Table:
    """A table of accesses in the order in which they happened."""
    own = ("before", "after") if values else ()
    columns = ("step", "block", "thread", "access", "place", *own, "line")
    table = _table(*columns, title=title, words=0)
    for column in table.columns:
        if column.header in ("access", "place", "line"):
            column.justify = "left"
    rows = [
        [
            *(str(access[name]) for name in ("step", "block", "thread", "access", "place")),
            *("unset" if access[name] is None else str(access[name]) for name in own),
            _line(access),
        ]
        for access in accesses
    ]
    return _fill(table, rows)


def _line(access: Report) -> str:
    return f"{access['file']}:{access['line']}" if access["line"] else str(access["file"])


def _code(accesses: Iterable[Report]) -> Table:
    """What the lines say that the accesses come from; beside them it would be too wide."""
    lines = {_line(access): access["code"] for access in accesses if access["code"]}
    listing = Table.grid(padding=(0, 2))
    for line, code in lines.items():
        listing.add_row(Text(line, style="dim"), code)
    return listing


def levels(report: Report) -> RenderableType:
    """Show the level table and, below it, its totals and the share of slots that carry an edge."""
    table = _table(
        *("level", "frontier", "edges", "max degree", "busiest", "warps"),
        *("thread slots", "warp slots", "edge slots"),
        title=f"{_graph(report)}; from {_source(report)}",
        words=0,
    )

    def cells(row: Report, level: str, busiest: str) -> list[str]:
        numbers = (row["frontier"], row["edges"], row["max_degree"])
        slots = row["lane_slots"].values()
        return [level, *map(_count, numbers), busiest, *map(_count, (row["warps"], *slots))]

    _fill(table, [cells(row, str(row["level"]), row["busiest"]) for row in report["rows"]])
    table.add_section()
    table.add_row(*cells(report["totals"], "total", ""), style="bold")
    shares = (f"{share:.1%}" for share in report["useful_share"].values())
    table.add_row("useful", *("",) * 5, *shares)
    return table


def choices(report: dict[str, list[Report]]) -> RenderableType:
    """Show every table of choices."""
    listing = Table.grid(padding=(0, 2))
    listing.add_column(no_wrap=True)
    listing.add_column()
    for what, rows in report.items():
        listing.add_row(Text(what, style="bold"), "")
        for row in rows:
            listing.add_row(f"  {row.get('name') or row['usage']}", _about(row))
    return listing


def _about(row: Report) -> str:
    if "usable" in row:
        return "usable" if row["usable"] else f"not usable: {row['problem']}"
    if "title" in row:
        return f"{row['title']} {' '.join(row['extensions'])}".strip()
    about = str(row.get("trade_off") or row.get("description") or row["file"])
    return about + ("" if row.get("installed", True) else "; not installed")


def resources(report: Report) -> RenderableType:
    """Registers and memory of each kernel."""
    policies = ("advance", "direction", "claim", "append", "frontier", "tier")
    columns = ("kernel", "mapping", *policies[1:], "registers", "shared", "local")
    table = _table(*columns, title=report["architecture"], words=1 + len(policies))
    rows = [
        [
            *(row[name] for name in ("kernel", *policies)),
            *(_count(row[name]) for name in ("registers", "shared_bytes", "local_bytes")),
        ]
        for row in report["rows"]
    ]
    return _fill(table, rows)


def study(report: Report) -> RenderableType:
    """Show where a study's report is, and the few figures that sum it up."""
    plan, device = report["plan"], report["device"]
    heading = (
        f"{device['name']}: {_plural(report['searches'], 'search')} by "
        f"{_plural(len(plan['engines']), 'engine')}, {'quick' if plan['quick'] else 'full'} form"
    )
    parts: list[RenderableType] = [Text(heading)]
    if report["levels"] is None:
        parts += ["", Text("Counts only: the emulated device tells no time.", style="dim")]
    else:
        table = _table("engine", "µs a level", "barrier", "loads", "rest", "model's worst error")
        worst = {row["engine"]: row["worst"] for row in report["models"]}
        for row in report["levels"]:
            cells = (row[name] for name in ("us_per_level", "barrier_us", "loads_us", "rest_us"))
            table.add_row(
                row["engine"],
                *("-" if cell is None else f"{cell:,.2f}" for cell in cells),
                f"{worst[row['engine']]:.1%}" if row["engine"] in worst else "-",
                style="bold green" if row["engine"] == report["best"] else "",
            )
        parts += ["", table]
    for line in report["refused"]:
        parts.append(Text(f"refused: {line}", style="yellow"))
    files = ", ".join(report["files"])
    return Group(*parts, "", Text(f"{report['folder']}: {files}"))


def diagnosis(report: Report) -> RenderableType:
    """Show each check, and under one that failed what to do."""
    marks = {
        True: Text("ok", style="green"),
        False: Text("no", style="bold red"),
        None: Text("-", style="dim"),
    }
    table = Table.grid(padding=(0, 2))
    for check in report["checks"]:
        table.add_row(marks[check["ok"]], check["name"], check["detail"])
        if check["remedy"] and not check["ok"]:
            table.add_row("", "", Text(f"-> {check['remedy']}", style="yellow"))
    return table


def plot_comparison(report: Report, file: IO[bytes], format: str) -> None:
    """Draw a comparison as bars: µs a level, or what is asked of host and device if untimed."""
    figure = importlib.import_module("matplotlib.figure").Figure(layout="constrained")
    axes = figure.add_subplot()
    rows = report["rows"][::-1]
    names = [f"{_loop(row)}, {row['advance']}" for row in rows]
    if any(row["us_per_level"] for row in rows):
        axes.barh(names, [row["us_per_level"] or 0 for row in rows])
        axes.set_xlabel("µs a level, median")
    else:
        left = [0] * len(rows)
        for what in ("launches", "host_syncs", "barriers"):
            values = [row[what] for row in rows]
            axes.barh(names, values, left=left, label=what.replace("_", " "))
            left = [a + b for a, b in zip(left, values, strict=True)]
        axes.set_xlabel("asked of host and device in one search (no time on this device)")
        axes.legend()
    axes.set_title(f"{report['graph']}, {report['levels']:,} levels, {report['device_name']}")
    figure.savefig(file, format=format)
