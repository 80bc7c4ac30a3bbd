"""Every state, with a way to compare what two of them finish with."""

import numpy as np
from tests.reference_lists import truncated

from polycal.calibrators.temperature import TemperatureScaling
from polycal.families.questions import SubsetWitness
from polycal.inference.certificate import Reading
from polycal.kernels.kernels import Multinomial
from polycal.measures.costs import make_loss
from polycal.measures.functions import LipschitzFunction
from polycal.states.cells import QuestionSummary
from polycal.states.certificate import CertificateState, ReadingState
from polycal.states.costs import CostState, MeanCost, RecalibrationState, Saving
from polycal.states.depth import DepthCertificate, DepthState
from polycal.states.kernel import KernelState
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import BinnedState, ScoreState
from polycal.states.swaps import SavingState, SwapState
from polycal.taxonomy import make_taxonomy


def _witness(n_classes):
    phi = LipschitzFunction(np.array([0.0, 0.4, 1.0]), np.array([0.3, -0.1, 0.5]))
    return SubsetWitness(np.array([0]), phi, n_classes)


def _landmarks(n_classes):
    return np.random.default_rng(5).dirichlet(np.full(n_classes, 0.5), 6)


def _loss(n_classes):
    return make_loss(
        np.vstack([np.arange(n_classes), np.eye(n_classes)[:1] * 3, np.ones((1, n_classes))]),
        n_classes=n_classes,
    )


def _tree(n_classes):
    names = [str(c) for c in range(n_classes)]
    return make_taxonomy({"some": names[:2], "others": {"more": names[2:]}} if n_classes > 2 else names)


def _temperature(n_classes):
    return TemperatureScaling().fit(_landmarks(n_classes), np.arange(6) % n_classes)


# From a number of classes to a state.
MAKERS = {
    "scores": lambda k: ScoreState(),
    "binned": lambda k: BinnedState(7),
    "confidence": lambda k: QuestionState(),
    "subset": lambda k: QuestionState([0]),
    "compacted": lambda k: QuestionState([0], resolution=0.03),
    "classes": lambda k: ClassesState(resolution=0.05),
    "reading": lambda k: ReadingState([0], 0.1, 0.6),
    "certificate": lambda k: CertificateState(_witness(k)),
    "costs": lambda k: CostState(_loss(k)),
    "swaps": lambda k: SwapState(_loss(k)),
    "savings": lambda k: SavingState(_loss(k), np.array([2, 1, 0])),
    "recalibration": lambda k: RecalibrationState(_loss(k), _temperature(k)),
    "depth": lambda k: DepthState(_tree(k), risk=0.4, n_thresholds=7),
    "sketch": lambda k: SketchState(5, random_state=3),
    "kernel": lambda k: KernelState(_landmarks(k), n_held_back=3),
    "multinomial": lambda k: KernelState(_landmarks(k), Multinomial(3), n_held_back=0),
}

# Those that need all classes, or are made of them.
FULL = {"binned", "kernel", "multinomial", "costs", "swaps", "savings", "recalibration"}
# Those that take lists of classes, which are to be told apart from full predictions by their names.
LISTED = {f"listed {name}": make for name, make in MAKERS.items() if name not in FULL}
LISTED["listed kernel"] = lambda k: KernelState(truncated(_landmarks(k), 2), n_held_back=3)
LISTED["listed some classes"] = lambda k: ClassesState(resolution=0.05, classes=[1])


def numbers(state):
    """What a state finishes with, as one flat array."""
    result = state.finish()
    match state:
        case ScoreState():
            return np.array(list(result.values()))
        case BinnedState():
            parts = [result.confidence, *result.classes]
            return np.concatenate([[c.error("l1"), c.error("max"), *c.mass, *c.count] for c in parts])
        case QuestionState():
            return np.array([result.value, result.bound, result.predicted, result.frequency, result.chance])
        case ReadingState():
            return np.array([result.predicted, result.observed, result.share])
        case ClassesState():
            return np.array([[q.value, q.bound, q.predicted, q.frequency] for q in result]).ravel()
        case CertificateState():
            return np.array([result.estimate, result.lower_bound, result.p_value, result.std_error])
        case CostState() | SwapState() | SavingState() | RecalibrationState() | DepthState():
            return _cost_numbers(result)
        case SketchState():
            proba = result.proba.toarray() if result.is_listed else result.proba
            return np.concatenate([proba.ravel(), result.labels, result.mass])
        case KernelState():
            at = np.random.default_rng(9).dirichlet(np.ones(state.n_classes), 8)
            return np.append(result.evaluate(at).ravel(), result.amplification)
    raise TypeError(state)


def _cost_numbers(result):
    """All numbers in a tuple of arrays, means and savings."""
    match result:
        case np.ndarray():
            return result.ravel().astype(float)
        case MeanCost():
            return np.array([result.value, result.at_least, result.at_most])
        case Saving():
            return np.array([result.estimate, result.lower_bound, result.p_value, result.std_error])
        case DepthCertificate():
            return np.array([result.threshold, result.risk, result.at_most, result.n_samples])
        case float() | None:
            return np.array([-1.0 if result is None else result])
    return np.concatenate([_cost_numbers(part) for part in result])


def doubts(state):
    """What a state says of what lists hide, as one flat array."""
    match state.finish():
        case QuestionSummary() as one:
            return np.array([one.low, one.high, one.unknown])
        case (QuestionSummary(), *_) as summaries:
            return np.array([[one.low, one.high, one.unknown] for one in summaries]).ravel()
        case Reading() as reading:
            return np.array([reading.doubt])
        case _:
            return np.zeros(0)


def everything(state):
    """Both."""
    return np.concatenate([numbers(state), doubts(state)])
