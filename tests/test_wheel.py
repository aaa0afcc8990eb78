"""The wheel stands alone: built from the source distribution, installed into an empty environment, it links a text.

Torch and the other dependencies are given; the network is off and the repository out of reach.
"""

from __future__ import annotations

import email
import email.message
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import torch

import deixis
from deixis.artefacts import MANIFEST, Manifest

pytest.importorskip("build", reason="build is not installed: pip install 'deixis[dev]'")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TEXT = "Angela Merkel met Barack Obama in Berlin."

# Runs before anything else in the new environment.
GUARD = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError("the network is off")
    if event == "open" and str(arguments[0]).startswith({forbidden!r}) and "site-packages" not in str(arguments[0]):
        raise RuntimeError(f"the repository is out of reach: {{arguments[0]}}")

sys.addaudithook(refuse)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a wheel that was built from a source distribution, which lies beside it."""
    folder = tmp_path_factory.mktemp("built")
    source, leave = folder / "source", shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, env=without_repository())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def without_repository() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def metadata(wheel: zipfile.ZipFile) -> email.message.Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_string(wheel.read(name).decode())


def test_what_is_in_it(built: Path) -> None:
    (path,) = built.glob("*.whl")
    assert path.name == f"deixis-{deixis.__version__}-py3-none-any.whl"
    package = Path(deixis.__file__).parent
    manifest = Manifest.load(package / "models" / "default" / MANIFEST, "model")
    with zipfile.ZipFile(path) as wheel, tarfile.open(next(built.glob("*.tar.gz"))) as sources:
        told, held = metadata(wheel), set(wheel.namelist())
        packed = {name.partition("/")[2] for name in sources.getnames()}
    wanted = {f"models/default/{name}" for name in (*manifest.files, MANIFEST, "README.md")} | {"py.typed"}
    wanted |= {str(path.relative_to(package)) for path in package.rglob("*.py")}
    wanted |= {str(path.relative_to(package)) for path in (package / "serving" / "page").iterdir()}
    assert {f"deixis/{name}" for name in wanted} <= held
    assert {f"src/deixis/{name}" for name in wanted} | {"README.md", "LICENSE", "pyproject.toml"} <= packed
    assert not any("__pycache__" in name or name.startswith("tests") for name in held)
    assert told["Version"] == deixis.__version__ and told["License-Expression"] == "Apache-2.0"
    assert told["Description-Content-Type"] == "text/markdown" and str(told.get_payload()).startswith("# deixis")
    assert {"hub", "mcp", "serve", "spacy"} <= set(told.get_all("Provides-Extra", []))
    assert told["Requires-Python"] == ">=3.11" and told["Summary"] and told.get_all("Classifier")


def test_it_links_a_text_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    place = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
    subprocess.run(
        [*install, "--quiet", "--no-index", "--no-deps", str(wheel)], check=True, env=without_repository(), cwd=tmp_path
    )
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    (packages / "sitecustomize.py").write_text(GUARD.format(forbidden=f"{ROOT}/"))
    environment = without_repository() | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}

    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    where = run(str(python), "-c", "import deixis; print(deixis.__file__, deixis.__version__)").split()
    assert Path(where[0]).is_relative_to(packages) and where[1] == deixis.__version__
    record = json.loads(run(str(place / "bin" / "deixis"), "link", "--json", TEXT))
    found = {TEXT[one["start"] : one["end"]]: one["resolution"]["entity"] for one in record["mentions"]}
    assert found == {"Angela Merkel": "Angela Merkel", "Barack Obama": "Barack Obama", "Berlin": "Berlin"}
