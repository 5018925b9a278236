"""How programs end that leave sessions behind: as Python programs do, and without a word."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from devices import KERNEL_DEVICES

PRELUDE = """
import gc, os, signal, sys, threading
from persistent_bfs import BFS, bfs, read_graph
device = sys.argv[1]
graph = read_graph("grid:30x20")
def session(**how):
    search = BFS(graph, device=device, block_threads=64, **how)
    assert search.run(0, max_depth=3).reached == 10
    return search
"""

# A program's lines, the exit code it ends with, and the last line of stderr (nothing: it is empty).
PROGRAMS: dict[str, tuple[str, int, str]] = {
    "left open": ("search = session()", 0, ""),
    "two left open": ("one, two = session(), session(engine='graph_while')", 0, ""),
    "two graphs left open in a list": ("all = [session(), session(trace=True)]", 0, ""),
    "dropped": ("search = session(); del search; gc.collect()", 0, ""),
    "rebound": ("search = session()\nsearch = session(predecessors=True)", 0, ""),
    "never bound": ("session()", 0, ""),
    "in a cycle": ("search = session(); search.self = search; del search", 0, ""),
    "its result kept": ("result = session().run(5)", 0, ""),
    "its result looked at at last": (
        "result = session().run(5, max_depth=2); gc.collect()\n"
        "assert (result.distances >= 0).sum() == 9, result",
        0,
        "",
    ),
    "opened in a thread": (
        "kept = []\n"
        "thread = threading.Thread(target=lambda: kept.append(session()))\n"
        "thread.start(); thread.join()\n"
        "assert kept[0].run(1, max_depth=0).reached == 1",
        0,
        "",
    ),
    "dropped in a thread": (
        "thread = threading.Thread(target=session)\nthread.start(); thread.join()",
        0,
        "",
    ),
    "closed in another thread": (
        "search = session()\n"
        "thread = threading.Thread(target=search.close)\n"
        "thread.start(); thread.join()",
        0,
        "",
    ),
    "a daemon thread still searching": (
        "search, began = session(), threading.Event()\n"
        "def ask():\n"
        "    while True:\n"
        "        search.run(0); began.set()\n"
        "threading.Thread(target=ask, daemon=True).start()\n"
        "began.wait()",
        0,
        "",
    ),
    "a daemon thread in the middle of a long search": (
        "search, began = BFS(read_graph('path:3000000'), device=device, tiers='none'), []\n"
        "def ask():\n"
        "    began.append(True); search.run(0)\n"
        "thread = threading.Thread(target=ask, daemon=True)\n"
        "thread.start()\n"
        "while not began: pass",
        0,
        "",
    ),
    "an exception": ("search = session()\nraise LookupError('gone')", 1, "LookupError: gone"),
    "an exception inside with": (
        "with session() as search:\n    raise LookupError('gone')",
        1,
        "LookupError: gone",
    ),
    "sys.exit": ("search = session(); sys.exit(4)", 4, ""),
    "sys.exit in with": ("with session() as search:\n    sys.exit(4)", 4, ""),
    "os._exit": ("search = session(); os._exit(3)", 3, ""),
    "SIGTERM": (
        "search = session(); os.kill(os.getpid(), signal.SIGTERM); signal.pause()",
        -signal.SIGTERM,
        "",
    ),
    "a device without a session": (
        "from persistent_bfs.device import open_device\n"
        "device = open_device(device).device\n"
        "stream = device.stream(); buffer = device.allocate(10, 'int32', 'ten')",
        0,
        "",
    ),
    "a fork that ends": (
        "search = session()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "assert search.run(2, max_depth=0).reached == 1",
        0,
        "",
    ),
    "bfs in a loop": (
        "for source in range(20):\n"
        "    assert bfs(graph, source, device=device, max_depth=0).reached == 1",
        0,
        "",
    ),
}


# Programs on a GPU that another library uses, too.
BESIDE: dict[str, str] = {
    "torch before": """
        import torch
        tensor = torch.arange(10, device="cuda")
        search = session()
        assert tensor.sum().item() == 45
    """,
    "torch after": """
        search = session()
        import torch
        tensor = torch.arange(10, device="cuda")
        assert tensor.sum().item() == 45
        assert search.run(0, max_depth=1).reached == 3
    """,
    "torch between": """
        import torch
        with session() as search:
            tensor = torch.arange(10, device="cuda")
            assert search.run(0, max_depth=1).reached == 3
        assert tensor.sum().item() == 45
        search = session()
    """,
    "cupy before": """
        import cupy
        array = cupy.arange(10)
        search = session()
        assert int(array.sum()) == 45
    """,
    "cupy after": """
        search = session()
        import cupy
        assert int(cupy.arange(10).sum()) == 45
        assert search.run(0, max_depth=1).reached == 3
    """,
    "pycuda's own context around": """
        import pycuda.driver as driver
        driver.init()
        context = driver.Device(0).make_context()
        search = session()
        assert driver.Context.get_current() == context
        array = driver.mem_alloc(100)
        assert search.run(0, max_depth=1).reached == 3
        assert driver.Context.get_current() == context
        array.free()
        search.close()
        context.pop()
    """,
}


# The context is lost: whoever comes after is told so, and nothing else goes wrong.
LOST = """
from persistent_bfs import DeviceLost
import pytest
healthy, kept = session(), session(predecessors=True)
unseen = kept.run(3)
search = session(engine="host_batched")
search._resident.workspace.parameters.col_indices = 64
with pytest.raises(DeviceLost, match="CUDA_ERROR_ILLEGAL_ADDRESS.*start a new process"):
    search.run(0)
search.close()
for again in (lambda: healthy.run(0), session, lambda: bfs(graph, 0, device=device)):
    with pytest.raises(DeviceLost, match="lost its context"):
        again()
assert unseen.depth == 45
with pytest.raises(Exception, match="gone|lost its context"):
    unseen.distances
healthy.close()
"""


@pytest.mark.cuda
def test_a_program_whose_context_is_lost_is_told_so_and_ends_cleanly() -> None:
    assert run(LOST, "cuda") == (0, "", "")


def run(program: str, device: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + program, device],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("where", KERNEL_DEVICES)
def test_a_program_that_leaves_a_session_behind_ends_cleanly(where: str, name: str) -> None:
    from persistent_bfs.device.emulated import emulated_problem

    if where == "emulated" and emulated_problem() is not None:
        pytest.skip(str(emulated_problem()))
    program, code, last = PROGRAMS[name]
    returned, out, error = run(program, where)
    assert (returned, out) == (code, ""), error
    if last:
        assert error.splitlines()[-1] == last
        assert error.count("Traceback") == 1
    else:
        assert error == ""


@pytest.mark.cuda
@pytest.mark.parametrize("name", BESIDE)
def test_a_program_that_uses_another_library_too_ends_cleanly(name: str) -> None:
    library = name.split()[0].split("'")[0]
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    # Other libraries may warn of what is theirs.
    program = "import warnings; warnings.simplefilter('ignore')\n" + textwrap.dedent(BESIDE[name])
    returned, out, error = run(program, "cuda")
    assert (returned, out) == (0, ""), error
    assert "terminate" not in error
    assert "Traceback" not in error
