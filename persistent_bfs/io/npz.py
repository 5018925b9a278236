"""Sparse matrices saved by ``scipy.sparse.save_npz``: undirected if the pattern is symmetric."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import scipy.sparse

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import GraphFormatError, Options, Source

COMPRESSED = ("data", "indices", "indptr")
KEYS = {
    "csr": COMPRESSED,
    "csc": COMPRESSED,
    "bsr": COMPRESSED,
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}
IDS = ("shape", "indices", "indptr", "row", "col", "offsets")
"""The arrays that hold integers, one after another."""


def looks_like(head: bytes) -> bool:
    """Whether a file is a zip archive."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read(source: Source, options: Options) -> Graph:
    """Read a saved matrix. Nothing is ever unpickled: that could run code from the file."""
    try:
        matrix = _load(source)
        rows, entries = matrix.shape[0], _entries(matrix)
        # A conversion to coordinates, twice, beside the matrix itself.
        source.reserve_graph(rows, entries, also=64 * entries)
        return Graph.from_scipy(matrix, directed=None, drop_zeros=options.drop_zeros)
    except GraphFormatError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError) as error:
        source.fail(f"npz archive damaged or cut short: {error}")
    except (NotImplementedError, RuntimeError) as error:  # another compression, or encrypted
        source.fail(f"npz archive that cannot be read: {error}")
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if "pickle" in str(error):
            source.fail("holds pickled Python objects, which are never loaded")
        source.fail(str(error))


def _load(source: Source) -> Any:
    """Return the sparse matrix that the archive holds, its arrays checked before they are read."""
    with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
        sizes = {file.filename: file.file_size for file in archive.infolist()}
        total = sum(sizes.values())
        source.reserve(4 * total, f"arrays of {total:,} bytes")
        for name in sizes:
            with archive.open(name) as file:
                _check_array(source, name, file, sizes[name])
    with np.load(io.BytesIO(source.data), allow_pickle=False) as arrays:
        keys = set(arrays.files)
        if missing := {"format", "shape"} - keys:
            source.fail(f"no sparse matrix: {_listed(missing)} missing")
        kind = arrays["format"].item()
        kind = kind.decode(errors="replace") if isinstance(kind, bytes) else str(kind)
        if kind not in KEYS:
            source.fail(f"matrix format {kind!r} is none of {', '.join(KEYS)}")
        if missing := set(KEYS[kind]) - keys:
            source.fail(f"no {kind} matrix: {_listed(missing)} missing")
    matrix: Any = scipy.sparse.load_npz(io.BytesIO(source.data))
    if kind in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape))
        source.fail(f"a graph needs a square matrix, this one is {shape}")
    return matrix


def _check_array(source: Source, name: str, file: IO[bytes], size: int) -> None:
    """Refuse an array that holds objects, or another number of bytes than its header says."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        source.fail(f"{name!r} is no NumPy array")
    reader = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if reader is None:
        source.fail(f"{name!r} is a NumPy array of another version, {version}")
    shape, _, dtype = reader(file)
    if dtype.hasobject:
        source.fail(f"{name!r} holds Python objects, which are never loaded")
    declared, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared != held:
        source.fail(f"{name!r} declares {declared:,} bytes and holds {held:,}")
    key = name.removesuffix(".npy")
    if key in IDS and (len(shape) != 1 or dtype.kind not in "iu"):
        source.fail(f"{key!r} should be one row of integers, not {dtype} of shape {shape}")
    if key == "data" and dtype.kind not in "biufc":
        source.fail(f"'data' should be numbers, not {dtype}")


def _entries(matrix: Any) -> int:
    """Return how many entries a matrix stores, those of a block and of a diagonal one by one."""
    return int(matrix.data.size)


def _listed(keys: set[str]) -> str:
    return " and ".join(repr(key) for key in sorted(keys))
