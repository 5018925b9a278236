from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.csgraph

from persistent_bfs import generate as generators
from persistent_bfs.generate import GENERATORS, generate, is_spec
from persistent_bfs.graph import Graph
from persistent_bfs.reference import bfs_reference, bfs_serial


def components(graph: Graph) -> int:
    return scipy.sparse.csgraph.connected_components(graph.to_scipy(), directed=False)[0]


@pytest.mark.parametrize(
    ("spec", "vertices", "edges", "depth"),
    [
        ("path:1", 1, 0, 0),
        ("path:33", 33, 32, 32),
        ("cycle:3", 3, 3, 1),
        ("cycle:64", 64, 64, 32),
        ("grid:1x1", 1, 0, 0),
        ("grid:5x3", 15, 22, 6),
        ("grid:512x512", 262144, 523264, 1022),
        ("star:1", 1, 0, 0),
        ("star:70", 70, 69, 1),
        ("complete:1", 1, 0, 0),
        ("complete:2", 2, 1, 1),
        ("complete:33", 33, 528, 1),
        ("complete:34", 34, 561, 1),
        ("circulant:1:1", 1, 0, 0),
        ("circulant:2:1", 2, 1, 1),
        ("circulant:3:1", 3, 3, 1),
        ("circulant:64:1", 64, 64, 32),
        ("circulant:64:3", 64, 192, 11),
        ("circulant:12:6", 12, 66, 1),
        ("circulant:13:6", 13, 78, 1),
        ("circulant:14:6", 14, 84, 2),
        ("circulant:5:99", 5, 10, 1),
        ("tree:2:5", 63, 62, 5),
        ("tree:3:2", 13, 12, 2),
        ("tree:1:4", 5, 4, 4),
        ("tree:7:0", 1, 0, 0),
    ],
)
def test_sizes_and_depth_from_vertex_0(spec, vertices, edges, depth) -> None:
    graph = generate(spec)
    search = bfs_reference(graph, 0)
    assert (graph.vertices, graph.edges, graph.arcs) == (vertices, edges, 2 * edges)
    assert (graph.name, graph.directed) == (spec, False)
    assert (search.distances.max(), search.distances.min()) == (depth, 0)


def test_grid_ids_run_row_by_row() -> None:
    graph = generate("grid:5x3")
    distances = bfs_reference(graph, 0).distances.reshape(3, 5)
    assert distances.tolist() == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [2, 3, 4, 5, 6]]


