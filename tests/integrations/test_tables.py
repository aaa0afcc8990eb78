"""Tables in files, linked over the island of Velm: every format to every other, streamed, in order, bad rows named."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from typer.testing import CliRunner, Result

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402 - after the test for pyarrow above

from deixis.cli import app  # noqa: E402
from deixis.disambiguation.mention_table import COLUMNS  # noqa: E402
from deixis.documents import Document, Identity, Mention, Resolution, Resolutions  # noqa: E402
from deixis.errors import DeixisError, InputError  # noqa: E402
from deixis.inference import Disambiguator  # noqa: E402
from deixis.integrations.tables import link_table, table_format  # noqa: E402
from deixis.integrations.text_tables import CHUNK  # noqa: E402

TEXTS = ["After the Silver Oar came Marlow.", "nothing to see here", 'The "Golden Rook",\nthen Brandt.']
ENTITIES = ["Velm Cup (rowing)", "Ada Marlow (rower)", "Velm Cup (chess)", "Lena Brandt (composer)"]
FORMATS = ("csv", "tsv", "jsonl", "parquet")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["link", *map(str, arguments)])


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a table with the library of its format."""
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    """Read a table with the library of its format."""
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    if path.suffix == ".jsonl":
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.fixture(scope="module")
def nlp(island: Path) -> Disambiguator:
    return Disambiguator.load(island / "model")


def linked(nlp: Disambiguator, path: Path, column: str = "text", **options: Any) -> list[Resolutions | InputError]:
    """Link a table into out.parquet beside it, and return what was said of its rows."""
    with (path.parent / "out.parquet").open("wb") as file:
        return list(link_table(path, column, file, "parquet", nlp.link_many, **options))


@pytest.mark.parametrize("written", FORMATS)
@pytest.mark.parametrize("given", FORMATS)
def test_every_format_to_every_other(island: Path, tmp_path: Path, given: str, written: str) -> None:
    rows = [{"id": number, "body": text, "source": "a,b"} for number, text in enumerate(TEXTS)]
    path, out = write(tmp_path / f"news.{given}", rows), tmp_path / f"out.{written}"
    done = run(path, "--column", "body", "--model", island / "model", "-o", out)
    assert done.exit_code == 0, done.exception
    found = read(out)
    assert list(found[0]) == ["id", "source", "row", *COLUMNS.values()]
    assert [row["entity"] for row in found] == ENTITIES
    assert [int(row["id"]) for row in found] == [0, 0, 2, 2] and [int(row["row"]) for row in found] == [1, 1, 3, 3]
    assert {row["source"] for row in found} == {"a,b"}
    for row in found:
        assert TEXTS[int(row["id"])][int(row["start"]) : int(row["end"])] == row["mention"]
        assert 0 < float(row["probability"]) <= 1 and row["entity_url"].endswith(row["entity"].replace(" ", "_"))


@pytest.mark.parametrize("written", FORMATS)
def test_nested_keeps_the_rows(island: Path, tmp_path: Path, written: str) -> None:
    path, out = write(tmp_path / "news.csv", [{"text": text} for text in TEXTS]), tmp_path / f"out.{written}"
    done = run(path, "--nested", "--model", island / "model", "-o", out)
    assert done.exit_code == 0, done.exception
    found = read(out)
    assert [row["text"] for row in found] == TEXTS
    lists = [orjson.loads(row["resolutions"]) if written in ("csv", "tsv") else row["resolutions"] for row in found]
    assert [[r["entity"] for r in one] for one in lists] == [ENTITIES[:2], [], ENTITIES[2:]]
    assert lists[0][1]["alternatives"][0]["probability"] == lists[0][1]["probability"]
    assert {row["reason"] for row in found} == {"" if written in ("csv", "tsv") else None}


def test_without_an_output_it_is_jsonl(island: Path, tmp_path: Path) -> None:
    done = run(write(tmp_path / "news.csv", [{"text": text} for text in TEXTS]), "--model", island / "model")
    assert [orjson.loads(line)["entity"] for line in done.stdout.splitlines()] == ENTITIES


def test_compressed_tables_are_read(nlp: Disambiguator, tmp_path: Path) -> None:
    for name in ("news.csv", "news.jsonl"):
        packed = zstandard.compress(write(tmp_path / name, [{"text": text} for text in TEXTS]).read_bytes())
        (tmp_path / f"{name}.zst").write_bytes(packed)
        linked(nlp, tmp_path / f"{name}.zst")
        assert [row["entity"] for row in read(tmp_path / "out.parquet")] == ENTITIES


