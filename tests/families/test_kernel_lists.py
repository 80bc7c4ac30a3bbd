"""The kernel state of lists: the dense state on complete lists, and exact whatever lists leave out."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.reference_lists import completed, listed_classes, ragged, truncated
from tests.strategies import samples

import polycal as pc
from polycal import sparse
from polycal._validation import check_sample
from polycal.states.kernel import KernelState
from polycal.states.lists import TruncatedKernelState

KERNELS = [pc.Gaussian(0.3), pc.Laplace(0.5), pc.Multinomial(3), pc.Gaussian("median")]


def landmarks(k):
    return np.random.default_rng(5).dirichlet(np.full(k, 0.5), 6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_complete_lists_give_the_dense_witness(kernel):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.full(5, 0.3), 60), rng.integers(0, 5, 60)
    proba[:20] = np.eye(5)[rng.integers(0, 5, 20)]
    weight = rng.integers(0, 3, 60).astype(float)
    points = landmarks(5)
    there = KernelState(points, kernel, n_held_back=0).update(labels, proba, weight).finish()
    here = TruncatedKernelState(csr_array(points), kernel).update(labels, csr_array(proba), weight).finish()
    np.testing.assert_allclose(here.evaluate(proba), there.evaluate(proba), atol=1e-5)
    np.testing.assert_allclose(here.strengths[:-1], there.strengths, atol=1e-6)
    lists = sparse.sparse_sample(labels, csr_array(proba), sample_weight=weight)
    full = check_sample(labels, proba, sample_weight=weight)
    np.testing.assert_allclose(here.correlations(lists), there.correlations(full), atol=1e-5)
    np.testing.assert_allclose(here.correlations(full), there.correlations(full), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(data=samples(min_classes=3), seed=st.integers(0, 1000))
def test_correlations_are_those_of_every_completion(data, seed):
    labels, proba, weight = data
    rng = np.random.default_rng(seed)
    k = proba.shape[1]
    lists = ragged(proba, rng)
    witness = TruncatedKernelState(truncated(landmarks(k), 2)).update(labels, lists, weight).finish()
    witness = witness.amplified(labels, lists, sample_weight=weight)
    sample = sparse.sparse_sample(labels, lists, remainder="anywhere", sample_weight=weight)
    found = witness.correlations(sample)
    likeness = witness.landmarks.likeness(witness.kernel, sample)
    values = np.clip(witness.amplification * (likeness @ witness.coefficients.T), -1, 1)
    for full in (completed(lists, rng), completed(lists, rng, top=False)):
        for row in range(len(labels)):
            listed = np.isin(np.arange(k), listed_classes(lists, row))
            knows_all = sample.rest[row] == 0
            weights = np.where(listed | knows_all, values[row, :k], values[row, k])
            residual = np.eye(k)[labels[row]] - full[row]
            assert found[row] == pytest.approx(weights @ residual, abs=1e-7)
    assert (np.abs(values) <= 1).all()


def test_chunks_merge_and_resume(tmp_path):
    rng = np.random.default_rng(0)
    proba, labels = rng.dirichlet(np.ones(8), 60), rng.integers(0, 8, 60)
    top, points = truncated(proba, 3), truncated(landmarks(8), 4)
    whole = TruncatedKernelState(points).update(labels, top).finish()
    first = TruncatedKernelState(points).update(labels[:20], top[:20])
    first.save(tmp_path / "first.polycal")
    second = TruncatedKernelState(points).update(labels[20:], top[20:]).update([], top[:0])
    merged = second.merge(pc.load(tmp_path / "first.polycal")).finish()
    np.testing.assert_allclose(merged.coefficients, whole.coefficients, atol=1e-5)
    assert second.n_samples == 60
    whole.save(tmp_path / "witness.polycal")
    code = "import sys, polycal; print(type(polycal.load(sys.argv[1])).__name__)"
    command = [sys.executable, "-c", code, str(tmp_path / "witness.polycal")]
    assert (
        subprocess.run(command, check=True, capture_output=True, text=True).stdout == "ListedKernelWitness\n"
    )
    again = pc.load(tmp_path / "witness.polycal")
    sample = sparse.sparse_sample(labels, top)
    np.testing.assert_array_equal(again.correlations(sample), whole.correlations(sample))
    assert again.describe() == whole.describe()
    assert "over 6 lists, strongest for" in whole.describe()


def test_a_finding_is_certified_on_lists():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.full(40, 0.1), 4000)
    labels = np.where(rng.random(4000) < 0.3, rng.integers(0, 40, 4000), proba.argmax(axis=1))
    top = truncated(proba, 4)
    witness = TruncatedKernelState(top[:100]).update(labels[:2000], top[:2000]).finish()
    amplified = witness.amplified(labels[2000:2500], top[2000:2500])
    assert amplified.amplification > 1
    certificate = sparse.certify(amplified, labels[2500:], top[2500:])
    assert certificate.lower_bound > 0.1
    assert certificate.estimate > sparse.certify(witness, labels[2500:], top[2500:]).estimate


def test_bad_landmarks_and_chunks_are_refused():
    points = truncated(landmarks(4), 2)
    with pytest.raises(TypeError, match="needs full predictions"):
        KernelState(landmarks(4)).update([0], points[:1])
    with pytest.raises(TypeError, match="SciPy sparse matrix, as the landmarks are"):
        KernelState(points).update([0], landmarks(4)[:1])
    with pytest.raises(ValueError, match="lists no class"):
        TruncatedKernelState(csr_array((3, 4)))
    with pytest.raises(TypeError, match="kernel must be"):
        TruncatedKernelState(points, "gaussian")
    with pytest.raises(ValueError, match="landmarks have 4"):
        TruncatedKernelState(points).update([0], truncated(landmarks(5)[:1], 2))
    with pytest.raises(ValueError, match="logits"):
        TruncatedKernelState(points).update([0], points[:1], from_logits=True)
