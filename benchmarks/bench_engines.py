"""Every engine on every graph of the suite, those with tiers without them, too.

``pytest benchmarks`` runs on a GPU if one can be used, else small graphs on the emulated device.
"""

from __future__ import annotations

from typing import Any

import pytest
from ratios import LOOPS
from searches import prepared, run_search

from persistent_bfs.study.suite import SUITE, Case


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("case", SUITE, ids=str)
def test_search(benchmark: Any, device: Any, l2: str, case: Case, loop: str) -> None:
    searched = prepared(case, device)
    benchmark.group = str(case)
    run_search(benchmark, device, searched, l2, **LOOPS[loop])