def test_types_of_parquet_stay(nlp: Disambiguator, tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": pa.array(TEXTS).dictionary_encode(),
            "time": pa.array([1, 2, 3], pa.timestamp("ns", "UTC")),
            "price": pa.array([decimal.Decimal("1.50")] * 3),
            "tags": [["a"], [], None],
            "raw": pa.array([b"\x00\xff"] * 3),
        }
    )
    pq.write_table(table, tmp_path / "news.parquet")
    linked(nlp, tmp_path / "news.parquet")
    found = pq.read_table(tmp_path / "out.parquet")
    for name in ("time", "price", "tags", "raw"):
        assert found[name].to_pylist() == table[name].take([0, 0, 2, 2]).to_pylist()
        assert found.schema.field(name).type == table.schema.field(name).type
    with (tmp_path / "out.jsonl").open("wb") as file:
        assert len(list(link_table(tmp_path / "news.parquet", "text", file, "jsonl", nlp.link_many))) == 3
    first = read(tmp_path / "out.jsonl")[0]
    assert datetime.datetime.fromisoformat(first["time"]).year == 1970
    assert (first["price"], first["tags"]) == ("1.50", ["a"])


def test_columns_of_jsonl_get_a_type_that_fits_all(nlp: Disambiguator, tmp_path: Path) -> None:
    rows = [
        {"text": TEXTS[0], "n": 1, "mixed": 1, "deep": {"a": [1]}, "none": None, "list": []},
        {"text": TEXTS[2], "n": 2.5, "mixed": "two", "deep": {}, "late": 1 << 63, "list": ["x"]},
    ]
    linked(nlp, write(tmp_path / "news.jsonl", rows))
    first, _, third, _ = read(tmp_path / "out.parquet")
    assert [(row["n"], row["mixed"], row["none"]) for row in (first, third)] == [(1.0, "1", None), (2.5, "two", None)]
    assert [(row["deep"], row["late"], row["list"]) for row in (first, third)] == [
        ('{"a":[1]}', None, []),
        ("{}", str(1 << 63), ["x"]),  # Parquet's whole numbers are smaller
    ]


def test_bad_rows_are_named_and_the_others_done(island: Path, tmp_path: Path) -> None:
    (tmp_path / "news.csv").write_bytes(
        b'\xef\xbb\xbfid,text\n1,After the Silver Oar.\n\n2,one,too many\n3,"a\nb" c"\n4,Z\xfcrich\n5,Marlow won.\n'
    )
    done = run(tmp_path / "news.csv", "--model", island / "model", "-o", tmp_path / "out.csv")
    assert done.exit_code == 1
    assert str(done.exception) == f"3 rows of {tmp_path / 'news.csv'} could not be read; the others are done"
    assert [(row["id"], row["row"], row["mention"]) for row in read(tmp_path / "out.csv")] == [
        ("1", "1", "Silver Oar"),
        ("5", "5", "Marlow"),
    ]


def test_what_is_wrong_with_a_row(nlp: Disambiguator, tmp_path: Path) -> None:
    csv_, jsonl, parquet = (tmp_path / f"news.{suffix}" for suffix in ("csv", "jsonl", "parquet"))
    csv_.write_bytes(b'id,text\n1\n2,"a" b\n3,\xff\n4,ok\n5,"open\n6,ok\n')
    jsonl.write_bytes(b'{"text": "ok"}\n{\n\n[1]\n{"text": 5}\n{"id": 1}\n{"text": "\xff"}\n')
    pq.write_table(pa.table({"text": ["ok", None]}), parquet)
    said_of_csv = ["row 1 (line 2): it has 1 col", "row 2 (line 3): ", "row 3 (line 4): it is not UTF-8", "", "row 5"]
    said_of_lines = ["line 2: not JSON", "line 4: [1] is no object", "line 5: text is 5; ", "line 6: text is missing"]
    for path, expected in (
        (csv_, said_of_csv),
        (jsonl, ["", *said_of_lines, "line 7: not JSON"]),
        (parquet, ["", "row 2: text is missing or null"]),
    ):
        said = linked(nlp, path, nested=True)
        assert [isinstance(one, InputError) for one in said] == [bool(start) for start in expected]
        for one, start in zip(said, expected, strict=True):
            assert not start or (str(one).startswith(f"{path}, {start}") and "\n" not in str(one)), one
        rows = read(tmp_path / "out.parquet")
        assert [row["reason"] for row in rows] == [str(one) if isinstance(one, InputError) else None for one in said]
        assert [row["resolutions"] is None for row in rows] == [bool(start) for start in expected]


