from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from tests.calibrators.draws import tempered
from tests.reference_audited import log_loss, project, squared_loss, tilt
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.audited import AuditedCalibrator
from polycal.calibrators.audited.rounds import (
    ALL_ROUNDS,
    NO_STEP,
    NOTHING_PROVED,
    Judge,
    Line,
    Parts,
    additive,
    apply_program,
    audit_round,
    audit_rounds,
    first_step,
    multiplicative,
    started_parts,
)
from polycal.calibrators.audited.sharpness import (
    SharpnessFirst,
    SharpnessWitness,
    is_temperature,
    sharpness_witness,
)
from polycal.calibrators.base import Calibrator, counted_rows
from polycal.families.auditor import Auditor
from polycal.families.defaults import NOTIONS
from polycal.families.questions import SubsetWitness
from polycal.kernels.kernels import CallableKernel
from polycal.measures.functions import StepFunction
from polycal.sample import split_rows
from polycal.steps import FLOOR, Normalise, Step, run

PROBA, LABELS, _ = tempered(3.0, n=900, k=3)
NEW, NEW_LABELS, _ = tempered(3.0, n=2000, k=3, seed=1)
COARSE = np.round(PROBA * 4)
COARSE /= COARSE.sum(axis=1, keepdims=True)
UPDATES = {"paper": additive(0.0, 3), "additive": additive(0.5, 3), "multiplicative": multiplicative()}
LOSSES = {"paper": squared_loss, "additive": squared_loss, "multiplicative": log_loss}
CONFIDENCE = pc.NotionAuditor(pc.Confidence(smooth=True))

AUDITORS = {
    "default": None,
    "kernel": pc.KernelAuditor(),
    "multinomial kernel": pc.KernelAuditor(pc.Multinomial(3), amplify=False),
    "subset": pc.SubsetAuditor(),
    "projection": pc.ProjectionAuditor(),
    "sigmoid": pc.SigmoidAuditor(),
    "decision": pc.DecisionAuditor(),
}
AUDITORS |= {
    f"notion {name}": pc.NotionAuditor(notion(n_floor_draws=0) if name == "full-smooth" else notion())
    for name, notion in NOTIONS.items()
}
FOREIGN = {
    "learner": pc.LearnerAuditor(LogisticRegression()),
    "function as kernel": pc.KernelAuditor(CallableKernel(lambda left, right: left @ right.T, bound=1.0)),
}
# What each of them is given; canonical calibration is about repeated predictions.
DATA = {"notion canonical": COARSE}


def audited(auditor=None, **parameters):
    auditor = pc.SubsetAuditor() if auditor is None else auditor
    return AuditedCalibrator(auditor, **{"max_rounds": 10} | parameters)


def weights_at(proba, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, proba.shape)


# One step


@settings(max_examples=30, deadline=None)
@given(sample=samples(), step=st.sampled_from([0.0, 0.01, 1.0, 30.0]), keep=st.sampled_from([0.0, 0.3]))
def test_a_step_is_what_it_says(sample, step, keep):
    _, proba, _ = sample
    weights = weights_at(proba)
    moved = additive(keep, proba.shape[1]).moved(proba, weights, step)
    for p, w, out in zip(proba, weights, moved, strict=True):
        np.testing.assert_allclose(out, (1 - keep) * project(p + step * w) + keep * p, atol=1e-12)
    tilted = multiplicative().moved(proba, weights, step)
    for p, w, out in zip(proba, weights, tilted, strict=True):
        np.testing.assert_allclose(out, tilt(np.maximum(p, FLOOR), w, step), atol=1e-12)


@pytest.mark.parametrize("name", UPDATES)
def test_steps_do_the_same_to_new_predictions(name):
    witness = pc.SubsetAuditor().find_witness(LABELS, PROBA)
    program = UPDATES[name].steps(witness.to_steps(), 0.3)
    np.testing.assert_allclose(run(program, NEW), UPDATES[name].moved(NEW, witness(NEW), 0.3), atol=1e-12)


def found_line(name):
    sample = check_sample(LABELS, PROBA)
    witness = CONFIDENCE.find(sample)
    return Line(UPDATES[name], sample, witness.evaluate(PROBA)), witness.correlation(sample) / UPDATES[
        name
    ].size


