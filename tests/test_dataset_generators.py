import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polycal as pc
from polycal.datasets import (
    make_calibrated,
    make_cat_and_dog,
    make_finite,
    make_shifted_subset,
    make_temperature,
)
from tests import reference_inference as reference

NOTIONS = {
    "canonical": pc.Canonical(min_repeats=1),
    "confidence": pc.Confidence(smooth=True),
    "top-label": pc.TopLabel(smooth=True),
    "classwise": pc.Classwise(smooth=True),
}
MAKERS = {
    "calibrated": lambda n, seed: make_calibrated(n, 5, random_state=seed),
    "confident and calibrated": lambda n, seed: make_calibrated(n, 30, concentration=0.05, random_state=seed),
    "cat and dog": lambda n, seed: make_cat_and_dog(n, random_state=seed),
    "cat, dog and others": lambda n, seed: make_cat_and_dog(n, n_classes=12, error=0.1, random_state=seed),
    "cat and dog, calibrated": lambda n, seed: make_cat_and_dog(n, error=0.0, random_state=seed),
    "shifted": lambda n, seed: make_shifted_subset(n, 6, error=0.15, random_state=seed),
    "shifted class": lambda n, seed: make_shifted_subset(n, 3, subset_size=1, error=0.5, random_state=seed),
    "temperature": lambda n, seed: make_temperature(n, 4, temperature=2.0, random_state=seed),
    "no temperature": lambda n, seed: make_temperature(n, 4, temperature=1.0, random_state=seed),
}


def errors(generated, labels, proba, weight=None):
    """Every error the generator states."""
    names = [name for name in generated.truth if name != "subset"]
    found = {n: pc.calibration_error(labels, proba, NOTIONS[n], sample_weight=weight) for n in names}
    if "subset" in generated.truth:
        found["subset"] = pc.smooth_calibration_error(
            labels, proba, subset=generated.subset, sample_weight=weight
        )
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_the_population_has_the_stated_errors(name):
    generated = MAKERS[name](200, 0)
    labels, proba, weight = generated.population()
    assert weight.sum() == pytest.approx(1)
    assert errors(generated, labels, proba, weight) == pytest.approx(generated.truth, abs=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_samples_tend_to_the_stated_errors(name):
    generated = MAKERS[name](40_000, 1)
    truth = {n: value for n, value in generated.truth.items() if n != "canonical"}
    found = errors(generated, generated.labels, generated.proba)
    assert {n: found[n] for n in truth} == pytest.approx(truth, abs=0.02)
    if "temperature" in name or "dog" in name:
        assert found["canonical"] == pytest.approx(generated.truth["canonical"], abs=0.06)


@pytest.mark.parametrize("name", MAKERS)
def test_the_seed_decides(name):
    one, same, other = (MAKERS[name](100, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.labels, same.labels)
    np.testing.assert_array_equal(one.proba, same.proba)
    assert not np.array_equal(one.labels, other.labels)


@pytest.mark.parametrize("error", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("n_classes", [4, 5, 100])
def test_cat_and_dog_are_distributions_without_ties(n_classes, error):
    generated = make_cat_and_dog(10, n_classes=n_classes, error=error)
    for rows in (generated.support, generated.conditionals):
        assert rows.min() >= 0
        assert rows.sum(axis=1) == pytest.approx(1)
    top = np.sort(generated.support, axis=1)
    assert np.all(top[:, -1] - top[:, -2] > 0.01)
    assert generated.class_names[:2] == ("cat", "dog")
    assert len(generated.class_names) == n_classes


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_the_population_against_loops(n_distinct, n_classes, seed):
    rng = np.random.default_rng(seed)
    support = rng.multinomial(3, np.full(n_classes, 1 / n_classes), n_distinct) / 3
    conditionals = rng.multinomial(4, np.full(n_classes, 1 / n_classes), n_distinct) / 4
    probabilities = rng.random(n_distinct)
    generated = make_finite(support, conditionals, probabilities, 3, random_state=seed)
    labels, proba, weight = generated.population()
    expected = reference.population(support, conditionals, probabilities / probabilities.sum())
    assert len(expected) == len(labels)
    for row, (label, v, w) in enumerate(expected):
        assert (labels[row], tuple(proba[row])) == (label, v)
        assert weight[row] == pytest.approx(w)
    # Predictions may repeat here: their conditional distributions then mix.
    found = pc.calibration_error(labels, proba, pc.Canonical(min_repeats=1), sample_weight=weight)
    assert found == pytest.approx(generated.truth["canonical"], abs=1e-12)


def test_a_finite_distribution_is_sampled_as_stated():
    generated = make_finite([[0.5, 0.5], [1.0, 0.0]], [[0.2, 0.8], [0.0, 1.0]], [3, 1], 40_000)
    sure = generated.proba[:, 0] == 1.0
    assert sure.mean() == pytest.approx(0.25, abs=0.01)
    assert np.all(generated.labels[sure] == 1)
    assert generated.labels[~sure].mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_calibrated(0, 3), "n_samples must be an integer, at least 1"),
        (lambda: make_calibrated(3, 1), "n_classes must be an integer, at least 2"),
        (lambda: make_calibrated(3, 3, concentration=0), "concentration must be a number"),
        (lambda: make_calibrated(3, 3, random_state=-1), "random_state must be an integer"),
        (lambda: make_cat_and_dog(3, n_classes=3), "n_classes must be an integer, at least 4"),
        (lambda: make_cat_and_dog(3, error=0.3), "error must be a number from 0 to 0.2"),
        (lambda: make_shifted_subset(3, 3, error=0.9), "error must be a number from 0 to 0.5"),
        (
            lambda: make_shifted_subset(3, 3, subset_size=3),
            "subset_size must be an integer from 1 to 2; got 3",
        ),
        (lambda: make_temperature(3, 3, temperature=0), "temperature must be a number"),
        (lambda: make_temperature(3, 3, n_distinct=0), "n_distinct must be an integer"),
        (lambda: make_finite([[0.5, 0.6]], [[0.5, 0.5]], [1], 3), r"support\[0\] does not sum to 1"),
        (lambda: make_finite([[0.5, 0.5]], [[0.5, 0.5]] * 2, [1], 3), "must have a row for each"),
        (lambda: make_finite([[0.5, 0.5]], [[0.5, 0.5]], [-1], 3), r"probabilities\[0\] is negative"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
