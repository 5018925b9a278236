"""The emulated device: the kernels, compiled by g++, run on the CPU under a chosen schedule.

A test bench, and the device where there is no GPU. It executes the very sources that nvcc compiles
and counts exactly what they do; races are explored by schedule and seed, and a kernel that touches
memory it must not, waits for ever or diverges at a barrier ends in a `DeviceError` that names block
and thread. It says nothing about time. How it works is told in ``cuda/emulation/simt.cpp``.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs.compiler import (
    CompileError,
    emulated_library,
    find_host_compiler,
    load_compiled,
)
from persistent_bfs.config import WARP_SIZE, Config
from persistent_bfs.device.accesses import (
    ACCESS,
    ITEM,
    POISON,
    RACE,
    Access,
    DataRace,
    Decoder,
    SourceLines,
)
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    DeviceInfo,
    DeviceMemoryError,
    DeviceUnavailable,
    Event,
    Graph,
    HostArray,
    Kernel,
    KernelArguments,
    LaunchKind,
    LaunchShape,
    LaunchTooLarge,
    Program,
    Stream,
    never_destroy,
)

SCHEDULES = ("roundrobin", "random", "adversarial")
_REPLAY = len(SCHEDULES)

MAX_THREADS_PER_BLOCK = 1024
MAX_THREADS_PER_MULTIPROCESSOR = 2048
MAX_SHARED_BYTES_PER_BLOCK = 227 * 1024
MAX_CLUSTER = 16

# Threads step over no more accesses than this in one launch; then it counts as livelocked.
POINT_LIMIT = 2**31
# Turns of a WHILE node, likewise: more than any search has levels here.
TURN_LIMIT = 2**24

# Unregistered bytes around each buffer, so that a small overrun hits no other.
_MARGIN = 256

# A recorded schedule: which fiber ran, and for how many scheduling points (0: until it waited).
SCHEDULE_STEP = np.dtype([("fiber", np.uint32), ("points", np.uint32)])
_LOG_STEPS = 2**22
# Accesses to watched items, and pairs of racing instructions, that are kept of a launch.
_WATCHED = 2**16
_RACES = 256


class _Range(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("writable", ctypes.c_uint64),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("blocks", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("cooperative", ctypes.c_uint32),
        ("resident_blocks", ctypes.c_uint32),
        ("cluster", ctypes.c_uint32),
        ("schedule", ctypes.c_uint32),
        ("dependent", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("launch_index", ctypes.c_uint64),
        ("point_limit", ctypes.c_uint64),
        ("stacks", ctypes.c_void_p),
        ("stack_bytes", ctypes.c_uint64),
        ("ranges", ctypes.POINTER(_Range)),
        ("range_count", ctypes.c_uint64),
        ("log", ctypes.c_void_p),
        ("log_capacity", ctypes.c_uint64),
        ("log_count", ctypes.c_uint64),
        ("races", ctypes.c_void_p),
        ("race_capacity", ctypes.c_uint64),
        ("race_count", ctypes.c_uint64),
        ("items", ctypes.c_void_p),
        ("item_count", ctypes.c_uint64),
        ("watched", ctypes.c_void_p),
        ("watched_capacity", ctypes.c_uint64),
        ("watched_count", ctypes.c_uint64),
        ("hears_interrupts", ctypes.c_uint64),
    )


class _Stacks:
    """The memory of all fibers' stacks, lent to one launch at a time.

    One for the whole process: each library of kernels has a runtime of its own, and a map of
    several thousand stacks for each would exhaust what a process may map.
    """

    BYTES = 64 * 1024  # of one stack, as in fiber.hpp
    NORESERVE = 0x4000  # Linux: address space now, memory when touched

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memory = mmap.mmap(-1, self.BYTES)

    @contextmanager
    def lent(self, threads: int) -> Iterator[tuple[int, int]]:
        """Address and size of stacks for so many threads, inside the ``with`` block."""
        with self._lock:
            needed = threads * self.BYTES
            if len(self._memory) < needed:
                flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | self.NORESERVE
                self._memory = mmap.mmap(-1, needed, flags=flags)
            start = ctypes.c_char.from_buffer(self._memory)
            yield ctypes.addressof(start), len(self._memory)


_STACKS = _Stacks()


@dataclass
class EmulationCounters:
    """What the kernels did since the last `reset`, exactly.

    Loads and stores count the compiled kernel's accesses to global memory, whatever their size (a
    vector may be loaded whole or by its parts); ``shared_accesses`` those to shared memory.
    Atomics and relaxed accesses count in either. A warp collective and a barrier of a block, a
    cluster or the grid each count once, not once a thread.
    ``lane_slots`` is what kernels report of lanes kept busy or waiting.
    """

    plain_loads: int = 0
    plain_stores: int = 0
    shared_accesses: int = 0
    atomics: int = 0
    relaxed_loads: int = 0
    relaxed_stores: int = 0
    warp_collectives: int = 0
    block_barriers: int = 0
    grid_barriers: int = 0
    cluster_barriers: int = 0
    lane_slots: int = 0
    fiber_switches: int = 0

    def reset(self) -> None:
        """Start again from nothing."""
        for counter in fields(self):
            setattr(self, counter.name, 0)


class _Counters(ctypes.Structure):
    _fields_ = tuple((counter.name, ctypes.c_uint64) for counter in fields(EmulationCounters))


def emulated_problem() -> str | None:
    """Why the emulated device cannot be used here, in one line; None if it can."""
    if sys.platform != "linux" or platform.machine().lower() not in ("x86_64", "amd64"):
        return (
            "the emulated device is written for x86-64 Linux, and this is "
            f"{sys.platform} on {platform.machine()}; use the reference instead"
        )
    try:
        find_host_compiler()
    except CompileError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class _Entry:
    """A kernel in its library: the launcher, what it is to launch, and its source's lines."""

    launch: Callable[..., int]
    function: int
    lines: SourceLines


