"""The small interface through which engines reach a device.

An engine allocates buffers, launches kernels, records graphs and waits; it does so through the
classes below and never asks which device it has. Two devices implement them: ``cuda`` (PyCUDA and
cuda.bindings) and ``emulated`` (the same kernel sources, compiled by g++, run on the CPU).

Counting is done here, once, so that every engine's launches and waits are counted alike on both.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from persistent_bfs.compiler import KernelResources
from persistent_bfs.config import Config

HostArray = npt.NDArray[Any]


class DeviceError(RuntimeError):
    """A device refused or failed; the message names the call, the kernel and the limit."""


class DeviceLost(DeviceError):
    """The process has lost its context on the device; no session of it works any more."""


class DeviceUnavailable(DeviceError):
    """The device asked for cannot be used here; the message says what to do."""


class LaunchTooLarge(DeviceError):
    """A grid was asked for that the device cannot hold; the message gives number and limit."""


class SearchTimeout(DeviceError):
    """A search was stopped because its time was up; the session it ran in can go on."""


class DeviceBusy(SearchTimeout):
    """A search did not end when it was told to: others keep the device from running it.

    The session it ran in is of no use any more. Its memory is given back once the search is over.
    """


class RepeatedDiscovery(DeviceError):
    """Vertices were discovered so often that the frontiers outgrew their queue."""


class DeviceMemoryError(DeviceError):
    """Not enough device memory; the message gives the needed and the free bytes."""


@dataclass(frozen=True)
class DeviceInfo:
    """What a device says of itself.

    ``multiprocessors``, ``max_threads_per_block``, ``shared_bytes_per_block``, ``warp_size``,
    ``memory_bytes`` and ``clusters`` (blocks of the largest thread block cluster; 1 where there
    are none) are limits; ``architecture`` is what its kernels are compiled for (``sm_90``, or
    ``x86-64``).
    """

    kind: str
    name: str
    architecture: str
    multiprocessors: int
    max_threads_per_block: int
    shared_bytes_per_block: int
    memory_bytes: int
    cooperative_launch: bool
    while_nodes: bool
    driver: str
    l2_bytes: int = 0  # 0: unknown, or there is none
    pci_bus_id: str = ""
    warp_size: int = 32
    clusters: int = 1
    dependent_nodes: bool = False  # of graphs, begun while the one in front still runs


class LaunchKind(Enum):
    """How the blocks of a launch stand to each other, and to the launch in front of it."""

    PLAIN = "plain"
    COOPERATIVE = "cooperative"
    DEPENDENT = "dependent"


class LaunchShape(NamedTuple):
    """Launch geometry: ``blocks`` of ``threads`` with ``shared_bytes`` of dynamic shared memory.

    ``cluster`` neighbouring blocks are one thread block cluster.
    """

    blocks: int
    threads: int
    shared_bytes: int = 0
    cluster: int = 1

    def __str__(self) -> str:
        clusters = f" in clusters of {self.cluster}" if self.cluster > 1 else ""
        blocks = "1 block" if self.blocks == 1 else f"{self.blocks} blocks"
        return f"{blocks} of {self.threads} threads{clusters}"


@dataclass
class LaunchCounters:
    """What one stream was asked to do since the last `reset`."""

    launches: int = 0
    host_syncs: int = 0

    def reset(self) -> None:
        """Start again from nothing."""
        self.launches = self.host_syncs = 0


@dataclass(frozen=True)
class Kernel:
    """One loaded kernel. ``handle`` belongs to the device that loaded it."""

    name: str
    handle: Any = field(repr=False)
    resources: KernelResources | None = None


@dataclass(frozen=True)
class Program:
    """The kernels of one compiled `Config`, by name."""

    config: Config
    kernels: dict[str, Kernel]

    def __getitem__(self, name: str) -> Kernel:
        return self.kernels[name]


class Buffer(ABC):
    """``count`` items of ``dtype`` in device memory at ``address``."""

    def __init__(self, address: int, count: int, dtype: npt.DTypeLike, name: str) -> None:
        self.address = address
        self.count = count
        self.dtype = np.dtype(dtype)
        self.name = name

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.count * self.dtype.itemsize

    @abstractmethod
    def to_host(self, count: int | None = None, *, start: int = 0) -> HostArray:
        """Copy ``count`` items from item ``start`` on (default: all) into a new array.

        Waits for the device.
        """

    @abstractmethod
    def free(self) -> None:
        """Give the memory back; harmless when done twice."""


class KernelArguments:
    """A kernel's by-value arguments, laid out once as the array of pointers a launch takes.

    The structures stay the caller's: changing a field changes the next launch (or capture).
    """

    def __init__(self, *structures: ctypes.Structure) -> None:
        self.structures = structures
        self._pointers = (ctypes.c_void_p * len(structures))(
            *(ctypes.addressof(structure) for structure in structures)
        )
        self.address = ctypes.addressof(self._pointers)


class Event(ABC):
    """A point in a stream's work."""

    def wait(self) -> None:
        """Wait on the host until the stream has come to this point."""


