"""Wikitext: each kind of markup, the invariants on anything, and agreement with mwparserfromhell on real pages."""

from __future__ import annotations

import re
import time

import mwparserfromhell
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.wikipedia.dump import Dump, read_pages
from deixis.wikipedia.titles import Site
from deixis.wikipedia.wikitext import parse, redirect_target
from tests.wikipedia.samples import sample_dumps

SITE = Site()


def shown(wikitext: str) -> tuple[str, list[tuple[str, str]]]:
    plain = parse(wikitext, SITE)
    return plain.text, [(plain.text[link.start : link.end], link.target) for link in plain.links]


@pytest.mark.parametrize(
    ("wikitext", "text", "links"),
    [
        ("[[bus]]es run", "buses run", [("buses", "Bus")]),
        ("[[Bus|coach]]es", "coaches", [("coaches", "Bus")]),
        ("[[bus_stop#Shelter|stop]]", "stop", [("stop", "Bus stop")]),
        ("[[bus%20stop]] [[100%]]", "bus%20stop 100%", [("bus%20stop", "Bus stop"), ("100%", "100%")]),
        ("[[Paris (city)|]], [[Boston, Massachusetts|]]", "Paris, Boston", [
            ("Paris", "Paris (city)"), ("Boston", "Boston, Massachusetts")]),
        ("a[[Foo| bar\n]]baz", "a bar baz", [("bar baz", "Foo")]),
        ("[[#History|below]]", "below", []),
        ("[[AT&amp;T]] &ndash; &#91;[x]]&nbsp;&amp;lt;", "AT&T – [[x &lt;", [("AT&T", "AT&T")]),
        ("[[Foo&#39;s]] [[x|<nowiki> [y] </nowiki>]]", "Foo's  [y] ", [("Foo's", "Foo's"), ("[y]", "X")]),
        ("<nowiki>[[x]] ''y'' &amp;</nowiki>", "[[x]] ''y'' &", []),
        ("a <!-- [[x]] --> b <!-- open [[y]]", "a b", []),
        ("a<ref name=x/> b<ref>[[c]]</ref> d<REF>e</ref>", "a b d", []),
        ("''[[Bus]]''es, [[Bus]]<ref>x</ref>es, [[Bus]]{{cn}}es", "Buses, Buses, Buses", [("Bus", "Bus")] * 3),
        ("'''''both''''' ''i'' '''b''' L'''amour'' rock ''''n''''", "both i b L'amour rock 'n'", []),
        ("== Head [[x]] ==\n=== Sub ===\ntext", "Head x\nSub\ntext", [("x", "X")]),
        ("* one\n*# [[two]]\n:: three\n; four\n----\nfive", "one\ntwo\nthree\nfour\nfive", [("two", "Two")]),
        ("a {{b|{{c}}|[[d]]}} e {{{f|g}}} h", "a e h", []),
        ("x ({{x|y}}), z ({{a}}; {{b}})", "x, z", []),
        ("{{lang|fr|le [[chat|Chat]]}} {{convert|5|km|mi}}", "le Chat 5 km", [("Chat", "Chat")]),
        ("a\n{| class=x\n|[[b]]\n{|\n|c\n|}\n|}\nd <table><tr><td>[[e]]</td></tr></table>f", "a\nd\nf", []),
        ("a<br/>b<br>c <span class='x'>d</span> <stdio.h> 1 < 2", "a\nb\nc d <stdio.h> 1 < 2", []),
        ("[http://x.org the [[label]]] [http://y.org] http://z.org", "the label http://z.org", [("label", "Label")]),
        ("[[Category:X]][[fr:Y]]a [[:Category:X|cat]] [[:fr:Y|y]] [[wikt:z]]", "a cat y wikt:z", []),
        ("[[2001: A Space Odyssey]]", "2001: A Space Odyssey", [("2001: A Space Odyssey",) * 2]),
        ("[[File:a.jpg|thumb|left|The [[cat|Cat]] sat|200px]]Text [[dog]]\nmore", "Text dog\nThe Cat sat\nmore", [
            ("dog", "Dog"), ("Cat", "Cat")]),
        ("[[Image:a.jpg|thumb]][[Image:b.jpg|alt=x y]]a", "a", []),
        ("<gallery>\nFile:a.jpg|A [[cat]]\nFile:b.jpg\n</gallery>", "A cat", [("cat", "Cat")]),
        ("[[a|b [c]]] [[a [[b]] c", "b [c] a b c", [("b [c]", "A"), ("b", "B")]),
        ("__NOTOC__a\n\n\n\nb.\r\nc\td", "a\nb.\nc d", []),
        ("[[ ]]a [[|x]] [[a<b]] [[]].", "a x a<b .", []),
        ("a line\nwrapped by hand.\nanother", "a line wrapped by hand.\nanother", []),
        ("[[Москва|Москв]]а, [[北京]]是", "Москва, 北京是", [("Москва", "Москва"), ("北京", "北京")]),
        ("a {{ b [[c]] }", "a b c }", [("c", "C")]),
    ],
)  # fmt: skip
def test_markup(wikitext: str, text: str, links: list[tuple[str, str]]) -> None:
    assert shown(wikitext) == (text, links)


