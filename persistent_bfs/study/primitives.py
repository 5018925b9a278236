"""The primitives: what a launch, a barrier, a load or a copy costs alone on this device.

A row of `PRIMITIVES` a primitive; the kernels are those of ``cuda/primitives/``, one idea a file.
What a kernel repeats is timed by the difference between a launch that repeats it many times and one
that does not at all, so that the launch itself cancels out. On the emulated device the same kernels
run and are counted.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs import layout
from persistent_bfs.config import PRIMITIVES as PROGRAM
from persistent_bfs.config import WARP_SIZE, Config
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    Graph,
    KernelArguments,
    LaunchShape,
    Stream,
)
from persistent_bfs.measure import CallTiming, Timing, time_call
from persistent_bfs.result import Counters

Point = dict[str, int | str]

LINE_BYTES = 128
LINE = LINE_BYTES // 4  # places of a ring, in words, are a cache line apart

CONFIG = Config(PROGRAM.name, block_threads=PROGRAM.block_threads)


class PrimitiveArguments(ctypes.Structure):
    """The struct of that name in ``cuda/primitives/arguments.cuh``."""

    _fields_ = (
        ("condition", ctypes.c_ulonglong),
        ("words", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("from", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("count", ctypes.c_longlong),
        ("repeats", ctypes.c_int),
        ("reserved", ctypes.c_int),
    )


@dataclass(frozen=True)
class Effort:
    """How much is measured: samples, what a kernel repeats, and sizes."""

    samples: int
    launches: int
    barriers: int
    loads: int
    nodes: tuple[int, ...]
    turns: int
    bodies: tuple[int, ...]
    block_threads: tuple[int, ...]
    grid_threads: tuple[int, ...]
    copy_bytes: int
    dram_bytes: int

    @classmethod
    def of(cls, kind: str, quick: bool) -> Effort:
        """What suits a kind of device: a few of each where they are counted, not timed."""
        if kind != "cuda":
            few = (1, 3) if quick else (1, 3, 10, 30)
            return cls(1, 3, 4, 8, few, 3, (1, 2), (32, 128), (32, 64), 1 << 12, 1 << 14)
        if quick:
            nodes = (1, 10, 100, 1000)
            threads = (32, 256, 1024)
            return cls(
                *(10, 50, 200, 5_000, nodes, 100, (1, 16), threads, (256,), 1 << 27, 1 << 28)
            )
        return cls(
            samples=30,
            launches=100,
            barriers=1_000,
            loads=20_000,
            nodes=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
            turns=300,
            bodies=(1, 2, 4, 8, 16),
            block_threads=(32, 64, 128, 256, 512, 1024),
            grid_threads=(32, 256, 1024),
            copy_bytes=1 << 28,
            dram_bytes=1 << 29,
        )


@dataclass(frozen=True)
class Sample:
    """What one primitive costs at one point of its parameters.

    Attributes
    ----------
    point : dict
        The parameters, by name.
    timing : Timing or None
        Samples in the primitive's unit; None where the device has no clock.
    counters : Counters
        What the timed call asked of host and device.
    repeats : int
        How often the call did it.
    """

    point: Point
    timing: Timing | None
    counters: Counters
    repeats: int = 1


class Bench:
    """The primitives' program on a device, with what its kernels read and write.

    A context manager: what it allocated is given back.
    """

    def __init__(self, device: Device, effort: Effort) -> None:
        self.device = device
        self.effort = effort
        self._stack = ExitStack()
        with self._stack, device.current():
            self.program = device.load(CONFIG)
            self.stream: Stream = device.stream()
            self.words = self._keep(device.allocate(2, np.int32, "primitives' words"))
            self.window = device.pinned(1, np.int32)
            self.turns = device.pinned(1, np.int32)
            self.arguments = PrimitiveArguments(words=self.words.address)
            self._launch = KernelArguments(layout.SearchParameters(), self.arguments)
            self._stack = self._stack.pop_all()

    def _keep(self, buffer: Buffer) -> Buffer:
        self._stack.callback(buffer.free)
        return buffer

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exc: object) -> None:
        with self.device.current():
            self._stack.close()

    @contextmanager
    def buffer(self, array: npt.NDArray[Any] | int, name: str) -> Iterator[Buffer]:
        """Hold an array, or so many uninitialised words, on the device inside the block."""
        with self.device.current():
            if isinstance(array, int):
                made = self.device.allocate(array, np.int32, name)
            else:
                made = self.device.upload(array, name)
        try:
            yield made
        finally:
            with self.device.current():
                made.free()

    def launch(self, kernel: str, shape: LaunchShape, *, cooperative: bool = False) -> None:
        """Launch a kernel of the program."""
        launch = self.stream.launch_cooperative if cooperative else self.stream.launch
        launch(self.program[kernel], shape, self._launch)

    def clear(self) -> None:
        """Clear the kernels' words."""
        self.stream.fill(self.words, 0)

    def answer(self) -> list[int]:
        """What the kernels left in their words."""
        with self.device.current():
            return [int(word) for word in self.words.to_host()]

    def time(
        self,
        call: Callable[[], Any],
        before: Callable[[], Any] = lambda: None,
        *,
        samples: int | None = None,
    ) -> CallTiming:
        """Time a call as `persistent_bfs.measure.time_call` does."""
        return time_call(
            self.device, self.stream, call, repeat=samples or self.effort.samples, before=before
        )

    def largest(self, kernel: str, threads: int) -> int:
        """Blocks of a kernel that the device holds at once."""
        return self.device.max_resident_blocks(self.program[kernel], threads)

    def require(self, what: str, found: object, expected: object) -> None:
        """Refuse to time a kernel that did not do what is timed.

        Raises
        ------
        DeviceError
            What was found is not what was expected.
        """
        if found != expected:
            raise DeviceError(f"{what}: {found} instead of {expected}: its time means nothing")

    def each(
        self,
        kernel: str,
        shape: LaunchShape,
        repeats: int,
        *,
        cooperative: bool = False,
        leaves: int = 0,
    ) -> Sample:
        """What one of a kernel's repetitions costs, in milliseconds by the device's clock.

        ``leaves`` is what its repetitions leave in the first word.
        """

        def call() -> None:
            self.launch(kernel, shape, cooperative=cooperative)

        none: CallTiming | None = None
        self.arguments.repeats = 0
        if self.device.info.kind == "cuda":
            none = self.time(call, self.clear)
        self.arguments.repeats = repeats
        many = self.time(call, self.clear)
        self.require(f"{kernel}, {shape}", self.answer()[0], leaves)
        point: Point = {"blocks": shape.blocks, "threads": shape.threads}
        if many.device is None or none is None or none.device is None:
            return Sample(point, None, many.counters, repeats)
        idle = none.device.median
        each = tuple((sample - idle) / repeats for sample in many.device.samples)
        return Sample(point, Timing(each), many.counters, repeats)

    def launch_dependent(self, kernel: str, shape: LaunchShape) -> None:
        """Launch a kernel of the program that waits by itself for the one in front."""
        self.stream.launch_dependent(self.program[kernel], shape, self._launch)

    @contextmanager
    def graph(self, nodes: int, *, dependent: bool = False) -> Iterator[Graph]:
        """Hold a graph of so many empty kernels, one behind the other, inside the block."""
        with self.device.current():
            with self.stream.capture() as recorded:
                for _ in range(nodes):
                    if dependent:
                        self.launch_dependent("empty_dependent", SMALL)
                    else:
                        self.launch("empty_kernel", SMALL)
            graph = recorded()
        try:
            yield graph
        finally:
            with self.device.current():
                graph.free()

    @contextmanager
    def turning(self, nodes: int) -> Iterator[Graph]:
        """Hold a graph whose WHILE node has so many kernels, the last of which counts its turns."""

        def before(stream: Stream) -> None:
            stream.copy_to_device(self.words, self.turns)

        def body(_: Stream, condition: int) -> None:
            self.arguments.condition = condition
            for kernel in ["empty_kernel"] * (nodes - 1) + ["count_turn"]:
                self.launch(kernel, SMALL)

        with self.device.current():
            graph = self.device.while_graph(self.stream, before, body, lambda _: None)
        try:
            yield graph
        finally:
            with self.device.current():
                graph.free()


