"""The CUDA device: PyCUDA and cuda.bindings behind the `Device` interface.

PyCUDA gives the primary context (shared with PyTorch, CuPy and others in the process), the memory
pool, pinned memory, streams and events. cuda.bindings gives what PyCUDA lacks: cooperative
launches, graphs, occupancy; and so also loads the modules, since a kernel's handle must be one
both can use. Every call is checked; an error names the call, the kernel and the limit.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
)

WHILE_NODES_DRIVER = 12040  # cuDriverGetVersion of CUDA 12.4, the first with WHILE nodes
# The first with programmatic dependencies between the nodes of a graph.
DEPENDENT_NODES_DRIVER, DEPENDENT_LAUNCH_CAPABILITY = 12030, (9, 0)
CLUSTERS_CAPABILITY = (9, 0)  # the first with thread block clusters
MAX_CLUSTER = 16
PORTABLE_CLUSTER = 8  # the largest that a kernel needs no leave for
NOT_READY = 600  # CUDA_ERROR_NOT_READY

# The host waits as most searches end, without a pause; one that takes long gets looks now and then.
SECONDS_OF_SPINNING, SECONDS_BETWEEN_LOOKS = 20e-3, 200e-6

NON_BLOCKING_STREAM = 1  # does not wait for the legacy default stream, nor it for ours


def _bindings() -> Any:
    from cuda.bindings import driver

    return driver


def _check(answer: tuple[Any, ...], call: str) -> Any:
    """The values of a driver call's answer, or a `DeviceError` that names the call."""
    status, *values = answer
    if status.value == 0:
        return values[0] if len(values) == 1 else values
    cu = _bindings()
    texts = [cu.cuGetErrorName(status)[1], cu.cuGetErrorString(status)[1]]
    name, reason = (text.decode() if text else str(status) for text in texts)
    raise DeviceError(f"{call}: {name} ({reason})")


def with_edges(cu: Any, call: str) -> Callable[..., Any]:
    """The form of a call that takes data of a graph's edges.

    In bindings of CUDA 12 it has a name of its own; since 13 there is no other.
    """
    form: Callable[..., Any] = getattr(cu, f"{call}_v2", None) or getattr(cu, call)
    return form


def cuda_problem() -> str | None:
    """Why no GPU can be used here, in one line; None if one can.

    Looks for the packages, the driver, a device and nvcc, and makes no context.
    """
    try:
        import pycuda.driver as pycuda_driver
    except ImportError as error:
        return f"PyCUDA cannot be imported ({error}); pip install 'persistent-bfs[cuda]'"
    try:
        _bindings()
    except ImportError as error:
        return f"cuda.bindings cannot be imported ({error}); pip install 'persistent-bfs[cuda]'"
    try:
        pycuda_driver.init()
        count = pycuda_driver.Device.count()
    except pycuda_driver.Error as error:
        return f"the NVIDIA driver does not answer: {error}"
    if count == 0:
        return "the NVIDIA driver sees no GPU; check CUDA_VISIBLE_DEVICES"
    try:
        compiler.find_nvcc()
    except compiler.CompileError as error:
        return str(error)
    return None


class CudaBuffer(Buffer):
    """Memory from the device's pool."""

    def __init__(
        self, device: CudaDevice, allocation: Any, count: int, dtype: npt.DTypeLike, name: str
    ) -> None:
        super().__init__(int(allocation), count, dtype, name)
        self._device = device
        self._allocation = allocation

    def to_host(self, count: int | None = None, *, start: int = 0) -> HostArray:
        """As `Buffer.to_host`."""
        array = np.empty(self.count - start if count is None else count, self.dtype)
        with self._device.current():
            self._device.driver.memcpy_dtoh(array, self.address + start * self.dtype.itemsize)
        return array

    def free(self) -> None:
        """As `Buffer.free`."""
        if self._allocation is not None:
            with self._device.current():
                self._allocation.free()
            self._allocation = None


@dataclass(frozen=True)
class CudaEvent(Event):
    """A PyCUDA event."""

    event: Any


