"""What mkdocs does not do by itself: pages from outside docs/, links that fit both here and there, the reference.

The pages link to one another as files of the repository, so that they can be read there. On the site a link to a page
leads to that page, a link to a module to its reference, and a link to anything else is only its text.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "deixis"
FRONT, COMMANDS = "reference/deixis.md", "reference/commands.md"
DOORS = [  # what a reader needs first
    "deixis",
    "deixis.inference",
    "deixis.settings",
    "deixis.documents",
    "deixis.errors",
]
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]\((?P<target>[^)\s]+)\)")
DRAWN = re.compile(r"\S {2,}\S|^[├└│]", re.M)  # columns or lines of characters: to be left as they are


@cache
def pages() -> dict[str, str]:
    """Map the pages, as paths of the repository, to their paths on the site."""
    found = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
    for folder in ("docs", "benchmarks", "recipes"):
        for path in sorted((ROOT / folder).rglob("*.md")):
            name = path.relative_to(ROOT).as_posix()
            found[name] = name.removeprefix("docs/")
    return found


def modules() -> dict[str, Module]:
    """Return our modules by name, commands left out."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("deixis", *path.relative_to(SOURCE).with_suffix("").parts)
        if "cli" not in parts and "__main__" not in parts:
            found[".".join(parts).removesuffix(".__init__")] = Module(path.read_text(encoding="utf-8"))
    return found


class Module:
    """A module as its source tells it: what it says of itself, what is public, what it defines."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        self.told = ast.get_docstring(tree) or ""
        self.defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self.public: list[str] = []
        self.constants: dict[str, str] = {}  # names to the lines that give them values
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        self.homes = {alias.name: node.module for node in imports for alias in node.names}
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                line = ast.get_source_segment(source, node) or ""
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                        if isinstance(name, ast.Name):
                            self.constants[name.id] = line if line.count("\n") < 3 else f"{name.id} = …"
                        if isinstance(name, ast.Name) and name.id == "__all__" and node.value is not None:
                            self.public = ast.literal_eval(node.value)


@cache
def reference() -> dict[str, str]:
    """Make the pages of the reference: the front door, then one page a room of the package."""
    found = modules()
    door = found.pop("deixis")
    homes = [(door.homes.get(name) or "deixis", name) for name in door.public]
    front = [f"{home}.{name}" for home, name in sorted(homes, key=lambda pair: DOORS.index(pair[0]))]
    text = "# deixis\n\nWhat `import deixis` gives. Examples run in the folder of the [tutorial](../tutorial.md).\n\n"
    made = {FRONT: text + "\n\n".join(f"::: {name}" for name in front) + "\n", COMMANDS: commands()}
    for name, module in found.items():
        text = section(name, module, front)
        if text:
            path = f"reference/{name.split('.')[1]}.md"
            made[path] = made.get(path, f"# deixis.{name.split('.')[1]}\n\n") + text
    return made


def section(name: str, module: Module, front: list[str]) -> str:
    """Return a module's part of a page: what it says of itself, its constants, its classes and functions."""
    shown = [f"{name}.{public}" for public in module.public if public in module.defined]
    shown = [public for public in shown if public not in front]
    lines = dict.fromkeys(module.constants[public] for public in module.public if public in module.constants)
    if not shown and not lines:
        return ""
    told = [f"```text\n{part}\n```" if DRAWN.search(part) else part for part in module.told.split("\n\n")]
    constants = ["```python\n" + "\n".join(lines) + "\n```"] if lines else []
    heading = [f"## {name}"] if name.count(".") > 1 else []  # the page of a single module has its name above
    return "\n\n".join([*heading, *told, *constants, *(f"::: {public}" for public in shown)]) + "\n\n"


def commands() -> str:
    """Return the page of the commands, from what their --help says."""
    import typer.main
    from typer.cli import get_docs_for_click

    from deixis.cli import app

    command = typer.main.get_command(app)
    return get_docs_for_click(obj=command, ctx=typer.Context(command), name="deixis", title="Commands")


def on_config(config: MkDocsConfig) -> None:
    """Fill the parts of the navigation that are lists of what there is."""
    found = {
        "Benchmarks": [path for path in pages().values() if path.startswith(("benchmarks/", "recipes/"))],
        "Decisions": [path for path in pages().values() if path.startswith("decisions/")],
        "Reference": [FRONT, COMMANDS, *sorted(set(reference()) - {FRONT, COMMANDS})],
    }
    for part in config.nav or []:
        for title in part:
            part[title] = part[title] or found[title]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/ and the reference."""
    for source, path in pages().items():
        if not source.startswith("docs/"):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / source)))
    for path, text in reference().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links between files of the repository links of the site."""
    sources = {path: source for source, path in pages().items()}
    source = sources.get(page.file.src_uri)
    if source is None:
        return markdown

    def replaced(found: re.Match[str]) -> str:
        target, hash_, anchor = found["target"].partition("#")
        if not target or "://" in target:
            return found[0]
        place = site_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        if place is None:
            return found["text"]
        relative = os.path.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"{found['image']}[{found['text']}]({relative}{hash_}{anchor})"

    return LINK.sub(replaced, markdown)


def site_path(target: str) -> str | None:
    """Return where the site has a file of the repository; None: nowhere."""
    known = pages()
    if target in known:
        return known[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")  # an image
    room = re.match(r"src/deixis/(\w+)", target)
    path = f"reference/{room[1]}.md" if room else ""
    return path if path in reference() else None
