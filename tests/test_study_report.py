from __future__ import annotations

import copy
import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from study_data import made_study

from persistent_bfs.study import report, run
from persistent_bfs.study.comparison import differences, refuse_unequal
from persistent_bfs.study.report import render

KEPT = Path(__file__).parent / "study-emulated.json"

needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="Matplotlib is not installed"
)

# Words for time that no report of an emulated device may have.
TIMES = re.compile(r"\b(ms|µs|ns|microseconds?|milliseconds?|GB/s|speedup|faster|fastest)\b")


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return run.read(KEPT)


@pytest.fixture(scope="module")
def pages(kept: dict[str, Any]) -> dict[bool, dict[str, str]]:
    """The reports with plots, of the emulated device and of a GPU."""
    return {False: render(kept), True: render(made_study())}


class Page(HTMLParser):
    """What is looked for in a page: identifiers, references, tags left open, and the text."""

    VOID = frozenset({"meta", "br", "hr", "img", "link"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self._look(attributes)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._look(attributes)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "svg" not in self.open and "style" not in self.open:
            self.text.append(data)

    def _look(self, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("src", "href", "xlink:href", "data"):
                self.references.append(str(value))


@needs_matplotlib
@pytest.mark.parametrize("timed", [False, True])
def test_the_same_study_gives_the_same_bytes(
    pages: dict[bool, dict[str, str]], timed: bool
) -> None:
    first = pages[timed]
    again = render(json.loads(first["study.json"]))
    assert first == again
    if not timed:
        assert first["study.json"] == KEPT.read_text()


@needs_matplotlib
def test_another_process_gives_the_same_bytes(
    pages: dict[bool, dict[str, str]], tmp_path: Path
) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from persistent_bfs.study import report, run\n"
        "text = report.render(run.read(Path(sys.argv[1])))['report.html']\n"
        "Path(sys.argv[2]).write_text(text, encoding='utf-8')\n"
    )
    page = tmp_path / "report.html"
    subprocess.run([sys.executable, "-c", code, KEPT, page], check=True, timeout=120)
    assert page.read_text(encoding="utf-8") == pages[False]["report.html"]


@needs_matplotlib
@pytest.mark.parametrize("timed", [False, True])
def test_the_page_is_whole_and_needs_nothing_else(
    pages: dict[bool, dict[str, str]], timed: bool
) -> None:
    page = Page(pages[timed]["report.html"])
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    assert all(reference.startswith("#") for reference in page.references)
    known = set(page.ids)
    assert {reference[1:] for reference in page.references} <= known
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    figures = page.tags.count("figure")
    assert figures == page.tags.count("figcaption") == page.tags.count("svg")
    assert figures == (6 if timed else 3)
    assert page.tags.count("table") == page.tags.count("caption")


@needs_matplotlib
@pytest.mark.parametrize("timed", [False, True])
def test_figures_are_files_beside_that_markdown_shows(
    pages: dict[bool, dict[str, str]], timed: bool
) -> None:
    texts = pages[timed]
    shown = re.findall(r"^!\[Figure \d+\]\((.*)\)$", texts["report.md"], flags=re.M)
    assert shown == [name for name in texts if name.endswith(".svg")]
    for name in shown:
        root = ElementTree.fromstring(texts[name])
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        # It is the same that the page has in it.
        assert texts[name].partition("\n")[2].strip() in texts["report.html"]


@needs_matplotlib
def test_outliers_are_drawn_and_the_other_samples_are_one_bar() -> None:
    def segments(study: dict[str, Any]) -> list[tuple[int, int]]:
        paths = re.findall(r' d="([^"]*)"', render(study)["depth.svg"])
        dots = [(path.count("M"), path.count("h 0")) for path in paths]
        return [(bars, no_length) for bars, no_length in dots if bars > 1]

    study = made_study(noise=0.0)
    for row in study["searches"]:
        if row["sweep"] == "depth":
            row["device_ms"] = [time * (1 + i / 100) for i, time in enumerate(row["device_ms"])]
    engines = len(study["plan"]["engines"])
    assert segments(study) == [(15, 0)] * engines
    for row in study["searches"]:
        if (row["name"], row["engine"]) in {("path:8", "host_loop"), ("path:64", "host_loop")}:
            row["device_ms"][3] *= 2
    assert segments(study) == [(15, 0), (2, 2), *[(15, 0)] * (engines - 1)]


def test_what_the_emulated_device_counted_is_told_without_a_word_of_time(
    kept: dict[str, Any],
) -> None:
    texts = render(kept, plots=False)
    text = "".join(Page(texts["report.html"]).text) + texts["report.md"]
    assert not TIMES.findall(text)
    # The loop on the host launches and waits once a level; one kernel needs a barrier a level.
    rows = [line.split(" | ") for line in texts["report.md"].splitlines()]
    cells = {(row[0].strip("| "), row[1]): row[2:] for row in rows if len(row) == 9}
    assert cells["path:8", "host_loop"][0:1] + cells["path:8", "host_loop"][2:5] == [
        *("8", "8", "8", "0")
    ]
    assert cells["path:8", "persistent, no tier"][2:5] == ["1", "1", "9"]


def test_a_gpus_report_says_what_it_was_asked() -> None:
    text = render(made_study(), plots=False)["report.md"]
    # 0.085 dearer to begin with and 0.0155 cheaper a level.
    assert re.search(r"\bgraph_while beats host_loop from 2 levels on", text) is not None
    assert "clocks before | 1,980 MHz of 1,980" in text
    fixed = re.search(
        r"^\| persistent, no tier \| \S+ \((\S+) to (\S+)\) \| 2\.\d+ \(", text, flags=re.M
    )
    assert fixed is not None
    assert float(fixed[1]) < 30 < float(fixed[2])
    for title in ("Primitives", "Depth", "Width", "Model", "Who overtakes whom", "Graphs"):
        assert f"\n## {title}\n" in text


def test_captions_are_the_same_in_both_forms() -> None:
    texts = render(made_study(), plots=False)
    page = " ".join("".join(Page(texts["report.html"]).text).split())
    for caption in re.findall(r"^\*Table \d+\.\* (.*)$", texts["report.md"], flags=re.M):
        assert caption in page


def test_what_a_name_holds_is_text_and_not_markup(kept: dict[str, Any]) -> None:
    study = copy.deepcopy(kept)
    study["device"]["name"] = "<script>alert(1)</script> a|b"
    texts = render(study, plots=False)
    assert "<script>" not in texts["report.html"]
    assert "&lt;script&gt;" in texts["report.html"]
    assert "a\\|b" in texts["report.md"]


def test_without_matplotlib_one_line_says_what_to_install(
    kept: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"pip install 'matplotlib>=3\.8'"):
        render(kept)
    assert render(kept, plots=False)["report.md"].startswith("# The cost of a level")


def test_no_plot_asks_for_no_matplotlib() -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from persistent_bfs.study import report, run\n"
        "report.render(run.read(Path(sys.argv[1])), plots=False)\n"
        "assert not [name for name in sys.modules if name.startswith('matplotlib')]\n"
    )
    subprocess.run([sys.executable, "-c", code, KEPT], check=True, timeout=60)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"l2": "cold"}, "l2: warm and cold"),
        ({"quick": True}, "quick: no and yes"),
        ({"repeat": 9}, "repeat: 7 and 9"),
        ({"depths": ["path:1"]}, r"depths: 15 \(path:8192, path:16384\) and 1 \(path:1\)"),
    ],
)
def test_unequal_set_ups_are_refused_by_name(changes: dict[str, Any], words: str) -> None:
    here, there = made_study(), made_study()
    there["plan"] |= changes
    with pytest.raises(ValueError, match=f"cannot be compared: {words}$"):
        render(here, other=there, plots=False)


