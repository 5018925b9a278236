"""Sparse matrices saved by ``scipy.sparse.save_npz``: undirected if the pattern is symmetric."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

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


def looks_like(head: bytes) -> bool:
    """Whether a file is a zip archive."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def read(source: Source, options: Options) -> Graph:
    """Read a saved matrix. Nothing is ever unpickled: that could run code from the file."""
    try:
        with np.load(io.BytesIO(source.data), allow_pickle=False) as archive:
            keys = set(archive.files)
            if missing := {"format", "shape"} - keys:
                source.fail(f"no sparse matrix: {_listed(missing)} missing")
            kind = archive["format"].item()
            kind = kind.decode(errors="replace") if isinstance(kind, bytes) else str(kind)
            if kind not in KEYS:
                source.fail(f"matrix format {kind!r} is none of {', '.join(KEYS)}")
            if missing := set(KEYS[kind]) - keys:
                source.fail(f"no {kind} matrix: {_listed(missing)} missing")
            for key in ("shape", *KEYS[kind]):
                if archive[key].dtype.hasobject:
                    source.fail(f"{key!r} holds Python objects, which are never loaded")
        matrix: Any = scipy.sparse.load_npz(io.BytesIO(source.data))
        if kind in ("csr", "csc", "bsr"):
            matrix.check_format(full_check=True)
        return Graph.from_scipy(matrix, directed=None, drop_zeros=options.drop_zeros)
    except GraphFormatError:
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError) as error:
        source.fail(f"npz archive damaged or cut short: {error}")
    except ValueError as error:
        if "pickle" in str(error):
            source.fail("holds pickled Python objects, which are never loaded")
        source.fail(str(error))


def _listed(keys: set[str]) -> str:
    return " and ".join(repr(key) for key in sorted(keys))
