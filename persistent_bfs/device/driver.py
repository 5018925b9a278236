"""The seam between the CUDA device and the package that speaks to the NVIDIA driver for it.

A `Driver` gives what every CUDA program needs: the GPU's primary context (shared with PyTorch, CuPy
and others in the process), device memory, pinned memory, streams and events. Two files implement
it: ``by_pycuda.py``, taken where PyCUDA is installed, and ``by_bindings.py``, by cuda.bindings
alone. Launches, graphs, occupancy and modules are cuda.bindings' in both (``cuda.py``).

What a driver makes is given back exactly once: by its owner's ``free``, when nobody refers to the
owner any more, or when the interpreter ends, in whichever thread that happens.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from persistent_bfs.device.base import DeviceError, DeviceLost, HostArray, never_destroy

DRIVER_VARIABLE = "PERSISTENT_BFS_DRIVER"

# By the name that the variable takes.
DRIVERS = {"pycuda": "PyCUDA", "bindings": "cuda.bindings"}

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
NON_BLOCKING_STREAM = 1  # does not wait for the legacy default stream, nor it for ours

# After these the context is good for nothing any more, and so is the process: sticky errors
# ("Error Handling" in the CUDA driver API), and what a context that was reset answers.
LOSSES = frozenset(
    {
        "CUDA_ERROR_ECC_UNCORRECTABLE",
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_CONTEXT_IS_DESTROYED",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_INVALID_ADDRESS_SPACE",
        "CUDA_ERROR_INVALID_PC",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_UNKNOWN",
    }
)


def bindings() -> Any:
    """The driver API of cuda.bindings."""
    from cuda.bindings import driver

    return driver


def check(answer: tuple[Any, ...], call: str) -> Any:
    """The values of a driver call's answer.

    Raises
    ------
    DeviceLost
        The process's context is lost, for good.
    DeviceError
        The call failed; the message names it.
    """
    status, *values = answer
    if status.value == 0:
        return values[0] if len(values) == 1 else values
    raise failure(status, call)


def failure(status: Any, call: str) -> DeviceError:
    """The error that a driver's status means."""
    cu = bindings()
    texts = [cu.cuGetErrorName(status)[1], cu.cuGetErrorString(status)[1]]
    name, reason = (text.decode() if text else str(status) for text in texts)
    if name in LOSSES:
        return DeviceLost(
            f"{call}: {name} ({reason}): this process has lost its context on the GPU, which "
            "nothing restores; start a new process"
        )
    return DeviceError(f"{call}: {name} ({reason})")


def driver_problem() -> str | None:
    """Why no package can speak to the NVIDIA driver here, in one line; None if one can."""
    asked = os.environ.get(DRIVER_VARIABLE, "")
    if asked and asked not in DRIVERS:
        return f"{DRIVER_VARIABLE} is {asked!r}; it must be one of {', '.join(DRIVERS)}"
    try:
        cu = bindings()
    except ImportError as error:
        return (
            f"cuda.bindings cannot be imported ({error}); from a clone: pip install '.[cuda]', or "
            "'.[cuda12]' for a driver of CUDA 12"
        )
    if asked == "pycuda" and _pycuda_problem():
        return _pycuda_problem()
    try:
        status = cu.cuInit(0)[0]
        count = check(cu.cuDeviceGetCount(), "cuDeviceGetCount") if not status.value else 0
    except DeviceError as error:
        return f"the NVIDIA driver does not answer: {error}"
    except RuntimeError as error:  # of cuda.bindings, which finds no libcuda
        return f"there is no NVIDIA driver here ({error})"
    if status.value:
        if _forked():
            return FORKED
        return f"the NVIDIA driver does not answer: {failure(status, 'cuInit')}"
    if count == 0:
        return "the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES"
    return None


FORKED = (
    "this process was forked after CUDA was initialised, which CUDA does not survive; "
    'start workers with multiprocessing.get_context("spawn")'
)

_first_process: list[int] = []  # that CUDA was initialised in


def _forked() -> bool:
    return bool(_first_process) and os.getpid() not in _first_process


def _pycuda_problem() -> str | None:
    try:
        import pycuda.driver  # noqa: F401
    except ImportError as error:
        return f"PyCUDA cannot be imported ({error}); from a clone: pip install '.[pycuda]'"
    return None


def driver_name() -> str:
    """The driver that a device opened now would have: a name from `DRIVERS`.

    PyCUDA where it is installed, unless ``PERSISTENT_BFS_DRIVER`` says otherwise; asks nobody.
    """
    asked = os.environ.get(DRIVER_VARIABLE, "")
    if asked in DRIVERS:
        return asked
    return "pycuda" if importlib.util.find_spec("pycuda") is not None else "bindings"


def open_driver(ordinal: int) -> Driver:
    """The driver called `driver_name`, on GPU ``ordinal``.

    A PyCUDA that is there and cannot be imported (one built for another CUDA, say) is passed over.
    """
    _first_process.append(os.getpid())
    if driver_name() == "pycuda" and _pycuda_problem() is None:
        from persistent_bfs.device.by_pycuda import PycudaDriver

        return PycudaDriver(ordinal)
    from persistent_bfs.device.by_bindings import BindingsDriver

    return BindingsDriver(ordinal)


