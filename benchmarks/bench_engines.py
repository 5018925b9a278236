"""Every engine on every graph of the suite.

``pytest benchmarks`` runs on a GPU if one can be used, else small graphs on the emulated device.
"""

from __future__ import annotations

from typing import Any

import pytest
from searches import prepared, run_search

from persistent_bfs import ENGINES
from persistent_bfs.study.suite import SUITE, Case


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", SUITE, ids=str)
def test_search(benchmark: Any, device: Any, l2: str, case: Case, engine: str) -> None:
    searched = prepared(case, device)
    benchmark.group = str(case)
    run_search(benchmark, device, searched, l2, engine=engine)
