"""The page of a monitor in a real browser: it draws, fits, and asks nobody for anything."""

import numpy as np
import pytest

import polycal as pc


@pytest.fixture(scope="module")
def monitor():
    sample = pc.datasets.load_fashion("evaluation")
    swapped = sample.proba[2000:3000, [6, 1, 2, 3, 4, 5, 0, 7, 8, 9]]
    watched = pc.Monitor(tolerance=0.02, class_names=sample.class_names)
    watched.update(sample.labels[:2000], sample.proba[:2000])
    return watched.update(sample.labels[2000:3000], swapped)


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_fits_and_is_accessible(watch, axe, monitor, tmp_path, size, dark):
    monitor.to_html(tmp_path / "monitor.html", title="Pictures of <clothes>")
    watched = watch(size, dark=dark)
    page = watched.open((tmp_path / "monitor.html").as_uri())
    watched.picture(f"monitor-{size}-{'dark' if dark else 'light'}", full_page=True)
    assert page.locator(".chart svg").count() == 1 + min(len(monitor.findings), 6)
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.locator("h1").inner_text() == "The probabilities are no longer right"
    assert "before" in page.locator("#finding-0-reliability").inner_text()
    assert np.isclose(monitor.since, 2000, atol=100)
    assert axe(page) == {}
