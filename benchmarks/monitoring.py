"""The monitor: is it valid, how soon does it find an error that is there, and one that comes, and what does it cost?

``python -m benchmarks.monitoring validity|delay|drift|two-classes|cost|page [--runs N] ...``; results are kept in
``benchmarks/results/monitoring.jsonl``. Predictions are real: of the shipped example, with labels drawn anew where they
must follow them; for `delay`, the sets of ``POLYCAL_DATA`` as they are, in random order.
"""

import argparse
import resource
import subprocess
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np

import polycal as pc
from benchmarks.data import prediction_sets
from benchmarks.peers.alarms import HOUR, hourly_errors, pit_fortunes, safe_hosmer_lemeshow
from benchmarks.peers.environments import environment
from benchmarks.store import FOLDER, Store
from polycal.monitoring import bets
from polycal.monitoring.bets import FLOOR

KEY = ("part", "case", "method")
ALPHA = 0.05
N_ROWS, CHANGE = 10_000, 5_000
_GROUP = (0, 2, 6)
_NEVER = -1
_NO_ROW = 1 << 60


def drawn(law, rng):
    """Labels that follow probabilities."""
    return (law.cumsum(axis=1) > rng.random((len(law), 1)) * law.sum(axis=1, keepdims=True)).argmax(axis=1)


@cache
def _example():
    return pc.datasets.load_fashion("all")


def real_rows(n_rows, n_classes, rng):
    """Predictions of the shipped example: in random order, for 2 classes those of a group; 100 are made of 10 by 10."""
    sample = _example()
    proba = sample.proba[rng.permutation(sample.n_samples)[:n_rows]].astype(np.float64)
    if n_classes == 2:
        inside = np.minimum(proba[:, _GROUP].sum(axis=1), 1.0)
        proba = np.stack([1.0 - inside, inside], axis=1)
    if n_classes == 100:
        shares = rng.dirichlet(np.full(10, 0.3), proba.shape)
        proba = (proba[:, :, None] * shares).reshape(n_rows, -1)
    return proba / proba.sum(axis=1, keepdims=True)


# --- Validity: labels follow the predictions, and every alarm is false.

TOLERANCE, SELDOM = 0.01, 1e-3
MODES = ("default", "many", "reference", "tolerance", "edge of the tolerance")


def monitor_of(mode, proba, rng):
    """A monitor at level 0.05 (0.001 for alarms that may be many), and the labels' law under its null hypothesis."""
    match mode:
        case "many":
            return pc.Monitor(SELDOM, alarms="many"), proba
        case "reference":
            fit = real_rows(1000, proba.shape[1], rng)
            calibrator = pc.TemperatureScaling().fit(fit, drawn(fit**0.7, rng))
            return pc.Monitor(ALPHA, reference=calibrator), calibrator.predict_proba(proba)
        case "tolerance":
            return pc.Monitor(ALPHA, tolerance=TOLERANCE), proba
        case "edge of the tolerance":
            law = (1 - TOLERANCE) * proba
            law[:, 0] += TOLERANCE
            return pc.Monitor(ALPHA, tolerance=TOLERANCE), law
    return pc.Monitor(ALPHA), proba


def validity(store, runs, modes, classes, rows):
    """How many of calibrated streams raise an alarm, and how many alarms there are for each row."""
    for k in classes:
        for mode in modes:
            alarms, start = [], time.process_time()
            for seed in range(runs):
                rng = np.random.default_rng([seed, k])
                proba = real_rows(rows, k, rng)
                monitor, law = monitor_of(mode, proba, rng)
                alarms.append(len(monitor.update(drawn(law, rng), proba).alarm_rows))
            idle = [recipe.name for recipe in bets.recipes(k) if recipe.first == _NO_ROW]
            case = f"{mode}, k = {k}" + (f", idle: {', '.join(idle)}" if idle else "")
            counts = {"false": int(np.count_nonzero(alarms)), "alarms": int(np.sum(alarms))}
            seconds = time.process_time() - start
            row = {"runs": runs, "rows": rows, "seconds": seconds} | counts
            save(store, part="validity", case=case, method="polycal", **row)


