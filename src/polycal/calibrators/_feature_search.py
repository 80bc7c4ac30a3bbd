"""Choosing the features of the kernel calibrator: one kind after the other, each with a ridge and a mixing weight."""

from collections.abc import Sequence
from functools import cache

from polycal._typing import Floats, Ints
from polycal.calibrators._choice import Choice, choose
from polycal.calibrators._fold_path import FoldPath
from polycal.calibrators._kernel_features import FEATURES_OF_INPUT, MANY_CLASSES, Features, features_of_base
from polycal.calibrators._landmark_features import fit_landmarks
from polycal.calibrators._matrix_part import mix_in_matrix
from polycal.calibrators._mixture_base import MixtureBase
from polycal.calibrators._scoring import Scores
from polycal.sample import Sample

# A background of less weight hides nothing that matters.
_HIDING = 1e-3
# Likeness is tried where classes have this many rows each, and all there is where a ridge as weak as this is best.
_MANY_ROWS, _WEAK = 100, 1e-4
# With more classes than this, matrix scaling is slow.
_FULL_BLOCKS = 255


class FeatureSearch:
    """The best model so far, of all kinds of features tried.

    Parameters
    ----------
    sample : Sample
    log_proba : ndarray of float, shape (n_samples, n_classes)
        Log q of the base, which the models change.
    parts : sequence of ndarray of int64
        The rows of each fold.
    raw, standard : Scores
        Those of the input and of the base.

    Attributes
    ----------
    choice : Choice
    kind : Features
        The features that it is of.
    """

    def __init__(
        self, sample: Sample, log_proba: Floats, parts: Sequence[Ints], raw: Scores, standard: Scores
    ) -> None:
        self._sample, self._log_proba, self._parts = sample, log_proba, parts
        self._raw, self._standard = raw, standard
        self.choice = Choice()
        self.kind: Features = features_of_base(sample.n_classes)

    def run(self, base: MixtureBase, seed: int) -> None:
        """Try features of the base; and, where they may see more, of the input, and likeness to landmarks."""
        self._try(self.kind, self._log_proba)
        if self._sample.n_classes > MANY_CLASSES:
            return
        tempered = cache(lambda: base.log_tempered(self._sample))
        if base.hidden >= _HIDING:
            self._try(FEATURES_OF_INPUT, tempered())
        if self._is_weak or self._sample.n_samples >= _MANY_ROWS * self._sample.n_classes:
            self._try(fit_landmarks(self._sample, tempered(), seed), tempered())
        if self._is_weak and self._sample.n_classes <= _FULL_BLOCKS:
            rows = self._sample, self._log_proba, self._parts
            self.choice = mix_in_matrix(self.choice, *rows, self._raw, self._standard)

    @property
    def _is_weak(self) -> bool:
        """Whether the data ask for a model that is little held back."""
        return self.choice.strength <= _WEAK

    def _try(self, kind: Features, seen: Floats) -> None:
        """Take a kind of features, if it is better."""
        path = FoldPath(self._sample, self._log_proba, kind, seen, self._parts)
        raw, standard, before = self._raw.take(path.order), self._standard.take(path.order), self.choice
        found = choose(path, raw, standard, before, warm=self.kind is FEATURES_OF_INPUT)
        self.choice = before.or_better(found)
        self.kind = kind if self.choice.scores is not before.scores else self.kind