@pytest.mark.parametrize("name", UPDATES)
def test_a_line_knows_the_loss_of_its_lemma(name):
    line, step = found_line(name)
    moved = UPDATES[name].moved(PROBA, line.weights, step)
    assert line.loss(0.0) == pytest.approx(LOSSES[name](PROBA, LABELS))
    assert line.loss(step) == pytest.approx(LOSSES[name](moved, LABELS))


@pytest.mark.parametrize("name", UPDATES)
def test_steps_are_doubled_while_that_helps_and_never_far(name):
    line, step = found_line(name)
    doubled = line.doubled(step / 16, 0.25)
    assert doubled / step * 16 in 2.0 ** np.arange(1, 20)
    assert 0.125 < doubled <= 0.25 or line.loss(2 * doubled) >= line.loss(doubled)
    assert line.loss(doubled) < line.loss(step / 16)
    assert line.doubled(0.2, 0.25) == 0.2


@pytest.mark.parametrize("name", UPDATES)
def test_steps_are_halved_until_the_loss_falls(name):
    line, step = found_line(name)
    assert line.halvings(step, 0.0) == 0
    # Far beyond the best step, the loss is larger than it was.
    halvings = line.halvings(2.0**20 * step, 0.0)
    assert 0 < halvings <= 20
    assert line.loss(2.0 ** (20 - halvings) * step) < line.loss(0.0)
    assert line.loss(2.0 ** (21 - halvings) * step) >= line.loss(0.0)
    backwards = Line(line.update, line.sample, -line.weights)
    assert backwards.halvings(step, 0.0) is None


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0, 1.7, 3.0, 100.0])
@pytest.mark.parametrize("name", UPDATES)
def test_every_first_step_gains_what_the_tolerance_promises(name, factor):
    line, step = found_line(name)
    update, beta = line.update, step * line.update.size
    tolerance = 0.999 * beta * min(factor, 1.0)
    halvings = line.halvings(factor * step, tolerance)
    assert halvings <= max(0, np.ceil(np.log2(factor)))
    gain = line.loss(0.0) - line.loss(factor * step / 2**halvings)
    assert gain > 0.75 * update.gain * tolerance**2


def test_the_first_step_is_by_rows_that_were_never_searched():
    sample = check_sample(LABELS, PROBA)
    witness = CONFIDENCE.find(sample)
    fresh, sure = check_sample(NEW_LABELS, NEW), check_sample(NEW.argmax(axis=1), NEW)
    step = first_step(multiplicative(), witness, Parts(sample, fresh, fresh), 0.0)
    assert step in witness.correlation(fresh) * 2.0 ** np.arange(10)
    # Where those show no gain, the searched rows say how long a step could be.
    assert witness.correlation(sure) < 0
    for measure in (sure, fresh.take(slice(0))):
        step = first_step(multiplicative(), witness, Parts(sample, measure, fresh), 0.0)
        assert step == pytest.approx(witness.correlation(sample))
        assert first_step(multiplicative(), witness, Parts(sample, measure, fresh), 1.5) == 1.5
    assert first_step(additive(0.0, 3), witness, Parts(sample, fresh, fresh), 1.5) == 0.5


def test_what_is_kept_keeps_every_class_possible():
    # The second class is seldom right, but moving straight would rule it out.
    proba = np.tile([0.9, 0.1], (100, 1))
    labels = (np.arange(100) < 1).astype(int)
    careless, careful = (
        additive(keep, 2).moved(proba, np.tile([1.0, -1.0], (100, 1)), 0.1) for keep in (0.0, 0.5)
    )
    assert squared_loss(careless, labels) <= squared_loss(careful, labels) < squared_loss(proba, labels)
    assert log_loss(careful, labels) < log_loss(proba, labels)
    assert careful.min() >= 0.05


# The lemma


