"""Taking a study: all that is measured, in one JSON object with what it depends on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from persistent_bfs.compiler import CompileError
from persistent_bfs.config import ENGINES, TIERS
from persistent_bfs.device.base import Device, DeviceError
from persistent_bfs.measure import describe_clocks, describe_environment
from persistent_bfs.study import primitives
from persistent_bfs.study.model import BASELINE, median
from persistent_bfs.study.plan import VARIANTS, Plan
from persistent_bfs.study.sweeps import GRAPHS, Task, add_pass, search_rows, tasks

Study = dict[str, Any]
Progress = Callable[[str, int, int], None]

FORMAT = "persistent_bfs study"
VERSION = 2

PARTS = (
    *("plan", "engines", "device", "environment", "clocks"),
    *("incomplete", "primitives", "searches"),
)

# Samples are kept to so many significant digits, a thousandth of what the clocks can tell apart.
DIGITS = 6

PRIMITIVE_PARTS = ("primitive", "title", "unit", "skipped", "points")
SEARCH_PARTS = ("sweep", "name", "graph", "vertices", "arcs", "source", "engine", "refused")
FOUND_PARTS = (
    *(
        "ran",
        "shape",
        "tier",
        "block_threads",
        "levels",
        "reached",
        "edges",
        "launches",
        "host_syncs",
        "barriers",
        "batch",
    ),
    *("counts", "device_ms", "wall_ms", "regimes", "trace", "stands_in"),
)


def take(device: Device, plan: Plan, *, progress: Progress | None = None) -> Study:
    """Measure all of a plan on a device.

    Parameters
    ----------
    device : Device
    plan : Plan
    progress : callable, optional
        Called as ``progress(description, done, total)``.

    Returns
    -------
    dict
        As ``study.json`` keeps it: every sample, the plan, the device and its clocks as found. If
        it was interrupted, or the device failed for good, what was measured until then; its
        ``incomplete`` then says why, and how much is missing.

    Raises
    ------
    ValueError
        The plan names a graph or engine that is not there.
    DeviceError
        The device failed before anything was measured. A search whose answer is wrong, that an
        engine refuses or that fails, is a row that says so and has no time.
    CompileError
        The compiler is missing or refused.
    """
    tell = progress or (lambda _description, _done, _total: None)
    searched = tasks(plan)
    total = len(primitives.PRIMITIVES) + len(searched) * len(plan.engines)
    done = 0
    tell("compiling", 0, total)
    device.compile(primitives.CONFIG)
    clocks = {"before": describe_clocks(device.info)}
    rows: list[dict[str, Any]] = []
    searches: dict[tuple[str, str, str], dict[str, Any]] = {}
    incomplete = None
    try:
        for row in _measured(device, plan, searched, tell, total):
            done += 1
            if "primitive" in row:
                rows.append(row)
                continue
            key = row["sweep"], row["name"], row["engine"]
            if key in searches:
                add_pass(searches[key], row)
            else:
                searches[key] = row
    except (KeyboardInterrupt, DeviceError, CompileError) as why:
        if not rows:
            raise
        incomplete = {
            "reason": " ".join(str(why).split()) or "interrupted",
            "interrupted": isinstance(why, KeyboardInterrupt),
            "missing": total - done,
            "of": total,
        }
    kept = list(searches.values())
    keep_two_timelines(kept)
    clocks["after"] = describe_clocks(device.info)
    info = device.info
    return rounded(
        {
            "format": FORMAT,
            "version": VERSION,
            "plan": plan.summary(),
            "engines": describe_engines(plan.engines),
            "device": {"kind": info.kind, "name": info.name, "architecture": info.architecture},
            "environment": describe_environment(info),
            "clocks": clocks,
            "incomplete": incomplete,
            "primitives": rows,
            "searches": kept,
        }
    )


def _measured(
    device: Device, plan: Plan, searched: list[tuple[Task, int]], tell: Progress, total: int
) -> Iterator[dict[str, Any]]:
    """Rows as they are measured, of the primitives and then of searches."""
    done = 0
    effort = primitives.Effort.of(device.info.kind, plan.quick)
    with primitives.Bench(device, effort) as bench:
        for primitive in primitives.PRIMITIVES.values():
            tell(primitive.title, done, total)
            yield primitives.measure_primitive(bench, primitive)
            done += 1
    for task, repeat in searched:
        tell(f"{task.name}: preparing", done, total)
        for row in search_rows(device, plan, task, repeat):
            yield row
            done += 1
            tell(f"{task.name}, {row['engine']}", done, total)


def rounded(study: Study) -> Study:
    """The study with its samples as `DIGITS` significant digits tell them; again, it is the same.

    So a report of what was just measured and one of what was kept say the same.
    """

    def short(samples: list[float] | None) -> list[float] | None:
        return samples and [float(f"{sample:.{DIGITS}g}") for sample in samples]

    for row in study["primitives"]:
        for point in row["points"]:
            point["samples"] = short(point["samples"])
    for row in study["searches"]:
        if not row["refused"]:
            row["device_ms"], row["wall_ms"] = short(row["device_ms"]), short(row["wall_ms"])
    return study


def describe_engines(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What a report must know of engines that may have changed by the time it is made.

    By their names in `VARIANTS`; ``in_tier`` is how the trace calls levels that a tier ran.
    """
    in_tier = [mapping for row in TIERS.values() for mapping in row.mappings]
    return {
        name: {
            "engine": row.name,
            "cooperative": row.cooperative,
            "while_nodes": row.while_nodes,
            "in_tier": in_tier if row.tiers else [],
        }
        for name, row in ((name, ENGINES[VARIANTS[name]["engine"]]) for name in names)
    }


