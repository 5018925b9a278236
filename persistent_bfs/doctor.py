"""What this machine offers a search: checks, each with what to do where something is missing.

Data only; the command line shows it. The driver is asked directly, so that a GPU is seen whether
or not the Python packages that use it are installed.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from persistent_bfs import cache, compiler
from persistent_bfs.device import cuda_problem, emulated_problem
from persistent_bfs.device.base import DeviceError

OLDEST_PYTHON = (3, 10)
WHILE_NODES_DRIVER = 12040
KERNEL_DEVICES = ("cuda", "emulated")

REQUIRED = ("numpy", "scipy", "click", "rich", "platformdirs")
FOR_CUDA = ("cuda-bindings",)
OPTIONAL = {"pycuda": "from a clone: pip install '.[pycuda]', if you wish; cuda.bindings does"}

TRIED_ARCHITECTURE = "sm_90"  # what a compiler is tried with where there is no GPU

DRIVER_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
# CUdevice_attribute
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, COOPERATIVE_LAUNCH = 75, 76, 95


@dataclass(frozen=True)
class Check:
    """One thing looked at: ``ok`` is None for what is missing but not needed here."""

    name: str
    ok: bool | None
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Gpu:
    """What the driver says of its first GPU."""

    name: str
    architecture: str
    cooperative_launch: bool


@dataclass(frozen=True)
class Driver:
    """What the NVIDIA driver says: ``version`` is that of CUDA, 1000 major + 10 minor."""

    version: int = 0
    gpu: Gpu | None = None
    problem: str = ""


@lru_cache(maxsize=1)
def ask_driver() -> Driver:
    """Ask the NVIDIA driver for its version and first GPU, making no context."""
    library = None
    for name in DRIVER_LIBRARIES:
        with suppress(OSError):
            library = ctypes.CDLL(name)
            break
    if library is None:
        return Driver(problem="not installed")
    number, text = ctypes.c_int(), ctypes.create_string_buffer(256)

    def ask(function: str, *arguments: object) -> int:
        status: int = getattr(library, function)(ctypes.byref(number), *arguments)
        if status:
            raise OSError(f"{function} answers error {status}")
        return number.value

    cuda = 0
    try:
        cuda = ask("cuDriverGetVersion")
        if status := library.cuInit(0):
            raise OSError(f"cuInit answers error {status}")
        if not ask("cuDeviceGetCount"):
            return Driver(cuda)
        device = ask("cuDeviceGet", 0)
        major = ask("cuDeviceGetAttribute", COMPUTE_CAPABILITY_MAJOR, device)
        minor = ask("cuDeviceGetAttribute", COMPUTE_CAPABILITY_MINOR, device)
        cooperative = bool(ask("cuDeviceGetAttribute", COOPERATIVE_LAUNCH, device))
        library.cuDeviceGetName(text, len(text), device)
    except OSError as error:
        return Driver(cuda, problem=str(error))
    return Driver(cuda, Gpu(text.value.decode(), f"sm_{major}{minor}", cooperative))


def examine_python() -> list[Check]:
    """Check the interpreter."""
    return [
        Check(
            "Python",
            sys.version_info >= OLDEST_PYTHON,
            f"{platform.python_version()} on {platform.platform()}",
            "install Python 3.10 or newer",
        )
    ]


def examine_packages() -> list[Check]:
    """Check the packages needed everywhere, and those that a GPU needs."""

    def check(package: str, needed: bool, remedy: str) -> Check:
        try:
            return Check(package, True, version(package))
        except PackageNotFoundError:
            return Check(package, False if needed else None, "not installed", remedy)

    on_gpu = ask_driver().gpu is not None
    return [
        *(check(package, True, f"pip install {package}") for package in REQUIRED),
        *(check(package, on_gpu, compiler.INSTALL) for package in FOR_CUDA),
        *(check(package, False, remedy) for package, remedy in OPTIONAL.items()),
    ]


def examine_gpu() -> list[Check]:
    """Check the NVIDIA driver, its first GPU, and what engines ask of them."""
    driver = ask_driver()
    release = f"CUDA {driver.version // 1000}.{driver.version % 1000 // 10}"
    if driver.problem:
        detail = f"{release}: {driver.problem}" if driver.version else driver.problem
        broken = False if driver.version else None
        remedy = "for a GPU, install NVIDIA's driver, or give the container access to it"
        return [Check("NVIDIA driver", broken, detail, remedy)]
    checks = [Check("NVIDIA driver", True, release)]
    if driver.gpu is None:
        return [*checks, Check("GPU", None, "none visible", "check CUDA_VISIBLE_DEVICES")]
    return [
        *checks,
        Check("GPU", True, f"{driver.gpu.name}, {driver.gpu.architecture}"),
        Check(
            "cooperative launch",
            driver.gpu.cooperative_launch,
            "persistent can run" if driver.gpu.cooperative_launch else "persistent cannot run",
            "use engine graph_while or graph_unrolled",
        ),
        Check(
            "WHILE nodes",
            driver.version >= WHILE_NODES_DRIVER,
            f"since CUDA 12.4, the driver has {release}",
            "update the driver; until then graph_while runs as graph_unrolled",
        ),
    ]


def examine_driver() -> list[Check]:
    """Check which package speaks to the driver for the CUDA device."""
    from persistent_bfs.device import cuda_driver_name

    return [Check("driver by", True, cuda_driver_name())] if ask_driver().gpu else []


def examine_compilers() -> list[Check]:
    """Check NVRTC and nvcc by a small kernel for the GPU there is, and g++ for the emulation."""
    gpu = ask_driver().gpu
    checks = [
        _examine_nvrtc(),
        _examine_nvcc(),
        _examine_compiling(gpu.architecture if gpu else TRIED_ARCHITECTURE, needed=gpu is not None),
    ]
    try:
        host = compiler.find_host_compiler()
        detail = f"{host.path}: {host.release}, for the emulated device"
        checks.append(Check("g++", True, detail))
    except compiler.CompileError as error:
        remedy = "for the emulated device, install GCC's C++ compiler, or set CXX to it"
        checks.append(Check("g++", None, _short(error), remedy))
    return checks


def _short(error: Exception) -> str:
    return str(error).split(":")[0]


def _examine_nvrtc() -> Check:
    try:
        found = compiler.find_nvrtc()
    except compiler.CompileError as error:
        return Check("NVRTC", None, _short(error), f"for a GPU, {compiler.INSTALL}")
    return Check("NVRTC", True, f"{found.version}: {found.path}")


def _examine_nvcc() -> Check:
    try:
        found = compiler.find_nvcc()
    except compiler.CompileError as error:
        remedy = "needed only where NVRTC is missing; install the CUDA toolkit, or set CUDA_HOME"
        return Check("nvcc", None, _short(error), remedy)
    return Check("nvcc", True, f"{found.release}: {found.path}; used where NVRTC is missing")


def _examine_compiling(architecture: str, *, needed: bool) -> Check:
    """Compile a small kernel by the compiler that searches would use; of a GPU only."""
    name = f"compile for {architecture}"
    try:
        kind, found = compiler.find_cuda_compiler(architecture)
    except compiler.CompileError as error:
        return Check(name, False if needed else None, *_cut(str(error)))
    try:
        compiler.try_cuda_compiler(architecture)
    except compiler.CompileError as error:
        return Check(name, False, *_cut(str(error)))
    driver = ask_driver().version
    if driver and (problem := compiler.release_problem(found.cuda, driver)):
        return Check(name, False, *problem.split(": ", 1))
    asked = os.environ.get(compiler.COMPILER_VARIABLE)
    by = f"by {kind}, as {compiler.COMPILER_VARIABLE} asks" if asked else f"by {kind}"
    return Check(name, True, by if kind == "nvrtc" else f"{by}, which needs a host compiler")


def _cut(error: str) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    problem, _, remedy = error.partition("; ")
    return problem, remedy


def examine_cache() -> list[Check]:
    """Check the folder of compiled kernels."""
    folder = compiler.wanted_cache_folder()
    if problem := compiler.folder_problem(folder):
        remedy = f"set {compiler.CACHE_VARIABLE} to a folder of your own that can be written"
        return [Check("cache", False, problem, remedy)]
    try:
        limit = cache.limit_bytes()
    except compiler.CompileError as error:
        return [Check("cache", False, *_cut(str(error)))]
    entries = cache.entries(folder)
    files = f"{len(entries)} entr{'y' if len(entries) == 1 else 'ies'}"
    size = sum(entry.size for entry in entries)
    detail = f"{folder}: {files}, {size / 2**20:.1f} of {limit / 2**20:,.0f} MiB"
    return [Check("cache", True, detail)]


def examine_devices() -> list[Check]:
    """Check each device that runs kernels by a search whose answer is checked."""
    checks = []
    for device, problem in (("cuda", cuda_problem()), ("emulated", emulated_problem())):
        if problem is not None:
            checks.append(Check(_search_on(device), None, problem))
        else:
            checks.append(search_on(device))
    return checks


def search_on(device: str) -> Check:
    """Search two small graphs on ``device`` and check the answers."""
    from persistent_bfs.io import read_graph
    from persistent_bfs.measure import find_problem
    from persistent_bfs.session import BFS

    done = []
    try:
        for name in ("path:100", "words-kjv"):
            graph = read_graph(name)
            with BFS(graph, device=device, trace=True) as search:
                result = search.run(0)
                if problem := find_problem(graph, result):
                    return Check(
                        _search_on(device), False, f"{name}: wrong answer: {problem}", "report this"
                    )
            done.append(f"{name} {result.reached:,} reached in {result.levels} levels")
    except (DeviceError, compiler.CompileError) as error:
        return Check(_search_on(device), False, str(error), "see the lines above")
    return Check(_search_on(device), True, f"{result.engine}: {', '.join(done)}")


def _search_on(device: str) -> str:
    return f"search on {device}"


EXAMINATIONS: dict[str, Callable[[], list[Check]]] = {
    "Python": examine_python,
    "packages": examine_packages,
    "GPU": examine_gpu,
    "driver": examine_driver,
    "compilers": examine_compilers,
    "cache": examine_cache,
    "searches": examine_devices,
}
"""Every examination, by what it looks at."""


def usable(checks: Iterable[Check]) -> list[str]:
    """Return the devices that run kernels and gave a right answer in these checks."""
    passed = {check.name for check in checks if check.ok}
    return [device for device in KERNEL_DEVICES if _search_on(device) in passed]


def unused_gpu(device: str) -> str | None:
    """What to say where a GPU is there, but ``device`` was taken for want of what it needs.

    Parameters
    ----------
    device : str
        The kind of the device that ``auto`` chose.

    Returns
    -------
    str or None
        One line that names the GPU and what to do; None if nothing is to be said.
    """
    if device == "cuda" or (gpu := ask_driver().gpu) is None:
        return None
    return f"{gpu.name} was not used, the {device} device was: {cuda_problem()}"
