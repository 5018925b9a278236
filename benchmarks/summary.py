"""Turn what was recorded into the tables and the picture that README and docs show.

    python benchmarks/summary.py benchmarks/results/h200 --page README.md --plot docs/h200.svg

Nothing is typed: every figure comes from the recorded JSON, whose searches were all verified. A
table goes between two comments that name it (`TABLES`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from persistent_bfs.config import ENGINES

Report = dict[str, Any]

ORDER = (
    "path-10000",
    "maze512",
    "FLA",
    "luxembourg",
    "grid-512x512",
    "NY",
    "words-kjv",
    "kron-20",
)


def load(folder: Path) -> dict[str, Report]:
    """The recorded comparisons of ``folder`` by graph, deepest first."""
    reports = {name: json.loads((folder / f"{name}.json").read_text()) for name in ORDER}
    for name, report in reports.items():
        wrong = [row for row in report["rows"] if not row["verified"]]
        if wrong:
            raise click.ClickException(f"{name}: {len(wrong)} rows are not verified")
    return reports


WITH_TIER = " + tier"

# A column each: every engine, and with a tier those that have one.
LOOPS = [*ENGINES, *(name + WITH_TIER for name, engine in ENGINES.items() if engine.tiers)]


def best(report: Report, loop: str) -> Report | None:
    """The row of a loop's fastest mapping; None where a graph has no tier."""
    engine = loop.removesuffix(WITH_TIER)
    rows = [
        row
        for row in report["rows"]
        if row["engine"] == engine and (row["tier"] != "none") == (loop != engine)
    ]
    return min(rows, key=lambda row: float(row["ms"]["median"]), default=None)


