"""The tree of classes on the page: marks, words, what is below, and before and after a calibrator."""

import numpy as np
import pytest
from tests.report.conftest import HOSTILE

import polycal as pc
from polycal.report.tree import mark, node_words, tree_of, tree_words

TREE = {"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car"]}


def node(**changes):
    given = {"predicted": 0.2, "frequency": 0.3, "smooth_error": 0.1, "smooth_error_high": None}
    return given | {"at_least": 0.0, "at_most": 0.05, "discovered": False} | changes


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "same"),
        ({"discovered": True}, "worse"),
        ({"at_most": 0.019}, "better"),
        ({"at_most": 0.019, "discovered": True}, "worse"),
        ({"at_least": None, "at_most": None, "discovered": None, "smooth_error_high": 0.4}, "same"),
    ],
)
def test_marks(changes, expected):
    assert mark(node(**changes)) == expected


def test_words():
    said = "says 0.2000, is 0.3000, error 0.1000, at least 0.0000, at most 0.0500"
    assert node_words(node()) == said
    hidden = node(at_least=None, at_most=None, smooth_error_high=0.4)
    assert node_words(hidden) == "says 0.2000, is 0.3000, error 0.1000 to 0.4000"


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 2000)
    truth = proba * [2.5, 2.5, 1.0, 0.5]
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    names = ("cat", "dog", "cow", "car")
    calibrator = pc.VectorScaling().fit(proba[:1000], labels[:1000], class_names=names)
    options = {
        "class_names": names,
        "taxonomy": TREE,
        "calibrator": calibrator,
        "auditors": {},
        "notions": [],
    }
    return pc.audit(labels[1000:], proba[1000:], **options).to_dict()


def test_the_tree_has_what_is_below(audit):
    animal, vehicle = tree_of(audit)
    assert [one["name"] for one in animal["below"]] == ["pet", "farm"]
    assert (animal["size"], vehicle["below"][0]["name"]) == (3, "car")
    pet = animal["below"][0]
    assert pet["mark"] == "worse"
    assert pet["wrong_below"] == sum(one["mark"] == "worse" for one in pet["below"])
    assert animal["wrong_below"] == sum(
        n["discovered"] for n in audit["nodes"] if n["path"].startswith("animal/")
    )
    assert pet["after"][1] < f"{audit['nodes'][1]['smooth_error']:.4f}"
    wrong = sum(n["discovered"] for n in audit["nodes"])
    assert tree_words(audit["nodes"]).startswith(f"8 nodes: {wrong} found wrong, ")


def test_names_of_nodes_are_text():
    made = pc.datasets.make_calibrated(60, len(HOSTILE), random_state=0)
    tree = {"<b>all</b>": list(HOSTILE[:-1]), HOSTILE[-1]: None}
    page = pc.audit(
        made.labels, made.proba, class_names=HOSTILE, taxonomy=tree, auditors={}, notions=[]
    ).to_html()
    assert "<b>all" not in page
    assert "&lt;b&gt;all" in page
