import json

import numpy as np
import pytest

import polycal as pc

NAMES = ["cat", "dog", "car"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    return rng.integers(0, 3, 300), proba


def test_groups_and_classes_are_exact_smooth_errors(data):
    audit = pc.audit(*data, class_names=NAMES, groups={"animal": ["cat", "dog"]})
    expected = pc.smooth_calibration_error(*data, subset=[0, 1])
    assert audit.groups[0].name == "animal"
    assert audit.groups[0].classes == ("cat", "dog")
    assert audit.groups[0].smooth_error == expected
    by_name = {q.name: q.smooth_error for q in audit.classes}
    assert by_name["car"] == pc.smooth_calibration_error(*data, subset=[2])


def test_worst_classes_come_first(data):
    errors = [q.smooth_error for q in pc.audit(*data).classes]
    assert errors == sorted(errors, reverse=True)


def test_averages_are_weighted(data):
    weight = np.arange(300.0)
    audit = pc.audit(*data, groups={"all": [0, 1, 2]}, sample_weight=weight)
    cat = next(q for q in audit.classes if q.name == "0")
    assert cat.predicted == pytest.approx(np.average(data[1][:, 0], weights=weight))
    assert cat.frequency == pytest.approx(np.average(data[0] == 0, weights=weight))
    assert audit.groups[0].smooth_error == pytest.approx(0, abs=1e-12)


def test_scores_and_notions(data):
    audit = pc.audit(*data, notions=(pc.TopLabel(),))
    assert audit.scores["brier_score"] == pc.brier_score(*data)
    assert [e.value for e in audit.errors] == [pc.calibration_error(*data, pc.TopLabel())]


def test_the_dictionary_is_json_and_the_text_has_its_numbers(data):
    audit = pc.audit(*data, class_names=NAMES, groups={"animal": ["cat", "dog"]})
    plain = json.loads(json.dumps(audit.to_dict()))
    assert plain == audit.to_dict()
    text = str(audit)
    assert f"{audit.groups[0].smooth_error:.4f}" in text
    assert "animal" in text
    assert repr(audit) == "Audit(n_samples=300, n_classes=3, n_errors=4)"


def test_unknown_classes_in_groups_are_refused(data):
    with pytest.raises(ValueError, match=r"groups\['animal'\] holds 'cow'"):
        pc.audit(*data, class_names=NAMES, groups={"animal": ["cow"]})
