"""Two studies side by side, of two machines or two revisions; refused if not measured alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from persistent_bfs.measure import Timing
from persistent_bfs.study.blocks import (
    Block,
    Heading,
    Paragraph,
    Picture,
    Table,
    number,
    told_point,
)
from persistent_bfs.study.model import (
    BLOCK,
    EDGE,
    EMPTY,
    FIXED,
    LEVEL,
    analyse,
    mean_frontier,
    median,
)
from persistent_bfs.study.sweeps import DEPTH, GRAPHS, WIDTH

Row = Mapping[str, Any]

# What may differ: it is what is compared. All else of a plan must be the same.
COMPARED = ("engines",)

SEARCHED = ("vertices", "arcs", "source")


def differences(here: Row, there: Row) -> list[str]:
    """Where the set-ups of two studies differ, a line each; empty if they may be compared."""
    found = []
    for name in here["plan"]:
        if name in COMPARED:
            continue
        mine, other = here["plan"][name], there["plan"].get(name)
        if mine != other:
            found.append(f"{name.replace('_', ' ')}: {_short(mine)} and {_short(other)}")
    graphs = _graphs(there)
    for key, mine in _graphs(here).items():
        other = graphs.get(key)
        if other is not None and mine != other:
            pairs = zip(SEARCHED, mine, other, strict=True)
            told = ", ".join(f"{what} {a:,} and {b:,}" for what, a, b in pairs if a != b)
            found.append(f"{key[1]}: {told}")
    return found


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} ({', '.join(map(str, value[-2:]))})" if value else "none"
    return (
        {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


def _graphs(study: Row) -> dict[tuple[str, str], tuple[int, ...]]:
    return {
        (row["sweep"], row["name"]): tuple(row[what] for what in SEARCHED)
        for row in study["searches"]
    }


def refuse_unequal(here: Row, there: Row) -> None:
    """Refuse to compare what was not measured alike.

    Raises
    ------
    ValueError
        Naming every difference, in one line.
    """
    found = differences(here, there)
    if found:
        raise ValueError(f"these studies cannot be compared: {'; '.join(found)}")


def beside(here: Row, there: Row, names: tuple[str, str]) -> Iterator[Block]:
    """Put two studies of the same set-up side by side.

    Raises
    ------
    ValueError
        As `refuse_unequal`.
    """
    refuse_unequal(here, there)
    yield Heading(2, "Beside another study")
    yield Table(
        ("what", *names),
        tuple(
            (what, str(mine), str(other))
            for what, mine, other in (
                ("device", here["device"]["name"], there["device"]["name"]),
                *(
                    (name.replace("_", " "), value, there["environment"].get(name))
                    for name, value in here["environment"].items()
                ),
            )
        ),
        "What the two were measured with. The set-up, that is graphs, sources, repetitions and the "
        "state of L2, is the same.",
        words=3,
    )
    left_out = sorted(set(here["plan"]["engines"]) ^ set(there["plan"]["engines"]))
    if left_out:
        yield Paragraph(f"Left out, being in one of them only: {', '.join(left_out)}.")
    if analyse(here) is None:
        yield _counts(here, there, names)
        return
    yield _primitives(here, there, names)
    yield _coefficients(here, there, names)
    for which, label, axis in (
        (DEPTH, "levels", lambda row: float(row["levels"])),
        (WIDTH, "vertices a level, on average", mean_frontier),
    ):
        yield _ratios(here, there, which, label, axis)
    yield _whole_graphs(here, there, names)


def _ratio(mine: float, other: float) -> str:
    return number(mine / other) if other else "-"


def _primitives(here: Row, there: Row, names: tuple[str, str]) -> Table:
    others = {
        (row["primitive"], told_point(point["point"])): point
        for row in there["primitives"]
        for point in row["points"]
    }
    rows = []
    for row in here["primitives"]:
        for point in row["points"]:
            other = others.get((row["primitive"], told_point(point["point"])))
            if other is None or not other["samples"] or not point["samples"]:
                continue
            mine, its = (Timing(tuple(each["samples"])).median for each in (point, other))
            rows.append(
                (
                    row["title"],
                    told_point(point["point"]),
                    row["unit"],
                    number(mine),
                    number(its),
                    _ratio(mine, its),
                )
            )
    return Table(
        ("primitive", "point", "unit", *names, "ratio"),
        tuple(rows),
        "Medians of each primitive at the points that both have, and the first over the second.",
        words=3,
    )


def _coefficients(here: Row, there: Row, names: tuple[str, str]) -> Table:
    mine, its = analyse(here), analyse(there)
    assert mine is not None
    rows = []
    if its is not None:
        for engine, model in mine.simple.items():
            other = its.simple.get(engine)
            if other is None:
                continue
            for term, title, scale in (
                (FIXED, "fixed, µs", 1e3),
                (LEVEL, "per level, µs", 1e3),
                (BLOCK, "per level and further block, ns", 1e6),
                (EMPTY, "per empty level, µs", 1e3),
                (EDGE, "per edge, ns", 1e6),
            ):
                pair = model.value(term) * scale, other.value(term) * scale
                if term in (BLOCK, EMPTY) and not any(pair):
                    continue
                rows.append((engine, title, *map(number, pair), _ratio(*pair)))
    return Table(
        ("engine", "coefficient", *names, "ratio"),
        tuple(rows),
        "The models' coefficients; those of one regime an engine.",
        words=2,
    )


def _pairs(here: Row, there: Row, which: str) -> Iterator[tuple[Row, Row]]:
    others = {
        (row["name"], row["engine"]): row
        for row in there["searches"]
        if row["sweep"] == which and row.get("device_ms")
    }
    for row in here["searches"]:
        if row["sweep"] == which and row.get("device_ms"):
            other = others.get((row["name"], row["engine"]))
            if other is not None:
                yield row, other


def _ratios(here: Row, there: Row, which: str, label: str, axis: Callable[[Row], float]) -> Picture:
    lines: dict[str, list[tuple[float, float]]] = {}
    for mine, other in _pairs(here, there, which):
        lines.setdefault(mine["engine"], []).append((axis(mine), median(mine) / median(other)))

    def draw(name: str) -> str:
        from persistent_bfs.study import plots

        return plots.ratios(name, lines, label)

    return Picture(
        f"{which}-ratios",
        draw,
        f"The {which} sweep: median time here over median time there. Under 1, this study is the "
        "faster one.",
    )


def _whole_graphs(here: Row, there: Row, names: tuple[str, str]) -> Table:
    return Table(
        ("graph", "engine", *(f"{name}, ms" for name in names), "ratio"),
        tuple(
            (
                mine["name"],
                mine["engine"],
                number(median(mine)),
                number(median(other)),
                _ratio(median(mine), median(other)),
            )
            for mine, other in _pairs(here, there, GRAPHS)
        ),
        "Searches of the suite's graphs, by medians.",
        words=2,
    )


COUNTED = ("launches", "host_syncs", "barriers", "atomics", "lane_slots")


def _counts(here: Row, there: Row, names: tuple[str, str]) -> Table:
    others = {_search(row): row for row in there["searches"] if not row["refused"]}
    rows = []
    for row in here["searches"]:
        other = others.get(_search(row))
        if row["refused"] or other is None:
            continue
        for what in COUNTED:
            mine, its = _counted(row, what), _counted(other, what)
            if mine != its:
                rows.append(
                    (row["name"], row["engine"], what.replace("_", " "), f"{mine:,}", f"{its:,}")
                )
    same = "" if rows else " There is none: all counts are equal."
    return Table(
        ("graph", "engine", "what", *names),
        tuple(rows),
        f"Counts that differ between the two.{same}",
        words=3,
    )


def _search(row: Row) -> Sequence[str]:
    return row["sweep"], row["name"], row["engine"]


def _counted(row: Row, what: str) -> int:
    return int(row[what] if what in row else (row["counts"] or {}).get(what, 0))
