"""The CUDA device: a driver for context and memory, cuda.bindings for all else.

What PyCUDA can do is done by it where it is installed, and by cuda.bindings elsewhere
(``driver.py``). cuda.bindings gives cooperative launches, graphs, occupancy and modules in either
case. Every call is checked; an error names the call, the kernel and the limit.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from persistent_bfs import compiler
from persistent_bfs.config import Config
from persistent_bfs.device.base import (
    Buffer,
    Device,
    DeviceError,
    DeviceInfo,
    DeviceMemoryError,
    DeviceUnavailable,
    HostArray,
    Kernel,
    LaunchShape,
    LaunchTooLarge,
    Program,
    Stream,
)
from persistent_bfs.device.cuda_stream import Configuration, CudaGraph, CudaStream, with_edges
from persistent_bfs.device.driver import bindings, check, driver_problem, failure, open_driver

WHILE_NODES_DRIVER = 12040  # cuDriverGetVersion of CUDA 12.4, the first with WHILE nodes
# The first with programmatic dependencies between the nodes of a graph.
DEPENDENT_NODES_DRIVER, DEPENDENT_LAUNCH_CAPABILITY = 12030, (9, 0)
CLUSTERS_CAPABILITY = (9, 0)  # the first with thread block clusters
MAX_CLUSTER = 16
PORTABLE_CLUSTER = 8  # the largest that a kernel needs no leave for

# What a device answers that has no such clusters: CUDA_ERROR_INVALID_VALUE, _NOT_SUPPORTED and
# _INVALID_CLUSTER_SIZE.
NO_SUCH_CLUSTERS = (1, 801, 912)

# What the driver answers of a module it cannot take: CUDA_ERROR_INVALID_IMAGE, _NO_BINARY_FOR_GPU,
# _INVALID_PTX, _UNSUPPORTED_PTX_VERSION and _INVALID_SOURCE.
BAD_IMAGE = (200, 209, 218, 222, 300)

# Pinned memory is given in slots of pages that are kept: windows of a few bytes on the device, of
# which every session has some, and pinning takes as long as a short search.
PINNED_PAGE, PINNED_SLOT = 1 << 16, 1 << 9


class BadImage(DeviceError):
    """The driver cannot load a compiled kernel."""


def cuda_problem() -> str | None:
    """Why no GPU can be used here, in one line; None if one can.

    Looks for the packages, the driver, a device and a compiler (or kernels that one has left), and
    makes no context.
    """
    return driver_problem() or compiler.cuda_kernels_problem()


class CudaBuffer(Buffer):
    """Memory of the device."""

    def __init__(
        self, device: CudaDevice, address: int, handle: Any, count: int, dtype: npt.DTypeLike,
        name: str,
    ) -> None:  # fmt: skip
        super().__init__(address, count, dtype, name)
        self._device = device
        self._give_back = device.driver.owned(self, device.free_memory, (handle, address))

    def to_host(self, count: int | None = None, *, start: int = 0) -> HostArray:
        """As `Buffer.to_host`."""
        array = np.empty(self.count - start if count is None else count, self.dtype)
        self._device.copy_to_host(array, self.address + start * self.dtype.itemsize, self.name)
        return array

    def free(self) -> None:
        """As `Buffer.free`."""
        self._give_back()


class _PinnedSlots:
    """Pinned memory, handed out slot by slot."""

    def __init__(self, device: CudaDevice) -> None:
        self._driver = device.driver
        self._free: list[int] = []
        self._lock = threading.Lock()

    def take(self, nbytes: int) -> HostArray:
        """``nbytes`` of zeros; they are free again when nobody refers to them any more."""
        if nbytes > PINNED_SLOT:
            page = self._driver.pin(nbytes)
            memory = _memory_at(page.array.ctypes.data, nbytes)
            self._driver.owned(memory, self._driver.unpin, page.handle)
            return np.frombuffer(memory, np.uint8)
        with self._lock:
            if not self._free:
                page = self._driver.pin(PINNED_PAGE)
                self._driver.owned(self, self._driver.unpin, page.handle)
                start = page.array.ctypes.data
                self._free += range(start, start + PINNED_PAGE, PINNED_SLOT)
            address = self._free.pop()
        memory = _memory_at(address, nbytes)
        ctypes.memset(address, 0, nbytes)
        # Of its views NumPy keeps the memory alone, not the array they were made of.
        weakref.finalize(memory, self._free.append, address).atexit = False
        return np.frombuffer(memory, np.uint8)


def _memory_at(address: int, nbytes: int) -> Any:
    return (ctypes.c_uint8 * nbytes).from_address(address)


class CudaDevice(Device):
    """One NVIDIA GPU, on its primary context.

    Parameters
    ----------
    ordinal : int
        Which of the visible GPUs.

    Raises
    ------
    DeviceUnavailable
        No GPU can be used here, or there is none of that number; says what to do.
    """

    def __init__(self, ordinal: int = 0) -> None:
        super().__init__()
        problem = cuda_problem()
        if problem is not None:
            raise DeviceUnavailable(problem)
        self.cu = bindings()
        count = check(self.cu.cuDeviceGetCount(), "cuDeviceGetCount")
        if not 0 <= ordinal < count:
            raise DeviceUnavailable(f"there is no GPU {ordinal}: {count} visible")
        self.driver = open_driver(ordinal)
        weakref.finalize(self, self.driver.close)  # the last of all that is given back
        self._resident: dict[tuple[int, int, int, int], int] = {}
        self._allowed: dict[int, int] = {}
        self._programs: dict[Config, Program] = {}
        self._loading = threading.RLock()
        # Whatever allocates may let Python collect a session, whose closing copies in this thread.
        self._copying = threading.RLock()
        self._allocated: dict[int, int] = {}
        self._pinned = _PinnedSlots(self)
        with self.current():
            self.info = self._describe()
            self._copies = CudaStream(self)

    def _describe(self) -> DeviceInfo:
        cu = self.cu
        device = check(cu.cuCtxGetDevice(), "cuCtxGetDevice")
        major = self._attribute("COMPUTE_CAPABILITY_MAJOR")
        minor = self._attribute("COMPUTE_CAPABILITY_MINOR")
        version = check(cu.cuDriverGetVersion(), "cuDriverGetVersion")
        name = check(cu.cuDeviceGetName(128, device), "cuDeviceGetName")
        bus = check(cu.cuDeviceGetPCIBusId(32, device), "cuDeviceGetPCIBusId")
        return DeviceInfo(
            kind="cuda",
            name=_text(name),
            architecture=f"sm_{major}{minor}",
            multiprocessors=self._multiprocessors(),
            max_threads_per_block=self._attribute("MAX_THREADS_PER_BLOCK"),
            memory_bytes=int(check(cu.cuDeviceTotalMem(device), "cuDeviceTotalMem")),
            shared_bytes_per_block=self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            cooperative_launch=bool(self._attribute("COOPERATIVE_LAUNCH")),
            while_nodes=version >= WHILE_NODES_DRIVER,
            driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            pci_bus_id=_text(bus),
            clusters=MAX_CLUSTER if (major, minor) >= CLUSTERS_CAPABILITY else 1,
            dependent_nodes=version >= DEPENDENT_NODES_DRIVER
            and (major, minor) >= DEPENDENT_LAUNCH_CAPABILITY,
        )

    def _attribute(self, name: str) -> int:
        """An attribute of the device."""
        kind = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        device = check(self.cu.cuCtxGetDevice(), "cuCtxGetDevice")
        return int(check(self.cu.cuDeviceGetAttribute(kind, device), "cuDeviceGetAttribute"))

    def _multiprocessors(self) -> int:
        """Multiprocessors of this context, which under MPS may be fewer than the device's."""
        kind = self.cu.CUexecAffinityType.CU_EXEC_AFFINITY_TYPE_SM_COUNT
        status, affinity = self.cu.cuCtxGetExecAffinity(kind)
        if status.value == 0:
            return int(affinity.param.smCount.val)
        return self._attribute("MULTIPROCESSOR_COUNT")

    def current(self) -> AbstractContextManager[None]:
        """As `Device.current`: the primary context, pushed and popped in balance; see `Driver`."""
        return self.driver.current()

    @property
    def allocated_bytes(self) -> int:
        """Bytes of the buffers that have not been freed."""
        return sum(tuple(self._allocated.values()))

    def compile(self, config: Config) -> Path:
        """As `Device.compile`."""
        return compiler.cubin(config, self.info.architecture)

    def load(self, config: Config) -> Program:
        """As `Device.load`; what was loaded once stays, for sessions that come and go."""
        with self._loading:
            if config not in self._programs:
                kernels = compiler.load_compiled(
                    lambda: self.compile(config),
                    lambda path: self.load_library(path, config.kernels),
                    BadImage,
                )
                self._programs[config] = Program(config, kernels)
            return self._programs[config]

    def load_library(self, path: Path, names: Sequence[str]) -> dict[str, Kernel]:
        """Load the kernels called ``names`` of a cubin that `compile_cubin` made."""
        with self.current():
            answer = self.cu.cuModuleLoadData(path.read_bytes())
            call = f"cuModuleLoadData of {path.name}"
            if answer[0].value in BAD_IMAGE:
                version = check(self.cu.cuDriverGetVersion(), "cuDriverGetVersion")
                why = compiler.newer_than_driver(path, version)
                raise BadImage(f"{failure(answer[0], call)}" + (f"; {why}" if why else ""))
            module = check(answer, call)
            self.driver.owned(self, _unload, (self.cu, module))
            return {name: self._kernel(module, name) for name in names}

    def _kernel(self, module: Any, name: str) -> Kernel:
        function = check(
            self.cu.cuModuleGetFunction(module, name.encode()), f"cuModuleGetFunction of {name}"
        )
        # With lazy loading a kernel may be loaded at its first launch, which waits for the device:
        # for ever, if a persistent kernel is running.
        check(self.cu.cuFuncLoad(function), f"cuFuncLoad of {name}")
        kinds = self.cu.CUfunction_attribute

        def attribute(kind: Any) -> int:
            return int(check(self.cu.cuFuncGetAttribute(kind, function), "cuFuncGetAttribute"))

        resources = compiler.KernelResources(
            registers=attribute(kinds.CU_FUNC_ATTRIBUTE_NUM_REGS),
            shared_bytes=attribute(kinds.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
            local_bytes=attribute(kinds.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        )
        return Kernel(name, function, resources)

    def allocate(self, count: int, dtype: npt.DTypeLike, name: str) -> CudaBuffer:
        """As `Device.allocate`."""
        nbytes = count * np.dtype(dtype).itemsize
        with self.current():
            given = self.driver.allocate(max(nbytes, 1))
            if given is None:
                raise DeviceMemoryError(
                    f"{name} needs {nbytes:,} bytes of device memory in one piece, "
                    f"{self.free_bytes():,} are free"
                )
            self._allocated[given.address] = nbytes
            return CudaBuffer(self, given.address, given.handle, count, dtype, name)

    def free_memory(self, given: tuple[Any, int]) -> None:
        """Give back what a buffer has."""
        handle, address = given
        del self._allocated[address]  # before another buffer has it
        self.driver.free(handle)

    def upload(self, array: HostArray, name: str) -> CudaBuffer:
        """As `Device.upload`."""
        array = np.ascontiguousarray(array)
        buffer = self.allocate(array.size, array.dtype, name)
        if array.size:
            answer = lambda: self.cu.cuMemcpyHtoDAsync(  # noqa: E731
                buffer.address, array.ctypes.data, array.nbytes, self._copies.handle
            )
            try:
                self._copy(answer, f"cuMemcpyHtoDAsync of {name}")
            except BaseException:
                buffer.free()
                raise
        return buffer

    def copy_to_host(self, array: HostArray, address: int, name: str) -> None:
        """Fill ``array`` with what is at ``address`` of the device."""
        if array.nbytes:
            self._copy(
                lambda: self.cu.cuMemcpyDtoHAsync(
                    array.ctypes.data, address, array.nbytes, self._copies.handle
                ),
                f"cuMemcpyDtoHAsync of {name}",
            )

    def _copy(self, ask: Callable[[], tuple[Any, ...]], call: str) -> None:
        """Copy on a stream for that alone: no other stream of the process waits for it."""
        with self.current(), self._copying:
            check(ask(), call)
            waited = self.cu.cuStreamSynchronize(self._copies.handle)
            if waited[0]:
                check(waited, f"cuStreamSynchronize after {call}")

    def pinned(self, count: int, dtype: npt.DTypeLike) -> HostArray:
        """As `Device.pinned`."""
        with self.current():
            nbytes = count * np.dtype(dtype).itemsize
            array: HostArray = self._pinned.take(nbytes).view(dtype)
        return array

    def stream(self) -> CudaStream:
        """As `Device.stream`."""
        with self.current():
            return CudaStream(self)

    def max_resident_blocks(
        self, kernel: Kernel, threads: int, shared_bytes: int = 0, cluster: int = 1
    ) -> int:
        """As `Device.max_resident_blocks`."""
        key = (int(kernel.handle), threads, shared_bytes, cluster)
        if key not in self._resident and cluster != 1:
            self._resident[key] = self._resident_in_clusters(kernel, threads, shared_bytes, cluster)
        elif key not in self._resident:
            answer = self.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                kernel.handle, threads, shared_bytes
            )
            call = f"cuOccupancyMaxActiveBlocksPerMultiprocessor of {kernel.name}"
            self._resident[key] = int(check(answer, call)) * self.info.multiprocessors
        return self._resident[key]

    def _resident_in_clusters(
        self, kernel: Kernel, threads: int, shared_bytes: int, cluster: int
    ) -> int:
        self.check_cluster(kernel, cluster)
        if cluster > PORTABLE_CLUSTER:
            kind = self.cu.CUfunction_attribute
            answer = self.cu.cuFuncSetAttribute(
                kernel.handle, kind.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1
            )
            check(answer, f"cuFuncSetAttribute of {kernel.name}, clusters of {cluster} blocks")
        shape = LaunchShape(cluster, threads, shared_bytes, cluster)
        prepared = Configuration(self.cu, shape, self.cu.CUstream(0), cooperative=False)
        answer = self.cu.cuOccupancyMaxActiveClusters(kernel.handle, prepared.configuration)
        call = f"cuOccupancyMaxActiveClusters of {kernel.name}, {shape}"
        if answer[0].value in NO_SUCH_CLUSTERS:
            raise LaunchTooLarge(f"{self.info.name} refuses clusters: {failure(answer[0], call)}")
        return cluster * int(check(answer, call))

    def allow_shared(self, kernel: Kernel, shared_bytes: int) -> None:
        """As `Device.allow_shared`; never less than before, for others have the kernel, too."""
        if shared_bytes <= self._allowed.get(int(kernel.handle), 0):
            return
        kind = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        answer = self.cu.cuFuncSetAttribute(kernel.handle, kind, shared_bytes)
        check(answer, f"cuFuncSetAttribute of {kernel.name}, {shared_bytes} bytes")
        self._allowed[int(kernel.handle)] = shared_bytes

    def check_launch(self, kernel: Kernel, shape: LaunchShape, *, cooperative: bool) -> None:
        """Refuse clusters, or a cooperative grid, that the device cannot hold."""
        self.check_cluster(kernel, shape.cluster, shape.blocks)
        if cooperative:
            self.check_resident(kernel, shape)
            return
        limit = self.max_resident_blocks(kernel, shape.threads, shape.shared_bytes, shape.cluster)
        if limit < shape.cluster:
            raise LaunchTooLarge(
                f"kernel {kernel.name}: {shape} asked for; {self.info.name} holds not one of them"
            )

    def check_resident(self, kernel: Kernel, shape: LaunchShape) -> None:
        """Refuse a cooperative grid that cannot be resident, naming the limit."""
        limit = self.max_resident_blocks(kernel, shape.threads, shape.shared_bytes, shape.cluster)
        if shape.blocks > limit:
            raise LaunchTooLarge(
                f"kernel {kernel.name}: {shape} asked for in one cooperative grid; "
                f"{self.info.name} holds {limit} at once"
            )

    def while_graph(
        self,
        stream: Stream,
        before: Callable[[Stream], None],
        body: Callable[[Stream, int], None],
        after: Callable[[Stream], None],
    ) -> CudaGraph:
        """As `Device.while_graph`."""
        assert isinstance(stream, CudaStream)
        if not self.info.while_nodes:
            raise DeviceError(
                f"WHILE nodes need a driver of CUDA 12.4; this one is {self.info.driver}"
            )
        cu = self.cu
        graph = check(cu.cuGraphCreate(0), "cuGraphCreate")
        try:
            with stream.recording_into(graph, []) as last:
                before(stream)
            condition = check(
                cu.cuGraphConditionalHandleCreate(
                    graph, self.context(), 1, cu.CU_GRAPH_COND_ASSIGN_DEFAULT
                ),
                "cuGraphConditionalHandleCreate",
            )
            node, body_graph = self._while_node(graph, last, condition)
            with stream.recording_into(body_graph, []):
                body(stream, int(condition))
            with stream.recording_into(graph, [node]):
                after(stream)
        except BaseException:
            cu.cuGraphDestroy(graph)
            raise
        return CudaGraph(self, graph, stream.handle)

    def context(self) -> Any:
        """The driver's handle of the context that is current."""
        return check(self.cu.cuCtxGetCurrent(), "cuCtxGetCurrent")

    def _while_node(self, graph: Any, after: list[Any], condition: Any) -> tuple[Any, Any]:
        cu = self.cu
        parameters = cu.CUgraphNodeParams()
        parameters.type = cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
        parameters.conditional.handle = condition
        parameters.conditional.type = cu.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
        parameters.conditional.size = 1
        parameters.conditional.ctx = self.context()
        edges = [cu.CUgraphEdgeData() for _ in after]
        add = with_edges(cu, "cuGraphAddNode")
        node = check(add(graph, after, edges, len(after), parameters), "cuGraphAddNode")
        return node, parameters.conditional.phGraph_out[0]

    def free_bytes(self) -> int:
        """As `Device.free_bytes`."""
        with self.current():
            free, _ = check(self.cu.cuMemGetInfo(), "cuMemGetInfo")
            # What is held for later is as good as free to us.
            return int(free) + self.driver.held_bytes()

    def abandon(self) -> None:
        """As `Device.abandon`."""
        self.driver.abandon()

    def close(self) -> None:
        """Let others have what is free; the device stays open for the sessions to come."""
        if os.getpid() == self.driver.process and self.driver.lost is None:
            with self.current():
                self.driver.trim()


def _unload(loaded: tuple[Any, Any]) -> None:
    check(loaded[0].cuModuleUnload(loaded[1]), "cuModuleUnload")


def _text(name: Any) -> str:
    text: str = bytes(name).split(b"\0")[0].decode()
    return text


_opening = threading.Lock()
_devices: dict[int, CudaDevice] = {}


def shared_device(ordinal: int = 0) -> CudaDevice:
    """GPU ``ordinal``, opened at the first call and kept until the process ends.

    So that sessions that come and go pay for context and modules once. Raises as `CudaDevice`.
    """
    with _opening:
        device = _devices.get(ordinal)
        if device is None or device.driver.process != os.getpid():
            device = _devices[ordinal] = CudaDevice(ordinal)
        return device
