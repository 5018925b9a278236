"""Reading from paths and names: detection, compression, direction, and the real graph files."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from graphs import graph_file

from persistent_bfs.graph import Graph
from persistent_bfs.io import BUNDLED, FORMATS, GraphFormatError, read_graph
from persistent_bfs.reference import bfs_reference

TRIANGLE_TAIL = {
    "matrixmarket": b"%%MatrixMarket matrix coordinate pattern symmetric\n"
    b"4 4 4\n2 1\n3 1\n3 2\n4 3\n",
    "dimacs": b"c streets\np sp 4 8\n"
    + b"".join(
        b"a %d %d 7\na %d %d 7\n" % (u, v, v, u) for u, v in ((2, 1), (3, 1), (3, 2), (4, 3))
    ),
    "colouring": b"c myciel\np edge 4 4\ne 2 1\ne 3 1\ne 3 2\ne 4 3\n",
    "pace": b"c roads\np tw 4 4\n1 2\n1 3\n2 3\n3 4\n",
    "metis": b"% four\n4 4\n2 3\n1 3\n1 2 4\n3\n",
    "edgelist": b"# four\n0 1\n0\t2\n1 2\n2   3\n",
}
"""One graph, a triangle 0-1-2 with a tail 2-3, in every text format."""

ARCS = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 3), (3, 2)]
EXTENSIONS = {
    "matrixmarket": ".mtx",
    "dimacs": ".gr",
    "colouring": ".col",
    "pace": ".gr",
    "metis": ".graph",
    "edgelist": ".txt",
}


def arcs(graph: Graph) -> list[tuple[int, int]]:
    return list(zip(graph.arc_sources().tolist(), graph.col_indices.tolist(), strict=True))


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


def test_every_format_is_tested() -> None:
    assert set(FORMATS) == {*TRIANGLE_TAIL, "npz"}


@pytest.mark.parametrize("name", TRIANGLE_TAIL)
@pytest.mark.parametrize(
    "compress",
    [bytes, gzip.compress, lzma.compress, bz2.compress],
    ids=["plain", "gz", "xz", "bz2"],
)
def test_formats_and_compressions_are_found_by_content(name, compress, tmp_path) -> None:
    # The extension is only needed where nothing in the file proves the format.
    suffix = ".graph" if name == "metis" else ".dat"
    graph = read_graph(written(tmp_path, f"Straße-道{suffix}", compress(TRIANGLE_TAIL[name])))
    assert arcs(graph) == ARCS
    assert graph.directed is (name == "dimacs")
    assert graph.name == ("Straße-道" if name == "metis" else "Straße-道.dat")


@pytest.mark.parametrize("name", TRIANGLE_TAIL)
def test_crlf_and_leading_blanks_change_nothing(name: str, tmp_path: Path) -> None:
    lines = TRIANGLE_TAIL[name].split(b"\n")
    content = lines[0] + b"\r\n" + b"\r\n".join(b" \t" + x if x else x for x in lines[1:])
    assert b"\r\n" in content
    assert arcs(read_graph(written(tmp_path, f"g{EXTENSIONS[name]}", content))) == ARCS


@pytest.mark.parametrize("name", TRIANGLE_TAIL)
def test_a_last_line_without_end_is_read(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"g{EXTENSIONS[name]}", TRIANGLE_TAIL[name].rstrip())
    assert arcs(read_graph(file)) == ARCS


@pytest.mark.parametrize("name", TRIANGLE_TAIL)
def test_the_format_can_be_said(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, "unnamed", TRIANGLE_TAIL[name])
    assert arcs(read_graph(str(file), format=name)) == ARCS


@pytest.mark.parametrize("name", TRIANGLE_TAIL)
def test_direction_can_be_forced_both_ways(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"g{EXTENSIONS[name]}", TRIANGLE_TAIL[name])
    undirected = read_graph(file, directed=False)
    assert (arcs(undirected), undirected.directed, undirected.edges) == (ARCS, False, 4)
    symmetrized = read_graph(file, directed=True, symmetrize=True)
    assert (arcs(symmetrized), symmetrized.directed) == (ARCS, False)
    directed = read_graph(file, directed=True)
    assert directed.directed
    assert arcs(directed) == ([(0, 1), (0, 2), (1, 2), (2, 3)] if name == "edgelist" else ARCS)


@pytest.mark.parametrize(
    ("content", "said", "message"),
    [
        ("edgelist", "matrixmarket", r":1: not MatrixMarket .* looks like an edge list, format='e"),
        ("matrixmarket", "edgelist", "not edge list: the content is MatrixMarket, format='matrixm"),
        ("pace", "dimacs", "the content is PACE"),
        ("dimacs", "metis", "the content is DIMACS 9"),
        ("edgelist", "npz", ":1: not SciPy npz by its content; it looks like an edge list"),
        ("metis", "edgelist", "expected two integer ids, got '3'|METIS header"),
    ],
)
def test_a_wrong_format_is_refused_with_a_hint(content, said, message, tmp_path) -> None:
    file = written(tmp_path, "unnamed", TRIANGLE_TAIL[content])
    with pytest.raises(GraphFormatError, match=message):
        read_graph(file, format=said)


def test_a_wrong_extension_is_refused_with_a_hint(tmp_path: Path) -> None:
    file = written(tmp_path, "snap.mtx", b"# FromNodeId ToNodeId\n0 1\n")
    with pytest.raises(GraphFormatError, match=r"snap\.mtx:1: not MatrixMarket .* edge list"):
        read_graph(file)
    file = written(tmp_path, "snap.gr", b"0 1\n")
    with pytest.raises(GraphFormatError, match=r"snap\.gr:1: not DIMACS 9 .* edge list"):
        read_graph(file)
    with pytest.raises(ValueError, match="no format 'mtx'; there are matrixmarket, dimacs"):
        read_graph(file, format="mtx")


@pytest.mark.parametrize("name", ["usa.gr", "usa.graph", "usa.txt", "usa"])
def test_binary_files_are_refused_by_name(name: str, tmp_path: Path) -> None:
    file = written(tmp_path, name, np.arange(100, dtype=np.int64).tobytes())
    with pytest.raises(GraphFormatError, match=rf"{name}: a binary file of no known format"):
        read_graph(file)


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_truncated_and_damaged_archives_are_refused(compress, tmp_path: Path) -> None:
    whole = compress(b"".join(b"%d %d\n" % (i, i * 7 % 1000) for i in range(1000)))
    for content in (whole[:-20], whole[: len(whole) // 2]):
        file = written(tmp_path, "cut.txt", content)
        with pytest.raises(GraphFormatError, match=r"cut\.txt: \w+ data damaged or cut short"):
            read_graph(file)
    middle = len(whole) // 2
    file = written(tmp_path, "bad.txt", whole[:middle] + b"\xaa" * 16 + whole[middle + 16 :])
    with pytest.raises(GraphFormatError, match=r"bad\.txt: \w+ data damaged or cut short"):
        read_graph(file)


@pytest.mark.parametrize("name", ["empty.txt", "empty.graph", "empty.mtx", "empty.gr", "empty.npz"])
def test_empty_files_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(GraphFormatError, match=name):
        read_graph(written(tmp_path, name, b""))


def test_an_edited_file_is_read_anew(tmp_path: Path) -> None:
    file = written(tmp_path, "g.txt", b"0 1\n")
    assert read_graph(file).vertices == 2
    file.write_bytes(b"0 2\n")
    assert arcs(read_graph(file)) == [(0, 2), (2, 0)]


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file 'nowhere\.mtx', nor any of: words-kjv"):
        read_graph("nowhere.mtx")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_graph(tmp_path)


def test_progress_counts_the_bytes_of_the_file(tmp_path: Path) -> None:
    content = b"".join(b"%d %d\n" % (i, i + 1) for i in range(400_000))
    file = written(tmp_path, "long.txt", content)
    calls: list[tuple[str, int, int]] = []
    graph = read_graph(file, progress=lambda *call: calls.append(call))
    assert graph.edges == 400_000
    reading = [call for call in calls if call[0] == "reading long.txt"]
    assert len(reading) > 4
    assert reading[-1] == ("reading long.txt", len(content), len(content))
    assert [done for _, done, _ in reading] == sorted(done for _, done, _ in reading)
    assert calls[-1] == ("parsing long.txt", len(content), len(content))


def test_specs_and_bundled_names_are_graphs_too() -> None:
    assert read_graph("grid:5x3").edges == 22
    assert read_graph("path:4", directed=True).directed
    assert list(BUNDLED) == ["words-kjv"]
    with pytest.raises(ValueError, match="grid:WxH"):
        read_graph("grid:5")


def test_the_bundled_word_graph() -> None:
    words = read_graph("words-kjv")
    assert (words.name, words.vertices, words.edges) == ("words-kjv", 5522, 35483)
    assert words.labels.tolist() == sorted(words.labels.tolist())
    assert words.label_of(int(np.argmax(words.degrees))) == "and"
    assert words.max_degree == 3218
    assert np.median(words.degrees) == 3
    assert np.count_nonzero(words.degrees == 1) == 1540
    search = bfs_reference(words, words.vertex_of("faithless"))
    assert search.frontier_sizes.tolist() == [1, 1, 98, 1986, 3394, 38, 2]


class TestNpz:
    MATRIX = scipy.sparse.csr_array(np.array([[0, 1, 0], [0, 0, 2], [3, 0, 0]]))

    @pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
    def test_saved_matrices_are_read(self, kind: str, tmp_path: Path) -> None:
        file = tmp_path / "m.npz"
        scipy.sparse.save_npz(file, self.MATRIX.asformat(kind))
        graph = read_graph(file)
        assert arcs(graph) == [(0, 1), (1, 2), (2, 0)]
        assert (graph.directed, graph.name) == (True, "m")
        assert read_graph(file, symmetrize=True).edges == 3
        scipy.sparse.save_npz(file, (self.MATRIX + self.MATRIX.T).asformat(kind))
        assert not read_graph(file).directed

    def test_stored_zeros(self, tmp_path: Path) -> None:
        file = tmp_path / "m.npz"
        scipy.sparse.save_npz(file, scipy.sparse.coo_array(([0, 5], ([0, 1], [1, 2]))).tocsr())
        with pytest.raises(GraphFormatError, match="square matrix, this one is 2 x 3"):
            read_graph(file)
        zeros = scipy.sparse.coo_array(([0, 5], ([0, 1], [1, 2])), shape=(3, 3))
        scipy.sparse.save_npz(file, zeros)
        assert arcs(read_graph(file)) == [(0, 1), (1, 2)]
        assert arcs(read_graph(file, drop_zeros=True)) == [(1, 2)]

    def test_missing_keys_are_named(self, tmp_path: Path) -> None:
        file = tmp_path / "m.npz"
        np.savez(file, row=[0], col=[1])
        with pytest.raises(GraphFormatError, match=r"m\.npz: .*'format' and 'shape' missing"):
            read_graph(file)
        np.savez(file, format=b"csr", shape=(3, 3), data=[1])
        with pytest.raises(GraphFormatError, match="no csr matrix: 'indices' and 'indptr' missing"):
            read_graph(file)
        np.savez(file, format=b"lil", shape=(3, 3))
        with pytest.raises(GraphFormatError, match="format 'lil' is none of csr"):
            read_graph(file)

    def test_objects_are_never_unpickled(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self):
                return (Path.touch, (tmp_path / "sprung",))

        file = tmp_path / "m.npz"
        np.savez(file, format=b"coo", shape=(2, 2), row=[0], col=[1], data=np.array([Trap()]))
        with pytest.raises(GraphFormatError, match="Python objects, which are never loaded"):
            read_graph(file)
        assert not (tmp_path / "sprung").exists()

    @pytest.mark.parametrize(
        ("indices", "indptr"), [([0, 9], [0, 1, 2, 2]), ([0, 1], [0, 9, 2, 2]), ([0, 1], [0, 1])]
    )
    def test_arrays_that_are_no_csr_are_refused(self, indices, indptr, tmp_path) -> None:
        file = tmp_path / "m.npz"
        np.savez(file, format=b"csr", shape=(3, 3), data=[1, 1], indices=indices, indptr=indptr)
        with pytest.raises(GraphFormatError, match=r"m\.npz: "):
            read_graph(file)

    def test_a_truncated_archive_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "m.npz"
        scipy.sparse.save_npz(file, self.MATRIX)
        file.write_bytes(file.read_bytes()[:-30])
        with pytest.raises(GraphFormatError, match=r"m\.npz: npz archive damaged or cut short"):
            read_graph(file)


def test_every_file_has_the_facts_recorded_of_it() -> None:
    facts = json.loads(graph_file("facts.json").read_text())
    assert len(facts) == 21
    for fact in facts:
        file = graph_file(fact["file"])
        if "vertices" not in fact:
            with pytest.raises(GraphFormatError, match=r"Franz6.*:5: the matrix is 10592 x 3016"):
                read_graph(file)
            continue
        graph = read_graph(file, directed=True if fact["directed"] else None)
        assert graph.directed is fact["directed"], file
        symmetric = graph.symmetrized()
        assert symmetric.vertices == fact["vertices"], file
        assert symmetric.edges == fact["undirected_edges"], file
        assert symmetric.max_degree == fact["max_degree"], file
        assert np.median(symmetric.degrees) == fact["median_degree"], file
        assert np.count_nonzero(symmetric.degrees == 0) == fact["isolated"], file
        if fact["directed"]:
            loops = np.count_nonzero(graph.arc_sources() == graph.col_indices)
            assert graph.arcs == fact["stored_entries"], file
            assert loops == fact["self_loops"], file
            assert graph.arcs - loops == fact["directed_edges"], file
        for key, searched in {
            "sym_v0": symmetric,
            "sym_maxdeg": symmetric,
            "dir_v0": graph,
            "dir_maxout": graph,
        }.items():
            if key in fact:
                sizes = bfs_reference(searched, fact[key]["source"]).frontier_sizes
                assert sizes.size - 1 == fact[key]["depth"], (file, key)
                assert sizes.sum() == fact[key]["reached"], (file, key)


def test_the_florida_roads_load_in_four_seconds() -> None:
    file = graph_file("road-USA-FLA.gr.xz")
    start = time.perf_counter()
    graph = read_graph(file)
    elapsed = time.perf_counter() - start
    assert (graph.vertices, graph.edges) == (1_070_376, 1_343_951)
    assert elapsed < 4


def test_a_format_is_for_files_and_a_seed_for_generated_graphs(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a format is for files"):
        read_graph("path:5", format="metis")
    with pytest.raises(ValueError, match="a seed is for generated graphs"):
        read_graph("words-kjv", seed=3)
    one, other, again = (read_graph("random:50:90", seed=seed) for seed in (1, 2, 1))
    assert one.col_indices.tolist() != other.col_indices.tolist()
    assert one.col_indices.tolist() == again.col_indices.tolist()
