"""Edge lists as the SNAP collection keeps them: two vertices a line, ``#`` or ``%`` for comments.

The vertices are integers, taken as ids from 0 (a gap makes isolated vertices), or names, which
become labels: ids follow their sorted order. The first edge decides which. Undirected unless the
caller says ``directed=True``.

Tabs separate the columns where every line has one; else semicolons, else commas, likewise; else
blanks. So names may have blanks in them where another character separates; quotes protect that
character. Columns after the second (weights, times) are ignored; where blanks separate names they
must be numbers, or attributes in braces, lest running text become a graph.

A first line of words over integers, or of two words that head such columns everywhere (``source``
and ``target``), is a header: it is passed over, with a :class:`GraphFormatWarning`. After integers,
``#`` and ``%`` begin a comment anywhere in a line; after names, where a blank goes before.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from persistent_bfs.graph import Graph, check_id_gap
from persistent_bfs.io.source import (
    Options,
    Source,
    count_tokens,
    data_lines,
    line_of_row,
    quote,
    tokens_per_line,
    without_comments,
)

INTEGER = re.compile(rb"\s*\"?[+-]?\d+\"?\s*")
NUMBER = re.compile(
    rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)", re.I
)
PLAIN_LINE = re.compile(rb"\s*\"?-?\d+\"?(?:[ \t]+|\s*[,;]\s*)\"?-?\d+\"?(?:[\s,;].*)?", re.DOTALL)
TRAILING_COMMENT = re.compile(rb"[#%][^\n]*")
HEADINGS = {
    ("source", "target"),
    ("from", "to"),
    ("src", "dst"),
    ("src", "dest"),
    ("source", "destination"),
    ("sourceid", "targetid"),
    ("fromid", "toid"),
    ("fromnodeid", "tonodeid"),
    ("fromnode", "tonode"),
    ("node1", "node2"),
    ("id1", "id2"),
    ("vertex1", "vertex2"),
}
"""What heads the two columns of edges, without case, blanks and punctuation."""

BYTES_PER_NAME = 320
"""Bytes that Python takes for a name read: its bytes, its text, its places in sets and lists."""


class Table(NamedTuple):
    """The text of an edge list, taken apart as far as its separator."""

    body: bytes
    """The file's text, each line that is no edge made blank."""
    delimiter: str | None
    """What separates the columns, None for any blanks."""

    def fields(self, line: bytes) -> list[bytes]:
        """Return the columns of a line of integers, or of the first line."""
        mark = self.delimiter
        return line.split() if mark is None else line.strip().split(mark.encode())


def is_plain(head: bytes) -> bool:
    """Whether a file's first bytes can be nothing but an edge list of integers."""
    # A header of comments may be as long as what is looked at; its last line may be cut.
    lines = [line for _, line in data_lines(without_comments(head, b"#%"))]
    whole = lines if len(lines) < 2 or head.endswith(b"\n") else lines[:-1]
    return bool(whole) and all(map(PLAIN_LINE.fullmatch, whole))


def read(source: Source, options: Options) -> Graph:
    """Read an edge list of integers or of names."""
    body = without_comments(source.data, b"#%")
    first = next(data_lines(body), None)
    if first is None:
        source.fail("no edge in the file")
    number, line = first
    table = Table(body, _delimiter(body, line))
    if _are_integers(table, line):
        return _read_integers(source, table, options)
    following = next(islice(data_lines(body), 1, None), None)
    if following is not None and _are_integers(table, following[1]):
        heading = table.fields(line)
        rest = Table(_blanked(body, number), table.delimiter)
        integers = _read_integers_under(source, heading, rest, number, options)
        if integers is not None:
            return integers
    if all(NUMBER.fullmatch(field.strip()) for field in table.fields(line)[:2]):
        source.fail(f"expected two integer ids, got {quote(line)}", number)
    return _read_names(source, table, options)


def _delimiter(body: bytes, first: bytes) -> str | None:
    """Return the character that every line has, None if blanks separate."""
    if re.fullmatch(rb"[\s\d+.eE-]+(?:[#%].*\s*)?", first):
        return None  # tabs are blanks between numbers
    for mark in "\t;,":
        if mark.encode() in first.strip() and all(
            mark.encode() in line.strip() for _, line in data_lines(body)
        ):
            return mark
    return None


def _are_integers(table: Table, line: bytes) -> bool:
    fields = table.fields(TRAILING_COMMENT.sub(b"", line))[:2]
    return len(fields) == 2 and all(map(INTEGER.fullmatch, fields))


def _blanked(body: bytes, number: int) -> bytes:
    """Return a text whose first ``number`` lines are blank."""
    lines = io.BytesIO(body)
    for _ in range(number):
        lines.readline()
    return b"\n" * number + body[lines.tell() :]


def _plain_name(field: bytes | str) -> str:
    text = field if isinstance(field, str) else field.decode(errors="replace")
    return "".join(filter(str.isalnum, text)).lower()


