"""Every call of a search may fail: it says which, leaves nothing, and the next search works."""

from __future__ import annotations

import gc
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from faults import Fault, failing

from persistent_bfs import BFS, Graph, read_graph
from persistent_bfs.config import ENGINES
from persistent_bfs.device.base import Device, DeviceError, DeviceMemoryError, LaunchTooLarge
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.engines.base import uploads
from persistent_bfs.measure import find_problem
from persistent_bfs.options import Options
from persistent_bfs.reference import bfs_reference

GRID = read_graph("grid:9x7")
HUBS = read_graph("kron:7:8")

# The fault never comes: all calls were made.
MOST_CALLS = 400

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    **{engine: {"engine": engine, "tiers": "none"} for engine in ENGINES},
    "block tier": {"engine": "persistent", "tiers": "block"},
    "cluster tier": {"engine": "persistent", "tiers": "cluster"},
    "dense": {"engine": "persistent", "direction": "auto", "frontier": "dense"},
    "scan": {"engine": "graph_unrolled", "append": "scan"},
}

needs_emulation = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))


def search_twice(graph: Graph, device: Device, **fields: Any) -> None:
    """A session as users have it, every answer checked; whatever fails leaves it."""
    how = {"predecessors": True, "trace": True, "block_threads": 64, "levels_per_launch": 2}
    with BFS(graph, device=device, **how, **fields) as search:
        first = search.run(3, max_depth=3)
        second = search.run(5, max_depth=2)
        assert find_problem(graph, first, max_depth=3) is None
        assert find_problem(graph, second, max_depth=2) is None