# A launch that asks for no more than its launch.
SMALL = LaunchShape(1, WARP_SIZE)


def _in(unit: float, timing: Timing | None) -> Timing | None:
    return timing and Timing(tuple(sample * unit for sample in timing.samples))


US, NS = 1e3, 1e6  # of a millisecond


def _launch(bench: Bench, *, clock: str, cooperative: bool = False) -> Iterator[Sample]:
    for blocks in (1, bench.device.info.multiprocessors):
        shape = LaunchShape(blocks, WARP_SIZE if blocks == 1 else 8 * WARP_SIZE)
        call = partial(bench.launch, "empty_kernel", shape, cooperative=cooperative)
        timed = bench.time(call)
        point: Point = {"blocks": shape.blocks, "threads": shape.threads}
        yield Sample(point, _in(US, getattr(timed, clock)), timed.counters)


def _queued(bench: Bench) -> Iterator[Sample]:
    for blocks in (1, bench.device.info.multiprocessors):
        shape = LaunchShape(blocks, WARP_SIZE if blocks == 1 else 8 * WARP_SIZE)
        launches = bench.effort.launches

        def call(shape: LaunchShape = shape, launches: int = launches) -> None:
            for _ in range(launches):
                bench.launch("empty_kernel", shape)

        timed = bench.time(call)
        point: Point = {"blocks": shape.blocks, "threads": shape.threads}
        yield Sample(point, _in(US / launches, timed.device), timed.counters, launches)


