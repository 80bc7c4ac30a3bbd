"""What an auditor is: an algorithm that looks for a witness."""

from abc import ABC, abstractmethod
from typing import Any

from polycal._validation import check_sample
from polycal.sample import Sample
from polycal.witness._base import Witness


class Auditor(ABC):
    """An algorithm that looks for a witness of miscalibration. One verb: `find_witness`.

    Auditors are small frozen dataclasses, so they compare and print by their parameters. A witness is a
    claim, not a proof: judge it on rows that were not given to the auditor.
    """

    def find_witness(
        self,
        y_true: Any,
        y_proba: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        from_logits: bool = False,
    ) -> Witness:
        """Look for a weight function that correlates with the residual ``y - v``.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Class indices, or class names when these are known.
        y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predicted probabilities.
        sample_weight, class_names, from_logits
            As for `smooth_calibration_error`.

        Returns
        -------
        Witness
        """
        return self.find(
            check_sample(
                y_true,
                y_proba,
                sample_weight=sample_weight,
                class_names=class_names,
                from_logits=from_logits,
            )
        )

    @abstractmethod
    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
