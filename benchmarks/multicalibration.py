"""Calibration for rows that differ: MulticalibratedCalibrator against MCGrad and temperature scaling by groups.

``python -m benchmarks.multicalibration [--sets NAME ...] [--methods PART ...] [--python WITH_MCGRAD] [--seeds N]``:
results are kept in ``benchmarks/results/multicalibration.jsonl``. All methods see the same calibration rows and the
same features, and are judged on the same other rows: by log loss, and by the multicalibration error of arXiv
2506.11251, which MCGrad's own package computes.
"""

import argparse
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.special import softmax

import polycal as pc
from benchmarks.data import data_folder
from benchmarks.peers.environments import environment
from benchmarks.store import FOLDER, Store
from polycal._validation import check_features
from polycal.families.slices import column_slices, slice_rows
from polycal.inference.certificate import certify_sample
from polycal.sample import Sample, split_rows

KEY = ("set", "method", "seed")
# What the model of the marketing set was not shown.
HIDDEN = ("sex", "age", "ethnicity", "language")


def marketing(_seed):
    """Nine classes of income, by a model that was not shown four of the columns."""
    data = np.load(data_folder() / "marketing_features.npz", allow_pickle=False)
    features = check_features(data["features"], data["labels"].size, data["feature_names"])
    proba = data["proba"].astype(np.float64)
    proba /= proba.sum(axis=1, keepdims=True)
    sample = Sample(proba, data["labels"].astype(np.int64), features=features)
    return sample.take(~data["evaluation"]), sample.take(data["evaluation"])


def two_classes(make, members):
    """The question "is it one of these classes?" of another set."""

    def made(seed):
        return tuple(_asked(part, members) for part in make(seed))

    return made


def _asked(part, members):
    yes = np.minimum(part.proba[:, members].sum(axis=1), 1.0)
    return Sample(
        np.stack([1 - yes, yes], axis=1), np.isin(part.labels, members).astype(int), features=part.features
    )


def planted(seed):
    """Ten classes, calibrated but for one slice."""
    data = pc.datasets.make_slices(8000, temperature=0.4, random_state=seed)
    return data.take(slice(0, 4000)), data.take(slice(4000, 8000))


def null(seed):
    """Ten classes, calibrated everywhere: there is nothing to gain."""
    data = pc.datasets.make_slices(8000, temperature=1.0, random_state=seed)
    return data.take(slice(0, 4000)), data.take(slice(4000, 8000))


SETS = {
    "marketing, 2 classes (income 5 to 8)": two_classes(marketing, [5, 6, 7, 8]),
    "marketing, 2 classes (income 0)": two_classes(marketing, [0]),
    "planted, 2 classes": two_classes(planted, [0, 1]),
    "calibrated, 2 classes": two_classes(null, [0, 1]),
    "marketing, 9 classes": marketing,
    "planted, 10 classes": planted,
    "calibrated, 10 classes": null,
}


def by_group(fit, fresh):
    """A temperature for each value of one column; the column with the least log loss in three folds."""
    losses = {}
    fold = np.random.default_rng(0).integers(0, 3, fit.n_samples)
    for name in fit.features.names:
        made = np.empty_like(fit.proba)
        for f in range(3):
            made[fold == f] = _temperatures(fit.take(fold != f), fit.take(fold == f), name)
        losses[name] = pc.log_loss(fit.labels, made)
    return _temperatures(fit, fresh, min(losses, key=losses.get))


def _temperatures(fit, fresh, column):
    """Predictions with the temperature of their group; of all rows where a group has few."""
    out = pc.TemperatureScaling().fit(fit.proba, fit.labels).predict_proba(fresh.proba)
    for conditions in column_slices(fit.features, (column,)).values():
        inside, there = (slice_rows(conditions, part.features) for part in (fit, fresh))
        if inside.sum() >= 20 and there.any():
            scaling = pc.TemperatureScaling().fit(fit.proba[inside], fit.labels[inside])
            out[there] = scaling.predict_proba(fresh.proba[there])
    return out


