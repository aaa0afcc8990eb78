"""The house plan holds: who imports whom, where torch may enter, no cycles (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import deixis

ROOT = Path(deixis.__file__).parent
# Where torch may be imported: everything else stays instant.
TORCH = {"network", "knowledge", "folder", "disambiguation", "training", "inference", "toy"}
# A room may enter the rooms of lower floors, and its own.
FLOORS = [
    {"documents", "errors", "artefacts", "settings", "rendering", "languages"},
    {"network", "wikipedia"},
    {"knowledge"},
    {"folder", "corpus", "datasets", "disambiguation"},
    {"training", "inference"},
    {"evaluation", "serving", "integrations", "toy"},
    {"cli"},
]


@cache
def rooms() -> dict[str, list[ast.Module]]:
    """Return the parsed modules of each room: a module of the package or a folder of them."""
    found: dict[str, list[ast.Module]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room != "__init__":
            found.setdefault(room, []).append(ast.parse(path.read_text()))
    return found


def imports(tree: ast.Module, types: bool = False) -> set[str]:
    """Return the full names of all imported modules, also inside functions; those for types alone where asked."""
    found: set[str] = set()
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            module = node.module or ""
            found |= {f"{module}.{alias.name}" for alias in node.names} if module == "deixis" else {module}
        pending.extend(ast.iter_child_nodes(node))
    return found


def floor(room: str) -> int:
    return next(level for level, floor_rooms in enumerate(FLOORS) if room in floor_rooms)


def test_every_room_is_on_the_plan() -> None:
    assert set(rooms()) <= set().union(*FLOORS)


def test_imports_point_down() -> None:
    for room, trees in rooms().items():
        entered = {name.split(".")[1] for tree in trees for name in imports(tree) if name.startswith("deixis.")}
        for other in entered - {room} - {"__version__"}:
            assert floor(other) <= floor(room), f"{room} imports {other}, which stands above it"


def test_rooms_have_no_cycles() -> None:
    graph = {
        room: {name.split(".")[1] for tree in trees for name in imports(tree, types=True) if name.startswith("deixis.")}
        - {room}
        for room, trees in rooms().items()
    }

    def visit(room: str, path: tuple[str, ...]) -> None:
        assert room not in path, " -> ".join((*path, room))
        for other in graph.get(room, set()):
            visit(other, (*path, room))

    for room in graph:
        visit(room, ())


def test_torch_enters_only_where_it_may() -> None:
    """Commands import it inside their functions, through these rooms; data and `--help` never do."""
    for room, trees in rooms().items():
        if room not in TORCH:
            for tree in trees:
                assert not any(name.split(".")[0] == "torch" for name in imports(tree)), room


def test_clusters_are_the_integrations_business() -> None:
    for room, trees in rooms().items():
        if room != "integrations":
            for tree in trees:
                assert not {name.split(".")[0] for name in imports(tree)} & {"ray", "pyarrow"}, room


def test_no_pickle_anywhere() -> None:
    for room, trees in rooms().items():
        for tree in trees:
            assert not imports(tree) & {"pickle", "dill", "joblib", "cloudpickle"}, room
