"""Frontiers of nearly 2^31 vertices, of which only the end is there: no mapping strides past it."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from persistent_bfs.compiler import compile_emulated
from persistent_bfs.device.base import KernelArguments, LaunchShape
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

SOURCE = Path(__file__).parent / "kernels" / "strides.cuh"


class Arguments(ctypes.Structure):
    _fields_ = (
        ("in", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("n", ctypes.c_int),
        ("handle", ctypes.c_ulonglong),
    )


@pytest.mark.parametrize("size", [2**31 - 2**20, 2**31 - 32])
@pytest.mark.parametrize(
    ("kernel", "vertices"), [("by_warp", 1), ("by_thread", 32), ("bucketed", 32)]
)
def test_a_stride_from_the_end_of_the_largest_frontier_ends_the_level(
    kernel: str, vertices: int, size: int
) -> None:
    path = compile_emulated(SOURCE.read_text(), "strides")
    last_vertices = np.arange(32)
    far_ends = 100 + last_vertices
    with EmulatedDevice() as device:
        array = np.concatenate([last_vertices, np.arange(33), far_ends]).astype(np.int32)
        source = device.upload(array, "in")
        out = device.allocate(2, np.int32, "out")
        stream = device.stream()
        stream.fill(out, 0)
        arguments = KernelArguments(Arguments(source.address, out.address, size, 0))
        stream.launch(device.load_library(path, [kernel])[kernel], LaunchShape(1, 32), arguments)
        stream.synchronize()
        assert out.to_host().tolist() == [vertices, far_ends[-vertices:].sum()]
