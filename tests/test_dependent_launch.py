"""The nodes of a graph that may begin early: which do, that they wait, and how a GPU has them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from persistent_bfs import BFS, compiler, read_graph
from persistent_bfs.config import ENGINES
from persistent_bfs.device import open_device
from persistent_bfs.device.base import DeviceError, LaunchKind
from persistent_bfs.device.cuda import with_edges
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.measure import find_problem
from persistent_bfs.study.primitives import Bench, Effort

emulated = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

EARLY = "graph_unrolled"  # whose levels may begin early
WAIT = "  wait_for_grid_in_front();\n"


class WatchedDevice(EmulatedDevice):
    """Keeps how often each kernel ran, by the kind of its launch."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: Counter[tuple[str, LaunchKind]] = Counter()

    def run(self, kernel: Any, shape: Any, arguments: Any, resident: int, kind: LaunchKind) -> None:
        self.ran[kernel.name, kind] += 1
        super().run(kernel, shape, arguments, resident, kind)


@emulated
@pytest.mark.parametrize("engine", ENGINES)
def test_levels_of_an_unrolled_graph_may_begin_early_and_others_not(engine: str) -> None:
    graph = read_graph("path:9")
    with (
        WatchedDevice() as device,
        BFS(graph, engine=engine, device=device, tiers="none") as search,
    ):
        assert find_problem(graph, search.run(0)) is None
    levels = {
        kind: sum(n for (name, k), n in device.ran.items() if k == kind and "level" in name)
        for kind in LaunchKind
    }
    if engine == EARLY:
        assert levels[LaunchKind.DEPENDENT] >= 9
        assert levels[LaunchKind.PLAIN] == 0
    else:
        assert levels[LaunchKind.DEPENDENT] == 0
    others = {kind for name, kind in device.ran if "level" not in name}
    assert others <= {LaunchKind.PLAIN, LaunchKind.COOPERATIVE}


@emulated
def test_a_level_that_does_not_wait_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path / "cuda"
    shutil.copytree(compiler.source_folder(), changed)
    level = changed / "loop_level.cuh"
    text = level.read_text()
    assert text.count(WAIT) == 1
    level.write_text(text.replace(WAIT, ""))
    monkeypatch.setenv(compiler.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "source_folder", lambda: changed)
    with (
        EmulatedDevice() as device,
        BFS(read_graph("path:9"), engine=EARLY, device=device, advance="thread") as search,
        pytest.raises(DeviceError, match="before it waits for the grid in front"),
    ):
        search.run(0)


def test_the_form_with_edges_is_found_in_bindings_of_either_age() -> None:
    plain, more = object(), object()
    of_12: Any = SimpleNamespace(cuGraphAddNode=plain, cuGraphAddNode_v2=more)
    of_13: Any = SimpleNamespace(cuGraphAddNode=more)
    assert with_edges(of_12, "cuGraphAddNode") is more
    assert with_edges(of_13, "cuGraphAddNode") is more


@pytest.mark.cuda
def test_a_gpu_has_the_edges_of_early_nodes() -> None:
    device = open_device("cuda").device
    assert device is not None
    with device, Bench(device, Effort.of("cuda", quick=True)) as bench:
        for dependent in (False, True):
            with bench.graph(5, dependent=dependent) as graph:
                edges = edges_of(device, graph)
            early = dependent and device.info.dependent_nodes
            assert edges == ["programmatic" if early else "whole"] * 4


def edges_of(device: Any, graph: Any) -> list[str]:
    """What each edge of a recorded graph asks for, by the driver's word."""
    kinds = device.cu.CUgraphDependencyType
    status, _, _, found, count = with_edges(device.cu, "cuGraphGetEdges")(graph.handle, 64)
    assert status.value == 0
    early = int(kinds.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
    return ["programmatic" if int(edge.type) == early else "whole" for edge in found[:count]]


@pytest.mark.cuda
def test_gpus_of_sm_90_have_early_nodes() -> None:
    device = open_device("cuda").device
    assert device is not None
    with device:
        newer = int(device.info.architecture.removeprefix("sm_")) >= 90
        assert device.info.dependent_nodes == newer