# --- Delay: errors that are there from the start.


def single_delay(make, proba, labels, first=10, growth=1.5, most=4000):
    """Rows until the bets of one calibrator alone, fitted at growing times, have made 100 coins of one."""
    t, logs = first, np.zeros(3)
    while t < labels.size:
        stop = min(labels.size, int(np.ceil(t * growth)))
        past = slice(max(0, t - most), t)
        rows = np.arange(t, stop)
        given = (
            make().fit(proba[past], labels[past]).predict_proba(proba[rows], n_jobs=1)[rows - t, labels[rows]]
        )
        own = proba[rows, labels[rows]]
        mixed = np.array([part * given + (1 - part) * own for part in (1.0, 0.5, 0.1)])
        with np.errstate(divide="ignore"):
            logs = logs[:, None] + np.cumsum(np.log(mixed / np.maximum(own, FLOOR)), axis=1)
        over = np.flatnonzero(np.logaddexp.reduce(logs, axis=0) - np.log(3) >= np.log(100))
        if over.size:
            return t + int(over[0]) + 1
        t, logs = stop, logs[:, -1]
    return _NEVER


def monitor_delay(proba, labels, monitor=None, step=100):
    """Rows until the alarm."""
    monitor = pc.Monitor(0.01) if monitor is None else monitor
    for start in range(0, labels.size, step):
        rows = slice(start, start + step)
        if monitor.update(labels[rows], proba[rows]).alarm:
            return monitor.alarm_row + 1
    return _NEVER


SINGLES = {"temperature": pc.TemperatureScaling, "vector": pc.VectorScaling, "kernel": pc.KernelCalibrator}


def delay(store, runs, sets, rows):
    """Rows until evidence 100 on real predictions in random order, of single bettors and of the monitor.

    The kernel alone, whose fits take long, is followed until it would be 1.3 times as soon as the monitor's median.
    """
    for data in prediction_sets(sets):
        sample = data.split().evaluation
        proba = sample.proba.astype(np.float64)
        proba /= proba.sum(axis=1, keepdims=True)
        orders = [np.random.default_rng(seed).permutation(sample.n_samples)[:rows] for seed in range(runs)]
        found = {"monitor": [monitor_delay(proba[rows], sample.labels[rows]) for rows in orders]}
        middle = quantile(found["monitor"], 0.5) or rows
        for name, make in SINGLES.items():
            most = int(middle / 1.3) if name == "kernel" else rows
            short = [order[:most] for order in orders]
            found[name] = [single_delay(make, proba[rows], sample.labels[rows]) for rows in short]
        size = {"classes": sample.n_classes, "runs": runs, "rows": rows}
        for name, delays in found.items():
            row = size | {"median": quantile(delays, 0.5), "all": delays}
            save(store, part="delay", case=data.name, method=name, **row)


def quantile(delays, level):
    """A quantile of delays, with never as the largest; None if that is never, or there are none."""
    if not delays:
        return None
    value = float(np.quantile([np.inf if d == _NEVER else d for d in delays], level, method="higher"))
    return value if np.isfinite(value) else None


# --- Drift: a calibrated stream that stops being so at row 5,000.


def swapped(law, rng):
    """Two classes change places on a tenth of the rows."""
    out, rows = law.copy(), rng.random(len(law)) < 0.1
    out[rows, 0], out[rows, 6] = law[rows, 6], law[rows, 0]
    return out


def doubled(law, _rng):
    """A group of classes comes twice as often as said, or nearly always where that is more than always."""
    inside = law[:, _GROUP].sum(axis=1, keepdims=True)
    more = np.maximum(np.minimum(2 * inside, 0.999), inside)
    out = law * (1 - more) / np.maximum(1 - inside, 1e-12)
    out[:, _GROUP] = law[:, _GROUP] * more / np.maximum(inside, 1e-12)
    return out


DESIGNS = {
    "temperature 0.8": lambda law, _rng: law**0.8,
    "two classes swapped": swapped,
    "a group's rate doubled": doubled,
}


HIDDEN = "hidden subset"


