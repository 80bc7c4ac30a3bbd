"""Labels of rows nearby, as a member of the pool for few rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from tests import reference
from tests.calibrators.draws import confused

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.neighbours import Neighbourhood, choose_neighbourhood
from polycal.calibrators.kernel.pooling import cross_fit, fit_vector
from polycal.calibrators.regression import rows_without, sort_by_fold
from polycal.sample import split_rows
from polycal.steps import run


def rounded(n, seed, k=3):
    """Predictions that take few values, with labels that no monotone curve of them predicts."""
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.ones(k), 8)
    truth = rng.dirichlet(np.full(k, 0.3), 8)
    which = rng.integers(0, 8, n)
    labels = (truth[which].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return values[which], labels, truth[which]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 3, 5]), st.sampled_from([0.1, 1.0]), st.booleans())
def test_the_steps_are_the_formula(seed, k, width, weighted):
    sample = confused(n=25, k=k, seed=seed, weighted=weighted)
    weight = np.ones(25) if sample.sample_weight is None else sample.sample_weight
    new = np.vstack([np.random.default_rng(seed).dirichlet(np.ones(k), 5), np.eye(k)[0]])
    out = run(Neighbourhood(width, 4.0).steps((), sample), new)
    expected = reference.mean_of_labels_nearby(new, sample.proba, sample.labels, weight, width, 4.0)
    np.testing.assert_allclose(out, expected, atol=1e-9)
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_order_and_names_of_rows_and_classes_do_not_matter_and_two_rows_weigh_two(seed):
    sample, rng = confused(n=40, k=4, seed=seed), np.random.default_rng(seed)
    near, new = Neighbourhood(0.25, 2.0), rng.dirichlet(np.ones(4), 10)
    out = run(near.steps((), sample), new)
    rows, classes = rng.permutation(40), rng.permutation(4)
    moved = check_sample(np.argsort(classes)[sample.labels[rows]], sample.proba[rows][:, classes])
    np.testing.assert_allclose(run(near.steps((), moved), new[:, classes]), out[:, classes], atol=1e-12)
    # The median distance is that of different rows.
    twice = check_sample(sample.labels, sample.proba, sample_weight=np.full(40, 2.0))
    both = check_sample(np.tile(sample.labels, 2), np.tile(sample.proba, (2, 1)))
    np.testing.assert_allclose(
        run(near.steps((), twice), new), run(near.steps((), both), new), rtol=0.05, atol=0.01
    )


def test_what_is_chosen_is_what_predicts_held_out_rows_best():
    proba, labels, _ = rounded(120, 0)
    order, folds = sort_by_fold(split_rows(check_sample(labels, proba), (1.0,) * 4, 0))
    sample = check_sample(labels[order], proba[order])
    rests = [sample.take(rows_without(120, fold)) for fold in folds]
    centres = [fit_vector(rest) for rest in rests]

    def loss(near):
        out = np.concatenate(
            [
                run(near.steps(centre, rest), sample.proba[fold])
                for centre, rest, fold in zip(centres, rests, folds, strict=True)
            ]
        )
        return -np.log(out[np.arange(120), sample.labels]).mean()

    tried = {(w, r): loss(Neighbourhood(w, r)) for w in tuning.NEAR_WIDTHS for r in tuning.NEAR_ROWS}
    near = choose_neighbourhood(sample, folds, centres)
    assert (near.width, near.prior_rows) == min(tried, key=tried.get)
    found, (*_, held_out) = cross_fit(sample, folds)
    assert found == near
    np.testing.assert_allclose(
        -np.log(held_out[np.arange(120), sample.labels]).mean(), min(tried.values()), atol=1e-9
    )


def test_fewer_rows_are_trusted_less():
    proba, labels, _ = rounded(25, 0)
    order, folds = sort_by_fold(split_rows(check_sample(labels, proba), (1.0,) * 4, 0))
    sample = check_sample(labels[order], proba[order])
    near = choose_neighbourhood(sample, folds, [()] * 4)
    assert near.prior_rows in [2.0 * rows for rows in tuning.NEAR_ROWS]


@pytest.mark.parametrize("proba", [np.full((6, 3), 1 / 3), np.eye(3)[[0, 1, 2, 0, 1, 2]]])
def test_rows_that_are_all_equal_or_certain_are_no_trouble(proba):
    sample = check_sample([0, 1, 2, 1, 2, 0], proba)
    new = np.vstack([proba, [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]])
    out = run(Neighbourhood(0.0625, 0.5).steps(fit_vector(sample), sample), new)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1.0)


def test_what_no_curve_can_mend_is_mended():
    losses = []
    for seed in range(5):
        values, labels, _ = rounded(200, seed)
        new, new_labels, truth = rounded(4000, seed)
        fitted = pc.KernelCalibrator().fit(values, labels)
        vector = run(fit_vector(check_sample(labels, values)), new)
        losses.append([pc.log_loss(new_labels, p) for p in (fitted.predict_proba(new), vector, truth)])
    ours, others, best = np.mean(losses, axis=0)
    assert ours < best + 0.3 * (others - best)


def test_more_rows_or_classes_than_it_is_for_have_none():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (200, 80))
    sample = check_sample(rng.integers(0, 80, 200), softmax(logits, axis=1))
    near, held_out = cross_fit(sample, [slice(0, 100), slice(100, 200)])
    assert near is None
    assert len(held_out) == 2
    fitted = pc.KernelCalibrator().fit(sample.proba, sample.labels)
    assert fitted.shares_[4] == 0.0
