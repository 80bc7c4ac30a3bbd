"""MCGrad, and its measure of multicalibration: ``python multicalibration.py fit|measure IN.npz OUT.npz``.

Run where MCGrad is installed. ``fit`` reads calibration rows and evaluation rows and writes calibrated probabilities:
of two classes those of the second, of more one-vs-rest, divided by their sum. ``measure`` reads the predictions of
several methods on the same rows and writes the multicalibration error of each (arXiv 2506.11251): of two classes that
of the second, of more the mean over classes, each against the rest.
"""

import sys
import warnings

import numpy as np
import pandas as pd


def frame(table, names):
    """Features as a data frame; the columns of codes are text."""
    return pd.DataFrame(dict(zip(names.tolist(), table.T, strict=True)))


def fit(given):
    """Calibrated probabilities of the evaluation rows."""
    from mcgrad.methods import MCGrad  # noqa: PLC0415 - not where polycal is

    names, coded = given["names"], given["coded"]
    columns = {
        "categorical_feature_column_names": names[coded].tolist() or None,
        "numerical_feature_column_names": names[~coded].tolist() or None,
    }
    rows, fresh = frame(given["features"], names), frame(given["fresh_features"], names)
    proba, fresh_proba, labels = given["proba"], given["fresh_proba"], given["labels"]
    k = proba.shape[1]
    made = []
    for c in [1] if k == 2 else range(k):
        rows["prediction"], rows["label"] = proba[:, c].clip(1e-6, 1 - 1e-6), labels == c
        fresh["prediction"] = fresh_proba[:, c].clip(1e-6, 1 - 1e-6)
        model = MCGrad().fit(rows, "prediction", "label", **columns)
        made.append(model.predict(fresh, "prediction", **columns))
    made = np.array(made).T
    out = np.hstack([1 - made, made]) if k == 2 else made / made.sum(axis=1, keepdims=True)
    return {"proba": out}


def measure(given):
    """The multicalibration error of each method, and how many standard deviations that is."""
    from mcgrad.metrics import MulticalibrationError  # noqa: PLC0415 - not where polycal is

    names, coded, labels = given["names"], given["coded"], given["labels"]
    rows = frame(given["features"], names)
    found = {}
    for key, proba in given.items():
        if not key.startswith("proba "):
            continue
        errors = []
        for c in [1] if proba.shape[1] == 2 else range(proba.shape[1]):
            rows["prediction"], rows["label"] = proba[:, c], (labels == c).astype(int)
            error = MulticalibrationError(
                rows,
                "label",
                "prediction",
                categorical_segment_columns=names[coded].tolist() or None,
                numerical_segment_columns=names[~coded].tolist() or None,
                max_depth=2,
            )
            errors.append([error.mce, error.mce_sigma])
        found[key.removeprefix("proba ")] = np.mean(errors, axis=0)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    task, source, target = sys.argv[1:]
    given = dict(np.load(source, allow_pickle=False))
    np.savez(target, **{"fit": fit, "measure": measure}[task](given))
