import numpy as np
import pytest
from tests.calibrators.draws import confused

from polycal._validation import check_sample
from polycal.calibrators.loss import Scores, logit_scores, losses_and_proba, proba_scores


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_their_definitions(weighted):
    sample = confused(weighted=weighted)
    onehot = np.eye(4)[sample.labels]
    expected = [
        -np.log((sample.proba * onehot).sum(axis=1)),
        ((sample.proba - onehot) ** 2).sum(axis=1),
        sample.proba.argmax(axis=1) == sample.labels,
    ]
    logs = np.log(sample.proba).astype(np.float32)
    for scores in (proba_scores(sample), logit_scores(sample, 2 * logs, logs, 0.25, 0.5)):
        means = scores.log_loss, scores.brier, scores.accuracy
        np.testing.assert_allclose(means, [e @ sample.mass for e in expected], rtol=1e-5)
        assert scores.relative_gain(scores) == scores.accuracy_gain(scores) == (0.0, 0.0)


def test_rows_without_weight_do_not_count_even_when_infinitely_wrong():
    sample = check_sample([0, 1], [[1.0, 0.0], [1.0, 0.0]], sample_weight=[1.0, 0.0])
    scores = proba_scores(sample)
    assert (scores.log_loss, scores.brier, scores.accuracy) == (0.0, 0.0, 1.0)


def test_gains_come_with_standard_errors():
    mass = np.full(4, 0.25)
    good = Scores(np.ones(4), np.ones(4), np.array([True, True, True, False]), mass, 4.0)
    bad = Scores(np.array([2.0, 2, 2, 6]), np.full(4, 2.0), np.array([False, True, True, True]), mass, 4.0)
    gain, error = good.relative_gain(bad)
    assert gain == pytest.approx(2 / 3 + 1 / 2)
    assert error == pytest.approx(np.std([1, 1, 1, 5]) / 3 / 2)
    assert good.accuracy_gain(bad) == pytest.approx((0.0, np.sqrt(2) / 4))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_and_their_multiples_are_never_denormal(dtype):
    """Some processors take a hundred times as long with such numbers; losses are exact all the same."""
    logits = np.array([[0.0, -50.0, -95.0, -300.0]], dtype=dtype)
    losses, proba = losses_and_proba(logits, np.array([3]))
    assert losses == pytest.approx(300.0)
    np.testing.assert_allclose(proba, [[1.0, np.exp(-50.0), 0.0, 0.0]], rtol=1e-4, atol=1e-26)
    assert proba.min() * 1e-9 > np.finfo(np.float32).tiny
