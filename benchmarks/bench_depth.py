"""Every engine on paths ever deeper: one vertex a level, so that the loop is all there is."""

from __future__ import annotations

from typing import Any

import pytest
from ratios import LOOPS
from searches import generated, run_search

from persistent_bfs.study.plan import depth_specs

SPECS = {"cuda": depth_specs(14)[::2], "emulated": depth_specs(6)[::2]}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("spec", sorted({*SPECS["cuda"], *SPECS["emulated"]}, key=len))
def test_depth(benchmark: Any, device: Any, l2: str, spec: str, loop: str) -> None:
    if spec not in SPECS[device.info.kind]:
        pytest.skip("too deep to emulate")
    benchmark.group = spec
    run_search(benchmark, device, generated(spec), l2, **LOOPS[loop])