@settings(max_examples=60, deadline=None)
@given(sample=samples(weighted=False), seed=st.integers(0, 1000), keep=st.sampled_from([0.0, 0.5]))
def test_lemma_the_squared_loss_falls_by_beta_squared_over_k(sample, seed, keep):
    labels, proba, _ = sample
    weights, k = weights_at(proba, seed), proba.shape[1]
    beta = ((np.eye(k)[labels] - proba) * weights).sum(axis=1).mean()
    weights, beta = np.sign(beta) * weights, abs(beta)
    moved = additive(keep, k).moved(proba, weights, beta / k)
    gain = squared_loss(proba, labels) - squared_loss(moved, labels)
    assert gain >= (1 - keep) * beta**2 / k - 1e-12


@settings(max_examples=60, deadline=None)
@given(sample=samples(weighted=False), seed=st.integers(0, 1000))
def test_lemma_in_logits_the_log_loss_falls_by_half_of_beta_squared(sample, seed):
    labels, proba, _ = sample
    proba = np.maximum(proba, 1e-9)
    proba /= proba.sum(axis=1, keepdims=True)
    weights, k = weights_at(proba, seed), proba.shape[1]
    beta = ((np.eye(k)[labels] - proba) * weights).sum(axis=1).mean()
    moved = multiplicative().moved(proba, np.sign(beta) * weights, abs(beta))
    assert log_loss(proba, labels) - log_loss(moved, labels) >= beta**2 / 2 - 1e-9


# Rounds


@settings(max_examples=25, deadline=None)
@given(
    sample=samples(max_rows=120),
    update=st.sampled_from(["additive", "multiplicative"]),
    alpha=st.sampled_from([0.05, 0.9]),
)
def test_the_loss_on_held_out_rows_never_rises(sample, update, alpha):
    labels, proba, weight = sample
    calibrator = audited(CONFIDENCE, update=update, alpha=alpha).fit(proba, labels, sample_weight=weight)
    rounds = calibrator.rounds_
    assert all(r.accepted for r in rounds[:-1])
    assert all(r.loss_after < r.loss_before for r in rounds if r.accepted)
    for one, following in pairwise(rounds):
        # Logits have a floor, which lifts what a step has pushed below it.
        assert following.loss_before <= one.loss_after + 1e-9
        if update == "additive":
            assert following.loss_before == pytest.approx(one.loss_after, abs=1e-12)
    kept = counted_rows(check_sample(labels, proba, sample_weight=weight))
    if kept.n_samples >= 20:
        held_out = kept.take(split_rows(kept, (2 / 3, 1 / 3), 0)[1])
        loss = squared_loss if update == "additive" else log_loss
        before, after = (
            loss(np.maximum(p, FLOOR), held_out.labels, held_out.sample_weight)
            for p in (held_out.proba, calibrator.predict_proba(held_out.proba))
        )
        assert after <= before + 1e-9
        assert before == pytest.approx(rounds[0].loss_before, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    sample=samples(max_rows=120),
    update=st.sampled_from(["additive", "multiplicative"]),
    seed=st.integers(0, 9),
)
def test_no_run_stops_at_a_proved_error(sample, update, seed):
    labels, proba, weight = sample
    fitted = audited(CONFIDENCE, update=update, alpha=0.9, random_state=seed).fit(
        proba, labels, sample_weight=weight
    )
    proved = [r.lower_bound > 0 for r in fitted.rounds_]
    assert [r.accepted for r in fitted.rounds_] == proved
    assert fitted.stopped_because_ in {NOTHING_PROVED, ALL_ROUNDS, "fewer than 20 rows"}


def test_rounds_say_what_was_done():
    fitted = audited().fit(PROBA, LABELS, class_names=["ant", "bee", "cow"])
    accepted = [r for r in fitted.rounds_ if r.accepted]
    assert fitted.used_ == "audited"
    assert accepted
    for r in accepted:
        assert 0 < r.lower_bound <= r.estimate
        assert r.p_value <= 0.05
        assert r.step > 0
        assert any(name in r.question for name in ("ant", "bee", "cow"))
    assert fitted.round_numbers_.shape == (len(fitted.rounds_), 7)


def by_hand_parts():
    sample = check_sample(LABELS, PROBA)
    return Parts(
        *(sample.take(rows) for rows in split_rows(sample, (4, 1), 3)), check_sample(NEW_LABELS, NEW)
    )