class Allocation(NamedTuple):
    """Memory a driver gave: where it is, and what the driver wants back."""

    address: int
    handle: Any


def allocate_directly(cu: Any, nbytes: int) -> Allocation | None:
    """Device memory of no pool; None if there is not so much."""
    answer = cu.cuMemAlloc(nbytes)
    if answer[0].value == OUT_OF_MEMORY:
        return None
    address = int(check(answer, f"cuMemAlloc of {nbytes:,} bytes"))
    return Allocation(address, address)


def free_directly(cu: Any, address: int) -> None:
    """Give back what `allocate_directly` gave."""
    check(cu.cuMemFree(address), "cuMemFree")


class Pinned(NamedTuple):
    """Pinned host memory as bytes, and what the driver wants back."""

    array: HostArray
    handle: Any


class _Current:
    """What `Driver.current` gives: not a generator, for every search enters it some times."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._thread = threading.local()

    def __enter__(self) -> None:
        driver, thread = self._driver, self._thread
        if os.getpid() != driver.process:
            raise DeviceError(FORKED)
        if driver.lost is not None:
            raise DeviceLost(str(driver.lost))
        depth = getattr(thread, "depth", 0)
        if depth == 0:  # else the context is on top already, by a call of our own
            driver._enter()
        thread.depth = depth + 1

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        driver, thread = self._driver, self._thread
        if isinstance(error, DeviceLost):
            driver.lost = driver.lost or error
        thread.depth -= 1
        if thread.depth == 0:
            try:
                driver._leave()
            except DeviceError:
                if driver.lost is None:
                    raise


class Driver(ABC):
    """One GPU's primary context, retained until `close`.

    Everything but `current` and `give_back` is called with the context current.

    Attributes
    ----------
    problems : list of str
        What could not be given back, and why; nobody is told otherwise.
    """

    name: str

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lost: DeviceLost | None = None
        self.problems: list[str] = []
        self._current = _Current(self)
        self._closed = False

    def current(self) -> AbstractContextManager[None]:
        """Make the primary context the calling thread's inside the ``with`` block, then undo that.

        Raises
        ------
        DeviceError
            The process was forked from the one that opened the device.
        DeviceLost
            The context is lost.
        """
        return self._current

    def owned(self, owner: object, give_back: Callable[[Any], None], handle: Any) -> Any:
        """Let ``handle`` be given back with ``owner``; calling what this returns does so now.

        In either case once, whatever the thread, and never with an exception.
        """
        return weakref.finalize(owner, self._give_back, give_back, handle)

    def _give_back(self, give_back: Callable[[Any], None], handle: Any) -> None:
        if self.is_over:
            never_destroy(handle)  # there is nobody left to give it back to
            return
        try:
            with self.current():
                give_back(handle)
        except DeviceError as error:
            never_destroy(handle)
            if self.lost is None:
                self.problems.append(str(error))

    @property
    def is_over(self) -> bool:
        """Whether the context is lost, given back or another process's."""
        return self._closed or self.lost is not None or os.getpid() != self.process

    def abandon(self) -> None:
        """Give nothing back from now on: a kernel that runs may use it until the process ends."""
        self._closed = True
        self._keep()

    def close(self) -> None:
        """Give the context back; harmless twice, and never raises."""
        if self.is_over:
            self._keep()
            return
        try:
            self._close()
        except DeviceError as error:
            self.problems.append(str(error))
            self._keep()
        self._closed = True

    def _keep(self) -> None:
        """Let no object of the driver's own be destroyed."""

    @abstractmethod
    def _enter(self) -> None:
        """Push the context on the calling thread's stack."""

    @abstractmethod
    def _leave(self) -> None:
        """Pop what `_enter` pushed."""

    @abstractmethod
    def _close(self) -> None:
        """Release the context."""

    @abstractmethod
    def allocate(self, nbytes: int) -> Allocation | None:
        """``nbytes`` of device memory, at least 1; None if there are not so many."""

    @abstractmethod
    def free(self, handle: Any) -> None:
        """Give device memory back."""

    @abstractmethod
    def held_bytes(self) -> int:
        """Bytes that are free to us, and that nobody else can have."""

    @abstractmethod
    def trim(self) -> None:
        """Let others have what is held."""

    @abstractmethod
    def pin(self, nbytes: int) -> Pinned:
        """``nbytes`` of pinned host memory that kernels reach at its own address."""

    @abstractmethod
    def unpin(self, handle: Any) -> None:
        """Give pinned memory back."""

    @abstractmethod
    def make_stream(self) -> tuple[int, Any]:
        """A non-blocking stream's driver handle, and what the driver wants back."""

    @abstractmethod
    def destroy_stream(self, handle: Any) -> None:
        """Give a stream back."""

    @abstractmethod
    def make_event(self) -> Any:
        """An event with times."""

    @abstractmethod
    def record_event(self, event: Any, stream: Any) -> None:
        """Mark this point of a stream that `make_stream` made."""

    @abstractmethod
    def wait_event(self, event: Any) -> None:
        """Wait until a stream has come to an event."""

    @abstractmethod
    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Milliseconds between two events; waits for ``end``."""

    @abstractmethod
    def destroy_event(self, event: Any) -> None:
        """Give an event back."""
