"""Detectors of change in one number a row: run by ``python monitors.py IN.npz OUT.npz`` where they are installed.

``wrong`` (n_runs, n_rows) says whether the most likely class was wrong; ``reference`` (n_runs, m) the same on rows
before the stream; an array for each detector has its settings. The first row of an alarm is written, or -1.
"""

import sys
import warnings

import numpy as np


def adwin(wrong, delta, _reference):
    """River's ADWIN on the 0/1 loss; it looks at every row."""
    from river.drift import ADWIN  # noqa: PLC0415 - not where polycal is

    detector = ADWIN(delta=delta, clock=1)
    for i, value in enumerate(wrong.tolist()):
        detector.update(float(value))
        # A fall of the error is a change as well, but no alarm.
        if (
            detector.drift_detected
            and wrong[max(0, i - 200) : i + 1].mean() > wrong[: max(1, i - 200)].mean()
        ):
            return i
    return -1


def ddm(wrong, threshold, _reference):
    """River's DDM on the 0/1 loss."""
    from river.drift.binary import DDM  # noqa: PLC0415 - not where polycal is

    detector = DDM(drift_threshold=threshold)
    for i, value in enumerate(wrong.tolist()):
        detector.update(bool(value))
        if detector.drift_detected:
            return i
    return -1


def mapie(wrong, level, reference):
    """MAPIE's RiskMonitoring of accuracy against reference rows, without a tolerance."""
    from mapie.exchangeability_testing import RiskMonitoring  # noqa: PLC0415 - not where polycal is

    right = ~wrong
    monitor = RiskMonitoring("accuracy", test_level=level, tolerance=0.0, warn=False)
    monitor.compute_threshold((~reference).astype(int), np.ones(reference.size, dtype=int))
    # Each call computes the bounds of all rows again, of each from the rows before it: one call for all is the same.
    monitor.update(right.astype(int), np.ones(right.size, dtype=int))
    over = np.flatnonzero(monitor.online_risk_lower_bound_sequence_history > monitor.threshold)
    return int(over[0]) if over.size else -1


# With the most streams each is run on: MAPIE's bounds take a second of computing for ten thousand rows.
DETECTORS = {"ADWIN": (adwin, 1000), "DDM": (ddm, 1000), "MAPIE": (mapie, 10)}


def main(source, target):
    """Run all detectors on all streams."""
    warnings.simplefilter("ignore")
    data = np.load(source, allow_pickle=False)
    found = {}
    for name, (detect, most) in DETECTORS.items():
        streams = zip(data["wrong"][:most], data["reference"][:most], strict=True)
        settings = data[name].tolist()
        found[name] = np.array(
            [[detect(run, setting, rows) for setting in settings] for run, rows in streams]
        )
    np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
