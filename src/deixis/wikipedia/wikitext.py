r"""Wikitext to plain text with links at exact character offsets, in passes that each remove one kind of markup.

    '''Bus'''es{{cn}} carry [[Passenger|people]] and [[dog]]s.<ref>…</ref>
    → Buses carry people and dogs.      links: [12, 18) Passenger, [23, 27) Dog

Links are read last, when all other markup is gone, so that only this pass has to count characters. What must be
shown as it stands (`<nowiki>`, `&#91;`) is hidden behind Unicode noncharacters until then. Every pass is linear in
the length of the page, whatever the page holds.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from deixis.languages.wikis import DISAMBIGUATION, REDIRECT
from deixis.wikipedia.articles import Link
from deixis.wikipedia.titles import Kind, Site

__all__ = ["PlainText", "parse", "redirect_target"]


@dataclass(frozen=True, slots=True)
class PlainText:
    """A page's text, its links in order, whether it is a disambiguation page, and links passed over, by reason."""

    text: str
    links: tuple[Link, ...] = ()
    disambiguation: bool = False
    passed_over: Counter[str] = field(default_factory=Counter)


def parse(wikitext: str, site: Site) -> PlainText:
    """Return the plain text of a page with its links to articles."""
    passed_over: Counter[str] = Counter()
    source = _cut_opaque(_with_breaks(wikitext))
    disambiguation = DISAMBIGUATION.search(source) is not None
    source = _cut_templates(source)
    source = _cut_tables(source)
    source = _cut_asides(source, site, passed_over)
    source = _cut_inline(source)
    source = _cut_line_markup(source)
    source = _unescape(source)
    text, links = _read_links(source, site, passed_over)
    return PlainText(text, tuple(links), disambiguation, passed_over)


# --- What is shown as it stands -----------------------------------------------------------------------------------

_LITERAL = "[]{}|<>='*#:;&_!~"  # what a later pass could take for markup
_HIDE = {ord(char): 0xFDD0 + index for index, char in enumerate(_LITERAL)}  # noncharacters: in no text
_SHOW = {hidden: char for char, hidden in _HIDE.items()}
_HIDDEN = re.compile("[\ufdd0-\ufdee]")
_BREAK = "\ufdef"  # ends a link where markup stood: in [[Bus]]<ref/>es and ''[[Bus]]''es the letters are not its own
_ENTITY = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENTITIES = {"&nbsp;": " ", "&ndash;": "–", "&mdash;": "—", "&amp;": "&", "&quot;": '"', "&thinsp;": " "}


def _with_breaks(source: str) -> str:
    """Mark where links end before markup, and write out the pipe trick."""
    source = source.replace(_BREAK, "").replace("\r\n", "\n")
    for mark in ("<", "{{", "''"):
        if "]]" + mark in source:
            source = source.replace("]]" + mark, "]]" + _BREAK + mark)
    if "|]]" in source:
        source = _EMPTY_LABEL.sub(_pipe_trick, source)  # before a label is emptied by removing what is in it
    return source


_EMPTY_LABEL = re.compile(r"\[\[([^\[\]|\n]++)\|\]\]")
_PIPE_TRICK = re.compile(r"^[: ]*|^[^:\[\]|]{1,40}:\s*|\s*[((][^()()]*[))]\s*$")


def _pipe_trick(match: re.Match[str]) -> str:
    """Give [[Boston, Massachusetts|]] and [[Bus (transport)|]] their labels, as MediaWiki does on saving."""
    return f"[[{match[1]}|{_PIPE_TRICK.sub('', match[1]).partition(',')[0]}]]"


def _unescape(source: str) -> str:
    return _ENTITY.sub(_entity, source) if "&" in source else source


def _entity(match: re.Match[str]) -> str:
    found = _ENTITIES.get(match[0])
    if found is None:
        found = html.unescape(match[0])
        found = _ENTITIES[match[0]] = " " if found.isspace() else found.translate(_HIDE)
    return found


# --- Comments, and elements whose content is no wikitext ----------------------------------------------------------

_DROPPED = (
    "ref|references|math|chem|ce|timeline|imagemap|score|syntaxhighlight|source|graph|mapframe|maplink|templatedata|"
    "templatestyles|hiero|includeonly|inputbox|categorytree|section|indicator|rss|listing"
)
_OPAQUE = re.compile(
    rf"<(?:!--|(?P<tag>{_DROPPED}|nowiki|pre|gallery)(?=[\s/>])(?P<attributes>[^<>]*)>)", re.IGNORECASE
)


