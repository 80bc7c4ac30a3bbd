"""An object of every family that is saved, and what it does: the files of ``saved_v1`` were written from these.

``python -m tests.storage.catalogue FOLDER`` writes files of the present format, with what they are expected to do.
"""

import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from tests.states.catalogue import numbers

import polycal as pc
from polycal.calibrators.base import Calibrator
from polycal.families.slices import Condition, SliceWitness
from polycal.families.witness import Witness
from polycal.kernels.kernels import Gaussian, Laplace, Multinomial
from polycal.states.certificate import CertificateState, ReadingState
from polycal.states.costs import CostState, RecalibrationState
from polycal.states.depth import DepthState
from polycal.states.kernel import KernelState
from polycal.states.lists import TruncatedKernelState, TruncatedQuestionState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import BottomLists, SketchState
from polycal.states.slices import SliceState
from polycal.states.sums import BinnedState, ScoreState
from polycal.states.swaps import SavingState, SwapState

NAMES = ("cat", "dog", "<bus>")
_RNG = np.random.default_rng(11)
PROBA = _RNG.dirichlet(np.ones(3), 40)
# Sharper than predicted, so that there is something to find.
LABELS = np.array([_RNG.choice(3, p=row**2 / (row**2).sum()) for row in PROBA])
WEIGHT = _RNG.integers(1, 4, 40).astype(np.float64)
ACTING = {"cats": {"feed": {"cat": 0, "default": 1}, "wait": {"cat": 3, "default": 0}, "look": 0.4}}
TREE = {"pet": ["cat", "dog"], "<bus>": None}
FRESH = _RNG.dirichlet(np.ones(3), 16)
FRESH_LABELS = _RNG.integers(0, 3, 16)
FRESH_FEATURES = {"age": np.arange(16), "sex": ["f", "m"] * 8}
CONDITIONS = (Condition("age", "number", low=4.0), Condition("sex", "category", "f"))


def as_lists(proba):
    """The two most likely classes of each row."""
    return csr_array(np.where(proba == proba.min(axis=1, keepdims=True), 0.0, proba))


def _found(auditor):
    return lambda: auditor.find_witness(LABELS, PROBA, class_names=NAMES)


def _noted(notion):
    return _found(pc.NotionAuditor(notion))


def _fed(state, *, lists=False):
    """A state that has seen rows: lists of them, if it is one of lists."""
    rows = as_lists(PROBA) if lists or state.family.startswith("truncated") else PROBA
    return state.update(LABELS, rows, WEIGHT, class_names=NAMES)


def _loss():
    return pc.make_loss(ACTING["cats"], n_classes=3, class_names=NAMES, name="cats")


def _watched(monitor, **options):
    return monitor.update(LABELS, PROBA, class_names=NAMES, **options)


def _takes_lists(state):
    kept = getattr(state, "_kept", None) or getattr(state, "_held_back", None)
    return state.family.startswith("truncated") or isinstance(kept, BottomLists)


WITNESSES = {
    "subset": _found(pc.SubsetAuditor()),
    "subset-binned": _noted(pc.Classwise(n_bins=4)),
    "top": _noted(pc.Confidence(smooth=True)),
    "top-label": _noted(pc.TopLabel(n_bins=3)),
    "top-set": _noted(pc.TopSet(2)),
    "table": _noted(pc.Canonical(min_repeats=1)),
    "kernel": _found(pc.KernelAuditor()),
    "kernel-laplace": _found(pc.KernelAuditor(Laplace(0.5))),
    "kernel-multinomial": _found(pc.KernelAuditor(Multinomial(3), amplify=False)),
    "projected": _found(pc.ProjectionAuditor()),
    "sigmoid": _found(pc.SigmoidAuditor()),
    "decision": _found(pc.DecisionAuditor()),
    "decision-soft": _found(pc.DecisionAuditor(temperature=0.5)),
    "swap": _found(pc.SwapAuditor(ACTING)),
    "halfspace": _noted(pc.Halfspace()),
    "monomial": _noted(pc.LowDegree(2)),
    "full-smooth": _noted(pc.FullSmooth(n_floor_draws=0)),
    "slice": lambda: SliceWitness(CONDITIONS, WITNESSES["subset"](), 3, NAMES),
    "list-kernel": lambda: _fed(TruncatedKernelState(as_lists(PROBA[:8]))).finish(),
}

