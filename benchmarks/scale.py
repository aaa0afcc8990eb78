"""Beyond one machine: a real Ray cluster and torchrun hosts, on this machine, against one process.

python benchmarks/scale.py documents ARTICLES --count N -o DOCUMENTS the lines or beginnings of articles, to be linked
python benchmarks/scale.py link MODEL DOCUMENTS --work FOLDER        one process, one worker, two; one killed
python benchmarks/scale.py cost MODEL DOCUMENTS...                   seconds, memory and bytes a document and a link
python benchmarks/scale.py hosts --work FOLDER [START WINDOWS]       loss curves; a host killed and started again

The cluster is `ray start` twice, a CPU each, on loopback; it is ended by its process ids. Every process computes on one
thread. START is a BERT or model folder and WINDOWS what it can be trained on; without them, those of the toy world.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median

import orjson
import torch

from deixis.datasets.jsonl import stream_documents
from deixis.documents import Document, Resolutions
from deixis.inference import Disambiguator
from deixis.toy import RECIPE, build
from deixis.wikipedia.articles import read_articles

ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    # Without this a host that comes back cannot find the others (torch 2.13).
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def deixis(*arguments: object) -> tuple[str, float]:
    """Run a command; return what it printed and the seconds it took."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "deixis.cli", *map(str, arguments)], env=ENVIRONMENT, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"deixis {arguments[0]} failed: {done.stderr[-2000:]}")
    return done.stdout, time.monotonic() - begun


