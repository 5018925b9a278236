"""Turn recorded comparisons into the table and the picture that the README shows.

    python benchmarks/summary.py benchmarks/results/h200 [--plot docs/h200.svg] [--readme README.md]

Nothing is typed: every figure comes from the recorded JSON, whose searches were all verified. For
each engine the best of its mappings is shown, by median device time.
"""

from __future__ import annotations

import json
import re
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
    """The README's table: microseconds a level, by graph and engine."""
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
        "| graph | levels | host_loop | persistent, no tier | auto | min - max | tier | µs a level "
        "| against host_loop | wall - device, µs |",
        "|---|---:|---:|---:|---:|---:|---|---:|---:|---:|",
    ]
    for graph, rows in found.items():
        auto, host = rows["auto"], rows["host_loop"]
        ms, levels = auto["ms"], auto["levels"]
        lines.append(
            f"| {graph} | {levels:,} | {host['ms']['median']:.3g} "
            f"| {rows['persistent, no tier']['ms']['median']:.3g} | {ms['median']:.3g} "
            f"| {ms['min']:.3g} - {ms['max']:.3g} | {auto['tier']} "
            f"| {1e3 * ms['median'] / levels:.2f} | {host['ms']['median'] / ms['median']:.0f}x "
            f"| {1e3 * (auto['wall_ms']['median'] - ms['median']):.0f} |"
        )
    lines += [
        "",
        f"(`deep.json`: {report['device']}, driver {report['driver']}, median of "
        f"{report['repeat']}, from vertex 0; the last three from the vertex of largest degree.)",
    ]
    return "\n".join(lines)


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


def insert(page: str, text: str, what: str = "table") -> str:
    """``page`` with what is between the markers of ``what`` replaced by ``text``."""
    marked = rf"(<!-- {what} -->\n).*?(<!-- (?:end of |/){what} -->)"
    filled, places = re.subn(marked, lambda at: f"{at[1]}{text}\n{at[2]}", page, flags=re.S)
    if not places:
        raise click.ClickException(f"there is no <!-- {what} --> ... <!-- /{what} --> to fill")
    return filled


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="Write the picture here.")
@click.option("--readme", type=click.Path(path_type=Path), help="Put the table into this file.")
@click.option("--deep", type=click.Path(path_type=Path), help="Put that of deep graphs here.")
@click.option("--wide", type=click.Path(path_type=Path), help="Put that of wide graphs here.")
@click.option("--levels", type=click.Path(path_type=Path), help="Put that of bytes moved here.")
def main(
    folder: Path,
    picture: Path | None,
    readme: Path | None,
    deep: Path | None,
    wide: Path | None,
    levels: Path | None,
) -> None:
    """Show the table of the comparisons recorded in FOLDER."""
    text = table(folder)
    if picture:
        plot(folder, picture)
    if readme:
        readme.write_text(insert(readme.read_text(), text))
    if deep:
        deep.write_text(insert(deep.read_text(), deep_table(folder), "deep"))
    if wide:
        wide.write_text(insert(wide.read_text(), wide_table(folder), "wide"))
    if levels:
        levels.write_text(insert(levels.read_text(), levels_table(folder), "levels"))
    click.echo(text)


if __name__ == "__main__":
    main()
