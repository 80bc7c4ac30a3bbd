"""Detecting: how often each test of calibration, at level 5 %, finds an error of known size.

Strength 0 is a calibrated predictor: there a valid test rejects at most one time in twenty. All tests see the same
samples.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.methods import matches, own_version
from benchmarks.peers.environments import environment
from benchmarks.peers.hypothesis_tests import ALPHA, DRAWS, TESTS
from benchmarks.peers.processes import Limits, run_job
from benchmarks.store import Store
from polycal._validation import check_sample
from polycal.datasets import make_cat_and_dog, make_shifted_subset, make_temperature
from polycal.inference.redraw import noise_test, question_noise
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset

KEY = ("case", "strength", "test")
POWER = 0.8
ORACLE = "an oracle told the set"


@dataclass(frozen=True)
class Case:
    """A way to be miscalibrated.

    Attributes
    ----------
    name : str
        As the tables show it.
    strengths : tuple of float
        How much, increasing; 0 is calibrated.
    draw : callable
        From strength, number of rows and seed to predictions and labels.
    meaning : str
        What the strength is.
    wrong : tuple of int
        The classes whose sum is off, which only an oracle knows.
    more_rows : tuple of int
        Numbers of rows of further samples that the audit sees, where it finds nothing in those of the others.
    """

    name: str
    strengths: tuple
    draw: Callable
    meaning: str
    wrong: tuple = ()
    more_rows: tuple = ()


def _cat_and_dog(strength, n, seed):
    made = make_cat_and_dog(n, error=strength, random_state=seed)
    return made.proba, made.labels


def _cat_and_dog_breeds(strength, n, seed, breeds=10):
    """Each of the four classes parted into ten breeds, correctly: the wrong subset has twenty classes."""
    made = make_cat_and_dog(n, error=strength, random_state=seed)
    rng = np.random.default_rng([seed, 7])
    shares = rng.dirichlet(np.full(breeds, 0.3), size=made.proba.shape)
    proba = (made.proba[:, :, None] * shares).reshape(n, -1)
    own = shares[np.arange(n), made.labels].cumsum(axis=1)
    breed = (own > rng.random((n, 1)) * own[:, -1:]).argmax(axis=1)
    return proba / proba.sum(axis=1, keepdims=True), made.labels * breeds + breed


def _shifted_subset(strength, n, seed):
    made = make_shifted_subset(n, 10, error=strength, random_state=seed)
    return made.proba, made.labels


def _temperature(strength, n, seed):
    made = make_temperature(n, 10, temperature=1 - strength, n_distinct=n, random_state=seed)
    return made.proba, made.labels


CASES = (
    Case(
        "cat and dog, 4 classes",
        (0, 0.05, 0.1, 0.15, 0.2),
        _cat_and_dog,
        "gap of the pair where there is one",
        wrong=(0, 1),
    ),
    Case(
        "cat and dog, 40 breeds",
        (0, 0.05, 0.1, 0.15, 0.2),
        _cat_and_dog_breeds,
        "gap of twenty classes together where there is one",
        wrong=tuple(range(20)),
        more_rows=(4000, 8000),
    ),
    Case(
        "half of 10 classes",
        (0, 0.01, 0.02, 0.04, 0.08),
        _shifted_subset,
        "constant gap of five classes together",
    ),
    Case("temperature, 10 classes", (0, 0.05, 0.1, 0.2, 0.3), _temperature, "1 minus the temperature"),
)


QUICK_CASES = (CASES[0], CASES[3])


def main(options):
    """Run what is not in the results yet: one process for each case and test."""
    store = Store(options.results / "detecting.jsonl", KEY)
    n, repeats = (1000, 20) if options.quick else (2000, 100)
    limits = Limits(options.time_limit or (60 if options.quick else 900))
    missing = {}
    for case in QUICK_CASES if options.quick else CASES:
        arrays = None
        for name, test in wanted(options.methods).items():
            place = environment(test.environment, create=not options.no_install)
            if place.reason(test.package) is not None:
                missing[name] = place.reason(test.package)
            elif options.force or store.find(case=case.name, strength=0, test=name) is None:
                arrays = arrays or samples(case, n, repeats)
                for row in power_curve(case, name, tried(place.python, name, test, arrays, limits)):
                    store.add({"n": n, **row})
                    print(describe(row), flush=True)
    if not options.quick and "polycal audit" in wanted(options.methods):
        for row in beyond_the_tests(repeats, store, limits, options):
            store.add(row)
            print(describe(row), flush=True)
    store.compact()
    return missing


def beyond_the_tests(repeats, store, limits, options):
    """What an oracle would find that knows the wrong set, and from how many rows on the audit does."""
    python = environment("polycal", create=False).python
    for case in CASES:
        if case.wrong and (options.force or store.find(case=case.name, strength=0, test=ORACLE) is None):
            result = {"status": "ok", "seconds": 0.0, "p_values": []}
            start = time.perf_counter()
            for seed in range(repeats):
                drawn = (case.draw(strength, 2000, seed) for strength in case.strengths)
                result["p_values"] += [told(*one, case.wrong, seed) for one in drawn]
            result["seconds"] = (time.perf_counter() - start) / len(result["p_values"])
            yield from ({"n": 2000, **row} for row in power_curve(case, ORACLE, result))
        for n in case.more_rows:
            name = f"polycal audit, {n:,} rows"
            if options.force or store.find(case=case.name, strength=0, test=name) is None:
                test = TESTS["polycal audit"]
                result = tried(python, "polycal audit", test, samples(case, n, min(repeats, 40)), limits)
                yield from ({"n": n, **row} for row in power_curve(case, name, result))


def told(proba, labels, wrong, seed):
    """The p-value of the smooth error of a set that was told."""
    question = ask_subset(check_sample(labels, proba), np.array(wrong))
    noise = question_noise(question, smooth_error(question))
    return noise_test(noise, DRAWS, np.random.SeedSequence(seed))[1]


def wanted(patterns):
    """The tests whose name matches one of the patterns; all by default."""
    return {
        name: test
        for name, test in TESTS.items()
        if any(matches(name, pattern) for pattern in patterns or "*")
    }


def samples(case, n, repeats):
    """Independent samples of every strength, stacked; all strengths of the first seed come first."""
    drawn = [case.draw(strength, n, seed) for seed in range(repeats) for strength in case.strengths]
    proba, labels = zip(*drawn, strict=True)
    return {"proba": np.stack(proba), "labels": np.stack(labels)}


def tried(python, name, test, arrays, limits):
    """The worker's result. It is to stop by itself with what it has; the limit is for what hangs."""
    job = {"task": "test", "method": name, "package": test.package, "seconds": 0.7 * limits.seconds}
    result = run_job(python, job, arrays, limits)
    return {**result, "version": own_version()} if test.package == "polycal" else result