def drifting(design, seed, *, changes=True, n_rows=N_ROWS):
    """Predictions, and labels that follow them until the change, or all the time."""
    rng, calm = np.random.default_rng([seed, 17]), CHANGE if changes else n_rows
    if design == HIDDEN:
        parts = [
            pc.hardness.make_hidden_subset(size, 10, error=error, random_state=2 * seed + i)
            for i, (size, error) in enumerate(((calm, 0.0), (n_rows - calm, 0.1)))
            if size
        ]
        return np.concatenate([part.proba for part in parts]), np.concatenate([part.labels for part in parts])
    proba = real_rows(n_rows, 10, rng)
    labels = drawn(proba, rng)
    if changes:
        labels[calm:] = drawn(DESIGNS[design](proba[calm:], rng), rng)
    return proba, labels


def first_over(values, threshold):
    """The first place of a value that is large enough."""
    over = np.flatnonzero(values >= threshold)
    return int(over[0]) if over.size else _NEVER


# Settings of detectors of other packages, the most sensitive first.
OUTSIDE = {
    "ADWIN": (0.3, 0.1, 0.03, 0.01, 0.002, 1e-4),
    "DDM": (3.0, 4.0, 6.0, 8.0, 10.0, 15.0),
    "MAPIE": (0.05,),
}


def drift(store, runs, designs, peer_runs):
    """Delays after the change, of the monitor, and on some of the streams of peers set for the same false alarms."""
    settings = {}
    for design in designs:
        streams = [drifting(design, seed) for seed in range(max(runs, peer_runs))]
        if runs:
            found = [monitor_delay(p, y, pc.Monitor(ALPHA), 250) - 1 for p, y in streams[:runs]]
            save_delays(store, design, {"polycal": found}, CHANGE)
        hidden = design == HIDDEN
        if hidden not in settings:
            calm = [drifting(design, 1000 + seed, changes=False) for seed in range(peer_runs)]
            settings[hidden], false = peer_settings(calm, run_outside(calm, design, OUTSIDE))
            for name, number in false.items():
                case = "no change" + (f", {HIDDEN}" if hidden else "")
                save(store, part="drift", case=case, method=name, false=number)
        save_delays(store, design, peer_alarms(streams[:peer_runs], settings[hidden], design), CHANGE)


def save_delays(store, case, found, change):
    """Keep how often each method found the change, and after how many rows."""
    for name, rows in found.items():
        after = [row - change + 1 for row in rows if row >= change]
        early = sum(0 <= row < change for row in rows)
        late = [*after, *[_NEVER] * (len(rows) - len(after) - early)]
        numbers = {"found": len(after), "early": early, "median": quantile(late, 0.5)}
        row = numbers | {"within_95": quantile(late, 0.95)}
        save(store, part="drift", case=case, method=name, runs=len(rows), **row)


def peer_alarms(streams, settings, design):
    """The first alarm of each peer on each stream, by its settings."""
    outside = run_outside(streams, design, {name: settings[name] for name in OUTSIDE})
    found = {name: rows[:, 0].tolist() for name, rows in outside.items()}
    hours = [first_over(hourly_errors(p, y), settings["hourly ECE"]) for p, y in streams]
    found["hourly ECE"] = [_NEVER if hour == _NEVER else (hour + 1) * HOUR - 1 for hour in hours]
    found["PIT"] = [
        first_over(pit_fortunes(p, y, seed), -np.log(ALPHA)) for seed, (p, y) in enumerate(streams)
    ]
    return found


def peer_settings(calm, outside):
    """The most sensitive setting of each peer with false alarms on at most 5 % of calm streams, and how many it has."""
    settings, false = {}, {}
    for name, values in OUTSIDE.items():
        alarms = outside[name] >= 0
        good = [i for i in range(len(values)) if alarms[:, i].mean() <= ALPHA]
        chosen = good[0] if good else len(values) - 1
        settings[name], false[name] = [values[chosen]], share(alarms[:, chosen])
    largest = np.sort([hourly_errors(p, y).max() for p, y in calm])
    settings["hourly ECE"] = np.nextafter(largest[-1 - int(ALPHA * len(calm))], 2.0)
    false["hourly ECE"] = share(largest >= settings["hourly ECE"])
    false["PIT"] = share([pit_fortunes(p, y, i).max() >= -np.log(ALPHA) for i, (p, y) in enumerate(calm)])
    return settings, false


