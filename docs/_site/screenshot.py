"""Take the picture of the page that the README shows: one example of the page after some steps.

python docs/_site/screenshot.py MODEL --example 6 --step 9 -o docs/images/page.png
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Serve the model on loopback, play the example in Chromium, take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--example", type=int, default=1, help="which of the page's examples, from 1")
    parser.add_argument("--step", type=int, default=1, help="how many steps are taken")
    parser.add_argument("-o", "--output", type=Path, default=Path("docs/images/page.png"))
    given = parser.parse_args()
    command = [sys.executable, "-m", "deixis.cli", "serve", "--model", str(given.model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            address = re.search(r"http://\S+", server.stderr.readline())
            assert address, "the server did not start"
            take(address[0], given.example, given.step, given.output)
        finally:
            server.terminate()


def take(address: str, example: int, step: int, path: Path) -> None:
    """Play the example and write the picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1120, "height": 760})
        page.goto(address)
        page.locator("#examples option").nth(example).wait_for(state="attached")
        page.locator("#examples").select_option(index=example)
        page.locator("#result").wait_for(timeout=60_000)
        page.locator("#slider").fill(str(step))
        page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
        page.wait_for_timeout(500)  # the bars move to their places
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    main()