def power_curve(case, name, result):
    """One row for each strength, with how many samples were rejected of those there was time for."""
    result = dict(result)
    p_values = result.pop("p_values", [])
    repeats = len(p_values) // len(case.strengths)
    if result["status"] == "ok" and repeats == 0:
        result = {"status": "time limit", "error": f"{result['seconds']:.0f} s for one sample"}
    shares = (
        np.array(p_values[: repeats * len(case.strengths)]).reshape(repeats, len(case.strengths)) <= ALPHA
    )
    for i, strength in enumerate(case.strengths):
        row = {"case": case.name, "strength": strength, "test": name, "repeats": repeats, **result}
        if result["status"] == "ok":
            row["rejected"] = int(np.count_nonzero(shares[:, i]))
        yield row


def describe(row):
    """One line of progress."""
    head = f"{row['case']:<26} {row['strength']:<5} {row['test']:<32}"
    if row["status"] != "ok":
        return f"{head} {row['status']}: {row['error']}"
    return f"{head} rejected {row['rejected']:>3} of {row['repeats']}  {row['seconds']:.3f} s each"


def smallest_found(points, power=POWER):
    """The strength at which the share of rejections reaches the power, by interpolation; None if it never does.

    Parameters
    ----------
    points : sequence of (strength, share)
        The power curve.
    """
    before = None
    for strength, share in sorted(points):
        if share >= power and strength > 0:
            if before is None or share == before[1]:
                return strength
            return before[0] + (strength - before[0]) * max(power - before[1], 0) / (share - before[1])
        before = (strength, share)
    return None
