"""The first sentences of Simple English Wikipedia as article JSONL: each names its subject, and links nothing.

python recipes/default/simple_english.py simple-en.jsonl.xz simple.jsonl.zst
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import zstandard

from deixis.artefacts import read_lines, write_aside

BEGINNING = 500  # characters; further down an article its subject is seldom named
LEAST = 100  # of the first sentences


def main() -> int:
    """Write the beginnings of the articles."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with (
        write_aside(Path(sys.argv[2])) as raw,
        zstandard.ZstdCompressor(9).stream_writer(raw, closefd=False) as file,
    ):
        for _, line in read_lines(Path(sys.argv[1])):
            article = orjson.loads(line)
            text = article["text"]
            if len(text) > BEGINNING:
                end = text.rfind(". ", 0, BEGINNING) + 1
                text = text[: end if end > LEAST else BEGINNING]
            file.write(orjson.dumps({"title": article["title"], "text": text, "links": []}) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
