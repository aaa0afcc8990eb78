"""Ray as another way to spread the work: nothing is lost, nothing doubled, and the answers are those of one process."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import zstandard
from typer.testing import CliRunner, Result

from deixis.cli import app
from deixis.cli.link import address_of
from deixis.errors import DeixisError, InputError
from tests.test_docs import run_page

pytest.importorskip("ray")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq
import ray

from deixis.documents import Document, Identity, Mention, Resolution, Resolutions
from deixis.integrations.blocks import cut, link_block, linked_table
from deixis.integrations.ray import Link, cluster, link_files

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::FutureWarning:ray")  # its own
TEXTS = [
    "After the Silver Oar came Marlow and Brandt.",
    "Marlow won the Velm Cup.",
    "nothing to see here",
    "The crew of the boat rowed with Brandt on Orrin.",
]
BAD = [b"{not json", b'{"id": "no text"}', b"[1]"]


@pytest.fixture(scope="module")
def running() -> Iterator[None]:
    """A cluster of this machine, for the tests of this file."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    with cluster():
        yield
    ray.shutdown()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


def documents(folder: Path, count: int, first: int = 0) -> Path:
    path = folder / f"{count}-{first}.jsonl"
    lines = [Document(TEXTS[n % len(TEXTS)], id=str(n), extra={"n": n}).to_json() for n in range(first, first + count)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def told(line: bytes) -> list[Any]:
    """What a line says, without the last digits of probabilities: they depend on what was computed together."""
    record = orjson.loads(line)
    found = [(m["start"], m["end"], m["resolution"] and m["resolution"]["entity"]) for m in record["mentions"]]
    steps = [
        m["resolution"] and (m["resolution"]["step"], round(m["resolution"]["probability"], 4))
        for m in record["mentions"]
    ]
    return [record["id"], record["n"], found, steps]


def lines_of(folder: Path) -> list[bytes]:
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]


def echo(given: Any) -> Iterator[Any]:
    """Answer without a model: every document has one unresolved mention."""
    for item in given:
        if isinstance(item, InputError):
            yield item
        else:
            answer = Resolution(0, 1, item.text[:1], None, 0.0, 0, (), "no candidates")
            yield Resolutions(Document(item.text, (Mention(0, 1),), item.id), (answer,))


def test_blocks_have_every_line_once(tmp_path: Path) -> None:
    path = documents(tmp_path, 40)
    content = path.read_bytes().replace(b"\n", b"\n\n", 3).removesuffix(b"\n")  # blank lines, no newline at the end
    path.write_bytes(content)
    for size in (61, 100, len(content) - 1, len(content), 10 * len(content)):
        blocks = cut([path], tmp_path / str(size), size)
        assert (blocks[0].start, blocks[-1].end) == (0, len(content))
        assert sum(len(link_block(block, echo)) for block in blocks) == 40
        ids = [orjson.loads(line)["id"] for line in lines_of(tmp_path / str(size))]
        assert ids == list(map(str, range(40)))


def test_a_file_that_breaks_off_keeps_what_was_read(tmp_path: Path) -> None:
    whole = documents(tmp_path, 9000).read_bytes()
    path = tmp_path / "cut.jsonl.zst"
    path.write_bytes(zstandard.compress(whole)[:-9])
    (block,) = cut([path], tmp_path / "out", 10)
    rows = link_block(block, echo)
    assert len(rows) > 4096 and [row.refused for row in rows[-2:]] == [False, True]
    last = lines_of(tmp_path / "out")[-1]
    assert "cut off or damaged" in orjson.loads(last)["reason"]


def test_the_command_answers_as_one_process_does(running: None, island: Path, tmp_path: Path) -> None:
    model = island / "model"
    plain, other = documents(tmp_path, 60), documents(tmp_path, 20, 60)
    packed = tmp_path / "packed.jsonl.zst"
    packed.write_bytes(zstandard.compress(other.read_bytes()))
    one = run("link", plain, packed, "--model", model, "-o", tmp_path / "one.jsonl")
    assert one.exit_code == 0, one.exception
    plain.write_bytes(plain.read_bytes() + b"\n".join(BAD) + b"\n")
    options = ("--ray", plain, packed, "--model", model, "-o", tmp_path / "out", "--block", 0.01)
    done = run("link", *options)
    assert done.exit_code == 0, done.exception
    assert "80  documents" in done.output and "3  rows that are no document" in done.output
    lines = lines_of(tmp_path / "out")
    good, bad = [*lines[:60], *lines[63:]], lines[60:63]
    assert list(map(told, good)) == list(map(told, (tmp_path / "one.jsonl").read_bytes().splitlines()))
    reasons = [orjson.loads(line)["reason"] for line in bad]
    assert ["not JSON" in reasons[0], "text is missing" in reasons[1], "an object" in reasons[2]] == [True] * 3
    assert f"{plain}, byte " in reasons[0] and orjson.loads(bad[0])["line"] == BAD[0].decode()
    assert orjson.loads(bad[1])["id"] == "no text"

    # Finished blocks are not done again, and the one that is missing comes out the same.
    blocks = sorted((tmp_path / "out").glob("*.jsonl"))
    assert len(blocks) == 2
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in blocks}
    blocks[1].unlink()
    again = run("link", *options)
    assert f"{len(blocks) - 1}  blocks that were there" in again.output
    assert blocks[1].read_bytes() == before[blocks[1]][0]
    assert all(path.stat().st_mtime_ns == before[path][1] for path in blocks if path != blocks[1])

    # Answers of another kind do not go among these.
    refused = run("link", *options, "--answer-threshold", 0.5)
    assert isinstance(refused.exception, DeixisError) and "answer_threshold differs" in str(refused.exception)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    refused = run("link", *options[:-4], "-o", tmp_path / "mine")
    assert "holds something else" in str(refused.exception)


