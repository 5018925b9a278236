"""Sorting on all cores gives what sorting on one does."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse

from persistent_bfs import rows
from persistent_bfs.generate import generate
from persistent_bfs.graph import Graph


@pytest.mark.parametrize("limit", [1, 2, 1000, 2**20 + 1, 2**43])
@pytest.mark.parametrize("whole_bits", [0, 5])
@pytest.mark.parametrize("count", [1, 2, 40])
def test_numbers_come_ascending_and_once(limit: int, whole_bits: int, count: int) -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.integers(limit, size=rng.integers(0, 700)) for _ in range(count)]
    arrays[-1] = np.array([limit - 1, 0, limit - 1])
    found = rows.distinct(
        [array.copy for array in arrays],
        limit,
        lambda first, last, keys: (first, last, keys),
        whole_bits=whole_bits,
    )
    assert (
        np.concatenate([keys for _, _, keys in found]).tolist()
        == np.unique(np.concatenate(arrays)).tolist()
    )
    assert [first for first, _, _ in found] == [0, *(last for _, last, _ in found[:-1])]
    assert found[-1][1] == limit
    for first, last, keys in found:
        assert ((first <= keys) & (keys < last)).all()
        assert first % 2**whole_bits == 0


@pytest.mark.parametrize("at_once", [1, 100, 1 << 20])
def test_rows_are_those_of_scipy(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vertices = 300
    s, t = np.random.default_rng(4).integers(vertices, size=(2, 400))
    s[:50] = 7  # a hub, repeats and self-loops
    t[:20] = 7
    parts = [functools.partial(lambda p: (s[p], t[p]), p) for p in rows.slices(s.size, at_once)]
    offsets, indices = rows.simple_rows(vertices, parts)
    proper = s != t
    ones = np.ones(proper.sum())
    matrix = scipy.sparse.coo_array((ones, (s[proper], t[proper])), shape=(vertices, vertices))
    expected = (matrix + matrix.T).tocsr()
    expected.sort_indices()
    assert offsets.tolist() == expected.indptr.tolist()
    assert indices.tolist() == expected.indices.tolist()
    assert (offsets.dtype, indices.dtype) == (np.int64, np.int32)
    monkeypatch.setattr(rows, "ITEMS_AT_ONCE", at_once)
    assert sum(part.stop - part.start for part in rows.slices(250)) == 250


def test_slices_cover_each_item_once() -> None:
    assert rows.slices(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert rows.slices(0, 3) == [slice(0, 0)]
    assert rows.slices(3, 3) == [slice(0, 3)]


def plainly_drawn(scale: int, edge_factor: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends of the edges, drawn one slice after the other from one stream."""
    vertices = 1 << scale
    rng = np.random.default_rng(seed)
    names = rng.permutation(vertices)
    ends = np.zeros((2, edge_factor * vertices), np.int64)
    for start in range(0, ends.shape[1], 1 << 18):
        s, t = ends[:, start : start + (1 << 18)]
        for bit in range(scale):
            u = rng.random(s.size, np.float32)
            s |= (u >= 0.76).astype(np.int64) << bit
            t |= (((u >= 0.57) & (u < 0.76)) | (u >= 0.95)).astype(np.int64) << bit
    return names[ends[0]], names[ends[1]]


@pytest.mark.parametrize(
    ("scale", "edge_factor", "seed"), [(8, 16, 1), (10, 900, 1), (10, 900, 2), (11, 700, 5)]
)
def test_parts_of_a_stream_are_the_stream(scale: int, edge_factor: int, seed: int) -> None:
    s, t = plainly_drawn(scale, edge_factor, seed)
    expected = Graph.from_edges(s, t, vertices=1 << scale)
    graph = generate(f"kron:{scale}:{edge_factor}", seed=seed)
    assert np.array_equal(graph.row_offsets, expected.row_offsets)
    assert np.array_equal(graph.col_indices, expected.col_indices)


def test_the_stream_is_taken_up_with_and_without_a_word_kept() -> None:
    """Of NumPy's 64-bit steps the second word may be waiting; seeds 1 to 9 give both cases."""
    waiting = set()
    for seed in range(1, 10):
        rng = np.random.default_rng(seed)
        rng.permutation(1 << 10)
        waiting.add(rng.bit_generator.state["has_uint32"])
    assert waiting == {0, 1}
    for seed in range(1, 10):
        s, t = plainly_drawn(10, 260, seed)  # two slices
        expected = Graph.from_edges(s, t, vertices=1 << 10)
        assert np.array_equal(generate("kron:10:260", seed=seed).col_indices, expected.col_indices)


@pytest.mark.parametrize(("vertices", "edges"), [(60, 300), (60, 1700), (2000, 9000)])
def test_pairs_are_drawn_as_one_by_one(vertices: int, edges: int) -> None:
    pairs = vertices * (vertices - 1) // 2
    rng = np.random.default_rng(1)
    wanted = min(edges, pairs - edges)
    drawn = np.unique(rng.integers(pairs, size=wanted + wanted // 8 + 8))
    while drawn.size < wanted:
        more = rng.integers(pairs, size=wanted + wanted // 8 + 8)
        drawn = np.unique(np.concatenate([drawn, more]))
    chosen = set(rng.permutation(drawn)[:wanted].tolist())
    if wanted < edges:
        chosen = set(range(pairs)) - chosen
    ends = np.array([(r % vertices, (r + r // vertices + 1) % vertices) for r in chosen])
    expected = Graph.from_edges(*ends.T, vertices=vertices)
    assert generate(f"random:{vertices}:{edges}").col_indices.tolist() == (
        expected.col_indices.tolist()
    )


def test_parts_of_arcs_are_of_equal_size_and_know_their_rows() -> None:
    degrees = np.array([0, 0, 3, 0, 25, 1, 0, 7, 0])
    offsets = np.concatenate([[0], degrees.cumsum()])
    ids = np.arange(degrees.size)
    sources = np.repeat(ids, degrees)
    for step in (1, 2, 4, 9, 35, 36, 37, 1000):
        found = rows.by_arcs(offsets, lambda part: (part.arcs, part.spread(ids)), step)
        assert [part.stop - part.start for part, _ in found[:-1]] == [step] * (len(found) - 1)
        assert np.concatenate([sources[part] for part, _ in found]).tolist() == sources.tolist()
        for part, spread in found:
            assert spread.tolist() == sources[part].tolist()
    assert rows.by_arcs(np.zeros(4, np.int64), lambda _: pytest.fail("no arcs"), 5) == []


@pytest.mark.parametrize("step", [1, 7, 100])
def test_slices_are_worked_on_once_each(step: int) -> None:
    seen = np.zeros(50, np.int64)

    def work(part: slice) -> None:
        seen[part] += 1

    rows.by_slices(50, work, step)
    assert seen.tolist() == [1] * 50
