"""From a path to its content: files and pipes, compressed, or packed with others in an archive."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, NoReturn

from persistent_bfs.io.memory import available_memory
from persistent_bfs.io.source import GraphFormatError, Progress, Source, one_line

__all__ = ["STANDARD_INPUT", "SUFFIXES", "Expansion", "open_source"]

STANDARD_INPUT = Path("<stdin>")
"""What messages call the file ``-``."""

SUFFIXES = (".gz", ".xz", ".bz2", ".zst")
CHUNK = 1 << 18
LAYERS = 4
"""How many compressions and archives may lie in each other."""

EXPANDED = 1 << 28
"""Bytes that compressed data may expand to, whatever its own size: 256 MiB."""
EXPANDED_PER_BYTE = 100
"""Bytes per byte of compressed data, beyond that; text of edges comes to 3 to 30."""


class Expansion(NamedTuple):
    """How much data a compressed file may expand to."""

    path: Path
    memory_limit: int | None

    def check(self, expanded: int, compressed: int) -> None:
        """Refuse ``expanded`` bytes, known or read so far, of ``compressed`` ones."""
        if self.memory_limit is not None:
            allowed, of = self.memory_limit, "that memory_limit allows"
        else:
            allowed = max(EXPANDED, EXPANDED_PER_BYTE * compressed)
            of = f"that {compressed:,} compressed bytes may expand to"
            free = available_memory() if expanded > EXPANDED // 4 else allowed
            if free < allowed:
                allowed, of = free, "of memory available"
        if expanded > allowed:
            verb = "holds" if expanded == compressed else "expands to"
            self.fail(
                f"{verb} more than the {allowed:,} bytes {of}; "
                "memory_limit=BYTES (--memory-limit) sets another limit"
            )

    def window(self) -> int:
        """Return how much memory a decompressor itself may take."""
        return available_memory() if self.memory_limit is None else self.memory_limit

    def fail(self, message: str) -> NoReturn:
        """Raise :class:`GraphFormatError` for this file."""
        raise GraphFormatError(f"{self.path}: {one_line(message)}") from None


class _Replayed(io.RawIOBase):
    """A stream from its beginning, though some of it was read already; counts what is read."""

    def __init__(self, begun: bytes, rest: IO[bytes]) -> None:
        self._begun = begun
        self._rest = rest
        self.done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        chunk, self._begun = self._begun[:size], self._begun[size:]
        chunk = chunk or self._rest.read(size)
        buffer[: len(chunk)] = chunk
        self.done += len(chunk)
        return len(chunk)


def _gzip_chunks(file: IO[bytes], window: int) -> Iterator[bytes]:  # noqa: ARG001
    with gzip.GzipFile(fileobj=file) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _frames(make: Callable[[], Any], file: IO[bytes]) -> Iterator[bytes]:
    """Yield what a file of one or more compressed streams holds; ``make`` a decoder of one."""
    given = file.read(CHUNK >> 2)
    while given:
        decoder = make()
        while not decoder.eof:
            if decoder.needs_input and not given:
                given = file.read(CHUNK >> 2)
                if not given:
                    raise EOFError("the compressed stream ends too early")
            chunk = decoder.decompress(given, CHUNK)
            given = b""
            if chunk:
                yield chunk
        # What follows may be another stream, or padding by zeros.
        given = decoder.unused_data or file.read(CHUNK >> 2)
        while given and not (given := given.lstrip(b"\0")):
            given = file.read(CHUNK >> 2)


def _xz_chunks(file: IO[bytes], window: int) -> Iterator[bytes]:
    return _frames(lambda: lzma.LZMADecompressor(memlimit=max(window, 1)), file)


def _bzip2_chunks(file: IO[bytes], window: int) -> Iterator[bytes]:  # noqa: ARG001
    return _frames(bz2.BZ2Decompressor, file)


def _zstd_chunks(file: IO[bytes], window: int) -> Iterator[bytes]:  # noqa: ARG001
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        try:
            library = import_module(name)
        except ImportError:
            continue
        try:
            if name == "zstandard":
                yield from _frames(partial(_ZstandardDecoder, library), file)
            else:
                yield from _frames(library.ZstdDecompressor, file)
        except library.ZstdError as error:
            raise _Damaged(str(error)) from None
        return
    raise _Missing(
        "compressed by zstd, which Python reads from 3.14 on: pip install zstandard, "
        "or decompress the file by 'zstd -d'"
    )


class _ZstandardDecoder:
    """The decoder of the zstandard package, fed so little at a time that it cannot give much."""

    def __init__(self, library: Any) -> None:
        self._decoder = library.ZstdDecompressor().decompressobj()
        self._given = b""

    @property
    def eof(self) -> bool:
        return bool(self._decoder.eof)

    @property
    def needs_input(self) -> bool:
        return not self._given

    @property
    def unused_data(self) -> bytes:
        return bytes(self._decoder.unused_data) + self._given

    def decompress(self, data: bytes, max_length: int) -> bytes:
        # A block of 4 bytes can stand for 128 KiB.
        self._given += data
        size = max(max_length >> 15, 1)
        piece, self._given = self._given[:size], self._given[size:]
        return bytes(self._decoder.decompress(piece))


class _Damaged(Exception):
    """Compressed data that cannot be read."""


class _Missing(Exception):
    """A compression whose library is not installed."""


DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError, _Damaged)

COMPRESSIONS: dict[bytes, tuple[str, Callable[[IO[bytes], int], Iterator[bytes]]]] = {
    b"\x1f\x8b": ("gzip", _gzip_chunks),
    b"\xfd7zXZ\x00": ("xz", _xz_chunks),
    b"BZh": ("bzip2", _bzip2_chunks),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd_chunks),
}


def open_source(
    path: Path, progress: Progress | None = None, memory_limit: int | None = None
) -> Source:
    """Read a file or pipe whole, decompress it and take the graph's file out of an archive.

    Compression and archive are known by content, whatever the name says.

    Parameters
    ----------
    path : Path
        A file, a pipe, or :data:`STANDARD_INPUT`.
    progress : callable, optional
        Told what is read.
    memory_limit : int, optional
        The bytes that may be read and unpacked. By default what is available, of which compressed
        data may take 256 MiB, or 100 times its own size if that is more.

    Raises
    ------
    GraphFormatError
        If compressed data is damaged, ends too early, or expands beyond the limit; if an archive
        does not hold one graph.
    OSError
        If the file cannot be read.
    """
    limits = Expansion(path, memory_limit)
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise FileNotFoundError("there is no standard input to read")
        data = _read(sys.stdin.buffer, limits, progress, 0)
    else:
        with path.open("rb") as file:
            data = _read(file, limits, progress, path.stat().st_size)
    for _ in range(LAYERS):
        if _compression(data) is not None:
            data = _read(io.BytesIO(data), limits, None, 0)
        elif (archive := _archive(data)) is not None:
            path, data = archive(path, data, limits)
            limits = Expansion(path, memory_limit)
        else:
            break
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data and b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    return Source(path, data, memory_limit)


def _compression(head: bytes) -> tuple[str, Callable[[IO[bytes], int], Iterator[bytes]]] | None:
    return next((row for magic, row in COMPRESSIONS.items() if head.startswith(magic)), None)


def _read(file: IO[bytes], limits: Expansion, progress: Progress | None, total: int) -> bytes:
    """Return the content of a stream that need not be seekable, decompressed."""
    head = file.read(8)
    raw = _Replayed(head, file)
    compression = _compression(head)
    content = io.BytesIO()
    size = 0
    if compression is None:
        kind, chunks = "plain", iter(lambda: raw.read(CHUNK) or b"", b"")
        limits.check(total, total)
    else:
        kind, open_chunks = compression
        chunks = open_chunks(io.BufferedReader(raw, CHUNK >> 2), limits.window())
    try:
        for chunk in chunks:
            size += len(chunk)
            limits.check(size, size if compression is None else raw.done)
            content.write(chunk)
            if progress:
                progress(f"reading {limits.path.name}", raw.done, total)
    except _Missing as error:
        limits.fail(str(error))
    except DAMAGE as error:
        if compression is None:
            raise
        if isinstance(error, lzma.LZMAError) and "usage limit" in str(error):
            limits.fail(
                f"decompressing takes more than the {limits.window():,} bytes of memory that it "
                "may; memory_limit=BYTES (--memory-limit) sets another limit"
            )
        limits.fail(f"{kind} data damaged or cut short: {error}")
    return content.getvalue()


def _archive(data: bytes) -> Callable[[Path, bytes, Expansion], tuple[Path, bytes]] | None:
    if data[257:262] == b"ustar":
        return _from_tar
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        names = _zip_names(data)
        # A zip file of arrays alone is NumPy's, and its reader's.
        if names and not all(name.endswith(".npy") for name in names):
            return _from_zip
    return None


def _zip_names(data: bytes) -> list[str]:
    """Return the names in a zip archive, none if it is damaged: the npz reader says how."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except ZIP_DAMAGE:
        return []