class EmulatedBuffer(Buffer):
    """Device memory that is a NumPy array, with a margin on both sides."""

    def __init__(
        self, device: EmulatedDevice, count: int, dtype: npt.DTypeLike, name: str, *, writable: bool
    ) -> None:
        size = count * np.dtype(dtype).itemsize
        self._storage = np.full(size + 2 * _MARGIN + WARP_SIZE, POISON, np.uint8)
        start = _MARGIN + -self._storage.ctypes.data % WARP_SIZE
        super().__init__(self._storage.ctypes.data + start, count, dtype, name)
        self.writable = writable
        self.memory = self._storage[start : start + size]
        self._device: EmulatedDevice | None = device

    def bytes_at(self, start: int, size: int, what: str) -> HostArray:
        """View the ``size`` bytes from byte ``start``."""
        if self._device is None:
            raise DeviceError(f"{what}: the buffer '{self.name}' has been freed")
        if start < 0 or size < 0 or start + size > self.nbytes:
            raise DeviceError(
                f"{what}: bytes {start} to {start + size} of the buffer '{self.name}', "
                f"which has {self.nbytes}"
            )
        return self.memory[start : start + size]

    def to_host(self, count: int | None = None, *, start: int = 0) -> HostArray:
        """Copy ``count`` items from item ``start`` on (default: all) into a new array."""
        if self._device is not None:
            self._device.refuse_while_capturing("a copy to the host")
            self._device.deliver()
        items = self.count - start if count is None else count
        copy: HostArray = np.empty(items, self.dtype)
        copy.view(np.uint8)[:] = self.bytes_at(
            start * self.dtype.itemsize, copy.nbytes, "copy to the host"
        )
        return copy

    def free(self) -> None:
        """Give the memory back; a kernel that touches it from now on fails."""
        if self._device is not None:
            self._device.forget(self)
            self._device = None
            self.memory = self._storage = np.empty(0, np.uint8)


