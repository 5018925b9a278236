"""How much memory reading may take: what is free, or what the caller says."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory"]

UNKNOWN = 1 << 62
"""Stands for the free memory of a system that does not tell."""


def available_memory() -> int:
    """Return the bytes that this process can still allocate, as far as the system tells.

    The least of what the machine has free, what is left of the control group's limits (a
    container's), and what is left of the address space that ``ulimit -v`` grants.
    """
    return max(0, min(_of_machine(), _of_control_group(), _of_address_space()))


def _of_machine() -> int:
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN


def _of_control_group() -> int:
    """Return what is left in this process's control group and those that hold it."""
    left = UNKNOWN
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            root, limit, used = "/sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
            used = "memory.usage_in_bytes"
        else:
            continue
        group = Path(root + name)
        for folder in (group, *group.parents):
            most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
            if most.isdigit() and taken.isdigit():
                left = min(left, int(most) - int(taken))
            if folder == Path(root):
                break
    return left


def _of_address_space() -> int:
    try:
        import resource
    except ImportError:  # not on Windows
        return UNKNOWN
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text("/proc/self/statm").split()
    if most == resource.RLIM_INFINITY or not pages:
        return UNKNOWN
    return most - int(pages[0]) * resource.getpagesize()


def _text(path: str | Path) -> str:
    """Return a system file's text, empty where there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
