"""The pages are right: the tutorial, the spaCy page and the examples of docstrings are run, every command exists."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import deixis
from deixis.cli import app
from deixis.folder.hub import push

DOCS = Path(__file__).parent.parent / "docs"
SOURCE = Path(deixis.__file__).parent
EXAMPLES = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text()]
PAGES = sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md"])


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the language and the text of the code blocks of a page."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def commands(body: str) -> Iterator[list[str]]:
    """Yield the arguments of the deixis commands in a block."""
    for line in body.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["deixis"]:
            yield words[1:]


def run_page(page: Path, *, shell: bool = True) -> None:
    """Run the blocks of a page in turn; what a Python block prints is what the text block after it shows."""
    scope: dict[str, Any] = {}
    printed = ""
    for language, body in blocks(page):
        if language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, str(page), "exec"), scope)
            printed = out.getvalue()
        elif language == "text":
            assert printed == body
        elif language == "sh" and shell:
            for arguments in commands(body):
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, (arguments, done.output, done.exception)


@pytest.fixture
def velm(island: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which training the island is copying the one that is trained."""

    def build(folder: Path) -> Iterator[None]:
        shutil.copytree(island, folder)
        yield

    monkeypatch.setattr("deixis.toy.build", build)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial_runs(velm: Path) -> None:
    run_page(DOCS / "tutorial.md")
    assert len((velm / "linked.jsonl").read_bytes().splitlines()) == 2


def test_the_spacy_page_runs(velm: Path, island: Path) -> None:
    pytest.importorskip("spacy")
    import deixis.integrations.spacy  # noqa: F401 - registers the pipe where the entry point is not installed

    shutil.copytree(island, velm / "velm")
    run_page(DOCS / "howto" / "spacy.md")


@pytest.mark.parametrize(("name", "needed"), [("tables", ("pandas", "polars")), ("graph", ("networkx",))])
def test_the_pages_of_tables_and_graphs_run(name: str, needed: tuple[str, ...], velm: Path, island: Path) -> None:
    for library in needed:
        pytest.importorskip(library)
    (velm / "velm").symlink_to(island)
    run_page(DOCS / "howto" / f"{name}.md")


def test_the_page_of_agents_runs(velm: Path, island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mcp = pytest.importorskip("mcp")
    (velm / "velm").symlink_to(island)

    def started(command: str, args: list[str]) -> Any:
        """The command as it is on the path of people who installed deixis."""
        assert command == "deixis"
        environment = {"PYTHONPATH": str(SOURCE.parent)}
        return parameters(command=sys.executable, args=["-m", "deixis.cli", *args], env=environment)

    parameters = mcp.StdioServerParameters
    monkeypatch.setattr(mcp, "StdioServerParameters", started)
    run_page(DOCS / "howto" / "agents.md", shell=False)  # its command serves until it is stopped


@pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of huggingface_hub's own upload
def test_the_page_of_hubs_runs(velm: Path, island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("huggingface_hub")
    from tests.folder.hub import Hub
    from tests.folder.test_hub import point_to
    from tests.serving.world import running

    (velm / "velm").symlink_to(island)
    hub = Hub()
    with running(hub.app()) as hub.address:
        point_to(hub.address, velm / "cache", monkeypatch)
        push(island / "model", "hf://owner/name")
        run_page(DOCS / "howto" / "hub.md")
    assert len(hub.repositories["owner/name"]) == 3  # its beginning, and what was pushed here and there


@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_examples_of_docstrings_run(path: Path, velm: Path, island: Path) -> None:
    (velm / "velm").symlink_to(island)
    module = importlib.import_module(".".join(("deixis", *path.with_suffix("").parts)).removesuffix(".__init__"))
    failed, tried = doctest.testmod(module)
    assert tried and not failed


def test_every_public_name_has_an_example() -> None:
    for name in deixis.__all__:
        thing = getattr(deixis, name)
        assert ">>>" in (thing.__doc__ or ""), name
        for method, value in vars(thing).items() if inspect.isclass(thing) else ():
            own = inspect.isfunction(value) and value.__qualname__.startswith(name)
            called = own or isinstance(value, classmethod | property)
            if called and (not method.startswith("_") or method == "__call__"):
                assert ">>>" in (value.__doc__ or ""), f"{name}.{method}"


def test_the_page_of_entities_runs(velm: Path, island: Path) -> None:
    shutil.copytree(island, velm / "velm")
    run_page(DOCS / "howto" / "entities.md")
    assert (velm / "own" / "entities.jsonl").read_bytes() == (velm / "more" / "entities.jsonl").read_bytes()


def test_every_command_shown_exists() -> None:
    root = typer.main.get_command(app)
    shown = 0
    for page in PAGES:
        for arguments in (found for language, body in blocks(page) if language == "sh" for found in commands(body)):
            command: Any = root
            while hasattr(command, "commands"):
                if arguments[0] not in command.commands and hasattr(command, "default"):
                    arguments = [command.default, *arguments]
                assert arguments[0] in command.commands, (page.name, arguments)
                command, arguments = command.commands[arguments[0]], arguments[1:]
            known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
            assert {word for word in arguments if re.match(r"--?[a-z]", word)} <= known, (page.name, arguments)
            shown += 1
    assert shown > 20


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)
