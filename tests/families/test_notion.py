import numpy as np
import pytest

import polycal as pc


def test_a_notion_is_required():
    with pytest.raises(TypeError, match="notion must be a notion"):
        pc.calibration_error([0, 1], [0.2, 0.7], 15)
    with pytest.raises(ValueError, match="notion 'trust' is not one of confidence, top-label"):
        pc.calibration_error([0, 1], [0.2, 0.7], "trust")


def test_a_name_stands_for_its_notion():
    data = [0, 1, 1], [0.2, 0.7, 0.6]
    assert pc.calibration_error(*data, "confidence") == pc.calibration_error(*data, pc.Confidence())


def test_the_estimate_says_what_it_is():
    estimate = pc.estimate_error([0, 1], [0.2, 0.7], pc.Confidence(n_bins=3, strategy="quantile", norm="max"))
    assert (estimate.kind, estimate.method, estimate.n_samples) == ("exact", "3 equal-mass bins, max norm", 2)
    assert float(estimate) == estimate.value


def test_notions_compare_hash_and_print_by_their_parameters():
    assert pc.Confidence() == pc.Confidence(n_bins=15)
    assert len({pc.Confidence(), pc.Confidence(), pc.TopLabel()}) == 2
    assert "n_bins=7" in repr(pc.Classwise(n_bins=7))


@pytest.mark.parametrize("notion", [pc.Confidence, pc.TopLabel, pc.Classwise])
@pytest.mark.parametrize(
    "wrong", [{"n_bins": 0}, {"n_bins": 2.5}, {"n_bins": True}, {"strategy": "equal"}, {"norm": "l3"}]
)
def test_wrong_parameters_are_refused(notion, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        notion(**wrong)


def test_from_logits_and_weights_reach_the_notion():
    rng = np.random.default_rng(0)
    logits, labels, weight = rng.normal(size=(30, 3)), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    direct = pc.calibration_error(
        np.repeat(labels, weight), np.repeat(proba, weight, axis=0), pc.Confidence()
    )
    assert pc.calibration_error(
        labels, logits, pc.Confidence(), sample_weight=weight, from_logits=True
    ) == pytest.approx(direct, abs=1e-12)
