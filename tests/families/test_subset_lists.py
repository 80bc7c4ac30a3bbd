"""The subset search in lists: the same landscape as for full rows, climbed without making lists dense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference_lists import ragged, spread, truncated
from tests.strategies import samples

import polycal as pc
from polycal import sparse
from polycal._compiled import subset as kernels
from polycal._validation import check_sample
from polycal.families import _landscape_lists
from polycal.families._landscape_lists import plain_landscape, shrunken_landscape
from polycal.measures.smooth import smooth_interval
from polycal.sample import ask_subset


def full_residual(landscape):
    """The residuals of all classes, by the definition."""
    full = np.repeat(landscape.rest_residual[:, None], landscape.n_classes, axis=1)
    rows = np.repeat(np.arange(landscape.mass.size), np.diff(landscape.indptr))
    full[rows, landscape.indices] = landscape.residual
    return full + np.outer(landscape.mass, landscape.shift)


def full_proba(landscape):
    full = np.repeat(landscape.share[:, None], landscape.n_classes, axis=1)
    rows = np.repeat(np.arange(landscape.mass.size), np.diff(landscape.indptr))
    full[rows, landscape.indices] = landscape.proba
    return full


def full_gains(landscape, point):
    """What the dense pass says of the same weight function."""
    table = kernels.sorted_weight(point.predicted, point.current, np.argsort(point.predicted), 1024)
    return kernels.flip_gains(
        full_proba(landscape), full_residual(landscape), point.member, point.predicted, point.current, table
    )


@settings(max_examples=60, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_plain_landscape_is_that_of_the_filled_rows(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    found = plain_landscape(sparse.sparse_sample(labels, lists, remainder="spread", sample_weight=weight))
    wanted = plain_landscape(check_sample(labels, spread(lists), sample_weight=weight))
    np.testing.assert_allclose(full_proba(found), wanted.proba, atol=1e-6)
    np.testing.assert_allclose(full_residual(found), wanted.residual, atol=1e-6)
    member = rng.random(proba.shape[1]) < 0.5
    here, there = found.at(member), wanted.at(member)
    assert here.value == pytest.approx(there.value, abs=1e-6)
    np.testing.assert_allclose(found.quick_gains(here), full_gains(found, here), atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_shrunken_landscape_is_made_by_its_definition(data, seed):
    labels, proba, weight = data
    lists = ragged(proba, np.random.default_rng(seed))
    sample = sparse.sparse_sample(labels, lists, remainder="spread", sample_weight=weight)
    plain = plain_landscape(sample)
    expected = plain.expected(sample)
    # What is expected of the labels is a distribution: its residuals cancel in each row.
    np.testing.assert_allclose(full_residual(expected).sum(axis=1), 0, atol=1e-9)
    found = shrunken_landscape(sample)
    e, s = full_residual(expected), full_residual(plain) - full_residual(expected)
    share = max(0.25, _share(s, sample.mass))
    wanted = sum(
        kept * z + np.outer(sample.mass, z.sum(axis=0) * (_share(z, sample.mass) - kept))
        for z, kept in ((e, 1.0), (s, share))
    )
    np.testing.assert_allclose(full_residual(found), wanted, atol=1e-9)
    np.testing.assert_allclose(found.totals(), wanted.sum(axis=0), atol=1e-9)
    member = np.arange(proba.shape[1]) < 2
    point = found.at(member)
    np.testing.assert_allclose(found.quick_gains(point), full_gains(found, point), atol=1e-9)


def _share(residual, mass):
    total = residual.sum(axis=0)
    noise = (residual**2).sum() - (total @ total) * (mass @ mass)
    return max(0.0, 1.0 - noise / max(total @ total, 1e-300))


@pytest.mark.parametrize("few", [4, 1000])
def test_joint_scores_are_the_extreme_eigenvectors(few, monkeypatch):
    monkeypatch.setattr(_landscape_lists, "_FEW_CLASSES", few)
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(30, 0.3), 200)
    sample = sparse.sparse_sample(rng.integers(0, 30, 200), truncated(proba, 6))
    landscape = shrunken_landscape(sample)
    joint = full_residual(landscape).T @ full_proba(landscape)
    joint += joint.T
    ends = np.linalg.eigvalsh(joint)[[0, 1, -2, -1]]
    scores = landscape.joint_vectors(rng.uniform(-1, 1, 30)).T
    found = [score @ joint @ score for score in scores]
    np.testing.assert_allclose(np.sort(found), ends, rtol=1e-2)


def planted(rng, n=6000, k=60, n_listed=20):
    """Lists of the most likely of k classes; those of the first ten happen less often than predicted."""
    proba = rng.dirichlet(np.full(k, 0.15), n)
    true = proba * np.where(np.arange(k) < 10, 0.5, 1.0)
    true /= true.sum(axis=1, keepdims=True)
    labels = (rng.random(n)[:, None] > np.cumsum(true, axis=1)).sum(axis=1).clip(0, k - 1)
    return labels, proba, truncated(proba, n_listed)


@pytest.mark.parametrize("remainder", ["unknown", "spread", "anywhere", "class"])
def test_a_planted_set_is_found_and_certified(remainder):
    rng = np.random.default_rng(1)
    labels, proba, lists = planted(rng)
    fit, fresh = slice(0, 3000), slice(3000, 6000)
    witness = sparse.find_subset(labels[fit], lists[fit], remainder=remainder)
    wanted = set(range(10))
    got = set(witness.members.tolist())
    got = min((got, set(range(witness.n_classes)) - got), key=lambda side: len(side ^ wanted))
    assert len(got & wanted) >= 9
    assert len(got - wanted) <= 25
    certificate = sparse.certify(witness, labels[fresh], lists[fresh], remainder=remainder)
    assert certificate.lower_bound > 0.01
    assert certificate.witness is witness
    if remainder in {"unknown", "anywhere"}:
        # What lists show, full predictions show too.
        assert certificate.estimate <= pc.certify(witness, labels[fresh], proba[fresh]).estimate + 1e-12


@pytest.mark.parametrize("remainder", ["unknown", "class"])
def test_calibrated_predictions_are_seldom_accused(remainder):
    n_accused = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(20, 0.2), 600)
        labels = (rng.random(600)[:, None] > np.cumsum(proba, axis=1)).sum(axis=1).clip(0, 19)
        lists = truncated(proba, 6)
        witness = sparse.find_subset(labels[:300], lists[:300], remainder=remainder)
        n_accused += sparse.certify(witness, labels[300:], lists[300:], remainder=remainder).is_significant
    # With probability 0.05 each: more than 4 of 20 happen once in 400 times.
    assert n_accused <= 4


def test_complete_lists_find_what_the_dense_auditor_finds():
    labels, proba, _ = planted(np.random.default_rng(2), n=2000, k=20)
    here = sparse.find_subset(labels, truncated(proba, 20))
    there = pc.SubsetAuditor().find_witness(labels, proba)
    value = pc.smooth_calibration_error(labels, proba, subset=here.members)
    assert value >= 0.9 * pc.smooth_calibration_error(labels, proba, subset=there.members)


def test_the_search_does_not_look_at_order_names_or_rows_of_weight_0():
    rng = np.random.default_rng(3)
    labels, _, lists = planted(rng, n=800, k=30)
    found = sparse.find_subset(labels, lists)
    rows, classes = rng.permutation(800), rng.permutation(30)
    new_name = np.argsort(classes)
    shuffled = sparse.find_subset(new_name[labels][rows], lists[:, classes][rows])
    assert set(shuffled.members) == set(new_name[found.members])
    padded = sparse.find_subset(
        np.concatenate([labels, labels[:50]]),
        truncated(np.concatenate([lists.toarray(), lists.toarray()[:50]]), 20),
        sample_weight=np.repeat([1.0, 0.0], [800, 50]),
    )
    assert set(padded.members) == set(found.members)


def test_small_sets_and_bad_parameters():
    labels, _, lists = planted(np.random.default_rng(4), n=500, k=30)
    assert sparse.find_subset(labels, lists, max_size=3).members.size <= 3
    with pytest.raises(ValueError, match="max_size"):
        sparse.find_subset(labels, lists, max_size=0)
    with pytest.raises(ValueError, match="n_starts"):
        sparse.find_subset(labels, lists, n_starts=-1)
    witness = sparse.find_subset(labels, lists)
    with pytest.raises(ValueError, match="found on 30"):
        sparse.certify(witness, [0], truncated(np.eye(4)[:1], 1))


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_the_rest_as_a_class_is_exact_for_full_predictions(data, seed):
    """Its witness, as a function of full predictions, has the correlation that the lists give."""
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    lists = ragged(proba, rng)
    sample = sparse.sparse_sample(labels, lists, remainder="class", sample_weight=weight)
    members = np.flatnonzero(rng.random(sample.n_classes) < 0.5)
    if members.size == 0:
        members = np.array([0])
    interval, phi = smooth_interval(ask_subset(sample, members))
    total = 0.0
    for row, mass in enumerate(sample.mass):
        listed = lists.indices[lists.indptr[row] : lists.indptr[row + 1]]
        chosen = np.isin(np.arange(proba.shape[1]), listed)
        inside = np.where(chosen, np.isin(np.arange(proba.shape[1]), members), proba.shape[1] in members)
        weights = inside * phi(proba[row] @ inside)
        total += mass * (weights[labels[row]] - weights @ proba[row])
    assert interval.value == pytest.approx(total, abs=1e-8)
