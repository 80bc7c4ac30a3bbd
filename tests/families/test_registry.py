import pytest

import polycal as pc
from polycal.families.defaults import NOTIONS, parse_notion


def test_every_notion_has_its_name():
    assert set(NOTIONS) == {
        "confidence", "top-label", "top-set", "classwise", "canonical", "subset-smooth", "projected-smooth", "sigmoid",
        "low-degree", "decision", "halfspace", "full-smooth",
    }  # fmt: skip


@pytest.mark.parametrize("name", NOTIONS)
def test_names_alone_are_the_defaults(name):
    assert parse_notion(name) == NOTIONS[name]()


@pytest.mark.parametrize(
    ("text", "notion"),
    [
        ("confidence:20", pc.Confidence(n_bins=20)),
        ("classwise:smooth", pc.Classwise(smooth=True)),
        ("subset-smooth:3", pc.SubsetSmooth(max_size=3)),
        ("sigmoid:2.5", pc.Sigmoid(2.5)),
        ("decision:3", pc.Decision(actions=3)),
    ],
)
def test_values(text, notion):
    assert parse_notion(text) == notion


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "'nothing' is not one of confidence"),
        ("sigmoid:steep", "'steep' is not a number"),
        ("confidence:0", "n_bins"),
        ("halfspace:3", "has no parameter"),
    ],
)
def test_wrong_texts_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_notion(text)
