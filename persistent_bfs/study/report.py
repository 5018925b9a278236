"""The report as text: one HTML page that needs nothing else, and the same in Markdown.

The page has its figures in it; Markdown shows them from files of their own.
"""

from __future__ import annotations

import html
import importlib.metadata
import importlib.util
from collections.abc import Iterable, Mapping
from typing import Any

from persistent_bfs.study.blocks import Block, Heading, Items, Paragraph, Picture, Table
from persistent_bfs.study.document import compose
from persistent_bfs.study.run import dump
from persistent_bfs.version import __version__

Row = Mapping[str, Any]

HTML_FILE, MARKDOWN_FILE, STUDY_FILE = "report.html", "report.md", "study.json"

NEEDS_MATPLOTLIB = (
    "the report's plots need Matplotlib: pip install 'matplotlib>=3.8', or ask for none by "
    "--no-plots"
)

XML = '<?xml version="1.0" encoding="utf-8"?>\n'

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #111; background: #fff; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums;
  min-width: 34rem; }
th, td { padding: 0.15rem 0.5rem; border-bottom: 1px solid #ddd; text-align: right;
  vertical-align: top; }
th { vertical-align: bottom; } td:not(.word), td:first-child { white-space: nowrap; }
th.word, td.word { text-align: left; }
caption, figcaption { caption-side: bottom; text-align: left; color: #444; font-size: 0.9rem;
  padding: 0.4rem 0; max-width: 60rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
figure { margin: 1.5rem 0; } svg { width: 100%; max-width: 62rem; height: auto; }
@media print {
  body { font-size: 10pt; margin: 0; max-width: none; }
  figure, tr, h2 { break-inside: avoid; } h2 { break-after: avoid; }
  .wide { overflow: visible; } table { font-size: 7.5pt; } thead { display: table-header-group; }
}
"""


def plots_problem() -> str | None:
    """Why no plots can be drawn here, in one line; None if they can."""
    return None if importlib.util.find_spec("matplotlib") is not None else NEEDS_MATPLOTLIB


def drawn_with(plots: bool) -> str:
    """What a report's bytes depend on besides the study: the libraries that draw and fit."""
    names = ("numpy", "scipy", *(("matplotlib",) if plots else ()))
    versions = (f"{name} {importlib.metadata.version(name)}" for name in names)
    return f"persistent_bfs {__version__}, {', '.join(versions)}"


def draw_all(blocks: Iterable[Block]) -> dict[str, str]:
    """Every figure as an SVG element, by its name."""
    pictures = (block for block in blocks if isinstance(block, Picture))
    return {picture.name: picture.draw(picture.name) for picture in pictures}


def to_html(blocks: Iterable[Block], drawn: Mapping[str, str] | None) -> str:
    """One page: style and the figures ``drawn`` are in it, and it asks no network for anything."""
    parts: list[str] = []
    title, figures, tables = "", 0, 0
    for block in blocks:
        if isinstance(block, Heading):
            title = title or block.text
            parts.append(f"<h{block.depth}>{_escape(block.text)}</h{block.depth}>")
        elif isinstance(block, Paragraph):
            parts.append(f"<p>{_escape(block.text)}</p>")
        elif isinstance(block, Items):
            items = "\n".join(f"<li>{_escape(text)}</li>" for text in block.texts)
            parts.append(f"<ul>\n{items}\n</ul>")
        elif isinstance(block, Table):
            tables += 1
            parts.append(_html_table(block, tables))
        elif drawn is not None:
            figures += 1
            caption = f"<figcaption>Figure {figures}. {_escape(block.caption)}</figcaption>"
            parts.append(f"<figure>\n{drawn[block.name]}\n{caption}\n</figure>")
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{_escape(drawn_with(drawn is not None))}">\n'
        f"<title>{_escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _escape(text: str) -> str:
    return html.escape(text, quote=True)


def _html_table(table: Table, number: int) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        kinds = (' class="word"' if table.has_words(i) else "" for i in range(len(table.head)))
        told = (
            f"<{tag}{kind}>{_escape(cell)}</{tag}>" for kind, cell in zip(kinds, cells, strict=True)
        )
        return f"<tr>{''.join(told)}</tr>"

    body = "\n".join(row(cells, "td") for cells in table.rows)
    caption = f"Table {number}. {_escape(table.caption)}"
    return (
        f'<div class="wide">\n<table>\n<caption>{caption}</caption>\n'
        f"<thead>\n{row(table.head, 'th')}\n</thead>\n<tbody>\n{body}\n</tbody>\n</table>\n</div>"
    )


def to_markdown(blocks: Iterable[Block], *, plots: bool = True) -> str:
    """The same text and tables; figures are files beside, and their captions."""
    parts: list[str] = []
    figures = tables = 0
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.depth} {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(block.text)
        elif isinstance(block, Items):
            parts.append("\n".join(f"- {text}" for text in block.texts))
        elif isinstance(block, Table):
            tables += 1
            parts += [_markdown_table(block), f"*Table {tables}.* {block.caption}"]
        elif plots:
            figures += 1
            parts.append(f"![Figure {figures}]({block.name}.svg)")
            parts.append(f"*Figure {figures}.* {block.caption}")
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "".join("---|" if table.has_words(i) else "---:|" for i in range(len(table.head)))
    return "\n".join([row(table.head), rule, *map(row, table.rows)])


def render(
    study: Row,
    *,
    other: Row | None = None,
    names: tuple[str, str] = ("this", "the other"),
    plots: bool = True,
) -> dict[str, str]:
    """The text of ``study.json``, ``report.html``, ``report.md`` and the SVGs, by the file's name.

    The same study and versions of the libraries always give the same text.

    Parameters
    ----------
    study : dict
        As `persistent_bfs.study.run.take` returns it.
    other : dict, optional
        Another one, to be put beside it.
    names : (str, str)
        What the two are called.
    plots : bool
        Whether to draw the plots, which takes Matplotlib.

    Raises
    ------
    ValueError
        ``other`` was not measured alike, or plots cannot be drawn here.
    """
    problem = plots_problem() if plots else None
    if problem is not None:
        raise ValueError(problem)
    blocks = compose(study, other, names=names)
    drawn = draw_all(blocks) if plots else None
    return {
        STUDY_FILE: dump(dict(study)),
        HTML_FILE: to_html(blocks, drawn),
        MARKDOWN_FILE: to_markdown(blocks, plots=plots),
        **{f"{name}.svg": f"{XML}{svg}\n" for name, svg in (drawn or {}).items()},
    }