def descendants(process: int) -> list[int]:
    """Return a process and all that it started."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [process, *(one for child in children for one in descendants(int(child)))]


def kill(processes: Sequence[int], with_signal: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for process in processes:
        try:
            os.kill(process, with_signal)
        except ProcessLookupError:
            continue


@contextmanager
def cluster() -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start two Ray nodes with a CPU each; give the address and the nodes."""
    address = f"127.0.0.1:{free_port()}"
    ray = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--num-cpus", "1", "--disable-usage-stats"]
    head = [
        "--head",
        "--node-ip-address",
        "127.0.0.1",
        "--port",
        address.rpartition(":")[2],
        "--include-dashboard=false",
    ]
    nodes: list[subprocess.Popen[bytes]] = []
    # A folder of its own, with a short name for its sockets: no other command takes this cluster for the machine's.
    ENVIRONMENT["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-")
    try:
        for more in (head, ["--address", address]):
            nodes.append(
                subprocess.Popen([*ray, *more], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            time.sleep(8)
        yield address, nodes
    finally:
        for node in reversed(nodes):
            started = descendants(node.pid)
            node.terminate()  # it ends what it started, but for what hangs
            node.wait()
            kill(started, signal.SIGKILL)
        shutil.rmtree(ENVIRONMENT["RAY_TMPDIR"], ignore_errors=True)


# --- Documents ------------------------------------------------------------------------------------------------------


def documents(given: argparse.Namespace) -> None:
    """Write so many texts of an article file as documents, spread evenly over it."""
    texts = [
        (f"{article.title}:{number}", text)
        for article in read_articles(given.articles)
        for number, text in enumerate(
            article.text.splitlines() if given.beginnings is None else [article.text[: given.beginnings]]
        )
        if text.strip()
    ]
    chosen = [texts[n * len(texts) // given.count] for n in range(min(given.count, len(texts)))]
    given.output.write_bytes(b"".join(Document(text, id=name).to_json() + b"\n" for name, text in chosen))
    letters = sum(len(text) for _, text in chosen) / len(chosen)
    print(f"{len(chosen):,} of {len(texts):,} texts, {letters:,.0f} characters each")


# --- Linking --------------------------------------------------------------------------------------------------------


def link(given: argparse.Namespace) -> None:
    """Link documents in one process, by one worker and by two, and by two of which one is killed.

    In brackets: without the start of the workers.
    """
    rates: dict[str, list[tuple[float, float]]] = {"one process": [], "one worker": [], "two workers": []}
    count = sum(1 for line in given.documents.open("rb") if line.strip())
    one, work = given.work / "one.jsonl", given.work
    with cluster() as (address, nodes):

        def over_ray(workers: int, folder: Path) -> tuple[float, float]:
            shutil.rmtree(folder, ignore_errors=True)
            ray = ("--ray", address, "--workers", workers, "--block", given.block)
            said, _ = deixis("link", *ray, given.documents, "--model", given.model, "-o", folder)
            whole = float(re.search(r"([\d,.]+) documents/s", said)[1].replace(",", ""))  # type: ignore[index]
            return whole, at_work(folder, workers)

        for _ in range(given.rounds):
            _, seconds = deixis("link", given.documents, "--model", given.model, "-o", one)
            rates["one process"].append((count / seconds, count / seconds))
            rates["one worker"].append(over_ray(1, work / "one"))
            rates["two workers"].append(over_ray(2, work / "two"))
        if given.rounds:
            for name, found in rates.items():
                print(f"{name:12} {' · '.join(f'{whole:.1f} ({steady:.1f})' for whole, steady in found)} documents/s")
            pairs = list(zip(rates["two workers"], rates["one worker"], strict=True))
            ratios = [median(two[part] / alone[part] for two, alone in pairs) for part in (0, 1)]
            print(f"two workers / one worker: {ratios[0]:.2f}; without the start of the workers {ratios[1]:.2f}")
        if given.kill:
            folder = work / "killed"
            killer = threading.Thread(target=kill_one, args=(folder, given.kill, nodes), daemon=True)
            killer.start()
            whole, _ = over_ray(2, folder)
            print(f"two workers, one killed with -9: {whole:.1f} documents/s")
            compare(folder, given.one or one, count)


def at_work(folder: Path, workers: int) -> float:
    """Return documents a second from when each worker had done a block: without the start of Python and models."""
    done = sorted((path.stat().st_mtime, path) for path in folder.glob("*.jsonl"))
    documents = sum(len(path.read_bytes().splitlines()) for _, path in done[workers:])
    return documents / (done[-1][0] - done[workers - 1][0])


def kill_one(folder: Path, after: int, nodes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Kill a linking worker of the cluster as soon as there are so many outputs."""
    while len(list(folder.glob("*.jsonl"))) < after:
        time.sleep(0.05)
    for process in (one for node in nodes for one in descendants(node.pid)):
        if b"_LinkBlocks" in Path(f"/proc/{process}/cmdline").read_bytes():
            os.kill(process, signal.SIGKILL)
            print(f"killed worker {process} when {len(list(folder.glob('*.jsonl')))} blocks were done", flush=True)
            return


def compare(folder: Path, reference: Path, count: int) -> None:
    """Say in what the answers of a folder differ from those of one process."""
    ours = [orjson.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.open("rb")]
    theirs = [orjson.loads(line) for line in reference.open("rb")]
    order = [record["id"] for record in ours] == [record["id"] for record in theirs]
    mentions = differing = linked = 0
    worst = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        for a, b in zip(mine["mentions"], other["mentions"], strict=True):
            left, right = a["resolution"], b["resolution"]
            mentions += 1
            linked += right is not None
            same = (a["start"], a["end"]) == (b["start"], b["end"]) and (left is None) == (right is None)
            if left is not None and right is not None:
                same = same and (left["entity"], left["step"]) == (right["entity"], right["step"])
                worst = max(worst, abs(left["probability"] - right["probability"]))
            differing += not same
    print(f"{len(ours):,} documents of {count:,}, each once and in order: {order}")
    print(f"{mentions:,} mentions, {linked:,} linked; span, entity or step differs in {differing}")
    print(f"largest difference of a probability: {worst:.1e}")


def cost(given: argparse.Namespace) -> None:
    """Say what a document costs one thread, what of it is not the network, and what its answers weigh."""
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    nlp = Disambiguator.load(given.model)
    print(f"model open: {memory():,.0f} MB")
    nlp.link("The first text is slower than those after it.")
    for path in given.documents:
        documents = list(islice(stream_documents(path), given.count))
        begun = time.process_time()
        found = [nlp.find(document) for document in documents]
        detection = time.process_time() - begun
        if nlp.candidates is not None:
            for document in found:
                nlp.candidates.candidates(document)
        names = time.process_time() - begun
        begun = time.process_time()
        answers = list(nlp.link_many(found))
        whole = time.process_time() - begun + detection
        mentions = sum(map(len, answers))
        linked = sum(resolution.entity is not None for answer in answers for resolution in answer)
        characters, size = (sum(map(len, texts)) for texts in zip(*sizes(answers), strict=True))
        n = len(documents)
        print(f"{path.name}: {n} documents of {characters / n:,.0f} characters, {mentions / n:.1f} mentions")
        print(f"  CPU ms: a document {1e3 * whole / n:.1f}, a link {1e3 * whole / max(1, linked):.1f}")
        print(f"  of it finding mentions {1e3 * detection / n:.2f}, candidates {1e3 * (names - detection) / n:.2f}")
        print(f"  bytes of its answer {size / n:,.0f}; memory at most {memory():,.0f} MB")


def sizes(answers: list[Resolutions]) -> Iterator[tuple[str, bytes]]:
    yield from ((answer.document.text, answer.to_json()) for answer in answers)


def memory() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


# --- Hosts ----------------------------------------------------------------------------------------------------------


def hosts(given: argparse.Namespace) -> None:
    """Train in one process, on two hosts, and on two of which one is killed and started again."""
    if given.start is None or given.windows is None:
        velm = given.work / "velm"
        shutil.rmtree(velm, ignore_errors=True)
        velm.mkdir()
        for _ in build(velm, recipe=replace(RECIPE, epochs=2)):
            pass
        given.start, given.windows = velm / "model", velm / "windows"
    for name in ("one", "two", "lost"):
        shutil.rmtree(given.work / f"{name}.run", ignore_errors=True)
    one, two, lost = (given.work / name for name in ("one", "two", "lost"))
    training = [sys.executable, "-m", "deixis.training"]
    subprocess.run([*training, *recipe(given, one)], env=ENVIRONMENT, check=True, stderr=subprocess.DEVNULL)
    for process in start_hosts(given, two, f"127.0.0.1:{free_port()}"):
        process.wait()
    print(difference(one, two, "two hosts"))
    endpoint = f"127.0.0.1:{free_port()}"
    first, second = start_hosts(given, lost, endpoint)
    while len(losses(lost)) < given.kill:
        time.sleep(0.01)
    kill(descendants(second.pid), signal.SIGKILL)
    second.wait()
    stopped = max(losses(lost))
    again = host(given, lost, endpoint)
    codes = first.wait(), again.wait()
    lines = (lost.with_name("lost.run") / "metrics.jsonl").read_text().splitlines()
    repeated = len(lines) - len(losses(lost))
    print(f"a host killed at step {stopped}, and back: went on from step {stopped - repeated}, exit codes {codes}")
    print(difference(one, lost, "with the loss"))


def recipe(given: argparse.Namespace, out: Path) -> list[str]:
    settings = [f"epochs={given.epochs}", "batch=16", "dropout=0", "learning_rate=1e-3", "warmup_steps=5"]
    return [
        *("pretrain", str(given.start), str(given.windows), str(out), "--recipe", "small-stage2", "--device", "cpu"),
        *("--report-every", "1", "--save-every", "10"),
        *(("--vocabulary", str(given.vocabulary)) if given.vocabulary else ()),
        *(part for setting in settings for part in ("--set", setting)),
    ]


def start_hosts(given: argparse.Namespace, out: Path, endpoint: str) -> list[subprocess.Popen[bytes]]:
    first = host(given, out, endpoint)
    time.sleep(2)  # the first to come keeps the meeting place
    return [first, host(given, out, endpoint)]


def host(given: argparse.Namespace, out: Path, endpoint: str) -> subprocess.Popen[bytes]:
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "run", "--local-addr", "127.0.0.1"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command = [*torchrun, *meeting, "--max-restarts", "3", "-m", "deixis.training", *recipe(given, out)]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL)


def losses(out: Path) -> dict[int, float]:
    """Return the loss of every step; a later telling wins."""
    path = out.with_name(out.name + ".run") / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return {record["step"]: record["loss"] for record in (json.loads(line) for line in lines if line.endswith("\n"))}


def difference(one: Path, other: Path, name: str) -> str:
    ours, theirs = losses(one), losses(other)
    worst = max(abs(ours[step] - theirs[step]) for step in ours)
    last = max(ours)
    return (
        f"{name}: {len(theirs)} of {len(ours)} steps, loss {theirs[1]:.4f} → {theirs[last]:.4f} "
        f"(one process {ours[1]:.4f} → {ours[last]:.4f}), largest difference {worst:.1e}"
    )


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("documents")
    command.add_argument("articles", type=Path)
    command.add_argument("--count", type=int, required=True)
    command.add_argument("--beginnings", type=int, metavar="CHARACTERS", help="of each article, instead of its lines")
    command.add_argument("-o", "--output", type=Path, required=True)
    command.set_defaults(run=documents, work=Path())
    link_parser = command = commands.add_parser("link")
    command.add_argument("model", type=Path)
    command.add_argument("documents", type=Path, help="document JSONL with ids, not compressed")
    command.add_argument("--block", type=float, default=0.125, help="MB")
    command.add_argument("--rounds", type=int, default=1, help="of one process, one worker, two workers")
    command.add_argument("--kill", type=int, default=3, help="kill a worker after so many blocks; 0: do not")
    command.add_argument("--one", type=Path, help="with --rounds 0: what one process has written")
    command.set_defaults(run=link)
    hosts_parser = command = commands.add_parser("hosts")
    command.add_argument("start", type=Path, nargs="?")
    command.add_argument("windows", type=Path, nargs="?")
    command.add_argument("--vocabulary", type=Path, help="with a BERT folder")
    command.add_argument("--epochs", type=int, default=20)
    command.add_argument("--kill", type=int, default=28, help="kill a host after this step")
    command.set_defaults(run=hosts)
    command = commands.add_parser("cost")
    command.add_argument("model", type=Path)
    command.add_argument("documents", type=Path, nargs="+")
    command.add_argument("--count", type=int, default=300, help="documents of each file")
    command.set_defaults(run=cost, work=Path())
    for command in (link_parser, hosts_parser):
        command.add_argument("--work", type=Path, required=True, help="where everything is written")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is ended too
    given.work.mkdir(parents=True, exist_ok=True)
    given.run(given)


if __name__ == "__main__":
    main()