def _round_trip(bench: Bench) -> Iterator[Sample]:
    def call() -> None:
        bench.launch("empty_kernel", SMALL)
        bench.stream.copy_to_host(bench.window, bench.words)
        bench.stream.synchronize()

    bench.clear()
    timed = bench.time(call)
    yield Sample({"blocks": 1, "threads": WARP_SIZE}, _in(US, timed.completion), timed.counters)


def _graph(bench: Bench, *, clock: str, dependent: bool = False) -> Iterator[Sample]:
    for nodes in bench.effort.nodes:
        with bench.graph(nodes, dependent=dependent) as graph:
            timed = bench.time(partial(bench.stream.launch_graph, graph))
        yield Sample({"nodes": nodes}, _in(US, getattr(timed, clock)), timed.counters, nodes)


def _while(bench: Bench) -> Iterator[Sample]:
    for nodes in bench.effort.bodies:
        with bench.turning(nodes) as graph:
            launch = partial(bench.stream.launch_graph, graph)
            turns = bench.effort.turns
            bench.turns[0] = 1
            once = bench.time(launch)
            bench.turns[0] = 1 + turns
            many = bench.time(launch)
        timing = None
        if once.device is not None and many.device is not None:
            one = once.device.median
            timing = Timing(tuple((sample - one) / turns * US for sample in many.device.samples))
        yield Sample({"nodes": nodes}, timing, many.counters, 1 + turns)


