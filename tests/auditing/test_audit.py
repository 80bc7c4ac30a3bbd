import json

import numpy as np
import pytest

import polycal as pc
from polycal.families.defaults import DEFAULT_NOTIONS, default_auditors

NAMES = ["cat", "dog", "car", "bus"]


def miscalibrated(n=6000, seed=0):
    """Every class is right on its own, "cat or dog" is off."""
    made = pc.datasets.make_cat_and_dog(n, error=0.2, random_state=seed)
    return made.labels, made.proba


@pytest.fixture(scope="module")
def data():
    return miscalibrated()


@pytest.fixture(scope="module")
def audit(data):
    groups = {"animal": ["cat", "dog"], "vehicle": ["car", "bus"]}
    return pc.audit(*data, class_names=NAMES, groups=groups, n_jobs=2)


def test_groups_and_classes_are_exact_smooth_errors(data, audit):
    assert [g.name for g in audit.groups] == ["animal", "vehicle"]
    assert audit.groups[0].classes == ("cat", "dog")
    assert audit.groups[0].smooth_error == pc.smooth_calibration_error(*data, subset=[0, 1])
    by_name = {q.name: q.smooth_error for q in audit.classes}
    assert by_name["car"] == pc.smooth_calibration_error(*data, subset=[2])


def test_worst_classes_come_first(audit):
    errors = [q.smooth_error for q in audit.classes]
    assert errors == sorted(errors, reverse=True)


def test_the_pair_is_found_and_proven(audit):
    worst = audit.worst
    assert worst.significant
    assert worst.certificate.lower_bound > 0.01
    bounds = [f.certificate.lower_bound for f in audit.findings]
    assert bounds == sorted(bounds, reverse=True)
    found = next(f for f in audit.findings if f.source == "subset-smooth")
    assert found is worst
    assert set(found.witness.subset) in ({"cat", "dog"}, {"car", "bus"})
    assert abs(found.reading.predicted - found.reading.observed) > 0.05


def test_the_group_is_above_its_noise_floor(audit):
    animal = audit.groups[0]
    assert animal.smooth_error > 3 * animal.noise_floor
    assert animal.p_value <= 0.05


def test_classwise_measures_are_blind_to_it(audit):
    classwise = next(e for e in audit.errors if e.estimate.notion.name == "classwise")
    assert classwise.estimate.value < 3 * classwise.noise_floor


def test_averages_are_weighted(data):
    weight = np.arange(6000.0)
    audit = pc.audit(*data, groups={"all": [0, 1, 2, 3]}, sample_weight=weight)
    first = next(q for q in audit.classes if q.name == "0")
    assert first.predicted == pytest.approx(np.average(data[1][:, 0], weights=weight))
    assert first.frequency == pytest.approx(np.average(data[0] == 0, weights=weight))
    assert audit.groups[0].smooth_error == pytest.approx(0, abs=1e-12)


def test_the_dictionary_is_json_and_the_text_has_its_numbers(audit):
    plain = json.loads(json.dumps(audit.to_dict(), allow_nan=False))
    assert plain == audit.to_dict()
    text = str(audit)
    assert f"{audit.worst.certificate.estimate:.4f}" in text
    assert "Not calibrated" in text
    assert "animal" in text
    assert repr(audit).startswith("Audit(n_samples=6000, n_classes=4, findings=")


def test_the_frame_has_a_row_for_each_finding(audit):
    pytest.importorskip("pandas")
    frame = audit.to_frame()
    assert list(frame["source"]) == [f.source for f in audit.findings]
    assert {"estimate", "lower_bound", "adjusted_p_value", "says", "is"} <= set(frame.columns)


def test_the_number_of_threads_changes_nothing(data, audit):
    again = pc.audit(
        *data, class_names=NAMES, groups={"animal": ["cat", "dog"], "vehicle": ["car", "bus"]}, n_jobs=1
    )
    assert again.to_dict() == audit.to_dict()


def test_row_order_and_class_names_change_nothing_but_names(data):
    labels, proba = data
    rng = np.random.default_rng(0)
    # Distinct predictions: rows that no symmetric function tells apart may change places.
    proba = 0.98 * proba + 0.02 * rng.dirichlet(np.ones(4), len(labels))
    rows, classes = rng.permutation(len(labels)), rng.permutation(4)
    first = pc.audit(labels, proba, class_names=NAMES)
    moved = pc.audit(
        np.argsort(classes)[labels[rows]], proba[rows][:, classes], class_names=[NAMES[c] for c in classes]
    )
    for one, other in zip(first.findings, moved.findings, strict=True):
        assert one.source == other.source
        assert one.certificate.estimate == pytest.approx(other.certificate.estimate, abs=1e-6)
        if hasattr(one.witness, "subset"):
            assert set(one.witness.subset) in (
                set(other.witness.subset),
                set(NAMES) - set(other.witness.subset),
            )


def test_few_rows_are_measured_but_not_searched():
    audit = pc.audit([0, 1, 1], [0.2, 0.7, 0.6])
    assert audit.findings == ()
    assert audit.worst is None
    assert "too few" in str(audit)


def test_silence_is_not_called_calibration():
    made = pc.datasets.make_calibrated(400, 4, random_state=3)
    text = " ".join(str(pc.audit(made.labels, made.proba)).split())
    assert "does not mean calibrated" in text
    assert "would have been found" in text


def test_auditors_can_be_given(data):
    audit = pc.audit(*data, auditors={"mine": pc.SubsetAuditor(max_size=2)}, notions=())
    assert [f.source for f in audit.findings] == ["mine"]
    assert audit.errors == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"alpha": 0}, "alpha must be a number"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"groups": {"animal": ["cow"]}, "class_names": NAMES}, r"groups\['animal'\] holds 'cow'"),
    ],
)
def test_wrong_parameters_are_refused(data, wrong, message):
    with pytest.raises(ValueError, match=message):
        pc.audit(*data, **wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n"), [(7, 300), (100, 400)])
def test_calibrated_predictions_are_rarely_accused(k, n):
    n_sets, accused = 60, 0
    for seed in range(n_sets):
        made = pc.datasets.make_calibrated(n, k, random_state=seed)
        # The searches of a default audit; measuring its errors would cost most of the time and accuse nobody.
        searches = default_auditors(DEFAULT_NOTIONS, seed)
        audit = pc.audit(made.labels, made.proba, notions=(), auditors=searches, random_state=seed)
        accused += any(f.significant for f in audit.findings)
    assert accused / n_sets <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / n_sets)
