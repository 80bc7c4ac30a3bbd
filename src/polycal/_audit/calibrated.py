"""The audited rows as a calibrator would have predicted them."""

from typing import Any

from polycal._validation import check_sample
from polycal.calibrators.base import Calibrator
from polycal.sample import Sample


def calibrated_sample(sample: Sample, calibrator: Any) -> Sample:
    """The same rows and labels with calibrated predictions."""
    if not isinstance(calibrator, Calibrator):
        raise TypeError(f"calibrator must be a fitted polycal calibrator; got {type(calibrator).__name__}.")
    if not calibrator.__sklearn_is_fitted__():
        raise ValueError("calibrator is not fitted yet; call its fit on rows that are not audited here.")
    names = calibrator.class_names_
    if None not in {names, sample.class_names} and names != sample.class_names:
        raise ValueError("calibrator was fitted on classes of other names, or in another order.")
    return check_sample(
        sample.labels,
        calibrator._taking(from_logits=False).predict_proba(sample.proba),
        sample_weight=sample.sample_weight,
        class_names=sample.class_names,
    )
