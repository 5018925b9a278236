"""MatrixMarket: SciPy's parser, after checks of all that it would let pass.

``general`` is directed, entry (i, j) being the arc i -> j; the other symmetries are undirected, and
SciPy mirrors the triangle that the file holds. A coordinate file's zeros are stored on purpose and
so are edges, unless ``drop_zeros``; an array file writes every entry, so there zero, NaN and
infinity mean no edge.

Source: Boisvert, Pozo, Remington, "The Matrix Market Exchange Formats", NISTIR 5935, 1996.
"""

from __future__ import annotations

import io
import re

import scipy.io

from persistent_bfs.graph import Graph
from persistent_bfs.io.source import Options, Source, data_lines

BANNER = "%%MatrixMarket matrix coordinate|array FIELD SYMMETRY"
FIELDS = ("pattern", "integer", "unsigned-integer", "real", "double", "complex")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def looks_like(head: bytes) -> bool:
    """Whether a file begins with a banner, be it one with a single %."""
    return re.match(rb"\s*%{0,2}MatrixMarket", head, re.IGNORECASE) is not None


def read(source: Source, options: Options) -> Graph:
    """Read a coordinate or array file of any field and symmetry."""
    lines = io.BytesIO(source.data)
    banner = lines.readline().decode(errors="replace").lower().split()
    if not banner or banner[0] != "%%matrixmarket":
        source.fail(f"a MatrixMarket file begins with {BANNER!r}", 1)
    if len(banner) != 5 or banner[1] != "matrix":
        source.fail(f"the banner should read {BANNER!r}", 1)
    layout, field, symmetry = banner[2:]
    for word, known in (
        (layout, ("coordinate", "array")),
        (field, FIELDS),
        (symmetry, SYMMETRIES),
    ):
        if word not in known:
            source.fail(f"{word!r} in the banner is none of {', '.join(known)}", 1)

    number, start, size = 1, lines.tell(), b""
    while line := lines.readline():
        number += 1
        if line.strip() and not line.lstrip().startswith(b"%"):
            size = line
            break
        start = lines.tell()
    names = "rows, columns, entries" if layout == "coordinate" else "rows, columns"
    if not re.fullmatch(
        rb"\s*" + rb"\s+".join([rb"\d{1,18}"] * len(names.split())) + rb"\s*", size
    ):
        source.fail(f"expected the size line ({names})", number)
    rows, columns, *rest = (int(token) for token in size.split())
    if rows != columns:
        source.fail(f"the matrix is {rows} x {columns}; a graph needs a square one", number)
    triangle = rows * (rows - 1 if symmetry == "skew-symmetric" else rows + 1) // 2
    declared = rest[0] if rest else rows * rows if symmetry == "general" else triangle
    # Every entry takes a line of at least two bytes: do not allocate what cannot be there.
    if 2 * declared > len(source.data) - lines.tell() + 1:
        _fail_short(source, declared, number)
    if layout == "array":
        # SciPy's parser writes beyond the array where a skew-symmetric file is too long.
        values = [at for at, _ in data_lines(source.data) if at > number]
        if len(values) > declared:
            source.fail(f"more values than the {declared:,} declared", values[declared])
        if len(values) < declared:
            _fail_short(source, declared, number)
    if (nul := source.data.find(b"\0")) >= 0:
        source.fail("not text: a NUL character", source.data.count(b"\n", 0, nul) + 1)
    stored = declared if symmetry == "general" else 2 * declared
    # SciPy's own arrays: two ids and a number of 16 bytes an entry, twice while it mirrors.
    source.reserve_graph(rows, stored, number, also=64 * stored)

    # SciPy gets a banner in its own spelling, and blank lines for the comments, so that the line
    # numbers in its errors are the file's. It need not negate or conjugate what it mirrors.
    mirrored = "symmetric" if layout == "coordinate" and symmetry != "general" else symmetry
    text = f"%%MatrixMarket matrix {layout} {field} {mirrored}" + "\n" * (number - 1)
    try:
        # The line end, because SciPy's parser looks for one beyond the end of a wrong last line,
        # as it does beyond a NUL.
        body = io.BytesIO(text.encode() + source.data[start:] + b"\n")
        matrix = scipy.io.mmread(body, spmatrix=False)
    except (ValueError, OverflowError) as error:
        found = re.fullmatch(r"Line (\d+): (.*)", str(error))
        if found:
            source.fail(found[2].rstrip("."), int(found[1]))
        if "Truncated" in str(error):
            _fail_short(source, declared, number)
        source.fail(str(error).rstrip("."))
    try:
        return Graph.from_scipy(
            matrix, directed=symmetry == "general", drop_zeros=options.drop_zeros
        )
    except ValueError as error:
        source.fail(str(error), number)


def _fail_short(source: Source, declared: int, size_line: int) -> None:
    found, last = 0, size_line
    for last, _ in data_lines(source.data):
        found += last > size_line
    source.fail(f"the file ends after {found:,} of {declared:,} declared entries", last)
