"""Log loss, Brier score and accuracy, row by row: what models are chosen by."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.calibrators._likelihood import total_weight
from polycal.sample import Sample, row_blocks, row_sums


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of each row, and their weighted means.

    Attributes
    ----------
    log_losses, brier_scores : ndarray of shape (n_samples,)
    hits : ndarray of bool, shape (n_samples,)
        Whether the most likely class is the label.
    mass : ndarray of shape (n_samples,)
        Weights, of sum 1.
    total : float
        How many rows they count for.
    """

    log_losses: Float64s
    brier_scores: Float64s
    hits: Bools
    mass: Float64s
    total: float

    @property
    def log_loss(self) -> float:
        """The mean log loss: infinite where a label that counts has probability 0."""
        return float(self.mass @ self.log_losses)

    @property
    def brier(self) -> float:
        """The mean Brier score."""
        return float(self.mass @ self.brier_scores)

    @property
    def accuracy(self) -> float:
        """The part of the rows that is right."""
        return float(self.mass @ self.hits)

    def take(self, rows: Ints) -> "Scores":
        """The scores of all rows in another order."""
        losses, briers = self.log_losses[rows], self.brier_scores[rows]
        return Scores(losses, briers, self.hits[rows], self.mass[rows], self.total)

    def relative_gain(self, standard: "Scores") -> tuple[float, float]:
        """What is gained on a standard for the same rows, and the standard error of that.

        The gain is the sum of those in log loss and in Brier score, each as a part of the standard's.
        """
        gain = (standard.log_losses - self.log_losses) / max(standard.log_loss, _TINY)
        gain += (standard.brier_scores - self.brier_scores) / max(standard.brier, _TINY)
        return self._mean_and_error(gain)

    def accuracy_gain(self, standard: "Scores") -> tuple[float, float]:
        """The gain in accuracy on a standard for the same rows, and its standard error."""
        return self._mean_and_error(self.hits.astype(np.float64) - standard.hits)

    def _mean_and_error(self, values: Float64s) -> tuple[float, float]:
        """Weighted mean, and its standard error; a row of weight 2 counts as two."""
        mean = float(self.mass @ values)
        return mean, float(np.sqrt(self.mass @ np.square(values - mean) / self.total))


_TINY = float(np.finfo(np.float32).tiny)


def proba_scores(sample: Sample) -> Scores:
    """Scores of the predictions as they are."""
    return _scores(sample, ((rows, sample.proba[rows]) for rows in _blocks(sample)))


def logit_scores(sample: Sample, logits: Floats, change: Floats, scale: float, amount: float) -> Scores:
    """Scores of ``softmax(scale * logits + amount * change)`` as predictions of the sample's labels."""
    return _scores(
        sample,
        (
            (rows, _softmax(float(scale) * logits[rows] + float(amount) * change[rows]))
            for rows in _blocks(sample)
        ),
    )


def _blocks(sample: Sample) -> Iterator[slice]:
    return row_blocks(sample.n_samples, sample.n_classes)


def _softmax(logits: Floats) -> Floats:
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= row_sums(logits).astype(logits.dtype)[:, None]
    return logits


def _scores(sample: Sample, blocks: Iterator[tuple[slice, Floats]]) -> Scores:
    losses, briers = np.empty((2, sample.n_samples))
    hits = np.empty(sample.n_samples, dtype=np.bool_)
    for rows, proba in blocks:
        labels = sample.labels[rows]
        at_label = proba[np.arange(labels.size), labels].astype(np.float64)
        with np.errstate(divide="ignore"):
            losses[rows] = -np.log(at_label)
        briers[rows] = 1.0 - 2.0 * at_label + np.einsum("ij,ij->i", proba, proba, dtype=np.float64)
        hits[rows] = proba.argmax(axis=1) == labels
    mass = sample.mass
    # A row that does not count may be infinitely wrong.
    losses[mass == 0.0] = 0.0
    return Scores(losses, briers, hits, mass, total_weight(sample))