class EmulatedEvent(Event):
    """A point in a stream; there is no time to tell."""


class EmulatedGraph(Graph):
    """The recorded calls, in order."""

    def __init__(self, nodes: Sequence[Callable[[], None]]) -> None:
        self.nodes: Sequence[Callable[[], None]] | None = nodes

    def free(self) -> None:
        """Forget the calls."""
        self.nodes = None


class EmulatedStream(Stream):
    """Work that runs at the call; only copies to the host arrive no sooner than CUDA promises."""

    def __init__(self, device: EmulatedDevice) -> None:
        super().__init__()
        self._device = device
        self._nodes: list[Callable[[], None]] = []

    def fill(self, buffer: Buffer, value: int, *, start: int = 0, count: int | None = None) -> None:
        """Set ``count`` 32-bit words from word ``start`` to ``value`` (default: all the words)."""
        words = buffer.nbytes // 4 - start if count is None else count
        target = _own(buffer).bytes_at(4 * start, 4 * words, "fill")
        pattern = np.uint32(value & 0xFFFFFFFF)

        def run() -> None:
            target.view(np.uint32)[:] = pattern

        self._do(run)

    def copy_to_host(self, target: HostArray, source: Buffer, *, start: int = 0) -> None:
        """Copy ``target.nbytes`` bytes from byte ``start``; they arrive at the next wait."""
        memory = _own(source).bytes_at(start, target.nbytes, "copy to the host")
        place = self._device.pinned_bytes(target)
        self._do(lambda: self._device.owe(place, memory.copy()))

    def copy_to_device(self, target: Buffer, source: HostArray, *, start: int = 0) -> None:
        """Copy ``source`` to byte ``start`` of ``target``, at each replay anew."""
        memory = _own(target).bytes_at(start, source.nbytes, "copy to the device")
        place = self._device.pinned_bytes(source)

        def run() -> None:
            self._device.deliver()
            memory[:] = place

        self._do(run)

    def copy(self, target: Buffer, source: Buffer) -> None:
        """Copy ``source`` to ``target``."""
        memory = _own(source).bytes_at(0, source.nbytes, "copy on the device")
        place = _own(target).bytes_at(0, source.nbytes, "copy on the device")

        def run() -> None:
            place[:] = memory

        self._do(run)

    def record(self, event: Event | None = None) -> Event:
        """Mark this point of the stream."""
        return event or EmulatedEvent()

    def elapsed_ms(self, start: Event, end: Event) -> float | None:  # noqa: ARG002
        """None: the emulated device has no time to tell."""
        self._device.deliver()
        return None

    def _do(self, run: Callable[[], None]) -> None:
        if self._recording:
            self._nodes.append(run)
        else:
            run()

    def _launch(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, kind: LaunchKind
    ) -> None:
        copies = (type(each).from_buffer_copy(each) for each in arguments.structures)
        kept = KernelArguments(*copies) if self._recording else arguments
        resident = self._device.resident_blocks(
            kernel, shape, cooperative=kind == LaunchKind.COOPERATIVE
        )
        self._do(lambda: self._device.run(kernel, shape, kept, resident, kind))

    def _launch_graph(self, graph: Graph) -> None:
        self._device.refuse_while_capturing("the launch of a graph")
        if not isinstance(graph, EmulatedGraph) or graph.nodes is None:
            raise DeviceError("the launch of a graph that is not this device's or has been freed")
        for node in graph.nodes:
            node()

    def _synchronize(self) -> None:
        self._device.refuse_while_capturing("a wait for the stream")
        self._device.deliver()

    def _begin_capture(self) -> None:
        self._device.refuse_while_capturing("a capture")
        self._device.capturing = True
        self._nodes = []

    def _end_capture(self) -> EmulatedGraph:
        self._device.capturing = False
        return EmulatedGraph(tuple(self._nodes))

    def _abandon_capture(self) -> None:
        self._device.capturing = False


