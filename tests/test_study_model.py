from __future__ import annotations

import copy
import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import study_data
from study_data import (
    EMPTY_LEVELS,
    FURTHER_BLOCKS,
    cost,
    grid_row,
    made_study,
    path_row,
    search,
    true_time,
)

from persistent_bfs.config import ENGINES
from persistent_bfs.study import model
from persistent_bfs.study.model import analyse, fit, solve, wins
from persistent_bfs.study.plan import VARIANTS

SHAPES = [path_row(1 << k) for k in range(15)] + [
    grid_row(1 << k, 8193 - (1 << k)) for k in range(13)
]


def made_rows(engine: str, noise: float, seed: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [search(shape, engine, noise, rng) for shape in SHAPES]


@pytest.mark.parametrize("engine", VARIANTS)
def test_a_model_is_recovered_from_exact_data(engine: str) -> None:
    rows = made_rows(engine, 0.0, 1)
    found = fit(engine, rows)
    values = [found.value(term) for term in (model.FIXED, model.LEVEL, model.EDGE)]
    assert values == pytest.approx(cost(engine), rel=1e-6)
    empty, block = EMPTY_LEVELS.get(engine, 0.0), FURTHER_BLOCKS.get(engine, 0.0)
    assert found.value(model.EMPTY) == pytest.approx(empty, rel=1e-6, abs=1e-9)
    assert found.value(model.BLOCK) == pytest.approx(block, rel=1e-6, abs=1e-12)
    assert found.worst < 1e-9
    assert all(found.predict(row) == pytest.approx(row["device_ms"][0]) for row in rows)


@pytest.mark.parametrize("engine", EMPTY_LEVELS)
def test_without_empty_levels_the_model_is_off_where_a_batch_ends(engine: str) -> None:
    rows = made_rows(engine, 0.0, 1)
    blind = fit(engine, [row | {"batch": 1} for row in rows])
    assert model.EMPTY not in {found.term for found in blind.coefficients}
    assert blind.worst > 0.03
    assert fit(engine, rows).worst < 1e-9


def test_levels_of_a_tier_have_no_further_blocks() -> None:
    rows = made_rows("persistent", 0.0, 1)
    found = fit("persistent", rows, in_tier=("warp",))
    assert model.BLOCK not in {coefficient.term for coefficient in found.coefficients}
    assert model.BLOCK in {c.term for c in fit("persistent", rows).coefficients}


def test_the_line_through_the_paths_and_what_it_accounts_for() -> None:
    rows = [row for row in made_rows("persistent, no tier", 0.0, 1) if row["sweep"] == "depth"]
    line = model.straight_line(rows)
    assert line is not None
    fixed, level, edge = cost("persistent, no tier")
    assert line.level == pytest.approx(level + 2 * edge, rel=1e-6)
    assert line.fixed == pytest.approx(fixed - 2 * edge, rel=1e-6)
    assert line.r_squared == pytest.approx(1)
    # Half of the variance of these three is beside the line: 0, 1, 0 has none along it.
    flat = [row | {"device_ms": [time]} for row, time in zip(rows, (1.0, 3.0, 1.0), strict=False)]
    for row, levels in zip(flat, (1, 2, 3), strict=True):
        row["levels"] = levels
    line = model.straight_line(flat)
    assert line is not None
    assert (line.level, line.r_squared) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert model.straight_line(rows[:2]) is None


def test_intervals_cover_what_is_true_about_as_often_as_they_say() -> None:
    true = dict(zip((model.FIXED, model.LEVEL, model.EDGE), cost("persistent"), strict=True))
    covered = dict.fromkeys(true, 0)
    runs = 100
    for seed in range(runs):
        found = fit("persistent", made_rows("persistent", 0.05, seed), in_tier=("warp",))
        for coefficient in found.coefficients:
            assert coefficient.low <= coefficient.value <= coefficient.high
            covered[coefficient.term] += (
                coefficient.low <= true[coefficient.term] <= coefficient.high
            )
    # 95 % of 100, give or take four standard deviations of a binomial.
    for term, times in covered.items():
        assert times >= 95 - 4 * 2.2, term


def test_intervals_shrink_with_the_noise() -> None:
    wide, narrow = (
        fit("persistent", made_rows("persistent", noise, 3)).coefficients for noise in (0.05, 0.005)
    )
    for one, other in zip(wide, narrow, strict=True):
        assert one.high - one.low > 5 * (other.high - other.low)


def test_a_coefficient_that_would_be_negative_is_zero_and_its_interval_reaches_up() -> None:
    # Time falls with the second feature: only zero is left for it.
    values, intervals = solve([[1, x] for x in range(1, 9)], [10 - 0.1 * x for x in range(1, 9)])
    assert values[1] == 0
    assert intervals[1, 0] == 0
    assert intervals[1, 1] > 0
    assert 9 < values[0] < 10


def test_errors_are_relative() -> None:
    # Three cheap points and one dear one that is off by a tenth: absolute errors would follow it.
    features = [[1.0, 1.0], [1.0, 2.0], [1.0, 3.0], [1.0, 10_000.0]]
    times = [11.0, 12.0, 13.0, 1.1 * 10_010.0]
    values, _ = solve(features, times)
    relative = np.asarray(features) @ values / times - 1
    assert np.abs(relative[:3]).max() < 0.05


def test_as_many_points_as_coefficients_leave_intervals_open() -> None:
    _, intervals = solve([[1.0, 1.0], [1.0, 2.0]], [3.0, 4.0])
    assert np.isinf(intervals[:, 1]).all()
    assert (intervals[:, 0] == 0).all()


def test_too_few_searches_are_refused() -> None:
    rows = made_rows("persistent", 0.0, 1)[:2]
    with pytest.raises(ValueError, match="persistent: 2 searches are too few"):
        fit("persistent", rows)


def with_regimes(engine: str) -> list[dict[str, Any]]:
    """Searches whose narrow levels cost less than the others, both exactly."""
    rows = made_rows(engine, 0.0, 1)
    for number, row in enumerate(rows):
        wide = 0 if row["sweep"] == "depth" else row["levels"] * (number - 15) // 13
        narrow = row["levels"] - wide
        edges = row["edges"] // (number % 3 + 1) if wide else row["edges"]
        row["regimes"] = {"one block": {"levels": narrow, "edges": edges}}
        if wide:
            row["regimes"]["thread"] = {"levels": wide, "edges": row["edges"] - edges}
        time = 0.03 + 0.0005 * narrow + 0.003 * wide + 1e-6 * edges + 4e-7 * (row["edges"] - edges)
        row["device_ms"] = [time] * 3
    return rows


def test_regimes_are_told_apart_where_one_model_does_not_do() -> None:
    rows = with_regimes("persistent")
    assert fit("persistent", rows).worst > 0.15
    found = fit("persistent", rows, split=True)
    assert found.worst < 1e-6
    assert found.regimes == ("one block", "thread")
    assert found.value(model.LEVEL, "one block") == pytest.approx(0.0005, rel=1e-3)
    assert found.value(model.LEVEL, "thread") == pytest.approx(0.003, rel=1e-3)
    assert found.value(model.EDGE, "one block") == pytest.approx(1e-6, rel=1e-3)
    assert found.predict(rows[-1]) == pytest.approx(rows[-1]["device_ms"][0])
    path = max((row for row in rows if row["sweep"] == "depth"), key=lambda row: row["levels"])
    slope = 0.0005 + 1e-6 * path["edges"] / path["levels"]
    expected = [0.03 + slope * levels for levels in range(1, 6)]
    assert model.depth_times(found, path, 5) == pytest.approx(expected, rel=1e-3)
    unknown = rows[-1] | {"regimes": {"warp": {"levels": 1, "edges": 1}}}
    assert found.predict(unknown) is None


def test_where_one_line_is_under_another_is_what_trying_all_finds() -> None:
    rng = random.Random(7)
    kinds = set()
    for _ in range(500):
        here, there = ([rng.randrange(3) for _ in range(6)] for _ in range(2))
        found = wins(np.array(here), np.array(there))
        ahead = {
            x for first, last in found.ranges for x in range(first, 7 if last is None else last + 1)
        }
        assert ahead == {x for x in range(1, 7) if here[x - 1] < there[x - 1]}, (here, there)
        # Ranges are as long as they can be, and only one that ends at the end is open.
        for (_, last), (first, _) in pairwise(found.ranges):
            assert last is not None
            assert first > last + 1
        kinds.add(len(found.ranges))
    assert kinds == {0, 1, 2, 3}


def test_break_even_of_made_engines_is_that_of_their_costs() -> None:
    study = made_study(noise=0.0)
    analysis = analyse(study)
    assert analysis is not None
    levels = range(1, 3000)
    # A level of two edges, as of a path that has no ends.
    paths = [{"levels": n, "edges": 2 * n} for n in levels]
    for name in VARIANTS:
        if name == model.BASELINE:
            continue
        found = []
        for engine in (name, model.BASELINE):
            (row,) = [
                row
                for row in study["searches"]
                if (row["name"], row["engine"]) == ("path:16384", engine)
            ]
            path = row | {"levels": 10, "edges": 20}
            path["regimes"] = {"warp": {"levels": 10, "edges": 20}}
            found.append(model.depth_times(analysis.simple[engine], path, len(levels)))
            true = [true_time(path, engine) for path in paths]
            assert found[-1] == pytest.approx(true, rel=1e-4), engine
        mine, base = (
            [true_time(path, engine) for path in paths] for engine in (name, model.BASELINE)
        )
        first = next(n for n in levels if mine[n - 1] < base[n - 1])
        assert wins(*found).ranges[0][0] == first, name


def test_widths_have_the_blocks_of_their_grids() -> None:
    study = made_study(noise=0.0)
    analysis = analyse(study)
    assert analysis is not None
    name = "persistent, no tier"
    grids = [r for r in study["searches"] if (r["sweep"], r["engine"]) == ("width", name)]
    times = model.width_times(analysis.simple[name], grids, 2048)
    for row in grids:
        # The widths between two grids are read off a line; at a grid's own it is exact, but for
        # the edges that a vertex of a narrow one lacks.
        frontier = row["reached"] / row["levels"]
        if frontier == int(frontier) and row["edges"] > 2_000_000:
            assert times[int(frontier) - 1] == pytest.approx(row["device_ms"][0], rel=0.02)
    narrow, wide = times[0] / 8192, times[-1] / 8192
    assert wide - narrow > FURTHER_BLOCKS[name] * 500


def test_the_best_engine_loses_where_its_fixed_cost_shows() -> None:
    study = made_study(noise=0.0)
    analysis = analyse(study)
    assert analysis is not None
    assert analysis.best is not None
    own, own_level, _ = cost(analysis.best)
    assert own_level == min(cost(name)[1] for name in VARIANTS)
    lost = {
        row["name"]: fast["engine"] for row, fast in model.losses(study["searches"], analysis.best)
    }
    # A search of one level is won by the least of fixed cost and a level.
    cheapest = min(VARIANTS, key=lambda name: true_time({"levels": 1, "edges": 0}, name))
    assert lost["path:1"] == cheapest
    assert "path:16384" not in lost
    assert own > cost(cheapest)[0]


def test_a_level_is_split_by_what_the_engine_does_between_two() -> None:
    study = made_study(noise=0.0)
    analysis = analyse(study)
    assert analysis is not None
    loads = (5 * 250 + 2 * 300) / 1e3
    for name, how in VARIANTS.items():
        row = ENGINES[how["engine"]]
        split = analysis.splits[name]
        assert split.level == pytest.approx(1e3 * (cost(name)[1] + 2 * cost(name)[2]), rel=1e-4)
        if row.cooperative:
            assert split.barrier == pytest.approx(1.0, rel=0.02), name
        assert split.loads == pytest.approx(loads, rel=0.02)
        assert split.rest == pytest.approx(split.level - split.barrier - split.loads)
    assert analysis.splits[model.BASELINE].barrier == pytest.approx(17, rel=0.02)
    (turning,) = [name for name, row in ENGINES.items() if row.while_nodes]
    # A turn of so many nodes was measured; where none was, it is one of one node and some more.
    assert analysis.splits[turning].barrier == pytest.approx((4.0 + 16) / 16, rel=0.02)
    for row in study["primitives"]:
        if row["primitive"] == "while_turn":
            row["points"] = row["points"][:1]
    analysis = analyse(study)
    assert analysis is not None
    assert analysis.splits[turning].barrier == pytest.approx((15 * 1.5 + 5.0) / 16, rel=0.02)


def test_what_a_level_costs_is_read_off_searches_without_empty_levels() -> None:
    def rows(*levels: int) -> list[dict[str, Any]]:
        # Two microseconds a level, and as much for each that is issued past the end.
        issued = [16 * -(-count // 16) for count in levels]
        return [
            {"levels": count, "batch": 16, "device_ms": [0.1 + 2e-3 * all_of_them] * 5}
            for count, all_of_them in zip(levels, issued, strict=True)
        ]

    assert model.level_slope(rows(1, 2, 4, 8, 16, 32)) == pytest.approx(2.0)
    # With one such search only, all have to do.
    assert model.level_slope(rows(2, 4, 8, 16)) == pytest.approx(0.0)


def test_a_node_costs_what_a_dependent_one_does_where_that_was_measured() -> None:
    study = made_study(noise=0.0)
    analysis = analyse(study)
    assert analysis is not None
    assert analysis.splits["graph_unrolled"].barrier == pytest.approx(1.5, rel=0.02)
    for row in list(study["primitives"]):
        if row["primitive"] == "graph_device":
            half = copy.deepcopy(row)
            half["primitive"] = "graph_dependent"
            for point in half["points"]:
                point["samples"] = [sample / 2 for sample in point["samples"]]
            study["primitives"].append(half)
    analysis = analyse(study)
    assert analysis is not None
    assert analysis.splits["graph_unrolled"].barrier == pytest.approx(0.75, rel=0.02)
    assert analysis.splits["graph_unrolled"].barrier_by == "a graph's dependent node"
    assert analysis.splits["graph_while"].barrier == pytest.approx((4.0 + 16) / 16, rel=0.02)


@pytest.mark.parametrize(
    ("mapping", "shape", "barrier"),
    [
        ("one warp", "132 blocks of 256 threads", 0.0),
        ("one block", "132 blocks of 256 threads", 0.015),
        ("one cluster", "128 blocks of 256 threads in clusters of 16", 0.36),
        ("one cluster", "128 blocks of 256 threads in clusters of 2", 0.22),
    ],
)
def test_in_a_tier_the_barrier_is_the_tiers(mapping: str, shape: str, barrier: float) -> None:
    study = made_study(noise=0.0)
    figures = model.Figures(study["primitives"])
    rows = [
        row
        | {
            "barriers": 2,
            "shape": shape,
            "regimes": {mapping: {"levels": row["levels"], "edges": row["edges"]}},
        }
        for row in study["searches"]
        if row["sweep"] == "depth" and row["engine"] == "persistent"
    ]
    split = model.split_level("persistent", study["engines"]["persistent"], rows, figures)
    assert split is not None
    assert split.barrier == pytest.approx(barrier, rel=0.02)
    assert split.loads == pytest.approx(0.25, rel=0.02)


def test_without_times_there_is_no_analysis() -> None:
    study = made_study(kind="emulated")
    assert analyse(study) is None


def test_of_a_study_cut_short_there_is_what_there_is() -> None:
    study = made_study(noise=0.0)
    searches = study["searches"]
    for kept in (0, 5, 6 * 4, len(searches) - 7):
        analysis = analyse(study | {"searches": searches[:kept]})
        assert analysis is not None
        assert (analysis.simple != {}) == (kept >= 6 * 3)


def test_a_refused_search_is_left_out() -> None:
    study = made_study(noise=0.0)
    last = next(iter(reversed(VARIANTS)))
    kept = []
    for row in study["searches"]:
        if row["engine"] == last and row["sweep"] == "width":
            same = ("sweep", "name", "graph", "vertices", "arcs", "source", "engine")
            kept.append({name: row[name] for name in same} | {"refused": "too large"})
        else:
            kept.append(row)
    study["searches"] = kept
    analysis = analyse(study)
    assert analysis is not None
    assert len(analysis.simple[last].residuals) == 15


def test_the_made_costs_are_of_engines_that_there_are() -> None:
    assert len(VARIANTS.keys() & study_data.COSTS.keys()) >= 3