def test_a_stand_in_is_not_compared_with_the_file() -> None:
    here, there = made_study(), made_study()
    for row in there["searches"]:
        if row["name"] == "grid-512x512":
            row["arcs"] += 2
    told = differences(here, there)
    assert told == ["grid-512x512: arcs 1,046,528 and 1,046,530"]
    with pytest.raises(ValueError, match="arcs 1,046,528 and 1,046,530"):
        refuse_unequal(here, there)


def test_an_emulated_study_is_not_compared_with_a_gpus(kept: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="kind: cuda and emulated"):
        render(made_study(), other=kept, plots=False)


def test_two_machines_are_put_side_by_side() -> None:
    here, there = made_study(noise=0.0), made_study(noise=0.0)
    for row in there["searches"]:
        row["device_ms"] = [2 * sample for sample in row["device_ms"]]
    there["device"]["name"] = "a slower GPU"
    there["plan"]["engines"] = [*there["plan"]["engines"][:-1]]
    there["searches"] = [
        row for row in there["searches"] if row["engine"] in there["plan"]["engines"]
    ]
    text = render(here, other=there, names=("A", "B"), plots=False)["report.md"]
    assert "| what | A | B |" in text
    assert "| device | made GPU | a slower GPU |" in text
    assert f"in one of them only: {here['plan']['engines'][-1]}." in text
    ratios = re.findall(r"^\| grid-512x512 \| [\w, ]+ \| \S+ \| \S+ \| (\S+) \|$", text, flags=re.M)
    assert ratios == ["0.500"] * len(there["plan"]["engines"])


