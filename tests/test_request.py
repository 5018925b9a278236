"""How the blocks of a persistent grid come to know what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from graphs import SMALL
from loops import LOOPS, how, open_beside_waiting_blocks

from persistent_bfs import BFS, Graph, Options, read_graph
from persistent_bfs.device.base import DeviceError
from persistent_bfs.device.emulated import EmulatedDevice, emulated_problem
from persistent_bfs.measure import find_problem

pytestmark = pytest.mark.skipif(
    emulated_problem() is not None, reason=f"no emulated device: {emulated_problem()}"
)

NOTHING_TOLD = 2**64 - 1
PERSISTENT = [loop for loop in LOOPS if loop.startswith("persistent")]


def opened(
    graph: Graph, loop: str, schedule: str = "roundrobin", seed: int = 0
) -> AbstractContextManager[BFS]:
    """A session of eight blocks of 64 threads."""
    return open_beside_waiting_blocks(loop, graph, 8, schedule=schedule, seed=seed)


@pytest.mark.parametrize(
    ("schedule", "seed"), [("roundrobin", 0), ("random", 1), ("adversarial", 2)]
)
@pytest.mark.parametrize("loop", PERSISTENT)
def test_one_block_tells_the_others(loop: str, schedule: str, seed: int) -> None:
    graph = read_graph("grid:20x20")
    source, max_depth = 217, 9
    word = source | max_depth << 32
    with opened(graph, loop, schedule, seed) as search:
        device = search.device
        assert isinstance(device, EmulatedDevice)
        device.watch("request", 0)
        result = search.run(source, max_depth=max_depth)
        assert find_problem(graph, result, max_depth=max_depth) is None
        told = list(device.watched)
    writes = [(each.block, each.thread, each.before, each.after) for each in told if each.writes]
    assert writes == [(0, 0, NOTHING_TOLD, word), (0, 0, word, NOTHING_TOLD)]
    heard = [(each.block, each.thread) for each in told if not each.writes and each.after == word]
    assert sorted(heard) == [(block, 0) for block in range(1, 8)]  # each once, and nobody else
    early = {each.block for each in told if not each.writes and each.after == NOTHING_TOLD}
    assert 0 not in early  # who looked before there was a word, and had to look again


@pytest.mark.parametrize("loop", ["persistent", "persistent+block"])
def test_one_block_alone_tells_nobody(loop: str) -> None:
    with (
        EmulatedDevice() as device,
        BFS(read_graph("path:40"), device=device, **how(loop), options=Options(blocks=1)) as search,
    ):
        assert search.shape.startswith("1 block of")
        device.watch("request", 0)
        assert find_problem(search.graph, search.run(3)) is None
        assert {each.after for each in device.watched} <= {NOTHING_TOLD}


@pytest.mark.parametrize("loop", PERSISTENT)
@pytest.mark.parametrize("name", ["one-vertex", "star-70", "two-components"])
def test_every_search_is_told_its_own(name: str, loop: str) -> None:
    graph = next(each.graph for each in SMALL if each.name == name)
    with opened(graph, loop) as search:
        for source in [*range(graph.vertices), 0]:
            assert find_problem(graph, search.run(source)) is None
            assert find_problem(graph, search.run(source, max_depth=1), max_depth=1) is None


# In an order in which some block looks for the word before the leader has written it.
LATE_LEADER = ("random", 1)


def test_a_word_that_is_not_forgotten_is_caught(
    seed_fault: Callable[[str, str, str], None],
) -> None:
    """The control: blocks that find the last search's word begin there too."""
    seed_fault("request.cuh", "{ store_relaxed(told_, NOTHING_TOLD); }", "{}")
    graph = read_graph("path:2000")
    with opened(graph, "persistent", *LATE_LEADER) as search:
        assert find_problem(graph, search.run(300)) is None
        # Block 1 resets vertex 300, and takes it for the source once more.
        assert search.run(1).distances[300] == 0


def test_a_search_that_falls_leaves_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_graph("path:2000")
    with opened(graph, "persistent", *LATE_LEADER) as search:
        stream, told = search.stream, search.device.buffer("request")

        def fall(_: object) -> None:
            stream.fill(told, 300)  # the leader has told of it
            raise DeviceError("kernel search_persistent: fell")

        with monkeypatch.context() as patch:
            patch.setattr(stream, "_launch_graph", fall)
            with pytest.raises(DeviceError, match="fell"):
                search.run(300)
        assert find_problem(graph, search.run(1)) is None
