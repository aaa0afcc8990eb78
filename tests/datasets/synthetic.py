"""A small folder of invented texts in every benchmark format (protocol 1–5): readers are guarded without the real data.

One list of texts is written in all formats, so that every reader must come back with the same spans and golds.
"""

from __future__ import annotations

import html
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deixis.datasets.catalogue import AIDA, WNED, ZELDA
from deixis.datasets.published import PUBLISHED

TITLES = [
    *(
        "Bern",
        "Paris, Texas",
        "People's Party",
        "Tom & Jerry",
        "Zürich",
        '"Weird Al" Yankovic',
        "U.S. state",
        "Ole Oar",
    ),
    *("100% (band)", "Jane Roe", "Law & Order", "Łódź", "C++", "Aix-en-Provence", "Roe (river)", "North Bern"),
]
OLDER = {"Bern": "Berne", "Łódź": "Lodz"}  # newer titles, as PPRforNED has them, to those of AIDA
NAMES = ["Bern", "Roe", "Tom & Jerry", "Zürich", "Jane Roe", "Old Law", "U.S.", "Al", "Łódź", "Party"]
WORDS = ["the", "boat", "of", "was", "late", ",", "and", "won", "(", ")", "again", "."]
KINDS = ["PER", "ORG", "LOC", "MISC"]


@dataclass(frozen=True)
class Annotation:
    """A mention: its tokens `[start, end)`, its gold or None (NIL), and its candidates with counts, best first."""

    start: int
    end: int
    title: str | None
    kind: str
    candidates: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Text:
    """Tokens with sentence ends and annotations; `number` is that of AIDA."""

    number: int
    words: tuple[str, ...]
    sentence_ends: frozenset[int]
    annotations: tuple[Annotation, ...]

    def surface(self, annotation: Annotation) -> str:
        return " ".join(self.words[annotation.start : annotation.end])

    def joined(self) -> tuple[str, list[tuple[int, int]]]:
        """Return the text and the spans of the annotations: words by spaces, sentences by newlines."""
        text, starts, ends = "", [], []
        inside = {token for a in self.annotations for token in range(a.start, a.end - 1)}
        for token, word in enumerate(self.words):
            starts.append(len(text))
            text += word
            ends.append(len(text))
            text += "\n" if token in self.sentence_ends - inside else " "
        return text[:-1], [(starts[a.start], ends[a.end - 1]) for a in self.annotations]


def make_text(number: int, dice: random.Random, nil: float = 0.2) -> Text:
    """Invent a text of some names between words; a name may be cut by a sentence end, as CoNLL cuts them."""
    words: list[str] = []
    annotations: list[Annotation] = []
    ends: set[int] = set()
    for _ in range(dice.randint(2, 7)):
        words += dice.choices(WORDS, k=dice.randint(0, 4))
        name = dice.choice(NAMES).split()
        title = None if annotations and dice.random() < nil else dice.choice(TITLES)
        others = [(other, dice.randint(1, 90)) for other in dice.sample(TITLES, dice.randint(0, 5)) if other != title]
        listed = others if title is None or dice.random() < 0.1 else [*others, (title, dice.randint(1, 90))]
        listed.sort(key=lambda pair: (-pair[1], pair[0]))
        annotations.append(Annotation(len(words), len(words) + len(name), title, dice.choice(KINDS), tuple(listed)))
        if title is not None and len(name) > 1 and dice.random() < 0.3:
            ends.add(len(words))
        words += name
        if dice.random() < 0.4:
            ends.add(len(words) - 1)
    return Text(number, tuple(words), frozenset(ends - {len(words) - 1}), tuple(annotations))


def make_sets(seed: int = 0, texts: int = 2) -> dict[str, list[Text]]:
    """Invent the texts of every AIDA and WNED set."""
    dice = random.Random(seed)
    first = {"aida-train": 1, "aida-a": 947, "aida-b": 1163}
    return {
        name: [make_text(first.get(name, 1) + k, dice, 0.2 if name in AIDA else 0.1) for k in range(texts)]
        for name in (*AIDA, *WNED)
    }


