"""Hugging Face evaluate: a module that scores, and bounds, how far probabilities can be trusted."""

from typing import Any

import numpy as np

try:
    import datasets
    import evaluate
except ImportError as error:
    raise ImportError("this module needs evaluate: pip install 'polycal[huggingface]'.") from error

from polycal.integrations.running import RunningCalibration

_DESCRIPTION = """\
How far the predicted probabilities of a classifier can be trusted: the smooth calibration error of a question about the
label (by default whether the most likely class is right), bounds of it that hold with 95 % confidence, and scores.
"""
_INPUTS = """\
Args:
    predictions: a list of probabilities of all classes for each row (logits with from_logits=True).
    references: the index of the true class of each row.
    subset: the classes that count as "yes"; by default the question of confidence.
    from_logits: whether predictions are logits.
    alpha: the bounds hold with probability 1 - alpha.
Returns:
    smooth_calibration_error: of the rows, biased upwards.
    at_least, at_most: bounds of the true error.
    brier_score, log_loss, accuracy.
"""
_CITATION = """\
@inproceedings{gopalan2024computationally,
  author = {Gopalan, Parikshit and Hu, Lunjia and Rothblum, Guy N.},
  title = {On Computationally Efficient Multi-Class Calibration},
  booktitle = {Conference on Learning Theory},
  year = {2024}
}
"""


class Calibration(evaluate.Metric):  # type: ignore[misc,unused-ignore]
    """The calibration of a classifier, as a module of `evaluate`.

    ``Calibration()`` is ready to use, alone or in `evaluate.combine`; ``evaluate.load(module_file)`` with the path of
    this file gives the same.

    Examples
    --------
    >>> from polycal.integrations.evaluate import Calibration
    >>> result = Calibration().compute(
    ...     predictions=[[0.2, 0.3, 0.5]] * 2 + [[0.7, 0.2, 0.1]] * 2, references=[2, 2, 0, 1], subset=[0, 1]
    ... )
    >>> round(result["smooth_calibration_error"], 2)
    0.22
    """

    def _info(self) -> Any:
        features = {
            "predictions": datasets.Sequence(datasets.Value("float64")),
            "references": datasets.Value("int64"),
        }
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(features),
            reference_urls=["https://arxiv.org/abs/2402.07821"],
        )

    def _compute(
        self,
        predictions: Any,
        references: Any,
        subset: Any = None,
        from_logits: bool = False,  # noqa: FBT001,FBT002,RUF100 - evaluate passes options by name
        alpha: float = 0.05,
    ) -> dict[str, float]:
        running = RunningCalibration(subset, alpha=alpha)
        proba = np.asarray(predictions, dtype=np.float64)
        return running.update(np.asarray(references), proba, from_logits=from_logits).numbers()
