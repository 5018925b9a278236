"""The compilers that are programs of their own, nvcc and g++, and what any compiler answers."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# The first with the memory model that the kernels are written for.
OLDEST_ARCHITECTURE = 70

INSTALL = "from a clone: pip install '.[cuda]', or '.[cuda12]' for a driver of CUDA 12"


class CompileError(RuntimeError):
    """A compiler is missing or refused a source.

    The message is one line with cause and remedy; ``command`` and ``output`` hold the rest.
    """

    def __init__(self, message: str, *, command: str = "", output: str = "") -> None:
        super().__init__(message)
        self.command = command
        self.output = output


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found: where it is and what it says its version is."""

    path: Path
    version: str

    @property
    def cuda(self) -> tuple[int, int]:
        """The release of CUDA that a compiler for GPUs is of; (0, 0) if it does not say."""
        found = re.search(r"(?:release|NVRTC) (\d+)\.(\d+)", self.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @property
    def release(self) -> str:
        """The line of the version that names the release."""
        lines = self.version.splitlines() or [""]
        return next((line for line in lines if "release" in line), lines[0])


def _version(path: Path) -> str:
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(f"{path} does not run: {error}") from None
    return answer.stdout.strip()


def _places_of_nvcc() -> Iterator[Path]:
    name = "nvcc.exe" if os.name == "nt" else "nvcc"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if home := os.environ.get(variable):
            yield Path(home) / "bin" / name
    if on_path := shutil.which("nvcc"):
        yield Path(on_path)
    yield from _nvcc_of_packages(name)
    yield Path("/usr/local/cuda/bin/nvcc")


def _nvcc_of_packages(name: str) -> Iterator[Path]:
    """Where pip and conda put nvcc: asked of cuda.pathfinder if it is there, and looked for."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:  # not installed, or older than this function
        pass
    else:
        if found := find_nvidia_binary_utility("nvcc"):
            yield Path(found)
    packages = importlib.util.find_spec("nvidia")
    for folder in (packages and packages.submodule_search_locations) or ():
        yield from sorted(Path(folder).glob(f"*/bin/{name}"), reverse=True)


@cache
def find_nvcc() -> Compiler:
    """Nvcc, from CUDA_HOME, the PATH, a package of pip or conda, or /usr/local/cuda.

    Raises
    ------
    CompileError
        None is there.
    """
    for path in _places_of_nvcc():
        if path.is_file():
            return Compiler(path, _version(path))
    raise CompileError(
        "nvcc was not found: install the CUDA toolkit, or set CUDA_HOME to where it is"
    )


@cache
def find_host_compiler() -> Compiler:
    """g++, from CXX or the PATH: what the emulated device compiles with.

    Raises
    ------
    CompileError
        None is there, or it is not GCC (whose options the emulation needs).
    """
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++")):
        path = shutil.which(name)
        if path is None:
            continue
        compiler = Compiler(Path(path), _version(Path(path)))
        if "Free Software Foundation" in compiler.version:
            return compiler
    raise CompileError("g++ was not found: install GCC's C++ compiler, or set CXX to it")


@cache
def nvcc_architectures(path: Path) -> tuple[int, ...]:
    """The architectures that an nvcc makes cubins for, in ascending order."""
    found = run([str(path), "--list-gpu-code"], "to name its architectures")
    return tuple(sorted(int(number) for number in re.findall(r"^sm_(\d+)$", found, re.MULTILINE)))


def target(architecture: str, known: tuple[int, ...], compiler: Compiler) -> str:
    """The architecture to compile for, so that a GPU of ``architecture`` runs it.

    That itself, or the newest one before it of the same major number, whose cubins it runs.

    Raises
    ------
    CompileError
        It is no architecture, or the compiler knows none such.
    """
    if not re.fullmatch(r"sm_\d{2,3}", architecture):
        raise CompileError(f"{architecture!r} is no architecture of a GPU; give one such as sm_90")
    number = int(architecture.removeprefix("sm_"))
    if number < OLDEST_ARCHITECTURE:
        raise CompileError(f"{architecture} is too old: the kernels need sm_{OLDEST_ARCHITECTURE}")
    if not known:
        raise CompileError(f"{compiler.path} names no architecture that it compiles for")
    fit = [each for each in known if each // 10 == number // 10 and each <= number]
    if fit:
        return f"sm_{max(fit)}"
    name = "{} {}.{}".format("NVRTC" if "NVRTC" in compiler.version else "nvcc", *compiler.cuda)
    if number < known[0]:
        raise CompileError(f"{name} knows no {architecture}, which is older than all it knows")
    upgrade = (
        "from a clone, pip install --upgrade '.[cuda]'"
        if "NVRTC" in compiler.version
        else "install a newer CUDA toolkit"
    )
    raise CompileError(f"{name} knows no {architecture}, which is newer than it: {upgrade}")


def run(command: list[str], what: str) -> str:
    """What a command says; raises `CompileError` if it fails, with what it was asked for."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(f"{command[0]} does not run: {error}") from None
    output = answer.stdout + answer.stderr
    if answer.returncode == 0:
        return output
    raise CompileError(
        f"{Path(command[0]).name} refused {what}: {cause(output)}",
        command=" ".join(command),
        output=output,
    )


# What is found in a compiler's output, and what to do about it.
_REMEDIES = (
    ("unsupported GNU version", "set NVCC_CCBIN to an older g++, or install a newer CUDA toolkit"),
    (
        "gcc: No such file",
        f"nvcc needs a host compiler: install g++, or do without nvcc, {INSTALL}",
    ),
    ("Cannot find compiler", f"nvcc needs a host compiler, which NVRTC does not: {INSTALL}"),
    ("nvrtc-builtins", "reinstall nvidia-cuda-nvrtc: a part of it is missing"),
)


def cause(output: str) -> str:
    """The one line of a compiler's output that says why, with a remedy where one is known."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    remedies = (f"; {remedy}" for words, remedy in _REMEDIES if words in output)
    return first + next(remedies, "") if first else "it gave no reason"
