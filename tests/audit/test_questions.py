import numpy as np
import pytest

import polycal as pc
from polycal._audit.questions import class_errors, group_errors, redrawn_errors
from polycal._validation import check_sample
from polycal.question import ask_subset


@pytest.fixture(scope="module")
def sample():
    made = pc.datasets.make_calibrated(500, 5, random_state=0)
    return check_sample(made.labels, made.proba)


def test_redrawn_errors_are_those_of_calibrated_outcomes(sample):
    question = ask_subset(sample, np.array([0, 1]))
    drawn = redrawn_errors(question, 200, np.random.SeedSequence(0))
    own = pc.smooth_calibration_error(sample.labels, sample.proba, subset=[0, 1])
    assert drawn.min() <= own <= drawn.max()


def test_threads_do_not_matter(sample):
    groups = {"a": np.array([0, 1]), "b": np.array([2])}
    assert group_errors(sample, groups, 0, 1) == group_errors(sample, groups, 0, 2)
    assert class_errors(sample, 1) == class_errors(sample, 2)


@pytest.mark.slow
def test_groups_of_calibrated_predictions_are_rarely_accused():
    accused = 0
    for seed in range(200):
        made = pc.datasets.make_calibrated(200, 6, random_state=seed)
        groups = {str(i): np.array([i, i + 1]) for i in range(4)}
        errors = group_errors(check_sample(made.labels, made.proba), groups, seed, 1)
        accused += min(q.p_value for q in errors) <= 0.05
    assert accused / 200 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
