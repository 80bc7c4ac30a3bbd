"""The rounds of an `AuditedCalibrator`, one part at a time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.calibrators.draws import tempered
from tests.reference_audited import log_loss, project, squared_loss, tilt
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.audited.rounds import (
    NO_STEP,
    Judge,
    Line,
    Parts,
    additive,
    apply_program,
    audit_round,
    audit_rounds,
    first_step,
    multiplicative,
)
from polycal.families.auditor import Auditor
from polycal.sample import split_rows
from polycal.steps import FLOOR, run

PROBA, LABELS, _ = tempered(3.0, n=900, k=3)
NEW, NEW_LABELS, _ = tempered(3.0, n=2000, k=3, seed=1)
UPDATES = {"paper": additive(0.0, 3), "additive": additive(0.5, 3), "multiplicative": multiplicative()}
LOSSES = {"paper": squared_loss, "additive": squared_loss, "multiplicative": log_loss}
CONFIDENCE = pc.NotionAuditor(pc.Confidence(smooth=True))


def weights_at(proba, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, proba.shape)


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


def test_an_update_that_never_helps_says_so():
    useless = replace(multiplicative(), loss=lambda scores: 1.0)
    rounds, program, reason = audit_rounds(CONFIDENCE, useless, by_hand_parts(), Judge(0.05, 0.0), range(5))
    assert [r.accepted for r in rounds] == [False]
    assert (program, reason) == ((), NO_STEP)


class Watched(Auditor):
    """Remembers the rows it was given, by their weights."""

    def __init__(self):
        self.seen = []

    def find(self, sample):
        self.seen.append(set(sample.sample_weight.tolist()))
        return CONFIDENCE.find(sample)


def test_rows_that_measure_are_never_searched():
    auditor, weight = Watched(), np.linspace(0.9, 1.1, 900)
    fitted = pc.AuditedCalibrator(auditor, max_rounds=10).fit(PROBA, LABELS, sample_weight=weight)
    assert len(fitted.rounds_) == len(auditor.seen) > 3
    assert len(set.union(*auditor.seen)) == len(auditor.seen[0]) == 480