def test_a_table_is_streamed_and_in_order(tmp_path: Path) -> None:
    """Rows are written while later ones are not read yet; the texts of a chunk are linked together."""
    path = tmp_path / "many.csv"
    path.write_text("text\n" + "".join(f"T{number}\n" for number in range(3 * CHUNK + 1)), encoding="utf-8")
    chunks: list[int] = []

    def link(texts: Iterable[str]) -> Iterator[Resolutions]:
        given = list(texts)
        chunks.append(len(given))
        for text in given:
            yield Resolutions(Document(text, (Mention(0, 1),)), (Resolution(0, 1, "T", text, 1.0, 1),))

    out = io.BytesIO()
    answers = link_table(path, "text", out, "csv", link)
    next(answers)
    assert chunks == [CHUNK] and out.getvalue().count(b"\n") == CHUNK + 1
    assert len(list(answers)) == 3 * CHUNK and chunks == [CHUNK, CHUNK, CHUNK, 1]
    rows = list(csv.DictReader(io.StringIO(out.getvalue().decode())))
    assert [row["entity"] for row in rows] == [f"T{number}" for number in range(3 * CHUNK + 1)]


def test_what_was_done_until_an_interrupt_is_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    path.write_text("text\n" + "T\n" * 2 * CHUNK, encoding="utf-8")

    def link(texts: Iterable[str]) -> Iterator[Resolutions]:
        for text in texts:
            yield Resolutions(Document(text, (Mention(0, 1),)), (Resolution(0, 1, "T", text, 1.0, 1),))

    with (tmp_path / "out.parquet").open("wb") as file:
        answers = link_table(path, "text", file, "parquet", link)
        next(answers)
        assert isinstance(answers, Generator)
        answers.close()
    assert pq.read_table(tmp_path / "out.parquet").num_rows == CHUNK


def test_ids_are_told(nlp: Disambiguator, tmp_path: Path) -> None:
    own = b'{"title": "Velm Cup (rowing)", "url": "https://example.org/oar", "id": "17"}'
    more = replace(nlp, added=(own,), wikidata={"Ada Marlow (rower)": "Q2"})
    linked(more, write(tmp_path / "news.csv", [{"text": TEXTS[0]}]))
    oar, marlow = read(tmp_path / "out.parquet")
    assert (oar["entity_url"], oar["entity_id"], oar["wikidata"]) == ("https://example.org/oar", "17", None)
    assert (marlow["entity_id"], marlow["wikidata"]) == (None, "Q2")


def test_open_mentions_are_rows_too(tmp_path: Path) -> None:
    path = write(tmp_path / "news.csv", [{"text": "Tilda"}])
    left_open = Resolution(0, 5, "Tilda", None, 0.0, 0, (), "no candidates", Identity(), "person")
    with (tmp_path / "out.parquet").open("wb") as file:
        answer = Resolutions(Document("Tilda", (Mention(0, 5),)), (left_open,))
        list(link_table(path, "text", file, "parquet", lambda texts: (answer for _ in texts)))
    (row,) = read(tmp_path / "out.parquet")
    assert (row["entity"], row["kind"], row["reason"], row["entity_url"]) == (None, "person", "no candidates", None)


def test_formats_are_told_by_suffixes() -> None:
    assert table_format(Path("a.b/news.csv.zst")) == "csv" and table_format(Path("news.jsonl")) == "jsonl"
    for name in ("news", "news.txt", "news.csv.txt", "news.gz"):
        with pytest.raises(InputError, match="not a table by its name"):
            table_format(Path(name))
    with pytest.raises(InputError, match="not a table by its name"):
        table_format(Path("out.csv.gz"), written=True)


def test_a_text_that_is_named_like_a_table_is_a_text(island: Path, tmp_path: Path) -> None:
    (tmp_path / "news.csv.txt").write_text(TEXTS[0], encoding="utf-8")
    done = run(tmp_path / "news.csv.txt", "--json", "--model", island / "model")
    assert len(orjson.loads(done.stdout)["mentions"]) == 2


def test_without_pyarrow_text_tables_work_and_parquet_says_what_to_install(island: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "news.csv", [{"text": TEXTS[0]}])
    blocked = (
        "import sys; sys.modules['pyarrow'] = sys.modules['pandas'] = sys.modules['polars'] = None; "
        "from deixis.cli import main; sys.argv = ['deixis', *sys.argv[1:]]; main()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for suffix, expected in (
        ("csv", (0, "")),
        ("parquet", (1, "deixis: pyarrow is not installed; run: pip install 'deixis[tables]'\n")),
    ):
        command = [sys.executable, "-c", blocked, "link", str(path), "--model", str(island / "model")]
        done = subprocess.run(
            [*command, "-o", str(tmp_path / f"out.{suffix}")], env=environment, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == expected
    assert len(read(tmp_path / "out.csv")) == 2


def test_an_unusable_table_is_refused(island: Path, tmp_path: Path) -> None:
    good = write(tmp_path / "good.csv", [{"text": "a", "entity": "b"}])
    done = run(good, "--model", island / "model")
    assert isinstance(done.exception, DeixisError) and "has a column 'entity', which the results" in str(done.exception)
    done = run(good, "--nested", "--model", island / "model")
    assert done.exit_code == 0
