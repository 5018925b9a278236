"""Streams of the CUDA device: launches, copies, and graphs made node by node.

Every call is checked; an error names the call, the kernel and the limit.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from persistent_bfs.device.base import (
    Buffer,
    Event,
    Graph,
    HostArray,
    Kernel,
    KernelArguments,
    LaunchKind,
    LaunchShape,
    Stream,
)
from persistent_bfs.device.driver import check, failure

if TYPE_CHECKING:
    from persistent_bfs.device.cuda import CudaDevice

NOT_READY = 600  # CUDA_ERROR_NOT_READY

# The host waits as most searches end, without a pause; one that takes long gets looks now and then.
SECONDS_OF_SPINNING, SECONDS_BETWEEN_LOOKS = 20e-3, 200e-6


def with_edges(cu: Any, call: str) -> Callable[..., Any]:
    """The form of a call that takes data of a graph's edges.

    In bindings of CUDA 12 it has a name of its own; since 13 there is no other.
    """
    form: Callable[..., Any] = getattr(cu, f"{call}_v2", None) or getattr(cu, call)
    return form


class CudaEvent(Event):
    """An event of the driver's."""

    def __init__(self, device: CudaDevice) -> None:
        self.handle = device.driver.make_event()
        device.driver.owned(self, device.driver.destroy_event, self.handle)
        self._driver = device.driver

    def wait(self) -> None:
        """As `Event.wait`."""
        with self._driver.current():
            self._driver.wait_event(self.handle)


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


class Configuration:
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
        self._cu = cu = device.cu
        self._give_back = [device.driver.owned(self, self._destroy_graph, (cu, graph))]
        self.handle = graph
        self.executable = check(cu.cuGraphInstantiate(graph, 0), "cuGraphInstantiate")
        self._give_back.append(
            device.driver.owned(self, self._destroy_executable, (cu, self.executable))
        )
        check(cu.cuGraphUpload(self.executable, stream), "cuGraphUpload")

    @staticmethod
    def _destroy_graph(made: tuple[Any, Any]) -> None:
        check(made[0].cuGraphDestroy(made[1]), "cuGraphDestroy")

    @staticmethod
    def _destroy_executable(made: tuple[Any, Any]) -> None:
        check(made[0].cuGraphExecDestroy(made[1]), "cuGraphExecDestroy")

    def free(self) -> None:
        """As `Graph.free`."""
        for give_back in reversed(self._give_back):
            give_back()
        self.executable = None


class Addresses:
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
        address, self._made = device.driver.make_stream()
        device.driver.owned(self, device.driver.destroy_stream, self._made)
        self.handle = self._cu.CUstream(address)
        self._configurations: dict[tuple[int, LaunchShape, bool], Configuration] = {}
        self._addresses = Addresses()
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
            check(answer, f"{call} of {kernel.name}, {shape}")

    def _launch_clusters(
        self, kernel: Kernel, shape: LaunchShape, arguments: KernelArguments, *, cooperative: bool
    ) -> None:
        key = (int(kernel.handle), shape, cooperative)
        prepared = self._configurations.get(key)
        if prepared is None:
            self._device.check_launch(kernel, shape, cooperative=cooperative)
            prepared = Configuration(self._cu, shape, self.handle, cooperative=cooperative)
            self._configurations[key] = prepared
        answer = self._cu.cuLaunchKernelEx(
            prepared.configuration, kernel.handle, arguments.address, 0
        )
        if answer[0]:
            check(answer, f"cuLaunchKernelEx of {kernel.name}, {shape}")

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
            check(answer, f"cuMemsetD32Async of {buffer.name}")

    def copy_to_host(self, target: HostArray, source: Buffer, *, start: int = 0) -> None:
        """As `Stream.copy_to_host`."""
        host, device = self._addresses.of(target), source.address + start
        if self._graph is not None:
            self._add_copy(target.nbytes, srcDevice=device, dstHost=host)
            return
        answer = self._cu.cuMemcpyDtoHAsync(host, device, target.nbytes, self.handle)
        if answer[0]:
            check(answer, f"cuMemcpyDtoHAsync of {source.name}")

    def copy_to_device(self, target: Buffer, source: HostArray, *, start: int = 0) -> None:
        """As `Stream.copy_to_device`."""
        host, device = self._addresses.of(source), target.address + start
        if self._graph is not None:
            self._add_copy(source.nbytes, srcHost=host, dstDevice=device)
            return
        answer = self._cu.cuMemcpyHtoDAsync(device, host, source.nbytes, self.handle)
        if answer[0]:
            check(answer, f"cuMemcpyHtoDAsync of {target.name}")

    def copy(self, target: Buffer, source: Buffer) -> None:
        """As `Stream.copy`."""
        answer = self._cu.cuMemcpyDtoDAsync(
            target.address, source.address, source.nbytes, self.handle
        )
        if answer[0]:
            check(answer, f"cuMemcpyDtoDAsync of {source.name}")

    def record(self, event: Event | None = None) -> CudaEvent:
        """As `Stream.record`."""
        again = event if isinstance(event, CudaEvent) else CudaEvent(self._device)
        self._device.driver.record_event(again.handle, self._made)
        return again

    def elapsed_ms(self, start: Event, end: Event) -> float | None:
        """As `Stream.elapsed_ms`."""
        assert isinstance(start, CudaEvent)
        assert isinstance(end, CudaEvent)
        return self._device.driver.elapsed_ms(start.handle, end.handle)

    def _launch_graph(self, graph: Graph) -> None:
        assert isinstance(graph, CudaGraph)
        check(self._cu.cuGraphLaunch(graph.executable, self.handle), "cuGraphLaunch")

    def is_idle(self) -> bool:
        """As `Stream.is_idle`."""
        answer = self._cu.cuStreamQuery(self.handle)
        if not answer[0]:
            return True
        if answer[0] != NOT_READY:
            raise failure(answer[0], "cuStreamQuery")
        return False

    def _synchronize(self) -> None:
        # Not one call that waits: Python would see no Ctrl-C before it returns.
        give_way = time.perf_counter() + SECONDS_OF_SPINNING
        while not self.is_idle():
            if time.perf_counter() > give_way:
                self.lose_patience()
                time.sleep(SECONDS_BETWEEN_LOOKS)

    # A recording adds its nodes one behind the other by hand. Capturing the stream would do it for
    # us, but while any stream of a context is being captured, no other thread may synchronise
    # that context: neither ours nor one that has nothing to do with us.
    def _begin_capture(self) -> None:
        self._graph = check(self._cu.cuGraphCreate(0), "cuGraphCreate")
        self._last, self._may_begin_early = [], False

    def _end_capture(self) -> CudaGraph:
        graph, self._graph = self._graph, None
        return CudaGraph(self._device, graph, self.handle)

    def _abandon_capture(self) -> None:
        graph, self._graph = self._graph, None
        if graph is not None:
            self._cu.cuGraphDestroy(graph)

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
        node = check(add(self._graph, self._last, len(self._last), parameters, *more), call)
        self._last[:], self._may_begin_early = [node], False

    def _add_early(self, call: str, parameters: Any) -> None:
        before, self._last[:] = list(self._last), []
        self._add(call, parameters)
        edge = self._cu.CUgraphEdgeData()
        edge.from_port = self._cu.CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC
        edge.type = self._cu.CUgraphDependencyType.CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
        call, depend = "cuGraphAddDependencies", with_edges(self._cu, "cuGraphAddDependencies")
        check(depend(self._graph, before, self._last, [edge], 1), call)

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
            check(answer, f"cuGraphKernelNodeSetAttribute of {kernel.name}, {shape}")

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