def table(folder: Path) -> str:
    """The README's table: microseconds a level, by graph and engine, the best of its mappings."""
    reports = load(folder)
    head = ["graph", "vertices", "levels", *LOOPS, "best search", "against `host_loop`"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name, report in reports.items():
        rows = [best(report, loop) for loop in LOOPS]
        fastest = min(filter(None, rows), key=lambda row: float(row["ms"]["median"]))
        host = best(report, "host_loop")
        assert host is not None
        levels = [f"{row['us_per_level']:.2f}" if row else "-" for row in rows]
        lines.append(
            f"| {name} | {report['vertices']:,} | {report['levels']:,} | "
            + " | ".join(levels)
            + f" | {fastest['ms']['median']:.3g} ms"
            + f" | {host['ms']['median'] / fastest['ms']['median']:.1f}x |"
        )
    first = next(iter(reports.values()))
    environment = first["environment"]
    lines += [
        "",
        f"{first['device_name']}, driver {environment['driver']}; microseconds a level by the "
        f"device's clock, reset included, median of {first['repeat']}, the best mapping of each "
        f"engine, every answer verified. From `{folder.as_posix()}`.",
    ]
    return "\n".join(lines)


def deep_table(folder: Path) -> str:
    """The table of deep graphs in docs/performance.md: milliseconds, and what was chosen."""
    report = json.loads((folder / "deep.json").read_text())
    found: dict[str, dict[str, Report]] = {}
    for row in report["rows"]:
        found.setdefault(row["graph"], {})[row["choice"]] = row
    lines = [
        "| graph | levels | host_loop | persistent, no tier | auto | min - max | cold L2 | tier "
        "| µs a level | against host_loop | wall - device, µs |",
        "|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for graph, rows in found.items():
        auto, host = rows["auto"], rows["host_loop"]
        ms, levels = auto["ms"], auto["levels"]
        lines.append(
            f"| {graph} | {levels:,} | {host['ms']['median']:.3g} "
            f"| {rows['persistent, no tier']['ms']['median']:.3g} | {ms['median']:.3g} "
            f"| {ms['min']:.3g} - {ms['max']:.3g} "
            f"| {rows['auto, cold L2']['ms']['median']:.3g} | {auto['tier']} "
            f"| {1e3 * ms['median'] / levels:.2f} | {host['ms']['median'] / ms['median']:.0f}x "
            f"| {1e3 * (auto['wall_ms']['median'] - ms['median']):.0f} |"
        )
    lines += [
        "",
        f"(`deep.json`: {report['device']}, driver {report['driver']}, median of "
        f"{searches(report)}, from vertex 0, the last three from the vertex of largest degree. "
        "Cold L2: as auto, where the cache holds nothing of the graph when the search begins.)",
    ]
    return "\n".join(lines)


def searches(report: Report) -> int:
    """Timed searches a row of a sweep, in all its passes; before there were any, in one."""
    return int(report["repeat"]) * int(report.get("passes", 1))


def wide_table(folder: Path) -> str:
    """The table of wide graphs in docs/performance.md: a line a graph and choice."""
    report = json.loads((folder / "wide.json").read_text())
    lines = [
        "| graph | levels | at most | reach for | choice | ms | min - max | GTEPS, edges "
        "| GTEPS, arcs | random sources: GTEPS, edges | GTEPS, arcs | bytes an arc | a vertex |",
        "|---|---:|---:|---:|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for graph in report["graphs"]:
        bars = [f"{graph[bar]:g}" if graph[bar] else "-" for bar in ("at_most_ms", "reach_for_ms")]
        for row in graph["rows"]:
            if not row["verified"]:
                continue
            ms, many, memory = row["ms"], row["from_many"], row["memory"]
            means = [
                f"{many[f'harmonic_mean_{name}'] / 1e9:.1f}" if many else "-"
                for name in ("teps_edges", "teps_arcs")
            ]
            lines.append(
                f"| {graph['graph']} | {row['levels']} | {' | '.join(bars)} | {row['choice']} "
                f"| {ms['median']:.4f} | {ms['min']:.4f} - {ms['max']:.4f} "
                f"| {row['teps_edges'] / 1e9:.1f} | {row['teps_arcs'] / 1e9:.1f} "
                f"| {' | '.join(means)} | {memory['bytes_an_arc']:.1f} "
                f"| {memory['bytes_a_vertex']:.1f} |"
            )
    lines += [
        "",
        f"(`wide.json`: {report['device']}, driver {report['driver']}, median of "
        f"{report['repeat']} from the vertex of largest degree; harmonic means over random sources "
        "of positive degree, every answer verified; edges are those of the reached component, half "
        "its stored arcs.)",
    ]
    return "\n".join(lines)


def short_wide_table(folder: Path) -> str:
    """The table of wide graphs in README.md: what `auto` takes, a line a graph."""
    report = json.loads((folder / "wide.json").read_text())
    lines = [
        "| graph | vertices | arcs | levels | ms | billion edges a second |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for graph in report["graphs"]:
        (row,) = [row for row in graph["rows"] if row["choice"] == "auto" and row["verified"]]
        lines.append(
            f"| {graph['graph']} | {graph['vertices']:,} | {graph['arcs']:,} | {row['levels']} "
            f"| {row['ms']['median']:.3f} | {row['teps_edges'] / 1e9:,.1f} |"
        )
    lines += [
        "",
        f"(`wide.json`: {report['device']}, driver {report['driver']}; what `run` and `BFS` choose "
        f"by themselves, median of {report['repeat']} from the vertex of largest degree, every "
        "answer verified; the edges of the reached component, half its stored arcs, over the "
        "device's time.)",
    ]
    return "\n".join(lines)


def levels_table(folder: Path) -> str:
    """The table of bytes moved in docs/performance.md: a line a level."""
    report = json.loads((folder / "bytes-moved.json").read_text())
    lines = [
        "| level | direction | frontier | edges looked at | DRAM, MB | L2, MB | persistent, µs "
        "| of the copy rate |",
        "|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for level in report["levels"]:
        ns, share = level["persistent_ns"], level["share_of_copy_rate"]
        lines.append(
            f"| {level['level']} | {level['direction']} | {level['frontier']:,} "
            f"| {level['edges']:,} | {level['dram_bytes'] / 1e6:.2f} "
            f"| {level['l2_bytes'] / 1e6:.2f} | {'-' if ns is None else f'{ns / 1e3:.1f}'} "
            f"| {'-' if share is None else f'{100 * share:.0f} %'} |"
        )
    copied = report["copy_gb_per_second"]
    rate = f"{copied['median']:,.0f} GB/s" if copied else "not timed"
    lines += [
        "",
        f"(`bytes-moved.json`: {report['graph']} from the vertex of largest degree, "
        f"{report['device']}, driver {report['driver']}; bytes read and written by Nsight Compute, "
        "of one kernel a level of `host_loop`; times by the trace of `persistent`, median of "
        f"{report['repeat']}; a copy, read and written: {rate}; every answer verified.)",
    ]
    return "\n".join(lines)


def trace_table(folder: Path) -> str:
    """The table of what the trace costs in docs/performance.md: a line a graph and tier."""
    report = json.loads((folder / "trace-cost.json").read_text())
    lines = [
        "| graph | tier | levels | off, ms | on, ms | % (its error) | ns a level |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in report["rows"]:
        error = "" if row["percent_error"] is None else f" ({row['percent_error']:.1f})"
        lines.append(
            f"| {row['graph']} | {row['tier']} | {row['levels']:,} "
            f"| {row['untraced_ms']['median']:.4g} | {row['traced_ms']['median']:.4g} "
            f"| {row['percent']:+.1f}{error} | {row['ns_a_level']:+.0f} |"
        )
    lines += [
        "",
        f"(`trace-cost.json`: {report['device']}, driver {report['driver']}, median of "
        f"{searches(report)}, on and off in turn; % by the means of {report['passes']} sessions "
        "each, opened first as often, with its standard error; every answer and every trace "
        "verified.)",
    ]
    return "\n".join(lines)


def orders_table(folder: Path) -> str:
    """The table of vertex orders in docs/performance.md: a line a graph, a column an order."""
    report = json.loads((folder / "sweep-orders.json").read_text())
    found: dict[str, dict[str, Report]] = {}
    for row in report["rows"]:
        found.setdefault(row["graph"], {})[row["choice"]] = row
    orders = list(next(iter(found.values())))
    lines = ["| graph | " + " | ".join(orders) + " |", "|---|" + "---:|" * len(orders)]
    for graph, rows in found.items():
        cells = [
            f"{rows[order]['ms']['median']:.3g}"
            + (f" ({rows[order]['reorder_ms']:,.0f})" if rows[order]["reorder_ms"] else "")
            for order in orders
        ]
        lines.append(f"| {graph} | " + " | ".join(cells) + " |")
    lines += [
        "",
        f"(`sweep-orders.json`: {report['device']}, driver {report['driver']}, milliseconds, "
        f"median of {searches(report)}, every answer verified; in brackets what the host took "
        "to make the order.)",
    ]
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[Path], str]] = {
    "table": table,
    "deep": deep_table,
    "wide": wide_table,
    "wide_in_short": short_wide_table,
    "levels": levels_table,
    "trace": trace_table,
    "orders": orders_table,
}
"""Every table, by the name that the comments around it have."""


def plot(folder: Path, file: Path) -> None:
    """A bar a graph and engine, on a logarithmic axis."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "persistent_bfs"
    reports = load(folder)
    figure, axes = plt.subplots(figsize=(10, 4.2), layout="constrained")
    width = 0.8 / len(LOOPS)
    for number, loop in enumerate(LOOPS):
        rows = [best(report, loop) for report in reports.values()]
        heights = [row["us_per_level"] if row else 0 for row in rows]
        centre = (len(LOOPS) - 1) / 2
        places = [place + (number - centre) * width for place in range(len(reports))]
        axes.bar(places, heights, width, label=loop)
    labels = [f"{name}\n{report['levels']:,} levels" for name, report in reports.items()]
    axes.set_xticks(range(len(reports)), labels, fontsize=8)
    axes.set_yscale("log")
    axes.set_ylabel("microseconds a level")
    device = next(iter(reports.values()))["device_name"]
    axes.set_title(f"One level of a breadth-first search, {device}")
    axes.grid(axis="y", which="both", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(ncols=len(LOOPS), fontsize=8)
    figure.savefig(file, metadata={"Date": None})


def fill(page: str, folder: Path) -> str:
    """``page`` with every table that it has a place for, as recorded in ``folder``."""
    places = 0
    for name, make in TABLES.items():
        marked = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        if re.search(marked, page, flags=re.S):
            text = make(folder)
            page = re.sub(marked, lambda at, text=text: f"{at[1]}{text}\n{at[2]}", page, flags=re.S)
            places += 1
    if not places:
        raise click.ClickException(
            "the page has no <!-- table --> ... <!-- end of table --> to fill"
        )
    return page


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Write the picture here.")
@click.option(
    "--page",
    "pages",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Fill in this page's tables; may be given several times.",
)
def main(folder: Path, picture: Path | None, pages: tuple[Path, ...]) -> None:
    """Show the table of the comparisons recorded in FOLDER."""
    for page in pages:
        page.write_text(fill(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    if picture:
        plot(folder, picture)
    click.echo(table(folder))


if __name__ == "__main__":
    main()