STATES = {
    "scores": lambda: _fed(ScoreState()),
    "binned": lambda: _fed(BinnedState(5)),
    "question": lambda: _fed(QuestionState([0, 2])),
    "question-confidence": lambda: _fed(QuestionState()),
    "question-cells": lambda: _fed(QuestionState([1], resolution=0.1)),
    "question-fresh": lambda: QuestionState(["dog"], class_names=NAMES),
    "classes": lambda: _fed(ClassesState(resolution=0.1)),
    "reading": lambda: _fed(ReadingState([1], 0.2, 0.9)),
    "reading-confidence": lambda: _fed(ReadingState(None, 0.2, 0.9)),
    "certificate": lambda: _fed(CertificateState(WITNESSES["subset"]())),
    "certificate-kernel": lambda: _fed(CertificateState(WITNESSES["kernel"]())),
    "costs": lambda: _fed(CostState(_loss())),
    "swaps": lambda: _fed(SwapState(_loss())),
    "savings": lambda: _fed(SavingState(_loss(), np.array([2, 1, 0]))),
    "recalibration": lambda: _fed(RecalibrationState(_loss(), _fitted(CALIBRATORS["temperature"])())),
    "depth": lambda: _fed(DepthState(pc.make_taxonomy(TREE), risk=0.6)),
    "slice": lambda: SliceState(CONDITIONS, (ScoreState(), QuestionState([1]))).update(
        LABELS, PROBA, WEIGHT, class_names=NAMES, features={"age": np.arange(40), "sex": ["m", "f"] * 20}
    ),
    "sketch": lambda: _fed(SketchState(12, random_state=3)),
    "sketch-fresh": lambda: SketchState(12),
    "kernel": lambda: _fed(KernelState(PROBA[:8], n_held_back=3)),
    "kernel-multinomial": lambda: _fed(
        KernelState(PROBA[:8].astype(np.float32), Multinomial(2), n_held_back=0)
    ),
    "kernel-fresh": lambda: KernelState(PROBA[:8], Gaussian("median")),
    "scores-lists": lambda: _fed(ScoreState(), lists=True),
    "question-lists": lambda: _fed(QuestionState([0, 2]), lists=True),
    "classes-lists": lambda: _fed(ClassesState(resolution=0.1, classes=[1, 2]), lists=True),
    "reading-lists": lambda: _fed(ReadingState([1], 0.2, 0.9), lists=True),
    "sketch-lists": lambda: _fed(SketchState(12, random_state=3), lists=True),
    "kernel-lists": lambda: _fed(KernelState(as_lists(PROBA[:8]), n_held_back=3), lists=True),
    "truncated": lambda: _fed(TruncatedQuestionState([0, 1], resolution=0.1)),
    "truncated-kernel": lambda: _fed(TruncatedKernelState(as_lists(PROBA[:8]))),
}

MONITORS = {
    "once": lambda: _watched(pc.Monitor(groups={"pet": ["cat", "dog"]}), features={"side": list("lr") * 20}),
    "many": lambda: _watched(
        pc.Monitor(0.2, alarms="many", reference=pc.TemperatureScaling().fit(PROBA, LABELS))
    ),
    "tolerant": lambda: _watched(pc.Monitor(tolerance=0.02)),
    "fresh": lambda: pc.Monitor(class_names=NAMES),
}

ANSWERS = {
    "depth": lambda: pc.AnswerDepth(TREE, risk=0.4).fit(PROBA, LABELS, class_names=NAMES),
    "depth-nothing": lambda: pc.AnswerDepth(TREE, risk=1e-9).fit(PROBA, LABELS, WEIGHT, class_names=NAMES),
}

CALIBRATORS = {
    "audited": pc.AuditedCalibrator(pc.NotionAuditor(pc.Confidence(smooth=True)), max_rounds=2, alpha=0.5),
    "audited-kernel": pc.AuditedCalibrator(pc.KernelAuditor(max_samples=60), max_rounds=1, alpha=0.5),
    "beta": pc.BetaCalibrator(),
    "dirichlet": pc.DirichletCalibrator(),
    "ensemble-temperature": pc.EnsembleTemperatureScaling(),
    "histogram": pc.HistogramCalibrator(n_bins=5),
    "identity": pc.IdentityCalibrator(),
    "isotonic": pc.IsotonicCalibrator(),
    "kernel": pc.KernelCalibrator(n_folds=3),
    "matrix": pc.MatrixScaling(),
    "multicalibrated": pc.MulticalibratedCalibrator(n_folds=3),
    "temperature": pc.TemperatureScaling(),
    "vector": pc.VectorScaling(),
}


def _fitted(calibrator):
    return lambda: calibrator.fit(np.tile(PROBA, (6, 1)), np.tile(LABELS, 6), class_names=NAMES)


# From the name of a file to what makes the object in it.
MAKERS = {
    **{f"witness-{name}": make for name, make in WITNESSES.items()},
    **{f"state-{name}": make for name, make in STATES.items()},
    **{f"calibrator-{name}": _fitted(calibrator) for name, calibrator in CALIBRATORS.items()},
    **{f"monitor-{name}": make for name, make in MONITORS.items()},
    **{f"answers-{name}": make for name, make in ANSWERS.items()},
}


def behaviour(thing):
    """What an object does with rows it has not seen, as one flat array of numbers."""
    if isinstance(thing, Witness):
        return thing(FRESH, features=FRESH_FEATURES).ravel()
    if isinstance(thing, Calibrator):
        return thing.predict_proba(FRESH).ravel()
    if isinstance(thing, pc.AnswerDepth):
        return np.concatenate(thing.answer(FRESH))
    if isinstance(thing, pc.Monitor):
        # A copy, for this one may be asked again.
        monitor = deepcopy(thing).update(FRESH_LABELS, FRESH, class_names=NAMES)
        bounds = [finding.at_least for finding in monitor.findings]
        return np.array([monitor.evidence, monitor.n_rows, monitor.since, *monitor.bets.values(), *bounds])
    rows = as_lists(FRESH) if _takes_lists(thing) else FRESH
    given = FRESH_FEATURES if isinstance(thing, SliceState) else None
    state = thing.copy().update(FRESH_LABELS, rows, class_names=NAMES, features=given)
    match state:
        case TruncatedQuestionState():
            summary = state.finish()
            return np.array([summary.low, summary.high, summary.value, summary.unknown])
        case SliceState():
            return np.concatenate([numbers(one) for one in state.states])
        case TruncatedKernelState():
            return state.finish()(FRESH).ravel()
        case _:
            return numbers(state)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name, make in MAKERS.items():
        make().save(folder / f"{name}.polycal")
    expected = {name: behaviour(pc.load(folder / f"{name}.polycal")) for name in MAKERS}
    np.savez_compressed(folder / "expected.npz", allow_pickle=False, **expected)