def patched(fit, fresh, most_rounds=20):
    """KernelCalibrator, then slice after slice: found on one half, proven on the other, and its scores shifted."""
    own = np.empty_like(fit.proba)
    for fold in split_rows(fit, (1.0,) * 3, 0):
        rest = fit.take(np.setdiff1d(np.arange(fit.n_samples), fold))
        own[fold] = pc.KernelCalibrator().fit(rest.proba, rest.labels).predict_proba(fit.proba[fold])
    now = replace(fit, proba=own)
    then = replace(fresh, proba=pc.KernelCalibrator().fit(fit.proba, fit.labels).predict_proba(fresh.proba))
    halves = split_rows(fit, (1.0, 1.0), 1)
    for number in range(most_rounds):
        searched, judging = (now.take(rows) for rows in halves)
        found = pc.SliceAuditor(random_state=number).find_slices(searched)[:5]
        level = 0.05 / max(len(found), 1)
        bounds = [certify_sample(witness, judging, level).lower_bound for witness in found]
        if max(bounds, default=0.0) <= 0:
            break
        witness = found[int(np.argmax(bounds))]
        steps = np.linspace(0.1, 4.0, 40).tolist()
        losses = [pc.log_loss(searched.labels, _shifted(searched, witness, step)) for step in steps]
        step = steps[int(np.argmin(losses))]
        now, then = (replace(part, proba=_shifted(part, witness, step)) for part in (now, then))
    return then.proba


def _shifted(part, witness, step):
    """Scores shifted by a witness."""
    return softmax(np.log(np.maximum(part.proba, 1e-15)) + step * witness.evaluate_rows(part), axis=1)


def outside(python, task, **arrays):
    """Run a task where MCGrad is installed."""
    script = Path(__file__).parent / "peers" / "multicalibration.py"
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, **arrays)
        subprocess.run([python, str(script), task, str(source), str(target)], check=True)
        return dict(np.load(target, allow_pickle=False))


def table(sample):
    """Features as peers take them."""
    columns = sample.features.columns
    # Few different numbers are names as much as amounts, for all methods.
    coded = [
        column.is_coded or np.unique(values[~np.isnan(values)]).size <= 12
        for column, values in zip(columns, sample.features.values.T, strict=True)
    ]
    return {"names": np.array(sample.features.names), "coded": np.array(coded)}


def methods(python, fit, fresh, wanted):
    """What each method makes of the evaluation rows, and its seconds."""
    kind = table(fit)

    def mcgrad():
        rows = {"proba": fit.proba, "labels": fit.labels, "features": fit.features.values}
        others = {"fresh_proba": fresh.proba, "fresh_features": fresh.features.values}
        return outside(python, "fit", **rows, **others, **kind)["proba"]

    def multicalibrated():
        made = pc.MulticalibratedCalibrator().fit(fit.proba, fit.labels, features=fit.features)
        return made.predict_proba(fresh.proba, features=fresh.features)

    made = {
        "input": lambda: fresh.proba,
        "polycal KernelCalibrator": lambda: (
            pc.KernelCalibrator().fit(fit.proba, fit.labels).predict_proba(fresh.proba)
        ),
        "polycal MulticalibratedCalibrator": multicalibrated,
        "KernelCalibrator and patches on slices, each proven": lambda: patched(fit, fresh),
        "MCGrad" if fit.n_classes == 2 else "MCGrad, one-vs-rest": mcgrad,
        "temperature scaling by groups": lambda: by_group(fit, fresh),
    }
    for name, predict in made.items():
        if wanted and not any(part in name for part in wanted):
            continue
        start = time.perf_counter()
        proba = predict()
        yield name, proba, time.perf_counter() - start


def one_set(python, name, seed, wanted):
    """The methods wanted on one set: a row each."""
    fit, fresh = SETS[name](seed)
    made = {method: (proba, seconds) for method, proba, seconds in methods(python, fit, fresh, wanted)}
    arrays = {f"proba {method}": proba for method, (proba, _) in made.items()}
    errors = outside(
        python, "measure", labels=fresh.labels, features=fresh.features.values, **arrays, **table(fit)
    )
    for method, (proba, seconds) in made.items():
        error, sigma = errors[method].tolist()
        yield {
            "set": name,
            "method": method,
            "seed": seed,
            "log_loss": pc.log_loss(fresh.labels, proba),
            "mce": error,
            "mce_sigma": sigma,
            "seconds": round(seconds, 1),
        }


def main(arguments=None):
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multicalibration", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", help="parts of their names; all by default")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--python", help="an interpreter with MCGrad; by default one is made")
    options = parser.parse_args(arguments)
    python = options.python or environment("multicalibration").python
    store = Store(FOLDER / "multicalibration.jsonl", KEY)
    for name in options.sets:
        for seed in range(1 if name.startswith("marketing") else options.seeds):
            for row in one_set(python, name, seed, options.methods):
                store.add(row)
                print(row, flush=True)
    store.compact()


if __name__ == "__main__":
    main()
