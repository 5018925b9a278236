"""The devices a search can run on, and which one ``auto`` means here.

Nothing here imports a CUDA package or calls a compiler before a device is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from persistent_bfs.arguments import check_choice, check_integer, shown, unknown_name
from persistent_bfs.device.base import Device, DeviceUnavailable

DEVICES = ("auto", "cuda", "emulated", "reference")

SCHEDULES = ("roundrobin", "random", "adversarial")


@dataclass(frozen=True)
class DeviceChoice:
    """A device, opened, and why it is this one; ``device`` is None for the NumPy reference."""

    kind: str
    device: Device | None
    reason: str


def cuda_problem() -> str | None:
    """Why no GPU can be used here, in one line; None if one can."""
    from persistent_bfs.device import cuda

    return cuda.cuda_problem()


def cuda_driver_name() -> str:
    """The package that speaks to the NVIDIA driver for the CUDA device."""
    from persistent_bfs.device.driver import DRIVERS, driver_name

    return DRIVERS[driver_name()]


def emulated_problem() -> str | None:
    """Why kernels cannot be emulated here, in one line; None if they can."""
    from persistent_bfs.device import emulated

    return emulated.emulated_problem()


def check_device(name: Any) -> tuple[str, int]:
    """The kind and the ordinal that a device's name means; nothing is opened.

    Raises
    ------
    TypeError
        It is no str.
    ValueError
        There is no device of that name.
    """
    if not isinstance(name, str):
        raise TypeError(f"device is {shown(name)}; it must be a name or an open Device")
    match = re.fullmatch(r"cuda:([0-9]{1,9})", name)
    if match is not None:
        return "cuda", int(match[1])
    if name not in DEVICES:
        raise ValueError(f"{unknown_name('device', name, DEVICES)}; cuda:N is GPU N")
    return name, 0


def open_device(name: str = "auto", *, schedule: str = "roundrobin", seed: int = 0) -> DeviceChoice:
    """Open the device called ``name``.

    Parameters
    ----------
    name : {"auto", "cuda", "cuda:N", "emulated", "reference"}
        ``auto`` is cuda if a GPU can be used, else emulated if there is a C++ compiler, else
        reference.
    schedule : {"roundrobin", "random", "adversarial"}
    seed : int
        How the emulated device interleaves threads; the others ignore both.

    Raises
    ------
    ValueError
        There is no device or schedule of that name.
    DeviceUnavailable
        It cannot be used here; the message says what to do.
    """
    check_choice("schedule", schedule, SCHEDULES)
    seed = check_integer("seed", seed, 0, 2**64 - 1)
    kind, ordinal = check_device(name)
    if kind == "cuda":
        return _open_cuda(ordinal, "asked for")
    if kind == "emulated":
        return _open_emulated(schedule, seed, "asked for")
    if kind == "reference":
        return DeviceChoice("reference", None, "asked for")

    no_cuda = cuda_problem()
    if no_cuda is None:
        return _open_cuda(0, "a GPU can be used")
    no_emulation = emulated_problem()
    if no_emulation is None:
        return _open_emulated(schedule, seed, f"no GPU: {no_cuda}")
    reason = f"no GPU: {no_cuda}; no emulation: {no_emulation}"
    return DeviceChoice("reference", None, reason)


def _open_cuda(ordinal: int, reason: str) -> DeviceChoice:
    from persistent_bfs.device.cuda import shared_device

    return DeviceChoice("cuda", shared_device(ordinal), reason)


def _open_emulated(schedule: str, seed: int, reason: str) -> DeviceChoice:
    from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem

    problem = emulated_problem()
    if problem is not None:
        raise DeviceUnavailable(problem)
    return DeviceChoice("emulated", EmulatedDevice(schedule=schedule, seed=seed), reason)