def test_one_round_by_hand():
    parts = by_hand_parts()
    found, program, halvings = audit_round(CONFIDENCE, additive(0.0, 3), parts, Judge(0.05, 0.0), 3)
    witness = CONFIDENCE.find(parts.search)
    step = first_step(additive(0.0, 3), witness, parts, 0.0)
    moved = [project(p + step * w) for p, w in zip(NEW, witness(NEW), strict=True)]
    np.testing.assert_allclose(apply_program(program, parts.held_out).proba, moved, atol=1e-12)
    certificate = pc.certify(witness, NEW_LABELS, NEW, random_state=3)
    assert halvings == 0
    assert found.step == pytest.approx(step)
    assert (found.estimate, found.lower_bound, found.p_value) == pytest.approx(
        (certificate.estimate, certificate.lower_bound, certificate.p_value)
    )
    assert found.loss_before == pytest.approx(squared_loss(NEW, NEW_LABELS))
    assert found.loss_after == pytest.approx(squared_loss(moved, NEW_LABELS))
    assert found.accepted


def test_a_step_that_would_raise_the_loss_is_halved_and_paid_for():
    parts = by_hand_parts()
    far = replace(multiplicative(), size=2.0**-8)
    found, _, halvings = audit_round(CONFIDENCE, far, parts, Judge(0.05, 0.0), 3)
    assert halvings > 0
    assert found.accepted
    assert found.loss_after < found.loss_before
    assert Judge(0.05, 0.0).after(1, halvings).level == pytest.approx(0.05 * 2.0**-halvings / 100)


def test_levels_of_all_sequences_of_rounds_add_up_to_alpha():
    for n_rounds in (1, 5, 40):
        judge = Judge(0.05, 0.1)
        shares = [judge.after(n_rounds, halvings).level for halvings in range(60)]
        assert sum(shares) == pytest.approx(0.05)
    for n_rounds in range(1, 1000):
        judge = judge.after(n_rounds, 0)
    assert 0.9 * 0.05 <= judge.level < 0.05
    assert judge.tolerance == 0.1


class Watched(Auditor):
    """Remembers the rows it was given, by their weights."""

    def __init__(self):
        self.seen = []

    def find(self, sample):
        self.seen.append(set(sample.sample_weight.tolist()))
        return CONFIDENCE.find(sample)


def test_rows_that_measure_are_never_searched():
    auditor, weight = Watched(), np.linspace(0.9, 1.1, 900)
    fitted = audited(auditor).fit(PROBA, LABELS, sample_weight=weight)
    assert len(fitted.rounds_) == len(auditor.seen) > 3
    assert len(set.union(*auditor.seen)) == len(auditor.seen[0]) == 480


# The default, run to its end


def test_a_temperature_is_repaired_nearly_as_well_as_by_temperature_scaling():
    for seed in range(3):
        proba, labels, _ = tempered(2.5, n=2400, k=6, seed=seed)
        new, new_labels, _ = tempered(2.5, n=20_000, k=6, seed=seed + 100)
        ours, theirs = (
            pc.brier_score(new_labels, calibrator.fit(proba, labels).predict_proba(new))
            for calibrator in (AuditedCalibrator(), pc.TemperatureScaling())
        )
        assert pc.brier_score(new_labels, new) > theirs + 0.05
        assert ours < theirs + 0.005


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.5, 2.5, 4.0])
@pytest.mark.parametrize("k", [3, 6, 12])
def test_no_default_run_ends_on_a_proved_error(temperature, k):
    for seed in range(3):
        proba, labels, _ = tempered(temperature, n=2400, k=k, seed=seed)
        fitted = AuditedCalibrator().fit(proba, labels)
        *accepted, last = fitted.rounds_
        assert fitted.used_ == "audited"
        assert fitted.stopped_because_ == NOTHING_PROVED
        assert last.lower_bound <= fitted.tolerance
        assert all(r.lower_bound > fitted.tolerance and r.loss_after < r.loss_before for r in accepted)


@pytest.mark.slow
def test_calibrated_predictions_stay_as_they_are_in_95_of_100_default_runs():
    used = []
    for seed in range(200):
        proba, labels, _ = tempered(1.0, n=100, k=3, seed=seed)
        fitted = AuditedCalibrator(random_state=seed).fit(proba, labels)
        used.append(fitted.used_)
        assert fitted.stopped_because_ == NOTHING_PROVED
    assert used.count("identity") >= 190


