"""Ratios to the baseline of the same run: what can be compared where times cannot.

A plugin: it prints, group by group, each loop's median over the baseline's, and with
``--compare-ratios`` makes ``--benchmark-compare-fail`` compare those ratios with the ratios of the
run compared with, so that a slower clock or a busier host is not taken for a regression.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import pytest

from persistent_bfs.study.model import BASELINE
from persistent_bfs.study.plan import VARIANTS

LOOPS: Mapping[str, Mapping[str, str]] = {
    name.replace(",", "").replace(" ", "-"): how for name, how in VARIANTS.items()
}
"""Who runs the level loop, as the benchmarks' ids name it, and how a session is made of it."""


def is_baseline(name: str) -> bool:
    """Whether a benchmark's id is of the baseline: ``test_search[path-100-host_loop]``."""
    return name.endswith((f"-{BASELINE}]", f"[{BASELINE}]"))


def baseline_of(name: str, others: Container[str]) -> str | None:
    """The id of the baseline beside ``name``: the same test and graph."""
    for loop in LOOPS:
        for end in (f"-{loop}]", f"[{loop}]"):
            if name.endswith(end):
                wanted = name.removesuffix(end) + end.replace(loop, BASELINE)
                return wanted if wanted in others else None
    return None


def ratios(values: Mapping[str, float]) -> dict[str, float]:
    """Each engine's value over that of the baseline beside it; others are left out.

    Examples
    --------
    >>> ratios({"t[g-host_loop]": 4.0, "t[g-persistent]": 1.0, "t[h-persistent]": 1.0})
    {'t[g-host_loop]': 1.0, 't[g-persistent]': 0.25}
    """
    beside = {name: baseline_of(name, values) for name in values}
    return {name: values[name] / values[base] for name, base in beside.items() if base}


class RatioCheck:
    """A check of ``--benchmark-compare-fail``, of the ratio in place of the time."""

    def __init__(self, check: Any, session: Any) -> None:
        self.check = check
        self.session = session

    def fails(self, current: Any, compared: Mapping[str, Any]) -> str | None:
        """What the check says of the ratios; None where there is no baseline in both runs."""
        field = self.check.field
        now = {bench.fullname: bench[field] for bench in self.session.benchmarks if bench}
        kept = self.session.compared_mapping[_path(self.session, compared["path"])]
        before = {name: bench["stats"][field] for name, bench in kept.items()}
        name = current.fullname
        if is_baseline(name):
            return None
        here, there = ratios(now).get(name), ratios(before).get(name)
        if here is None or there is None:
            return None
        failed: str | None = self.check.fails({field: here}, {field: there})
        return failed and f"ratio to {BASELINE}: {failed}"


def _path(session: Any, path: str) -> Any:
    """The run's own key of a path that was made a string."""
    (found,) = (key for key in session.compared_mapping if str(key) == path)
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("persistent_bfs").addoption(
        "--compare-ratios",
        action="store_true",
        help=f"--benchmark-compare-fail compares ratios to {BASELINE} in the same run, not times",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Put the checks of ratios in the place of those of times."""
    benchmarks = getattr(session.config, "_benchmarksession", None)
    if session.config.getoption("--compare-ratios") and benchmarks and benchmarks.compare_fail:
        checks = [RatioCheck(check, benchmarks) for check in benchmarks.compare_fail]
        benchmarks.compare_fail = checks


def show(terminal: Any, benchmarks: Iterable[Any]) -> None:
    """Print the ratios, group by group, the smallest first."""
    groups: dict[str, dict[str, float]] = {}
    for bench in benchmarks:
        if bench and bench.stats.data:
            groups.setdefault(bench.group or "", {})[bench.fullname] = bench["median"]
    shown = {group: ratios(values) for group, values in groups.items()}
    shown = {group: found for group, found in shown.items() if found}
    if not shown:
        return
    terminal.section(f"medians over {BASELINE} of the same run", sep="-")
    for group, found in shown.items():
        terminal.write_line(group, bold=True)
        for name, ratio in sorted(found.items(), key=lambda pair: pair[1]):
            terminal.write_line(f"  {ratio:9.4f}  {name.rpartition('::')[2]}")
