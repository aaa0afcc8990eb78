"""A result as terminal text, HTML or JSON: tables, and the inference sequence of a document (appendix D).

The sequence shows, as the paper's figure does, the text with its mentions and the step at which each was decided;
where the gold is known, right (✓) and wrong (✗).
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from rich import box
from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

__all__ = [
    "Table",
    "bars_text",
    "linked_html",
    "linked_text",
    "page",
    "reliability_svg",
    "sequence_html",
    "sequence_record",
    "sequence_text",
    "verdict",
]


class Mention(Protocol):
    """What is drawn of a mention."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def entity(self) -> str | None: ...


class Document(Protocol):
    """What is drawn of a document."""

    @property
    def id(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def mentions(self) -> Sequence[Mention]: ...


class Resolution(Mention, Protocol):
    """What is drawn of a resolution."""

    @property
    def text(self) -> str: ...
    @property
    def probability(self) -> float: ...
    @property
    def step(self) -> int: ...
    @property
    def alternatives(self) -> Sequence[tuple[str, float]]: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def url(self) -> str | None: ...


class Resolutions(Protocol):
    """What is drawn of the resolutions of a document, one a mention; documents.py has what looks so."""

    @property
    def document(self) -> Document: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Resolution]: ...


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a heading; the first column is left-aligned, the others right-aligned."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def to_rich(self) -> Group:
        """Return the table for the terminal, its title above and its note below."""
        table = RichTable()
        for place, column in enumerate(self.columns):
            table.add_column(column, justify="left" if place == 0 else "right")
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))  # as Text: a title may hold [brackets]
        note = [Text(self.note, style="dim")] if self.note else []
        return Group(Text("\n" + self.title, style="bold"), *([table] if self.rows else []), *note)

    def to_markdown(self) -> str:
        """Return the table in Markdown, with its title above and its note below."""
        lines = [f"**{self.title}**", "", _markdown_row(self.columns)]
        lines.append("|---" + "|---:" * (len(self.columns) - 1) + "|")
        lines += [_markdown_row(row) for row in self.rows]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])

    def to_html(self) -> str:
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>\n" for row in self.rows
        )
        note = f"<p class=note>{html.escape(self.note)}</p>" if self.note else ""
        return f"<h2>{html.escape(self.title)}</h2>\n<table><tr>{head}</tr>\n{body}</table>{note}\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def verdict(mention: Mention, resolution: Resolution) -> str:
    """Return `right`, `wrong`, or `open` where no gold is known."""
    if mention.entity is None:
        return "open"
    return "right" if resolution.entity == mention.entity else "wrong"


MARKS = {"right": "✓", "wrong": "✗", "open": ""}
STYLES = {"right": "green", "wrong": "red", "open": "cyan"}


def _in_text_order(resolutions: Resolutions) -> list[tuple[Mention, Resolution]]:
    pairs = zip(resolutions.document.mentions, resolutions, strict=True)
    return sorted(pairs, key=lambda pair: (pair[0].start, pair[0].end))


def _pieces(resolutions: Resolutions) -> Iterator[tuple[str, tuple[Mention, Resolution] | None]]:
    """Yield the text in pieces: what stands before a mention, with that mention; at last the rest.

    A mention that overlaps the one before it is not among them: the lists below a text have it.
    """
    text, position = resolutions.document.text, 0
    for mention, resolution in _in_text_order(resolutions):
        if mention.start >= position:
            yield text[position : mention.start], (mention, resolution)
            position = mention.end
    yield text[position:], None


def _in_step_order(resolutions: Resolutions) -> list[tuple[Mention, Resolution]]:
    """In the order of decisions; mentions without an answer come last."""
    return sorted(_in_text_order(resolutions), key=lambda pair: (pair[1].entity is None, pair[1].step))


def _step(resolution: Resolution) -> str:
    return "–" if resolution.entity is None else str(resolution.step)


def _numbers(resolutions: Resolutions) -> dict[tuple[int, int], str]:
    """Number the mentions, by their spans, in the order in which they were decided."""
    decided = _in_step_order(resolutions)
    return {(r.start, r.end): "–" if r.entity is None else str(number) for number, (_, r) in enumerate(decided, 1)}


# What is told of mentions beside their entities, where it is known of any.
TOLD = {"kind": "kind", "known_by": "known by", "wikidata": "Wikidata"}


