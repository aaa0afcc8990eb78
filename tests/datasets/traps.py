"""A published-format folder with every trap of protocol 2 and 3, small enough to compute its figures by hand."""

from __future__ import annotations

from pathlib import Path

HEAD = "doc1 doc1\tdoc1 doc1\t{}\tleft\tright\tCANDIDATES\t{}\tGT:\t{}"

ROWS = [
    # (mention, candidates, gold)
    ("John Smith", ["1,0.300,John Smith (footballer)", "2,0.700,John Smith"], "1,2,0.700,John Smith"),
    ("Smith", ["3,0.900,Smith (surname)"], "-1,2,John Smith"),  # a coreferent person
    ("Paris", ["5,0.600,Paris"], "-1"),  # dropped, but it holds the first Paris of the text
    ("PARIS", ["5,0.600,Paris", "6,0.400,Paris, Texas"], "1,6,0.400,Paris, Texas"),
    ("Tom & Jerry", ["8,0.050,", "7,0.900,Tom & Jerry"], "0,7,0.900,Tom &amp; Jerry"),
    ("Nowhere", ["EMPTYCAND"], "-1,9,Nowhere, Oklahoma"),
    ("Zed", ["11,0.500,Z"], "-1,10,NIL"),
]
TEXT = """-DOCSTART- (doc1

John\tB\tJohn Smith\tx\ty\t2
Smith\tI\tJohn Smith\tx\ty\t2
met
Smith\tB\tSmith\tx\ty\t2
in
Paris\tB\tParis\tx\ty\t5
.

Extra\tB\tExtra\tx\ty\t99
Paris\tB\tParis\tx\ty\t6
saw
Tom\tB\tTom & Jerry\tx\ty\t7
&\tI\tTom & Jerry\tx\ty\t7
Jerry\tI\tTom & Jerry\tx\ty\t7
at
Nowhere\tB\tNowhere\tx\ty\t9
with
Zed\tB\tZed\t--NME--\tx\ty
.
"""


def write_traps(folder: Path, name: str = "msnbc") -> Path:
    """Write the folder as the set `name` (msnbc or wiki; wiki has the excluded document too)."""
    lines = [HEAD.format(mention, "\t".join(candidates), gold) for mention, candidates, gold in ROWS]
    text = TEXT
    if name == "wiki":
        excluded = HEAD.format("Jiří", "12,0.5,Jiří", "0,12,0.5,Jiří").replace("doc1", "Jiří_Třanovský")
        lines.append(excluded)
        text += "\n-DOCSTART- (Jiří_Třanovský\n\nJiří\tB\tJiří\tx\ty\t12\n"
    stem = {"msnbc": "msnbc", "wiki": "wikipedia"}[name]
    (folder / f"wned-{stem}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / f"{stem}.conll").write_text(text, encoding="utf-8")
    (folder / "persons.txt").write_text("John Smith\nJane Roe\n", encoding="utf-8")
    return folder