# Sharpness


@settings(max_examples=30, deadline=None)
@given(samples(), st.sampled_from([-3.0, -0.1, 0.4]))
def test_a_sharpness_witness_is_what_it_says(sample, slope):
    _, proba, _ = sample
    witness = SharpnessWitness(slope, proba.shape[1])
    expected = np.clip(slope * np.log(proba.shape[1] * np.maximum(proba, FLOOR)), -1, 1)
    np.testing.assert_allclose(witness.evaluate(proba), expected, atol=1e-12)
    assert ("too sure" in witness.describe()) == (slope < 0)


def test_a_step_along_sharpness_is_a_temperature():
    sample = check_sample(LABELS, PROBA)
    witness = sharpness_witness(sample)
    assert witness.slope < 0
    inside = np.abs(np.log(3 * PROBA)).max(axis=1) <= 1 / abs(witness.slope)
    assert inside.mean() > 0.8
    moved = multiplicative().moved(PROBA, witness.evaluate(PROBA), witness.longest_step)
    expected = PROBA**0.25 / (PROBA**0.25).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(moved[inside], expected[inside], atol=1e-12)


def test_only_temperatures_are_taken_for_temperatures():
    nearly = check_sample(LABELS, PROBA)
    assert is_temperature(sharpness_witness(nearly), nearly)
    # Wrong classes are too sure as well, and flattening would hide that they are wrong.
    rolled = check_sample(LABELS, np.roll(PROBA, 1, axis=1))
    assert sharpness_witness(rolled).slope < 0
    assert not is_temperature(sharpness_witness(rolled), rolled)
    flat_proba, flat_labels, _ = tempered(0.4, n=900, k=3)
    flat = check_sample(flat_labels, flat_proba)
    assert sharpness_witness(flat).slope > 0
    assert is_temperature(sharpness_witness(flat), flat)
    even = check_sample([0, 1, 2], np.full((3, 3), 1 / 3))
    assert np.isfinite(sharpness_witness(even).slope)


def test_sharpness_comes_first_where_it_is_seen():
    then = CONFIDENCE
    sample = check_sample(LABELS, PROBA)
    calm_proba, calm_labels, _ = tempered(1.0, n=900, k=3)
    assert isinstance(SharpnessFirst(then).find(sample), SharpnessWitness)
    for auditor, rows in (
        (SharpnessFirst(then, tolerance=0.3), sample),
        (SharpnessFirst(then), check_sample(calm_labels, calm_proba)),
        (SharpnessFirst(then), check_sample(LABELS, np.roll(PROBA, 1, axis=1))),
        (SharpnessFirst(then), sample.take(slice(1))),
    ):
        assert auditor.find(rows).describe() == then.find(rows).describe()


def test_what_is_found_is_mended():
    for update in ("additive", "multiplicative"):
        out = AuditedCalibrator(update=update).fit(PROBA, LABELS).predict_proba(NEW)
        assert pc.brier_score(NEW_LABELS, out) < pc.brier_score(NEW_LABELS, NEW) - 0.02
        assert pc.log_loss(NEW_LABELS, out) < pc.log_loss(NEW_LABELS, NEW) - 0.2
        assert pc.calibration_error(NEW_LABELS, out, pc.SubsetSmooth()) < 0.5 * pc.calibration_error(
            NEW_LABELS, NEW, pc.SubsetSmooth()
        )


@pytest.mark.parametrize("update", ["additive", "multiplicative"])
def test_calibrated_predictions_are_left_alone(update):
    alpha, n_draws, changed = 0.2, 100, 0
    for seed in range(n_draws):
        proba, labels, _ = tempered(1.0, n=200, k=3, seed=seed)
        fitted = audited(CONFIDENCE, update=update, alpha=alpha).fit(proba, labels)
        changed += fitted.used_ != "identity"
    assert changed <= binom.ppf(0.999, n_draws, alpha)


