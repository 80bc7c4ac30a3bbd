"""The log loss of softmax models: value, gradient, curvature; and the scores that models are chosen by."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from polycal._threads import Run, thread_count, thread_pool
from polycal._typing import Bools, Float64s, Floats, Ints
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Log

# Numbers in predictions on which nobody waits for the fit.
_SMALL = 2**16
# Multiplications from which a pass over the rows is worth several threads.
LARGE = 1 << 26
_TINY = float(np.finfo(np.float32).tiny)
# Smaller logarithms of probabilities do not matter beside the largest; and their multiples would be denormal numbers,
# with which some processors take a hundred times as long.
_LEAST = -60.0


def log_proba(sample: Sample) -> Floats:
    """Floored logarithms of the predictions, in their own dtype."""
    out = np.empty_like(sample.proba)
    log = Log()
    for rows in row_blocks(*out.shape):
        out[rows] = log(sample.proba[rows].astype(np.float64))
    return out


def total_weight(sample: Sample) -> float:
    """How many rows the sample counts for: a prior is weighed against this."""
    return float(sample.n_samples if sample.sample_weight is None else sample.sample_weight.sum())


def working_dtype(sample: Sample) -> type[np.floating]:
    """Double precision where it costs nothing; single precision, several times faster, is enough to find a model."""
    return np.float64 if sample.proba.size <= _SMALL else np.float32


def pass_threads(multiplications: int) -> AbstractContextManager[Run]:
    """Threads for one pass over the rows after the other, several where each has so many multiplications."""
    return thread_pool(thread_count() if multiplications >= LARGE else 1)


def losses_and_proba(logits: Floats, labels: Ints) -> tuple[Float64s, Floats]:
    """The log loss of each row of ``softmax(logits)``, and the latter; ``logits`` are overwritten by it."""
    logits -= logits.max(axis=1, keepdims=True)
    at_label = logits[np.arange(labels.size), labels]
    np.exp(np.maximum(logits, _LEAST, out=logits), out=logits)
    total = row_sums(logits)
    logits *= (1.0 / total).astype(logits.dtype)[:, None]
    losses: Float64s = np.log(total) - at_label
    return losses, logits


def to_residual(proba: Floats, labels: Ints, mass: Floats) -> Floats:
    """Overwrite predictions by the gradient of their weighted log loss by the logits."""
    proba *= mass[:, None]
    proba[np.arange(labels.size), labels] -= mass
    return proba


def curvature(proba: Floats, mass: Floats) -> Floats:
    """The diagonal of the Hessian of the weighted log loss by the logits, row by row."""
    out: Floats = proba * (1.0 - proba)
    out *= mass[:, None]
    return out


def directional_derivatives(
    logits: Floats, along: Floats, labels: Ints, mass: Float64s
) -> tuple[float, Float64s, Float64s]:
    """The weighted log loss of ``softmax(logits)``, with its gradient and Hessian along some directions of the logits.

    Parameters
    ----------
    logits : ndarray of float, shape (n_rows, n_classes)
        Overwritten.
    along : ndarray of float, shape (n_directions, n_rows, n_classes)
    labels, mass : ndarray of shape (n_rows,)
    """
    losses, proba = losses_and_proba(logits, labels)
    tilted = along * proba
    mean = np.einsum("jic->ji", tilted).astype(np.float64)
    gradient = (mean - along[:, np.arange(labels.size), labels]) @ mass
    tilted *= mass.astype(along.dtype)[:, None]
    square = tilted.reshape(len(along), -1) @ along.reshape(len(along), -1).T
    return float(mass @ losses), gradient, square - (mean * mass) @ mean.T


def tempered_at_label(logs: Floats, labels: Ints, inverse: float) -> tuple[Float64s, Float64s]:
    """What ``softmax(logs / T)`` gives each label, and its derivative by ``log(1/T)``; ``inverse`` is 1/T."""
    value, slope = np.empty((2, labels.size))
    for rows in row_blocks(*logs.shape):
        losses, proba = losses_and_proba(float(inverse) * logs[rows], labels[rows])
        at_label = logs[rows][np.arange(losses.size), labels[rows]]
        value[rows] = np.exp(-losses)
        slope[rows] = value[rows] * inverse * (at_label - np.einsum("ij,ij->i", proba, logs[rows]))
    return value, slope


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

    def relative_gain(self, reference: "Scores") -> tuple[float, float]:
        """What is gained on a reference for the same rows, and the standard error of that.

        The gain is the sum of those in log loss and in Brier score, each as a part of the reference's.
        """
        gain = (reference.log_losses - self.log_losses) / max(reference.log_loss, _TINY)
        gain += (reference.brier_scores - self.brier_scores) / max(reference.brier, _TINY)
        return self._mean_and_error(gain)

    def excess(self, reference: "Scores", groups: Ints) -> tuple[float, float]:
        """How much more the log loss is than a reference's for the same rows, and its standard error by groups."""
        more = self.log_losses - reference.log_losses
        mean = float(self.mass @ more)
        return mean, float(np.linalg.norm(np.bincount(groups, self.mass * (more - mean))))

    def accuracy_gain(self, reference: "Scores") -> tuple[float, float]:
        """The gain in accuracy on a reference for the same rows, and its standard error."""
        return self._mean_and_error(self.hits.astype(np.float64) - reference.hits)

    def _mean_and_error(self, values: Float64s) -> tuple[float, float]:
        """Weighted mean, and its standard error; a row of weight 2 counts as two."""
        mean = float(self.mass @ values)
        return mean, float(np.sqrt(self.mass @ np.square(values - mean) / self.total))


def proba_scores(sample: Sample) -> Scores:
    """Scores of the predictions as they are."""
    blocks = row_blocks(*sample.proba.shape)
    with np.errstate(divide="ignore"):
        return _scores(sample, ((rows, _losses(sample, rows), sample.proba[rows]) for rows in blocks))


def logit_scores(sample: Sample, logits: Floats, change: Floats, scale: float, amount: float) -> Scores:
    """Scores of ``softmax(scale * logits + amount * change)`` as predictions of the sample's labels."""

    def predicted(rows: slice) -> tuple[slice, Float64s, Floats]:
        mixed = float(scale) * logits[rows] + float(amount) * change[rows]
        return rows, *losses_and_proba(mixed, sample.labels[rows])

    return _scores(sample, map(predicted, row_blocks(*sample.proba.shape)))


def _losses(sample: Sample, rows: slice) -> Float64s:
    """The log losses of the predictions as they are."""
    at_label = np.take_along_axis(sample.proba[rows], sample.labels[rows, None], axis=1)[:, 0]
    losses: Float64s = -np.log(at_label.astype(np.float64))
    return losses


def _scores(sample: Sample, blocks: Iterator[tuple[slice, Float64s, Floats]]) -> Scores:
    losses, briers = np.empty((2, sample.n_samples))
    hits = np.empty(sample.n_samples, dtype=np.bool_)
    for rows, block_losses, proba in blocks:
        labels = sample.labels[rows]
        losses[rows] = block_losses
        at_label = proba[np.arange(labels.size), labels].astype(np.float64)
        briers[rows] = 1.0 - 2.0 * at_label + np.einsum("ij,ij->i", proba, proba, dtype=np.float64)
        hits[rows] = proba.argmax(axis=1) == labels
    mass = sample.mass
    # A row that does not count may be infinitely wrong.
    losses[mass == 0.0] = 0.0
    return Scores(losses, briers, hits, mass, total_weight(sample))
