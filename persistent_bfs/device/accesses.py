"""What the emulated device saw of single accesses: who, where in the code, to what, and its value.

The runtime (``cuda/emulation/observe.hpp``) leaves addresses; here they become the names of
buffers and lines of source, the latter by binutils' ``addr2line``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from persistent_bfs import compiler
from persistent_bfs.device.base import Buffer, HostArray

# The structures of cuda/emulation/launch.hpp.
ACCESS = np.dtype(
    [
        ("address", np.uint64),
        ("step", np.uint64),
        ("before", np.uint64),
        ("after", np.uint64),
        ("callers", np.uint64, 4),
        ("block", np.uint32),
        ("thread", np.uint32),
        ("bytes", np.uint32),
        ("kind", np.uint32),
    ]
)
RACE = np.dtype([("first", ACCESS), ("second", ACCESS), ("count", np.uint64)])
ITEM = np.dtype([("base", np.uint64), ("bytes", np.uint64)])

# What fresh memory holds, so that reading it unset shows.
POISON = 0xCC

READ, WRITE, ATOMIC, SHARED, EXIT = 1, 2, 4, 8, 16
KINDS = {
    READ: "read",
    WRITE: "write",
    ATOMIC | READ | WRITE: "atomic",
    ATOMIC | READ: "relaxed read",
    ATOMIC | WRITE: "relaxed write",
    EXIT: "exit",
}

# Where CUDA's words are defined, rather than used.
_WORDS = ("emulation/", "platform.cuh")


@dataclass(frozen=True)
class SourceLine:
    """A line of device code: ``file`` under ``cuda/``, or an address where lines are not known."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def text(self) -> str:
        """What it says, without its indentation; empty if the file is not there to be read."""
        return _lines(compiler.source_folder() / self.file).get(self.line, "")


END = SourceLine("the kernel's end", 0)  # where a block exits


@cache
def _lines(path: Path) -> dict[int, str]:
    if not path.is_file():
        return {}
    return {number: line.strip() for number, line in enumerate(path.read_text().splitlines(), 1)}


@dataclass(frozen=True)
class Access:
    """One access of a thread to memory.

    ``step`` counts the scheduling points that launch number ``launch`` had passed; ``kind`` is
    one of read, write, atomic, relaxed read, relaxed write; or exit, when a block returned and its
    shared memory with it. ``buffer`` and ``index`` say what was
    accessed (of shared memory and of a kernel's own data the index is in bytes), ``field`` which
    part of a structured item, ``owner`` which block's shared memory. ``before`` and ``after`` are
    what a watched item held just before and just after; None where it was not watched, or had not
    been written since it was allocated.
    """

    kernel: str
    launch: int
    step: int
    block: int
    thread: int
    kind: str
    buffer: str
    index: int
    field: str
    source: SourceLine
    before: int | float | None = None
    after: int | float | None = None
    owner: int | None = None

    @property
    def writes(self) -> bool:
        """Whether it may change memory."""
        return self.kind in ("write", "atomic", "relaxed write")

    @property
    def place(self) -> str:
        """What was accessed: ``distances[3]``, or ``shared memory of block 3[16]``."""
        of = "" if self.owner in (None, self.block) else f" of block {self.owner}"
        return f"{self.buffer}{of}[{self.index}]{self.field}"

    def __str__(self) -> str:
        return f"{self.kind} by block {self.block}, thread {self.thread} at {self.source}"


@dataclass(frozen=True)
class DataRace:
    """Two accesses to the same bytes that nothing orders, at least one a write, one plain.

    Or one to the shared memory of another block, and that block's exit.
    The first of ``count`` such pairs from the same two lines.
    """

    first: Access
    second: Access
    count: int

    @property
    def code(self) -> tuple[object, ...]:
        """What two races share that are the same fault."""
        each = (self.first, self.second)
        return (self.first.kernel, *((a.kind, a.buffer, a.field, a.source) for a in each))

    @property
    def place(self) -> str:
        """What both accessed: of shared memory it says whose, if that is not plain."""
        foreign = (a.place for a in (self.second, self.first) if a.owner not in (None, a.block))
        return next(foreign, self.second.place)

    def again(self, count: int) -> DataRace:
        """This race, seen ``count`` times more."""
        return replace(self, count=self.count + count)

    def __str__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return (
            f"data race in kernel {self.first.kernel} on {self.place}: {self.first}, then "
            f"{self.second}, in no order ({times})"
        )


