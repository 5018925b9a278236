"""The folder of compiled kernels.

An entry is one file, which says by itself whether it is whole: after the binary come what is known
of it, as JSON, and a digest of both. Loaders of ELF files look at what the file's header names, and
so not at the end. An entry that was damaged is as good as none: it is compiled anew.

Entries appear by an atomic rename, so processes that compile the same at once do no harm to each
other. What others could have written is not used, since the code would run as this user. The folder
is bounded: what has not been used for longest is deleted.

``PERSISTENT_BFS_CACHE_DIR`` names another folder, ``PERSISTENT_BFS_CACHE_LIMIT`` another bound in
MiB (1,024 by default).
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import shutil
import stat
import struct
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from persistent_bfs.toolchain import CompileError

CACHE_VARIABLE = "PERSISTENT_BFS_CACHE_DIR"
LIMIT_VARIABLE = "PERSISTENT_BFS_CACHE_LIMIT"
LIMIT_MIB = 1024

# What was used so recently may be about to be loaded, by another process too.
SECONDS_IN_USE = 600.0
# Uses are noted no more often, since every note is a write.
SECONDS_BETWEEN_NOTES = 60.0
# A folder to compile in that is older was left by a process that was killed.
SECONDS_TO_COMPILE = 86400.0

_ENTRY = re.compile(r".+-[0-9a-f]{24}\.(cubin|so|o)")
_WORK = re.compile(r"\..+-[a-z0-9_]{8}")

_MAGIC = b"pbfs\x00\x01\r\n"
_END = struct.Struct("<32sQ8s")  # digest of all before it, bytes of the facts, magic

Facts = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """A file of the cache, and when it was last used, in seconds since 1970."""

    path: Path
    size: int
    used: float


def wanted_cache_folder() -> Path:
    """The folder that compiled kernels should be in, by the environment or the user's habits."""
    asked = os.environ.get(CACHE_VARIABLE)
    return Path(asked) if asked else platformdirs.user_cache_path("persistent_bfs")


def limit_bytes() -> int:
    """How much the cache may hold.

    Raises
    ------
    CompileError
        The environment gives no number.
    """
    asked = os.environ.get(LIMIT_VARIABLE) or str(LIMIT_MIB)
    if not (asked.isascii() and asked.isdecimal()):
        raise CompileError(
            f"{LIMIT_VARIABLE} is {asked!r}; it must be a number of MiB, such as {LIMIT_MIB}"
        )
    return int(asked) * 2**20


def _distrust(status: os.stat_result) -> str | None:
    """Why somebody else may have written what has this status.

    The folders above are not looked at: who can rename them can only put another folder in this
    one's place, which would have to be the user's own.
    """
    if os.name != "posix":
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others than its owner can write to it (chmod go-w)"
    return None


def folder_problem(folder: Path) -> str | None:
    """Why compiled kernels cannot be kept in ``folder``, in one line; None if they can.

    It is created if it is not there.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if reason := _distrust(folder.stat()):
            return f"{folder} is not safe, {reason}"
        with tempfile.NamedTemporaryFile(dir=folder):
            return None
    except OSError as error:
        return f"cannot write to {folder} ({error.strerror})"


_lock = threading.Lock()
_chosen: dict[Path, Path] = {}  # for a wanted folder, the one that is written to


def cache_folder() -> Path:
    """The folder that is written to: the wanted one or, with a warning, a temporary one."""
    wanted = wanted_cache_folder()
    with _lock:
        if wanted not in _chosen:
            problem = folder_problem(wanted)
            _chosen[wanted] = wanted if problem is None else _temporary_folder()
            if problem is not None:
                warnings.warn(
                    f"kernels will be compiled anew each time: {problem}; set {CACHE_VARIABLE} to "
                    "a folder of your own that can be written",
                    stacklevel=2,
                )
        return _chosen[wanted]


def _temporary_folder() -> Path:
    folder, owner = Path(tempfile.mkdtemp(prefix="persistent_bfs-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not a process that was forked from it
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _folders_to_read() -> Iterator[Path]:
    """The wanted folder, which need not be writable, and the one that stands in for it."""
    wanted = wanted_cache_folder()
    with suppress(OSError):  # it is not there
        if _distrust(wanted.stat()) is None:
            yield wanted
    chosen = _chosen.get(wanted, wanted)
    if chosen != wanted:
        yield chosen


_Identity = tuple[int, int, int]
_known: dict[Path, tuple[_Identity, Facts]] = {}  # entries that were read and found whole


def find(name: str) -> Path | None:
    """The entry called ``name``, if it is there, whole and this user's; it counts as used now."""
    for folder in _folders_to_read():
        path = folder / name
        if _read(path) is not None:
            _note_use(path)
            return path
    return None


def facts(path: Path) -> Facts:
    """What was noted of an entry when it was published; nothing if it is not whole."""
    return _read(path) or {}


