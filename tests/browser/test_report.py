"""The report in a real browser: it draws, sorts, searches, turns dark, and asks nobody for anything."""

import pytest
from tests.report.conftest import HOSTILE

import polycal as pc


@pytest.fixture(scope="module")
def audit():
    first, second = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    calibrator = pc.TemperatureScaling().fit(first.proba, first.labels, class_names=first.class_names)
    return pc.audit(
        second.labels,
        second.proba,
        class_names=second.class_names,
        groups=pc.datasets.load_fashion_groups(),
        calibrator=calibrator,
    )


@pytest.fixture(scope="module")
def address(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    audit.to_html(path, title="A network for pictures of clothes")
    return path.as_uri()


@pytest.mark.parametrize("size", ["desktop", "phone"])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_fits_and_is_accessible(watch, axe, address, audit, size, dark):
    watched = watch(size, dark=dark)
    page = watched.open(address)
    name = f"report-{size}-{'dark' if dark else 'light'}"
    watched.picture(f"{name}-first")
    watched.picture(f"{name}-all", full_page=True)
    n_pictures = len(audit.pictures) + len(audit.after.pictures)
    # Two for each picture, and the path of sets.
    assert page.locator(".chart svg").count() == 2 * n_pictures + 1
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.locator("h1").bounding_box()["y"] < 400
    assert watched.requests == [address]
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert axe(page) == {}


def test_classes_can_be_sorted(watch, address):
    page = watch().open(address)
    names = page.locator("#class-table tbody th")
    heading = page.locator("#class-table thead th", has_text="Class")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert names.all_inner_texts() == sorted(names.all_inner_texts(), key=str.lower)
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    page.locator("#class-table thead").get_by_role("button", name="It happens").click()
    values = [float(text) for text in page.locator("#class-table tbody td:nth-child(3)").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    assert page.locator("#class-table [aria-sort]").count() == 1


def test_classes_can_be_searched(watch, address):
    page = watch().open(address)
    page.get_by_label("Search classes").fill("SNEAK")
    assert page.locator("#class-table tbody tr:visible th").all_inner_texts() == ["Sneaker"]
    assert page.get_by_role("status").inner_text() == "1 of 10 classes"
    page.get_by_label("Search classes").fill("")
    assert page.locator("#class-table tbody tr:visible").count() == 10


@pytest.mark.parametrize("dark", [False, True])
def test_light_and_dark(watch, address, dark):
    page = watch(dark=dark).open(address)
    button = page.get_by_role("button", name="Dark")

    def brightness():
        colours = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        return sum(colours) / 3

    assert button.get_attribute("aria-pressed") == str(dark).lower()
    assert (brightness() < 128) == dark
    button.press("Space")
    assert button.get_attribute("aria-pressed") == str(not dark).lower()
    assert (brightness() < 128) != dark


def test_hover_shows_values(watch, address):
    watched = watch()
    page = watched.open(address)
    tooltip = page.locator("#vg-tooltip-element")
    page.locator("#picture-0-cumulative").scroll_into_view_if_needed()
    page.locator("#picture-0-cumulative svg").hover()
    assert tooltip.is_visible()
    assert "predictions up to" in tooltip.inner_text()
    assert "undefined" not in tooltip.inner_text()
    watched.picture("report-hover-curve")
    marks = page.locator("#picture-0-reliability svg .mark-symbol.role-mark path")
    marks.nth(marks.count() - 5).hover(force=True)
    assert "it happens" in tooltip.inner_text()
    watched.picture("report-hover-point")


def test_the_first_key_leads_past_the_menu(watch, address):
    page = watch().open(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"


def test_on_paper_nothing_is_folded_up(watch, tmp_path):
    made = pc.datasets.make_calibrated(300, 8, random_state=0)
    audit = pc.audit(
        made.labels, made.proba, groups={f"g{i}": [i] for i in range(8)}, notions=[], auditors={}
    )
    audit.to_html(tmp_path / "report.html")
    watched = watch(dark=True)
    page = watched.open((tmp_path / "report.html").as_uri())
    folded = page.locator("details.fold:not([open])")
    # The groups, and three ranks.
    assert folded.count() == 8 + 3
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#theme").is_hidden()
    watched.picture("report-print", full_page=True)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert folded.count() == 8 + 3


def test_hostile_names_do_nothing(watch, tmp_path):
    made = pc.datasets.make_shifted_subset(1000, len(HOSTILE), error=0.3, random_state=0)
    groups = {name: [i] for i, name in enumerate(HOSTILE)}
    audit = pc.audit(made.labels, made.proba, class_names=HOSTILE, groups=groups, notions=[])
    audit.to_html(tmp_path / "report.html", title=HOSTILE[0], command=HOSTILE[1])
    watched = watch()
    page = watched.open((tmp_path / "report.html").as_uri())
    watched.picture("report-hostile")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    page.get_by_label("Search classes").fill("<script>window")
    assert page.locator("#class-table tbody tr:visible").count() == 2


def test_a_thousand_classes_stay_usable(watch, tmp_path):
    made = pc.datasets.make_calibrated(500, 1000, random_state=0)
    audit = pc.audit(made.labels, made.proba, notions=[], auditors={})
    audit.to_html(tmp_path / "report.html")
    page = watch("phone").open((tmp_path / "report.html").as_uri())
    page.locator("#class-table thead").get_by_role("button", name="Class").click()
    assert page.locator("#class-table tbody th").first.inner_text() == "0"
    assert page.locator("#class-table tbody th").nth(10).inner_text() == "10"
    page.get_by_label("Search classes").fill("99")
    assert page.get_by_role("status").inner_text() == "19 of 1,000 classes"
    assert page.locator(".tall").bounding_box()["height"] < 600


@pytest.fixture(scope="module")
def tree_address(tmp_path_factory):
    """A report with a tree of 2,000 nodes over 1,000 classes."""
    made = pc.datasets.make_shifted_subset(600, 1000, error=0.3, random_state=0)
    tree = {
        f"kind {a}": {
            f"part {a}-{b}": {f"bit {a}-{b}-{c}": [str(a * 100 + b * 10 + c)] for c in range(10)}
            for b in range(10)
        }
        for a in range(10)
    }
    tree["kind 0"]["part 0-0"] |= {"of two": {"of one": tree["kind 0"]["part 0-0"].pop("bit 0-0-9")}}
    path = tmp_path_factory.mktemp("tree") / "report.html"
    pc.audit(made.labels, made.proba, taxonomy=tree, notions=[], auditors={}).to_html(path)
    return path.as_uri()


def seen(page):
    """The names of the nodes that are not folded away or hidden."""
    return page.evaluate(
        "Array.from(document.querySelectorAll('#tree-nodes .name')).filter((name) => name.checkVisibility())"
        ".map((name) => name.textContent)"
    )


def test_a_tree_of_two_thousand_nodes_is_folded_and_searched(watch, tree_address):
    watched = watch("phone", dark=True)
    page = watched.open(tree_address)
    search = page.get_by_label("Search nodes")
    assert page.locator("#tree-nodes li").count() == 10 + 100 + 1000 + 1000 + 1
    assert seen(page) == [f"kind {a}" for a in range(10)]
    page.locator("#tree-nodes summary").first.click()
    assert len(seen(page)) == 20
    search.fill("bit 3-4-5")
    assert seen(page) == ["kind 3", "part 3-4", "bit 3-4-5"]
    assert page.locator("#tree-matches").inner_text() == "1 of 2,111 nodes"
    # What is below a match is folded, and there.
    page.locator("#tree-nodes summary", has_text="bit 3-4-5").click()
    assert seen(page)[-1] == "345"
    watched.picture("report-tree")
    search.fill("no such node")
    assert seen(page) == []
    search.fill("")
    assert len(seen(page)) == 20
    page.get_by_role("button", name="Unfold all").click()
    assert len(seen(page)) == 2111
    page.get_by_role("button", name="Fold all").click()
    assert len(seen(page)) == 10
    page.get_by_role("button", name="✕ only").click()
    wrong = page.locator("#tree-nodes li.worse")
    assert page.locator("#tree-matches").inner_text() == f"{wrong.count():,} of 2,111 nodes"
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]


def test_nodes_are_coloured(watch, axe, tmp_path):
    example = pc.datasets.load_fashion("evaluation")
    names = example.class_names
    tree = {"first": list(names[:5]), "others": {"more": list(names[5:])}}
    audit = pc.audit(example.labels, example.proba, class_names=names, taxonomy=tree, notions=[], auditors={})
    audit.to_html(tmp_path / "report.html")
    page = watch().open((tmp_path / "report.html").as_uri())
    colours = {
        kind: page.locator(f"#tree-nodes li.{kind} > :is(div, details > summary)").first.evaluate(
            "(element) => getComputedStyle(element).backgroundColor"
        )
        for kind in ("worse", "better")
    }
    assert colours == {"worse": "rgb(253, 241, 231)", "better": "rgb(233, 243, 250)"}
    page.get_by_role("button", name="Unfold all").click()
    assert axe(page) == {}


def test_every_state_is_accessible(watch, axe, tmp_path):
    made = pc.datasets.make_calibrated(400, 3, random_state=0)
    for name, rows in (("silent", 400), ("few", 3)):
        audit = pc.audit(made.labels[:rows], made.proba[:rows])
        audit.to_html(tmp_path / f"{name}.html")
        watched = watch()
        page = watched.open((tmp_path / f"{name}.html").as_uri())
        watched.picture(f"report-{name}")
        assert axe(page) == {}