def _cut_opaque(source: str) -> str:
    """Remove comments and opaque elements, hide what <nowiki> and <pre> show, keep the captions of galleries."""
    if "<" not in source:
        return source
    closings: dict[str, _Closing] = {}
    pieces, position = [], 0
    while (opening := _OPAQUE.search(source, position)) is not None:
        pieces.append(source[position : opening.start()])
        tag = (opening["tag"] or "!--").lower()
        position = opening.end()
        if opening["tag"] and opening["attributes"].endswith("/"):
            continue
        closing = closings.setdefault(tag, _Closing(source, tag)).after(position)
        if closing is None:  # a comment then takes the rest of the page, an element only its tag
            position = len(source) if tag == "!--" else position
            continue
        pieces.append(_opaque_content(tag, source[position : closing[0]]))
        position = closing[1]
    pieces.append(source[position:])
    return "".join(pieces)


class _Closing:
    """Finds the next end of one kind of element; it looks at no character twice, however many openings there are."""

    def __init__(self, source: str, tag: str) -> None:
        pattern = "-->" if tag == "!--" else rf"</{tag}\s*>"
        self._ends = (match.span() for match in re.finditer(pattern, source, re.IGNORECASE))
        self._next: tuple[int, int] | None = (-1, -1)

    def after(self, position: int) -> tuple[int, int] | None:
        while self._next is not None and self._next[0] < position:
            self._next = next(self._ends, None)
        return self._next


def _opaque_content(tag: str, content: str) -> str:
    if tag == "nowiki":
        return _unescape(content).translate(_HIDE)
    if tag == "pre":
        return "\n" + _unescape(content.replace("<nowiki>", "").replace("</nowiki>", "")).translate(_HIDE) + "\n"
    if tag == "gallery":
        return "\n" + "\n".join(_caption(line) for line in content.splitlines()) + "\n"
    return ""


# --- Nested markup: the outermost pairs are removed, unpaired marks are left to later passes ------------------------