def name_of(text: Text, name: str) -> str:
    """Return the name of a document."""
    return (
        f"{text.number}{AIDA[name] if name != 'aida-train' else ''} NEWS" if name in AIDA else f"{name}_{text.number}."
    )


def older(title: str) -> str:
    return OLDER.get(title, title)


def url(title: str) -> str:
    return "http://en.wikipedia.org/wiki/" + title.replace(" ", "_")


def page(title: str) -> int:
    return TITLES.index(title) + 1


def write_benchmarks(folder: Path, sets: dict[str, list[Text]]) -> Path:
    """Write the texts as AIDA with CoNLL, PPRforNED, WNED, GENRE's lists, ZELDA, and the published folder."""
    for part in ("aida", "conll2003", "genre_kilt", "zelda", "published"):
        (folder / part).mkdir(parents=True)
    _write_aida(folder, sets)
    for name in AIDA:
        for text in sets[name]:
            _write_ppr(folder, text)
    for name, stem in WNED.items():
        _write_wned(folder / "wned-datasets" / stem, sets[name], name)
    for name in ("msnbc", "aquaint", "ace2004"):
        _write_genre(folder / "genre_kilt" / f"{name}.jsonl", sets[name])
    for k, stem in enumerate(ZELDA.values()):
        _write_zelda(folder / "zelda" / f"{stem}.jsonl", list(sets.values())[k % len(sets)])
    _write_published(folder / "published", sets)
    return folder


def _write_aida(folder: Path, sets: dict[str, list[Text]]) -> None:
    lines = []
    for name, split in AIDA.items():
        conll = []
        for text in sets[name]:
            conll += ["-DOCSTART- -X- O O", ""]
            tags = dict.fromkeys(range(len(text.words)), "O")
            for a in text.annotations:
                before = tags.get(a.start - 1, "O")
                tags |= dict.fromkeys(range(a.start, a.end), f"I-{a.kind}")
                if before.endswith(a.kind):
                    tags[a.start] = f"B-{a.kind}"
            for token, word in enumerate(text.words):
                conll += [f"{word} NN I-NP {tags[token]}", *([""] if token in text.sentence_ends else [])]
            conll.append("")
            lines.append(f"-DOCSTART- ({name_of(text, name)})")
            for a in text.annotations:
                gold = "--NME--" if a.title is None else f"x\t{url(older(a.title))}\t{page(a.title)}\t/m/1"
                lines.append(f"{a.start}\t{gold}")
            lines.append("")
        (folder / "conll2003" / f"eng.{split}").write_text("\n".join(conll) + "\n", encoding="utf-8")
    path = folder / "aida" / "AIDA-YAGO2-annotations.tsv"
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    redirects = {old.replace(" ", "_"): new for new, old in OLDER.items()}
    (folder / "aida" / "aida_canonical_redirects.json").write_text(json.dumps(redirects), encoding="utf-8")