ZIP_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    ValueError,
    IndexError,  # a name without characters
    NotImplementedError,  # a compression that Python does not know
    RuntimeError,  # an encrypted file
)


def _from_zip(path: Path, data: bytes, limits: Expansion) -> tuple[Path, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {file.filename: file for file in archive.infolist() if not file.is_dir()}
            name = choose(list(files), limits)
            limits.check(len(data) + files[name].file_size, len(data))
            return Path(f"{path}/{name}"), archive.read(files[name])
    except GraphFormatError:
        raise
    except ZIP_DAMAGE as error:
        limits.fail(f"zip archive damaged, cut short or not readable: {error}")


def _from_tar(path: Path, data: bytes, limits: Expansion) -> tuple[Path, bytes]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            files = {file.name: file for file in archive.getmembers() if file.isreg()}
            name = choose(list(files), limits)
            limits.check(len(data) + files[name].size, len(data))
            content = archive.extractfile(files[name])
            assert content is not None  # as it is a regular file
            return Path(f"{path}/{name}"), content.read()
    except GraphFormatError:
        raise
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        limits.fail(f"tar archive damaged or cut short: {error}")


def choose(names: list[str], limits: Expansion) -> str:
    """Return which file of an archive is the graph.

    The only one; else the only one with a graph's extension; else the one that has its folder's
    name, as in the SuiteSparse collection, or the archive's.
    """
    from persistent_bfs.io.formats import stem

    def described(name: str) -> bool:
        base = PurePosixPath(name).name.lower()
        return base.startswith((".", "readme", "license", "licence")) or "__MACOSX" in name

    files = [name for name in names if not described(name)]
    known = [name for name in files if stem(PurePosixPath(name).name)[1]]
    candidates = known or files
    if len(candidates) > 1:
        archive = limits.path.name.split(".")[0]
        named = [
            name
            for name in candidates
            if stem(PurePosixPath(name).name)[0] in (PurePosixPath(name).parent.name, archive)
        ]
        candidates = named or candidates
    if len(candidates) != 1:
        found = ", ".join(sorted(candidates)[:5]) + (", ..." if len(candidates) > 5 else "")
        limits.fail(
            f"an archive of several files ({found}): unpack it and give the graph's own"
            if candidates
            else "an archive without a graph"
        )
    return candidates[0]
