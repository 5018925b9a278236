"""Where content comes from: pipes, archives, compressions; and how much memory it may take."""

from __future__ import annotations

import bz2
import gzip
import importlib.util
import io
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from mutations import zstd_frame

from persistent_bfs.io import GraphFormatError, memory, opening, read_graph
from persistent_bfs.io.source import longest_line, tokens_per_line

MATRIX = b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"
EDGES = b"0 1\n1 2\n2 3\n"


def tar(members: dict[str, bytes], mode: str = "w") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def written(folder: Path, name: str, content: bytes) -> Path:
    file = folder / name
    file.write_bytes(content)
    return file


class TestPipes:
    @pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
    def test_a_fifo_is_read_whole_and_once(self, compress, tmp_path: Path) -> None:
        content = compress(EDGES)
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)

        def write() -> None:
            with fifo.open("wb", buffering=0) as file:
                for byte in content:  # so that no read gets all of it
                    file.write(bytes([byte]))

        writer = threading.Thread(target=write)
        writer.start()
        graph = read_graph(fifo)
        writer.join()
        assert (graph.name, graph.vertices, graph.edges) == ("fifo", 4, 3)

    @pytest.mark.parametrize("name", ["-", "/dev/stdin"])
    def test_standard_input_is_read(self, name: str) -> None:
        program = f"from persistent_bfs import read_graph; print(read_graph({name!r}))"
        done = subprocess.run(
            [sys.executable, "-c", program], input=gzip.compress(EDGES), capture_output=True
        )
        assert done.stderr == b""
        assert done.stdout == b"Graph('stdin', 4 vertices, 3 edges, undirected)\n"

    def test_faults_on_standard_input_are_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0 1\n1 -2\n")))
        with pytest.raises(GraphFormatError, match=r"<stdin>:2: negative id"):
            read_graph("-")
        monkeypatch.setattr(sys, "stdin", None)
        with pytest.raises(OSError, match="no standard input"):
            read_graph("-")

    def test_the_total_of_a_pipe_is_told_as_unknown(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo")
        writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(EDGES,))
        writer.start()
        calls: list[tuple[str, int, int]] = []
        read_graph(tmp_path / "fifo", progress=lambda *call: calls.append(call))
        writer.join()
        reading = [call for call in calls if call[0] == "reading fifo"]
        assert reading[-1] == ("reading fifo", len(EDGES), 0)

    def test_what_never_ends_is_refused_by_the_limit(self) -> None:
        with pytest.raises(GraphFormatError, match="holds more than the 3,000,000 bytes"):
            read_graph("/dev/zero", memory_limit=3_000_000)


