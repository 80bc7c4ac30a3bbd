"""Recalibration: every method on every set of predictions, over several splits into the two parts."""

import tempfile
from pathlib import Path

from benchmarks import judging
from benchmarks.data import prediction_sets
from benchmarks.methods import QUICK, own_methods, own_version, peer_methods, select, source_fingerprint
from benchmarks.peers.environments import environment
from benchmarks.peers.processes import DEFAULT_LIMITS, Limits, Worker, save_input
from benchmarks.store import Store

KEY = ("set", "seed", "method")
QUICK_SETS = ("fashion_mlp", "letter_forest", "news20")


def main(options):
    """Run what is not in the results yet, and say what is missing."""
    own, own_missing = own_methods()
    peers, peers_missing = peer_methods(create=not options.no_install)
    missing = {**own_missing, **peers_missing}
    methods = select([*own, *peers], options.methods or (QUICK if options.quick else ("*",)), missing)
    sets, unreadable = readable(prediction_sets(options.sets or (quick_names() if options.quick else None)))
    seeds = range(options.seeds or (1 if options.quick else 5))
    limits = Limits(options.time_limit or (60 if options.quick else 180))
    store = Store(options.results / "recalibration.jsonl", KEY)
    run(sets, methods, seeds, store, limits=limits, force=options.force)
    return {**missing, **unreadable}


def readable(sets):
    """The sets that can be read, and the others with the reason."""
    good, bad = [], {}
    for prediction_set in sets:
        try:
            # Needed anyway, and reads both parts.
            _ = prediction_set.fingerprint
        except (ValueError, OSError) as error:
            bad[f"the predictions {prediction_set.name}"] = str(error)
        else:
            good.append(prediction_set)
    return good, bad


def quick_names():
    """Those of the small sets that are there."""
    there = [s.name for s in prediction_sets()]
    return [name for name in QUICK_SETS if name in there] or there[:1]


def run(sets, methods, seeds, store, *, limits=DEFAULT_LIMITS, force=False, start=None, judge=None):
    """One process for each set and method; rows go to the store as they come.

    Parameters
    ----------
    sets : sequence of PredictionSet
        What to recalibrate.
    methods : sequence of Method
        With what.
    seeds : sequence of int
        Splits; 0 is the file's own.
    store : Store
        Where rows are kept. Those it has are not made again.
    limits : Limits
        For each split.
    force : bool
        Make rows again.
    start : callable, optional
        From a method to a context in which it can be tried, instead of `Trial`.
    judge : callable, optional
        From labels, predictions and split to the columns of a row, instead of `judging.judge`.
    """
    warn_of_stale(store.rows, methods)
    # What was too slow is not tried again; rows that are to be made anew do not say what is.
    known_slow = [] if force else [row for row in store.rows if is_slow(row)]
    for prediction_set in smallest_first(sets):
        name, data = prediction_set.name, prediction_set.fingerprint
        discard_others(store, name, data)
        to_do = {
            method: [seed for seed in seeds if force or not is_done(store, name, seed, method, limits)]
            for method in methods
        }
        with tempfile.TemporaryDirectory() as folder:
            inputs = {
                seed: prepare(prediction_set.split(seed), Path(folder, f"{seed}.npz"))
                for seed in sorted(set().union(*to_do.values()))
            }
            for method in filter(to_do.get, methods):
                with (start or Trial)(method) as trial:
                    for seed in to_do[method]:
                        row = {"set": name, "seed": seed, "method": method.name, "data": data}
                        row = one_row(
                            row, method, inputs[seed], known_slow, limits, trial, judge or judging.judge
                        )
                        store.add(row)
                        known_slow += [row] * is_slow(row)
                        print(describe(row), flush=True)
    store.compact()


def prepare(split, path):
    """The evaluation part, the number of rows to fit on, and the file that a method is given."""
    arrays = {
        "proba": split.calibration.proba,
        "labels": split.calibration.labels,
        "new_proba": split.evaluation.proba,
    }
    return split.evaluation, split.calibration.n_samples, save_input(path, arrays)


