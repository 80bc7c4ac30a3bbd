"""The explorer in a real browser: pick, search, invert, groups, the worst found; light and dark, wide and narrow."""

import json
import signal
import subprocess
import sys

import pytest
from tests.report.conftest import HOSTILE

import polycal as pc


@pytest.fixture(scope="module")
def start(browser, tmp_path_factory):
    """Start explorers and give their addresses; end them all."""
    started = []

    def explore(sample, *options):
        path = tmp_path_factory.mktemp("explorer") / "predictions.npz"
        pc.write_predictions(path, sample.labels, sample.proba, class_names=sample.class_names)
        command = [sys.executable, "-m", "polycal", "explore", path, "--no-browser", "--quiet", *options]
        started.append(subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True))
        return started[-1].stdout.readline().strip()

    yield explore
    for process in started:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0


@pytest.fixture(scope="module")
def clothes():
    return pc.datasets.load_fashion("evaluation")


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    path = tmp_path_factory.mktemp("groups") / "groups.yaml"
    lines = [f"{name}: [{', '.join(c)}]" for name, c in pc.datasets.load_fashion_groups().items()]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def plain(start, clothes, groups):
    return start(clothes, "--groups", groups)


@pytest.fixture(scope="module")
def compared(start, clothes, groups, tmp_path_factory):
    first = pc.datasets.load_fashion("calibration")
    path = tmp_path_factory.mktemp("calibrator") / "model.polycal"
    pc.TemperatureScaling().fit(first.proba, first.labels, class_names=first.class_names).save(path)
    return start(clothes, "--groups", groups, "--calibrator", path)


@pytest.fixture
def visit(watch):
    """Open an explorer and wait until everything is there, the search included."""

    def new(address, *options, **named):
        watched = watch(*options, **named, origin=address.partition("#")[0])
        watched.open(address)
        watched.page.wait_for_selector("#searching", state="hidden", timeout=60_000)
        settle(watched.page)
        return watched

    return new


def settle(page):
    page.wait_for_selector("html[data-judged]", timeout=60_000)


def error(page, series=0):
    settle(page)
    return float(page.locator(".error").nth(series).inner_text())