class TestArchives:
    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
    def test_the_matrix_of_a_suitesparse_archive_is_read(self, mode: str, tmp_path: Path) -> None:
        content = tar(
            {"arc130/arc130.mtx": MATRIX, "arc130/arc130_b.mtx": b"x", "arc130/README.txt": b"y"},
            mode,
        )
        graph = read_graph(written(tmp_path, "download.tar.gz", content))
        assert (graph.name, graph.vertices, graph.arcs) == ("arc130", 3, 2)

    @pytest.mark.parametrize(
        "members",
        [
            {"g.txt": EDGES},
            {"data/README.md": b"x y", "data/g.txt": EDGES, "data/LICENSE": b"y"},
            {"__MACOSX/._g.txt": b"\0", "g.txt": EDGES},
            {"x/out.moreno": EDGES},
            {"g.txt.gz": gzip.compress(EDGES), "notes": b"x"},
            {"other.txt": b"x", "archive.txt": EDGES},
        ],
    )
    def test_the_one_graph_of_a_zip_archive_is_read(self, members, tmp_path) -> None:
        assert read_graph(written(tmp_path, "archive.zip", zipped(members))).edges == 3

    def test_several_graphs_or_none_are_refused_by_name(self, tmp_path: Path) -> None:
        file = written(tmp_path, "x.zip", zipped({"a.txt": EDGES, "b.mtx": MATRIX}))
        with pytest.raises(GraphFormatError, match=r"x\.zip: an archive of several files \(a\.txt"):
            read_graph(file)
        file = written(tmp_path, "x.tar", tar({"README": EDGES}))
        with pytest.raises(GraphFormatError, match=r"x\.tar: an archive without a graph"):
            read_graph(file)

    def test_faults_in_archives_are_named_with_the_file_in_them(self, tmp_path: Path) -> None:
        file = written(tmp_path, "x.zip", zipped({"d/g.txt": b"0 1\n1\n"}))
        with pytest.raises(GraphFormatError, match=r"x\.zip/d/g\.txt:2: expected two integer ids"):
            read_graph(file)

    @pytest.mark.parametrize("pack", [zipped, tar])
    def test_cut_archives_are_refused(self, pack, tmp_path: Path) -> None:
        content = pack({"g.txt": EDGES * 999})
        for size in (len(content) // 2, 600 if pack is tar else 60):
            with pytest.raises(GraphFormatError, match=r"x\.dat: (zip|npz|tar) archive damaged"):
                read_graph(written(tmp_path, "x.dat", content[:size]))

    def test_an_encrypted_file_is_refused(self, tmp_path: Path) -> None:
        content = bytearray(zipped({"g.txt": EDGES}))
        content[6] |= 1  # the flag, in the file's own header and in the directory
        content[content.index(b"PK\x01\x02") + 8] |= 1
        with pytest.raises(GraphFormatError, match="encrypted"):
            read_graph(written(tmp_path, "x.zip", bytes(content)))


class TestCompressions:
    @pytest.mark.parametrize("module", ["compression.zstd", "backports.zstd", "zstandard"])
    def test_zstd_is_read_by_whatever_library_is_there(
        self, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not _is_there(module):
            pytest.skip(f"{module} is not installed")
        load = opening.import_module
        monkeypatch.setattr(opening, "import_module", lambda name: _only(load, name, module))
        content = EDGES + b"# " + b"x" * 300 + b"\n"
        frames = zstd_frame(content) + zstd_frame(b"3 4\n" + b"#" * 300)
        assert read_graph(written(tmp_path, "g.txt.zst", frames)).edges == 4
        for cut in (frames[:-1], frames[: len(frames) // 3]):
            with pytest.raises(GraphFormatError, match="zstd data damaged or cut short"):
                read_graph(written(tmp_path, "g.txt.zst", cut))

    def test_zstd_without_a_library_is_refused_with_the_remedy(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(opening, "import_module", lambda name: _only(None, name, ""))
        file = written(tmp_path, "g.txt.zst", zstd_frame(EDGES * 99))
        with pytest.raises(GraphFormatError, match="pip install zstandard, or decompress"):
            read_graph(file)

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
    def test_streams_one_after_another_are_one_file(self, compress, tmp_path: Path) -> None:
        padding = b"\0" * 8 if compress is lzma.compress else b""
        file = written(tmp_path, "g.txt", compress(b"0 1\n") + padding + compress(b"1 2\n"))
        assert read_graph(file).edges == 2
        with pytest.raises(GraphFormatError, match="damaged or cut short"):
            read_graph(written(tmp_path, "g.txt", file.read_bytes() + b"more"))


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _only(load, name: str, module: str):
    if name != module:
        raise ImportError(name)
    return load(name)


class TestMemory:
    @pytest.mark.parametrize(
        ("name", "line", "content"),
        [
            ("x.gr", 2, b"c\np tw 2000000000 1\n1 2\n"),
            ("x.gr", 1, b"p sp 2000000000 1\na 1 2 3\n"),
            ("x.col", 1, b"p edge 2000000000 1\ne 1 2\n"),
            ("x.mtx", 2, MATRIX.replace(b"3 3 2", b"2000000000 2000000000 2")),
        ],
    )
    def test_declared_sizes_are_refused_before_allocation(self, name, line, content, tmp_path):
        file = written(tmp_path, name, content)
        tracemalloc.start()
        try:
            with pytest.raises(
                GraphFormatError,
                match=rf"{name}:{line}: 2,000,000,000 vertices and \d edges need 64,000,000,\d+ "
                r"bytes of memory, more than the 1,073,\d+,\d+ in proportion.*--memory-limit",
            ):
                read_graph(file)
            assert tracemalloc.get_traced_memory()[1] < 1 << 21
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        "compress", [gzip.compress, bz2.compress, lambda data: zipped({"g.txt": data})]
    )
    def test_expansion_is_limited_and_the_limit_can_be_raised(
        self, compress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(opening, "EXPANDED", 1 << 20)
        content = b"0 1\n" + b" " * (1 << 21)
        file = written(tmp_path, "bomb.txt.gz", compress(content))
        with pytest.raises(
            GraphFormatError,
            match=r"bomb\.txt\.gz.*: expands to more than the 1,048,576 bytes that [\d,]+ "
            r"compressed bytes may expand to; memory_limit=BYTES \(--memory-limit\)",
        ):
            read_graph(file)
        assert read_graph(file, memory_limit=1 << 28).edges == 1
        with pytest.raises(GraphFormatError, match="the 2,000,000 bytes that memory_limit allows"):
            read_graph(file, memory_limit=2_000_000)

    def test_what_is_well_compressed_in_proportion_is_read(self, tmp_path: Path, monkeypatch):
        monkeypatch.setattr(opening, "EXPANDED", 1)
        content = b"".join(b"%d %d\n" % (i, i * 7 % 999) for i in range(999))
        assert read_graph(written(tmp_path, "g.txt.gz", gzip.compress(content))).vertices == 999

    def test_the_windows_of_decompressors_count(self, tmp_path: Path) -> None:
        file = written(tmp_path, "g.txt.xz", lzma.compress(EDGES, preset=9))
        with pytest.raises(GraphFormatError, match="takes more than the 16,777,216 bytes"):
            read_graph(file, memory_limit=1 << 24)
        assert read_graph(file).edges == 3

    def test_what_is_available_is_the_least_of_all_limits(self) -> None:
        free = memory.available_memory()
        assert 1 << 26 < free < memory.UNKNOWN
        most, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        taken = pages * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 26), hard))
        try:
            assert (1 << 25) < memory.available_memory() <= 1 << 26
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))

    def test_the_limits_of_control_groups_count_those_above_too(self, monkeypatch) -> None:
        files = {
            "/proc/self/cgroup": "0::/a/b\n",
            "/sys/fs/cgroup/a/b/memory.max": "max\n",
            "/sys/fs/cgroup/a/b/memory.current": "700\n",
            "/sys/fs/cgroup/a/memory.max": "1000\n",
            "/sys/fs/cgroup/a/memory.current": "900\n",
            "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   5 kB\n",
        }
        monkeypatch.setattr(memory, "_text", lambda path: files.get(str(path), ""))
        assert memory.available_memory() == 100
        del files["/proc/self/cgroup"]
        assert memory.available_memory() == 5 * 1024
        files["/proc/self/cgroup"] = "7:cpu,memory:/c\n3:pids:/a\n"
        files["/sys/fs/cgroup/memory/c/memory.limit_in_bytes"] = "4000\n"
        files["/sys/fs/cgroup/memory/c/memory.usage_in_bytes"] = "5000\n"
        assert memory.available_memory() == 0

    def test_little_memory_available_is_named(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr("persistent_bfs.io.source.available_memory", lambda: 1 << 20)
        file = written(tmp_path, "x.gr", b"p tw 20000000 1\n1 2\n")
        with pytest.raises(GraphFormatError, match="more than the 1,048,576 available"):
            read_graph(file)

    @pytest.mark.parametrize(
        ("limit", "error", "message"),
        [
            (0, ValueError, "memory_limit must be at least 1, got 0"),
            (True, TypeError, "memory_limit must be an integer, got True"),
            ("4G", TypeError, "memory_limit must be an integer, got '4G'"),
        ],
    )
    def test_a_limit_is_a_number_of_bytes(self, limit, error, message) -> None:
        with pytest.raises(error, match=message):
            read_graph("words-kjv", memory_limit=limit)

    def test_the_estimate_holds_for_larger_files(self, tmp_path: Path) -> None:
        lines = "".join(f"{i * 7919 % 8_000} {i}\n" for i in range(8_000))
        files = {
            "x.txt": lines,
            "names.txt": lines.replace(" ", " n"),
            "x.tsv": lines.replace(" ", " x\ty"),
            "x.csv": lines.replace(" ", ","),
            "x.gr": "p tw 8000 7999\n" + lines.split("\n", 8)[8].replace(" 0\n", " 1\n"),
        }
        for name, content in files.items():
            file = written(tmp_path, name, content.encode())
            refused = GraphFormatError("none")
            limit = 1 << 20
            while True:  # the smallest power of two that is enough
                tracemalloc.start()
                try:
                    read_graph(file, memory_limit=limit)
                except GraphFormatError as error:
                    refused = error
                else:
                    refused = None
                finally:
                    peak = tracemalloc.get_traced_memory()[1]
                    tracemalloc.stop()
                assert peak <= limit + (1 << 20), (name, peak, limit)
                if refused is None or "need" not in str(refused):
                    break
                limit *= 2
            assert 1 << 20 <= limit <= 1 << 24, (name, limit, refused)


def test_a_url_is_no_file() -> None:
    with pytest.raises(ValueError, match=r"'https://a\.b/c\.mtx' is a URL.*download it first"):
        read_graph("https://a.b/c.mtx")


def test_lines_and_words_are_measured() -> None:
    assert tokens_per_line(b"1 2\n\n  3\r\n4 5\t6 ").tolist() == [2, 0, 1, 3]
    assert tokens_per_line(b"").tolist() == [0]
    short, long = b"x\n" * 5000, b"y" * 9999 + b"\n"
    for body, longest in (
        (short, 4096),
        (short + long + short, 9999),
        (long + short, 9999),
        (short + long[:-1], 9999),
    ):
        assert longest_line(body) == longest
