import pytest

import polycal as pc
from polycal._card import card, some

PROBA = [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.3, 0.4, 0.3]]
LABELS = [2, 1, 0, 1]
NAMES = ["<script>", "b & c", "d"]


def test_everything_is_escaped():
    text = card("<b>", [("<i>", "</table><script>")])
    assert "<b>" not in text
    assert "<i>" not in text
    assert text.count("</table>") == 1
    assert "<script>" not in text


def test_long_lists_are_cut():
    assert some("abc") == "a, b, c"
    assert some(map(str, range(1010))) == "0, 1, 2, 3, 4, 5, 6, 7 and 1,002 more"


@pytest.mark.parametrize("notion", [pc.Confidence(smooth=True), pc.SubsetSmooth(), pc.Sigmoid(4)])
def test_witnesses_say_what_they_look_at(notion):
    witness = pc.estimate_error(LABELS, PROBA, notion, class_names=NAMES).witness
    text = witness._repr_html_()
    assert type(witness).__name__ in text
    assert witness.family in text
    assert "<script>" not in text
    assert "b &amp; c" in text


def test_calibrators_show_what_was_fitted():
    calibrator = pc.TemperatureScaling()
    assert "not yet" in calibrator._repr_html_()
    calibrator.fit(PROBA, LABELS, class_names=NAMES)
    text = calibrator._repr_html_()
    assert f"{calibrator.temperature_:.6g}" in text
    assert "Log → Affine → Softmax" in text
    assert "<script>" not in text
    assert calibrator._repr_mimebundle_() == {"text/plain": "TemperatureScaling()", "text/html": text}


@pytest.mark.parametrize("family", [pc.VectorScaling, pc.IsotonicCalibrator, pc.IdentityCalibrator])
@pytest.mark.filterwarnings("ignore:.* numbers to .* rows:polycal.CalibrationWarning")
def test_every_calibrator_has_a_card(family):
    assert family.__name__ in family().fit(PROBA, LABELS)._repr_html_()
