"""Devices that fail on purpose: any call, the n-th of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from persistent_bfs.device.base import Device, DeviceError
from persistent_bfs.device.emulated import EmulatedBuffer, EmulatedDevice, EmulatedStream

# What engines and sessions ask of a device, its streams and buffers.
CALLS: dict[type, tuple[str, ...]] = {
    EmulatedDevice: (
        "load",
        "allocate",
        "upload",
        "pinned",
        "stream",
        "max_resident_blocks",
        "while_graph",
        "free_bytes",
    ),
    EmulatedStream: (
        "_launch",
        "_launch_graph",
        "_synchronize",
        "_begin_capture",
        "_end_capture",
        "fill",
        "copy",
        "copy_to_host",
        "copy_to_device",
        "record",
        "elapsed_ms",
    ),
    EmulatedBuffer: ("to_host",),
}


@dataclass
class Fault:
    """Fails the call number ``at`` (from 1) of those that count, with ``error``."""

    at: int = 0
    error: Callable[[str], Exception] = field(default=lambda call: DeviceError(f"{call}: injected"))
    only: str = ""
    calls: int = 0
    failed: str = ""

    def count(self, call: str) -> bool:
        """Count a call; whether it is the one to fail."""
        if self.only and call != self.only:
            return False
        self.calls += 1
        if self.calls == self.at:
            self.failed = call
            return True
        return False

    @property
    def is_due(self) -> bool:
        """Whether the call to fail has been made."""
        return bool(self.failed)


@contextmanager
def failing(fault: Fault, monkeypatch: pytest.MonkeyPatch, device: Device) -> Iterator[None]:
    """Let the emulated device, or the driver's calls of a CUDA device, fail as ``fault`` says."""
    with monkeypatch.context() as patch:
        if device.info.kind == "emulated":
            for kind, names in CALLS.items():
                for name in names:
                    patch.setattr(kind, name, _wrapped(getattr(kind, name), name, fault))
        else:
            patch.setattr(device, "cu", FaultyBindings(device.cu, fault))  # type: ignore[attr-defined]
        yield


def _wrapped(call: Callable[..., Any], name: str, fault: Fault) -> Callable[..., Any]:
    def maybe(*args: Any, **how: Any) -> Any:
        if fault.count(name):
            raise fault.error(name)
        return call(*args, **how)

    return maybe


class FaultyBindings:
    """cuda.bindings.driver, of which one call answers that its value is invalid."""

    # What gives back, or only looks, is not asked to fail: nobody could do anything about it.
    HARMLESS = ("Destroy", "Free", "Unload", "GetError", "Query", "ctxPush", "ctxPop", "GetCurrent")

    def __init__(self, cu: Any, fault: Fault) -> None:
        self._cu, self._fault = cu, fault

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cu, name)
        is_call = name.startswith("cu") and callable(found) and name[2:3].isupper()
        if not is_call or any(word in name for word in self.HARMLESS):
            return found

        def maybe(*args: Any) -> Any:
            if self._fault.count(name):
                return (self._cu.CUresult.CUDA_ERROR_INVALID_VALUE, None)
            return found(*args)

        return maybe
