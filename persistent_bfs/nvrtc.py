"""NVRTC, NVIDIA's compiler as a library, through cuda.bindings.

Needs no toolkit, no host compiler and no header but those of the device code. The library is that
of a wheel (``nvidia-cuda-nvrtc``) or of a toolkit: cuda.bindings looks for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from persistent_bfs.toolchain import INSTALL, CompileError, Compiler, cause

# Those of nvcc; NVRTC optimises as its -O3 without being told.
OPTIONS = ("--std=c++17", "--generate-line-info", "--ptxas-options=-v")


def _nvrtc() -> Any:
    from cuda.bindings import nvrtc

    return nvrtc


@cache
def find_nvrtc() -> Compiler:
    """NVRTC as cuda.bindings finds it.

    Raises
    ------
    CompileError
        cuda.bindings is not installed, or finds none.
    """
    try:
        nvrtc = _nvrtc()
        status, major, minor = nvrtc.nvrtcVersion()
    except ImportError as error:
        raise CompileError(f"NVRTC was not found ({error}); {INSTALL}") from None
    except (RuntimeError, OSError) as error:  # of the loader, whose message is many lines
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CompileError(f"NVRTC was not found ({reason}); {INSTALL}") from None
    if status.value:
        raise CompileError(f"NVRTC gives no version: {_name(status)}; {INSTALL}")
    return Compiler(_place(), f"NVRTC {major}.{minor}")


def _place() -> Path:
    with suppress(ImportError, RuntimeError):  # it is there: only where is not known
        from cuda.pathfinder import load_nvidia_dynamic_lib

        return Path(load_nvidia_dynamic_lib("nvrtc").abs_path)
    return Path("nvrtc")


def _name(status: Any) -> str:
    text = _nvrtc().nvrtcGetErrorString(status)[1]
    return text.decode() if text else str(status)


@cache
def architectures() -> tuple[int, ...]:
    """The architectures that NVRTC makes cubins for, in ascending order."""
    status, numbers = _nvrtc().nvrtcGetSupportedArchs()
    if status.value:
        raise CompileError(f"NVRTC does not name its architectures: {_name(status)}")
    return tuple(sorted(numbers))


@contextmanager
def _program(text: str, name: str) -> Iterator[Any]:
    nvrtc = _nvrtc()
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), f"{name}.cu".encode(), 0, [], [])
    if status.value:
        raise CompileError(f"NVRTC takes no program: {_name(status)}")
    try:
        yield program
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text_of(program: Any, what: str) -> bytes:
    """``Log`` or ``CUBIN`` of a program."""
    nvrtc = _nvrtc()
    status, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    content = bytearray(0 if status.value else size)
    if not status.value:
        (status,) = getattr(nvrtc, f"nvrtcGet{what}")(program, content)
    if status.value:
        raise CompileError(f"NVRTC gives no {what}: {_name(status)}")
    return bytes(content)


def compile_text(text: str, name: str, architecture: str, folder: Path) -> tuple[bytes, str]:
    """The cubin of ``text`` and what the compiler said; headers are looked for in ``folder``.

    Raises
    ------
    CompileError
        NVRTC refused the source.
    """
    options = (*OPTIONS, f"--gpu-architecture={architecture}", f"--include-path={folder}")
    with _program(text, name) as program:
        encoded = [os.fsencode(option) for option in options]
        (status,) = _nvrtc().nvrtcCompileProgram(program, len(encoded), encoded)
        log = _text_of(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status.value:
            raise CompileError(
                f"NVRTC refused {name}: {cause(log) if log.strip() else _name(status)}",
                command=" ".join(("nvrtc", *options, f"{name}.cu")),
                output=log,
            )
        return _text_of(program, "CUBIN"), log
