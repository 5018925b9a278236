"""Whatever is no legal value is refused by an error that names the argument, before any work."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from graphs import path

from persistent_bfs import (
    ADVANCES,
    APPENDS,
    BFS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    FRONTIERS,
    ORDERS,
    TIERS,
    Graph,
    Options,
    arguments,
    bfs,
    options,
    session,
)
from persistent_bfs.device import DEVICES, SCHEDULES, check_device, emulated_problem
from persistent_bfs.reorder import reorder

FOUR = path(4)


class NoArray:
    """As the arrays of a GPU's memory: NumPy may not have it."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


@pytest.fixture(autouse=True)
def no_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Let no device be opened: those that were asked for."""
    opened: list[Any] = []

    def open_device(*arguments: Any, **how: Any) -> Any:
        opened.append(arguments)
        pytest.fail(f"opened a device: {arguments}, {how}")

    monkeypatch.setattr(session, "open_device", open_device)
    yield opened
    assert opened == []


SESSION = [
    ("engine", None, TypeError, "engine is None; it must be a str"),
    ("engine", 1, TypeError, "engine is 1; it must be a str"),
    ("engine", ["persistent"], TypeError, "engine is .*; it must be a str"),
    ("engine", "persistant", ValueError, "unknown engine 'persistant'; choose one of auto, host_"),
    ("engine", "persistant", ValueError, "did you mean 'persistent'?"),
    ("engine", "", ValueError, "unknown engine ''; choose one of auto, host_loop"),
    ("engine", "walk", ValueError, "unknown engine 'walk'"),
    ("device", None, TypeError, "device is None; it must be a name or an open Device"),
    ("device", 3, TypeError, "device is 3; it must be a name"),
    ("device", Path("cuda"), TypeError, "device is .*; it must be a name"),
    (
        "device",
        "gpu",
        ValueError,
        "unknown device 'gpu'; choose one of auto, cuda, emulated",
    ),
    ("device", "emulatd", ValueError, "did you mean 'emulated'"),
    ("device", "cuda:", ValueError, "unknown device 'cuda:'; .*cuda:N is GPU N"),
    ("device", "cuda:-1", ValueError, "unknown device 'cuda:-1'"),
    ("device", "cuda:٣", ValueError, "unknown device 'cuda:٣'"),
    ("device", "cuda:99999999999", ValueError, "unknown device 'cuda:99999999999'"),
    ("device", "emulated:0", ValueError, "unknown device 'emulated:0'"),
    ("predecessors", "yes", TypeError, "predecessors is 'yes'; it must be a bool"),
    ("predecessors", None, TypeError, "predecessors is None; it must be a bool"),
    ("predecessors", 1, TypeError, "predecessors is 1; it must be a bool"),
    ("time_limit", "1", TypeError, "time_limit is '1'; it must be a number of seconds above 0"),
    ("time_limit", True, TypeError, "time_limit is True"),
    ("time_limit", np.True_, TypeError, "time_limit is .*True"),
    ("time_limit", 1j, TypeError, "time_limit is 1j"),
    ("time_limit", Decimal(1), TypeError, "time_limit is Decimal"),
    ("time_limit", 0, ValueError, "time_limit is 0; it must be a number of seconds above 0"),
    ("time_limit", -math.inf, ValueError, "time_limit is -inf"),
    ("time_limit", math.nan, ValueError, "time_limit is nan"),
    ("time_limit", -(10**400), ValueError, "time_limit is -1000"),
    ("options", {}, TypeError, "options is {}; it must be an Options"),
    ("options", "fast", TypeError, "options is 'fast'; it must be an Options"),
    ("engin", "persistent", TypeError, "unknown argument 'engin'"),
    ("engin", "persistent", TypeError, "did you mean 'engine'"),
    ("block_thread", 64, TypeError, "unknown argument 'block_thread'.*'block_threads'"),
]

OPTIONS = [
    ("advance", None, TypeError, "advance is None; it must be a str"),
    ("advance", "wrap", ValueError, "unknown advance 'wrap'; .*did you mean 'warp'"),
    ("direction", 1, TypeError, "direction is 1; it must be a str"),
    ("direction", "up", ValueError, "unknown direction 'up'; choose one of push, pull, auto"),
    ("claim", None, TypeError, "claim is None; it must be a str"),
    ("claim", "lock", ValueError, "unknown claim 'lock'; choose one of cas, min, naive"),
    ("append", b"warp", TypeError, "append is b'warp'; it must be a str"),
    ("append", "push", ValueError, "unknown append 'push'"),
    ("frontier", ["dense"], TypeError, "frontier is .*; it must be a str"),
    ("frontier", "heap", ValueError, "unknown frontier 'heap'; choose one of sparse, dense"),
    ("tiers", None, TypeError, "tiers is None; it must be a str"),
    ("tiers", ("block",), TypeError, "tiers is .*; it must be a str"),
    ("tiers", "blok", ValueError, "unknown tier 'blok'; .*did you mean 'block'"),
    ("tiers", "auto,block", ValueError, "unknown tier 'auto'"),
    ("tiers", "none,block", ValueError, "tiers 'none,block': none allows no other"),
    ("schedule", 0, TypeError, "schedule is 0; it must be a str"),
    ("schedule", "fair", ValueError, "unknown schedule 'fair'; choose one of roundrobin"),
    ("block_threads", 64.0, TypeError, "block_threads is 64.0; it must be an integer"),
    ("block_threads", "64", TypeError, "block_threads is '64'; it must be an integer"),
    ("block_threads", True, TypeError, "block_threads is True; it must be an integer"),
    ("block_threads", np.True_, TypeError, "block_threads is .*True"),
    ("block_threads", 33, ValueError, "block_threads is 33; it must be a multiple of 32"),
    ("block_threads", 0, ValueError, "block_threads is 0; it must be at least 32"),
    ("block_threads", 1056, ValueError, "block_threads is 1056; it must be at most 1024"),
    ("block_queue", None, TypeError, "block_queue is None; it must be an integer"),
    ("block_queue", 0, ValueError, "block_queue is 0; it must be at least 1"),
    ("block_queue", 2049, ValueError, "block_queue is 2049; it must be at most 2048"),
    ("levels_per_launch", 1.0, TypeError, "levels_per_launch is 1.0; it must be an integer"),
    ("levels_per_launch", 0, ValueError, "levels_per_launch is 0; it must be at least 1"),
    ("levels_per_launch", 65537, ValueError, "levels_per_launch is 65537; it must be at most 6553"),
    ("blocks", "1", TypeError, "blocks is '1'; it must be an integer"),
    ("blocks", -1, ValueError, "blocks is -1; it must be at least 1"),
    ("blocks", 2**31, ValueError, "blocks is 2147483648; it must be at most 2147483647"),
    ("tier_slots", 2.5, TypeError, "tier_slots is 2.5; it must be an integer"),
    ("tier_slots", 1, ValueError, "tier_slots is 1; it must be at least 2"),
    ("tier_slots", 2**31, ValueError, "tier_slots is 2147483648; it must be at most"),
    ("seed", None, TypeError, "seed is None; it must be an integer"),
    ("seed", -1, ValueError, "seed is -1; it must be at least 0"),
    ("seed", 2**64, ValueError, "seed is 18446744073709551616; it must be at most"),
]

OF_BFS = [
    ("trace", 1, TypeError, "trace is 1; it must be a bool"),
    ("trace", None, TypeError, "trace is None; it must be a bool"),
    ("reorder", 3, TypeError, "reorder is 3; it must be a str or a Reordering"),
    ("reorder", True, TypeError, "reorder is True; it must be a str or a Reordering"),
    ("reorder", "rmc", ValueError, "unknown order 'rmc'; choose one of none, rcm.*mean 'rcm'"),
    ("reorder", reorder(path(4), "bfs"), ValueError, "reorder: this reordering is of another"),
]

DEPTHS = [
    (1.5, TypeError, "max_depth is 1.5; it must be an integer of at least 0"),
    ("1", TypeError, "max_depth is '1'; it must be an integer"),
    (True, TypeError, "max_depth is True; it must be an integer"),
    (np.True_, TypeError, "max_depth is .*True"),
    (-1, ValueError, "max_depth is -1; it must be at least 0"),
]

SOURCES = [
    (True, TypeError, "source: a vertex id must be an integer, got True of type bool"),
    (np.False_, TypeError, "source: a vertex id must be an integer, got .*False"),
    (1.5, TypeError, "source: a vertex id must be an integer, got 1.5 of type float"),
    (np.float64(1), TypeError, "source: a vertex id must be an integer"),
    ("a", TypeError, "source: a vertex id must be an integer, got 'a' of type str"),
    ("1", TypeError, "source: a vertex id must be an integer, got '1' of type str"),
    (None, TypeError, "source: a vertex id must be an integer, got None of type NoneType"),
    ([0], TypeError, r"source: a vertex id must be an integer, got \[0\]"),
    (np.array([0, 1]), TypeError, "source: a vertex id must be an integer"),
    (-1, ValueError, "source: vertex -1 is out of range: ids are 0 to 3"),
    (4, ValueError, "source: vertex 4 is out of range: ids are 0 to 3"),
    (np.uint64(2**63), ValueError, "source: vertex 9223372036854775808 is out of range"),
]

GRAPHS = [
    (None, TypeError, "a graph is needed: .*; got NoneType"),
    (3, TypeError, "a graph is needed: .*; got int"),
    ([[0, 1]], TypeError, "a graph is needed: .*; got list"),
    ({0: [1]}, TypeError, "a graph is needed: .*; got dict"),
    (Graph, TypeError, "a graph is needed: .*; got type"),
    (np.zeros(3), TypeError, r"a graph is needed: .*; got ndarray of shape \(3,\)"),
    ((1, 2, 3), TypeError, "a graph is needed: .*; got tuple"),
    (([0, 1], [0.5]), TypeError, "col_indices must hold integers"),
    ((None, [0]), ValueError, "row_offsets must be one-dimensional"),
    (("a", "b"), ValueError, "row_offsets must be one-dimensional"),
    (([0, [1]], [0]), ValueError, "row_offsets cannot be made a NumPy array"),
    ((NoArray(), [0]), TypeError, "row_offsets cannot be made a NumPy array: Implicit"),
    (np.zeros((2, 3)), ValueError, "a graph needs a square matrix, this one is 2 x 3"),
    (networkx.Graph(), ValueError, "at least one vertex"),
]


@pytest.mark.parametrize(("name", "value", "error", "words"), [*SESSION, *OPTIONS, *OF_BFS])
def test_what_a_session_cannot_be_asked_for(
    name: str, value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        BFS(FOUR, **{name: value})


@pytest.mark.parametrize(("name", "value", "error", "words"), [*SESSION, *OPTIONS])
def test_what_one_search_cannot_be_asked_for(
    name: str, value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        bfs(FOUR, 0, **{name: value})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("trace", "trace is an argument of BFS, not of bfs"),
        ("reorder", "reorder is an argument of BFS, not of bfs"),
        ("maxdepth", "unknown argument 'maxdepth'; .*did you mean 'max_depth'"),
    ],
)
def test_what_is_an_argument_of_a_session_alone(name: str, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        bfs(FOUR, 0, **{name: True})


@pytest.mark.parametrize(("name", "value", "error", "words"), OPTIONS)
def test_what_is_no_option(name: str, value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Options(**{name: value})


@pytest.mark.parametrize(("value", "error", "words"), DEPTHS)
def test_what_is_no_depth(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bfs(FOUR, 0, max_depth=value)


@pytest.mark.parametrize(("value", "error", "words"), SOURCES)
def test_what_is_no_source(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bfs(FOUR, value)


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        ("d", ValueError, "source: 'd' is no vertex label"),
        (1.5, TypeError, "source: a vertex id must be an integer, got 1.5"),
        ([], TypeError, "source: a vertex id must be an integer"),
        (3, ValueError, "source: vertex 3 is out of range"),
    ],
)
def test_what_is_no_node(value: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        bfs(networkx.path_graph(["a", "b", "c"]), value)


@pytest.mark.parametrize(("value", "error", "words"), GRAPHS)
@pytest.mark.parametrize("search", [BFS, lambda graph: bfs(graph, 0)], ids=["BFS", "bfs"])
def test_what_is_no_graph(
    search: Callable[[Any], Any], value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        search(value)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Graph.from_edges([0], [1], vertices="3"), TypeError, "vertices is '3'"),
        (lambda: Graph.from_edges([0], [1], vertices=2.0), TypeError, "vertices is 2.0"),
        (lambda: Graph.from_edges([0], [1], vertices=True), TypeError, "vertices is True"),
        (lambda: Graph.from_edges([0], [1], vertices=-1), ValueError, "vertices is -1"),
        (lambda: Graph.from_edges([0], [1], directed=1), TypeError, "directed is 1"),
        (lambda: Graph.from_edges([0], [1], directed=None), TypeError, "directed is None"),
        (lambda: Graph.from_edges([0], [1], labels=3), TypeError, "labels must be a seq.*got int"),
        (lambda: Graph.from_edges([0], [1], labels=[1, 2]), TypeError, "labels must be a sequence"),
        (lambda: Graph.from_edges([0], [1], labels="ab"), TypeError, "labels must be a .*got str"),
        (
            lambda: Graph.from_edges([0], [1], labels=np.array(["a", 1], dtype=object)),
            TypeError,
            "labels must be a sequence of str, and one is none",
        ),
        (lambda: Graph.from_edges([0], [1], name=3), TypeError, "name is 3; it must be a str"),
        (lambda: Graph.from_edges([0.5], [1]), TypeError, "sources must hold integers"),
        (lambda: Graph.from_edges([0], ["1"]), TypeError, "targets must hold integers"),
        (lambda: Graph.from_edges([[0], [1, 2]], [1]), ValueError, "sources cannot be made a Num"),
        (lambda: Graph.from_edges([True], [False]), TypeError, "sources must hold integers"),
        (lambda: Graph.from_arrays([0, 0], [], directed="no"), TypeError, "directed is 'no'"),
        (lambda: Graph.from_arrays([0, 0], [], name=None), TypeError, "name is None"),
        (lambda: Graph.from_arrays([0, 0], [], labels=[b"a"]), TypeError, "labels must be a seque"),
        (lambda: Graph.from_scipy(np.eye(2), directed=0), TypeError, "directed is 0"),
        (lambda: Graph.from_scipy(np.eye(2), drop_zeros="a"), TypeError, "drop_zeros is 'a'"),
        (lambda: Graph.from_scipy([["a"]]), TypeError, "a matrix must hold numbers"),
        (lambda: Graph.from_scipy([[1], [1, 2]]), ValueError, "matrix cannot be made a NumPy arr"),
        (lambda: Graph.from_networkx(networkx.path_graph(2), name=1), TypeError, "name is 1"),
        (lambda: Graph.from_networkx(None), TypeError, "a NetworkX graph is needed, got NoneType"),
        (lambda: FOUR.permuted([0, 1]), ValueError, "an order of 4 vertices is needed"),
        (lambda: FOUR.permuted("0123"), ValueError, "order must be one-dimensional"),
        (lambda: FOUR.with_offsets(64.0), TypeError, "bits is 64.0; it must be an integer"),
        (lambda: FOUR.with_offsets("64"), TypeError, "bits is '64'"),
        (lambda: FOUR.with_offsets(16), ValueError, "bits: offsets have 32 or 64 bits, not 16"),
        (lambda: FOUR.label_of("0"), TypeError, "a vertex id must be an integer, got '0'"),
        (lambda: FOUR.label_of(4), ValueError, "vertex 4 is out of range"),
        (
            lambda: Graph(FOUR.row_offsets, FOUR.col_indices, 0),
            TypeError,
            "directed is 0; it must be a bool",
        ),
        (
            lambda: Graph(FOUR.row_offsets, FOUR.col_indices, False, nodes=3),
            TypeError,
            "nodes must be a sequence of hashable objects",
        ),
        (
            lambda: Graph(FOUR.row_offsets, FOUR.col_indices, False, nodes=[[], [], [], []]),
            TypeError,
            "nodes must be a sequence of hashable objects",
        ),
    ],
)
def test_what_no_graph_is_made_of(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_a_run_checks_before_it_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with BFS(FOUR, device="reference") as search:
        monkeypatch.setattr(session, "bfs_reference", lambda *_, **__: pytest.fail("searched"))
        for value, error, words in SOURCES:
            with pytest.raises(error, match=words):
                search.run(value)
        for value, error, words in DEPTHS:
            with pytest.raises(error, match=words):
                search.run(0, max_depth=value)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 1000, f"unknown engine '{'x' * 76}...; choose one of auto"),
        ("a\nb", r"unknown engine 'a\\nb'; choose"),
        (np.zeros((9, 9)), r"engine is array\(\[\[0., 0., .*\.\.\.; it must be a str"),
        (10**5000, "engine is a value of type int; it must be a str"),
        (Unprintable(), "engine is a value of type Unprintable; it must be a str"),
    ],
    ids=["long", "lines", "array", "digits", "unprintable"],
)
def test_a_message_is_one_line_that_is_not_too_long(value: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        BFS(FOUR, engine=value)
    assert len(str(caught.value)) < 250
    assert "\n" not in str(caught.value)
    with pytest.raises((TypeError, ValueError), match=r"^source: ") as caught:
        bfs(FOUR, value)
    assert len(str(caught.value)) < 250


def test_nothing_is_read_for_arguments_that_are_wrong() -> None:
    with pytest.raises(ValueError, match="unknown engine"):
        bfs("nowhere.mtx", 0, engine="fast")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="max_depth is"):
        bfs("nowhere.mtx", 0, max_depth=1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown device"):
        BFS("nowhere.mtx", device="gpu")


@pytest.mark.parametrize("source", [3, np.int64(3), np.uint8(3), np.int32(3), np.array(3)])
@pytest.mark.parametrize("depth", [1, np.int64(1), np.uint8(1)])
def test_integers_of_numpy_are_integers(
    source: Any, depth: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    found = bfs(FOUR, source, max_depth=depth, device="reference")
    assert found.distances.tolist() == [-1, -1, 1, 0]
    assert (found.source, type(found.source)) == (3, int)


def test_legal_values_of_any_kind_are_kept_as_pythons_own() -> None:
    made = Options(block_threads=np.int64(64), seed=np.uint64(2**64 - 1), blocks=np.array(3))
    assert (made.block_threads, made.seed, made.blocks) == (64, 2**64 - 1, 3)
    kinds = {type(value) for value in (made.block_threads, made.seed, made.blocks)}
    assert kinds == {int}
    graph = Graph.from_edges([0], [1], directed=np.True_, vertices=np.int8(3))
    assert graph.directed is True
    assert graph.vertices == 3


def test_flags_of_numpy_are_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with BFS(FOUR, device="reference", predecessors=np.True_, trace=np.False_) as search:
        assert search.config.predecessors is True
        assert search.config.trace is False
        assert search.run(0).predecessors.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [
        (None, None),
        (1, 1.0),
        (Fraction(1, 2), 0.5),
        (np.float32(0.5), 0.5),
        (np.int64(2), 2.0),
        (math.inf, None),
        (10**400, None),
    ],
)
def test_times_that_are_limits(seconds: Any, limit: float | None) -> None:
    assert arguments.check_seconds("time_limit", seconds) == limit


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("auto", ("auto", 0)),
        ("cuda", ("cuda", 0)),
        ("cuda:0", ("cuda", 0)),
        ("cuda:7", ("cuda", 7)),
    ],
)
def test_names_of_devices(name: str, meant: tuple[str, int]) -> None:
    assert check_device(name) == meant


LITERALS = {
    "EngineName": ("auto", *ENGINES),
    "AdvanceName": tuple(ADVANCES),
    "DirectionName": tuple(DIRECTIONS),
    "ClaimName": tuple(CLAIMS),
    "AppendName": tuple(APPENDS),
    "FrontierName": tuple(FRONTIERS),
    "OrderName": tuple(ORDERS),
    "ScheduleName": SCHEDULES,
    "DeviceName": DEVICES,
}


@pytest.mark.parametrize("name", LITERALS)
def test_the_types_are_the_tables(name: str) -> None:
    assert typing.get_args(getattr(options, name)) == LITERALS[name]


def test_every_literal_is_compared_with_a_table() -> None:
    literals = {
        name for name, kind in vars(options).items() if typing.get_origin(kind) is typing.Literal
    }
    assert literals == set(LITERALS)


def test_the_keywords_are_the_options_fields() -> None:
    choices = typing.get_type_hints(options.Choices)
    assert choices == typing.get_type_hints(Options)
    assert list(choices) == [field.name for field in fields(Options)]
    assert options.Choices.__required_keys__ == frozenset()


@pytest.mark.parametrize("function", [BFS, bfs])
def test_a_signature_shows_what_a_user_needs(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    named = [name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD]
    assert len(named) <= 8
    assert named[0] == "graph"
    assert {"engine", "device", "predecessors", "time_limit", "options"} <= set(named)
    documented = inspect.getdoc(function) or ""
    if function is BFS:
        assert [name for name in named if f"\n{name} : " not in documented] == []
        places = [documented.index(f"\n{name} : ") for name in named]
        assert places == sorted(places)
        assert places[-1] < documented.index("\n**choices\n") < documented.index("\nRaises\n")


def test_the_options_document_every_field() -> None:
    documented = inspect.getdoc(Options) or ""
    listed = ", ".join(
        line.partition(" : ")[0] for line in documented.splitlines() if line and line[0].islower()
    )
    assert [field.name for field in fields(Options) if field.name not in listed] == []


@pytest.mark.skipif(emulated_problem() is not None, reason=str(emulated_problem()))
def test_what_is_legal_in_itself_may_be_more_than_a_device_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from persistent_bfs.device.base import LaunchTooLarge

    monkeypatch.undo()
    for how in ({"blocks": 2**31 - 1}, {"tier_slots": 2**31 - 1, "tiers": "block"}):
        with pytest.raises(LaunchTooLarge):
            BFS(FOUR, engine="persistent", device="emulated", **how)
    assert TIERS["block"].exists


def test_forms_of_one_graph_are_one_graph(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    file = tmp_path / "path.txt"
    file.write_text("0 1\n1 2\n2 3\n")
    matrix = scipy.sparse.csr_array(FOUR.to_scipy())
    forms = (
        *(FOUR, networkx.path_graph(4), matrix, scipy.sparse.csr_matrix(matrix), matrix.toarray()),
        *((FOUR.row_offsets, FOUR.col_indices), (FOUR.row_offsets.tolist(), [1, 0, 2, 1, 3, 2])),
        *(file, str(file), "path:4"),
    )
    for form in forms:
        assert bfs(form, 1, device="reference").distances.tolist() == [1, 0, 1, 2]
