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
from tests.reference_audited import log_loss, squared_loss
from tests.strategies import samples

import polycal as pc
from polycal._validation import check_sample
from polycal.calibrators.audited import AuditedCalibrator
from polycal.calibrators.audited.rounds import ALL_ROUNDS, NOTHING_PROVED, started_parts
from polycal.calibrators.base import Calibrator
from polycal.calibrators.rows import counted_rows
from polycal.families.auditor import Auditor
from polycal.families.defaults import NOTIONS
from polycal.families.questions import SubsetWitness
from polycal.kernels.kernels import CallableKernel
from polycal.measures.functions import StepFunction
from polycal.sample import split_rows
from polycal.steps import FLOOR, Normalise, Step

PROBA, LABELS, _ = tempered(3.0, n=900, k=3)
NEW, NEW_LABELS, _ = tempered(3.0, n=2000, k=3, seed=1)
COARSE = np.round(PROBA * 4)
COARSE /= COARSE.sum(axis=1, keepdims=True)
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
    # Of three classes, five are all.
    if name != "top-set"
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
    assert list(tmp_path.iterdir()) == []
    pytest.importorskip("torch")
    with pytest.raises(TypeError, match="Witness cannot be written as a torch module"):
        fitted.to_torch()


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
        ({"auditor": 3}, TypeError, "auditor must be an auditor"),
        ({"auditor": "subset"}, ValueError, "notion 'subset' is not one of"),
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
