import numpy as np
import pytest
from scipy.special import softmax

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.kernel import tuning
from polycal.calibrators.kernel.features import FEATURES_OF_INPUT, features_of_baseline, fit_landmarks
from polycal.sample import split_rows
from polycal.steps import run

FLOOR = 1e-10
KINDS = pytest.mark.parametrize(
    "kind", [features_of_baseline(3), FEATURES_OF_INPUT], ids=lambda kind: kind.source
)


@KINDS
def test_features_are_the_definition(kind):
    proba = np.array([[0.7, 0.3, 0.0], [1e-5, 0.5, 0.49999]])
    with np.errstate(divide="ignore"):
        features = kind.of(np.log(proba).astype(np.float32))
    logs = np.log(np.maximum(proba, kind.floor) / kind.floor) / np.log(1 / kind.floor)
    np.testing.assert_allclose(features, np.hstack([np.ones((2, 1)), proba, logs]), atol=1e-6)


@KINDS
def test_branches_are_the_features_times_the_weights(kind):
    rng = np.random.default_rng(0)
    proba, weight = rng.dirichlet(np.ones(3), 20), rng.normal(size=(7, 3))
    expected = kind.of(np.log(proba).astype(np.float32)) @ weight
    np.testing.assert_allclose(run(kind.steps(weight), proba), expected, atol=1e-5)


def draw(n=200, k=4, seed=0, spread=6.0):
    rng = np.random.default_rng(seed)
    proba = softmax(rng.normal(0, spread, (n, k)), axis=1)
    return check_sample(rng.integers(0, k, n), proba)


def fit(sample, seed=0):
    with np.errstate(divide="ignore"):
        return fit_landmarks(sample, np.log(sample.proba), seed, tuning.MOST_LANDMARKS)


def likeness(proba, points, scale):
    """The kernel by its definition."""
    logs = np.log(np.maximum(proba, FLOOR))
    return np.exp(-(((logs[:, None] - points) / scale) ** 2).sum(axis=2) / 2)


def test_features_of_landmarks_have_the_kernel_as_inner_products():
    kind = fit(draw())
    bent = kind.of(kind.landmarks)[:, 9:]
    expected = likeness(np.exp(kind.landmarks), kind.landmarks, kind.kernel.scale)
    np.testing.assert_allclose(bent @ bent.T, expected, atol=1e-5)


def test_features_begin_with_the_linear_ones():
    sample = draw()
    kind = fit(sample)
    logs = np.log(sample.proba)
    np.testing.assert_array_equal(kind.of(logs)[:, :9], kind.linear.of(logs))
    np.testing.assert_array_equal(kind.penalty(4)[:9], kind.linear.penalty(4))
    assert kind.penalty(4).shape == (kind.of(logs[:1]).shape[1], 4)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 3e-3)])
@pytest.mark.parametrize("spread", [6.0, 0.1])
def test_steps_are_the_features_times_the_weights(spread, dtype, tolerance):
    sample, new = draw(spread=spread), draw(n=50, seed=1, spread=spread)
    kind = fit(sample)
    new.proba[0] = [1.0, 0.0, 0.0, 0.0]
    with np.errstate(divide="ignore"):
        features = kind.of(np.log(new.proba).astype(dtype))
    assert features.dtype == dtype
    weight = np.random.default_rng(2).normal(size=(features.shape[1], 4))
    expected = run(kind.steps(weight), new.proba)
    np.testing.assert_allclose(features @ weight, expected, atol=tolerance * expected.std())


def test_the_scale_is_a_part_of_the_median_distance():
    kind = fit(draw())
    apart = np.sqrt(((kind.landmarks[:, None] - kind.landmarks) ** 2).sum(axis=2))
    median = np.median(apart[np.triu_indices(len(apart), 1)])
    assert kind.kernel.scale == pytest.approx(np.sqrt(0.1) * median)


def test_landmarks_depend_on_the_rows_not_on_their_order():
    sample = draw()
    order = np.random.default_rng(0).permutation(sample.n_samples)
    first, second = (fit(s).landmarks for s in (sample, sample.take(order)))
    assert {tuple(row) for row in first} == {tuple(row) for row in second}
    assert {tuple(row) for row in fit(sample, seed=1).landmarks} != {tuple(row) for row in first}


def test_there_are_fewer_landmarks_where_rows_are_few_or_memory_is_short(monkeypatch):
    sample = draw(n=100)
    assert len(fit(sample).landmarks) == 50
    monkeypatch.setattr(tuning, "MOST_CELLS", 1000)
    assert len(fit(sample).landmarks) == 10


def test_there_are_fewer_landmarks_for_many_classes(monkeypatch):
    monkeypatch.setattr(tuning, "MOST_NUMBERS", 80)
    assert len(fit(draw()).landmarks) == 20


def test_every_fold_has_landmarks():
    sample = draw(n=2000)
    landmarks = {tuple(row) for row in fit(sample).landmarks}
    logs = np.maximum(np.log(sample.proba), np.log(FLOOR))
    for part in split_rows(sample, (1.0,) * 4, 0):
        assert 0.3 < np.mean([tuple(row) in landmarks for row in logs[part]]) < 0.7


def test_equal_rows_are_one_direction():
    proba = np.tile([0.7, 0.2, 0.1], (40, 1))
    kind = fit(check_sample(np.arange(40) % 3, proba))
    assert kind.whitening.shape == (20, 1)


def draw_bent(n, seed=0):
    """Four classes; which of two is meant depends on whether the last two are about equally unlikely."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 3, (n, 4))
    swap = np.abs(logits[:, 2] - logits[:, 3]) < 2
    truth = softmax(logits, axis=1)
    truth[swap, :2] = truth[swap, 1::-1]
    labels = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return softmax(logits, axis=1), labels


@pytest.fixture(scope="module")
def bent():
    return pc.KernelCalibrator().fit(*draw_bent(4000))


def test_finds_what_no_linear_features_can_see(bent, monkeypatch):
    assert bent.n_landmarks_ == 1000
    new, labels = draw_bent(4000, seed=1)
    losses = -np.log(bent.predict_proba(new)[np.arange(4000), labels])
    monkeypatch.setattr(tuning, "MANY_ROWS", np.inf)
    monkeypatch.setattr(tuning, "SMALL_PENALTY", 0.0)
    straight = pc.KernelCalibrator().fit(*draw_bent(4000))
    assert straight.n_landmarks_ == 0
    gain = -np.log(straight.predict_proba(new)[np.arange(4000), labels]) - losses
    assert gain.mean() > 4 * gain.std() / np.sqrt(gain.size)


def test_saved_and_exported_predicts_the_same(bent, tmp_path):
    new, _ = draw_bent(300, seed=2)
    expected = bent.predict_proba(new)
    bent.save(tmp_path / "model.polycal")
    loaded = pc.load(tmp_path / "model.polycal")
    np.testing.assert_array_equal(loaded.predict_proba(new), expected)
    assert loaded.n_landmarks_ == 1000
    onnxruntime = pytest.importorskip("onnxruntime")
    bent.to_onnx(tmp_path / "model.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (exported,) = session.run(None, {session.get_inputs()[0].name: new})
    np.testing.assert_allclose(exported, expected, atol=1e-9)
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(bent.to_torch()(torch.tensor(new)).numpy(), expected, atol=1e-9)