def expected(sample, *names):
    value = pc.smooth_calibration_error(
        sample.labels, sample.proba, subset=names or None, class_names=sample.class_names
    )
    return round(value, 4)


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_fits_and_is_accessible(visit, axe, plain, clothes, size, dark):
    watched = visit(plain, size, dark=dark)
    page = watched.page
    name = f"explorer-{size}-{'dark' if dark else 'light'}"
    watched.picture(f"{name}-first")
    assert page.locator("h1").inner_text() == "Is the most likely class right?"
    assert page.locator(".charts .chart svg").count() == 2
    assert page.locator("#path .chart svg").count() == 1
    assert error(page) == expected(clothes)
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    page.locator("#worst button").first.click()
    settle(page)
    page.mouse.move(0, 0)
    watched.picture(f"{name}-all", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert axe(page) == {}


def test_classes_are_searched_picked_inverted_and_cleared(visit, plain, clothes):
    watched = visit(plain)
    page = watched.page
    page.get_by_label("Search classes").fill("s")
    shown = page.locator("#classes li:visible .name").all_inner_texts()
    assert shown == [name for name in clothes.class_names if "s" in name.lower()]
    page.get_by_role("button", name=f"Pick these {len(shown)}").click()
    assert error(page) == expected(clothes, *shown)
    page.get_by_label("Search classes").fill("")
    page.get_by_role("button", name="Invert").click()
    others = [name for name in clothes.class_names if name not in shown]
    assert error(page) == pytest.approx(expected(clothes, *others), abs=1e-4)
    assert page.locator("#classes input:checked").count() == len(others)
    page.get_by_role("button", name="Clear").click()
    settle(page)
    assert page.locator("h1").inner_text() == "Is the most likely class right?"
    page.get_by_role("checkbox", name="Sneaker").press("Space")
    page.get_by_role("checkbox", name="Sandal").check()
    settle(page)
    assert page.locator("h1").inner_text() == "Is it Sandal or Sneaker?"
    assert error(page) == expected(clothes, "Sneaker", "Sandal")
    assert page.locator("#examples tr").count() == 12
    watched.picture("explorer-picked")


@pytest.fixture(scope="module")
def large(start, tmp_path_factory):
    """An explorer with a tree of 2,110 nodes over 1,000 classes."""
    made = pc.datasets.make_shifted_subset(400, 1000, error=0.3, random_state=0)
    paths = [f"kind {c // 100}/part {c // 10}/bit {c}/{c}" for c in range(1000)]
    tree = tmp_path_factory.mktemp("tree") / "tree.csv"
    tree.write_text("path\n" + "\n".join(paths) + "\n")
    return start(made, "--taxonomy", tree)


def test_a_tree_of_two_thousand_nodes_is_searched_and_asked(watch, large):
    # It is there before the search has ended.
    watched = watch(origin=large.partition("#")[0])
    page = watched.open(large)
    nodes = page.locator("#tree-nodes .name")
    assert nodes.count() == 2110
    page.get_by_label("Search nodes").fill("bit 345")
    assert page.locator("#tree-matches").inner_text() == "1 of 2,110 nodes"
    shown = (
        "Array.from(document.querySelectorAll('#tree-nodes .name')).filter((name) => name.checkVisibility())"
    )
    seen = f"{shown}.map((name) => name.textContent)"
    assert page.evaluate(seen) == ["kind 3", "part 34", "bit 345"]
    page.locator("#tree-nodes button", has_text="part 34").click()
    settle(page)
    assert page.locator("h1").inner_text() == f"Is it {', '.join(map(str, range(340, 349)))} or 349?"
    assert page.locator("#tree-nodes button", has_text="part 34").get_attribute("aria-pressed") == "true"
    watched.picture("explorer-tree")
    page.get_by_label("Search nodes").fill("")
    page.get_by_role("button", name="Unfold all").click()
    assert len(page.evaluate(seen)) == 2110


@pytest.fixture(scope="module")
def treed(start, clothes, tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "tree.yaml"
    names = clothes.class_names
    path.write_text(f"first: [{', '.join(names[:5])}]\nothers: {{more: [{', '.join(names[5:])}]}}\n")
    costs = path.with_name("tagging.yaml")
    costs.write_text("".join(f"{name}: {{{name}: 0, default: 1}}\n" for name in names) + "ask: 0.3\n")
    return start(clothes, "--taxonomy", path, "--losses", costs)


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_a_tree_is_coloured_and_accessible(visit, axe, treed, clothes, size):
    watched = visit(treed, size, dark=size == "phone")
    page = watched.page
    page.wait_for_selector("html[data-marked]", timeout=60_000)
    page.get_by_label("Nodes below first").click()
    assert page.locator("#tree-nodes button", has_text="Dress").is_visible()
    page.get_by_role("button", name="Unfold all").click()
    page.locator("#tree-nodes button", has_text="first").click()
    assert error(page) == expected(clothes, *clothes.class_names[:5])
    assert page.locator("#tree-nodes li.worse").count() > 0
    page.get_by_role("button", name="top 3").click()
    assert error(page) == round(pc.calibration_error(clothes.labels, clothes.proba, pc.TopSet(3)), 4)
    assert page.locator("h1").inner_text() == "Is it among the 3 most likely?"
    assert page.get_by_role("button", name="top 3").get_attribute("aria-pressed") == "true"
    assert page.locator("#cost-cards .chart svg").count() == 1
    assert "It cost 0.0996" in page.locator("#cost-cards").inner_text()
    page.locator("#costs").scroll_into_view_if_needed()
    watched.picture(f"explorer-costs-{size}")
    page.locator("#tree-nodes button", has_text="first").click()
    settle(page)
    watched.picture(f"explorer-tree-{size}")
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert axe(page) == {}


def test_saved_groups(visit, plain, clothes):
    page = visit(plain).page
    button = page.get_by_role("button", name="footwear")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert error(page) == expected(clothes, *pc.datasets.load_fashion_groups()["footwear"])
    page.get_by_role("checkbox", name="Sneaker").uncheck()
    assert button.get_attribute("aria-pressed") == "false"
    page.get_by_text("2 classes count as yes").click()
    assert page.locator("#members p").inner_text() == "Sandal, Ankle_boot"


def test_the_worst_found_is_shown_on_rows_it_was_not_found_on(visit, plain):
    page = visit(plain).page
    first = page.locator("#worst button").first
    assert "proven on held-out rows" in first.inner_text()
    first.click()
    settle(page)
    note = page.locator("#honesty")
    assert (
        note.inner_text() == "Found by a search on 5,000 rows; shown on the 5,000 others, which it never saw."
    )
    assert page.locator(".count").last.inner_text() != ""
    assert page.locator(".badge").inner_text() == "✕ More than chance"
    page.get_by_label("all 10,000 rows").check()
    settle(page)
    assert "looks worse than it is" in note.inner_text()


def test_raw_and_recalibrated_stand_side_by_side(visit, axe, compared):
    watched = visit(compared)
    page = watched.page
    page.get_by_role("button", name="tops", exact=True).click()
    settle(page)
    watched.picture("explorer-compared", full_page=True)
    assert page.locator(".one h2").all_inner_texts() == ["As given", "Recalibrated"]
    boxes = [page.locator(".one").nth(i).bounding_box() for i in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert page.locator(".charts .chart svg").count() == 4
    assert error(page) != error(page, 1)
    assert page.locator("#examples-head th").all_inner_texts()[:3] == ["Row", "It says", "Recalibrated"]
    assert axe(page) == {}


def test_light_and_dark(visit, plain):
    page = visit(plain).page

    def brightness():
        colours = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return sum(colours) / 3

    assert brightness() > 200
    page.get_by_role("button", name="Dark").click()
    assert brightness() < 50


def test_the_answer_is_one_touch_away_on_a_phone(visit, compared):
    sync_api = pytest.importorskip("playwright.sync_api")
    watched = visit(compared, "phone")
    page = watched.page
    watched.picture("explorer-compared-phone")
    peek = page.locator("#peek")
    assert peek.bounding_box()["y"] + peek.bounding_box()["height"] <= page.viewport_size["height"]
    peek.click()
    sync_api.expect(page.locator("h1")).to_be_in_viewport()


def test_the_token_leaves_the_address_and_stays_with_the_tab(visit, watch, plain):
    address = plain.partition("#")[0]
    page = visit(plain).page
    assert page.url == address
    page.reload()
    settle(page)
    stranger = watch(origin=address)
    stranger.page.goto(address)
    alert = stranger.page.get_by_role("alert")
    assert "Open the whole address" in alert.inner_text()
    stranger.picture("explorer-stranger")
    assert not stranger.page.locator("#explorer").is_visible()
    # The browser logs every refused request.
    assert [m for m in stranger.messages if "403" not in m] == []
    stranger.messages.clear()


def test_hostile_names_do_nothing(visit, start, tmp_path):
    made = pc.datasets.make_shifted_subset(1000, len(HOSTILE), error=0.3, random_state=0)
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({name: [i] for i, name in enumerate(HOSTILE)}))
    sample = pc.Sample(made.proba, made.labels, None, tuple(HOSTILE))
    watched = visit(start(sample, "--groups", groups))
    page = watched.page
    page.get_by_role("button", name="Pick all").click()
    settle(page)
    page.get_by_role("button", name="Invert").click()
    for button in page.locator("#groups button, #worst button").all():
        button.click()
        settle(page)
    watched.picture("explorer-hostile")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("#classes .name").first.text_content() == HOSTILE[0]


def test_when_the_explorer_has_ended_the_page_says_so(visit, clothes, start):
    watched = visit(start(clothes.take(slice(0, 500))))
    page = watched.page
    page.route("**/api/**", lambda route: route.abort())
    page.get_by_role("checkbox", name="Coat").check()
    page.get_by_role("alert").wait_for()
    assert "has ended" in page.get_by_role("alert").inner_text()
    assert [m for m in watched.messages if "ERR_FAILED" not in m] == []
    watched.messages.clear()


def test_a_thousand_classes_stay_usable(visit, start):
    made = pc.datasets.make_calibrated(500, 1000, random_state=0)
    watched = visit(start(pc.Sample(made.proba, made.labels)))
    page = watched.page
    page.get_by_label("Search classes").fill("99")
    page.get_by_role("button", name="Pick these 19").click()
    settle(page)
    assert page.locator("#matches").inner_text() == "19 of 1,000"
    page.get_by_label("Search classes").fill("")
    page.get_by_role("button", name="Invert").click()
    settle(page)
    assert page.locator("h1").inner_text() == "Is it one of 981 classes (0, 1, 2, ...)?"
    assert page.locator("#classes").bounding_box()["height"] < 600
    watched.picture("explorer-thousand")
