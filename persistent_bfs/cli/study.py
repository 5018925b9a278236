"""``persistent-bfs study``: the launch-overhead study, measured or told anew from what was kept."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from persistent_bfs.cli.options import (
    AT_LEAST_1,
    device_option,
    engines_option,
    json_option,
    l2_option,
    verbose_option,
)
from persistent_bfs.cli.output import Report, deliver, progress_bar, published, try_folder
from persistent_bfs.cli.program import INTERRUPTED, NO_DEVICE, UNWRITABLE, WRONG, bad_input, say
from persistent_bfs.cli.searches import kernel_device
from persistent_bfs.cli.streams import OutputError

if TYPE_CHECKING:
    from persistent_bfs.study.run import Study

FOLDER = "persistent-bfs-study"

GRAVEST_FIRST = (WRONG, UNWRITABLE, NO_DEVICE, INTERRUPTED)

KEPT = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("study")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help=f"Folder to write into; default: {FOLDER}, or with --from where that file is.",
)
@click.option("--quick", is_flag=True, help="The short form: under 2 minutes on a GPU.")
@click.option("--from", "kept", type=KEPT, help="Measure nothing: tell a kept study.json anew.")
@click.option(
    "--against", type=KEPT, help="Put another study.json beside it, if it was measured alike."
)
@engines_option("Engines to measure.")
@click.option(
    "--graphs",
    metavar="A,B,...|none",
    help="Graphs to search besides the sweeps: names of the suite, files or specs.",
)
@click.option("--repeat", type=AT_LEAST_1, help="Timed searches a row.")
@l2_option
@click.option("--plots/--no-plots", default=True, help="Plots need Matplotlib.")
@device_option
@verbose_option
@json_option
def command(
    out: Path | None,
    quick: bool,
    kept: Path | None,
    against: Path | None,
    engines: list[str],
    graphs: str | None,
    repeat: int | None,
    l2: str,
    plots: bool,
    device: str,
    as_json: bool,
) -> int:
    """Measure what launches, barriers and levels cost here, and write a report about it.

    Writes report.html (one page that needs nothing else), report.md with its plots beside it, and
    study.json. On the emulated device there are counts in place of times. If it is interrupted,
    what was measured until then is kept and reported.
    """
    from persistent_bfs.study.report import (
        HTML_FILE,
        MARKDOWN_FILE,
        STUDY_FILE,
        plots_problem,
        render,
    )
    from persistent_bfs.study.run import dump, read
    from persistent_bfs.study.sweeps import FAILED, WRONG_ANSWER

    # All that can be refused is refused before anything is measured.
    problem = plots_problem() if plots else None
    if problem is not None:
        raise click.ClickException(problem)
    if kept is not None:
        refuse_measuring()
    folder = out or (Path(FOLDER) if kept is None else kept.parent)
    try_folder(folder, STUDY_FILE, HTML_FILE, MARKDOWN_FILE)
    with bad_input():
        other = None if against is None else read(against)
        if kept is None:
            how = {"quick": quick, "l2": l2, "repeat": repeat, "engines": engines}
            study = measure_study(device, other, graphs=graph_names(graphs), **how)
        else:
            study = read(kept)
        mine = "this one" if kept is None else str(kept)
    lost = [] if kept is not None else write_files(folder, {STUDY_FILE: dump(study)})
    with bad_input():
        files = render(study, other=other, names=(mine, str(against)), plots=plots)
    if kept is None:
        del files[STUDY_FILE]  # written before anything that can fail
    lost += write_files(folder, files)
    names = [STUDY_FILE, *files] if kept is None else list(files)
    report = summarise(study, folder, [name for name in names if name not in lost])
    found = [deliver(report, "study", as_json=as_json)]
    if lost:
        say("lost", f"of {folder}: {', '.join(lost)}")
        if STUDY_FILE in lost:
            keep_elsewhere(STUDY_FILE, dump(study))
        found.append(UNWRITABLE)
    refused = [row for row in study["searches"] if row["refused"]]
    codes = {WRONG_ANSWER: WRONG, FAILED: NO_DEVICE}
    for kind, code in codes.items():
        for row in (row for row in refused if row["refused"].startswith(f"{kind}: ")):
            say(kind, f"{row['engine']} on {row['name']}{row['refused'][len(kind) :]}")
            found.append(code)
    cut = study["incomplete"]
    if cut is not None:
        say("incomplete", f"{cut['missing']} of {cut['of']} measurements missing: {cut['reason']}")
        found.append(INTERRUPTED if cut["interrupted"] else NO_DEVICE)
    return next((code for code in GRAVEST_FIRST if code in found), found[0])


def keep_elsewhere(name: str, text: str) -> None:
    """Write what took long to measure among the temporary files, if it can be, and say where."""
    with suppress(OSError, OutputError):
        path = Path(tempfile.mkdtemp(prefix=f"{FOLDER}-")) / name
        with published(path) as file:
            file.write(text)
        say("note", f"{name} was kept as {path}")


def write_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write files by their names, as many as can be; return the names of those that cannot."""
    lost = []
    with suppress(OSError):  # each file says why not
        folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        try:
            with published(folder / name) as file:
                file.write(text)
        except OutputError as error:
            say("error", error)
            lost.append(name)
    return lost