class SourceLines:
    """The lines of source that a library's instructions come from.

    ``library`` is where it was compiled to, with line numbers.
    """

    def __init__(self, library: Path) -> None:
        self._library = library
        self._known: dict[int, tuple[SourceLine, ...]] = {0: ()}

    def find(self, callers: Sequence[int]) -> SourceLine:
        """Where in the kernels an access comes from, given the return addresses above it."""
        self.learn(callers)
        for address in callers:
            for line in self._known[address]:
                if not line.file.startswith(_WORDS):
                    return line
        return SourceLine(f"instruction {callers[0]:#x}", 0)

    def learn(self, addresses: Iterable[int]) -> None:
        """Ask for many addresses at once, which is faster."""
        new = sorted(set(addresses) - self._known.keys())
        if not new:
            return
        self._known.update(dict.fromkeys(new, ()))
        program = shutil.which("addr2line")
        if program is None:
            return
        # A return address is behind the call, perhaps on another line.
        command = [program, "-aie", str(self._library), *(hex(address - 1) for address in new)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        for block, address in zip(answer.split("0x")[1:], new, strict=False):
            self._known[address] = tuple(_parse(block.splitlines()[1:]))


def _parse(lines: Iterable[str]) -> Iterator[SourceLine]:
    for text in lines:
        file, _, number = text.partition(" (")[0].rpartition(":")
        if number.isdecimal() and file != "??":
            path = PurePosixPath(os.path.normpath(file))
            ours = path.is_relative_to(compiler.SOURCE_NAME)
            name = path.relative_to(compiler.SOURCE_NAME) if ours else path.name
            yield SourceLine(str(name), int(number))


class Decoder:
    """Makes `Access` and `DataRace` objects of what one launch left."""

    def __init__(
        self, kernel: str, launch: int, lines: SourceLines, buffers: Iterable[Buffer]
    ) -> None:
        self.kernel = kernel
        self.launch = launch
        self.lines = lines
        self.buffers = tuple(buffers)

    def accesses(self, records: HostArray) -> list[Access]:
        """The accesses that ``records``, of dtype `ACCESS`, tell of."""
        self.lines.learn(records["callers"].ravel().tolist())
        return [self._access(record) for record in records]

    def races(self, records: HostArray) -> list[DataRace]:
        """The races that ``records``, of dtype `RACE`, tell of."""
        pairs = zip(self.accesses(records["first"]), self.accesses(records["second"]), strict=True)
        counts = records["count"].tolist()
        return [DataRace(*pair, count) for pair, count in zip(pairs, counts, strict=True)]

    def _access(self, record: Any) -> Access:
        kind, address = int(record["kind"]), int(record["address"])
        common: dict[str, Any] = {
            "kernel": self.kernel,
            "launch": self.launch,
            "step": int(record["step"]),
            "block": int(record["block"]),
            "thread": int(record["thread"]),
            "kind": KINDS[kind & ~SHARED],
            "source": END if kind & EXIT else self.lines.find(record["callers"].tolist()),
        }
        if kind & SHARED:
            owner, offset = divmod(address, 1 << 32)
            return Access(**common, buffer="shared memory", index=offset, field="", owner=owner)
        for buffer in self.buffers:
            if 0 <= address - buffer.address < buffer.nbytes:
                index, offset = divmod(address - buffer.address, buffer.dtype.itemsize)
                return Access(
                    **common,
                    buffer=buffer.name,
                    index=index,
                    field=_field(buffer.dtype, offset),
                    before=_value(record["before"], buffer.dtype),
                    after=_value(record["after"], buffer.dtype),
                )
        return Access(**common, buffer="memory", index=address, field="")


def _field(dtype: Any, offset: int) -> str:
    """The part of a structured item at a byte offset: ``.frontier_count[1]``."""
    for name, (part, start, *_) in (dtype.fields or {}).items():
        if start <= offset < start + part.itemsize:
            if part.subdtype is None:
                return f".{name}{_field(part, offset - start)}"
            item = part.subdtype[0]
            index, rest = divmod(offset - start, item.itemsize)
            return f".{name}[{index}]{_field(item, rest)}"
    return ""


def _value(word: Any, dtype: np.dtype[Any]) -> int | float | None:
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        return None
    raw = np.array([word], np.uint64).view(np.uint8)[: dtype.itemsize]
    value: int | float = raw.view(dtype)[0].item()
    return None if (raw == POISON).all() else value
