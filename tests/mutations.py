"""Files that are almost graphs: valid ones of every format, changed at random by a seed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from persistent_bfs.io import FORMATS

NUMBERS = (
    *(b"0", b"-1", b"1", b"2", b"17", b"1000000", b"16777216", b"900000000", b"2147483647"),
    *(b"2147483648", b"9223372036854775807", b"1" + b"0" * 18, b"9" * 25, b"9" * 5000),
    *(b"1.5", b"1e9", b"nan", b"inf", b"0x10", b"1_0", b""),
)
PIECES = (
    *(b"\t", b",", b";", b" ", b"\n", b"\r", b"\r\n", b"\0", b"\xff", b"\xa0", b"\x1c", b"\x0b"),
    *(b"#", b"# x", b"%", b"c ", b"p ", b"a ", b"e ", b'"', b"'", b"(", b"[", b"{", b"->", b":"),
    *("é".encode(), "\u2028".encode(), b"source target", b"\xef\xbb\xbf", b"x" * 3000),
)


class File(NamedTuple):
    """A mutated file, and how to read it."""

    name: str
    content: bytes
    options: dict[str, Any]


def small_graphs(rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield a random graph of up to 12 vertices as a file of each format, by its extension."""
    n = rng.randint(1, 12)
    pairs = sorted({tuple(sorted(rng.sample(range(n), 2))) for _ in range(2 * n) if n > 1})
    arcs = [(u, v) for u, v in pairs] + [(v, u) for u, v in pairs]
    field = rng.choice(("pattern", "integer", "real", "complex"))
    value = {"pattern": "", "integer": " 3", "real": " 1.5", "complex": " 1 2"}[field]
    symmetry = rng.choice(("general", "symmetric", "skew-symmetric", "hermitian"))
    entries = "".join(f"{v + 1} {u + 1}{value}\n" for u, v in pairs)
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% note\n"
    yield ".mtx", f"{head}{n} {n} {len(pairs)}\n{entries}".encode()
    dense = "".join(f"{rng.randint(0, 2)}\n" for _ in range(n * n))
    yield ".mtx", f"%%MatrixMarket matrix array integer general\n{n} {n}\n{dense}".encode()
    lines = "".join(f"a {u + 1} {v + 1} 7\n" for u, v in arcs)
    yield ".gr", f"c roads\np sp {n} {len(arcs)}\n{lines}".encode()
    lines = "".join(f"{u + 1} {v + 1}\n" for u, v in pairs)
    yield ".gr", f"c width\np tw {n} {len(pairs)}\n{lines}".encode()
    lines = "".join(f"e {u + 1} {v + 1}\n" for u, v in pairs)
    yield ".col", f"c colours\np edge {n} {len(pairs)}\nn 1 2\n{lines}".encode()
    weight = rng.choice(("", " 5"))
    rows = (" ".join(f"{v + 1}{weight}" for w, v in sorted(arcs) if w == u) for u in range(n))
    fmt = " 1" if weight else ""
    yield ".graph", f"% mesh\n{n} {len(pairs)}{fmt}\n{chr(10).join(rows)}\n".encode()
    more = rng.choice(("", " 4", " # x", "\t0.5 6"))
    yield ".txt", ("# SNAP\n" + "".join(f"{u}\t{v}{more}\n" for u, v in pairs)).encode()
    mark = rng.choice((",", ";", "\t", " ", ", "))
    header = rng.choice(("", "source,target\n", "Id,Name\n")).replace(",", mark)
    yield ".csv", (header + "".join(f"{u}{mark}{v}\n" for u, v in pairs)).encode()
    town = rng.choice(("Ort {}", "ört{}", '"Ort, {}"', "o{}"))
    names = [town.format(v) for v in range(n)]
    yield ".tsv", "".join(f"{names[u]}{mark}{names[v]}\n" for u, v in pairs).encode()
    array = scipy.sparse.coo_array(
        (np.ones(len(arcs)), tuple(np.array(arcs, np.int32).reshape(-1, 2).T)), shape=(n, n)
    )
    saved = io.BytesIO()
    kind = rng.choice(("csr", "csc", "coo", "bsr", "dia"))
    scipy.sparse.save_npz(saved, array.asformat(kind), compressed=rng.random() < 0.5)
    yield ".npz", saved.getvalue()
    yield ".npz", _npz_of_anything(rng, kind)


