"""What acting on predictions costs: ``python -m benchmarks.costs speed | coverage | sets [NAME ...]``.

``sets`` keeps a row for each set of predictions and method. For each family of losses it has the cost of acting on the
evaluation part, what that saves against acting on the input, and what swaps of actions still save there, those found on
the other half of the rows; each with its standard error. ``python -m benchmarks report`` makes a table of them.
"""

import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import polycal as pc
from benchmarks.data import prediction_sets
from benchmarks.judging import as_proba
from benchmarks.methods import BASELINE, own_version
from benchmarks.peers.environments import environment
from benchmarks.peers.processes import DEFAULT_LIMITS, Worker
from benchmarks.peers.recalibrators import RECALIBRATORS
from benchmarks.recalibration import prepare
from benchmarks.store import FOLDER, Store
from benchmarks.timing import best_times
from polycal.sample import Sample
from polycal.states.costs import CostState
from polycal.states.swaps import SavingState, SwapState

FILE, KEY = "costs.jsonl", ("set", "method")
FAMILIES = ("abstain", "random", "ordinal")
KERNEL, REPAIRED = "polycal KernelCalibrator", "polycal AuditedCalibrator(losses, start=KernelCalibrator)"
# Seconds of processors that a fit of the kernel may take for a repair, which needs six.
SLOW = 30.0
REFERENCES = {"kernel": KERNEL, "repaired": REPAIRED}
# Ours come first: others are compared with them.
OWN = {
    KERNEL: lambda _: pc.KernelCalibrator(),
    REPAIRED: lambda made: pc.AuditedCalibrator(losses=made, start=pc.KernelCalibrator()),
    "polycal AuditedCalibrator(losses)": lambda made: pc.AuditedCalibrator(losses=made),
    "polycal TemperatureScaling": lambda _: pc.TemperatureScaling(),
    "polycal VectorScaling": lambda _: pc.VectorScaling(),
    "polycal IsotonicCalibrator": lambda _: pc.IsotonicCalibrator(),
}
# The strongest of the leaderboard, and those that most people have.
PEERS = (
    "probmetrics SMS",
    "probmetrics SVS",
    "probmetrics temperature",
    "probmetrics isotonic",
    "netcal temperature",
    "scikit-learn temperature",
    "scikit-learn sigmoid",
    "scikit-learn isotonic",
)


def losses(k):
    """Three families: 0/1 with an action that abstains, random costs of five actions, and distances between classes."""
    rng = np.random.default_rng(0)
    classes = np.arange(k)
    distance = np.abs(classes[:, None] - classes) / (k - 1)
    matrices = {
        "abstain": np.vstack([1.0 - np.eye(k), np.full(k, 0.1)]) if k < 1000 else None,
        "random": rng.random((5, k)),
        "ordinal": distance,
    }
    # Of 1,000 classes there is no room for one more action: the last class cannot be answered.
    if matrices["abstain"] is None:
        matrices["abstain"] = np.vstack([(1.0 - np.eye(k))[:-1], np.full(k, 0.1)])
    return {name: pc.make_loss(matrix, n_classes=k, name=name) for name, matrix in matrices.items()}


def fits(split, made, limits):
    """What each method makes of the evaluation part, and how long fitting and predicting took."""
    part, fresh = split.calibration, split.evaluation
    yield BASELINE, fresh.proba, 0.0
    taken = {}
    for name, make in OWN.items():
        if name == REPAIRED and taken[KERNEL] > SLOW:
            continue
        start = process_time()
        proba = make(made).fit(part.proba, part.labels).predict_proba(fresh.proba)
        taken[name] = process_time() - start
        yield name, proba, taken[name]
    with tempfile.TemporaryDirectory() as folder, Worker(environment("main").python) as worker:
        *_, path = prepare(split, Path(folder, "split.npz"))
        for name in PEERS:
            job = {
                "task": "recalibrate",
                "method": name,
                "package": RECALIBRATORS[name].package,
                "warm_up": True,
            }
            found = worker.run(job, path, limits)
            if found["status"] != "ok":
                print(f"{name}: {found['status']}: {found['error']}", flush=True)
                continue
            proba, _ = as_proba(found["output"], fresh.proba.shape)
            yield name, proba, found["fit_seconds"] + found["predict_seconds"]


def swap_savings(sample, loss, seed=0):
    """What swaps save on each row, those that were found on the other half of the rows."""
    order = np.random.default_rng(seed).permutation(sample.n_samples)
    halves = [order[::2], order[1::2]]
    saved = np.empty(sample.n_samples)
    for searched, judging in (halves, halves[::-1]):
        state = SwapState(loss)
        state.absorb(sample.take(searched), searched)
        actions, labels = loss.act(sample.proba[judging])[0], sample.labels[judging]
        saved[judging] = loss.paid(actions, labels) - loss.paid(state.finish()[actions], labels)
    return saved


def mean_and_error(values):
    """The mean of rows, and its standard error."""
    return float(values.mean()), float(values.std() / np.sqrt(values.size))