_BRACES = re.compile(r"\{\{+|\}\}+")
_UNPAIRED = re.compile(r"\{\{\{?|\}\}\}?")
_SHOWN = re.compile(
    r"\{\{\s*(lang(?:-[a-z]+)?|transl|transliteration|nowrap|nobr|unicode|polytonic|ipa|abbr|convert|cvt|small|big)"
    r"\s*\|([^{}]*+)\}\}",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\s*[\w -]+=")
_SEPARATORS = " \t,;:/–-"


def _cut_templates(source: str) -> str:
    """Remove templates and parameters, and brackets that held nothing else."""
    if "{{" not in source:
        return source
    source = _SHOWN.sub(_shown_parameter, source)
    pieces: list[str] = []
    for piece in _outside(source, _template_spans(source)):
        if pieces and pieces[-1].endswith("'") and piece.startswith("'"):
            pieces.append(_BREAK)  # else two marks would become one
        elif pieces and pieces[-1].endswith("("):
            rest = piece.lstrip(_SEPARATORS)
            if rest.startswith(")"):
                pieces[-1], piece = pieces[-1][:-1].rstrip(" "), rest[1:]
            elif not rest:  # between two templates
                continue
        pieces.append(piece)
    source = "".join(pieces)
    return _UNPAIRED.sub("", source) if "{{" in source or "}}" in source else source


def _shown_parameter(match: re.Match[str]) -> str:
    """Return what a template of the few that hold words of a sentence shows."""
    given = [value for value in _split(match[2]) if not _NAMED.match(value)]
    if match[1].lower() in ("convert", "cvt"):
        return " ".join(given[:2])
    return given[0 if match[1].lower() == "abbr" else -1] if given else ""


def _template_spans(source: str) -> list[tuple[int, int]]:
    """Pair runs of braces as MediaWiki does: from the inside, three where both sides have three, else two."""
    spans: list[tuple[int, int]] = []
    runs: list[tuple[int, int]] = []  # (start, braces left)
    for match in _BRACES.finditer(source):
        if match[0][0] == "{":
            runs.append((match.start(), match.end() - match.start()))
            continue
        position, left = match.span()
        while left - position >= 2 and runs:
            start, braces = runs.pop()
            taken = 3 if braces >= 3 and left - position >= 3 else 2
            position += taken
            if braces - taken >= 2:
                runs.append((start, braces - taken))
            _add_span(spans, start + braces - taken, position)
    return spans


def _add_span(spans: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a span that swallows those inside it."""
    while spans and spans[-1][0] >= start:
        spans.pop()
    spans.append((start, end))


def _outside(source: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    position = 0
    for start, end in spans:
        yield source[position:start]
        position = end
    yield source[position:]


_TABLE = re.compile(r"^[ \t:*#;]*+\{\||^[ \t]*+\|\}(?!\})", re.MULTILINE)
_HTML_TABLE = re.compile(r"<(/?)table\b[^<>]*>", re.IGNORECASE)


def _cut_tables(source: str) -> str:
    """Remove tables, {| … |} and <table> … </table>, with the tables inside them."""
    if "{|" in source:
        source = _cut_pairs(source, _TABLE, lambda match: match[0].endswith("{|"))
    if "<table" in source or "<TABLE" in source or "<Table" in source:
        source = _cut_pairs(source, _HTML_TABLE, lambda match: not match[1])
    return source


def _cut_pairs(source: str, marks: re.Pattern[str], opens: Callable[[re.Match[str]], bool]) -> str:
    spans: list[tuple[int, int]] = []
    starts: list[int] = []
    for match in marks.finditer(source):
        if opens(match):
            starts.append(match.start())
        elif starts:
            _add_span(spans, starts.pop(), match.end())
    return "\n\n".join(_outside(source, spans))


# --- Links that are not part of the sentence: files, categories, other languages -----------------------------------

_ASIDE = frozenset({"category", "language", "file"})
_PREFIXED = re.compile(r"\[\[[ _]*+([^\[\]|:\n]{1,60}+):")
_REST = re.compile(r"[^\[\]\n]*+\]\]")
_BRACKETS = re.compile(r"\[\[|\]\]")
_PARAMETER = re.compile(r"\[\[|\]\]|\|")
_OPTION = re.compile(
    r"\s*(?:thumb(?:nail)?|frame(?:d|less)?|border|left|right|cent(?:er|re)|none|upright|baseline|middle|sub|super|"
    r"text-top|text-bottom|top|bottom|[0-9x ]+px|[a-z]+ ?= ?.*)\s*",
    re.IGNORECASE | re.DOTALL,
)


def _cut_asides(source: str, site: Site, passed_over: Counter[str], depth: int = 0) -> str:
    """Remove category, language and file links; a file's caption becomes a line of its own after its paragraph."""
    if depth > 3:  # files in captions of files in captions: no page has that, and it would cost depth × length
        return ""
    spans: list[tuple[int, int]] = []
    captions: dict[int, str] = {}  # by the start of the span
    ends = _BracketEnds(source)
    for match in _PREFIXED.finditer(source):
        kind = site.target(match[1] + ":x").kind
        if kind not in _ASIDE or (spans and match.start() < spans[-1][1]):  # inside a caption: read there
            continue
        if kind == "file":
            end = ends.of(match.start())
        else:
            closed = _REST.match(source, match.end())
            end = None if closed is None else closed.end()
        if end is None:
            continue
        passed_over[kind] += 1
        spans.append((match.start(), end))
        if kind == "file" and (caption := _caption(source[match.end() : end - 2])):
            captions[match.start()] = _cut_asides(caption, site, passed_over, depth + 1)
    return _moved(source, spans, captions) if spans else source


class _BracketEnds:
    """Finds where a `[[` is closed, links within links considered, in time linear in the page for all of them."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._ends: dict[int, int] | None = None

    def of(self, start: int) -> int | None:
        if self._ends is None:
            depth = 0
            for match in _BRACKETS.finditer(self._source, start):
                depth += 1 if match[0] == "[[" else -1
                if depth == 0:
                    return match.end()
            self._ends = self._all()  # it is not closed: the next search must not run to the end of the page again
        return self._ends.get(start)

    def _all(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        starts: list[int] = []
        for match in _BRACKETS.finditer(self._source):
            if match[0] == "[[":
                starts.append(match.start())
            elif starts:
                ends[starts.pop()] = match.end()
        return ends


def _caption(parameters: str) -> str:
    """Return the caption among a file link's parameters: the last that is no option and more than a word."""
    for given in reversed(_split(parameters)[1:]):
        # a single word is likely an option in the language of the wiki
        if (" " in given or "[[" in given) and not _OPTION.fullmatch(given):
            return given.strip().replace("\n", " ")
    return ""


def _split(parameters: str) -> list[str]:
    """Split at the bars outside of links."""
    depth = position = 0
    pieces = []
    for match in _PARAMETER.finditer(parameters):
        if match[0] != "|":
            depth += 1 if match[0] == "[[" else -1
        elif depth <= 0:
            pieces.append(parameters[position : match.start()])
            position = match.end()
    return [*pieces, parameters[position:]]


def _moved(source: str, spans: list[tuple[int, int]], captions: dict[int, str]) -> str:
    pieces: list[str] = []
    waiting: list[str] = []
    position = 0
    for start, end in [*spans, (len(source), len(source))]:
        piece = source[position:start]
        newline = piece.find("\n") if waiting else -1
        if newline >= 0:
            pieces += [piece[:newline], *("\n\n" + caption for caption in waiting), "\n"]
            piece, waiting = piece[newline:], []
        pieces.append(piece)
        if start in captions:
            waiting.append(captions[start])
        position = end
    return "".join([*pieces, *("\n\n" + caption for caption in waiting)])


# --- Marks within lines -------------------------------------------------------------------------------------------

_BLOCK = "br|p|div|blockquote|center|li|ul|ol|dl|dd|dt|tr|td|th|table|tbody|thead|caption|hr|h[1-6]|poem"
_INLINE = (
    "abbr|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|ins|kbd|mark|noinclude|nowiki|onlyinclude|q|rb|rp|rt|rtc|"
    "ruby|s|samp|small|span|strike|strong|sub|sup|time|tt|u|var|wbr|gallery|pre|img|a|input|nobr|noscript|lang|object"
)
_TAG = re.compile(rf"</?(?:(?P<block>{_BLOCK})|{_INLINE}|{_DROPPED})(?:[\s/][^<>]*)?>", re.IGNORECASE)
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|irc|news|gopher|telnet|nntp|mailto|svn|git|xmpp):|//)[^\s\[\]<>]*+"
    r"((?:[^\[\]\n]|\[\[[^\[\]\n]*+\]\])*+)\]",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"__[A-ZÀ-ÖØ-ÝА-Я]{3,}(?:_[A-Z]+)*__")


