import json

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.findings import half_rows


@pytest.fixture(scope="module")
def made():
    return pc.datasets.make_shifted_subset(2000, 5, error=0.2, random_state=0)


@pytest.fixture(scope="module")
def audit(made):
    return pc.audit(made.labels, made.proba, groups={"low": [0, 1], "high": [3, 4]})


def test_confidence_then_findings_then_groups(audit):
    assert audit.pictures[0].about == "confidence"
    assert [p.name for p in audit.pictures if p.about == "group"] == ["low", "high"]
    subsets = [p.classes for p in audit.pictures if p.about == "finding"]
    assert len(subsets) == len(set(subsets)) >= 1


def test_found_questions_are_drawn_on_the_rows_that_judged_them(made, audit):
    sample = check_sample(made.labels, made.proba)
    _, judge = half_rows(sample, 0)
    for picture in audit.pictures:
        subset = None if picture.classes is None else [int(c) for c in picture.classes]
        rows = judge if picture.about == "finding" else np.arange(2000)
        labels, proba = made.labels[rows], made.proba[rows]
        if picture.about == "rank":
            expected = pc.calibration_error(labels, proba, pc.TopSet(int(picture.name.removeprefix("top "))))
        else:
            expected = pc.smooth_calibration_error(labels, proba, subset=subset)
        assert picture.curves[0].smooth_error == pytest.approx(expected)
        assert picture.n_rows == rows.size
        assert picture.rows == ("judged" if picture.about == "finding" else "all")
        assert (picture.worst_range is None) == (picture.about != "finding")


def test_many_groups_are_drawn_with_fewer_points():
    made = pc.datasets.make_calibrated(2000, 4, random_state=0)
    groups = {str(i): [0, 1] for i in range(300)}
    audit = pc.audit(made.labels, made.proba, groups=groups, notions=[], auditors={})
    assert max(p.curves[0].predicted.size for p in audit.pictures) <= 102


def test_the_schema(audit):
    plain = audit.to_dict()
    assert plain["schema_version"] == 1
    assert set(plain) == {
        *(
            "schema_version",
            "n_samples",
            "n_classes",
            "n_fit",
            "n_judge",
            "alpha",
            "random_state",
            "weighted",
            "approximations",
            "default_notions",
        ),
        *(
            "scores",
            "errors",
            "findings",
            "path",
            "classes",
            "groups",
            "confidence",
            "ranks",
            "pictures",
            "costs",
            "nodes",
            "slices",
            "named_slices",
        ),
        *("calibrator", "after", "versions"),
    }
    picture = plain["pictures"][0]
    assert set(picture) == {"about", "name", "question", "classes", "rows", "n_rows", "worst_range", "curves"}
    curve = picture["curves"][0]
    assert set(curve) == {"series", "smooth_error", "mean_residual", "band", "level", "bins", "steps"}
    assert set(curve["bins"]) == {"predicted", "frequency", "low", "high", "share", "count"}
    assert set(curve["steps"]) == {"predicted", "cumulative", "monotone"}
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