class Graph(ABC):
    """Recorded work that one launch replays."""

    @abstractmethod
    def free(self) -> None:
        """Give the recorded graph back; harmless when done twice."""


class Stream(ABC):
    """Work in order, on one device.

    Launches and waits are counted; copies and fills are not launches. While the stream records
    (see `capture`), what is asked of it becomes nodes of a graph and is not counted: the launch
    of that graph is.
    """

    def __init__(self) -> None:
        self.counters = LaunchCounters()
        self.patience: Callable[[], None] | None = None
        self._recording = False

    def launch(self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments) -> None:
        """Launch ``kernel``; its arguments are copied before this returns."""
        self._count_launch(kernel, shape, arguments, LaunchKind.PLAIN)

    def launch_cooperative(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments
    ) -> None:
        """Launch ``kernel`` with all its blocks resident, so that it may synchronise its grid."""
        self._count_launch(kernel, shape, arguments, LaunchKind.COOPERATIVE)

    def launch_dependent(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments
    ) -> None:
        """Launch ``kernel``, whose threads wait by themselves for the kernel in front of it.

        Recorded behind another kernel, on a device that can (``DeviceInfo.dependent_nodes``), its
        blocks come to their multiprocessors while that one still runs; else as `launch`. Source:
        "Programmatic Dependent Launch and Synchronization" in the CUDA C++ Programming Guide.
        """
        self._count_launch(kernel, shape, arguments, LaunchKind.DEPENDENT)

    def _count_launch(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, kind: LaunchKind
    ) -> None:
        self._launch(kernel, shape, arguments, kind)
        if not self._recording:
            self.counters.launches += 1

    def launch_graph(self, graph: Graph) -> None:
        """Replay a recorded graph: one launch, whatever it holds."""
        self._launch_graph(graph)
        self.counters.launches += 1

    def synchronize(self) -> None:
        """Wait on the host until everything asked so far is done: one host sync.

        Where that takes long, ``patience`` is called now and then, if it is set: what it raises
        ends the wait.
        """
        self._synchronize()
        self.counters.host_syncs += 1

    @contextmanager
    def capture(self) -> Iterator[Callable[[], Graph]]:
        """Record what is asked inside the ``with`` block; call the yielded function after it.

        Nothing may allocate or be loaded meanwhile. A failure inside leaves the stream usable.
        """
        self._begin_capture()
        self._recording = True
        recorded: list[Graph] = []
        try:
            yield lambda: recorded[0]
            self._recording = False
            recorded.append(self._end_capture())
        except BaseException:
            self._recording = False
            self._abandon_capture()
            raise

    def lose_patience(self) -> None:
        """Ask whoever waits for this stream whether to wait on."""
        if self.patience is not None:
            self.patience()

    def is_idle(self) -> bool:
        """Whether everything asked so far is done; does not wait."""
        return True

    @abstractmethod
    def fill(self, buffer: Buffer, value: int, *, start: int = 0, count: int | None = None) -> None:
        """Set ``count`` 32-bit words from word ``start`` to ``value`` (default: all the words)."""

    @abstractmethod
    def copy_to_host(self, target: HostArray, source: Buffer, *, start: int = 0) -> None:
        """Copy ``target.nbytes`` bytes from byte ``start``; ``target`` comes from `Device.pinned`.

        The bytes are there after the next `synchronize`.
        """

    @abstractmethod
    def copy_to_device(self, target: Buffer, source: HostArray, *, start: int = 0) -> None:
        """Copy ``source`` (from `Device.pinned`) to byte ``start`` of ``target``.

        ``source`` is read when the stream gets there, at each replay of a graph anew.
        """

    @abstractmethod
    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy ``source`` to ``target``, which is as large, on the device."""

    @abstractmethod
    def record(self, event: Event | None = None) -> Event:
        """Mark this point of the stream; ``event`` is used again where one is given."""

    @abstractmethod
    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """Milliseconds between two events by the device's clock; waits for ``end``.

        This wait belongs to measuring, not to the search, and is not counted. None where the
        device has no time to tell (emulated).
        """

    @abstractmethod
    def _launch(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, kind: LaunchKind
    ) -> None: ...

    @abstractmethod
    def _launch_graph(self, graph: Graph) -> None: ...

    @abstractmethod
    def _synchronize(self) -> None: ...

    @abstractmethod
    def _begin_capture(self) -> None: ...

    @abstractmethod
    def _end_capture(self) -> Graph: ...

    @abstractmethod
    def _abandon_capture(self) -> None: ...


def never_destroy(handle: Any) -> None:
    """Keep an object until the process ends, and beyond the interpreter.

    Where its destructor would take memory from what still runs, or call a driver that can no longer
    answer: PyCUDA's end the process then.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))