def _grid(bench: Bench, *, kernel: str) -> Iterator[Sample]:
    multiprocessors = bench.device.info.multiprocessors
    for threads in bench.effort.grid_threads:
        limit = bench.largest(kernel, threads)
        sizes = (1, multiprocessors // 4, multiprocessors, 2 * multiprocessors, limit)
        for blocks in sorted(set(sizes)):
            if 1 <= blocks <= limit:
                shape = LaunchShape(blocks, threads)
                repeats = bench.effort.barriers
                leaves = repeats * (blocks if kernel == "sync_grid_own" else 1)
                found = bench.each(kernel, shape, repeats, cooperative=True, leaves=leaves)
                yield Sample(found.point, _in(US, found.timing), found.counters, found.repeats)


def _block(bench: Bench) -> Iterator[Sample]:
    for threads in bench.effort.block_threads:
        found = bench.each("sync_block", LaunchShape(1, threads), 4 * bench.effort.barriers)
        point: Point = {"threads": threads}
        yield Sample(point, _in(NS, found.timing), found.counters, found.repeats)


def _cluster(bench: Bench) -> Iterator[Sample]:
    kernel, clusters = "sync_cluster", bench.device.info.clusters
    for threads in bench.effort.grid_threads:
        for blocks in (size for size in (2, 4, 8, 16) if size <= clusters):
            # Sixteen blocks are more than every device need hold.
            limit = bench.device.max_resident_blocks(bench.program[kernel], threads, 0, blocks)
            if limit >= blocks:
                shape = LaunchShape(blocks, threads, cluster=blocks)
                found = bench.each(kernel, shape, 4 * bench.effort.barriers)
                yield Sample(found.point, _in(US, found.timing), found.counters, found.repeats)


def ring(places: int, seed: int = 1) -> npt.NDArray[np.int32]:
    """A ring through every line of ``places`` cache lines in random order, as a chase follows it.

    Returns
    -------
    (places * LINE,) int32 array
        At the first word of each line the first word of the line that comes next.
    """
    order = np.random.default_rng(seed).permutation(places).astype(np.int32) * LINE
    following = np.zeros(places * LINE, np.int32)
    following[order] = np.roll(order, -1)
    return following


def memories(info: Any, dram_bytes: int) -> dict[str, int]:
    """Bytes of a ring that this memory answers: L1 holds the first, L2 the second, neither DRAM."""
    return {
        "L1": 32 * LINE_BYTES,
        "L2": min(max(info.l2_bytes // 4, 1 << 20), 1 << 23) if info.kind == "cuda" else 1 << 13,
        "DRAM": max(dram_bytes, 8 * info.l2_bytes),
    }


def _loads(bench: Bench) -> Iterator[Sample]:
    for memory, nbytes in memories(bench.device.info, bench.effort.dram_bytes).items():
        following = ring(nbytes // LINE_BYTES)
        with bench.buffer(following, f"ring for {memory}") as places:
            bench.arguments.next = places.address
            # What L2 is to hold is loaded once; the chase of DRAM goes where it never was.
            steps = nbytes // LINE_BYTES if memory == "L2" else bench.effort.loads
            timing, counters = _chase(bench, following, steps)
        point: Point = {"memory": memory, "bytes": nbytes}
        yield Sample(point, timing, counters, bench.effort.loads)


def _chase(
    bench: Bench, following: npt.NDArray[np.int32], steps: int
) -> tuple[Timing | None, Counters]:
    def call() -> None:
        bench.launch("chase_loads", SMALL)

    with bench.device.current():
        bench.clear()
        bench.arguments.repeats = steps
        call()
        bench.stream.synchronize()
    place = 0
    for _ in range(steps):
        place = int(following[place])
    bench.require(f"a chase of {steps} loads ends", bench.answer()[0], place)
    bench.arguments.repeats = 0
    none = bench.time(call, samples=10)
    bench.arguments.repeats = bench.effort.loads
    many = bench.time(call, samples=min(bench.effort.samples, 10))
    if many.device is None or none.device is None:
        return None, many.counters
    idle = none.device.median
    each = ((sample - idle) / bench.effort.loads * NS for sample in many.device.samples)
    return Timing(tuple(each)), many.counters


def _atomics(bench: Bench) -> Iterator[Sample]:
    found = bench.each("chain_atomics", SMALL, bench.effort.loads)
    yield Sample({}, _in(NS, found.timing), found.counters, found.repeats)


def _copy(bench: Bench) -> Iterator[Sample]:
    nbytes, info = bench.effort.copy_bytes, bench.device.info
    threads = 256 if info.kind == "cuda" else WARP_SIZE
    blocks = min(8 * info.multiprocessors, nbytes // 16 // threads)
    copied = np.arange(nbytes // 4, dtype=np.int32)
    with bench.buffer(copied, "copied") as source:  # noqa: SIM117
        with bench.buffer(nbytes // 4, "copy") as target:
            setattr(bench.arguments, "from", source.address)
            bench.arguments.to, bench.arguments.count = target.address, nbytes // 16
            timed = bench.time(partial(bench.launch, "copy_words", LaunchShape(blocks, threads)))
            with bench.device.current():
                bench.require("the copy is whole", np.array_equal(target.to_host(), copied), True)
    rates = None
    if timed.device is not None:
        # Read and written, in gigabytes a second.
        rates = Timing(tuple(2 * nbytes / sample / 1e6 for sample in timed.device.samples))
    yield Sample({"bytes": nbytes}, rates, timed.counters, nbytes // 16)


def _always(_: Device) -> None:
    return None


def _no_cooperation(device: Device) -> str | None:
    return None if device.info.cooperative_launch else "the device has no cooperative launch"


def _no_clusters(device: Device) -> str | None:
    return None if device.info.clusters > 1 else "the device has no thread block clusters"


def _no_while(device: Device) -> str | None:
    if device.info.while_nodes:
        return None
    return f"WHILE nodes need a driver of CUDA 12.4; this one is {device.info.driver}"


def _no_dependent_nodes(device: Device) -> str | None:
    if device.info.dependent_nodes:
        return None
    return "dependent nodes need a GPU of sm_90 and a driver of CUDA 12.3"


@dataclass(frozen=True)
class Primitive:
    """One row: what is measured, in which unit and by whose clock, and where it cannot be.

    ``clock`` is ``device`` (events on the stream) or ``host``.
    """

    name: str
    title: str
    unit: str
    clock: str
    measure: Callable[[Bench], Iterator[Sample]] = field(repr=False)
    missing: Callable[[Device], str | None] = field(repr=False, default=_always)


PRIMITIVES: Mapping[str, Primitive] = {
    row.name: row
    for row in (
        Primitive(
            "launch_issue",
            "empty launch, until the call returns",
            "µs",
            "host",
            partial(_launch, clock="issue"),
        ),
        Primitive(
            "launch_completion",
            "empty launch, until the host knows it is done",
            "µs",
            "host",
            partial(_launch, clock="completion"),
        ),
        Primitive("launch_queued", "empty launch in a queue of them", "µs", "device", _queued),
        Primitive("round_trip", "launch, 4-byte copy, wait", "µs", "host", _round_trip),
        Primitive(
            "cooperative_issue",
            "cooperative launch, until the call returns",
            "µs",
            "host",
            partial(_launch, clock="issue", cooperative=True),
            _no_cooperation,
        ),
        Primitive(
            "cooperative_completion",
            "cooperative launch, until the host knows it is done",
            "µs",
            "host",
            partial(_launch, clock="completion", cooperative=True),
            _no_cooperation,
        ),
        Primitive(
            "graph_issue",
            "launch of a graph, until the call returns",
            "µs",
            "host",
            partial(_graph, clock="issue"),
        ),
        Primitive(
            "graph_completion",
            "launch of a graph, until the host knows it is done",
            "µs",
            "host",
            partial(_graph, clock="completion"),
        ),
        Primitive(
            "graph_device",
            "launch of a graph, on the device",
            "µs",
            "device",
            partial(_graph, clock="device"),
        ),
        Primitive(
            "graph_dependent",
            "launch of a graph of dependent nodes, on the device",
            "µs",
            "device",
            partial(_graph, clock="device", dependent=True),
            _no_dependent_nodes,
        ),
        Primitive("while_turn", "turn of a WHILE node", "µs", "device", _while, _no_while),
        Primitive(
            "grid_sync",
            "grid-wide barrier of cooperative groups",
            "µs",
            "device",
            partial(_grid, kernel="sync_grid"),
            _no_cooperation,
        ),
        Primitive(
            "own_barrier",
            "grid-wide barrier by one counter",
            "µs",
            "device",
            partial(_grid, kernel="sync_grid_own"),
            _no_cooperation,
        ),
        Primitive(
            "cluster_barrier",
            "barrier of a thread block cluster",
            "µs",
            "device",
            _cluster,
            _no_clusters,
        ),
        Primitive("block_sync", "__syncthreads", "ns", "device", _block),
        Primitive("dependent_load", "dependent load", "ns", "device", _loads),
        Primitive("dependent_atomic", "dependent atomic", "ns", "device", _atomics),
        Primitive("copy_rate", "copy, read and written", "GB/s", "device", _copy),
    )
}
"""Every primitive, by name."""


def measure_primitive(bench: Bench, primitive: Primitive) -> dict[str, Any]:
    """Measure one row at each of its points; as JSON takes it."""
    skipped = primitive.missing(bench.device)
    with bench.device.current():
        samples = [] if skipped else list(primitive.measure(bench))
    return {
        "primitive": primitive.name,
        "title": primitive.title,
        "unit": primitive.unit,
        "clock": primitive.clock,
        "skipped": skipped,
        "points": [
            {
                "point": sample.point,
                "repeats": sample.repeats,
                "samples": None if sample.timing is None else list(sample.timing.samples),
                "launches": sample.counters.launches,
                "host_syncs": sample.counters.host_syncs,
                "counts": sample.counters.device or None,
            }
            for sample in samples
        ],
    }