class InTurn(Auditor):
    """Finds what it is given, one after the other."""

    def __init__(self, *witnesses):
        self.left = list(witnesses)

    def find(self, sample):
        return self.left.pop(0)


def near(value):
    """Looks at predictions of about this value for the second class."""
    edges = np.array([value - 0.05, value + 0.05])
    return SubsetWitness(np.array([1]), StepFunction(edges, np.array([0.0, 1.0, 0.0])), 2)


def test_a_false_finding_is_as_rare_after_true_ones():
    # Predictions of 0.2 are too low, as the first round sees; those of 0.6 are right, and the second looks at these.
    alpha, n_draws, firsts, seconds = 0.3, 200, 0, 0
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        second = rng.choice([0.2, 0.6], 300)
        labels = rng.random(300) < np.where(second == 0.2, 0.5, 0.6)
        auditor = InTurn(near(0.2), near(0.6), near(0.6))
        fitted = audited(auditor, alpha=alpha, max_rounds=2).fit(
            np.column_stack([1 - second, second]), labels
        )
        firsts += fitted.rounds_[0].accepted
        seconds += len(fitted.rounds_) == 2 and fitted.rounds_[1].p_value <= alpha
    assert firsts > 0.9 * n_draws
    assert 0 < seconds <= binom.ppf(0.999, n_draws, alpha)


def test_nothing_to_mend_is_the_identity_and_says_so():
    proba, labels, _ = tempered(1.0, n=500, k=3)
    fitted = audited().fit(proba, labels)
    assert fitted.used_ == "identity"
    assert fitted.steps_ == ()
    assert [r.accepted for r in fitted.rounds_] == [False]
    assert fitted.rounds_[0].step == 0
    assert fitted.stopped_because_ == NOTHING_PROVED
    np.testing.assert_allclose(fitted.predict_proba(NEW), NEW, atol=1e-15)


def test_an_error_within_the_tolerance_is_left():
    assert audited(tolerance=0.0).fit(PROBA, LABELS).used_ == "audited"
    fitted = audited(tolerance=0.5).fit(PROBA, LABELS)
    assert fitted.used_ == "identity"
    assert fitted.rounds_[0].p_value < 0.05


def test_few_rows_or_no_rounds_show_nothing():
    for calibrator, n, reason in (
        (audited(), 10, "fewer than 20 rows"),
        (audited(max_rounds=0), 900, ALL_ROUNDS),
    ):
        fitted = calibrator.fit(PROBA[:n], LABELS[:n])
        assert fitted.used_ == "identity"
        assert fitted.rounds_ == ()
        assert fitted.stopped_because_ == reason
    one = audited(max_rounds=1).fit(PROBA, LABELS)
    assert (len(one.rounds_), one.stopped_because_) == (1, ALL_ROUNDS)


def test_an_update_that_never_helps_says_so():
    useless = replace(multiplicative(), loss=lambda scores: 1.0)
    rounds, program, reason = audit_rounds(CONFIDENCE, useless, by_hand_parts(), Judge(0.05, 0.0), range(5))
    assert [r.accepted for r in rounds] == [False]
    assert (program, reason) == ((), NO_STEP)


# Start


class Memory(Calibrator):
    """Knows the labels of the rows it was fitted on, and nothing else."""

    def __init__(self, *, from_logits=False):
        self.from_logits = from_logits

    def _fit(self, sample):
        return (Recall(sample.proba, sample.labels),)


class Recall(Step):
    def __init__(self, proba, labels):
        self.known = {row.astype(float).tobytes(): label for row, label in zip(proba, labels, strict=True)}

    def __call__(self, rows):
        k = rows.shape[1]
        known = [self.known.get(np.ascontiguousarray(row).tobytes()) for row in rows]
        return np.array([np.full(k, 1 / k) if label is None else np.eye(k)[label] for label in known])


def test_no_row_is_audited_with_a_start_that_has_seen_it():
    sample = check_sample(LABELS, PROBA)
    learn, held_out = (sample.take(rows) for rows in split_rows(sample, (2, 1), 0))
    parts = started_parts(Memory(), learn, held_out, 0)
    for part in (parts.search, parts.measure, parts.held_out):
        np.testing.assert_array_equal(part.proba, 1 / 3)
    both = np.concatenate([parts.search.labels, parts.measure.labels])
    np.testing.assert_array_equal(np.bincount(both), np.bincount(learn.labels))


