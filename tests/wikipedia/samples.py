"""Where the sample dumps are, and dumps made of a few pages."""

from __future__ import annotations

import os
from collections.abc import Iterable
from html import escape
from pathlib import Path

import pytest

SITEINFO = """  <siteinfo><sitename>Wikipedia</sitename><case>first-letter</case><namespaces>
    <namespace key="0" case="first-letter" /><namespace key="6" case="first-letter">Datei</namespace>
    <namespace key="10" case="first-letter">Vorlage</namespace>
    <namespace key="14" case="first-letter">Kategorie</namespace></namespaces></siteinfo>
"""
HEAD = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="de">\n' + SITEINFO
TAIL = "</mediawiki>\n"


def page(title: str, text: str, number: int = 1, namespace: int = 0, redirect: str | None = None) -> str:
    """Return a page in the current schema."""
    led = f'<redirect title="{escape(redirect)}" />' if redirect is not None else ""
    return (
        f"  <page><title>{escape(title)}</title><ns>{namespace}</ns><id>{number}</id>{led}\n"
        f"    <revision><id>9</id><model>wikitext</model><format>text/x-wiki</format>"
        f'<text bytes="1" xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


def old_page(title: str, text: str, number: int = 1) -> str:
    """Return a page in the schema of 2006, which has neither <ns> nor <redirect>."""
    return (
        f"  <page><title>{escape(title)}</title><id>{number}</id>\n"
        f'    <revision><id>9</id><text xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


def dump(pages: Iterable[str]) -> bytes:
    """Return a whole dump."""
    return (HEAD + "".join(pages) + TAIL).encode()


def sample_dumps() -> list[Path]:
    """Return the sample dumps of the folder shared/ beside the checkout, or of DEIXIS_SHARED."""
    beside = Path(__file__).resolve().parents[3] / "shared"
    folder = Path(os.environ.get("DEIXIS_SHARED", beside)) / "data" / "wikipedia" / "dumps"
    if not folder.is_dir():
        pytest.skip("the sample dumps are not beside the checkout; set DEIXIS_SHARED")
    return sorted(folder.iterdir())