def _write_ppr(folder: Path, text: Text) -> None:
    part = folder / "PPRforNED" / "AIDA_candidates" / ("PART_1001_1393" if text.number > 1000 else "PART_1_1000")
    part.mkdir(parents=True, exist_ok=True)
    lines = []
    for a in text.annotations:
        gold = "NIL" if a.title is None else url(a.title)
        lines.append(f"ENTITY\ttext:x\tnormalName:x\tq:true\torigText:{text.surface(a)}\turl:{gold}")
        gold_first = sorted(a.candidates, key=lambda pair: pair[0] != a.title)
        for title, count in gold_first if a.title is not None else ():
            lines.append(f"CANDIDATE\tid:{page(title)}\tinCount:{count}\toutCount:3\turl:{url(title)}\tname:x")
    (part / str(text.number)).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_wned(folder: Path, texts: Sequence[Text], name: str) -> None:
    (folder / "RawText").mkdir(parents=True)
    documents = []
    for text in texts:
        joined, spans = text.joined()
        (folder / "RawText" / name_of(text, name)).write_bytes(joined.encode())
        annotations = "\n".join(
            f"<annotation><mention>{html.escape(joined[start:end])}</mention>"
            f"<wikiName>{html.escape(a.title or 'NIL')}</wikiName>"
            f"<offset>{start}</offset><length>{end - start}</length></annotation>"
            for a, (start, end) in zip(text.annotations, spans, strict=True)
        )
        documents.append(f'<document docName="{name_of(text, name)}">\n{annotations}\n</document>')
    root = f"{name}.entityAnnotation"
    body = "\n".join(documents)
    (folder / f"{folder.name}.xml").write_text(f"<{root}>\n{body}\n</{root}>\n", encoding="utf-8")


def _write_genre(path: Path, texts: Sequence[Text]) -> None:
    records = [
        {
            "output": [{"answer": a.title.replace('"', "%22")}],
            "meta": {"mention": text.surface(a).title()},
            "candidates": [title.replace('"', "%22") for title, _ in a.candidates],
        }
        for text in texts
        for a in text.annotations
        if a.title is not None
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _write_zelda(path: Path, texts: Sequence[Text]) -> None:
    lines = []
    for text in texts:
        joined, spans = text.joined()
        kept = [(a.title, span) for a, span in zip(text.annotations, spans, strict=True) if a.title is not None]
        record = {
            "id": str(text.number),
            "text": joined,
            "index": [span for _, span in kept],
            "wikipedia_ids": [page(title) for title, _ in kept],
            "wikipedia_titles": [title for title, _ in kept],
        }
        lines.append(json.dumps(record) + "\n")
    path.write_text("".join(lines), encoding="utf-8")


def _write_published(folder: Path, sets: dict[str, list[Text]]) -> None:
    words: dict[str, list[str]] = {}
    for name, texts in sets.items():
        rows = []
        lists, texts_file = PUBLISHED[name]
        for text in texts:
            words.setdefault(texts_file, []).extend(_published_text(text, name))
            rows += [_published_row(text, a, name_of(text, name)) for a in text.annotations]
        (folder / lists).write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    for texts_file, lines in words.items():
        (folder / texts_file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "persons.txt").write_text("Nobody\n", encoding="utf-8")


def _published_text(text: Text, name: str) -> list[str]:
    lines = [f"-DOCSTART- ({name_of(text, name)}", ""]
    inside = {token: a for a in text.annotations for token in range(a.start, a.end)}
    for token, word in enumerate(text.words):
        if token in inside:
            a = inside[token]
            gold = "--NME--\tx\tx" if a.title is None else f"x\t{url(a.title)}\t{page(a.title)}"
            word = f"{word}\t{'B' if token == a.start else 'I'}\t{text.surface(a)}\t{gold}"
        lines += [word, *([""] if token in text.sentence_ends else [])]
    return lines


def _published_row(text: Text, a: Annotation, id_: str) -> str:
    total = sum(count for _, count in a.candidates) or 1
    listed = [(page(title), f"{count / total:.3f}", title) for title, count in a.candidates]
    fields = [f"{number},{prior},{title}" for number, prior, title in listed] or ["EMPTYCAND"]
    if a.title is None:
        gold = "-1"
    else:
        escaped = html.escape(a.title, quote=False)
        found = [place for place, (_, _, title) in enumerate(listed) if title == a.title]
        gold = (
            f"{found[0]},{','.join(map(str, listed[found[0]][:2]))},{escaped}"
            if found
            else f"-1,{page(a.title)},{escaped}"
        )
    return "\t".join([id_, id_, text.surface(a), "left", "right", "CANDIDATES", *fields, "GT:", gold])