def test_rounds_come_after_the_start():
    warm = pc.TemperatureScaling().fit(PROBA, LABELS)
    # Nothing is left to mend, so that the start is all there is.
    fitted = audited(start=pc.TemperatureScaling()).fit(PROBA, LABELS)
    assert fitted.used_ == "start"
    np.testing.assert_allclose(fitted.predict_proba(NEW), warm.predict_proba(NEW), atol=1e-12)
    useless = audited(start=pc.IdentityCalibrator()).fit(PROBA, LABELS)
    assert useless.used_ == "audited"
    np.testing.assert_array_equal(
        useless.predict_proba(NEW), audited(start=None).fit(PROBA, LABELS).predict_proba(NEW)
    )
    assert audited(start=pc.IdentityCalibrator(), tolerance=1.0).fit(PROBA, LABELS).used_ == "identity"


def test_a_bad_start_is_mended():
    class Sharpen(pc.TemperatureScaling):
        def _fit(self, sample):
            super()._fit(sample)
            return (Power(),)

    class Power(Step):
        def __call__(self, rows):
            return Normalise(np.full(3, 1 / 3))(rows**4)

    proba, labels, _ = tempered(1.0, n=900, k=3)
    new, new_labels, _ = tempered(1.0, n=2000, k=3, seed=1)
    start = Sharpen().fit(proba, labels)
    fitted = audited(CONFIDENCE, start=Sharpen()).fit(proba, labels)
    assert fitted.used_ == "audited"
    assert pc.brier_score(new_labels, fitted.predict_proba(new)) < pc.brier_score(
        new_labels, start.predict_proba(new)
    )


# Symmetries


@pytest.mark.parametrize("update", ["additive", "multiplicative"])
def test_order_names_and_scale_do_not_matter(update):
    calibrator = AuditedCalibrator(update=update)
    expected = clone(calibrator).fit(PROBA, LABELS).predict_proba(NEW)
    order = np.random.default_rng(3).permutation(LABELS.size)
    shuffled = clone(calibrator).fit(PROBA[order], LABELS[order])
    np.testing.assert_allclose(shuffled.predict_proba(NEW), expected, atol=1e-6)
    new = np.array([2, 0, 1])
    renamed = clone(calibrator).fit(PROBA[:, new], np.argsort(new)[LABELS])
    np.testing.assert_allclose(renamed.predict_proba(NEW[:, new]), expected[:, new], atol=1e-6)
    heavier = clone(calibrator).fit(PROBA, LABELS, sample_weight=np.full(LABELS.size, 0.5))
    np.testing.assert_allclose(heavier.predict_proba(NEW), expected, atol=1e-6)


def test_rows_of_weight_zero_say_nothing():
    weight = np.ones(LABELS.size)
    weight[600:] = 0
    weighted = audited().fit(PROBA, LABELS, sample_weight=weight)
    alone = audited().fit(PROBA[:600], LABELS[:600], sample_weight=weight[:600])
    np.testing.assert_allclose(weighted.predict_proba(NEW), alone.predict_proba(NEW), atol=1e-12)


# Every auditor, every way out


@pytest.fixture(scope="module", params=AUDITORS)
def fitted(request):
    """A calibrator of one round by each auditor, at a level at which all find something."""
    calibrator = AuditedCalibrator(AUDITORS[request.param], max_rounds=1, alpha=0.5, update="additive")
    return calibrator.fit(DATA.get(request.param, PROBA), LABELS, class_names=["ant", "bee", "<cow>"])


def new_rows(fitted):
    return COARSE if "distinct predictions" in fitted.rounds_[0].question else NEW


def test_every_auditor_mends_something(fitted):
    assert fitted.used_ == "audited"
    new = new_rows(fitted)
    out = fitted.predict_proba(new)
    assert np.abs(out - new).max() > 1e-3
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-12)
    parts = np.concatenate([fitted.predict_proba(new[:1]), fitted.predict_proba(new[1:])])
    np.testing.assert_allclose(out, parts, atol=1e-12)


