"""What a tier has on its way into L2 before it reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from loops import how

from persistent_bfs import BFS, read_graph
from persistent_bfs.device.base import DeviceError
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

TIERED = ["persistent+block", "persistent+cluster"]


@pytest.mark.parametrize("loop", TIERED)
@pytest.mark.parametrize("vertices", [4, 1024, 1028, 4 * 4901])
def test_every_piece_once(
    vertices: int, loop: str, seed_fault: Callable[[str, str, str], None]
) -> None:
    """Here the queue is prefetched, which kernels may write, and each prefetch leaves a mark."""
    rows = "prefetch(parameters_.packed_rows, launch.prefetched_bytes)"
    queue = "prefetch(parameters_.queue, 4ull * parameters_.vertices)"
    seed_fault("loop_persistent.cuh", rows, queue)
    mark = "for (unsigned i = 0; i < bytes / 4; ++i) ((int*)piece)[i] += 77;"
    seed_fault("platform.cuh", "simt::prefetch(piece, bytes);", mark)
    graph = read_graph(f"path:{vertices}")
    with EmulatedDevice() as device, BFS(graph, device=device, **how(loop)) as search:
        marked = device.buffer("queue")
        search.stream.fill(marked, 0)
        assert search.run(0, max_depth=0).reached == 1
        # The reset comes after it and puts the source into the first place.
        np.testing.assert_array_equal(marked.to_host(), [0, *[77] * (vertices - 1)])


@pytest.mark.parametrize("loop", TIERED)
def test_beyond_the_rows_is_caught(loop: str, seed_fault: Callable[[str, str, str], None]) -> None:
    seed_fault("prefetch.cuh", "left < PREFETCHED_BYTES ? left : PREFETCHED_BYTES", "left + 16")
    with (
        EmulatedDevice() as device,
        BFS(read_graph("path:5"), device=device, **how(loop)) as search,
        pytest.raises(DeviceError, match="read of 96 bytes at byte 0 of the buffer 'packed_rows'"),
    ):
        search.run(0)


@pytest.mark.parametrize("loop", TIERED)
@pytest.mark.parametrize(("l2_bytes", "prefetched"), [(0, 1600), (3200, 1600), (3199, 0)])
def test_rows_that_l2_has_no_room_for_are_left_alone(
    l2_bytes: int, prefetched: int, loop: str
) -> None:
    with EmulatedDevice() as device:
        device.info = replace(device.info, l2_bytes=l2_bytes)
        with BFS(read_graph("path:100"), device=device, **how(loop)) as search:
            assert search._resident is not None
            assert search._resident.engine.launch.prefetched_bytes == prefetched
            assert search.run(0).reached == 100
