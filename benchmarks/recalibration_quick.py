"""The kernel calibrator against temperature scaling and the input, on every set.

Run ``python -m benchmarks.recalibration_quick [NAME ...]``.
"""

import sys
from time import perf_counter

from benchmarks.data import prediction_sets
from polycal.calibrators._scoring import proba_scores
from polycal.calibrators.identity import IdentityCalibrator
from polycal.calibrators.kernel import KernelCalibrator
from polycal.calibrators.temperature import TemperatureScaling
from polycal.sample import Sample

METHODS = {"input": IdentityCalibrator, "temperature": TemperatureScaling, "kernel": KernelCalibrator}


def compare(predictions):
    """Print one row per method for one set."""
    split = predictions.split()
    for name, method in METHODS.items():
        start = perf_counter()
        calibrator = method().fit(split.calibration.proba, split.calibration.labels)
        seconds = perf_counter() - start
        proba = calibrator.predict_proba(split.evaluation.proba)
        scores = proba_scores(Sample(proba, split.evaluation.labels))
        used = getattr(calibrator, "used_", "")
        print(
            f"{predictions.name:<26} {name:<12} log loss {scores.log_loss:7.4f}   Brier {scores.brier:.4f}   "
            f"accuracy {scores.accuracy:.4f}   {seconds:7.2f} s   {used}"
        )


def main(names=None):
    """Print the table, for some sets or all."""
    for predictions in prediction_sets(names):
        compare(predictions)


if __name__ == "__main__":
    main(sys.argv[1:] or None)
