import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from tests.report.conftest import HOSTILE

import polycal as pc
from polycal.report.references import PAPER_URL

# What the templates use, and nothing that a name could have brought in.
ALLOWED_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "script",
        "noscript",
        "header",
        "nav",
        "main",
        "section",
    ),
    *(
        "article",
        "footer",
        "figure",
        "figcaption",
        "div",
        "p",
        "span",
        "i",
        "strong",
        "br",
        "a",
        "code",
        "pre",
    ),
    *("h1", "h2", "h3", "ul", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "button", "label", "input"),
}


class Elements(HTMLParser):
    """Tags, attributes, texts and contents of scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.texts, self._in = [], [], [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self._in = tag

    def handle_endtag(self, tag):
        self._in = None

    def handle_data(self, data):
        (self.scripts if self._in == "script" else self.texts).append(data)


def charts_of(page):
    return json.loads(re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1])


def test_every_audit_becomes_a_page(audit):
    page = audit.to_html()
    elements = Elements(page)
    assert page.startswith("<!DOCTYPE html>")
    assert set(elements.tags) <= ALLOWED_TAGS
    assert elements.tags.count("script") == len(elements.scripts) == 3
    pictures = len(audit.pictures) + (len(audit.after.pictures) if audit.after else 0)
    charts = charts_of(page)
    assert len(charts) == 2 * pictures + (len(audit.path) > 1)
    ids = [value for _, name, value in elements.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    assert {chart["id"] for chart in charts} <= set(ids)
    assert page.count('<tr><th scope="row">') >= audit.n_classes


def test_nothing_is_loaded_and_only_the_citation_is_linked(audit):
    attributes = Elements(audit.to_html()).attributes
    assert not [a for a in attributes if a[1] in {"src", "srcset", "action", "data", "poster"}]
    assert not [a for a in attributes if a[1].startswith("on")]
    links = {value for _, name, value in attributes if name == "href" and not value.startswith("#")}
    assert links == {PAPER_URL}
    styles = [value for _, name, value in attributes if name == "style"]
    assert all(re.fullmatch(r"width: \d+(\.\d+)?%", style) for style in styles)


def test_hostile_names_are_text(hostile):
    page = hostile.to_html(title=HOSTILE[2], command=HOSTILE[1])
    elements = Elements(page)
    text = "".join(elements.texts)
    assert all(name in text for name in HOSTILE)
    assert "49" not in re.findall(r"\d+ \{% raw %\}", text)
    # Only the reader's own scripts can run: the policy names them by hash.
    assert "window.hacked = 1</script>" not in page
    policy = next(value for tag, name, value in elements.attributes if (tag, name) == ("meta", "content"))
    assert "'unsafe-eval'" not in policy
    assert "script-src 'sha256-" in policy


def test_a_page_for_a_hundred_classes_is_small():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(100, 0.1), 3000)
    names = [f"class number {i}" for i in range(100)]
    groups = {f"group {i}": names[5 * i : 5 * i + 5] for i in range(20)}
    audit = pc.audit(
        rng.integers(0, 100, 3000),
        proba,
        class_names=names,
        groups=groups,
        notions=[],
        auditors={"classwise": pc.NotionAuditor(pc.Classwise(smooth=True))},
    )
    assert len(audit.to_html().encode()) <= 3_000_000


def test_the_same_audit_gives_the_same_page(proven):
    assert proven.to_html() == proven.to_html()


def test_the_file_is_the_page(proven, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    page = proven.to_html(path, title="My model")
    assert path.read_text(encoding="utf-8") == page
    assert "<title>My model: Not calibrated</title>" in page
    assert list(tmp_path.iterdir()) == [path]


def test_the_first_screen_is_in_plain_words(proven):
    text = " ".join("".join(Elements(proven.to_html()).texts).split())
    first = text[: text.index("What was said, and what happened")]
    for words in ("Not calibrated", "off by at least", "It says", "It happens", "What to do", "4,000"):
        assert words in first
    assert not re.search(r"smCE|Lipschitz|witness|certificate|Holm", first)


def test_pictures_of_found_questions_say_on_which_rows_they_are(proven):
    page = proven.to_html()
    assert "rows that judged it, which the search never saw" in page
    assert "Drawn on the 2,000 rows" in page


def test_before_and_after(compared):
    text = " ".join("".join(Elements(compared.to_html()).texts).split())
    assert "Before and after the calibrator" in text
    assert "TemperatureScaling()" in text
    assert "They must not be rows the calibrator was fitted on" in text
    series = {row["series"] for row in charts_of(compared.to_html())[0]["spec"]["data"]["values"]}
    assert series == {"before", "after"}


def test_an_audit_without_pictures_is_a_page_too(proven):
    page = replace(proven, pictures=()).to_html()
    assert [chart["id"] for chart in charts_of(page)] == ["path-chart"]
    assert 'id="pictures"' not in page
    assert "#pictures" not in page
    assert "animal" in page


def test_many_groups_are_folded_up():
    made = pc.datasets.make_calibrated(200, 8, random_state=0)
    audit = pc.audit(
        made.labels, made.proba, groups={f"g{i}": [i] for i in range(8)}, notions=[], auditors={}
    )
    page = audit.to_html()
    # And three ranks.
    assert page.count('<details class="fold"') == 8 + 3
    assert '<details class="fold" open>' not in page


@pytest.mark.parametrize(
    ("command", "shown"), [(None, "random_state=0"), ("polycal audit p", "polycal audit p")]
)
def test_how_to_reproduce(proven, command, shown):
    page = proven.to_html(command=command)
    assert shown in page
    assert f"polycal {pc.__version__}" in page
    assert "numpy" in page
