"""The driver by PyCUDA: its context, memory pool, pinned memory, streams and events.

PyCUDA keeps a stack of contexts of its own, beside the driver's, and keeps no more than its top on
the driver's: to push, it first pops whatever the driver has there, be it PyCUDA's or not, and after
a pop it pushes its own next one. So ours lies twice on the driver's stack while it is current, once
for PyCUDA to pop (``_enter``, ``_leave``): whoever's context was there is there afterwards.

PyCUDA's objects call the driver when they are destroyed, and end the process where that fails. So
they are destroyed here, while the context is current; after a context is lost, never.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from persistent_bfs.device.base import DeviceError, DeviceUnavailable, never_destroy
from persistent_bfs.device.driver import (
    NON_BLOCKING_STREAM,
    Allocation,
    Driver,
    Pinned,
    allocate_directly,
    bindings,
    check,
    failure,
    free_directly,
)

# Larger arrays are too few to gain from a pool, which would round their sizes up and keep them from
# others in the process. And PyCUDA would free them, which waits for the device, with the
# interpreter's lock held: no thread could tell a search to stop meanwhile.
POOLED_BYTES = 1 << 20


class PycudaDriver(Driver):
    """PyCUDA, and cuda.bindings for what it lacks."""

    name = "PyCUDA"

    def __init__(self, ordinal: int) -> None:
        super().__init__()
        import pycuda.driver
        import pycuda.tools

        self._pycuda, self._cu = pycuda.driver, bindings()
        self._pycuda.init()
        try:
            self._context = self._pycuda.Device(ordinal).retain_primary_context()
        except self._pycuda.Error as error:
            raise DeviceUnavailable(f"GPU {ordinal} gives no context: {error}") from None
        self._handle = self._cu.CUcontext(self._context.handle)
        with self.current():
            self._pool = pycuda.tools.DeviceMemoryPool()

    @contextmanager
    def _checked(self, call: str) -> Iterator[None]:
        """Name the call in PyCUDA's errors, and tell a lost context from a call that failed."""
        try:
            yield
        except self._pycuda.Error as error:
            raise self._named(call, error) from None

    def _named(self, call: str, error: Exception) -> DeviceError:
        answer = self._cu.cuCtxSynchronize()  # tells of a sticky error again
        if answer[0].value:
            return failure(answer[0], call)
        return DeviceError(f"{call}: {error}")

    def _enter(self) -> None:
        check(self._cu.cuCtxPushCurrent(self._handle), "cuCtxPushCurrent")
        try:
            with self._checked("Context.push"):
                self._context.push()
        except BaseException:
            self._cu.cuCtxPopCurrent()
            raise

    def _leave(self) -> None:
        with self._checked("Context.pop"):
            self._pycuda.Context.pop()
        check(self._cu.cuCtxPopCurrent(), "cuCtxPopCurrent")

    def _close(self) -> None:
        with self.current(), self._checked("DeviceMemoryPool.stop_holding"):
            self._pool.stop_holding()
        # PyCUDA releases a context well that is its stack's top alone, and then pushes the one
        # below; the driver's stack keeps the released one, which nobody pops.
        below = self._cu.cuCtxGetCurrent()[1]
        self._enter()
        try:
            with self._checked("Context.detach"):
                self._context.detach()
        finally:
            while int(self._cu.cuCtxGetCurrent()[1]) != int(below):
                if self._cu.cuCtxPopCurrent()[0].value:
                    break

    def _keep(self) -> None:
        for made in (self._context, self._pool):
            never_destroy(made)

    def allocate(self, nbytes: int) -> Allocation | None:
        """As `Driver.allocate`."""
        if nbytes > POOLED_BYTES:
            return allocate_directly(self._cu, nbytes)
        with self._checked(f"DeviceMemoryPool.allocate of {nbytes:,} bytes"):
            try:
                allocation = self._pool.allocate(nbytes)
            except self._pycuda.MemoryError:
                return None
        return Allocation(int(allocation), allocation)

    def free(self, handle: Any) -> None:
        """As `Driver.free`."""
        if isinstance(handle, int):
            free_directly(self._cu, handle)
            return
        with self._checked("PooledDeviceAllocation.free"):
            handle.free()

    def held_bytes(self) -> int:
        """As `Driver.held_bytes`."""
        return int(self._pool.managed_bytes) - int(self._pool.active_bytes)

    def trim(self) -> None:
        """As `Driver.trim`."""
        with self._checked("free_held"):
            self._pool.free_held()

    def pin(self, nbytes: int) -> Pinned:
        """As `Driver.pin`."""
        flags = self._pycuda.host_alloc_flags
        with self._checked(f"pagelocked_zeros of {nbytes:,} bytes"):
            array = self._pycuda.pagelocked_zeros(
                nbytes, np.uint8, mem_flags=flags.PORTABLE | flags.DEVICEMAP
            )
        return Pinned(array, array.base)

    def unpin(self, handle: Any) -> None:
        """As `Driver.unpin`."""
        with self._checked("free of pinned memory"):
            handle.free()

    def make_stream(self) -> tuple[int, Any]:
        """As `Driver.make_stream`."""
        with self._checked("Stream"):
            stream = self._pycuda.Stream(NON_BLOCKING_STREAM)
        return int(stream.handle), [stream]

    def destroy_stream(self, handle: Any) -> None:
        """As `Driver.destroy_stream`."""
        handle.clear()  # the last reference

    def make_event(self) -> Any:
        """As `Driver.make_event`."""
        with self._checked("Event"):
            return [self._pycuda.Event()]

    def record_event(self, event: Any, stream: Any) -> None:
        """As `Driver.record_event`."""
        try:  # at every search, and the device waits for what comes after
            event[0].record(stream[0])
        except self._pycuda.Error as error:
            raise self._named("Event.record", error) from None

    def wait_event(self, event: Any) -> None:
        """As `Driver.wait_event`."""
        with self._checked("Event.synchronize"):
            event[0].synchronize()

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """As `Driver.elapsed_ms`."""
        self.wait_event(end)
        with self._checked("Event.time_till"):
            return float(start[0].time_till(end[0]))

    def destroy_event(self, event: Any) -> None:
        """As `Driver.destroy_event`."""
        event.clear()