def test_tree_parents() -> None:
    search = bfs_reference(generate("tree:3:3"), 0)
    assert search.predecessors[1:].tolist() == [(v - 1) // 3 for v in range(1, 40)]


def test_star_and_complete_degrees() -> None:
    assert generate("star:5").degrees.tolist() == [4, 1, 1, 1, 1]
    assert generate("complete:35").degrees.tolist() == [34] * 35


@pytest.mark.parametrize("arcs_at_once", [1, 50, 1 << 20])
def test_a_circulant_is_what_its_definition_says(
    arcs_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generators, "ITEMS_AT_ONCE", arcs_at_once)
    for vertices in range(1, 30):
        for reach in (1, 2, 3, 7, 14, 15, 40):
            graph = generate(f"circulant:{vertices}:{reach}")
            rows = [
                sorted({(v + step) % vertices for step in range(-reach, reach + 1)} - {v})
                for v in range(vertices)
            ]
            assert graph.col_indices.tolist() == [u for row in rows for u in row]
            assert graph.degrees.tolist() == [len(row) for row in rows]
            assert (graph.row_offsets.dtype, graph.directed) == (np.int32, False)
            distances = [-(-min(v, vertices - v) // reach) for v in range(vertices)]
            assert bfs_serial(graph, 0).distances.tolist() == distances


def test_a_circulant_of_more_arcs_than_int32_counts_has_wide_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("persistent_bfs.graph.INT32_MAX", 119)
    assert generate("circulant:20:3").row_offsets.dtype == np.int64
    assert generate("circulant:19:3").row_offsets.dtype == np.int32
    assert generate("circulant:20:3").row_offsets.tolist() == list(range(0, 121, 6))


def test_a_circulant_is_refused_by_what_it_needs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    # 4 bytes per arc and 8 per vertex, where 150,000,000 vertices of 32 arcs take 20.4 GB.
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 20_000_000_000 // 4096}
    monkeypatch.setattr(generators.os, "sysconf", pages.__getitem__)
    with pytest.raises(ValueError, match="4,800,000,000 arcs need about 19 GiB to build, and this"):
        generate("circulant:150000000:16")
    made: list[int] = []
    monkeypatch.setattr(generators.np, "arange", lambda *_, **__: made.append(1) or 1 / 0)
    pages["SC_PHYS_PAGES"] = 20_500_000_000 // 4096
    with pytest.raises(ZeroDivisionError):
        generate("circulant:150000000:16")
    assert made == [1]


def test_road_leaves_out_three_edges_in_ten() -> None:
    grid, road = generate("grid:300x200"), generate("road:300x200")
    kept = {tuple(arc) for arc in np.stack([road.arc_sources(), road.col_indices]).T.tolist()}
    possible = {tuple(arc) for arc in np.stack([grid.arc_sources(), grid.col_indices]).T.tolist()}
    assert kept < possible
    assert road.edges / grid.edges == pytest.approx(0.7, abs=0.01)
    # Well above the percolation threshold of 1/2: nearly all in one component, but not all.
    _, part = scipy.sparse.csgraph.connected_components(road.to_scipy(), directed=False)
    assert 0.98 < np.bincount(part).max() / road.vertices < 1


@pytest.mark.parametrize("spec", ["maze:1x1", "maze:40x30", "maze:1x9"])
def test_a_maze_is_a_spanning_tree_of_its_grid(spec: str) -> None:
    maze, grid = generate(spec), generate(spec.replace("maze", "grid"))
    assert maze.edges == maze.vertices - 1
    assert components(maze) == 1
    assert (maze.to_scipy() > grid.to_scipy()).nnz == 0


@pytest.mark.parametrize(
    ("vertices", "edges"), [(1, 0), (5, 10), (5, 9), (100, 300), (101, 4000), (1000, 10)]
)
def test_random_graphs_have_exactly_their_edges(vertices: int, edges: int) -> None:
    graph = generate(f"random:{vertices}:{edges}")
    assert (graph.vertices, graph.edges) == (vertices, edges)
    assert not (graph.arc_sources() == graph.col_indices).any()


def test_kron_has_the_sizes_and_skew_of_graph500() -> None:
    graph = generate("kron:12")
    assert graph.vertices == 4096
    assert 0.6 * 16 * 4096 < graph.edges < 16 * 4096
    # A bit of an end is 0 with probability A + B = 0.76: the busiest id, all zeros, draws each
    # edge's ends with probability 0.76**12, 0.037, where the mean id draws 1 in 4096.
    assert graph.max_degree > 20 * graph.arcs / graph.vertices
    assert int(np.argmax(graph.degrees)) != 0  # the ids were permuted
    assert (graph.degrees == 0).sum() > 400
    assert generate("kron:0").vertices == 1
    assert generate("kron:5:2").edges <= 64


@pytest.mark.parametrize(
    "spec", ["road:30x30", "maze:30x30", "random:50:200", "kron:8", "kron:8:4"]
)
def test_a_seed_fixes_a_random_graph(spec: str) -> None:
    one, same, other = generate(spec), generate(spec), generate(spec, seed=2)
    assert np.array_equal(one.col_indices, same.col_indices)
    assert not np.array_equal(one.col_indices, other.col_indices)


def test_every_generator_is_in_the_table_and_makes_its_usage() -> None:
    assert (
        " ".join(GENERATORS) == "path cycle grid road maze star complete circulant tree random kron"
    )
    for name, row in GENERATORS.items():
        assert row.usage.startswith(f"{name}:")
        assert is_spec(row.usage)
        assert row.description


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("grid:5", r"'grid:5' is not of the form grid:WxH"),
        ("grid:5x", "of the form grid:WxH"),
        ("grid:axb", "of the form grid:WxH"),
        ("path:", "of the form path:N"),
        ("path:-3", "of the form path:N"),
        ("path:3:4", "of the form path:N"),
        ("path:1e6", "of the form path:N"),
        ("kron:4:5:6", r"of the form kron:SCALE\[:EDGEFACTOR\]"),
        ("path:0", "'path:0': N must be at least 1"),
        ("grid:5x0", "H must be at least 1"),
        ("kron:4:0", "EDGEFACTOR must be at least 1"),
        ("cycle:2", "'cycle:2': a cycle has at least 3 vertices, not 2"),
        ("circulant:0:3", "N must be at least 1"),
        ("circulant:9:0", "K must be at least 1"),
        ("circulant:9", "of the form circulant:N:K"),
        ("circulant:2147483648:1", "2,147,483,648 vertices do not fit int32 ids"),
        ("circulant:2147483647:999999999", "arcs need about [0-9,]+ GiB to build"),
        ("circulant:999999999:999999999", "arcs need about [0-9,]+ GiB to build"),
        ("random:4:7", "4 vertices have 6 pairs, fewer than 7 edges"),
        ("wheel:5", "no generator 'wheel'; there are path, cycle"),
        ("path:2147483648", "2,147,483,648 vertices do not fit int32 ids"),
        ("grid:99999x99999", "9,999,800,001 vertices do not fit"),
        ("kron:31", "do not fit int32 ids"),
        ("kron:99", "do not fit int32 ids"),
        ("tree:2:999999999", "do not fit int32 ids"),
        ("tree:1:999999999999", "do not fit int32 ids"),
        ("complete:2147483647", "arcs need about [0-9,]+ GiB to build, and this machine has"),
    ],
)
def test_bad_specs_are_refused(spec: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate(spec)


@pytest.mark.parametrize(
    ("name", "yes"), [("path:3", True), ("grid:5", True), ("path", False), ("C:file", False)]
)
def test_what_counts_as_a_spec(name: str, yes: bool) -> None:
    assert is_spec(name) is yes
