"""The README's first command as a new user gives it: a fresh clone, `make demo`; how long until a text is linked.

python benchmarks/first_steps.py

Packages are downloaded first and installed from there, so that the time of the network is told by itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIP = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check")


def timed(label: str, command: list[str], folder: Path, **environment: str) -> float:
    """Run a command and say how long it took."""
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, env={**os.environ, **environment}, check=True)
    seconds = time.perf_counter() - begin
    print(f"{label}: {seconds:.0f} s", flush=True)
    return seconds


def main() -> None:
    """Clone, download, install and show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        clone, wheels = Path(name) / "deixis", Path(name) / "wheels"
        timed("clone", ["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT)
        download = [sys.executable, *PIP, "--constraint", "constraints.txt", "--dest", str(wheels), "setuptools>=77"]
        timed("download", [*download, "torch==2.13.0", ".[serve]"], clone)
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        first = timed("make demo, installation included", ["make", "demo"], clone, **offline)
        again = timed("make demo, again", ["make", "demo"], clone, **offline)
        print(f"downloads aside: {first:.0f} s to a linked text, {first - again:.0f} s of them installation")


if __name__ == "__main__":
    main()
