"""What the page is told: the same numbers as the library's own functions."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.report.conftest import HOSTILE

import polycal as pc
from polycal._validation import check_sample
from polycal.explorer.answers import answer, describe, telling_rows
from polycal.explorer.columns import Columns
from polycal.explorer.state import make_explorer
from polycal.sample import Question, ask_subset


def ask(client, classes, rows="all", path="/api/question"):
    response = client.post(path, json={"classes": classes, "rows": rows})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("classes", [[], [3], [9, 0, 4], list(range(10))])
def test_errors_and_shares_are_exact(client, fashion, classes):
    (one,) = ask(client, classes)["series"]
    expected = pc.smooth_calibration_error(fashion.labels, fashion.proba, subset=classes or None)
    assert one["smooth_error"] == pytest.approx(expected, abs=1e-12)
    if classes:
        assert one["predicted"] == pytest.approx(fashion.proba[:, classes].sum(axis=1).mean(), abs=1e-6)
        assert one["n_yes"] == np.isin(fashion.labels, classes).sum()
        assert one["observed"] == pytest.approx(one["n_yes"] / 3000)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_ranks_are_exact(client, fashion, m):
    assert client.get("/api/sample").json()["ranks"] == [2, 3, 5]
    answer = client.post("/api/question", json={"classes": [], "rows": "all", "top": m}).json()
    expected = pc.calibration_error(fashion.labels, fashion.proba, pc.TopSet(m))
    assert answer["series"][0]["smooth_error"] == pytest.approx(expected, abs=1e-12)
    assert answer["question"] == (
        f"is it among the {m} most likely?" if m > 1 else "is the most likely class right?"
    )


def test_costs_are_those_of_an_audit(client_of, fashion, calibrator):
    losses = {"tagging": np.vstack([1 - np.eye(10), np.full(10, 0.3)])}
    told = (
        client_of(make_explorer(fashion, title="", losses=losses, calibrator=calibrator))
        .get("/api/sample")
        .json()
    )
    options = {"calibrator": calibrator, "notions": [], "auditors": {}, "class_names": fashion.class_names}
    audit = pc.audit(fashion.labels, fashion.proba, losses=losses, **options)
    (cost,) = told["costs"]
    assert cost["name"] == "tagging"
    assert f"promised to cost {audit.costs[0].promised.value:.3g} per row" in cost["words"][0]
    assert "After the calibrator" in cost["words"][-1]
    assert len(cost["rows"][0]) == len(told["action_columns"])


def test_weights_count():
    made = pc.datasets.make_shifted_subset(500, 4, error=0.2, random_state=0)
    weight = np.arange(500.0) % 3
    sample = pc.Sample(made.proba, made.labels, weight)
    explorer = make_explorer(sample, title="")
    question = explorer.questions(explorer.check({"classes": [0, 2], "rows": "all"}))["as given"]
    assert question.weight is weight or np.array_equal(question.weight, weight)
    heavy = telling_rows(question)
    assert (weight[heavy] > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_give_the_subset_probability(dtype):
    proba = np.random.default_rng(0).dirichlet(np.ones(7), 200).astype(dtype)
    sample = pc.Sample(proba, np.zeros(200, dtype=np.int64))
    columns = Columns.of(sample)
    for subset in (np.array([2]), np.array([0, 3, 6]), np.arange(7)):
        assert columns.subset_proba(subset) == pytest.approx(sample.subset_proba(subset), abs=1e-15)
    assert np.array_equal(columns.top, proba.argmax(axis=1))


def test_a_set_and_its_inverse_have_one_error(client):
    (one,), (other,) = (ask(client, c)["series"] for c in ([0, 1, 2], [3, 4, 5, 6, 7, 8, 9]))
    assert one["smooth_error"] == pytest.approx(other["smooth_error"], abs=1e-6)
    assert one["predicted"] == pytest.approx(1 - other["predicted"], abs=1e-6)


def test_unseen_rows_are_half_of_the_rows(client, explorer, fashion):
    rows = explorer.unseen
    answer = ask(client, [1, 2], "unseen")
    expected = pc.smooth_calibration_error(fashion.labels[rows], fashion.proba[rows], subset=[1, 2])
    assert answer["n_rows"] == rows.size == 1500
    assert answer["series"][0]["smooth_error"] == pytest.approx(expected, abs=1e-12)
    assert {example["row"] for example in answer["examples"]} <= set(rows.tolist())


def test_the_most_telling_rows_are_the_largest_terms(client, fashion):
    answer = ask(client, [0, 6])
    curve = pc.smooth_calibration_curve(fashion.labels, fashion.proba, subset=[0, 6])
    question = ask_subset(fashion, np.array([0, 6]))
    terms = curve.phi(question.predicted) * (question.hits - question.predicted)
    assert terms.mean() == pytest.approx(curve.value)
    rows = [example["row"] for example in answer["examples"]]
    assert terms[rows] == pytest.approx(np.sort(terms)[::-1][:12])
    for example in answer["examples"]:
        row = example["row"]
        assert example["predicted"] == [pytest.approx(question.predicted[row])]
        assert example["outcome"] == question.hits[row]
        assert example["label"] == fashion.name(fashion.labels[row])
        assert example["top"] == fashion.name(fashion.proba[row].argmax())
        assert example["confidence"] == pytest.approx(fashion.proba[row].max())


def test_rows_that_are_right_tell_nothing():
    certain = Question(np.array([0.0, 1.0, 1.0]), np.array([False, True, True]), None, "")
    assert telling_rows(certain).size == 0


def test_the_noise_floor_tells_wrong_from_right(client_of):
    made = pc.datasets.make_shifted_subset(3000, 6, error=0.2, random_state=1)
    right = pc.datasets.make_calibrated(3000, 6, random_state=1)
    floors = {}
    for name, one in (("wrong", made), ("right", right)):
        client = client_of(make_explorer(pc.Sample(one.proba, one.labels), title=""))
        subset = [int(c) for c in made.subset] if name == "wrong" else [0, 1]
        (floor,) = ask(client, subset, path="/api/floor")["series"]
        (answer,) = ask(client, subset)["series"]
        floors[name] = floor["noise_floor"] / answer["smooth_error"], floor["p_value"], floor["shown"]
    assert floors["wrong"][0] < 0.3
    assert floors["wrong"][1:] == (0.005, True)
    assert floors["right"][0] > 0.4
    assert not floors["right"][2]


def test_raw_and_recalibrated_side_by_side(client_of, fashion, calibrator):
    client = client_of(make_explorer(fashion, title="", calibrator=calibrator))
    answer = ask(client, [0, 6])
    after = calibrator.predict_proba(fashion.proba)
    assert [one["series"] for one in answer["series"]] == ["before", "after"]
    for one, proba in zip(answer["series"], (fashion.proba, after), strict=True):
        expected = pc.smooth_calibration_error(fashion.labels, proba, subset=[0, 6])
        assert one["smooth_error"] == pytest.approx(expected, abs=1e-9)
    domains = [one["charts"]["cumulative"]["layer"][3]["encoding"]["y"]["scale"] for one in answer["series"]]
    assert domains[0] == domains[1]
    row = answer["examples"][0]
    assert row["predicted"][1] == pytest.approx(after[row["row"], [0, 6]].sum())
    assert [one["series"] for one in ask(client, [0], path="/api/floor")["series"]] == ["before", "after"]


def test_names_and_groups_are_sent_as_they_are(client_of):
    made = pc.datasets.make_calibrated(100, len(HOSTILE), random_state=0)
    sample = pc.Sample(made.proba, made.labels, None, tuple(HOSTILE))
    client = client_of(make_explorer(sample, title=HOSTILE[0], groups={HOSTILE[1]: [HOSTILE[2]]}))
    response = client.get("/api/sample")
    told = response.json()
    assert (told["title"], told["classes"]) == (HOSTILE[0], HOSTILE)
    assert told["groups"] == [{"name": HOSTILE[1], "classes": [2]}]
    assert sum(told["counts"]) == told["n_rows"] == 100
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "bad",
    [
        "[",
        "[]",
        "[" * 100_000,
        '{"classes": [1]}',
        '{"classes": 1, "rows": "all"}',
        '{"classes": "01", "rows": "all"}',
        '{"classes": [10], "rows": "all"}',
        '{"classes": [-1], "rows": "all"}',
        '{"classes": [1, 1], "rows": "all"}',
        '{"classes": [true], "rows": "all"}',
        '{"classes": ["Coat"], "rows": "all"}',
        '{"classes": [0.5], "rows": "all"}',
        '{"classes": [1], "rows": "some"}',
        '{"classes": [1], "rows": ["all"]}',
        '{"classes": [1], "rows": "all", "top": 2}',
        '{"classes": [], "rows": "all", "top": 4}',
        '{"classes": [], "rows": "all", "top": [2]}',
        '{"classes": [], "rows": "all", "top": true}',
        '{"classes": [], "rows": "all", "more": 1}',
    ],
)
@pytest.mark.parametrize("path", ["/api/question", "/api/floor"])
def test_a_bad_question_is_refused_in_words(client, bad, path):
    response = client.post(path, content=bad)
    assert response.status_code == 400
    assert response.json()["error"]


def test_an_endless_question_is_refused(client):
    response = client.post("/api/question", content=b" " * (9 << 20))
    assert (response.status_code, response.json()) == (413, {"error": "the question is too long"})


def test_few_rows_are_not_searched(client_of):
    explorer = make_explorer(pc.Sample(np.array([[0.2, 0.8]]), np.array([1])), title="")
    explorer.search.start()
    client = client_of(explorer)
    assert client.get("/api/worst").json() == {"state": "too few rows", "found": [], "chart": None}
    assert client.get("/api/sample").json()["n_unseen"] is None
    assert client.post("/api/question", json={"classes": [1], "rows": "unseen"}).status_code == 400
    assert ask(client, [1])["series"][0]["smooth_error"] == pytest.approx(0.2)


def test_lists_are_refused_in_words():
    lists = check_sample([0, 2], csr_array([[0.5, 0.3, 0.0], [0.0, 0.3, 0.6]]), remainder="unknown")
    with pytest.raises(TypeError, match="lists only some classes, but the explorer needs full predictions"):
        make_explorer(lists, title="")


def test_questions_are_put_to_the_rows_of_a_slice():
    data = pc.datasets.make_slices(900, random_state=0)
    explorer = make_explorer(data, title="", slice_by=("device",))
    assert [one["name"] for one in describe(explorer)["slices"]] == list(explorer.slices)
    inside = explorer.slices["device is tablet"]
    asked = explorer.check({"classes": [0, 1], "rows": "all", "slice": "device is tablet"})
    found = answer(explorer, asked)
    assert found["n_rows"] == inside.sum()
    direct = pc.smooth_calibration_error(data.labels[inside], data.proba[inside], subset=[0, 1])
    assert found["series"][0]["smooth_error"] == pytest.approx(direct)
    assert inside[[one["row"] for one in found["examples"]]].all()
    cells = {row["name"]: row["cells"] for row in explorer.heat["rows"]}["device is tablet"]
    confidence = pc.smooth_calibration_error(data.labels[inside], data.proba[inside])
    assert cells[0]["error"] == pytest.approx(confidence)
    with pytest.raises(ValueError, match="there is no slice 'device is fridge'"):
        explorer.check({"classes": [], "rows": "all", "slice": "device is fridge"})
