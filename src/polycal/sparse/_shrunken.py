"""Residuals with less noise, for a search that would fit it: shrunk towards what a recalibration expects."""

from dataclasses import replace

import numpy as np

from polycal._typing import Float64s
from polycal.sparse._landscape import SparseLandscape, plain_landscape
from polycal.sparse._sample import SparseSample, sums_at

# As for the auditor of full predictions.
_LEAST_SHARE = 0.25
_LARGEST_POWER = 10.0
_LOWEST_PROBA = 1e-8
_LOWEST_USE = 1e-3


def shrunken_landscape(sample: SparseSample) -> SparseLandscape:
    """The landscape of what is expected of the labels, and of their surprises as far as these are no noise."""
    plain = plain_landscape(sample)
    expected = expected_landscape(sample, plain)
    surprise = plain.plus(expected, -1.0)
    share = max(_LEAST_SHARE, surprise.share_of_signal())
    return expected.shrunken(1.0).plus(surprise.shrunken(share))


def expected_landscape(sample: SparseSample, plain: SparseLandscape) -> SparseLandscape:
    """The residuals that are expected if labels follow ``p_j ~ v_j^a pi_j^b``, with pi the mean prediction.

    All classes that a row does not list count as one, whose probability is then shared equally among them.
    """
    model = _PowerModel(sample)
    listed, rest = model.probabilities(model.fit())
    other = rest / np.maximum(sample.n_classes - sample.n_listed, 1)
    is_listed = np.ones(plain.indices.size, dtype=np.bool_)
    is_listed[plain.indptr[1:][sample.label_entry < 0] - 1] = False
    rows = np.repeat(np.arange(sample.n_samples), np.diff(plain.indptr))
    proba = other[rows]
    proba[is_listed] = listed
    return replace(
        plain,
        residual=plain.mass[rows] * (proba - plain.proba),
        rest_residual=plain.mass * (other - plain.share),
    )


class _PowerModel:
    """Likelihood of the two powers; rows are the listed classes and one column for all others."""

    def __init__(self, sample: SparseSample) -> None:
        self._sample, self._rows, self._mass = sample, sample.rows, sample.mass
        use = sums_at(sample.indices, sample.values * self._mass[self._rows], sample.n_classes)
        self._logs = _logs(sample.values, use[sample.indices] * sample.n_classes)
        mean_rest = float(self._mass @ sample.share) * sample.n_classes
        self._rest_logs = _logs(sample.rest, np.full(sample.n_samples, mean_rest))
        # Where nothing is left over, the other classes are out of the question, unless one of them came about.
        possible = (sample.rest > 0) | (sample.label_entry < 0)
        self._penalty = np.where(possible, 0.0, -np.inf)

    def fit(self) -> Float64s:
        """The most likely powers."""
        from scipy.optimize import minimize  # noqa: PLC0415 - slow to import

        limits = [(-_LARGEST_POWER, _LARGEST_POWER)] * 2
        found = minimize(self._loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=limits)
        powers: Float64s = found.x
        return powers

    def probabilities(self, powers: Float64s) -> tuple[Float64s, Float64s]:
        """Of the listed classes, and of all others together."""
        scores, rest_scores = powers @ self._logs, powers @ self._rest_logs + self._penalty
        top = rest_scores.copy()
        np.maximum.at(top, self._rows, scores)
        listed, rest = np.exp(scores - top[self._rows]), np.exp(rest_scores - top)
        total = self._sample.row_sums(listed) + rest
        return listed / total[self._rows], rest / total

    def _loss(self, powers: Float64s) -> tuple[float, Float64s]:
        listed, rest = self.probabilities(powers)
        entry = self._sample.label_entry
        is_listed = entry >= 0
        hit = np.where(is_listed, listed[entry] if listed.size else 0.0, rest)
        mass = self._mass
        expected = self._logs @ (listed * mass[self._rows]) + self._rest_logs @ (rest * mass)
        seen = self._logs[:, entry[is_listed]] @ mass[is_listed]
        seen += self._rest_logs[:, ~is_listed] @ mass[~is_listed]
        return -float(mass @ np.log(np.maximum(hit, 1e-300))), expected - seen


def _logs(proba: Float64s, use: Float64s) -> Float64s:
    """Logarithms of the probabilities and of how much the classes are used beside the average class."""
    return np.log([np.maximum(proba, _LOWEST_PROBA), np.maximum(use, _LOWEST_USE)])
