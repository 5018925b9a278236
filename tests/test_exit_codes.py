"""How a command ends: the codes, and above all what happens to output that cannot be written."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import graphs
import pytest
from click.testing import CliRunner, Result

from persistent_bfs import cli
from persistent_bfs.cli import output
from persistent_bfs.cli.program import EXIT_CODES
from persistent_bfs.device import emulated_problem
from persistent_bfs.device.base import SearchTimeout

resource = pytest.importorskip("resource")

KEPT = Path(__file__).parent / "study-emulated.json"

emulated = pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")

RUN = "run path:5 --device reference"

COMMANDS = {
    "nothing": "",
    "help": "--help",
    "version": "--version",
    "help of a command": "run --help",
    "run": RUN,
    "run as JSON": f"{RUN} --json",
    "levels": "levels path:5",
    "levels, more than a buffer": "levels path:9000 --json",
    "list": "list",
    "list as JSON": "list --json",
    "doctor": "doctor --json",
    "study": f"study --from {KEPT} --no-plots --out",
    "race": pytest.param("race path:3 --schedules 1 --no-check", marks=emulated),
    "expand": pytest.param("expand path:3 --advances thread --repeat 1", marks=emulated),
    "compare": pytest.param(
        "compare path:3 --engines persistent --tiers none --advances thread", marks=emulated
    ),
}


def shell(command: str, redirection: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program in a shell, whose exit code is the program's, in a pipe too."""
    if command.endswith("--out"):
        command += f" {folder / 'study'}"
    program = f"{sys.executable} -m persistent_bfs {command} {redirection}"
    return subprocess.run(
        ["bash", "-c", f"{program}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=graphs.REPOSITORY,
        env={**os.environ, "COLUMNS": "80"},
        timeout=120,
    )


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(cli.main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def everything_in(folder: Path) -> dict[str, bytes | None]:
    """What is in a folder, and in those in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_is_one_line_and_a_code_of_its_own(command: str, tmp_path: Path) -> None:
    result = shell(command, ">/dev/full", tmp_path)
    why = os.strerror(errno.ENOSPC)
    assert result.stderr == f"error: cannot write standard output: {why}\n"
    assert result.returncode == 4


@posix
@pytest.mark.parametrize("command", ["--help", RUN, f"{RUN} --json"])
@pytest.mark.parametrize(
    ("redirection", "stderr", "code"),
    [
        (">&-", "error: cannot write standard output: it is closed\n", 4),
        (">&- 2>&-", "", 4),
        (">/dev/full 2>/dev/full", "", 4),
        ("1</dev/null", f"error: cannot write standard output: {os.strerror(errno.EBADF)}\n", 4),
        ("2>&-", "", 0),
        ("2>/dev/full", "", 0),
        ("<&-", "", 0),
        ("| true", "", 141),
    ],
)
def test_a_stream_that_is_no_good_is_no_traceback(
    command: str, redirection: str, stderr: str, code: int, tmp_path: Path
) -> None:
    result = shell(command, redirection, tmp_path)
    assert (result.stderr, result.returncode) == (stderr, code)
    assert bool(result.stdout) == (code == 0)


@posix
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_error_nobody_can_be_told_keeps_its_code(redirection: str, tmp_path: Path) -> None:
    result = shell("run nowhere.mtx", redirection, tmp_path)
    assert (result.stdout, result.stderr, result.returncode) == ("", "", 2)


@posix
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["levels path:9000 --json", "levels path:2000 --json"])
def test_a_disk_that_becomes_full_is_found_out_late_and_told_alike(
    command: str, unbuffered: str, tmp_path: Path
) -> None:
    file = tmp_path / "report.json"
    with file.open("w") as stdout:
        result = subprocess.run(
            [sys.executable, "-m", "persistent_bfs", *command.split()],
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=graphs.REPOSITORY,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 14, 1 << 14)),
            timeout=120,
        )
    why = os.strerror(errno.EFBIG)
    assert result.stderr == f"error: cannot write standard output: {why}\n"
    assert result.returncode == 4
    assert file.stat().st_size == 1 << 14


@posix
def test_a_file_that_is_written_is_kept_where_standard_output_fails(tmp_path: Path) -> None:
    # A pipe's end is not known before.
    file = tmp_path / "answer.tsv"
    result = shell(f"{RUN} --output {file}", "| true", tmp_path)
    assert (result.stderr, result.returncode) == ("", 141)
    assert file.read_text().splitlines()[1:] == [f"{vertex}\t{vertex}" for vertex in range(5)]


@posix
def test_descriptors_that_are_closed_are_nobody_elses(tmp_path: Path) -> None:
    """The answer's file would otherwise have number 0, 1 or 2, and get what is printed."""
    file = tmp_path / "answer.tsv"
    result = shell(f"{RUN} --output {file}", "<&- 2>&-", tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "5 reached: verified" in result.stdout
    assert file.read_text() == "# vertex\tdistance\n" + "".join(f"{v}\t{v}\n" for v in range(5))


def unreachable(*_: Any, **__: Any) -> Any:
    pytest.fail("work was begun")


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """No graph can be read, no device opened, nothing measured and no study drawn."""
    monkeypatch.setattr("persistent_bfs.io.read_graph", unreachable)
    monkeypatch.setattr("persistent_bfs.cli.searches.open_device", unreachable)
    monkeypatch.setattr("persistent_bfs.study.report.render", unreachable)


WRITERS = {
    "run": ("run", "path:5", "--output", "{}.npz"),
    "compare": ("compare", "path:5", "--output", "{}.json"),
    "compare's plot": ("compare", "path:5", "--plot", "{}.svg"),
    "expand": ("expand", "path:5", "--output", "{}.json"),
    "study": ("study", "--no-plots", "--out", "{}.d"),
    "study told anew": ("study", "--from", str(KEPT), "--no-plots", "--out", "{}.d"),
}


def filled(command: tuple[str, ...], path: Path) -> tuple[list[str], Path]:
    """A command whose output is at a path, and that path with the extension it needs."""
    words = [word.format(path) for word in command]
    return words, Path(words[-1])


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_file_in_the_way_of_the_folder_is_found_before_any_work(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("old")
    words, path = filled(command, tmp_path / "file" / "answer")
    result = call(*words)
    assert result.exit_code == 4
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: cannot write {path}: ")
    assert everything_in(tmp_path) == {"file": b"old"}


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_what_is_in_the_way_itself_is_found_before_any_work(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    words, path = filled(command, tmp_path / "answer")
    if path.suffix == ".d":
        path.write_text("old")
        why = "a file is in the way"
    else:
        path.mkdir()
        why = "it is a folder"
    before = everything_in(tmp_path)
    result = call(*words)
    assert (result.exit_code, result.stderr) == (4, f"error: cannot write {path}: {why}\n")
    assert everything_in(tmp_path) == before


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_read_only_file_system_is_found_before_any_work(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user, root too, is told so only by whoever creates something."""
    before = os.open, Path.mkdir

    def read_only(path: Any, flags: int, *how: Any, **more: Any) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return before[0](path, flags, *how, **more)

    def no_folder(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    def no_file(self: Path, mode: str = "r", *_: Any, **__: Any) -> Any:
        assert "x" in mode
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(Path, "mkdir", no_folder)
    monkeypatch.setattr(Path, "open", no_file)
    words, path = filled(command, tmp_path / "answer")
    result = call(*words)
    assert result.exit_code == 4
    why = os.strerror(errno.EROFS)
    assert result.stderr == f"error: cannot write {path}: {why}\n"


@posix
@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_rights_is_found_before_any_work(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    words, path = filled(command, folder / "answer")
    result = call(*words)
    assert result.exit_code == 4
    assert result.stderr == f"error: cannot write {path}: {os.strerror(errno.EACCES)}\n"


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("command", list(WRITERS.values())[:4], ids=list(WRITERS)[:4])
def test_a_missing_folder_is_found_before_any_work(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    words, path = filled(command, tmp_path / "nowhere" / "answer")
    result = call(*words)
    why = f"there is no folder {str(path.parent)!r}"
    assert (result.exit_code, result.stderr) == (4, f"error: cannot write {path}: {why}\n")
    assert everything_in(tmp_path) == {}


def test_trying_leaves_everything_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "answer.npz"
    old.write_bytes(b"old")
    output.try_file(old)
    output.try_file(tmp_path / "new.npz")
    output.try_folder(tmp_path, "study.json")
    output.try_folder(tmp_path / "a" / "b" / "c", "study.json")
    assert everything_in(tmp_path) == {"answer.npz": b"old"}


@posix
def test_a_fifo_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    fifo = tmp_path / "answer.npz"
    os.mkfifo(fifo)
    result = call("run", "path:5", "--device", "reference", "--output", str(fifo))
    assert result.stderr == f"error: cannot write {fifo}: it is no regular file\n"
    assert result.exit_code == 4
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    link = tmp_path / "answer.tsv"
    link.symlink_to(tmp_path / "kept" / "answer.tsv")
    assert call("run", "path:2", "--device", "reference", "--output", str(link)).exit_code == 0
    assert link.is_symlink()
    assert (tmp_path / "kept" / "answer.tsv").read_text() == "# vertex\tdistance\n0\t0\n1\t1\n"
    assert set(everything_in(tmp_path)) == {"kept", "kept/answer.tsv", "answer.tsv"}


def test_the_longest_name_a_file_can_have_is_written(tmp_path: Path) -> None:
    file = tmp_path / ("a" * 251 + ".tsv")
    assert call("run", "path:2", "--device", "reference", "--output", str(file)).exit_code == 0
    assert file.read_text() == "# vertex\tdistance\n0\t0\n1\t1\n"


def full_for(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the disk be full when one of these files is put in its place, but not before."""
    replace = Path.replace

    def no_space(self: Path, target: Any) -> Any:
        if Path(target).name in names:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", no_space)


@emulated
def test_a_plot_that_cannot_be_written_does_not_cost_the_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    full_for(monkeypatch, "plot.svg")
    result = call(
        *("compare", "path:3", "--device", "emulated", "--engines", "persistent", "--json"),
        *("--tiers", "none", "--advances", "thread", "--plot", str(tmp_path / "plot.svg")),
        *("--output", str(tmp_path / "report.json")),
    )
    why = os.strerror(errno.ENOSPC)
    assert result.stderr == f"error: cannot write {tmp_path / 'plot.svg'}: {why}\n"
    assert result.exit_code == 4
    assert json.loads(result.stdout)["levels"] == 3
    assert os.listdir(tmp_path) == ["report.json"]
    assert json.loads((tmp_path / "report.json").read_text()) == json.loads(result.stdout)


def study_of(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let `study` measure what was measured before."""
    kept: dict[str, Any] = json.loads(KEPT.read_text())
    command = sys.modules["persistent_bfs.cli.study"]
    monkeypatch.setattr(command, "measure_study", lambda *_, **__: kept)
    return kept


@pytest.mark.parametrize("name", ["report.html", "study.json"])
def test_a_study_is_kept_as_far_as_it_can_be(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = study_of(monkeypatch)
    folder, elsewhere = tmp_path / "new" / "study", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    full_for(monkeypatch, name)
    result = call("study", "--no-plots", "--out", str(folder))
    assert result.exit_code == 4
    lines = result.stderr.splitlines()
    assert lines[0] == f"error: cannot write {folder / name}: {os.strerror(errno.ENOSPC)}"
    assert f"lost: of {folder}: {name}" in lines
    others = {"report.html", "report.md", "study.json"} - {name}
    assert set(os.listdir(folder)) == others
    assert name not in result.stdout
    if name != "study.json":
        assert json.loads((folder / "study.json").read_text()) == kept


def test_a_study_that_fits_nowhere_else_is_kept_among_the_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = study_of(monkeypatch)
    folder, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    replace = Path.replace

    def no_space(self: Path, target: Any) -> Any:
        if Path(target).parent == folder:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", no_space)
    result = call("study", "--no-plots", "--out", str(folder))
    assert result.exit_code == 4
    (found,) = re.findall(r"note: study\.json was kept as (.*)", result.stderr)
    assert Path(found).is_relative_to(elsewhere)
    assert json.loads(Path(found).read_text()) == kept
    assert os.listdir(folder) == []


def test_a_report_that_cannot_be_drawn_does_not_cost_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = study_of(monkeypatch)

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("persistent_bfs.study.report.render", interrupted)
    assert call("study", "--no-plots", "--out", str(tmp_path / "study")).exit_code == 130
    assert json.loads((tmp_path / "study" / "study.json").read_text()) == kept


@emulated
def test_a_wrong_answer_goes_before_output_that_cannot_be_written(tmp_path: Path) -> None:
    edges = tmp_path / "six.txt"
    graph = graphs.FRONTIER_MODEL
    edges.write_text(
        "".join(f"{s} {t}\n" for s, t in zip(graph.arc_sources(), graph.col_indices, strict=True))
    )
    how = "--directed --device emulated --claim naive --schedule adversarial --seed 0"
    result = shell(f"run {edges} {how}", "| true", tmp_path)
    assert result.stderr.startswith("wrong answer: frontier sizes add up to")
    assert result.returncode == 1


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SearchTimeout("after 1 s"), 3, "error: after 1 s"),
        (MemoryError(), 2, "error: out of memory"),
        (OSError(errno.ENOSPC, "No space left on device", "/cache/x"), 3, "error: /cache/x: No sp"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 3, "error: [Errno 32] Broken pipe"),
        (RuntimeError("can't start new thread"), 70, "error: a fault of this program: RuntimeErr"),
        (AssertionError("x"), 70, "error: a fault of this program: AssertionError: x"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_nothing_but_a_wrong_answer_ends_in_1(
    error: Exception, code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("persistent_bfs.measure.measure", fail)
    result = call("run", "path:5", "--device", "reference")
    assert result.exit_code == code
    *above, last = result.stderr.splitlines()
    assert last.startswith(line)
    assert ("Traceback" in "".join(above)) == (code == 70)


def test_a_graph_that_no_memory_holds_is_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("persistent_bfs.io.read_graph", fail)
    result = call("run", "path:5")
    assert (result.exit_code, result.stderr) == (2, "error: out of memory\n")


@pytest.mark.skipif(importlib.util.find_spec("pty") is None, reason="needs a pseudo-terminal")
def test_a_terminal_gets_what_a_file_gets(tmp_path: Path) -> None:
    import pty

    ours, its = pty.openpty()
    words = [sys.executable, "-m", "persistent_bfs", *RUN.split()]
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with open(ours, "rb") as screen:
        done = subprocess.run(
            words,
            stdout=its,
            stderr=its,
            cwd=graphs.REPOSITORY,
            env={**plain, "TERM": "xterm-256color", "COLUMNS": "100"},
            check=False,
            timeout=120,
        )
        os.close(its)
        shown = screen.read1(1 << 16).decode()
    assert done.returncode == 0
    assert "\x1b[" in shown  # colours
    assert "5 reached: verified" in re.sub(r"\x1b\[[0-9;]*m", "", shown)


def test_the_help_names_every_code() -> None:
    told = call("--help").stdout.partition("Exit codes:")[2]
    codes = [int(line.split()[0]) for line in told.splitlines() if line.strip()[:1].isdigit()]
    assert codes == list(EXIT_CODES) == [0, 1, 2, 3, 4, 70, 130, 141]


def test_the_readme_names_every_code() -> None:
    text = (graphs.REPOSITORY / "README.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", text, flags=re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


@pytest.mark.parametrize(
    ("arguments", "view"),
    [
        (("run", "path:3", "--device", "reference"), "search"),
        (("levels", "path:3"), "levels"),
        (("list",), "choices"),
        (("doctor",), "diagnosis"),
        (("study", "--from", str(KEPT), "--no-plots"), "study"),
    ],
)
def test_json_says_what_it_is(
    arguments: tuple[str, ...], view: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if arguments[0] == "study":
        arguments += ("--out", str(tmp_path))
    report = json.loads(call(*arguments, "--json").stdout)
    assert list(report)[:2] == ["format", "version"]
    assert (report["format"], report["version"]) == (f"persistent-bfs {view}", 1)
