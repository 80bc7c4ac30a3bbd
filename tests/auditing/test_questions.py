import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.auditing.findings import corrected
from polycal.auditing.questions import class_errors, group_noises, judged_groups, named_errors
from polycal.inference.redraw import noise_test, question_noise
from polycal.measures.smooth import smooth_error
from polycal.sample import Question, ask_subset


def group_errors(sample, groups, seed, n_jobs):
    errors = named_errors(sample, groups).groups
    noises = group_noises(sample, groups, errors)
    tested = judged_groups(errors, noises, None, 0.05, seed, n_jobs, sample.n_samples)
    return corrected((), tested, 0.05)[1]


def redraw_test(question, error, n_draws, seed):
    return noise_test(question_noise(question, error), n_draws, seed)


@pytest.fixture(scope="module")
def sample():
    made = pc.datasets.make_calibrated(500, 5, random_state=0)
    return check_sample(made.labels, made.proba)


def test_calibrated_outcomes_are_neither_far_from_the_floor_nor_accused(sample):
    question = ask_subset(sample, np.array([0, 1]))
    own = pc.smooth_calibration_error(sample.labels, sample.proba, subset=[0, 1])
    floor, p_value = redraw_test(question, own, 199, np.random.SeedSequence(0))
    assert floor / 5 <= own <= 5 * floor
    assert p_value > 0.05


def test_drawing_goes_on_only_where_it_is_needed(sample):
    question = ask_subset(sample, np.array([0, 1]))
    seed = np.random.SeedSequence(0)
    # Every redraw reaches 0, none reaches 1.
    assert redraw_test(question, 0.0, 999, seed)[1] == 1.0
    assert redraw_test(question, 1.0, 999, seed)[1] == 1 / 1000


def test_sequential_p_values_are_valid(sample):
    question = ask_subset(sample, np.array([0, 1]))
    rng = np.random.default_rng(0)
    p_values = []
    for seed in range(200):
        hits = rng.random(question.predicted.size) < question.predicted
        error = smooth_error(Question(question.predicted, hits, None, ""))
        p_values.append(redraw_test(question, error, 199, np.random.SeedSequence(seed))[1])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 200)


def test_many_groups_can_still_be_shown_wrong():
    made = pc.datasets.make_cat_and_dog(4000, error=0.2, random_state=0)
    groups = {f"g{i}": np.array([0, 1]) for i in range(30)}
    errors = group_errors(check_sample(made.labels, made.proba), groups, 0, -1)
    assert max(q.p_value for q in errors) <= 0.05
    assert errors[0].smallest_p_value <= 0.05


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