def share(alarms):
    """How many of how many."""
    return f"{np.count_nonzero(alarms)} of {len(alarms)}"


def run_outside(streams, design, settings):
    """Detectors of other packages, in their own environment: first alarms by name, of shape (runs, settings)."""
    place = environment("monitors")
    wrong = np.array([p.argmax(axis=1) != y for p, y in streams])
    before = [drifting(design, 2000 + seed, changes=False, n_rows=2000) for seed in range(len(streams))]
    reference = np.array([p.argmax(axis=1) != y for p, y in before])
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(source, wrong=wrong, reference=reference, **settings)
        script = Path(__file__).parent / "peers" / "monitors.py"
        subprocess.run([place.python, str(script), str(source), str(target)], check=True)
        return dict(np.load(target, allow_pickle=False))


def two_classes(store, runs):
    """For two classes, also the safe Hosmer-Lemeshow test: temperature 0.8 from the first row, or from row 5,000 on."""
    for case, start in (("k = 2, temperature 0.8 from the start", 0), ("k = 2, temperature 0.8", CHANGE)):
        found = {"polycal": [], "safe Hosmer-Lemeshow": []}
        for seed in range(runs):
            rng = np.random.default_rng([seed, 29])
            proba = real_rows(N_ROWS, 2, rng)
            labels = drawn(proba, rng)
            labels[start:] = drawn(proba[start:] ** 0.8, rng)
            found["polycal"].append(monitor_delay(proba, labels, pc.Monitor(ALPHA), 250) - 1)
            found["safe Hosmer-Lemeshow"].append(
                first_over(safe_hosmer_lemeshow(proba, labels), -np.log(ALPHA))
            )
        save_delays(store, case, found, start)


# --- Cost.


def cost(store, n_rows, n_classes=100):
    """Rows a second on a long calibrated stream, fits included; the largest memory; the time of one row."""
    rng = np.random.default_rng(0)
    proba = real_rows(20_000, n_classes, rng)
    monitor = pc.Monitor(1e-6)
    monitor.update(drawn(proba[:100], rng), proba[:100])
    seconds, sizes = 0.0, []
    for _ in range(0, n_rows, 20_000):
        labels = drawn(proba, rng)
        start = time.process_time()
        monitor.update(labels, proba)
        seconds += time.process_time() - start
        sizes.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    single = []
    for i in range(300):
        start = time.perf_counter()
        monitor.update(labels[i : i + 1], proba[i : i + 1])
        single.append(time.perf_counter() - start)
    save(
        store,
        part="cost",
        case=f"k = {n_classes}, {monitor.n_rows:,} rows",
        method="polycal",
        rows_a_second=n_rows / seconds,
        memory_half=sizes[len(sizes) // 2],
        memory_last=sizes[-1],
        one_row_ms=1e3 * float(np.median(single)),
    )


# --- The page.

PAGE = Path(__file__).parents[1] / "docs" / "monitoring.md"
_PEERS = ("PIT", "ADWIN", "hourly ECE", "DDM", "MAPIE")
_CHANGES = {
    "temperature 0.8": "labels follow temperature 0.8",
    "two classes swapped": "two classes swapped on a tenth of rows",
    "a group's rate doubled": "a group's rate doubled",
    HIDDEN: "a hidden set of classes",
}


def _table(*rows):
    """Cells as the lines of a table."""
    head, *lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *lines]


def _delay_rows(store):
    yield ("predictions", "classes", "orders", "monitor", *SINGLES)
    for case in dict.fromkeys(row["case"] for row in store.rows if row["part"] == "delay"):
        found = {name: store.find(part="delay", case=case, method=name) for name in ("monitor", *SINGLES)}
        own = found["monitor"]
        least = dict.fromkeys(found, own["rows"]) | {"kernel": (own["median"] or own["rows"]) / 1.3}
        cells = [
            "" if row is None else f"{row['median']:,.0f}" if row["median"] else f"over {int(least[name]):,}"
            for name, row in found.items()
        ]
        yield (case, own["classes"], own["runs"], *cells)


