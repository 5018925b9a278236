"""The one way anything is timed: verified, warmed up, repeated, by two clocks.

Used by the study, the command line and the benchmarks. The rules: a search is checked before its
time counts, and one whose answer is wrong, or was not checked, has no time; warm-ups are not timed;
CUDA events on the stream and the host's clock around a synchronised call are both kept; every
sample is kept, outliers too; what L2 holds before a search is declared and seen to; clocks are
recorded, never changed.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from persistent_bfs import compiler
from persistent_bfs.device.base import Buffer, Device, DeviceInfo, Stream
from persistent_bfs.graph import Graph
from persistent_bfs.reference import WrongAnswer, verify
from persistent_bfs.result import BFSResult, Counters
from persistent_bfs.session import BFS
from persistent_bfs.version import __version__

WARM_UPS = 2

L2_STATES = ("warm", "cold")
"""What L2 holds when a search begins: what the one before left there, or nothing of use."""

# What is written to evict L2: this many times its size, or where that is unknown so many bytes.
EVICTED_TIMES, EVICTED_BYTES = 4, 1 << 28

# A sample so many interquartile ranges outside the quartiles is an outlier (Tukey's fences).
FENCE = 1.5

CLOCKS = ("clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem", "temperature.gpu")


@dataclass(frozen=True)
class Timing:
    """Samples of one quantity, in milliseconds."""

    samples: tuple[float, ...]

    @property
    def min(self) -> float:
        """The smallest sample."""
        return min(self.samples)

    @property
    def median(self) -> float:
        """The median sample."""
        return float(np.median(self.samples))

    @property
    def max(self) -> float:
        """The largest sample."""
        return max(self.samples)

    def spread(self) -> dict[str, float]:
        """Minimum, median and maximum."""
        return {"min": self.min, "median": self.median, "max": self.max}

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and third quartile."""
        first, third = np.percentile(self.samples, (25, 75))
        return float(first), float(third)

    @property
    def outliers(self) -> tuple[float, ...]:
        """Samples outside Tukey's fences; they stay among the samples."""
        first, third = self.quartiles
        reach = FENCE * (third - first)
        return tuple(x for x in self.samples if not first - reach <= x <= third + reach)


@dataclass(frozen=True)
class Measurement:
    """A search, whether it is right, and how long it took.

    ``device`` and ``wall`` are None where the device has no time to tell, or the answer was
    wrong; ``problem`` then says what was wrong. So are they where the answer was not checked at
    all, and nobody knows.
    """

    result: BFSResult
    problem: str | None
    device: Timing | None
    wall: Timing | None
    checked: bool = True

    @property
    def verified(self) -> bool | None:
        """Whether the answer was found right; None if it was not checked."""
        return self.problem is None if self.checked else None


def find_problem(
    graph: Graph,
    result: BFSResult,
    *,
    max_depth: int | None = None,
    expected: npt.ArrayLike | None = None,
) -> str | None:
    """What is wrong with ``result``, in one line; None if every check passes.

    Checks distances, predecessors and frontier sizes as far as the result has them. Without a
    search: see `persistent_bfs.reference.verify`.

    Parameters
    ----------
    expected : array-like, optional
        The right distances, if the caller has them: compared, which is quicker than a proof.
    """
    try:
        verify(
            graph,
            result.source,
            result.distances,
            result.predecessors if result.has_predecessors else None,
            result.frontier_sizes,
            max_depth,
            enqueued=result.enqueued,
            expected=expected,
        )
    except WrongAnswer as wrong:
        return str(wrong)
    return None