def actors() -> list[int]:
    """The processes of actors that link, among our descendants."""
    parents, names = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            names[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended

    def is_ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return [process for process, name in names.items() if b"_LinkBlocks" in name and is_ours(process)]


def test_a_killed_worker_loses_and_doubles_nothing(running: None, island: Path, tmp_path: Path) -> None:
    path = documents(tmp_path, 1200)
    killed: list[int] = []

    def kill() -> None:
        while len(list((tmp_path / "out").glob("*.jsonl"))) < 2:
            time.sleep(0.01)
        killed.extend(actors()[:1])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    counts = link_files([path], tmp_path / "out", island / "model", size=1000)
    killer.join(timeout=10)
    assert killed and counts["blocks"] > 50
    assert counts["documents"] == 1200
    assert [orjson.loads(line)["id"] for line in lines_of(tmp_path / "out")] == list(map(str, range(1200)))


def test_tables_gain_two_columns(island: Path, tmp_path: Path) -> None:
    mentions = [
        [{"start": 10, "end": 20, "candidates": [{"entity": "Velm Cup (rowing)", "prior": 1.0}]}], None, [], None,
    ]  # fmt: skip
    table = pa.table({"key": [1, 2, 3, 4], "text": [*TEXTS[:3], None], "mentions": mentions})
    pq.write_table(table, tmp_path / "texts.parquet", row_group_size=2)
    link, blocks = Link(island / "model"), cut([tmp_path / "texts.parquet"], tmp_path / "out", 1)
    told = [link_block(block, link.answers) for block in blocks]
    assert [[row.refused for row in rows] for rows in told] == [[False, False], [False, True]]
    linked = pa.concat_tables(pq.read_table(block.output) for block in blocks)
    assert linked.select(table.column_names).to_pydict() == table.to_pydict()
    first, second, third, fourth = linked.to_pylist()
    assert [r["entity"] for r in first["resolutions"]] == ["Velm Cup (rowing)"]
    assert [r["text"] for r in second["resolutions"]] == ["Marlow", "Velm Cup"]
    assert second["resolutions"][0]["alternatives"][0]["probability"] == second["resolutions"][0]["probability"]
    assert third["resolutions"] == [] and third["reason"] is None
    assert fourth["resolutions"] is None and "text is missing" in fourth["reason"]
    assert first["resolutions"][0]["url"].endswith("/Velm_Cup_(rowing)")
    # Columns by their names, as Ray gives them where nothing else is asked for, say the same.
    columns = {name: np.array([*table[name].to_pylist(), None], object)[:-1] for name in table.column_names}
    assert link(columns).to_pylist() == linked.to_pylist()


def test_tables_keep_what_an_added_entity_was_given() -> None:
    """Its own page and ids, and no page of Wikipedia where it has none."""
    identities = (Identity("https://example.org/1", "one"), Identity(id="two"), None, Identity(wikidata="Q1"))
    found = [Resolution(0, 1, "A", "Azurel", 1.0, 1, (("Azurel", 1.0),), None, identity) for identity in identities]
    answer = Resolutions(Document("A", tuple(Mention(0, 1) for _ in found)), tuple(found))
    table, _ = linked_table(pa.table({"text": ["A"]}), lambda given: [answer for _ in given])
    told = [(r["url"], r["id"], r["wikidata"]) for r in table["resolutions"].to_pylist()[0]]
    page = "https://en.wikipedia.org/wiki/Azurel"
    assert told == [("https://example.org/1", "one", None), (None, "two", None), (page, None, None), (None, None, "Q1")]


def test_the_page_runs(running: None, island: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "velm").symlink_to(island)
    documents(tmp_path, 1).rename(tmp_path / "documents.jsonl")
    monkeypatch.chdir(tmp_path)
    run_page(Path(__file__).parents[2] / "docs" / "howto" / "ray.md")
    assert len(lines_of(tmp_path / "linked")) == 1


def test_errors_of_workers_are_our_own(running: None, tmp_path: Path) -> None:
    refused = run("link", "--ray", tmp_path / "none.jsonl", "--model", tmp_path, "-o", tmp_path / "out")
    assert "none.jsonl does not exist" in str(refused.exception)
    refused = run("link", "--ray", documents(tmp_path, 1), "--model", tmp_path, "-o", tmp_path / "out")
    assert "manifest.json does not exist" in str(refused.exception)
    assert run("link", "--ray", documents(tmp_path, 1), "--model", tmp_path).exit_code == 2


def test_the_address_is_among_the_arguments(tmp_path: Path) -> None:
    assert address_of(["10.0.0.1:6379", "a.jsonl"]) == ("10.0.0.1:6379", ["a.jsonl"])
    assert address_of(["a.jsonl", "head:6379"]) == ("head:6379", ["a.jsonl"])
    assert address_of(["a.jsonl", "b.jsonl"]) == (None, ["a.jsonl", "b.jsonl"])
    with pytest.raises(InputError, match="nothing to read"):
        address_of(["auto"])


def test_without_ray_one_line_says_what_to_install(tmp_path: Path) -> None:
    path = documents(tmp_path, 1)
    blocked = (
        "import sys; sys.modules['ray'] = sys.modules['pyarrow'] = None; from deixis.cli import main; "
        "sys.argv = ['deixis', *sys.argv[1:]]; main()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", blocked, "link", "--ray", path, "--model", tmp_path, "-o", tmp_path / "out"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "deixis: Ray is not installed; run: pip install 'deixis[ray]'\n")