def keep_two_timelines(searches: list[dict[str, Any]]) -> None:
    """Of each graph's traces keep those of the baseline and of the fastest engine.

    Where there is no time, only the baseline's: the others have the same levels.
    """
    by_graph: dict[str, list[dict[str, Any]]] = {}
    for row in searches:
        if row["sweep"] == GRAPHS and not row["refused"]:
            by_graph.setdefault(row["name"], []).append(row)
    for rows in by_graph.values():
        timed = [row for row in rows if row["device_ms"]]
        fastest = min(timed, key=median)["engine"] if timed else BASELINE
        for row in rows:
            if row["engine"] not in (BASELINE, fastest):
                row["trace"] = None


def read(path: Path) -> Study:
    """A kept study.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no study, or one of another version; the message says so in one line.
    """
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a study: it is not text") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a study: line {error.lineno}: {error.msg}") from None
    if not isinstance(kept, dict) or kept.get("format") != FORMAT:
        raise ValueError(f"{path} is not a study: it does not say that it is one")
    if kept.get("version") != VERSION:
        raise ValueError(
            f"{path} is a study of version {kept.get('version')!r}; this program reads {VERSION}"
        )
    for part in PARTS:
        if part not in kept:
            raise ValueError(f"{path} is not a whole study: it has no {part!r}")
    try:
        Plan.from_summary(kept["plan"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a whole study: its plan: {error}") from None
    _require(path, kept["engines"], tuple(kept["plan"]["engines"]), "its table of engines")
    for row in kept["primitives"]:
        _require(path, row, PRIMITIVE_PARTS, "a primitive")
    for row in kept["searches"]:
        _require(path, row, SEARCH_PARTS, "a search")
        if not row["refused"]:
            _require(path, row, FOUND_PARTS, f"the search of {row['name']}")
    return rounded(kept)


def _require(path: Path, row: Any, parts: tuple[str, ...], what: str) -> None:
    for part in parts:
        if not isinstance(row, dict) or part not in row:
            raise ValueError(f"{path} is not a whole study: {what} has no {part!r}")


def dump(study: Study) -> str:
    """A study as the text of ``study.json``: an object, a line a primitive and a search."""
    lines = []
    for name, value in study.items():
        if name in ("primitives", "searches"):
            rows = ",\n".join(_compact(row) for row in value)
            lines.append(f'"{name}": [\n{rows}\n]')
        else:
            lines.append(f'"{name}": {_compact(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    """JSON on one line, whose arrays of numbers, which are nearly all of it, take no spaces."""
    if isinstance(value, dict):
        told = (f"{_compact(name)}: {_compact(part)}" for name, part in value.items())
        return f"{{{', '.join(told)}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(map(_compact, value))}]"
    separator = "," if isinstance(value, list) and value and _is_number(value[0]) else ", "
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(separator, ": "))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
