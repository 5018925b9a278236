from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from persistent_bfs.compiler import source_folder
from persistent_bfs.config import (
    ADVANCES,
    APPENDS,
    CLAIMS,
    DIRECTIONS,
    ENGINES,
    FRONTIERS,
    TIERS,
    Choice,
    Config,
    conflict,
)
from persistent_bfs.engines import engine_class
from persistent_bfs.engines.base import Engine
from persistent_bfs.options import Options

POLICY_TABLES = {
    "advance": ADVANCES,
    "append": APPENDS,
    "claim": CLAIMS,
    "direction": DIRECTIONS,
    "frontier": FRONTIERS,
    "tier": TIERS,
}


@pytest.mark.parametrize("folder", POLICY_TABLES)
def test_every_policy_file_has_one_row_and_every_row_its_file(folder: str) -> None:
    table: Mapping[str, Choice] = POLICY_TABLES[folder]
    files = {f"{folder}/{path.name}" for path in (source_folder() / folder).glob("*.cuh")}
    assert {choice.header for choice in table.values()} == files
    assert len({choice.header for choice in table.values()}) == len(table)


@pytest.mark.parametrize("folder", POLICY_TABLES)
def test_every_row_names_a_type_its_file_defines(folder: str) -> None:
    for choice in POLICY_TABLES[folder].values():
        space, _, name = choice.type.rpartition("::")
        text = (source_folder() / choice.header).read_text()
        assert re.search(rf"\bstruct {name}\b", text), choice
        assert f"namespace persistent_bfs::{space}" in text, choice


def test_every_loop_defines_its_kernels() -> None:
    loops = {path.name for path in source_folder().glob("loop_*.cuh")}
    assert {engine.loop for engine in ENGINES.values()} == loops
    sources = "".join(path.read_text() for path in source_folder().glob("*.cuh"))
    for engine in ENGINES.values():
        for kernel in engine.kernels:
            assert re.search(rf"\b{kernel}\(", sources), kernel


def test_every_device_file_opens_with_what_it_is() -> None:
    for path in source_folder().rglob("*.cuh"):
        lines = path.read_text().splitlines()
        assert lines[0].startswith("// "), path
        assert "#pragma once" in lines, path


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_has_its_class(name: str) -> None:
    assert issubclass(engine_class(name), Engine)


def test_engine_files_all_have_a_row() -> None:
    folder = source_folder().parent / "persistent_bfs" / "engines"
    if not folder.is_dir():
        pytest.skip("installed, not a clone: no persistent_bfs/engines beside cuda/")
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}
    assert files == set(ENGINES)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("engine", "fast", "unknown engine 'fast'; choose one of host_loop"),
        ("advance", "lane", "unknown advance 'lane'; choose one of thread, warp"),
        ("claim", "lock", "unknown claim 'lock'; choose one of cas, min, naive"),
        ("append", "push", "unknown append 'push'"),
        ("direction", "up", "unknown direction 'up'"),
        ("frontier", "heap", "unknown frontier 'heap'; choose one of sparse, dense"),
        ("offset_bits", 16, "it must be 32 or 64"),
        ("block_threads", 100, "multiple of 32"),
        ("block_threads", 2048, "multiple of 32"),
        ("block_threads", 0, "multiple of 32"),
    ],
)
def test_a_choice_that_is_in_no_table_is_refused(field: str, value: object, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        Config(**{"engine": "persistent", field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("advance", sorted(set(ADVANCES) - {"thread"}))
def test_an_impossible_pair_is_refused_with_the_reason(advance: str) -> None:
    with pytest.raises(ValueError, match=f"pull does not combine with the {advance} mapping: pull"):
        Config("persistent", advance=advance, direction="pull")


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({}, "push with the thread mapping .* dense frontier: the mapping goes by the queue"),
        ({"advance": "edge_list"}, "push with the edge_list mapping .* the arcs' near ends"),
        ({"advance": "topology", "append": "scan"}, "topology mapping does not .* scan append"),
        ({"direction": "pull", "append": "block"}, "pull with a dense frontier .* block append"),
        ({"direction": "auto", "append": "scan"}, "auto does not combine with the scan append"),
    ],
)
def test_what_a_bitmap_is_of_no_use_to_is_refused(choices: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Config("persistent", frontier="dense", **choices)  # type: ignore[arg-type]


def test_a_scan_append_is_refused_a_bitmap_whatever_else() -> None:
    problem = conflict("push", "thread", "scan", "dense")
    assert problem is not None
    assert "the scan append does not combine with a dense frontier: its slots are" in problem


def test_configs_are_values() -> None:
    assert Config("persistent") == Config("persistent")
    assert hash(Config("persistent")) == hash(Config("persistent"))
    assert Config("persistent").with_(advance="warp").advance == "warp"
    assert not Config("persistent", claim="naive").exact


def test_a_tier_needs_an_engine_that_has_one() -> None:
    with pytest.raises(ValueError, match="host_loop engine has no tiers; use engine persistent"):
        Config("host_loop", tier="block")


def test_fewer_than_two_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="tier_slots is 1; it must be at least 2"):
        Options(tier_slots=1)


@pytest.mark.parametrize("field", ["blocks", "levels_per_launch"])
def test_options_below_one_are_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is 0; it must be at least 1"):
        Options(**{field: 0})