def _cut_inline(source: str) -> str:
    """Remove HTML tags, keep the labels of external links, remove behaviour switches and quotes."""
    if "<" in source:
        source = _TAG.sub(_tag, source)
    if "[" in source:
        source = _UNCLOSED.sub("", _EXTERNAL.sub(_label, source))
    if "__" in source:
        source = _SWITCH.sub("", source)
    if "''" in source:
        source = _QUOTED_LINE.sub(_unquoted, source)
    return source


def _tag(match: re.Match[str]) -> str:
    return "\n\n" if match["block"] else ""


_UNCLOSED = re.compile(r"\[(?=https?://)")


def _label(match: re.Match[str]) -> str:
    return match[1].strip()


_QUOTES = re.compile("''+")
_QUOTED_LINE = re.compile("''.*")  # to the end of the line: quotes pair within lines only


def _unquoted(line: re.Match[str]) -> str:
    """Remove the marks of bold and italic from a line, keep apostrophes beside them, as MediaWiki's doQuotes does."""
    runs = [len(run) for run in _QUOTES.findall(line[0])]
    bold = sum(run != 2 for run in runs)
    italic = sum(run == 2 or run >= 5 for run in runs)
    if bold % 2 == 0 or italic % 2 == 0:
        if max(runs) <= 3 or all(run in (2, 3, 5) for run in runs):
            return _QUOTES.sub("", line[0])
        return _QUOTES.sub(lambda run: "'" * _apostrophes(len(run[0])), line[0])
    # Both unbalanced: one ''' is an apostrophe before an '', as in L'''amour''.
    spare = _spare_apostrophe(line[0])
    return _QUOTES.sub(lambda run: "'" * (1 if run.start() == spare else _apostrophes(len(run[0]))), line[0])


def _apostrophes(run: int) -> int:
    return 1 if run == 4 else max(0, run - 5)


def _spare_apostrophe(line: str) -> int:
    """Return where the ''' is that MediaWiki reads as ' and '': after a one-letter word, after a word, or the first."""
    places = [match.start() for match in _QUOTES.finditer(line) if len(match[0]) == 3]
    after_letter = [p for p in places if p >= 1 and line[p - 1] != " " and (p == 1 or line[p - 2] == " ")]
    after_word = [p for p in places if p >= 1 and line[p - 1] != " "]
    return next(iter(after_letter or after_word or places), -1)