def _read_integers_under(
    source: Source, heading: list[bytes], table: Table, number: int, options: Options
) -> Graph | None:
    """Read integers under a line of words; None if these are names, like the words."""
    try:
        graph = _read_integers(source, table, options)
    except ValueError:
        if any(not _are_integers(table, line) for _, line in data_lines(table.body)):
            return None
        raise
    _check_heading(source, heading, number)
    return graph


def _check_heading(source: Source, heading: list[bytes] | list[str], number: int) -> None:
    """Warn of a header, refusing one whose edges are in other columns than the first two."""
    names = [_plain_name(field) for field in heading]
    if not names[0]:
        source.fail("a header without a name for the first column, an index: leave it out", number)
    shown = " ".join(
        field if isinstance(field, str) else field.decode(errors="replace") for field in heading
    )
    for at, pair in enumerate(pairwise(names)):
        if at and pair in HEADINGS:
            source.fail(
                f"by its header the edges are in columns {at + 1} and {at + 2}: "
                "make them the first two",
                number,
            )
    source.note(f"the header {quote(shown.encode())} is passed over", number)


def _read_integers(source: Source, table: Table, options: Options) -> Graph:
    body = table.body
    if b"#" in body or b"%" in body:
        body = TRAILING_COMMENT.sub(b"", body)
    if table.delimiter is not None:
        body = re.sub(rb"(?m)^[ \t\r]+$", b"", body.replace(b'"', b""))
    ends = source.integers(body, (0, 1), "two integer ids", table.delimiter)
    _check_shape(source, body, table.delimiter, ends, options)
    directed = bool(options.directed)
    if options.relabel:
        source.reserve(len(ends) * BYTES_PER_NAME, f"{len(ends):,} edges to relabel")
        ids, s, t = _relabelled(*ends.T)
        return Graph.from_edges(s, t, directed=directed, labels=ids.astype(np.str_))
    if ends.min() < 0:
        row = int(np.argmax((ends < 0).any(axis=1)))
        source.fail("negative id; relabel=True accepts any ids", line_of_row(body, row))
    largest = int(ends.max())
    try:
        check_id_gap(largest, len(ends))
    except ValueError as error:
        row = int(np.argmax(ends.max(axis=1)))
        source.fail(f"{error}; relabel=True numbers them afresh", line_of_row(body, row))
    source.reserve_graph(largest + 1, len(ends))
    return Graph.from_edges(*ends.T, directed=directed)


def _check_shape(
    source: Source,
    body: bytes,
    delimiter: str | None,
    ends: npt.NDArray[np.int64],
    options: Options,
) -> None:
    """Refuse tables of integers that are plainly something other than a list of edges."""
    rows = len(ends)
    if delimiter is not None:
        body = body.replace(delimiter.encode(), b" ")
    tokens = count_tokens(body)
    # A METIS file under another name would be read without complaint, and wrongly.
    if tokens % rows and tokens == 2 + 2 * int(ends[0, 1]):
        source.fail("not an edge list: the first line is a METIS header; give format='metis'")
    if options.said:
        return
    sizes = ends[0].tolist()
    others = int(ends[1:].max(initial=-1))
    if sizes[0] >= others < sizes[1] == rows - 1 > 1 and tokens == 2 * rows:
        source.fail(
            f"the first line counts {sizes[0]:,} vertices and {sizes[1]:,} edges: remove it, or "
            "say format='edgelist' (--format edgelist) if it is an edge itself",
            line_of_row(body, 0),
        )
    if tokens == 2 * rows or body.translate(None, b"0123456789+- \t\r\n"):
        return
    source.reserve(8 * tokens + 8 * body.count(b"\n"), f"{tokens:,} columns")
    counts = tokens_per_line(body)
    counts = counts[counts > 0]
    columns = int(counts[0])
    if delimiter is None and not (counts == columns).all():
        row = int(np.argmax(counts != columns))
        source.fail(
            f"{columns} numbers in the first line, {counts[row]} here: not an edge list, but "
            "perhaps adjacency lists (networkx.read_adjlist, or format='metis'); "
            "format='edgelist' takes the first two of each line",
            line_of_row(body, row),
        )
    of_bits = not body.translate(None, b"01 \t\r\n")
    if (counts == rows).all() and (columns >= 5 or (columns >= 3 and of_bits)):
        source.fail(
            f"a matrix of {rows} x {rows} numbers, not an edge list: load it with numpy.loadtxt, "
            "then Graph.from_scipy; format='edgelist' takes the first two of each line"
        )