def test_what_is_passed_over_is_counted() -> None:
    plain = parse("[[fr:a]] [[Category:b]] [[File:c]] [[#d]] [[Help:e]] [[wikt:f]] [[g{]] [[h]]", SITE)
    assert dict(plain.passed_over) == {
        "language": 1, "category": 1, "file": 1, "section": 1, "namespace": 1, "interwiki": 1, "invalid": 1,
    }  # fmt: skip
    assert len(plain.links) == 1


@pytest.mark.parametrize("name", ["disambig", "Disambiguation", "hndis|x", "Begriffsklärung", "TLAdisambig", "Geodis"])
def test_disambiguation_pages_are_known(name: str) -> None:
    assert parse("x {{" + name + "}}", SITE).disambiguation


@pytest.mark.parametrize("name", ["disambiguation needed", "Otheruses", "dabrowski"])
def test_other_pages_are_not(name: str) -> None:
    assert not parse("x {{" + name + "}}", SITE).disambiguation


def test_redirects_of_old_dumps() -> None:
    assert redirect_target("#REDIRECT [[Foo bar#x]] {{R}}") == "Foo bar#x"
    assert redirect_target("#redirect: [[A|b]]") == "A"
    assert redirect_target("#WEITERLEITUNG [[Ä&amp;B]]") == "Ä&B"
    assert redirect_target("# first [[Foo]]") is None
    assert redirect_target("Text #REDIRECT [[Foo]]") is None


# --- Anything -----------------------------------------------------------------------------------------------------

MARKS = [
    "[[", "]]", "[", "]", "{{", "}}", "{{{", "}}}", "{|", "|}", "|", "\n", "\n|-", "\n{|", "\n|}", "''", "'''", "'''''",
    "<ref>", "</ref>", "<ref name=a/>", "<!--", "-->", "<nowiki>", "</nowiki>", "<gallery>", "</gallery>", "<table>",
    "</table>", "<br>", "<div", ">", "<", "\n==", "==\n", "\n*", "\n#", "\n:", "File:", "Category:", "fr:", ":", "#",
    "&amp;", "&#91;", "&nbsp;", "&", "http://x", "[http://x ", "%20", "_", " ", "(", ")", "a", "Bus", "es", "é", "日本",
    "\ufdd0", "\ufdef", "\x00", "\xa0", "thumb|", "lang|fr|", "convert|", "__NOTOC__", "\r\n", "\u2028", "\ud800",
]  # fmt: skip


@settings(max_examples=400, deadline=1000)
@given(st.lists(st.sampled_from(MARKS) | st.text(max_size=5), max_size=60).map("".join))
def test_anything_is_read_and_offsets_hold(wikitext: str) -> None:
    plain = parse(wikitext, SITE)
    end = 0
    for link in plain.links:
        assert end <= link.start < link.end <= len(plain.text)
        surface = plain.text[link.start : link.end]
        assert surface == surface.strip()
        assert link.target
        end = link.end