def _attributes(
    shape: LaunchShape, value: Callable[[], Any], *, cooperative: bool
) -> Iterator[tuple[str, Any]]:
    """What a launch says beyond its geometry: the attributes' names and values, made by ``value``.

    cuda.bindings has one type of value for launches and another one for the nodes of a graph.
    """
    if shape.cluster != 1:
        cluster = value()
        cluster.clusterDim.x, cluster.clusterDim.y, cluster.clusterDim.z = shape.cluster, 1, 1
        yield "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION", cluster
    if cooperative:
        together = value()
        together.cooperative = 1
        yield "CU_LAUNCH_ATTRIBUTE_COOPERATIVE", together


class _Configuration:
    """A launch's geometry and attributes, as cuLaunchKernelEx takes them; made once a shape."""

    def __init__(self, cu: Any, shape: LaunchShape, stream: Any, *, cooperative: bool) -> None:
        self._attributes = []  # the configuration points to them
        for name, value in _attributes(shape, cu.CUlaunchAttributeValue, cooperative=cooperative):
            attribute = cu.CUlaunchAttribute()
            attribute.id, attribute.value = getattr(cu.CUlaunchAttributeID, name), value
            self._attributes.append(attribute)
        self.configuration = configuration = cu.CUlaunchConfig()
        configuration.gridDimX, configuration.gridDimY, configuration.gridDimZ = shape.blocks, 1, 1
        configuration.blockDimX, configuration.blockDimY = shape.threads, 1
        configuration.blockDimZ = 1
        configuration.sharedMemBytes = shape.shared_bytes
        configuration.hStream = stream
        configuration.attrs = self._attributes
        configuration.numAttrs = len(self._attributes)


class CudaGraph(Graph):
    """An instantiated graph; uploaded, so that its first launch is like any other."""

    def __init__(self, device: CudaDevice, graph: Any, stream: Any) -> None:
        cu = device.cu
        self._device = device
        self._graph = graph
        self.executable = _check(cu.cuGraphInstantiate(graph, 0), "cuGraphInstantiate")
        _check(cu.cuGraphUpload(self.executable, stream), "cuGraphUpload")

    def free(self) -> None:
        """As `Graph.free`."""
        if self.executable is not None:
            cu = self._device.cu
            with self._device.current():
                _check(cu.cuGraphExecDestroy(self.executable), "cuGraphExecDestroy")
                _check(cu.cuGraphDestroy(self._graph), "cuGraphDestroy")
            self.executable = self._graph = None


class _Addresses:
    """Where host arrays are, which NumPy is slow to say, and a host's loop asks at every level."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[HostArray], int]] = {}

    def of(self, array: HostArray) -> int:
        """The address of an array's first byte."""
        known = self._known.get(id(array))
        if known is not None and known[0]() is array:  # else one that had its identity before
            return known[1]
        address = array.ctypes.data
        self._known[id(array)] = weakref.ref(array), address
        return address


