"""Synthetic graphs by name: ``path:10000``, ``grid:512x512``, ``kron:20``.

A spec is a generator's name and its sizes, written as in the ``usage`` column of
:data:`GENERATORS`. The same spec and seed give the same graph everywhere. All are undirected and
simple.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse.csgraph

from persistent_bfs.graph import MAX_VERTICES, Graph, Int32Array, IntArray, plan_offsets
from persistent_bfs.rows import ITEMS_AT_ONCE, by_slices, distinct, simple_rows, slices

__all__ = ["DEFAULT_SEED", "GENERATORS", "Generator", "generate", "is_spec"]

DEFAULT_SEED = 1
Ids = npt.NDArray[np.int64]


def path(vertices: int) -> Graph:
    """0 - 1 - 2 - ... - (N - 1): as deep as a graph can be."""
    _refuse_oversize(vertices, 2 * vertices)
    ids = np.arange(vertices)
    return Graph.from_edges(ids[:-1], ids[1:], vertices=vertices)


def cycle(vertices: int) -> Graph:
    """Close a path into a ring."""
    if vertices < 3:
        raise ValueError(f"a cycle has at least 3 vertices, not {vertices}")
    _refuse_oversize(vertices, 2 * vertices)
    ids = np.arange(vertices)
    return Graph.from_edges(ids, np.roll(ids, -1), vertices=vertices)


def star(vertices: int) -> Graph:
    """Join vertex 0 to every other."""
    _refuse_oversize(vertices, 2 * vertices)
    leaves = np.arange(1, vertices)
    return Graph.from_edges(np.zeros_like(leaves), leaves, vertices=vertices)


def complete(vertices: int) -> Graph:
    """Join every vertex to every other."""
    _refuse_oversize(vertices, vertices * (vertices - 1))
    pairs = np.arange(vertices * (vertices - 1) // 2)
    return Graph.from_edges(*_pair(vertices, pairs), vertices=vertices)


def circulant(vertices: int, reach: int) -> Graph:
    """Join each vertex to the next K, modulo N: vertex v is min(v, N - v) / K, rounded up, from 0.

    Where that is every other vertex, the graph is the complete one. Its rows are written in place
    by all cores, ascending, so that no more memory is needed than the graph's own.
    """
    if 2 * reach >= vertices:
        return complete(vertices)
    degree = 2 * reach
    arcs = degree * vertices
    _refuse_oversize(vertices, arcs, arc_bytes=4)
    width = plan_offsets(vertices, arcs)
    offsets = np.arange(0, arcs + 1, degree, dtype=f"int{width}")
    indices = np.empty((vertices, degree), np.int32)
    steps = np.delete(np.arange(-reach, reach + 1, dtype=np.int32), reach)  # nobody to itself

    def write(rows: slice) -> None:
        ids = np.arange(rows.start, rows.stop, dtype=np.int32)[:, np.newaxis]
        if reach <= rows.start and rows.stop <= vertices - reach:
            np.add(ids, steps, out=indices[rows])
        else:
            around = (ids.astype(np.int64) + steps) % vertices
            around.sort(axis=1)
            indices[rows] = around

    by_slices(vertices, write, max(ITEMS_AT_ONCE // degree, 1))
    return Graph(offsets, indices.reshape(-1), directed=False)


def tree(branching: int, depth: int) -> Graph:
    """Complete B-ary tree, root 0, numbered level by level: the parent of v is (v - 1) // B."""
    vertices = depth + 1 if branching == 1 else 1
    while branching > 1 and depth > 0 and vertices <= MAX_VERTICES:
        vertices, depth = vertices * branching + 1, depth - 1
    _refuse_oversize(vertices, 2 * vertices)
    child = np.arange(1, vertices)
    return Graph.from_edges((child - 1) // branching, child, vertices=vertices)


def grid(width: int, height: int) -> Graph:
    """Join each cell to its right and lower neighbour; ids row by row: y * W + x."""
    return Graph.from_edges(*_grid_edges(width, height), vertices=width * height)


def road(width: int, height: int, *, seed: int = DEFAULT_SEED) -> Graph:
    """Leave 30 % of a grid's edges out, by a hash of edge and seed: a stand-in for a road network.

    The giant component holds almost every vertex, but a few are cut off.
    """
    s, t = _grid_edges(width, height)
    cells = width * height
    keep = _hash((s * cells + t).astype(np.uint64), seed) >= np.uint64(0.3 * 2**64)
    return Graph.from_edges(s[keep], t[keep], vertices=cells)


def maze(width: int, height: int, *, seed: int = DEFAULT_SEED) -> Graph:
    """Keep the minimum spanning tree of a grid with random weights: one way to any cell."""
    cells = width * height
    s, t = _grid_edges(width, height)
    weights = 1.0 + np.random.default_rng(seed).permutation(s.size)
    ends = s.astype(np.int32), t.astype(np.int32)  # SciPy before 1.16 takes no others
    weighted = scipy.sparse.csr_array((weights, ends), shape=(cells, cells))
    spanning = scipy.sparse.csgraph.minimum_spanning_tree(weighted).tocoo()
    return Graph.from_edges(spanning.row, spanning.col, vertices=cells)


def random(vertices: int, edges: int, *, seed: int = DEFAULT_SEED) -> Graph:
    """Draw M distinct edges uniformly: the Erdos-Renyi graph G(N, M)."""
    pairs = vertices * (vertices - 1) // 2
    if edges > pairs:
        raise ValueError(f"{vertices} vertices have {pairs} pairs, fewer than {edges} edges")
    _refuse_oversize(vertices, 2 * edges)
    chosen = _distinct(np.random.default_rng(seed), pairs, edges)
    ranks = [chosen[part] for part in slices(chosen.size)]
    return _simple(vertices, [functools.partial(_pair, vertices, part) for part in ranks])


def kron(scale: int, edge_factor: int = 16, *, seed: int = DEFAULT_SEED) -> Graph:
    """Draw edge factor x 2**SCALE edges of the Graph500 benchmark's R-MAT generator.

    Each bit of an edge's two ends picks a quadrant of the adjacency matrix with probabilities
    A, B, C, D = 0.57, 0.19, 0.19, 0.05; then the ids are permuted. Repeats are merged and
    self-loops dropped, so the graph has fewer edges than were drawn.
    """
    if scale >= 63:
        raise ValueError(f"2**{scale} vertices do not fit int32 ids (at most {MAX_VERTICES:,})")
    vertices = 1 << scale
    _refuse_oversize(vertices, 2 * edge_factor * vertices)
    rng = np.random.default_rng(seed)
    names = rng.permutation(vertices).astype(np.int32)
    drawn = functools.partial(_rmat, rng.bit_generator.state, names, scale)
    parts = slices(edge_factor * vertices, 4 * DRAWN_AT_ONCE)
    return _simple(vertices, [functools.partial(drawn, part) for part in parts])


def _simple(vertices: int, parts: Sequence[Callable[[], tuple[IntArray, IntArray]]]) -> Graph:
    """Return the graph of the edges that ``parts`` make, as `simple_rows` takes them."""
    offsets, indices = simple_rows(vertices, parts)
    width = plan_offsets(vertices, indices.size)
    return Graph(offsets.astype(f"int{width}", copy=False), indices, directed=False)


# Edges drawn together, all of a bit before those of the next: in slices that stay in cache.
DRAWN_AT_ONCE = 1 << 18


def _rmat(
    start: Mapping[str, Any], names: Int32Array, scale: int, part: slice
) -> tuple[Int32Array, Int32Array]:
    """Draw the edges of ``part`` of the one stream of numbers that begins at ``start``.

    So any thread can draw any part, and the graph is the same; parts begin at multiples of
    ``DRAWN_AT_ONCE``.
    """
    ends = np.zeros((2, part.stop - part.start), np.int32)
    for edges in slices(ends.shape[1], DRAWN_AT_ONCE):
        s, t = ends[:, edges]
        rng = _stream(start, scale * (part.start + edges.start))
        u = np.empty(s.size, np.float32)
        for low in range(0, scale, 8):
            # Eight bits are gathered in bytes, which moves a quarter of the memory.
            s_bits, t_bits = np.zeros((2, s.size), np.uint8)
            for bit in range(min(8, scale - low)):
                rng.random(out=u, dtype=np.float32)
                lower = u >= 0.76
                s_bits |= lower.view(np.uint8) << bit
                t_bits |= (((u >= 0.57) ^ lower) | (u >= 0.95)).view(np.uint8) << bit
            s |= s_bits.astype(np.int32) << low
            t |= t_bits.astype(np.int32) << low
    return names.take(ends[0]), names.take(ends[1])


def _stream(start: Mapping[str, Any], words: int) -> np.random.Generator:
    """Return the generator that a PCG64 at ``start`` is once it has given ``words`` 32-bit words.

    It makes two of each step and keeps the second. ``words`` is even, so that a step's second is
    kept there if one is at ``start``.
    """
    bits: Any = np.random.PCG64(0)
    bits.state = start
    if words and start["has_uint32"]:
        bits.advance(words // 2 - 1)
        kept = bits.random_raw() >> 32
        bits.state = bits.state | {"has_uint32": 1, "uinteger": kept}
    elif words:
        bits.advance(words // 2)
    return np.random.Generator(bits)


def _grid_edges(width: int, height: int) -> tuple[Ids, Ids]:
    """Return the edges of a grid, each from its smaller to its larger end."""
    _refuse_oversize(width * height, 4 * width * height)
    ids = np.arange(width * height).reshape(height, width)
    s = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
    t = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
    return s, t


def _pair(vertices: int, rank: Ids) -> tuple[Ids, Ids]:
    """Return the unordered pairs with these ranks, 0 to n (n - 1) / 2 - 1, each exactly once.

    Rank r joins r mod n to the vertex r // n + 1 places further round the circle.
    """
    return rank % vertices, (rank + rank // vertices + 1) % vertices


def _distinct(rng: np.random.Generator, population: int, count: int) -> Ids:
    """Return ``count`` distinct numbers below ``population``, uniformly, in O(count) memory."""
    if 2 * count > population:
        left_out = _distinct(rng, population, population - count)
        return np.setdiff1d(np.arange(population), left_out, assume_unique=True)
    chosen = np.zeros(0, np.int64)
    while chosen.size < count:
        drawn = [chosen, rng.integers(population, size=count + count // 8 + 8)]
        parts = [array[part].copy for array in drawn for part in slices(array.size)]
        chosen = np.concatenate(distinct(parts, population, lambda _, __, keys: keys))
        chosen = chosen.view(np.int64)
    rng.shuffle(chosen)
    return chosen[:count]


def _hash(values: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """Scatter integers over 64 bits: the finaliser of SplitMix64 (Steele et al., 2014)."""
    x = values + np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ x >> np.uint64(31))


def _refuse_oversize(vertices: int, arcs: int, *, arc_bytes: int = 28) -> None:
    """Raise ValueError, with numbers, for a graph that ids or this machine's memory cannot hold.

    By default an arc needs the ends of its edge as int64, itself as int32, and an entry of the
    matrix that it is sorted in.
    """
    if vertices > MAX_VERTICES:
        raise ValueError(f"{vertices:,} vertices do not fit int32 ids (at most {MAX_VERTICES:,})")
    needed = 8 * vertices + arc_bytes * arcs
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if needed > memory:
            raise ValueError(
                f"{vertices:,} vertices and {arcs:,} arcs need about {needed / 2**30:,.0f} GiB "
                f"to build, and this machine has {memory / 2**30:,.0f} GiB"
            )


class Generator(NamedTuple):
    """One row of :data:`GENERATORS`."""

    name: str
    usage: str
    """How a spec is written: capitals are whole numbers, what is in brackets may be left out."""
    function: Callable[..., Graph]
    description: str
    seeded: bool = False
    """Whether the function takes ``seed``."""

    def sizes(self, spec: str) -> list[int]:
        """Return the numbers of a spec, raising ValueError if it is not written as ``usage``."""
        pattern = self.usage.replace("[", "(?:").replace("]", ")?")
        match = re.fullmatch(re.sub(r"[A-Z]+", r"([0-9]{1,18})", pattern), spec)
        if match is None:
            raise ValueError(f"{spec!r} is not of the form {self.usage}, with whole numbers")
        return [int(number) for number in match.groups() if number is not None]


GENERATORS: dict[str, Generator] = {
    row.name: row
    for row in (
        Generator("path", "path:N", path, "N vertices in a row"),
        Generator("cycle", "cycle:N", cycle, "N vertices in a ring"),
        Generator("grid", "grid:WxH", grid, "W x H cells, ids row by row"),
        Generator("road", "road:WxH", road, "a grid with 30 % of its edges left out", True),
        Generator("maze", "maze:WxH", maze, "a random spanning tree of a grid", True),
        Generator("star", "star:N", star, "vertex 0 joined to N - 1 others"),
        Generator("complete", "complete:N", complete, "every two of N vertices joined"),
        Generator(
            "circulant", "circulant:N:K", circulant, "N vertices in a ring, joined to the next K"
        ),
        Generator("tree", "tree:B:DEPTH", tree, "a complete B-ary tree, root 0"),
        Generator("random", "random:N:M", random, "M random edges on N vertices", True),
        Generator("kron", "kron:SCALE[:EDGEFACTOR]", kron, "Graph500's R-MAT, 2**SCALE ids", True),
    )
}
"""Every generator by its name."""

MAY_BE_ZERO = ("DEPTH", "M", "SCALE")


def is_spec(name: str) -> bool:
    """Return whether a name is meant as a generator's spec: ``word:...`` of a known word."""
    return name.partition(":")[0] in GENERATORS and ":" in name


def generate(spec: str, *, seed: int = DEFAULT_SEED) -> Graph:
    """Make the graph that a spec describes.

    Parameters
    ----------
    spec : str
        Such as ``"grid:512x512"``; see :data:`GENERATORS`.
    seed : int
        Which of the random graphs; those without chance ignore it.

    Returns
    -------
    Graph
        Undirected and simple, named by the spec.

    Raises
    ------
    ValueError
        If there is no such generator, the spec is written wrongly, a size is below 1, or the graph
        is too large.
    """
    name = spec.partition(":")[0]
    if name not in GENERATORS:
        raise ValueError(f"no generator {name!r}; there are {', '.join(GENERATORS)}")
    row = GENERATORS[name]
    sizes = row.sizes(spec)
    for what, size in zip(re.findall("[A-Z]+", row.usage), sizes, strict=False):
        if size < 1 and what not in MAY_BE_ZERO:
            raise ValueError(f"{spec!r}: {what} must be at least 1")
    try:
        graph = row.function(*sizes, **({"seed": seed} if row.seeded else {}))
    except ValueError as error:
        raise ValueError(f"{spec!r}: {error}") from None
    # Nobody else has seen it yet, and its copy under another name would be checked all over again.
    object.__setattr__(graph, "name", spec)
    return graph