# --- Marks at the starts of lines, and space ----------------------------------------------------------------------

_LINE = re.compile(
    r"^[ \t]*+(?:"
    r"(?P<heading>={1,6})[ \t]*+(?P<title>[^\n]*?)[ \t]*(?P=heading)[ \t]*$"
    r"|[*#:;]++[ \t]*+"
    r"|-{4,}+"
    r"|(?:\{\||\||\}\})[^\n]*$"  # what is left of tables and templates that nobody closed
    r")",
    re.MULTILINE,
)
# A line end within a sentence, as in hand-wrapped text: after no stop, before a small letter.
_WRAPPED = re.compile(r"\n(?=[a-zß-öø-ÿα-ωа-я])(?<![\n.!?:;=|>]\n)")
_SPACES = "\t\xa0\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # what splits lines elsewhere, and other widths


def _cut_line_markup(source: str) -> str:
    """Remove the marks of headings, lists, rules and unclosed tables; one line a paragraph, no blank lines."""
    source = _LINE.sub(_line, _WRAPPED.sub(" ", source))
    # str.replace and split are some ten times faster than one regular expression for all of this
    for space in _SPACES:
        if space in source:
            source = source.replace(space, " ")
    while "  " in source:
        source = source.replace("  ", " ")
    return "\n".join([line for line in map(str.strip, source.split("\n")) if line])


def _line(match: re.Match[str]) -> str:
    return match["title"] or ""


# --- Links --------------------------------------------------------------------------------------------------------

# Letters after a link belong to it where the script has cases, as in [[bus]]es, or in Hebrew, Arabic and Devanagari.
_TRAIL = "a-zß-öø-ÿĀ-ɏά-ώа-џґєіїѐ-ԯա-ևა-ჺא-תء-يऀ-ॣ"
_LINK = re.compile(
    r"\[\[([^\[\]|\n]*+)(?:\|((?:[^\[\]]++|\[(?!\[)[^\[\]\n]*+\]|\](?!\])|\[(?!\[))*+))?\]\]"
    rf"([{_TRAIL}]*+)"
)
_STRAY = re.compile(rf"\[\[|\]\]|{_BREAK}")


def _read_links(source: str, site: Site, passed_over: Counter[str]) -> tuple[str, list[Link]]:
    """Replace each link by its text and return where the texts of those to articles came to stand."""
    pieces: list[str] = []
    links: list[Link] = []
    length = position = 0
    hidden = _HIDDEN.search(source) is not None
    for match in _LINK.finditer(source):
        raw, label, trail = match.groups()
        begin, end = match.span()
        kind, title = site.target(raw.translate(_SHOW) if hidden else raw)
        before = source[position:begin]
        if "]]" in before or "[[" in before or _BREAK in before:
            before = _STRAY.sub("", before)
        position = end
        shown = _shown(raw, label, kind) + trail
        start = length + len(before)
        length = start + len(shown)
        pieces += before, shown
        surface = shown.strip()
        if kind != "article" or not surface:
            passed_over[kind if kind != "article" else "empty"] += 1
        elif surface is shown:  # nothing to strip
            links.append(Link(start, length, title))
        else:
            start += len(shown) - len(shown.lstrip())
            links.append(Link(start, start + len(surface), title))
    pieces.append(_STRAY.sub("", source[position:]))
    text = "".join(pieces)
    return (text.translate(_SHOW) if hidden else text), links


def _shown(raw: str, label: str | None, kind: Kind) -> str:
    """Return the text of a link: its label, else its target."""
    if label is None:
        shown = raw.lstrip(": ") if raw[:1] in _COLON else raw
    else:
        shown = label.replace("\n", " ") if "\n" in label else label
        if "]]" in shown or _BREAK in shown:
            shown = _STRAY.sub("", shown)
    return "" if kind in _ASIDE else shown


_COLON = frozenset({":", " "})


# --- Whole pages --------------------------------------------------------------------------------------------------


def redirect_target(wikitext: str) -> str | None:
    """Return the raw target of a redirect page, for dumps that do not say which pages are redirects."""
    if "#" not in wikitext[:20]:
        return None
    match = REDIRECT.match(wikitext)
    return None if match is None else html.unescape(match[1])