class _Observer:
    """What a launch is asked to tell of its accesses, and what it told."""

    def __init__(self, device: EmulatedDevice, launch: _Launch) -> None:
        self.device = device
        self.launch = launch
        self.index = device.launch_index
        self.items = np.array(
            [
                (buffer.address + item * buffer.dtype.itemsize, buffer.dtype.itemsize)
                for buffer, item in device.items
            ],
            ITEM,
        )
        self.watched = np.empty(_WATCHED if device.items else 0, ACCESS)
        self.races = np.empty(_RACES if device.check_races else 0, RACE)
        launch.items, launch.item_count = self.items.ctypes.data, len(self.items)
        launch.watched, launch.watched_capacity = self.watched.ctypes.data, len(self.watched)
        launch.race_capacity = len(self.races)
        if device.check_races:
            launch.races = self.races.ctypes.data

    def report(self, kernel: Kernel) -> None:
        """Hand what the launch told to the device."""
        device, accesses = self.device, self.launch.watched_count
        if accesses > len(self.watched):
            raise DeviceError(
                f"kernel {kernel.name}: {accesses} accesses to watched items in one launch; "
                f"{len(self.watched)} can be kept"
            )
        decoder = Decoder(kernel.name, self.index, kernel.handle.lines, device.buffers())
        device.watched += decoder.accesses(self.watched[:accesses])
        found = min(self.launch.race_count, len(self.races))
        device.add_races(decoder.races(self.races[:found]))


def _own(buffer: Buffer) -> EmulatedBuffer:
    if not isinstance(buffer, EmulatedBuffer):
        raise DeviceError(f"the buffer '{buffer.name}' is not of the emulated device")
    return buffer


