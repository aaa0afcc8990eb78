"""Tokens, one a line, back to a text with spans: the form that CoNLL-like benchmarks come in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deixis.artefacts import open_text
from deixis.datasets.dataset import complaint, decoded

__all__ = ["TokenDocument", "Tokens", "read_token_documents"]

DOCSTART = "-DOCSTART-"


@dataclass(slots=True)
class Tokens:
    """The tokens of a document and the numbers of the tokens that end a sentence."""

    words: list[str] = field(default_factory=list)
    sentence_ends: set[int] = field(default_factory=set)

    def text(self, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
        """Join the tokens; return the text and the character spans of the token spans.

        Tokens are joined by one space and sentences by one newline, so offsets do not depend on sentence ends; a
        mention that a spurious sentence end cuts in two (`Phil` / `Mickelson`) is joined by a space.
        """
        inside = {token for start, end in spans for token in range(start, end - 1)}
        breaks = self.sentence_ends - inside
        pieces: list[str] = []
        starts: list[int] = []
        length = 0
        for number, word in enumerate(self.words):
            starts.append(length)
            pieces += [word, "\n" if number in breaks else " "]
            length += len(word) + 1
        offsets = [(starts[start], starts[end - 1] + len(self.words[end - 1])) for start, end in spans]
        return "".join(pieces[:-1]), offsets


@dataclass(slots=True)
class TokenDocument:
    """A document of a token file: its heading, its tokens, and the fields and line number of each token."""

    heading: str  # what follows -DOCSTART-, e.g. `(1163testb SOCCER)`
    line: int
    tokens: Tokens = field(default_factory=Tokens)
    rows: list[tuple[int, list[str]]] = field(default_factory=list)  # (line number, fields), one a token

    @property
    def name(self) -> str:
        """The heading without its brackets, e.g. `1163testb SOCCER`; WNED files leave the last bracket open."""
        name = self.heading.removeprefix("(").strip()
        return name[:-1] if name.endswith(")") and name.count(")") > name.count("(") else name


def read_token_documents(path: Path, separator: str) -> Iterator[TokenDocument]:
    """Yield the documents of a file with one token a line, `-DOCSTART-` headings and blank lines as sentence ends."""
    document: TokenDocument | None = None
    with open_text(path) as file:
        for number, raw in enumerate(file, 1):
            line = decoded(raw, path, number).rstrip("\r\n")
            if line.startswith(DOCSTART):
                if document is not None:
                    yield document
                document = TokenDocument(line.removeprefix(DOCSTART).strip(), number)
            elif document is None:
                if line.strip():
                    raise complaint(path, number, f"a token before the first document; expected a {DOCSTART} line")
            elif not line.strip():
                if document.rows:
                    document.tokens.sentence_ends.add(len(document.rows) - 1)
            else:
                fields = line.split(separator)
                document.tokens.words.append(fields[0])
                document.rows.append((number, fields))
    if document is None:
        raise complaint(path, None, f"no document; expected {DOCSTART} lines")
    yield document
