"""All cores on long arrays: the distinct numbers among many, and the rows of a graph.

To sort, keys are split by their leading bits into buckets, which are then sorted one by one, small
enough to stay in cache: a radix sort whose first digit alone is distributed. Memory is the keys' 8
bytes and what is made of them. NumPy lets go of the interpreter's lock in everything that takes
long here, so threads do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = [
    "ITEMS_AT_ONCE",
    "ArcPart",
    "by_arcs",
    "by_rows",
    "by_slices",
    "distinct",
    "simple_rows",
    "slices",
    "threads",
]

Keys = npt.NDArray[np.uint64]
IntArray = npt.NDArray[np.integer[Any]]
Part = TypeVar("Part")
Made = TypeVar("Made")

ITEMS_AT_ONCE = 1 << 20
"""Items of one part of a long array: what a thread works on stays near its cache."""

# A bucket of so many keys sorts in cache; more buckets than this would make a part's share short.
KEYS_IN_BUCKET, MOST_BUCKET_BITS = 1 << 19, 12

ROW_BITS = 32
"""Where the row begins in a key: the target is below it."""


def threads() -> ThreadPoolExecutor:
    """Return as many threads as there are cores for this process, 32 at most."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return ThreadPoolExecutor(min(cores or 1, 32))


def slices(size: int, step: int | None = None) -> list[slice]:
    """Return consecutive slices of ``step`` items that cover ``size``; one if there are none.

    By default of `ITEMS_AT_ONCE`.
    """
    step = ITEMS_AT_ONCE if step is None else step
    return [slice(start, min(start + step, size)) for start in range(0, max(size, 1), step)]


def by_rows(row_offsets: IntArray, made_of: Callable[[slice], Made], step: int) -> list[Made]:
    """Return what ``made_of`` makes, from any thread, of consecutive slices of rows.

    Each has about ``step`` arcs; a longer row is not divided.
    """
    vertices, arcs = row_offsets.size - 1, int(row_offsets[-1])
    cuts = row_offsets.searchsorted(np.arange(step, arcs, step)).tolist()
    parts = [slice(*bounds) for bounds in pairwise(sorted({0, *cuts, vertices}))]
    if len(parts) == 1:
        return [made_of(parts[0])]
    with threads() as pool:
        return list(pool.map(made_of, parts))