def measure(
    session: BFS,
    source: int,
    *,
    repeat: int = 10,
    max_depth: int | None = None,
    expected: npt.ArrayLike | None = None,
    progress: Callable[[int], Any] | None = None,
    l2: str = "warm",
    verify: bool = True,
) -> Measurement:
    """Run a search until its times can be believed.

    The first run is checked; warm-ups follow, then ``repeat`` timed runs, the last of which is
    compared with the first. Where the device tells no time, the checked run is all.

    Parameters
    ----------
    expected : array-like, optional
        The right distances, if the caller has them; else they are proved.
    progress : callable, optional
        Called with the number of runs done.
    l2 : {"warm", "cold"}
        What L2 holds when a timed search begins: what the search before left, or, evicted outside
        the timed part, nothing of the graph.
    verify : bool
        False runs once, checks nothing, and so has no time.
    """
    if repeat < 1:
        raise ValueError(f"repeat is {repeat}; it must be at least 1")
    check_l2(l2)
    result = session.run(source, max_depth=max_depth)
    if not verify:
        return Measurement(result, None, None, None, checked=False)
    problem = find_problem(session.graph, result, max_depth=max_depth, expected=expected)
    if problem is not None or result.device_ms is None:
        return Measurement(result, problem, None, None)
    right = result.distances  # proved, or equal to what was expected
    for _ in range(WARM_UPS):
        session.run(source, max_depth=max_depth)
    device: list[float] = []
    wall: list[float] = []
    assert session.device is not None
    assert session.stream is not None
    with l2_state(session.device, session.stream, l2) as prepare:
        for done in range(repeat):
            del result  # or the next search would first move its answer out of the way, through L2
            prepare()
            result = session.run(source, max_depth=max_depth)
            assert result.device_ms is not None
            assert result.wall_ms is not None
            device.append(result.device_ms)
            wall.append(result.wall_ms)
            if progress is not None:
                progress(done + 1)
    problem = find_problem(session.graph, result, max_depth=max_depth, expected=right)
    if problem is not None:
        return Measurement(result, problem, None, None)
    return Measurement(result, None, Timing(tuple(device)), Timing(tuple(wall)))


def check_l2(state: str) -> str:
    """The state itself.

    Raises
    ------
    ValueError
        It is none of `L2_STATES`.
    """
    if state not in L2_STATES:
        raise ValueError(f"the L2 state is {state!r}; it must be one of {', '.join(L2_STATES)}")
    return state