def allocated(device: Device) -> int:
    """Bytes of buffers that nobody has freed."""
    if isinstance(device, EmulatedDevice):
        return sum(buffer.nbytes for buffer in device.buffers())
    return int(device.allocated_bytes)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_whatever_call_fails_is_named_and_leaves_nothing(
    device: Device, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = CONFIGURATIONS[name]
    graph = HUBS if name == "dense" else GRID
    search_twice(graph, device, **fields)  # loads what stays
    before = allocated(device)
    failed = set()
    for at in range(1, MOST_CALLS):
        fault = Fault(at)
        message = None
        with failing(fault, monkeypatch, device):
            try:
                search_twice(graph, device, **fields)
            except DeviceError as error:
                message = str(error)
        if not fault.is_due:
            assert message is None
            break
        failed.add(fault.failed)
        assert message is not None, f"the failure of call {at}, {fault.failed}, was not told"
        assert fault.failed in message
        if allocated(device) != before:
            gc.collect()
        assert allocated(device) == before, f"after {fault.failed}, call {at}"
        if at % 16 == 0:
            search_twice(graph, device, **fields)
    else:
        pytest.fail(f"more than {MOST_CALLS} calls")
    search_twice(graph, device, **fields)
    assert len(failed) >= 6  # so many kinds of calls a search makes at least


@needs_emulation
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_any_allocation_may_find_no_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = CONFIGURATIONS[name]
    graph = HUBS if name == "dense" else GRID
    fields = {**fields, "predecessors": True, "trace": True, "block_threads": 64}
    with EmulatedDevice() as device:
        with BFS(graph, device=device, **fields) as search:
            musts = len(search.buffers) - len(uploads(graph, search.config))
        # For the answer that a later search would write over, memory is no must.
        for at in range(1, musts + 4):
            fault = Fault(at, lambda call: DeviceMemoryError(f"{call}: none left"), "allocate")
            refused = pytest.raises(DeviceMemoryError, match="allocate: none left")
            with failing(fault, monkeypatch, device), refused if at <= musts else nullcontext():
                search_twice(graph, device, **CONFIGURATIONS[name])
            assert allocated(device) == 0
            assert fault.is_due == (at <= musts + 2)


class Refusing(EmulatedDevice):
    """Refuses clusters, cooperative grids, or a buffer of a name."""

    def __init__(self, *, what: str, **fields: Any) -> None:
        super().__init__(**fields)
        self.what = what

    def max_resident_blocks(
        self, kernel: Any, threads: int, shared_bytes: int = 0, cluster: int = 1
    ) -> int:
        if self.what == "clusters" and cluster > 1:
            raise LaunchTooLarge(f"{kernel.name}: no clusters of {cluster}")
        if self.what == "cooperative" and kernel.name == "search_persistent":
            raise LaunchTooLarge(f"{kernel.name}: holds 0 at once")
        return super().max_resident_blocks(kernel, threads, shared_bytes, cluster)

    def upload(self, array: Any, name: str) -> Any:
        if self.what == name:
            raise DeviceMemoryError(f"{name} is too large for one piece")
        return super().upload(array, name)


@pytest.fixture
def deep() -> Graph:
    return read_graph("grid:300x300")


@needs_emulation
@pytest.mark.parametrize(
    ("what", "engine", "tier", "words"),
    [
        ("clusters", "persistent", "none", "refused: search_persistent: no clusters of"),
        ("cooperative", "graph_while", "none", "refused: search_persistent: holds 0 at once"),
        ("packed_rows", "persistent", "none", "refused: packed_rows is too large"),
    ],
)
def test_what_the_device_refuses_leads_to_the_next_plan(
    what: str,
    engine: str,
    tier: str,
    words: str,
    deep: Graph,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits = "persistent_bfs.tiers.fits"
    monkeypatch.setattr(fits, lambda name, *_: name == "cluster")
    right = bfs_reference(deep, 0).distances
    with Refusing(what=what) as device, BFS(deep, device=device) as search:
        assert (search.config.engine, search.config.tier) == (engine, tier)
        assert words in search.reason
        found = search.run(0, max_depth=9).distances
        np.testing.assert_array_equal(found, np.where(right > 9, -1, right))


@needs_emulation
def test_what_was_asked_for_by_name_is_never_replaced(deep: Graph) -> None:
    with Refusing(what="clusters") as device:
        with pytest.raises(LaunchTooLarge, match="no clusters of 16"):
            BFS(deep, device=device, tiers="cluster")
        assert allocated(device) == 0
    with Refusing(what="cooperative") as device:
        with pytest.raises(LaunchTooLarge, match="holds 0 at once"):
            BFS(deep, device=device, engine="persistent")
        assert allocated(device) == 0


@needs_emulation
def test_a_launch_that_is_refused_leads_to_the_next_plan_too(
    deep: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmulatedDevice() as device, BFS(deep, device=device, tiers="none") as search:
        fault = Fault(1, lambda call: LaunchTooLarge(f"{call}: too many blocks"), "_launch_graph")
        with failing(fault, monkeypatch, device):
            result = search.run(5, max_depth=3)
        assert fault.is_due
        assert result.engine == search.config.engine == "graph_while"
        assert "refused: _launch_graph: too many blocks" in result.reason
        assert find_problem(deep, result, max_depth=3) is None
        assert find_problem(deep, search.run(9, max_depth=3), max_depth=3) is None


@needs_emulation
def test_a_pulling_search_that_does_not_fit_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("persistent_bfs.plan.WIDE_ARCS", 1)
    monkeypatch.setattr("persistent_bfs.plan.DENSE_ARCS", 1)
    monkeypatch.setattr("persistent_bfs.plan.looks_deep", lambda _: False)
    graph = read_graph("kron:9:8")
    with Refusing(what="likely_parents") as device, BFS(graph, device=device) as search:
        assert (search.config.direction, search.config.frontier) == ("push", "sparse")
        assert "refused: likely_parents is too large" in search.reason
        assert find_problem(graph, search.run(int(graph.degrees.argmax()))) is None


@needs_emulation
def test_options_of_the_engine_go_along_with_the_next_plan(deep: Graph) -> None:
    options = Options(levels_per_launch=6)
    with (
        Refusing(what="cooperative") as device,
        BFS(deep, device=device, options=options) as search,
        warnings.catch_warnings(),
    ):
        assert search.levels_per_launch == 6