def _drift_rows(store):
    yield ("change at row 5,000", "monitor", "95 % within", *_PEERS)
    for case, words in _CHANGES.items():
        own = store.find(part="drift", case=case, method="polycal")
        peers = [store.find(part="drift", case=case, method=name) for name in _PEERS]
        yield (words, _found(own), f"{own['within_95']:,.0f}", *map(_found, peers))


def _found(row):
    """Found how often, and after how many rows in the median."""
    middle = f": {row['median']:,.0f}" if row["median"] else ""
    return f"{row['found']} of {row['runs']}{middle}"


def _validity_rows(store):
    classes = (2, 10, 100)
    yield ("mode", "bettors that are fitted", *(f"{k} classes" for k in classes), "together")
    rows = {row["case"]: row for row in store.rows if row["part"] == "validity"}
    fitted = {"none": ", idle: vector, recent vector, kernel", "vector": ", idle: kernel", "all": ""}
    for mode in MODES:
        for words, idle in fitted.items():
            own = [rows.get(f"{mode}, k = {k}{idle}") for k in classes]
            if any(own):
                told = "" if "tolerance" in mode else words
                yield (mode, told, *map(_false, own), _false(_together([row for row in own if row])))


def _together(rows):
    return {"case": rows[0]["case"]} | {
        name: sum(row[name] for row in rows) for name in ("runs", "false", "alarms")
    }


def _false(row):
    """How many streams raised an alarm; of many alarms, the rows from one to the next."""
    if row is None:
        return ""
    if row["case"].startswith("many"):
        return f"{row['runs']:,}: one in {row['runs'] * N_ROWS / max(row['alarms'], 1):,.0f} rows"
    return f"{row['false']} of {row['runs']:,}"


def page(store):
    """Write the tables of docs/monitoring.md anew, each in the place of the one with the same first cells."""
    lines = PAGE.read_text().splitlines()
    for rows in (_delay_rows(store), _drift_rows(store), _validity_rows(store)):
        table = _table(*rows)
        begins = "|".join(table[0].split("|")[:3])
        start = next(i for i, line in enumerate(lines) if line.startswith(begins))
        stop = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
        lines[start:stop] = table
    PAGE.write_text("\n".join(lines) + "\n")


def save(store, **row):
    """Keep a row of results, and print it."""
    store.add(row)
    print({key: value for key, value in row.items() if key != "all"}, flush=True)


def main():
    """One part."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.monitoring", description=__doc__)
    parser.add_argument("part", choices=["validity", "delay", "drift", "two-classes", "cost", "page"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--sets", nargs="+")
    parser.add_argument("--modes", nargs="+", default=MODES)
    parser.add_argument("--classes", nargs="+", type=int, default=[2, 10])
    parser.add_argument("--designs", nargs="+", default=[*DESIGNS, HIDDEN])
    parser.add_argument("--peer-runs", type=int, default=40, help="streams for peers, and to set them by")
    parser.add_argument(
        "--idle", nargs="+", default=[], help="bettors that are never fitted, which takes most of the time"
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore", pc.CalibrationWarning)
    store = Store(FOLDER / "monitoring.jsonl", KEY)
    known = bets.recipes
    bets.recipes = lambda k: tuple(
        recipe._replace(first=_NO_ROW) if recipe.name in options.idle else recipe for recipe in known(k)
    )
    match options.part:
        case "validity":
            validity(store, options.runs, options.modes, options.classes, options.rows)
        case "delay":
            delay(store, options.runs, options.sets, options.rows)
        case "drift":
            drift(store, options.runs, options.designs, options.peer_runs)
        case "two-classes":
            two_classes(store, options.runs)
        case "cost":
            cost(store, options.rows)
        case "page":
            page(store)


if __name__ == "__main__":
    main()
