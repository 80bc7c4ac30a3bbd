"""Trees of classes: read in any form, refused in one line, and every node a question."""

import json

import numpy as np
import pytest

import polycal as pc
from polycal.measures.smooth import smooth_error
from polycal.sample import Sample, ask_subset

TREE = {"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car"]}
PATHS = ["animal/pet/cat", "animal/pet/dog", "animal/farm/cow", "vehicle/car"]
PARENTS = {
    "animal": None, "pet": "animal", "cat": "pet", "dog": "pet", "farm": "animal", "cow": "farm", "vehicle": None,
    "car": "vehicle",
}  # fmt: skip
NAMES = ("cat", "dog", "cow", "car")


@pytest.mark.parametrize("tree", [TREE, PATHS, PARENTS, [TREE], pc.make_taxonomy(TREE)])
def test_all_forms_are_one_tree(tree):
    made = pc.make_taxonomy(tree)
    assert made.paths == pc.make_taxonomy(TREE).paths
    assert made.parents.tolist() == [-1, 0, 1, 1, 0, 4, -1, 6]
    assert made.depths.tolist() == [1, 2, 3, 3, 2, 3, 1, 2]
    members = dict(zip(made.paths, made.members(4, NAMES), strict=True))
    assert members["animal"].tolist() == [0, 1, 2]
    assert members["animal/pet"].tolist() == [0, 1]
    assert members["vehicle/car"].tolist() == [3]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tree.yaml", "animal:\n  pet: [cat, dog]\n  farm: [cow]\nvehicle:\n  car:\n"),
        ("tree.json", json.dumps(TREE)),
        ("paths.json", json.dumps(PATHS)),
        ("tree.csv", "path\n" + "\n".join(PATHS) + "\n"),
        ("tree.tsv", "class\tpath\ncat\tanimal/pet\ndog\tanimal/pet\ncow\tanimal/farm/cow\ncar\tvehicle\n"),
        ("parents.csv", "node,parent\n" + "".join(f"{c},{p or ''}\n" for c, p in PARENTS.items())),
    ],
)
def test_files(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert pc.read_taxonomy(tmp_path / name).paths == pc.make_taxonomy(TREE).paths


def nested(depth):
    tree = ["leaf"]
    for _ in range(depth):
        tree = {"down": tree}
    return tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "must be a nested mapping that is not empty"),
        ({"a": ["b", "b"]}, "the leaf 'b' is there twice"),
        ({"a": {"": ["b"]}}, "an empty text"),
        ({"a": [1.5]}, "the float 1.5"),
        ({"a": [True]}, "the bool True; names must be text. Put quotes"),
        ({"a": "b", "b": "a"}, "above itself"),
        ({"a": "b", "b": "c", "c": "b", "d": None}, "above itself"),
        ({"a": "nobody"}, "'nobody', which is no node"),
        (["a//b"], "has an empty part"),
        (["a/b", "a/b"], "given twice"),
        (["a/b", "a/b/c"], "a class must be a leaf"),
        (nested(100), "more than 64 deep"),
        ({"a": {"b": ["c"]}, "a/b": ["d"]}, "same path"),
        ("tree.yaml", "read_taxonomy reads a file"),
    ],
)
def test_what_is_no_tree_is_refused(tree, message):
    with pytest.raises(ValueError, match=message):
        pc.make_taxonomy(tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [b", "cannot be read as YAML"),
        ("a: 1\na: 2", "given twice"),
        ("[" * 500, "nested too deeply"),
    ],
)
def test_files_that_are_no_tree(tmp_path, text, message):
    (tmp_path / "tree.yaml").write_text(text)
    with pytest.raises(ValueError, match=message):
        pc.read_taxonomy(tmp_path / "tree.yaml")
    (tmp_path / "tree.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="needs a column 'path'"):
        pc.read_taxonomy(tmp_path / "tree.csv")


@pytest.mark.parametrize(
    ("names", "message"),
    [(NAMES[:3], "'car' is no class"), ((*NAMES, "bus"), "is no leaf"), ((*NAMES, "pet"), "leaf of its own")],
)  # fmt: skip
def test_leaves_must_be_the_classes(names, message):
    with pytest.raises(ValueError, match=message):
        pc.make_taxonomy(TREE).members(len(names), names)


def test_without_names_the_leaves_are_numbers():
    assert pc.make_taxonomy({"a": ["0"], "b": ["1"]}).classes(2, None).tolist() == [0, 1]
    with pytest.raises(
        ValueError, match=r"'cat' is no class; classes have no names here, .* give class_names"
    ):
        pc.make_taxonomy(TREE).classes(4, None)


def test_a_column_of_classes_may_have_slashes_and_no_path(tmp_path):
    (tmp_path / "tree.csv").write_text("class,path\nT-shirt/top,wear\nPolo/knit,wear/Polo/knit\nBag,\n")
    assert pc.read_taxonomy(tmp_path / "tree.csv").paths == (
        "wear",
        "wear/T-shirt/top",
        "wear/Polo/knit",
        "Bag",
    )


def drawn(n=600, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(4), n)
    truth = proba * [2.5, 2.5, 1.0, 0.5]
    truth /= truth.sum(axis=1, keepdims=True)
    return (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


def test_every_node_is_a_question():
    labels, proba = drawn()
    audit = pc.audit(labels, proba, class_names=NAMES, taxonomy=TREE, auditors={}, notions=[])
    tree = pc.make_taxonomy(TREE)
    assert tuple(node.path for node in audit.nodes) == tree.paths
    for node, members in zip(audit.nodes, tree.members(4, NAMES), strict=True):
        assert node.smooth_error == smooth_error(ask_subset(Sample(proba, labels), members))
        assert node.at_least <= node.smooth_error <= node.at_most
    pet = audit.nodes[1]
    assert (pet.name, pet.depth, pet.parent, pet.classes) == ("pet", 2, "animal", ("cat", "dog"))
    assert pet.discovered
    assert pet.at_least > 0
    plain = audit.to_dict()["nodes"][1]
    assert (plain["path"], plain["depth"], plain["parent"]) == ("animal/pet", 2, "animal")
    assert "Worst nodes of the tree" in str(audit)
    assert "Worst nodes of the tree" in audit.to_markdown()
    assert 'id="tree"' in audit.to_html()


def test_files_tell_the_same(tmp_path):
    labels, proba = drawn()
    pc.write_predictions(tmp_path / "rows.npz", labels, proba, class_names=NAMES)
    options = {"taxonomy": TREE, "auditors": {}, "notions": []}
    held = pc.audit(labels, proba, class_names=NAMES, **options)
    assert pc.audit_stream(tmp_path / "rows.npz", **options).nodes == held.nodes


def test_streams_measure_nodes_in_cells(monkeypatch):
    labels, proba = drawn(3000)
    options = {"class_names": NAMES, "taxonomy": TREE, "auditors": {}, "notions": []}
    held = pc.audit(labels, proba, **options)
    monkeypatch.setattr("polycal.auditing.source.HELD_CELLS", 1000)
    streamed = pc.audit(labels, proba, **options)
    assert streamed.approximations
    for one, other in zip(held.nodes, streamed.nodes, strict=True):
        assert other.smooth_error == pytest.approx(one.smooth_error, abs=1e-3)
        assert other.at_most == pytest.approx(one.at_most, abs=5e-3)


def test_without_a_tree_nothing_is_shared():
    labels, proba = drawn(300)
    audit = pc.audit(labels, proba, auditors={}, notions=[])
    assert audit.nodes == ()
    assert audit.to_dict()["nodes"] == []
