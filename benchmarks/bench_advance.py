"""Every mapping on every graph of the suite, by the first engine whose loop is in one kernel.

Without a tier, which would run narrow levels its own way whatever the mapping.
"""

from __future__ import annotations

from typing import Any

import pytest
from searches import prepared, run_search

from persistent_bfs import ADVANCES, ENGINES
from persistent_bfs.study.suite import SUITE, Case
from persistent_bfs.tiers import NONE

ENGINE = next(name for name, row in ENGINES.items() if row.cooperative)


@pytest.mark.parametrize("advance", ADVANCES)
@pytest.mark.parametrize("case", SUITE, ids=str)
def test_mapping(benchmark: Any, device: Any, l2: str, case: Case, advance: str) -> None:
    searched = prepared(case, device)
    levels = len(searched.expected.frontier_sizes)
    if not ADVANCES[advance].by_frontier and levels * searched.graph.arcs > 1 << 32:
        pytest.skip(f"{advance} looks at the whole graph at each of {levels:,} levels")
    benchmark.group = str(case)
    run_search(benchmark, device, searched, l2, engine=ENGINE, advance=advance, tiers=NONE)
