"""The driver by cuda.bindings alone: every call is the driver API's own, checked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from persistent_bfs.device.base import DeviceUnavailable
from persistent_bfs.device.driver import (
    NON_BLOCKING_STREAM,
    Allocation,
    Driver,
    Pinned,
    allocate_directly,
    bindings,
    check,
    free_directly,
)

PORTABLE_AND_MAPPED = 0x01 | 0x02  # CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP


class BindingsDriver(Driver):
    """cuda.bindings."""

    name = "cuda.bindings"

    def __init__(self, ordinal: int) -> None:
        super().__init__()
        self._cu = cu = bindings()
        self._device = check(cu.cuDeviceGet(ordinal), "cuDeviceGet")
        status, self._context = cu.cuDevicePrimaryCtxRetain(self._device)
        if status.value:
            name = cu.cuGetErrorName(status)[1].decode()
            raise DeviceUnavailable(f"GPU {ordinal} gives no context: {name}")

    def _enter(self) -> None:
        check(self._cu.cuCtxPushCurrent(self._context), "cuCtxPushCurrent")

    def _leave(self) -> None:
        check(self._cu.cuCtxPopCurrent(), "cuCtxPopCurrent")

    def _close(self) -> None:
        check(self._cu.cuDevicePrimaryCtxRelease(self._device), "cuDevicePrimaryCtxRelease")

    def allocate(self, nbytes: int) -> Allocation | None:
        """As `Driver.allocate`."""
        return allocate_directly(self._cu, nbytes)

    def free(self, handle: Any) -> None:
        """As `Driver.free`."""
        free_directly(self._cu, handle)

    def held_bytes(self) -> int:
        """As `Driver.held_bytes`."""
        return 0

    def trim(self) -> None:
        """As `Driver.trim`."""

    def pin(self, nbytes: int) -> Pinned:
        """As `Driver.pin`."""
        answer = self._cu.cuMemHostAlloc(nbytes, PORTABLE_AND_MAPPED)
        address = int(check(answer, f"cuMemHostAlloc of {nbytes:,} bytes"))
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        array = np.frombuffer(memory, np.uint8)
        array[:] = 0
        return Pinned(array, address)

    def unpin(self, handle: Any) -> None:
        """As `Driver.unpin`."""
        check(self._cu.cuMemFreeHost(handle), "cuMemFreeHost")

    def make_stream(self) -> tuple[int, Any]:
        """As `Driver.make_stream`."""
        stream = check(self._cu.cuStreamCreate(NON_BLOCKING_STREAM), "cuStreamCreate")
        return int(stream), stream

    def destroy_stream(self, handle: Any) -> None:
        """As `Driver.destroy_stream`."""
        check(self._cu.cuStreamDestroy(handle), "cuStreamDestroy")

    def make_event(self) -> Any:
        """As `Driver.make_event`."""
        return check(self._cu.cuEventCreate(0), "cuEventCreate")

    def record_event(self, event: Any, stream: Any) -> None:
        """As `Driver.record_event`."""
        answer = self._cu.cuEventRecord(event, stream)
        if answer[0]:
            check(answer, "cuEventRecord")

    def wait_event(self, event: Any) -> None:
        """As `Driver.wait_event`."""
        check(self._cu.cuEventSynchronize(event), "cuEventSynchronize")

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """As `Driver.elapsed_ms`."""
        self.wait_event(end)
        return float(check(self._cu.cuEventElapsedTime(start, end), "cuEventElapsedTime"))

    def destroy_event(self, event: Any) -> None:
        """As `Driver.destroy_event`."""
        check(self._cu.cuEventDestroy(event), "cuEventDestroy")