class EmulatedDevice(Device):
    """A device whose kernels run on the CPU, one thread at a time.

    Parameters
    ----------
    schedule
        ``roundrobin``: each thread runs until it waits or spins. ``random``: threads may also be
        switched at atomics, collectives and barriers. ``adversarial``: at any access, and by
        some seeds parked just before plain writes; with seed 0 each thread is, before each of its
        plain writes, until no other can run.
    seed
        Starts the random schedules; the same seed gives the same run of the same launches.
    multiprocessors, blocks_per_multiprocessor
        How many blocks are resident at once; a launch of more runs in waves.
    clusters
        Blocks of the largest thread block cluster, up to 16; 1 where there are none.
    memory_bytes
        What can be allocated.
    point_limit
        Scheduling points (accesses, atomics, arrivals) after which a launch counts as livelocked.
    record
        Whether to keep the schedule of each launch in `recorded`, for `replay`.
    check_races
        Whether to look for data races and keep them in `races`; several times slower. Which
        accesses are ordered, and by what, is told in ``cuda/emulation/clocks.hpp``; kernel
        launches order all. A race is found whatever the schedule, if both accesses happen.

    Attributes
    ----------
    counters : EmulationCounters
    recorded : list of numpy.ndarray
        The schedule of each launch, of dtype `SCHEDULE_STEP`.
    races : list of DataRace
        One for each kind of race, that is, each pair of source lines; the first 256 of a launch.
    watched : list of Access
        The accesses to items that `watch` named, in the order in which they happened.

    Raises
    ------
    DeviceUnavailable
        No g++, or not x86-64 Linux.
    ValueError
        An unknown schedule, or a size below one.
    """

    def __init__(
        self,
        *,
        schedule: str = "roundrobin",
        seed: int = 0,
        multiprocessors: int = 4,
        blocks_per_multiprocessor: int = 2,
        clusters: int = MAX_CLUSTER,
        memory_bytes: int = 4 * 2**30,
        point_limit: int = POINT_LIMIT,
        record: bool = False,
        check_races: bool = False,
    ) -> None:
        super().__init__()
        if problem := emulated_problem():
            raise DeviceUnavailable(problem)
        if multiprocessors < 1 or blocks_per_multiprocessor < 1:
            raise ValueError(
                "an emulated device has at least one multiprocessor and one block on it"
            )
        if not 1 <= clusters <= MAX_CLUSTER:
            raise ValueError(f"clusters is {clusters}; it must be 1 to {MAX_CLUSTER}")
        self.info = DeviceInfo(
            kind="emulated",
            name=f"emulated device ({multiprocessors} multiprocessors)",
            architecture="x86-64",
            multiprocessors=multiprocessors,
            max_threads_per_block=MAX_THREADS_PER_BLOCK,
            shared_bytes_per_block=MAX_SHARED_BYTES_PER_BLOCK,
            memory_bytes=memory_bytes,
            cooperative_launch=True,
            while_nodes=True,
            driver=find_host_compiler().version.splitlines()[0],
            warp_size=WARP_SIZE,
            clusters=clusters,
            dependent_nodes=True,
        )
        self.blocks_per_multiprocessor = blocks_per_multiprocessor
        self.point_limit = point_limit
        self.record = record
        self.recorded: list[HostArray] = []
        self.check_races = check_races
        self.watched: list[Access] = []
        self.items: list[tuple[EmulatedBuffer, int]] = []
        self._races: dict[tuple[object, ...], DataRace] = {}
        self.counters = EmulationCounters()
        self.capturing = self._abandoned = False
        self._turn = threading.RLock()
        self._buffers: dict[int, EmulatedBuffer] = {}
        self._pinned: list[weakref.ref[HostArray]] = []
        self._owed: list[tuple[HostArray, HostArray]] = []
        self._ranges: ctypes.Array[_Range] | None = None
        self._replays: list[HostArray] = []
        self.reseed(seed, schedule)

    def turn(self) -> AbstractContextManager[Any]:
        """As `Device.turn`: launches, counters and captures are the whole device's."""
        return self._turn

    def reseed(self, seed: int, schedule: str | None = None) -> None:
        """Begin again as a new device with this seed would (and schedule, if given)."""
        if schedule is not None:
            if schedule not in SCHEDULES:
                raise ValueError(
                    f"unknown schedule {schedule!r}; choose one of {', '.join(SCHEDULES)}"
                )
            self.schedule = schedule
        if seed < 0:
            raise ValueError(f"the seed is {seed}; it must not be negative")
        self.seed = seed
        self.launch_index = 0

    def replay(self, recorded: Sequence[HostArray]) -> None:
        """Run the next launches as `recorded` ones ran."""
        self._replays = list(recorded)

    @property
    def races(self) -> list[DataRace]:
        """The data races found so far."""
        return list(self._races.values())

    def add_races(self, races: Iterable[DataRace]) -> None:
        """Take note of what a launch found."""
        for race in races:
            known = self._races.get(race.code)
            self._races[race.code] = race if known is None else known.again(race.count)

    def buffers(self) -> list[EmulatedBuffer]:
        """The buffers that have not been freed, in the order of their allocation."""
        return list(self._buffers.values())

    def buffer(self, name: str) -> EmulatedBuffer:
        """The buffer called ``name``, the first of several.

        Raises
        ------
        DeviceError
            There is none.
        """
        for buffer in self._buffers.values():
            if buffer.name == name:
                return buffer
        raise DeviceError(f"there is no buffer '{name}'")

    def watch(self, name: str, index: int) -> None:
        """Keep each access to item ``index`` of the buffer ``name`` in `watched` from now on.

        Raises
        ------
        DeviceError
            There is no such buffer or item, or the items are larger than 8 bytes.
        """
        buffer = self.buffer(name)
        if not 0 <= index < buffer.count:
            raise DeviceError(f"watch: item {index} of '{name}', which has {buffer.count}")
        if buffer.dtype.itemsize > 8:
            raise DeviceError(
                f"watch: the items of '{name}' have {buffer.dtype.itemsize} bytes, more than 8"
            )
        self.items.append((buffer, index))

    def unwatch(self) -> None:
        """Watch nothing any more; `watched` is emptied."""
        self.items.clear()
        self.watched.clear()

    def compile(self, config: Config) -> Path:
        """Compile ``config`` to a shared library, or find it in the cache."""
        return emulated_library(config)

    def load(self, config: Config) -> Program:
        """Compile ``config`` (or find it in the cache) and load its kernels."""
        kernels = load_compiled(
            lambda: self.compile(config),
            lambda path: self.load_library(path, config.kernels),
            OSError,  # of dlopen
        )
        return Program(config, kernels)

    def load_library(self, path: Path, names: Sequence[str]) -> dict[str, Kernel]:
        """Load the kernels called ``names`` of a library that `compile_emulated` made."""
        self.refuse_while_capturing("loading kernels")
        library = ctypes.CDLL(str(path))
        launch = library.simt_launch
        launch.argtypes = (
            *(ctypes.c_void_p,) * 2,
            ctypes.POINTER(_Launch),
            ctypes.POINTER(_Counters),
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
        lines = SourceLines(path)
        kernels = {}
        for name in names:
            function = ctypes.cast(getattr(library, f"emulate_{name}"), ctypes.c_void_p).value
            kernels[name] = Kernel(name, _Entry(launch, function or 0, lines))
        return kernels

    def allocate(self, count: int, dtype: npt.DTypeLike, name: str) -> EmulatedBuffer:
        """``count`` items that hold poison; ``name`` is for error messages."""
        return self._allocate(count, dtype, name, writable=True)

    def upload(self, array: HostArray, name: str) -> EmulatedBuffer:
        """Copy ``array`` into a new buffer, which kernels may only read."""
        buffer = self._allocate(array.size, array.dtype, name, writable=False)
        buffer.memory.view(array.dtype)[:] = array.reshape(-1)
        return buffer

    def _allocate(
        self, count: int, dtype: npt.DTypeLike, name: str, *, writable: bool
    ) -> EmulatedBuffer:
        self.refuse_while_capturing(f"allocating '{name}'")
        if count < 0:
            raise DeviceError(f"a buffer '{name}' of {count} items")
        needed, free = count * np.dtype(dtype).itemsize, self.free_bytes()
        if needed > free:
            raise DeviceMemoryError(f"'{name}' needs {needed} bytes and {free} are free")
        buffer = EmulatedBuffer(self, count, dtype, name, writable=writable)
        self._buffers[buffer.address] = buffer
        self._ranges = None
        return buffer

    def forget(self, buffer: EmulatedBuffer) -> None:
        """Take a freed buffer out of what kernels may touch."""
        self._buffers.pop(buffer.address, None)
        self.items = [item for item in self.items if item[0] is not buffer]
        self._ranges = None

    def pinned(self, count: int, dtype: npt.DTypeLike) -> HostArray:
        """Make a zeroed host array, which kernels may touch too."""
        self.refuse_while_capturing("allocating pinned memory")
        array: HostArray = np.zeros(count, dtype)
        # Whoever has it keeps it: a device outlives its searches, and each of them pins some.
        self._pinned.append(weakref.ref(array, self._forget_ranges))
        self._ranges = None
        return array

    def _forget_ranges(self, _: weakref.ref[HostArray]) -> None:
        self._ranges = None

    def _pinned_arrays(self) -> list[HostArray]:
        there = [(reference, reference()) for reference in self._pinned]
        self._pinned = [reference for reference, array in there if array is not None]
        return [array for _, array in there if array is not None]

    def pinned_bytes(self, array: HostArray) -> HostArray:
        """View the bytes of an array made by `pinned`, or of a contiguous part of one."""
        address = array.ctypes.data
        for whole in self._pinned_arrays():
            start = whole.ctypes.data
            if start <= address and address + array.nbytes <= start + whole.nbytes:
                if not array.flags.c_contiguous:
                    break
                return whole.view(np.uint8)[address - start : address - start + array.nbytes]
        raise DeviceError("a copy needs a contiguous host array that Device.pinned made")

    def take_counts(self) -> dict[str, int]:
        """What the kernels did since the last call, by the counters' names."""
        counts = {
            counter.name: getattr(self.counters, counter.name) for counter in fields(self.counters)
        }
        self.counters.reset()
        return counts

    def stream(self) -> EmulatedStream:
        """Open a new stream of this device's own."""
        return EmulatedStream(self)

    def max_resident_blocks(
        self, kernel: Kernel, threads: int, shared_bytes: int = 0, cluster: int = 1
    ) -> int:
        """How many blocks of this kernel the whole device holds at once, in whole clusters."""
        self.check_cluster(kernel, cluster)
        if not 1 <= threads <= MAX_THREADS_PER_BLOCK:
            raise DeviceError(
                f"kernel {kernel.name}: {threads} threads a block; "
                f"a block has 1 to {MAX_THREADS_PER_BLOCK}"
            )
        if not 0 <= shared_bytes <= MAX_SHARED_BYTES_PER_BLOCK:
            raise DeviceError(
                f"kernel {kernel.name}: {shared_bytes} bytes of shared memory a block; "
                f"the limit is {MAX_SHARED_BYTES_PER_BLOCK}"
            )
        warps = -(-threads // WARP_SIZE)
        each = min(
            self.blocks_per_multiprocessor,
            MAX_THREADS_PER_MULTIPROCESSOR // (warps * WARP_SIZE),
            MAX_SHARED_BYTES_PER_BLOCK // max(shared_bytes, 1),
        )
        return self.info.multiprocessors * each // cluster * cluster

    def resident_blocks(self, kernel: Kernel, shape: LaunchShape, *, cooperative: bool) -> int:
        """How many blocks of a launch run side by side; refuses a launch that cannot be."""
        if shape.blocks < 1:
            raise LaunchTooLarge(f"kernel {kernel.name}: a launch of {shape}")
        self.check_cluster(kernel, shape.cluster, shape.blocks)
        limit = self.max_resident_blocks(kernel, shape.threads, shape.shared_bytes, shape.cluster)
        if limit == 0:
            raise LaunchTooLarge(
                f"kernel {kernel.name}: a launch of {shape}, of which not one cluster is resident "
                f"at once on the {self.info.name}"
            )
        if cooperative and shape.blocks > limit:
            raise LaunchTooLarge(
                f"kernel {kernel.name}: a cooperative launch of {shape}, of which {limit} blocks "
                f"are resident at once on the {self.info.name}"
            )
        return min(shape.blocks, limit)

    def while_graph(
        self,
        stream: Stream,
        before: Callable[[Stream], None],
        body: Callable[[Stream, int], None],
        after: Callable[[Stream], None],
    ) -> EmulatedGraph:
        """Record ``before``, ``body`` while its condition holds, and ``after``."""
        condition = np.zeros(1, np.uint32)

        def nodes(part: Callable[[Stream], None]) -> Sequence[Callable[[], None]]:
            with stream.capture() as recorded:
                part(stream)
            graph = recorded()
            assert isinstance(graph, EmulatedGraph)
            return graph.nodes or ()

        turn = nodes(lambda stream: body(stream, condition.ctypes.data))

        def loop() -> None:
            condition[0] = 1
            for _ in range(TURN_LIMIT):
                for node in turn:
                    node()
                if not condition[0]:
                    return
            raise DeviceError(f"a WHILE node was not done after {TURN_LIMIT} turns")

        return EmulatedGraph((*nodes(before), loop, *nodes(after)))

    def free_bytes(self) -> int:
        """Device memory that can still be allocated, in bytes."""
        return self.info.memory_bytes - sum(buffer.nbytes for buffer in self._buffers.values())

    def abandon(self) -> None:
        """As `Device.abandon`."""
        self._abandoned = True
        never_destroy(self)
        never_destroy(_STACKS)

    def close(self) -> None:
        """Give everything back."""
        if self._abandoned:
            return
        for buffer in tuple(self._buffers.values()):
            buffer.free()
        self._pinned.clear()
        self._owed.clear()

    def refuse_while_capturing(self, what: str) -> None:
        """Raise `DeviceError` for what CUDA does not allow while a stream captures."""
        if self.capturing:
            raise DeviceError(f"{what} is not allowed while a stream is being captured")

    def owe(self, place: HostArray, data: HostArray) -> None:
        """Keep what a copy to the host read until someone waits for it."""
        self._owed.append((place, data))

    def deliver(self) -> None:
        """Let every copy to the host arrive."""
        for place, data in self._owed:
            place[:] = data
        self._owed.clear()

    def run(
        self,
        kernel: Kernel,
        shape: LaunchShape,
        arguments: KernelArguments,
        resident: int,
        kind: LaunchKind,
    ) -> None:
        """Run one launch from its first thread to its last."""
        self.deliver()
        ranges = self._current_ranges()
        log = self._log()
        launch = _Launch(
            blocks=shape.blocks,
            threads=shape.threads,
            dynamic_shared_bytes=shape.shared_bytes,
            cooperative=kind == LaunchKind.COOPERATIVE,
            resident_blocks=resident,
            cluster=shape.cluster,
            schedule=_REPLAY if self._replays else SCHEDULES.index(self.schedule),
            dependent=kind == LaunchKind.DEPENDENT,
            seed=self.seed,
            launch_index=self.launch_index,
            point_limit=self.point_limit,
            ranges=ranges,
            range_count=len(ranges),
            log=None if log is None else log.ctypes.data,
            log_capacity=0 if log is None else len(log),
            log_count=0 if log is None else len(log),
            # In other threads Python raises no KeyboardInterrupt, and another handler may not mean
            # the search.
            hears_interrupts=threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        )
        observer = _Observer(self, launch) if self.check_races or self.items else None
        self.launch_index += 1
        counters = _Counters()
        error = ctypes.create_string_buffer(2048)
        entry: _Entry = kernel.handle
        side_by_side = min(resident, shape.blocks) * shape.threads
        with _STACKS.lent(side_by_side) as (launch.stacks, launch.stack_bytes):
            failed = entry.launch(
                entry.function, arguments.address, launch, counters, error, len(error)
            )
        for counter in fields(self.counters):
            total = getattr(self.counters, counter.name) + getattr(counters, counter.name)
            setattr(self.counters, counter.name, total)
        if self._replays:
            self._replays.pop(0)
        elif log is not None:
            if launch.log_count > len(log):
                raise DeviceError(
                    f"kernel {kernel.name}: the launch switched threads {launch.log_count} times, "
                    f"too often for the {len(log)} steps that are recorded"
                )
            self.recorded.append(log[: launch.log_count].copy())
        if observer is not None:
            observer.report(kernel)
        if failed:
            raise DeviceError(f"kernel {kernel.name}: {error.value.decode(errors='replace')}")

    def _log(self) -> HostArray | None:
        if self._replays:
            return self._replays[0]
        return np.empty(_LOG_STEPS, SCHEDULE_STEP) if self.record else None

    def _current_ranges(self) -> ctypes.Array[_Range]:
        ranges = self._ranges
        if ranges is None:
            arrays = self._pinned_arrays()  # kept until the ranges are: else they would be stale
            places = [
                _Range(buffer.address, buffer.nbytes, buffer.name.encode(), buffer.writable)
                for buffer in self._buffers.values()
            ]
            places += [
                _Range(array.ctypes.data, array.nbytes, b"pinned memory", True) for array in arrays
            ]
            ranges = self._ranges = (_Range * len(places))(*places)
        return ranges