class Device(ABC):
    """One device, opened; a context manager."""

    info: DeviceInfo

    def __init__(self) -> None:
        self._unended: list[tuple[Callable[[], bool], Callable[[], None]]] = []

    @abstractmethod
    def compile(self, config: Config) -> Path:
        """The binary of ``config``, compiled if it is not in the cache; from any thread.

        Raises
        ------
        CompileError
            As `load`.
        """

    @abstractmethod
    def load(self, config: Config) -> Program:
        """Compile ``config`` (or find it in the cache) and load its kernels, all of them now.

        Raises
        ------
        CompileError
            The compiler is missing or refused the source; one line with cause and remedy.
        """

    @abstractmethod
    def allocate(self, count: int, dtype: npt.DTypeLike, name: str) -> Buffer:
        """``count`` uninitialised items; ``name`` is for error messages."""

    @abstractmethod
    def upload(self, array: HostArray, name: str) -> Buffer:
        """A new buffer with a copy of ``array`` (any strides, read-only too)."""

    @abstractmethod
    def pinned(self, count: int, dtype: npt.DTypeLike) -> HostArray:
        """A zeroed host array that copies to and from the device without a detour."""

    @abstractmethod
    def stream(self) -> Stream:
        """A new stream of this device's own."""

    @abstractmethod
    def max_resident_blocks(
        self, kernel: Kernel, threads: int, shared_bytes: int = 0, cluster: int = 1
    ) -> int:
        """How many blocks of this kernel the device holds at once: a cooperative grid's limit.

        In clusters of ``cluster`` blocks: whole clusters count.

        Raises
        ------
        LaunchTooLarge
            The device has no such clusters.
        """

    def check_cluster(self, kernel: Kernel, cluster: int, blocks: int | None = None) -> None:
        """Refuse clusters that the device has not, or that do not divide a grid of ``blocks``."""
        if not 1 <= cluster <= self.info.clusters:
            raise LaunchTooLarge(
                f"kernel {kernel.name}: clusters of {cluster} blocks asked for; {self.info.name} "
                f"has clusters of 1 to {self.info.clusters}"
            )
        if blocks is not None and blocks % cluster:
            raise DeviceError(
                f"kernel {kernel.name}: {blocks} blocks are not whole clusters of {cluster}"
            )

    def allow_shared(self, kernel: Kernel, shared_bytes: int) -> None:
        """Let ``kernel`` be launched with so much dynamic shared memory, where that is asked."""

    @abstractmethod
    def while_graph(
        self,
        stream: Stream,
        before: Callable[[Stream], None],
        body: Callable[[Stream, int], None],
        after: Callable[[Stream], None],
    ) -> Graph:
        """A graph of ``before``, a WHILE node that repeats ``body``, and ``after``.

        Each function records its part on the stream it is given; ``body`` also gets the
        condition's handle, which its kernel hands to ``cudaGraphSetConditional``. The condition
        is true at first.

        Raises
        ------
        DeviceError
            The driver has no WHILE nodes (`DeviceInfo.while_nodes` is False).
        """

    @abstractmethod
    def free_bytes(self) -> int:
        """Device memory that can still be allocated, in bytes."""

    @abstractmethod
    def close(self) -> None:
        """Give everything back; harmless when done twice."""

    def turn(self) -> AbstractContextManager[Any]:
        """Keep other threads' searches off this device inside the ``with`` block, where it must."""
        return nullcontext()

    def leave_running(self, is_over: Callable[[], bool], free: Callable[[], None]) -> None:
        """Call ``free`` once ``is_over`` says so: at a `reap` after that, or never."""
        self._unended.append((is_over, free))

    def reap(self) -> None:
        """Free what the searches that were left running have used, if they are over."""
        if not self._unended:
            return
        with self.current():
            for each in tuple(self._unended):
                is_over, free = each
                if is_over():
                    self._unended.remove(each)
                    free()

    def abandon(self) -> None:
        """Give nothing back any more: what runs may use it until the process ends."""

    def current(self) -> AbstractContextManager[None]:
        """Make this device the calling thread's own inside the ``with`` block, then undo that."""
        return nullcontext()

    def take_counts(self) -> dict[str, int]:
        """What the device itself counted since the last call; empty where it cannot count."""
        return {}

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