def test_counts_that_differ_are_told(kept: dict[str, Any]) -> None:
    there = copy.deepcopy(kept)
    assert "all counts are equal" in render(kept, other=there, plots=False)["report.md"]
    (row,) = [
        row
        for row in there["searches"]
        if (row["name"], row["engine"]) == ("path:8", "persistent, no tier")
    ]
    row["barriers"] += 1
    text = render(kept, other=there, plots=False)["report.md"]
    assert "| path:8 | persistent, no tier | barriers | 9 | 10 |" in text
    assert "all counts are equal" not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a study: line 1: Expecting value"),
        ("[1, 2]", "is not a study: it does not say that it is one"),
        ('{"format": "persistent_bfs study", "version": 99}', "is a study of version 99"),
        ('{"format": "persistent_bfs study", "version": 2}', "is not a whole study: it has no"),
    ],
)
def test_a_file_that_is_no_study_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "study.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        run.read(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "missing"), [("plan", "l2"), ("searches", "launches"), ("primitives", "points")]
)
def test_a_study_with_a_hole_is_refused(
    tmp_path: Path, kept: dict[str, Any], part: str, missing: str
) -> None:
    study = copy.deepcopy(kept)
    holed = study[part] if part == "plan" else study[part][0]
    del holed[missing]
    file = tmp_path / "study.json"
    file.write_text(run.dump(study))
    with pytest.raises(ValueError, match=f"is not a whole study: .*'{missing}'"):
        run.read(file)


def test_of_the_traces_the_baselines_and_the_fastest_are_kept() -> None:
    rows = [row for row in made_study(noise=0.0)["searches"] if row["sweep"] == "graphs"]
    traced = [row["engine"] for row in rows if row["trace"]]
    times = {row["engine"]: row["device_ms"][0] for row in rows}
    assert traced == ["host_loop", min(times, key=times.__getitem__)]


def test_by_width_no_line_is_drawn_through_several_regimes() -> None:
    study = made_study(noise=0.0)
    for row in study["searches"]:
        if row["engine"] == "persistent" and row["sweep"] == "width" and row["levels"] > 100:
            narrow, edges = row["levels"] // 3, row["edges"] // 5
            row["regimes"] = {
                "one block": {"levels": narrow, "edges": edges},
                "thread": {"levels": row["levels"] - narrow, "edges": row["edges"] - edges},
            }
    text = render(study, plots=False)["report.md"]
    rows = re.findall(r"^\| (.*) beats host_loop \| .* \| .* \| (.*) \| (.*) \|$", text, flags=re.M)
    by_model = {name: model for name, model, _ in rows}
    assert by_model["persistent"] == "-"
    assert by_model["persistent, no tier"] != "-"
    assert all(measured != "-" for _, _, measured in rows)


@pytest.mark.parametrize("kept", [0, 4, 6 * 5, 6 * 16 + 1])
def test_a_study_cut_short_is_told_as_far_as_it_goes(kept: int) -> None:
    study = made_study()
    missing = len(study["searches"]) - kept
    study["searches"] = study["searches"][:kept]
    study["incomplete"] = {
        "reason": "interrupted",
        "interrupted": True,
        "missing": missing,
        "of": missing + kept + 17,
    }
    texts = render(study, plots=importlib.util.find_spec("matplotlib") is not None)
    assert (
        f"not complete: {missing} of its {missing + kept + 17} measurements are missing "
        "(interrupted)"
    ) in texts["report.md"]
    assert ("\n## Depth\n" in texts["report.md"]) == (kept > 0)
    assert ("\n## Width\n" in texts["report.md"]) == (kept > 6 * 15)
    assert "grid barriers" not in texts["report.md"]  # a column of a device that only counts


def test_one_engine_alone_has_a_report_without_a_baseline() -> None:
    study = made_study(engines=["persistent"], noise=0.0)
    text = render(study, plots=False)["report.md"]
    assert "host_loop" not in text.replace("| host_loop, ms |", "")
    assert "## Who overtakes whom" not in text