def _read(path: Path) -> Facts | None:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if reason := _distrust(status):
                warnings.warn(f"{path} is compiled anew: {reason}", stacklevel=4)
                return None
            identity = (status.st_ino, status.st_size, status.st_mtime_ns)
            known = _known.get(path)
            if known is None or known[0] != identity:
                known = identity, _facts_of(file.read())
                _known[path] = known
            return known[1]
    except (OSError, ValueError):  # not there, or not whole
        _known.pop(path, None)
        return None


def _facts_of(content: bytes) -> Facts:
    """What an entry says of itself; ValueError if it is not whole."""
    body, end = content[: -_END.size], content[-_END.size :]
    if len(end) < _END.size:
        raise ValueError("too short")
    digest, length, magic = _END.unpack(end)
    if magic != _MAGIC or length > len(body) or hashlib.sha256(body).digest() != digest:
        raise ValueError("damaged")
    known: Facts = json.loads(body[len(body) - length :])
    return known


def any_of(suffix: str) -> bool:
    """Whether there is an entry of this kind, whole or not."""
    there = (entry for folder in _folders_to_read() for entry in entries(folder))
    return any(entry.path.suffix == suffix for entry in there)


def _note_use(path: Path) -> None:
    with suppress(OSError):  # of a folder that is only read, or deleted meanwhile
        status, now = path.stat(), time.time()
        if not 0 <= now - status.st_atime < SECONDS_BETWEEN_NOTES:
            os.utime(path, ns=(int(now * 1e9), status.st_mtime_ns))


@contextmanager
def work_folder(name: str) -> Iterator[Path]:
    """A folder to compile in, beside where the result goes; gone afterwards.

    Raises
    ------
    CompileError
        It cannot be written to any more.
    """
    folder = cache_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}-") as work:
            yield Path(work)
    except OSError as error:
        raise CompileError(
            f"cannot keep {name} in {folder} ({error.strerror}); make room, or set "
            f"{CACHE_VARIABLE} to another folder"
        ) from error


def publish(name: str, made: Path, known: Facts) -> Path:
    """Make the file ``made``, of a `work_folder`, the entry called ``name``.

    ``known`` is what `facts` will say of it.
    """
    target, limit = cache_folder() / name, limit_bytes()
    said = json.dumps(known, sort_keys=True).encode()
    with made.open("r+b") as file:
        content = file.read()
        if not content:
            raise CompileError(f"the compiler left nothing of {name}")
        body = content + said
        file.write(said + _END.pack(hashlib.sha256(body).digest(), len(said), _MAGIC))
        file.flush()
        os.fsync(file.fileno())  # or a power cut may leave the name without the content
    made.chmod(0o644)
    try:
        os.replace(made, target)
    except PermissionError:  # Windows does not replace what another process has open
        if _read(target) is None:
            raise
    _evict(target, limit)
    return target


def discard(path: Path) -> None:
    """Delete an entry that turned out to be of no use."""
    _known.pop(path, None)
    with suppress(OSError):  # gone already, or of a folder that is only read
        path.unlink()


def entries(folder: Path) -> list[Entry]:
    """What is in the cache, the least recently used first."""
    found = []
    with suppress(FileNotFoundError):
        for file in os.scandir(folder):
            if _ENTRY.fullmatch(file.name):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    status = file.stat(follow_symlinks=False)
                    used = max(status.st_atime, status.st_mtime)
                    found.append(Entry(Path(file.path), status.st_size, used))
    return sorted(found, key=lambda entry: entry.used)


def _evict(newest: Path, limit: int) -> None:
    """Delete what was used least recently, until the rest is within the limit."""
    folder, now = newest.parent, time.time()
    _remove_left_behind(folder, now - SECONDS_TO_COMPILE)
    there = entries(folder)
    excess = sum(entry.size for entry in there) - limit
    for entry in there:
        if excess <= 0:
            return
        if entry.path == newest or entry.path in _known or entry.used > now - SECONDS_IN_USE:
            continue
        discard(entry.path)
        excess -= entry.size


def _remove_left_behind(folder: Path, before: float) -> None:
    """Delete folders to compile in whose process was killed."""
    for file in os.scandir(folder):
        with suppress(FileNotFoundError):
            if _WORK.fullmatch(file.name) and file.stat().st_mtime < before:
                shutil.rmtree(file.path, ignore_errors=True)


def clear(folder: Path) -> list[Entry]:
    """Delete every entry, and what killed processes left; tells what was there.

    Raises
    ------
    CompileError
        One cannot be deleted.
    """
    gone = entries(folder)
    for entry in gone:
        _known.pop(entry.path, None)
        try:
            entry.path.unlink(missing_ok=True)
        except OSError as error:
            raise CompileError(f"cannot delete {entry.path}: {error.strerror}") from None
    if folder.is_dir():
        _remove_left_behind(folder, time.time() - SECONDS_IN_USE)
    return gone