class CudaStream(Stream):
    """A non-blocking stream of the device's own."""

    def __init__(self, device: CudaDevice) -> None:
        super().__init__()
        self._device = device
        self._cu = device.cu
        self.pycuda = device.driver.Stream(NON_BLOCKING_STREAM)
        self.handle = self._cu.CUstream(self.pycuda.handle)
        self._configurations: dict[tuple[int, LaunchShape, bool], _Configuration] = {}
        self._addresses = _Addresses()
        self._graph: Any = None  # being recorded
        self._last: list[Any] = []  # its last node
        self._may_begin_early = False  # a kernel recorded next

    def _launch(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, kind: LaunchKind
    ) -> None:
        if self._graph is not None:
            self._add_kernel(kernel, shape, arguments, kind)
            return
        # Asked by itself a launch is kept waiting by the host: one that begins early gains nothing.
        cooperative = kind == LaunchKind.COOPERATIVE
        if shape.cluster != 1:
            self._launch_clusters(kernel, shape, arguments, cooperative=cooperative)
            return
        geometry = (shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes)
        if cooperative:
            self._device.check_resident(kernel, shape)
            call = "cuLaunchCooperativeKernel"
            answer = self._cu.cuLaunchCooperativeKernel(
                kernel.handle, *geometry, self.handle, arguments.address
            )
        else:
            call = "cuLaunchKernel"
            answer = self._cu.cuLaunchKernel(
                kernel.handle, *geometry, self.handle, arguments.address, 0
            )
        if answer[0]:
            _check(answer, f"{call} of {kernel.name}, {shape}")

    def _launch_clusters(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, *, cooperative: bool
    ) -> None:
        key = (int(kernel.handle), shape, cooperative)
        prepared = self._configurations.get(key)
        if prepared is None:
            self._device.check_launch(kernel, shape, cooperative=cooperative)
            prepared = _Configuration(self._cu, shape, self.handle, cooperative=cooperative)
            self._configurations[key] = prepared
        answer = self._cu.cuLaunchKernelEx(
            prepared.configuration, kernel.handle, arguments.address, 0
        )
        if answer[0]:
            _check(answer, f"cuLaunchKernelEx of {kernel.name}, {shape}")

    def fill(self, buffer: Buffer, value: int, *, start: int = 0, count: int | None = None) -> None:
        """As `Stream.fill`."""
        words = buffer.nbytes // 4 - start if count is None else count
        address, word = buffer.address + 4 * start, value & 0xFFFFFFFF
        if self._graph is not None:
            node = self._cu.CUDA_MEMSET_NODE_PARAMS()
            node.dst, node.value, node.elementSize = address, word, 4
            node.width, node.height = words, 1
            self._add("cuGraphAddMemsetNode", node, self._device.context())
            return
        answer = self._cu.cuMemsetD32Async(address, word, words, self.handle)
        if answer[0]:
            _check(answer, f"cuMemsetD32Async of {buffer.name}")

    def copy_to_host(self, target: HostArray, source: Buffer, *, start: int = 0) -> None:
        """As `Stream.copy_to_host`."""
        host, device = self._addresses.of(target), source.address + start
        if self._graph is not None:
            self._add_copy(target.nbytes, srcDevice=device, dstHost=host)
            return
        answer = self._cu.cuMemcpyDtoHAsync(host, device, target.nbytes, self.handle)
        if answer[0]:
            _check(answer, f"cuMemcpyDtoHAsync of {source.name}")

    def copy_to_device(self, target: Buffer, source: HostArray, *, start: int = 0) -> None:
        """As `Stream.copy_to_device`."""
        host, device = self._addresses.of(source), target.address + start
        if self._graph is not None:
            self._add_copy(source.nbytes, srcHost=host, dstDevice=device)
            return
        answer = self._cu.cuMemcpyHtoDAsync(device, host, source.nbytes, self.handle)
        if answer[0]:
            _check(answer, f"cuMemcpyHtoDAsync of {target.name}")

    def record(self, event: Event | None = None) -> CudaEvent:
        """As `Stream.record`."""
        again = event if isinstance(event, CudaEvent) else CudaEvent(self._device.driver.Event())
        again.event.record(self.pycuda)
        return again

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """As `Stream.elapsed_ms`."""
        assert isinstance(start, CudaEvent)
        assert isinstance(end, CudaEvent)
        end.event.synchronize()
        return float(start.event.time_till(end.event))

    def _launch_graph(self, graph: Graph) -> None:
        assert isinstance(graph, CudaGraph)
        _check(self._cu.cuGraphLaunch(graph.executable, self.handle), "cuGraphLaunch")

    def _synchronize(self) -> None:
        # Not one call that waits: Python would see no Ctrl-C before it returns.
        query, handle = self._cu.cuStreamQuery, self.handle
        give_way = time.perf_counter() + SECONDS_OF_SPINNING
        while True:
            answer = query(handle)
            if not answer[0]:
                return
            if answer[0] != NOT_READY:
                _check(answer, "cuStreamQuery")
            if time.perf_counter() > give_way:
                time.sleep(SECONDS_BETWEEN_LOOKS)

    # A recording adds its nodes one behind the other by hand. Capturing the stream would do it for
    # us, but while any stream of a context is being captured, no other thread may synchronise
    # that context: neither ours nor one that has nothing to do with us.
    def _begin_capture(self) -> None:
        self._graph = _check(self._cu.cuGraphCreate(0), "cuGraphCreate")
        self._last, self._may_begin_early = [], False

    def _end_capture(self) -> CudaGraph:
        graph, self._graph = self._graph, None
        return CudaGraph(self._device, graph, self.handle)

    def _abandon_capture(self) -> None:
        graph, self._graph = self._graph, None
        _check(self._cu.cuGraphDestroy(graph), "cuGraphDestroy")

    @contextmanager
    def recording_into(self, graph: Any, after: list[Any]) -> Iterator[list[Any]]:
        """Add what is asked inside the ``with`` block to ``graph``, behind the nodes ``after``.

        The list it gives holds the last node when the block is over.
        """
        self._graph, self._last, self._recording = graph, list(after), True
        self._may_begin_early = False
        try:
            yield self._last
        finally:
            self._graph, self._recording = None, False

    def _add(self, call: str, parameters: Any, *more: Any) -> None:
        add = getattr(self._cu, call)
        node = _check(add(self._graph, self._last, len(self._last), parameters, *more), call)
        self._last[:], self._may_begin_early = [node], False

    def _add_early(self, call: str, parameters: Any) -> None:
        before, self._last[:] = list(self._last), []
        self._add(call, parameters)
        edge = self._cu.CUgraphEdgeData()
        edge.from_port = self._cu.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
        edge.type = self._cu.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
        call, depend = "cuGraphAddDependencies", with_edges(self._cu, "cuGraphAddDependencies")
        _check(depend(self._graph, before, self._last, [edge], 1), call)

    def _add_kernel(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, kind: LaunchKind
    ) -> None:
        cooperative = kind == LaunchKind.COOPERATIVE
        if cooperative or shape.cluster != 1:
            self._device.check_launch(kernel, shape, cooperative=cooperative)
        node = self._cu.CUDA_KERNEL_NODE_PARAMS()
        node.func = kernel.handle
        node.gridDimX, node.gridDimY, node.gridDimZ = shape.blocks, 1, 1
        node.blockDimX, node.blockDimY, node.blockDimZ = shape.threads, 1, 1
        node.sharedMemBytes = shape.shared_bytes
        node.kernelParams = arguments.address  # what it points to is copied now
        early = kind == LaunchKind.DEPENDENT and self._may_begin_early
        (self._add_early if early else self._add)("cuGraphAddKernelNode", node)
        self._may_begin_early = self._device.info.dependent_nodes
        value = self._cu.CUkernelNodeAttrValue
        for name, each in _attributes(shape, value, cooperative=cooperative):
            answer = self._cu.cuGraphKernelNodeSetAttribute(
                self._last[0], getattr(self._cu.CUkernelNodeAttrID, name), each
            )
            _check(answer, f"cuGraphKernelNodeSetAttribute of {kernel.name}, {shape}")

    def _add_copy(self, nbytes: int, **ends: int) -> None:
        kinds = self._cu.CUmemorytype
        node = self._cu.CUDA_MEMCPY3D()
        node.WidthInBytes, node.Height, node.Depth = nbytes, 1, 1
        for end, address in ends.items():
            on_host = end.endswith("Host")
            kind = kinds.CU_MEMORYTYPE_HOST if on_host else kinds.CU_MEMORYTYPE_DEVICE
            setattr(node, f"{end[:3]}MemoryType", kind)
            setattr(node, end, address)
        self._add("cuGraphAddMemcpyNode", node, self._device.context())


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
        problem = cuda_problem()
        if problem is not None:
            raise DeviceUnavailable(problem)
        import pycuda.driver
        import pycuda.tools

        self.driver = pycuda.driver
        self.cu = _bindings()
        if not 0 <= ordinal < self.driver.Device.count():
            raise DeviceUnavailable(
                f"there is no GPU {ordinal}: {self.driver.Device.count()} visible"
            )
        self._process = os.getpid()
        self._pycuda_device = self.driver.Device(ordinal)
        try:
            self._context = self._pycuda_device.retain_primary_context()
        except self.driver.Error as error:
            raise DeviceUnavailable(f"GPU {ordinal} gives no context: {error}") from None
        self._thread = threading.local()
        self._resident: dict[tuple[int, int, int, int], int] = {}
        self._modules: list[Any] = []
        self._programs: dict[Config, Program] = {}
        with self.current():
            self._pool = pycuda.tools.DeviceMemoryPool()
            self.info = self._describe()

    def _describe(self) -> DeviceInfo:
        device, attributes = self._pycuda_device, self.driver.device_attribute
        major, minor = device.compute_capability()
        version = _check(self.cu.cuDriverGetVersion(), "cuDriverGetVersion")
        return DeviceInfo(
            kind="cuda",
            name=device.name(),
            architecture=f"sm_{major}{minor}",
            multiprocessors=self._multiprocessors(),
            max_threads_per_block=device.get_attribute(attributes.MAX_THREADS_PER_BLOCK),
            memory_bytes=device.total_memory(),
            shared_bytes_per_block=self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            cooperative_launch=bool(self._attribute("COOPERATIVE_LAUNCH")),
            while_nodes=version >= WHILE_NODES_DRIVER,
            driver=f"CUDA {version // 1000}.{version % 1000 // 10}",
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            pci_bus_id=str(device.pci_bus_id()),
            clusters=MAX_CLUSTER if (major, minor) >= CLUSTERS_CAPABILITY else 1,
            dependent_nodes=version >= DEPENDENT_NODES_DRIVER
            and (major, minor) >= DEPENDENT_LAUNCH_CAPABILITY,
        )

    def _attribute(self, name: str) -> int:
        """An attribute of the device that PyCUDA may not know."""
        kind = getattr(self.cu.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        device = _check(self.cu.cuCtxGetDevice(), "cuCtxGetDevice")
        return int(_check(self.cu.cuDeviceGetAttribute(kind, device), "cuDeviceGetAttribute"))

    def _multiprocessors(self) -> int:
        """Multiprocessors of this context, which under MPS may be fewer than the device's."""
        kind = self.cu.CUexecAffinityType.CU_EXEC_AFFINITY_TYPE_SM_COUNT
        status, affinity = self.cu.cuCtxGetExecAffinity(kind)
        if status.value == 0:
            return int(affinity.param.smCount.val)
        attribute = self.driver.device_attribute.MULTIPROCESSOR_COUNT
        return int(self._pycuda_device.get_attribute(attribute))

    @contextmanager
    def current(self) -> Iterator[None]:
        """As `Device.current`: the primary context, pushed and popped in balance.

        Raises
        ------
        DeviceError
            The process was forked from the one that opened the device.
        """
        if os.getpid() != self._process:
            raise DeviceError(
                "this process was forked after CUDA was initialised, which CUDA does not survive; "
                'start workers with multiprocessing.get_context("spawn")'
            )
        if getattr(self._thread, "inside", False):
            # Nested inside a call of our own: the context is already on top.
            yield
            return
        self._context.push()
        self._thread.inside = True
        try:
            yield
        finally:
            self._thread.inside = False
            self.driver.Context.pop()

    def compile(self, config: Config) -> Path:
        """As `Device.compile`."""
        return compiler.cubin(config, self.info.architecture)

    def load(self, config: Config) -> Program:
        """As `Device.load`; what was loaded once stays, for sessions that come and go."""
        if config not in self._programs:
            kernels = self.load_library(self.compile(config), config.kernels)
            self._programs[config] = Program(config, kernels)
        return self._programs[config]

    def load_library(self, path: Path, names: Sequence[str]) -> dict[str, Kernel]:
        """Load the kernels called ``names`` of a cubin that `compile_cubin` made."""
        with self.current():
            module = _check(
                self.cu.cuModuleLoadData(path.read_bytes()), f"cuModuleLoadData of {path.name}"
            )
            self._modules.append(module)
            return {name: self._kernel(module, name) for name in names}

    def _kernel(self, module: Any, name: str) -> Kernel:
        function = _check(
            self.cu.cuModuleGetFunction(module, name.encode()), f"cuModuleGetFunction of {name}"
        )
        # With lazy loading a kernel may be loaded at its first launch, which waits for the device:
        # for ever, if a persistent kernel is running.
        _check(self.cu.cuFuncLoad(function), f"cuFuncLoad of {name}")
        kinds = self.cu.CUfunction_attribute

        def attribute(kind: Any) -> int:
            return int(_check(self.cu.cuFuncGetAttribute(kind, function), "cuFuncGetAttribute"))

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
            try:
                allocation = self._pool.allocate(max(nbytes, 1))
            except self.driver.MemoryError:
                raise DeviceMemoryError(
                    f"{name} needs {nbytes:,} bytes of device memory, "
                    f"{self.free_bytes():,} are free"
                ) from None
        return CudaBuffer(self, allocation, count, dtype, name)

    def upload(self, array: HostArray, name: str) -> CudaBuffer:
        """As `Device.upload`."""
        buffer = self.allocate(array.size, array.dtype, name)
        if array.size:
            with self.current():
                self.driver.memcpy_htod(buffer.address, np.ascontiguousarray(array))
                # The copy's tail may still be on its way, and our streams do not wait for it.
                self.driver.Context.synchronize()
        return buffer

    def pinned(self, count: int, dtype: npt.DTypeLike) -> HostArray:
        """As `Device.pinned`."""
        with self.current():
            array: HostArray = self.driver.pagelocked_zeros(count, np.dtype(dtype))
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
            self._resident[key] = int(_check(answer, call)) * self.info.multiprocessors
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
            _check(answer, f"cuFuncSetAttribute of {kernel.name}, clusters of {cluster} blocks")
        shape = LaunchShape(cluster, threads, shared_bytes, cluster)
        prepared = _Configuration(self.cu, shape, self.cu.CUstream(0), cooperative=False)
        answer = self.cu.cuOccupancyMaxActiveClusters(kernel.handle, prepared.configuration)
        call = f"cuOccupancyMaxActiveClusters of {kernel.name}, {shape}"
        return cluster * int(_check(answer, call))

    def allow_shared(self, kernel: Kernel, shared_bytes: int) -> None:
        """As `Device.allow_shared`."""
        kind = self.cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        answer = self.cu.cuFuncSetAttribute(kernel.handle, kind, shared_bytes)
        _check(answer, f"cuFuncSetAttribute of {kernel.name}, {shared_bytes} bytes")

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
        graph = _check(cu.cuGraphCreate(0), "cuGraphCreate")
        try:
            with stream.recording_into(graph, []) as last:
                before(stream)
            condition = _check(
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
            return CudaGraph(self, graph, stream.handle)
        except BaseException:
            cu.cuGraphDestroy(graph)
            raise

    def context(self) -> Any:
        """The driver's handle of the context that is current."""
        return _check(self.cu.cuCtxGetCurrent(), "cuCtxGetCurrent")

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
        node = _check(add(graph, after, edges, len(after), parameters), "cuGraphAddNode")
        return node, parameters.conditional.phGraph_out[0]

    def free_bytes(self) -> int:
        """As `Device.free_bytes`."""
        with self.current():
            free: int = self.driver.mem_get_info()[0]
        # What the pool holds for later is as good as free to us.
        return free + int(self._pool.managed_bytes) - int(self._pool.active_bytes)

    def close(self) -> None:
        """As `Device.close`."""
        if self._context is None or os.getpid() != self._process:
            return
        with self.current():
            for module in self._modules:
                _check(self.cu.cuModuleUnload(module), "cuModuleUnload")
            self._modules.clear()
            self._pool.stop_holding()
        self._context.detach()
        self._context = None