class ArcPart(NamedTuple):
    """Arcs in a row of a graph's, and the rows that they are in, the first and last maybe in part.

    Attributes
    ----------
    rows, arcs : slice
    counts : (rows,) integer array
        How many of the arcs are in each row.
    """

    rows: slice
    arcs: slice
    counts: IntArray

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what ``values``, an (n,) array, says of the row of each arc."""
        return np.repeat(values[self.rows], self.counts)


def by_arcs(row_offsets: IntArray, made_of: Callable[[ArcPart], Made], step: int) -> list[Made]:
    """Return what ``made_of`` makes, from any thread, of consecutive ``step`` arcs each.

    Long rows are divided, so that no part is larger.
    """
    arcs = int(row_offsets[-1])
    cuts = np.append(np.arange(0, arcs, step, dtype=np.int64), arcs)
    first_rows = (row_offsets.searchsorted(cuts[:-1], side="right") - 1).tolist()
    end_rows = row_offsets.searchsorted(cuts[1:]).tolist()

    def made(number: int) -> Made:
        rows, arcs = slice(first_rows[number], end_rows[number]), slice(*bounds[number])
        bound = row_offsets[rows.start : rows.stop + 1].clip(arcs.start, arcs.stop)
        return made_of(ArcPart(rows, arcs, np.diff(bound)))

    bounds = list(pairwise(cuts.tolist()))
    if len(bounds) <= 1:
        return [made(number) for number in range(len(bounds))]
    with threads() as pool:
        return list(pool.map(made, range(len(bounds))))


def by_slices(size: int, work: Callable[[slice], Any], step: int = ITEMS_AT_ONCE) -> None:
    """Call ``work``, from any thread, with slices of ``step`` items that cover ``size``."""
    parts = slices(size, step)
    if len(parts) == 1:
        work(parts[0])
        return
    with threads() as pool:
        list(pool.map(work, parts))


def distinct(
    parts: Sequence[Callable[[], IntArray]],
    limit: int,
    made_of: Callable[[int, int, Keys], Made],
    *,
    whole_bits: int = 0,
) -> list[Made]:
    """Sort all numbers of all parts, keep each once, and hand them on bucket by bucket.

    Parameters
    ----------
    parts : sequence of callables
        Each makes a (k,) array of numbers from 0 to ``limit`` - 1; called once, from any thread.
    limit : int
        At most 2**64.
    made_of : callable
        ``made_of(first, last, keys)``, from any thread: the ascending (k,) uint64 numbers from
        ``first`` to ``last`` - 1.
    whole_bits : int
        Numbers that differ only in so many low bits come in one bucket.

    Returns
    -------
    list
        What ``made_of`` returned, by ascending numbers; buckets may be empty.
    """
    bits = max((limit - 1).bit_length(), 1)
    if len(parts) == 1:
        keys = np.sort(parts[0]().astype(np.uint64, copy=False))
        return [made_of(0, limit, _once(keys))]
    wanted = (len(parts) * 2 * ITEMS_AT_ONCE // KEYS_IN_BUCKET).bit_length()
    shift = max(bits - min(wanted, MOST_BUCKET_BITS), whole_bits)
    buckets = (limit - 1 >> shift) + 1

    def distributed(part: Callable[[], IntArray]) -> tuple[Keys, npt.NDArray[np.int64]]:
        keys = part().astype(np.uint64, copy=False)
        bucket = (keys >> np.uint64(shift)).astype(np.uint16)
        order = bucket.argsort(kind="stable")  # radix, for 16 bits
        begins = bucket.take(order).searchsorted(np.arange(buckets + 1, dtype=np.uint32))
        return keys.take(order), begins

    def finished(number: int) -> Made:
        shares = [keys[begins[number] : begins[number + 1]] for keys, begins in taken]
        keys = np.concatenate(shares)
        keys.sort()
        return made_of(number << shift, min(number + 1 << shift, limit), _once(keys))

    with threads() as pool:
        taken = list(pool.map(distributed, parts))
        return list(pool.map(finished, range(buckets)))


def _once(keys: Keys) -> Keys:
    """Return ascending keys without repeats."""
    again = keys[1:] == keys[:-1]
    return np.delete(keys, np.flatnonzero(again) + 1) if again.any() else keys


def simple_rows(
    vertices: int, parts: Sequence[Callable[[], tuple[IntArray, IntArray]]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the CSR arrays of a simple undirected graph.

    Parameters
    ----------
    vertices : int
        At most 2**31 - 1.
    parts : sequence of callables
        Each makes the two (k,) arrays of ends of some edges, ids from 0 to ``vertices`` - 1;
        called once, from any thread. About a million edges each are best.

    Returns
    -------
    row_offsets : (n + 1,) int64 array
    col_indices : (m,) int32 array
        Two arcs for every distinct pair, rows ascending; self-loops are left out.
    """
    offsets = np.zeros(vertices + 1, np.int64)
    row_bits = np.uint64(ROW_BITS)

    def arcs(part: Callable[[], tuple[IntArray, IntArray]]) -> Keys:
        s, t = part()
        proper = s != t
        if not proper.all():
            s, t = s[proper], t[proper]
        a, b = s.astype(np.uint64), t.astype(np.uint64)
        keys = np.empty(2 * a.size, np.uint64)
        np.bitwise_or(a << row_bits, b, out=keys[: a.size])
        np.bitwise_or(b << row_bits, a, out=keys[a.size :])
        return keys

    def rows(first: int, last: int, keys: Keys) -> tuple[int, int, npt.NDArray[np.int32]]:
        begin, end = first >> ROW_BITS, last >> ROW_BITS
        ends = np.arange(begin + 1, end + 1, dtype=np.uint64) << row_bits
        offsets[begin + 1 : end + 1] = keys.searchsorted(ends)
        return begin, end, keys.astype(np.int32)  # the low bits: the targets

    made = distinct(
        [functools.partial(arcs, part) for part in parts],
        vertices << ROW_BITS,
        rows,
        whole_bits=ROW_BITS,
    )
    if len(made) == 1:
        return offsets, made[0][2]
    starts = np.cumsum([0, *(targets.size for _, _, targets in made)], dtype=np.int64)
    indices = np.empty(starts[-1], np.int32)

    def place(number: int) -> None:
        begin, end, targets = made[number]
        indices[starts[number] : starts[number + 1]] = targets
        offsets[begin + 1 : end + 1] += starts[number]
        made[number] = (begin, end, targets[:0].copy())  # the memory is not needed twice

    with threads() as pool:
        list(pool.map(place, range(len(made))))
    return offsets, indices