def smallest_first(sets):
    """The sets by size: what is too slow for a small one need not be tried on a larger one."""
    return sorted(sets, key=lambda prediction_set: prediction_set.n_cells)


def is_done(store, name, seed, method, limits):
    """Whether there is a row to keep: also of a failure, but not of a shorter time limit."""
    row = store.find(set=name, seed=seed, method=method.name)
    return row is not None and row.get("limit_seconds", limits.seconds) >= limits.seconds


def discard_others(store, name, data):
    """Forget rows of a set that were made of other predictions: a table is of one set."""
    others = [row for row in store.rows if row["set"] == name and row.get("data", data) != data]
    if others:
        print(f"{name} has changed since {len(others)} rows were made of it; they are made again")
        store.discard(others)


def one_row(row, method, given, known_slow, limits, trial, judge):
    """Fit, predict and judge; whatever goes wrong is in the row."""
    evaluation, n_calibration, path = given
    row = {
        **row,
        "k": evaluation.n_classes,
        "n_calibration": n_calibration,
        "n_evaluation": evaluation.n_samples,
    }
    version = {"version": own_version()} if method.is_ours else {}
    row.update(version)
    slow = too_slow_before(row, known_slow, limits)
    if slow is not None:
        where = "another split" if slow["set"] == row["set"] else f"{slow['set']}, which is not larger"
        error = f"not finished after {slow['limit_seconds']:g} s on {where}"
        return {**row, "status": "skipped", "error": error, "limit_seconds": limits.seconds}
    result = trial.run(path, limits)
    out = result.pop("output", None)
    # Of our own methods also the sources count, which the worker does not know.
    row.update({**result, **version})
    if row["status"] == "time limit":
        row["limit_seconds"] = limits.seconds
    if row["status"] == "ok":
        try:
            proba, note = judging.as_proba(out, evaluation.proba.shape)
            judged = judge(evaluation.labels, proba, row["seed"])
        except ValueError as error:
            return {**row, "status": "failed", "error": str(error)}
        row.update({"note": note} if note else {})
        row.update(judged)
    return row


class Trial:
    """A method in a process of its own."""

    def __init__(self, method):
        self._method = method
        self._worker = Worker(environment(method.environment).python)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._worker.__exit__(*error)

    def run(self, given, limits):
        """The worker's result."""
        job = {"task": "recalibrate", "method": self._method.call, "package": self._method.package}
        return self._worker.run(job, given, limits)


def is_slow(row):
    """Whether a row is that of a method that was tried and did not finish."""
    return row["status"] == "time limit"


def too_slow_before(row, known_slow, limits):
    """A row where the method had as much time, as little to do, and did not finish; None if there is none."""
    sizes = ("k", "n_calibration", "n_evaluation")
    for other in known_slow:
        if other["method"] != row["method"]:
            continue
        if other["limit_seconds"] >= limits.seconds and all(other[size] <= row[size] for size in sizes):
            return other
    return None


def warn_of_stale(rows, methods):
    """Say that rows of polycal were made by other sources than these."""
    names = {method.name for method in methods if method.is_ours}
    stale = [
        r for r in rows if r["method"] in names and not r.get("version", "").endswith(source_fingerprint())
    ]
    if stale:
        print(f"{len(stale)} rows of polycal's methods were made by other sources; --force makes them again")


def describe(row):
    """One line of progress."""
    head = f"{row['set']:<24} {row['seed']}  {row['method']:<34}"
    if row["status"] != "ok":
        return f"{head} {row['status']}: {row['error']}"
    return (
        f"{head} log loss {row['log_loss']:.4f}  Brier {row['brier']:.4f}  "
        f"fit {row['fit_seconds']:.2f} s  predict {row['predict_seconds']:.2f} s  "
        f"memory {row['peak_bytes'] / 2**20:.0f} MiB"
    )
