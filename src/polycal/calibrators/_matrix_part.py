"""Matrix scaling as a part of the kernel calibrator: cross-fitted, and mixed with its best model."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polycal._typing import Float64s, Floats, Ints
from polycal.calibrators._choice import Choice, is_safe
from polycal.calibrators._likelihood import log_proba, total_weight
from polycal.calibrators._log_linear import LogLinearProblem, tempered_start
from polycal.calibrators._log_linear_path import StrengthChoice, choose_strength
from polycal.calibrators._matrix_ridge import MatrixRidge
from polycal.calibrators._newton_cg import newton_minimise
from polycal.calibrators._scoring import Scores, logit_scores
from polycal.calibrators._tilt import fit_tilt
from polycal.sample import Sample

# How far from its minimum the objective may be: the folds' maps are averaged, and mixed.
_TOLERANCE = 1e-5


def mix_in_matrix(
    choice: Choice,
    sample: Sample,
    base_logs: Floats,
    parts: Sequence[Ints],
    raw: Scores,
    standard: Scores,
) -> Choice:
    """The choice with matrix scaling added to its logits, as much as lowers the log loss on held-out rows.

    Parameters
    ----------
    choice : Choice
        Of a kernel model.
    sample : Sample
    base_logs : ndarray of float, shape (n_samples, n_classes)
        Log q of the base.
    parts : sequence of ndarray of int64
        The rows of each fold.
    raw, standard : Scores
        Those of the input and of the base.
    """
    order = np.concatenate(parts)
    logits, points = _cross_fit(sample, parts)
    matrix, base, change = logits[order], base_logs[order], choice.change
    ordered, raw, standard = sample.take(order), raw.take(order), standard.take(order)

    def directions(rows: slice) -> Floats:
        return np.stack([base[rows], change[rows], matrix[rows]])

    more, mixing, added = fit_tilt(ordered, base, directions, 3).tolist()
    mixing = min(mixing, 1.0)
    total = np.float32(mixing) * change + np.float32(added) * matrix
    scores = logit_scores(ordered, base, total, 1.0 + more, 1.0)
    table: list[tuple[float, ...]] = [
        (choice.strength, mixing, scores.log_loss, scores.brier, scores.accuracy)
    ]
    if min(mixing, added) <= 0.0 or not is_safe(scores, raw, standard):
        return choice.or_better(Choice(table=table))
    gain, _ = scores.relative_gain(standard)
    weight = added * np.mean(points, axis=0)
    found = replace(
        choice, gain=gain, scores=scores, scale=1.0 + more, mixing=mixing, matrix=weight, table=table
    )
    return choice.or_better(found)


def _cross_fit(sample: Sample, parts: Sequence[Ints]) -> tuple[Floats, list[Float64s]]:
    """The logits of matrix scaling for each row, fitted on the other folds; and the folds' maps, the bias below."""
    chosen = choose_strength(sample, MatrixRidge.held)
    logs = log_proba(sample)
    logits: Floats = np.empty(logs.shape, dtype=np.float32)
    points = [_fit_without(sample, part, chosen) for part in parts]
    for part, point in zip(parts, points, strict=True):
        logits[part] = logs[part] @ point[:-1] + point[-1]
    return logits, points


def _fit_without(sample: Sample, part: Ints, chosen: StrengthChoice) -> Float64s:
    """The map of the strength chosen, fitted on the rows that are not in a part."""
    fitted = sample.take(np.delete(np.arange(sample.n_samples), part))
    logs = log_proba(fitted)
    problem = LogLinearProblem(fitted, logs, MatrixRidge.held(chosen.strength).per(total_weight(sample)))
    start = tempered_start(fitted, logs) if chosen.start is None else chosen.start
    return newton_minimise(problem, start, _TOLERANCE)
