"""Predictions of a calibrator for rows that it was not fitted on."""

from dataclasses import replace

import numpy as np
from sklearn.base import clone

from polycal._typing import Float64s, Ints
from polycal.calibrators._audited_round import Parts, apply_program, values
from polycal.calibrators._base import Calibrator
from polycal.sample import Sample, split_rows
from polycal.steps import Program

_FOLDS = 4


def fit_start(start: Calibrator | None, sample: Sample) -> Program:
    """The map that comes first, fitted on a sample."""
    return () if start is None else clone(start)._fit_sample(sample).steps_


def started_parts(start: Calibrator | None, learn: Sample, aside: Sample, seed: int) -> Parts:
    """Both parts, after a `start` that has not seen their labels.

    Rows kept aside get the predictions of one fitted on the rows to learn from; each fold of the latter, those of one
    fitted on the other folds.
    """
    started = np.empty(learn.proba.shape)
    for fold in split_rows(learn, (1,) * _FOLDS, seed):
        started[fold] = _out_of_fold(start, learn, fold)
    return Parts(replace(learn, proba=started), apply_program(fit_start(start, learn), aside))


def _out_of_fold(start: Calibrator | None, learn: Sample, fold: Ints) -> Float64s:
    """Predictions for a fold by a fit on the other folds."""
    others = np.setdiff1d(np.arange(learn.n_samples), fold)
    return values(fit_start(start, learn.take(others)), learn.take(fold))