@settings(max_examples=150, deadline=1000)
@given(st.lists(st.sampled_from(["{{x}}", "<ref>[[y]]</ref>", "'''", "\n* ", "[[Category:c]]", "<!-- -->", " so "])))
def test_the_text_of_a_link_stands_where_its_offsets_say(around: list[str]) -> None:
    """A link that nothing else in the page could have produced is found exactly, whatever stands around it."""
    wikitext = "".join([*around, " [[Zebra crossing|the zebra]] ", *around])
    plain = parse(wikitext, SITE)
    assert [(plain.text[link.start : link.end], link.target) for link in plain.links] == [
        ("the zebra", "Zebra crossing")
    ]
    assert plain.text.count("the zebra") == 1


@pytest.mark.parametrize(
    "mark",
    ["{{", "[[", "[[File:a|b c ", "[[a|", "\n{|", "<ref>", "<!--", "'", "\n==", "[http://x [[", "<table>", "{{lang|",
     "[[a|b]", "<nowiki>", "<gallery>", "&#", "({{a}}", "{{disambig ", "[[:", "  ", "\n "],
)  # fmt: skip
def test_time_grows_with_length_only(mark: str) -> None:
    begin = time.process_time()
    parse(mark * 20_000, SITE)
    assert time.process_time() - begin < 3


# --- Real pages ---------------------------------------------------------------------------------------------------

# From the article "Anarchism" of Wikipedia, March 2006 and 2016, CC BY-SA 4.0 / GFDL, shortened.
ANARCHISM = """{{Redirect|Anarchist|the fictional character|Anarchist (comics)}}
{{Infobox x | name = [[y]] }}
'''Anarchism''' is a [[political philosophy]] that advocates [[self-governance|self-governed]] societies with
voluntary institutions. These are often described as [[stateless society|stateless societies]],<ref>"ANARCHISM, a
social philosophy" George Woodcock. "Anarchism" at The Encyclopedia of Philosophy</ref><ref name=iaf/> although several
authors have defined them more specifically as institutions based on non-[[Hierarchy|hierarchical]] [[Free association
(communism and anarchism)|free associations]].

==Etymology and terminology==
{{Main|Definition of anarchism and libertarianism}}
[[File:Wilhelm Weitling.jpg|thumb|left|[[Wilhelm Weitling]], an early socialist]]
The word ''anarchism'' is composed from the word ''[[anarchy]]'' and the suffix ''[[-ism]]''.
* [[Anarchist symbolism]]
[[Category:Anarchism| ]]
"""


def test_an_excerpt() -> None:
    text, links = shown(ANARCHISM)
    assert text.startswith("Anarchism is a political philosophy that advocates self-governed societies with voluntary")
    assert "\nEtymology and terminology\nWilhelm Weitling, an early socialist\nThe word anarchism is" in text
    assert ("free associations", "Free association (communism and anarchism)") not in links  # a title has no newline
    assert ("stateless societies", "Stateless society") in links
    assert ("Wilhelm Weitling", "Wilhelm Weitling") in links
    assert [surface for surface, _ in links[-2:]] == ["-ism", "Anarchist symbolism"]
    assert not re.search(r"\[\[|\]\]|\{\{|\}\}|''|<ref|==", text)


@pytest.mark.slow
def test_agreement_with_mwparserfromhell_on_sample_pages() -> None:
    """Link targets outside templates, tables and references, page by page, of the pages that have neither table."""
    path = next(path for path in sample_dumps() if path.name.startswith("gensim_enwiki-latest"))
    agreed = expected = 0
    for page in list(read_pages(Dump.open(path)))[::2]:
        if page.redirect is not None or page.namespace or "{|" in page.text or "<table" in page.text:
            continue
        targets = [link.target for link in parse(page.text, SITE).links]
        code = mwparserfromhell.parse(re.sub(r"(?s)<ref[^<>/]*>.*?</ref>", "", page.text), skip_style_tags=True)
        for template in code.filter_templates(recursive=False):
            if code.contains(template):
                code.remove(template)
        for link in code.filter_wikilinks():
            target = SITE.target(str(link.title))
            if target.kind == "article":
                expected += 1
                if target.title in targets:
                    targets.remove(target.title)
                    agreed += 1
    assert expected > 1000
    assert agreed >= 0.995 * expected