def _npz_of_anything(rng: random.Random, kind: str) -> bytes:
    """Return an npz file with the right keys and any arrays under them."""

    def array() -> Any:
        size = rng.choice(((), (0,), (1,), (3,), (2, 2), (2, 1, 1)))
        dtype = rng.choice((np.int8, np.int32, np.int64, np.uint64, np.float32, np.complex64, "U3"))
        return np.full(size, rng.choice((0, 1, 2, 3, 100, 127)), dtype)

    shape: Any = [rng.choice((0, 1, 2, 3, 1000, -1, 2**31, 2**40, 2**62)) for _ in range(2)]
    if rng.random() < 0.3:
        shape = array()
    elif rng.random() < 0.7:
        shape[1] = shape[0]
    keys = ("data", "indices", "indptr", "row", "col", "offsets", "coords")
    saved = io.BytesIO()
    np.savez(saved, format=np.array(kind.encode()), shape=shape, **{k: array() for k in keys})
    return saved.getvalue()


def _flip(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _drop(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randint(1, 20)]


def _blow_up_a_number(rng: random.Random, data: bytearray) -> None:
    numbers = list(re.finditer(rb"\d+", data))
    if numbers:
        start, end = rng.choice(numbers).span()
        data[start:end] = rng.choice(NUMBERS)


def _swap_lines(rng: random.Random, data: bytearray) -> None:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    data[:] = b"\n".join(lines)


def _repeat_lines(rng: random.Random, data: bytearray) -> None:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at:at] = [lines[at]] * rng.choice((1, 3, 200))
    data[:] = b"\n".join(lines)


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice(PIECES) * rng.choice((1, 1, 1, 5))


def _other_separators(rng: random.Random, data: bytearray) -> None:
    old, new = rng.choice((b" ", b"\t", b",", b"\n")), rng.choice(PIECES)
    data[:] = data.replace(old, new, rng.choice((1, 3, -1)))


def _glue_comments(rng: random.Random, data: bytearray) -> None:
    data[:] = data.replace(b"\n", rng.choice((b"# x\n", b"%\n", b" # x\n", b"//\n")))


def _overwrite(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    size = rng.randint(1, 8)
    data[at : at + size] = rng.randbytes(size)


MUTATIONS: tuple[Callable[[random.Random, bytearray], None], ...] = (
    *(_flip, _cut, _drop, _blow_up_a_number, _blow_up_a_number, _swap_lines, _repeat_lines),
    *(_insert, _other_separators, _glue_comments, _overwrite),
)


def _zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("graph/graph.txt", content)
        archive.writestr("graph/README", "about it")
    return file.getvalue()


def _tarred(content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, data in (("graph/graph.mtx", content), ("graph/graph_b.mtx", b"x")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def zstd_frame(content: bytes) -> bytes:
    """Return a zstd frame of one block, stored as it is, of at most 64 KiB (RFC 8878, 3.1.1)."""
    size = len(content)
    assert 256 <= size < 1 << 16
    block = (size << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x60" + (size - 256).to_bytes(2, "little") + block + content


PACKINGS: tuple[Callable[[bytes], bytes], ...] = (
    *(gzip.compress, bz2.compress, lzma.compress, _zipped, _tarred),
    lambda content: gzip.compress(_tarred(content)),
    lambda content: zstd_frame(content.ljust(256)[: (1 << 16) - 1]),
    lambda content: gzip.compress(content + b"1 " * (1 << 19)),
)


def mutated_files(seed: int) -> Iterator[File]:
    """Yield files without end: the same for the same seed."""
    rng = random.Random(seed)
    while True:
        for extension, content in small_graphs(rng):
            data = bytearray(content)
            if rng.random() < 0.03:
                data[:] = rng.randbytes(rng.randint(1, 300))
            _mutate(rng, data, rng.randint(0, 3))
            if rng.random() < 0.2:
                data[:] = rng.choice(PACKINGS)(bytes(data))
                _mutate(rng, data, rng.choice((0, 0, 1, 2)))
            options: dict[str, Any] = {
                name: True
                for name in ("relabel", "drop_zeros", "directed", "symmetrize")
                if rng.random() < 0.2
            }
            if rng.random() < 0.2:
                options["format"] = rng.choice(list(FORMATS))
            if rng.random() < 0.2:
                extension = rng.choice(("", ".dat", ".txt", ".csv", ".mtx", ".graph", ".npz"))
            if rng.random() < 0.5:
                options["memory_limit"] = 1 << rng.randint(16, 25)
            yield File(f"g{extension}", bytes(data), options)


def _mutate(rng: random.Random, data: bytearray, times: int) -> None:
    for _ in range(times):
        if data:
            rng.choice(MUTATIONS)(rng, data)
