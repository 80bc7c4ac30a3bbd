"""Take the screenshots of the README: the report of the shipped example, and the explorer on it.

Run ``make screenshots``; it needs Chromium, which ``make browser`` installs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import polycal as pc

IMAGES = Path(__file__).resolve().parent / "images"
SIZE = {"width": 1280, "height": 860}


def main():
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light")
        page.goto(write_report(folder).as_uri())
        page.wait_for_timeout(6_000)
        page.screenshot(path=IMAGES / "report.png")
        with explorer(folder) as server:
            page.goto(address(server))
            page.get_by_role("button", name="tops").click()
            page.wait_for_timeout(15_000)
            page.screenshot(path=IMAGES / "explorer.png")
            server.terminate()
        browser.close()


def write_report(folder):
    """The report of the shipped example."""
    sample, path = pc.datasets.load_fashion("evaluation"), folder / "report.html"
    groups = pc.datasets.load_fashion_groups()
    audit = pc.audit(sample.labels, sample.proba, class_names=sample.class_names, groups=groups)
    audit.to_html(path, title="A small network for pictures of clothes")
    return path


def explorer(folder):
    """The explorer on the shipped example, in a process of its own."""
    sample, path = pc.datasets.load_fashion("evaluation"), folder / "clothes.npz"
    pc.write_predictions(path, sample.labels, sample.proba, class_names=sample.class_names)
    (folder / "groups.json").write_text(
        json.dumps({k: list(v) for k, v in pc.datasets.load_fashion_groups().items()})
    )
    command = [sys.executable, "-m", "polycal", "explore", str(path), "--groups", str(folder / "groups.json")]
    return subprocess.Popen([*command, "--no-browser", "--json"], stdout=subprocess.PIPE, text=True)


def address(server):
    """What the explorer prints first."""
    lines = []
    for line in server.stdout:
        lines.append(line)
        if line.startswith("}"):
            break
    return json.loads("".join(lines))["url"]


if __name__ == "__main__":
    main()