@contextmanager
def l2_state(device: Device, stream: Stream, state: str) -> Iterator[Callable[[], None]]:
    """Give a function that sees to the L2 state before each timed call, inside the ``with`` block.

    To evict, it writes a buffer several times as large as L2, and waits.
    """
    if check_l2(state) == "warm":
        yield lambda: None
        return
    nbytes = EVICTED_TIMES * device.info.l2_bytes or EVICTED_BYTES
    with device.current():
        buffer = device.allocate(nbytes // 4, np.int32, "what evicts L2")
    try:
        yield lambda: _evict(device, stream, buffer)
    finally:
        buffer.free()


def _evict(device: Device, stream: Stream, buffer: Buffer) -> None:
    with device.current():
        stream.fill(buffer, 0)
        stream.synchronize()


@dataclass(frozen=True)
class CallTiming:
    """One thing asked of a device, again and again.

    Attributes
    ----------
    device : Timing or None
        Between events on the stream around the call; None where the device has no clock, as are
        the next two.
    issue : Timing or None
        The host's clock until the call returned.
    completion : Timing or None
        The host's clock until the device was done, too.
    counters : Counters
        What one call asked of host and device.
    """

    device: Timing | None
    issue: Timing | None
    completion: Timing | None
    counters: Counters


def time_call(
    device: Device,
    stream: Stream,
    call: Callable[[], Any],
    *,
    repeat: int,
    before: Callable[[], Any] = lambda: None,
) -> CallTiming:
    """Time what ``call`` asks of ``stream``: by events, and in runs of their own by the host.

    Events cost the host a few microseconds, hence the separate runs.

    Parameters
    ----------
    call : callable
        Asks; may also wait.
    repeat : int
        Timed calls by each clock.
    before : callable
        Makes each call's ground ready; not timed.
    """
    by_device: list[float] = []
    issued: list[float] = []
    completed: list[float] = []
    with device.current():
        before()
        stream.synchronize()
        device.take_counts()
        stream.counters.reset()
        begin = stream.record()
        call()
        end = stream.record()
        launches, host_syncs = stream.counters.launches, stream.counters.host_syncs
        stream.synchronize()
        counters = Counters(launches, host_syncs, 0, device.take_counts())
        if stream.elapsed_ms(begin, end) is None:
            return CallTiming(None, None, None, counters)
        for run in range(WARM_UPS + repeat):
            before()
            stream.synchronize()
            begin = stream.record()
            call()
            milliseconds = stream.elapsed_ms(begin, stream.record())
            assert milliseconds is not None
            if run >= WARM_UPS:
                by_device.append(milliseconds)
        for run in range(WARM_UPS + repeat):
            before()
            stream.synchronize()
            started = time.perf_counter()
            call()
            returned = time.perf_counter()
            stream.synchronize()
            done = time.perf_counter()
            if run >= WARM_UPS:
                issued.append((returned - started) * 1e3)
                completed.append((done - started) * 1e3)
    device_timing, issue, completion = (
        Timing(tuple(samples)) for samples in (by_device, issued, completed)
    )
    return CallTiming(device_timing, issue, completion, counters)


def describe_clocks(info: DeviceInfo) -> dict[str, Any]:
    """The GPU's clocks as found, in MHz, and its temperature in degrees Celsius.

    Asks ``nvidia-smi``, which changes nothing; ``problem`` says why there is no answer.
    """
    if info.kind != "cuda":
        return {"problem": f"the {info.kind} device has no clocks"}
    command = ["nvidia-smi", f"--query-gpu={','.join(CLOCKS)}", "--format=csv,noheader,nounits"]
    if info.pci_bus_id:
        command += ["-i", info.pci_bus_id]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return {"problem": f"nvidia-smi does not answer: {type(error).__name__}"}
    values = [value.strip() for value in answer.stdout.splitlines()[0].split(",")]
    numbers = (float(value) if value.isdecimal() else None for value in values)
    return dict(zip(CLOCKS, numbers, strict=True)) | {"problem": None}


def git_revision() -> str | None:
    """The commit of the clone that the package is in, ``+`` if it is changed; None elsewhere."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
        return answer.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)
        return git("rev-parse", "--short=12", "HEAD") + "+" * bool(git("status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return None


def source_digest() -> str:
    """Twelve digits that change with the program and its kernels, clone or not."""
    digest = hashlib.sha256()
    package, device_code = Path(__file__).resolve().parent, compiler.source_folder()
    for folder, kinds in ((package, ("*.py",)), (device_code, ("*.cuh", "*.hpp", "*.cpp"))):
        for kind in kinds:
            for path in sorted(folder.rglob(kind)):
                digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def describe_environment(device: DeviceInfo) -> dict[str, Any]:
    """Name what a measurement depends on besides what is searched."""
    try:
        made_by = compiler.find_cuda_compiler()[1].release
    except compiler.CompileError:
        made_by = None
    return {
        "persistent_bfs": __version__,
        "git_revision": git_revision(),
        "sources": source_digest(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "platform": platform.platform(),
        "driver": device.driver,
        "compiler": made_by,
        "architecture": device.architecture,
        "multiprocessors": device.multiprocessors,
        "memory_bytes": device.memory_bytes,
        "l2_bytes": device.l2_bytes,
    }


def traversed_edges_per_second(
    graph: Graph, distances: npt.ArrayLike, timing: Timing | None
) -> float | None:
    """Graph500's rate for a whole search of an undirected graph, by the median time.

    Its undirected edges within what was reached, a second; None if nothing was timed, or the
    graph is directed.
    """
    if timing is None or graph.directed:
        return None
    arcs = int(graph.degrees[np.asarray(distances) >= 0].sum(dtype="int64"))
    return arcs / 2 / (timing.median * 1e-3)


def harmonic_mean(rates: Sequence[float]) -> float:
    """The mean of rates over equal work; Graph500's mean of TEPS."""
    return len(rates) / sum(1 / rate for rate in rates)