def one_set(prediction_set, limits=DEFAULT_LIMITS):
    """A row for each method: what acting on it costs and saves, and what swaps still save, beside the flagship's."""
    split = prediction_set.split()
    given, made = split.evaluation, losses(split.evaluation.n_classes)
    paid, swaps = {}, {}
    for name, proba, seconds in fits(split, made, limits):
        after = Sample(np.ascontiguousarray(proba), given.labels)
        row = {"set": prediction_set.name, "method": name, "k": given.n_classes, "n": given.n_samples}
        row |= {"version": own_version(), "seconds": round(seconds, 2)}
        for family, loss in made.items():
            paid[name, family] = loss.paid(loss.act(after.proba)[0], after.labels)
            swaps[name, family] = swap_savings(after, loss)
            columns = {
                "cost": paid[name, family],
                "saved": paid[BASELINE, family] - paid[name, family],
                "regret": swaps[name, family],
            }
            # How much larger the regret of our own is; rows are the same, so that differences are paired.
            columns |= {
                f"{short} more": swaps[ours, family] - swaps[name, family]
                for short, ours in REFERENCES.items()
                if (ours, family) in swaps
            }
            for column, values in columns.items():
                row[f"{family} {column}"], row[f"{family} {column} error"] = mean_and_error(values)
        yield row


def sets(names):
    """All sets, or some, smallest first."""
    store = Store(FOLDER / FILE, KEY)
    for prediction_set in sorted(prediction_sets(names or None), key=lambda s: s.n_cells):
        for row in one_set(prediction_set):
            store.add(row)
            words = [
                f"{family} {row[f'{family} cost']:.5f} {row[f'{family} regret']:.5f}" for family in FAMILIES
            ]
            print(
                f"{row['set']:<24} {row['method']:<28} {row['seconds']:7.1f} s  {'  '.join(words)}",
                flush=True,
            )
    store.compact()


def speed(n=100_000, k=1000, n_actions=5):
    """The audit's costs beyond one product of the predictions with the losses, in seconds of processors."""
    rng = np.random.default_rng(0)
    proba = rng.random((n, k), dtype=np.float32) ** 8
    proba /= proba.sum(axis=1, keepdims=True)
    sample = Sample(proba, rng.integers(0, k, n))
    loss = pc.make_loss(rng.random((n_actions, k)), n_classes=k)
    matrix, rows = loss.matrix.astype(np.float32), np.arange(n)

    def audited():
        everything, searched = CostState(loss), SwapState(loss)
        everything.absorb(sample, rows)
        searched.absorb(sample.take(slice(0, n // 2)), rows[: n // 2])
        judged = SavingState(loss, searched.finish())
        judged.absorb(sample.take(slice(n // 2, n)), rows[n // 2 :])
        return everything.finish(), judged.finish()

    audited()
    product, chosen, whole = best_times(
        [lambda: proba @ matrix.T, lambda: loss.act(proba), audited], repeats=3, clock=process_time
    )
    print(
        f"n = {n:,}, k = {k:,}, {n_actions} actions: product {product:.3f} s, decide {chosen:.3f} s, ", end=""
    )
    print(f"promised, paid, swaps and saving with intervals {whole:.3f} s: {whole - product:.3f} s beyond it")


def coverage(n_audits=1000, n=500, alpha=0.05):
    """How often any bound about costs is wrong, with all of alpha for them; of rows drawn from a known population."""
    matrix = np.array([[0.0, 1.0, 1.0], [20.0, 0.0, 0.0], [2.0, 2.0, 2.0]])
    loss = pc.make_loss(matrix, n_classes=3)
    for factor in (1.0, 6.0, 30.0):
        rng = np.random.default_rng(int(factor))
        proba = rng.dirichlet([0.3, 1.0, 1.0], 200)
        truth = proba * [factor, 1.0, 1.0]
        truth /= truth.sum(axis=1, keepdims=True)
        actions, promised = loss.act(proba)
        paid = np.einsum("ij,ij->i", truth, matrix[actions])
        wrong, wrong_savings, shown = 0, 0, 0
        for seed in range(n_audits):
            picked = rng.integers(0, 200, n)
            labels = (truth[picked].cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
            sample, rows = Sample(proba[picked], labels), np.arange(n)
            cost, search = CostState(loss, alpha=alpha / 2, random_state=seed), SwapState(loss)
            cost.absorb(sample, rows)
            search.absorb(sample.take(slice(0, n // 2)), rows[: n // 2])
            judge = SavingState(loss, search.finish(), alpha=alpha / 2, random_state=seed)
            judge.absorb(sample.take(slice(n // 2, n)), rows[n // 2 :])
            summary, bound = cost.finish(), judge.finish().saving.lower_bound
            saved = paid - np.einsum("ij,ij->i", truth, matrix[judge.swaps[actions]])
            means = ((summary.promised, promised), (summary.paid, paid), (summary.excess, paid - promised))
            off = any(not m.at_least <= values.mean() <= m.at_most for m, values in means)
            wrong_savings += bound > saved.mean() + 1e-9
            wrong += off or bound > saved.mean() + 1e-9
            shown += bound > 0
        print(
            f"first class {factor:g} times as likely as said: some bound wrong in {wrong} of {n_audits} audits of {n} "
            f"rows, the saving's in {wrong_savings}; a saving shown in {shown}"
        )


if __name__ == "__main__":
    command, *names = sys.argv[1:] or ["speed"]
    {"speed": speed, "coverage": coverage, "sets": lambda: sets(names)}[command]()