def _read_names(source: Source, table: Table, options: Options) -> Graph:
    body, delimiter = table
    if b"\0" in body:
        source.fail("a binary file of no known format")
    separated = body.count(delimiter.encode()) + body.count(b"\n") if delimiter else 0
    tokens = separated or count_tokens(body)
    source.reserve(BYTES_PER_NAME * tokens, f"{tokens:,} names")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        number = body.count(b"\n", 0, error.start) + 1
        source.fail("neither text in UTF-8 nor a known binary format", number)
    rows = _by_blanks(source, text) if delimiter is None else _by_mark(source, text, delimiter)
    sources: list[str] = []
    targets: list[str] = []
    known: set[str] = set()
    for number, s, t in rows:
        for name in (s, t):
            if name not in known:
                _check_name(source, name, number)
                known.add(name)
        sources.append(s)
        targets.append(t)
    if not sources:
        source.fail("no edge in the file")
    names = sorted(known)
    longest = max(map(len, names))
    # Four bytes a character, in a label and in the copies that are sorted to find repeats.
    source.reserve(
        BYTES_PER_NAME * tokens + 16 * len(names) * longest,
        f"{len(names):,} labels as wide as the longest, {longest:,} characters,",
    )
    rank = dict(zip(names, range(len(names)), strict=True))
    s_ranks, t_ranks = (
        np.fromiter(map(rank.__getitem__, ends), np.int32, len(ends)) for ends in (sources, targets)
    )
    labels = np.array(names, dtype=np.str_)
    return Graph.from_edges(s_ranks, t_ranks, directed=bool(options.directed), labels=labels)


def _by_blanks(source: Source, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, source and target of each line of names between blanks."""
    first = True
    for number, line in enumerate(io.StringIO(text), 1):
        words = line.split(maxsplit=2)
        if not words:
            continue
        if len(words) == 1 or words[1].startswith(("#", "%")):
            _fail_alone(source, text, words[0], number)
        if first and _is_heading(words):
            first = False
            _check_heading(source, line.split(), number)
            continue
        first = False
        if len(words) == 3 and not _are_attributes(words[2]):
            source.fail(
                f"expected two vertices and at most numbers, got {quote(line.encode())}: "
                "names with blanks need tabs or commas between them",
                number,
            )
        yield number, words[0], words[1]


def _fail_alone(source: Source, text: str, word: str, number: int) -> NoReturn:
    """Refuse a line of one word; if a mark is in it, name the line that lacks that mark."""
    for mark in "\t;,":
        if mark in word:
            for at, line in enumerate(io.StringIO(text), 1):
                if line.strip() and mark not in line.strip():
                    if at < number:
                        break
                    shown = quote(line.encode())
                    source.fail(f"expected {mark!r} between two vertices, got {shown}", at)
    source.fail(f"expected two vertices, got {word!r} alone", number)


def _are_attributes(rest: str) -> bool:
    """Whether what follows two names is numbers, a comment or attributes in braces."""
    if rest.startswith(("#", "%", "{")):
        return True
    words = (word.encode() for word in rest.split())
    return all(NUMBER.fullmatch(word) or word[:1] in (b"#", b"%") for word in words)


def _by_mark(source: Source, text: str, delimiter: str) -> Iterator[tuple[int, str, str]]:
    """Yield number, source and target of each line of names between tabs, commas or semicolons."""
    lines = (line.strip() for line in io.StringIO(text))
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    first, before = True, 0
    try:
        for fields in reader:
            number = before + 1
            before = reader.line_num
            if not fields:
                continue
            if before > number:
                source.fail("a quote that does not end in its line", number)
            if len(fields) < 2:
                source.fail(f"expected two vertices, got {fields[0]!r} alone", number)
            if first and _is_heading(fields):
                first = False
                _check_heading(source, fields, number)
                continue
            first = False
            yield number, fields[0].strip(), fields[1].strip()
    except csv.Error as error:
        source.fail(str(error), before + 1)


def _is_heading(fields: list[str]) -> bool:
    names = [_plain_name(field) for field in fields[:16]]
    return any(pair in HEADINGS for pair in pairwise(names))


def _check_name(source: Source, name: str, number: int) -> None:
    """Refuse what is no name: nothing, mere punctuation, or a piece of some other language."""
    if not any(c.isalnum() or c > "\x7f" for c in name):
        what = "an empty name" if not name else f"{name!r} is no name"
        source.fail(f"{what}: not an edge list", number)
    if (
        "->" in name
        or name.count('"') % 2
        or any(name.count(a) != name.count(b) for a, b in ("()", "[]", "{}"))
        or name.endswith((":", ";"))
    ):
        source.fail(
            f"{name!r} is a piece of another format, not a name of an edge list; "
            "such names can be read with networkx, or given to Graph.from_edges as labels",
            number,
        )


def _relabelled(sources: npt.NDArray[Any], targets: npt.NDArray[Any]) -> tuple[Any, Any, Any]:
    """Return the sorted distinct names, and both ends as ranks among them."""
    names, ranks = np.unique(np.stack([sources, targets]), return_inverse=True)
    return names, *ranks.reshape(2, -1)
