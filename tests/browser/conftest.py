"""A real browser, with what it logs, asks the network for, and looks like."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "build" / "screenshots"
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
SIZES = {"desktop": (1280, 860), "phone": (390, 844)}


@dataclass
class Watched:
    """A page, what happened in it, and where it may ask for things."""

    page: object
    origin: str
    requests: list = field(default_factory=list)
    messages: list = field(default_factory=list)

    def open(self, address):
        self.page.goto(address)
        self.page.wait_for_selector("html[data-drawn]", timeout=60_000)
        return self.page

    def picture(self, name, **options):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", **options)


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("browser tests need Chromium: make browser")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def watch(browser):
    """Open pages: ``watch("phone", dark=True)``. At the end none may have logged anything or used the network.

    A page from a server may ask that server, its ``origin``.
    """
    watched = []

    def new(size="desktop", *, dark=False, origin="file:"):
        width, height = SIZES[size]
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        one = Watched(page, origin)
        page.on("request", lambda request: one.requests.append(request.url))
        page.on("console", lambda message: one.messages.append(message.text))
        page.on("pageerror", lambda error: one.messages.append(str(error)))
        page.on("dialog", lambda dialog: one.messages.append(dialog.message))
        watched.append(one)
        return one

    yield new
    for one in watched:
        one.page.close()
        assert one.messages == []
        assert [url for url in one.requests if not url.startswith(one.origin)] == []


@pytest.fixture(scope="session")
def axe():
    """What axe-core finds serious; the rest of a test is skipped where it is not installed."""
    source = AXE.read_text(encoding="utf-8") if AXE.exists() else None

    def violations(page):
        if source is None:
            pytest.skip("accessibility tests need axe-core: make browser")
        page.evaluate(source)
        found = page.evaluate("async () => (await axe.run()).violations")
        return {
            v["id"]: [n["html"] for n in v["nodes"]][:3]
            for v in found
            if v["impact"] in {"serious", "critical"}
        }

    return violations