def graph_names(asked: str | None) -> list[str] | None:
    """The graphs that ``--graphs`` names; each that is none of the suite's is tried at once."""
    from persistent_bfs.io import read_graph
    from persistent_bfs.study.suite import CASES

    if asked is None:
        return None
    names = [] if asked == "none" else [name.strip() for name in asked.split(",")]
    for name in names:
        if name not in CASES:
            try:
                read_graph(name)
            except (OSError, ValueError) as error:
                raise ValueError(f"{error}; the suite's graphs are {', '.join(CASES)}") from error
    return list(dict.fromkeys(names))


def refuse_measuring() -> None:
    """Refuse options that say how to measure where nothing is measured."""
    context = click.get_current_context()
    for name in ("quick", "engines", "graphs", "repeat", "l2", "device"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.ClickException(f"--from measures nothing: leave out --{name}")


def measure_study(device: str, other: Study | None, **how: Any) -> Study:
    """Take a study; if it is to be put beside another one, only if that was planned alike.

    ``how`` is what `persistent_bfs.study.plan.Plan.of` takes besides the kind of device.
    """
    from persistent_bfs.study.comparison import refuse_unequal
    from persistent_bfs.study.plan import Plan
    from persistent_bfs.study.run import take

    with kernel_device("study", device) as (opened, chosen), progress_bar() as progress:
        plan = Plan.of(chosen.kind, **how)
        if other is not None:
            refuse_unequal({"plan": plan.summary(), "searches": []}, other)
        if chosen.kind != "cuda":
            say("note", "the emulated device tells no time: the study counts instead")
        return take(opened, plan, progress=progress)


def summarise(study: Study, folder: Path, files: list[str]) -> Report:
    """What was found, in a few figures; where a device told no time, counts alone."""
    from persistent_bfs.study.model import analyse

    analysis = analyse(study)
    report: dict[str, Any] = {
        "device": study["device"],
        "plan": study["plan"],
        "incomplete": study["incomplete"],
        "folder": str(folder),
        "files": files,
        "searches": sum(not row["refused"] for row in study["searches"]),
        "refused": [
            f"{row['engine']} on {row['name']}: {row['refused']}"
            for row in study["searches"]
            if row["refused"]
        ],
        "models": None,
        "paths": None,
        "levels": None,
        "best": None,
    }
    if analysis is not None:
        report["best"] = analysis.best
        report["models"] = [
            {
                "engine": engine,
                "regimes": [regime for regime in model.regimes if regime],
                "worst": model.worst,
                "typical": model.typical,
                "coefficients_ms": [
                    {
                        "term": found.term,
                        "regime": found.regime,
                        "value": found.value,
                        "low": _finite(found.low),
                        "high": _finite(found.high),
                    }
                    for found in model.coefficients
                ],
            }
            for engine, model in analysis.models.items()
        ]
        report["paths"] = [
            {
                "engine": engine,
                "us_per_level": 1e3 * line.level,
                "r_squared": line.r_squared,
                "fastest_us_per_level": 1e3 * least.level,
                "fastest_r_squared": least.r_squared,
            }
            for engine, (line, least) in analysis.lines.items()
        ]
        report["levels"] = [
            {
                "engine": engine,
                "us_per_level": split.level,
                "barrier_us": split.barrier,
                "loads_us": split.loads,
                "rest_us": split.rest,
            }
            for engine, split in analysis.splits.items()
        ]
    return report


def _finite(value: float) -> float | None:
    return None if value == float("inf") else value