def linked_text(resolutions: Resolutions) -> Group:
    """Return a linked text for the terminal: mentions underlined and numbered as decided, then a table of them."""
    numbers, shown, told = _numbers(resolutions), Text(), _told(resolutions)
    columns = ("", "mention", "entity", "p", *(TOLD[name] for name in told), "link")
    table = RichTable(*columns, box=box.SIMPLE, header_style="dim")
    for plain, marked in _pieces(resolutions):
        shown.append(plain)
        if marked is not None:
            mention, resolution = marked
            style = "dim" if resolution.entity is None else "cyan"
            shown.append(resolution.text, style=f"underline {style}")
            shown.append(f"[{numbers[mention.start, mention.end]}]", style=f"bold {style}")
    for mention, resolution in _in_step_order(resolutions):
        entity = Text(resolution.entity or _why(resolution), style="dim" if resolution.entity is None else "")
        # Folded where the terminal is narrow: a link that is cut is none.
        link = Text(resolution.url or "", f"link {resolution.url}" if resolution.url else "", overflow="fold")
        chance = f"{resolution.probability:.2f}" if resolution.entity is not None else ""
        more = (getattr(resolution, name) or "" for name in told)
        table.add_row(Text(numbers[mention.start, mention.end]), Text(resolution.text), entity, chance, *more, link)
    if not len(resolutions):
        return Group(shown, Text("\nno mention was found", style="dim"))
    return Group(shown, table)


def _told(resolutions: Resolutions) -> list[str]:
    return [name for name in TOLD if any(getattr(resolution, name) is not None for resolution in resolutions)]


def linked_html(resolutions: Resolutions) -> str:
    """Return a linked text as a fragment of HTML without scripts, for notebooks: links, numbered as decided."""
    numbers, parts, told = _numbers(resolutions), ["<div><p>"], _told(resolutions)
    for plain, marked in _pieces(resolutions):
        parts += [_escaped(plain), "" if marked is None else _link(marked[1], marked[1].text, numbers)]
    columns = ("", "mention", "entity", "p", *(TOLD[name] for name in told))
    parts.append("</p>\n<table><tr>" + "".join(f"<th>{column}</th>" for column in columns) + "</tr>\n")
    for mention, resolution in _in_step_order(resolutions):
        why = f"<i>{html.escape(_why(resolution))}</i>"
        answer = _link(resolution, resolution.entity) if resolution.entity is not None else why
        chance = f"{resolution.probability:.2f}" if resolution.entity is not None else ""
        more = (html.escape(getattr(resolution, name) or "") for name in told)
        cells = (numbers[mention.start, mention.end], html.escape(resolution.text), answer, chance, *more)
        parts.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n")
    return "".join([*parts, "</table></div>\n"])


def _link(resolution: Resolution, shown: str, numbers: Mapping[tuple[int, int], str] | None = None) -> str:
    number = "" if numbers is None else f"<sup>{numbers[resolution.start, resolution.end]}</sup>"
    if resolution.entity is None:
        return f'<u title="{html.escape(_open(resolution))}">{html.escape(shown)}</u>{number}'
    tip = html.escape(f"{resolution.entity}, {resolution.probability:.2f}")
    return f'<a href="{html.escape(resolution.url or "")}" title="{tip}">{html.escape(shown)}</a>{number}'


def _why(resolution: Resolution) -> str:
    """Say why a mention has no entity: where none of its candidates fits, which one fits best."""
    reason: str = resolution.reason or "no candidates"
    if reason != "none fits" or not resolution.alternatives:
        return reason
    title, chance = resolution.alternatives[0]
    return f"{reason}: {title} has {chance:.2f}"


def _open(resolution: Resolution) -> str:
    """Say why a mention has no entity, and what it names where that is known."""
    reason = _why(resolution)
    return reason if resolution.kind is None else f"{resolution.kind}, {reason}"


def sequence_text(resolutions: Resolutions) -> Text:
    """Return the inference sequence for the terminal: the text, then one line a decision."""
    shown = Text()
    for plain, marked in _pieces(resolutions):
        shown.append(plain)
        if marked is not None:
            kind = verdict(*marked)
            shown.append(marked[1].text, style=f"underline {STYLES[kind]}")
            shown.append(f"[{_step(marked[1])}{MARKS[kind]}]", style=f"bold {STYLES[kind]}")
    shown.append("\n\n")
    for mention, resolution in _in_step_order(resolutions):
        kind = verdict(mention, resolution)
        line = f"{_step(resolution):>4} {MARKS[kind]:1} {resolution.text} → {_answer(resolution)}"
        shown.append(line + (f"   gold: {mention.entity}" if kind == "wrong" else "") + "\n", style=STYLES[kind])
    return shown


def _answer(resolution: Resolution) -> str:
    if resolution.entity is None:
        return f"no answer ({_open(resolution)})"
    return f"{resolution.entity}  {resolution.probability:.3f}"


def sequence_record(resolutions: Resolutions) -> dict[str, Any]:
    """Return the inference sequence as a JSON object: the decisions in their order."""
    return {
        "id": resolutions.document.id,
        "decisions": [
            {
                "step": resolution.step,
                "start": resolution.start,
                "end": resolution.end,
                "text": resolution.text,
                "entity": resolution.entity,
                "probability": resolution.probability,
                "gold": mention.entity,
                "verdict": verdict(mention, resolution),
            }
            for mention, resolution in _in_step_order(resolutions)
        ],
    }


