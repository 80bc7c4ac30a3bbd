"""What acting on predictions costs: ``python -m benchmarks.costs speed | coverage | sets [NAME ...] | summary FILE``.

``sets`` prints one line of JSON for each set of predictions. For each method and family of losses it has the cost of
acting on the evaluation part, the standard error of what that saves against acting on the input, what swaps of actions
still save there (at least 0, since nobody must swap), and the standard error of that. ``summary FILE`` counts them.
"""

import json
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import polycal as pc
from benchmarks.data import prediction_sets
from benchmarks.methods import BASELINE
from benchmarks.peers.recalibrators import RECALIBRATORS
from benchmarks.timing import best_times
from polycal.measures.costs import sample_cost
from polycal.sample import Sample
from polycal.states.costs import CostState
from polycal.states.swaps import SavingState, SwapState

OWN = (
    pc.KernelCalibrator,
    pc.TemperatureScaling,
    pc.EnsembleTemperatureScaling,
    pc.VectorScaling,
    pc.IsotonicCalibrator,
)
# Those that need no environment of their own.
PEERS = ("scikit-learn temperature", "scikit-learn sigmoid", "scikit-learn isotonic")


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


def fits(split):
    """What each method makes of the evaluation part, and how long it took."""
    part = split.calibration
    yield BASELINE, split.evaluation.proba, 0.0
    for kind in OWN:
        start = perf_counter()
        made = kind().fit(part.proba, part.labels).predict_proba(split.evaluation.proba)
        yield f"polycal {kind.__name__}", made, perf_counter() - start
    for name in PEERS:
        start = perf_counter()
        made = RECALIBRATORS[name].fit(part.proba, part.labels)(split.evaluation.proba)
        yield name, made / made.sum(axis=1, keepdims=True), perf_counter() - start


def swap_regret(sample, loss, seed=0):
    """What swaps found on one half save on the other, and the other way round: the mean of both, and its error."""
    order = np.random.default_rng(seed).permutation(sample.n_samples)
    halves = [sample.take(order[::2]), sample.take(order[1::2])]
    saved, errors = [], []
    for searched, judging in (halves, halves[::-1]):
        state = SwapState(loss)
        state.absorb(searched, np.arange(searched.n_samples))
        judged = SavingState(loss, state.finish())
        judged.absorb(judging, np.arange(judging.n_samples))
        saved.append(float(judged._tally.mean))
        errors.append(float(judged._tally.std_error))
    return max(float(np.mean(saved)), 0.0), float(np.hypot(*errors)) / 2


def one_set(prediction_set):
    """Costs and swap regrets of all methods on one set."""
    split = prediction_set.split()
    given, made = split.evaluation, losses(split.evaluation.n_classes)
    paid = {family: loss.paid(loss.act(given.proba)[0], given.labels) for family, loss in made.items()}
    rows = {}
    for name, proba, seconds in fits(split):
        after = Sample(np.ascontiguousarray(proba), given.labels)
        rows[name] = {"seconds": round(seconds, 2)}
        for family, loss in made.items():
            saved = paid[family] - loss.paid(loss.act(after.proba)[0], after.labels)
            error = float(saved.std() / np.sqrt(saved.size))
            rows[name][family] = [sample_cost(after, loss), error, *swap_regret(after, loss)]
    return {"set": prediction_set.name, "n": given.n_samples, "methods": rows}


def summary(path):
    """What the flagship's costs and regrets are beside those of the input and of peers, line by line and in all."""
    dearer, larger, n_cases = [], [], 0
    for line in Path(path).read_text().splitlines():
        found = json.loads(line)
        methods = found["methods"]
        for family in ("abstain", "random", "ordinal"):
            cost, error, regret, doubt = methods["polycal KernelCalibrator"][family]
            given = methods[BASELINE][family][0]
            peer = min(methods[name][family][2] for name in PEERS)
            n_cases += 1
            words = f"{found['set']}, {family}"
            if cost > given + 1e-9:
                dearer.append(f"{words}: {cost:.5f} for {given:.5f} (± {error:.5f})")
            if regret > peer + 1e-9:
                larger.append(f"{words}: {regret:.5f} for {peer:.5f} (± {doubt:.5f})")
            print(
                f"{words:<34} cost {cost / given:6.3f} of the input's, swap regret {regret:.5f}, peers' {peer:.5f}"
            )
    print(f"dearer than the input in {len(dearer)} of {n_cases}: {'; '.join(dearer)}")
    print(f"larger swap regret than some peer's in {len(larger)} of {n_cases}: {'; '.join(larger)}")


def sets(names):
    """All sets, or some, smallest first."""
    for prediction_set in sorted(prediction_sets(names or None), key=lambda s: s.n_cells):
        print(json.dumps(one_set(prediction_set)), flush=True)


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
    {"speed": speed, "coverage": coverage, "summary": lambda: summary(*names)}.get(
        command, lambda: sets(names)
    )()