def test_saved_calibrators_predict_and_tell_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "c.polycal")
    again = pc.load(tmp_path / "c.polycal")
    assert again.used_ == fitted.used_
    assert again.stopped_because_ == fitted.stopped_because_
    assert again.rounds_ == fitted.rounds_
    assert again.class_names_ == fitted.class_names_
    np.testing.assert_array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))


def test_onnx_agrees(fitted, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted.to_onnx(tmp_path / "c.onnx", dtype="float64")
    session = onnxruntime.InferenceSession(str(tmp_path / "c.onnx"), providers=["CPUExecutionProvider"])
    for rows in (slice(1), slice(300)):
        new = new_rows(fitted)[rows]
        (out,) = session.run(None, {"proba": new})
        np.testing.assert_allclose(out, fitted.predict_proba(new), atol=1e-6, rtol=0)


def test_torch_agrees_and_has_gradients(fitted):
    torch = pytest.importorskip("torch")
    new = new_rows(fitted)[:300]
    tensor = torch.tensor(new, requires_grad=True)
    out = fitted.to_torch()(tensor)
    np.testing.assert_allclose(out.detach(), fitted.predict_proba(new), atol=1e-6, rtol=0)
    out[:, 0].sum().backward()
    assert torch.isfinite(tensor.grad).all()


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_code_predicts_but_is_not_written(name, tmp_path):
    fitted = AuditedCalibrator(FOREIGN[name], alpha=0.5, max_rounds=2).fit(PROBA, LABELS)
    assert fitted.used_ == "audited"
    np.testing.assert_allclose(fitted.predict_proba(NEW).sum(axis=1), 1, atol=1e-12)
    with pytest.raises(TypeError, match="Witness cannot be written without pickle"):
        fitted.save(tmp_path / "c.polycal")
    with pytest.raises(TypeError, match="Witness cannot be written as ONNX"):
        fitted.to_onnx(tmp_path / "c.onnx")
    with pytest.raises(TypeError, match="Witness cannot be written as a torch module"):
        fitted.to_torch()
    assert list(tmp_path.iterdir()) == []


def test_many_rounds_survive_the_disk_with_their_start(tmp_path):
    fitted = AuditedCalibrator(start=pc.VectorScaling(), alpha=0.9).fit(PROBA[:200], LABELS[:200])
    fitted.save(tmp_path / "c.polycal")
    np.testing.assert_array_equal(
        pc.load(tmp_path / "c.polycal").predict_proba(NEW), fitted.predict_proba(NEW)
    )


def test_an_identity_is_saved_too(tmp_path):
    fitted = audited(max_rounds=0).fit(PROBA, LABELS)
    fitted.save(tmp_path / "c.polycal")
    assert pc.load(tmp_path / "c.polycal").rounds_ == ()


def test_frames_and_logits():
    frame = pd.DataFrame(PROBA, columns=["ant", "bee", "cow"])
    out = audited().fit(frame, LABELS).predict_proba(frame)
    assert list(out.columns) == ["ant", "bee", "cow"]
    logits = np.log(PROBA)
    by_logits = audited(from_logits=True).fit(logits, LABELS).predict_proba(logits)
    np.testing.assert_allclose(by_logits, out, atol=1e-6)


def test_an_auditor_that_cannot_answer_says_why():
    with pytest.raises(ValueError, match="Canonical error needs repeated predictions"):
        audited(pc.NotionAuditor(pc.Canonical())).fit(PROBA, LABELS)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"auditor": "subset"}, TypeError, "auditor must be an auditor"),
        ({"start": LogisticRegression()}, TypeError, "start must be a calibrator"),
        ({"update": "sideways"}, ValueError, "update must be one of 'multiplicative', 'additive'"),
        ({"keep": 1.0}, ValueError, "keep must be"),
        ({"alpha": 0.0}, ValueError, "alpha must be"),
        ({"tolerance": -0.1}, ValueError, "tolerance must be"),
        ({"max_rounds": -1}, ValueError, "max_rounds must be"),
        ({"holdout": 1.0}, ValueError, "holdout must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        AuditedCalibrator(**parameters).fit(PROBA, LABELS)