def sequence_html(resolutions: Resolutions, heading: str) -> str:
    """Return the inference sequence as a section of a page: a slider walks through the steps."""
    steps = max((resolution.step for resolution in resolutions), default=0)
    parts = [
        f"<section class=sequence><h2>{html.escape(heading)}</h2>\n",
        f"<label>step <input type=range min=0 max={steps} value={steps}> <output>{steps}</output></label>\n<p>",
    ]
    for plain, marked in _pieces(resolutions):
        parts += [_escaped(plain), "" if marked is None else _mark(*marked)]
    parts.append("</p>\n<ol>")
    for mention, resolution in _in_step_order(resolutions):
        kind = verdict(mention, resolution)
        gold = f" <i>gold: {html.escape(mention.entity or '')}</i>" if kind == "wrong" else ""
        parts.append(
            f"<li class={kind} data-step={resolution.step} value={resolution.step}>{MARKS[kind]} "
            f"{html.escape(resolution.text)} → {html.escape(_answer(resolution))}{gold}</li>\n"
        )
    return "".join([*parts, "</ol></section>\n"])


def _mark(mention: Mention, resolution: Resolution) -> str:
    kind = verdict(mention, resolution)
    tip = _answer(resolution) + (f" (gold: {mention.entity})" if kind == "wrong" else "")
    return (
        f'<mark class={kind} data-step={resolution.step} title="{html.escape(tip)}">'
        f"{html.escape(resolution.text)}<sup>{_step(resolution)}</sup></mark>"
    )


def _escaped(text: str) -> str:
    return html.escape(text).replace("\n", "<br>\n")


def bars_text(rows: Iterable[tuple[str, float, float, int]], width: int = 40) -> str:
    """Return a reliability diagram in characters: `█` to the accuracy, `│` at the mean probability."""
    lines = []
    for label, accuracy, confidence, count in rows:
        if count == 0:
            lines.append(f"{label:>9} {'·' * width}   none")
            continue
        cells = list("█" * round(accuracy * width) + "·" * (width - round(accuracy * width)))
        cells[min(width - 1, int(confidence * width))] = "│"
        lines.append(f"{label:>9} {''.join(cells)} {accuracy:6.1%} right at {confidence:6.1%} ({count:,})")
    return "\n".join(lines)


def reliability_svg(rows: Sequence[tuple[str, float, float, int]], size: int = 260) -> str:
    """Return a reliability diagram as an SVG: bars of accuracy over mean probability, the diagonal is perfect."""
    width = size / max(1, len(rows))
    bars = "".join(
        f'<rect x="{place * width:.1f}" y="{size * (1 - accuracy):.1f}" width="{width - 2:.1f}" '
        f'height="{size * accuracy:.1f}"><title>{html.escape(label)}: {accuracy:.1%} of {count}</title></rect>'
        for place, (label, accuracy, _, count) in enumerate(rows)
        if count
    )
    points = [(confidence, accuracy) for _, accuracy, confidence, count in rows if count]
    line = "".join(
        f'<line x1="{a * size:.1f}" y1="{size * (1 - b):.1f}" x2="{c * size:.1f}" y2="{size * (1 - d):.1f}"/>'
        for (a, b), (c, d) in pairwise(points)
    )
    return (
        f'<svg viewBox="0 0 {size} {size}" width="{size}" height="{size}" role="img" aria-label="reliability diagram">'
        f'<line class="perfect" x1="0" y1="{size}" x2="{size}" y2="0"/>{bars}{line}</svg>\n'
    )


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ccc; }
th:first-child, td:first-child { text-align: left; } .note { color: #555; }
svg { border: 1px solid #ccc; margin: 1rem 0; }
svg rect { fill: #9bbfe0; } svg line { stroke: #245; stroke-width: 2; } svg .perfect { stroke: #aaa; stroke-width: 1; }
mark { background: none; text-decoration: underline; } mark sup { font-weight: bold; }
.right { color: #11702a; } .wrong { color: #b00020; } .open { color: #0b57a4; } .hidden { color: inherit; }
.hidden sup { display: none; } li.hidden { visibility: hidden; }
"""
SCRIPT = """
for (const section of document.querySelectorAll(".sequence")) {
  const slider = section.querySelector("input");
  slider.addEventListener("input", () => {
    section.querySelector("output").textContent = slider.value;
    for (const shown of section.querySelectorAll("[data-step]"))
      shown.classList.toggle("hidden", Number(shown.dataset.step) > Number(slider.value));
  });
}
"""


def page(title: str, sections: Iterable[str]) -> str:
    """Return a self-contained HTML page."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n'
        f"<body><h1>{html.escape(title)}</h1>\n{''.join(sections)}<script>{SCRIPT}</script></body></html>\n"
    )
