"""Hugging Face transformers: calibration at every evaluation of a Trainer, and a report beside the checkpoints."""

from pathlib import Path as FilePath
from typing import Any

import numpy as np

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise ImportError("this module needs transformers: pip install 'polycal[huggingface]'.") from error

from polycal._typing import Path
from polycal._validation import check_choice
from polycal.auditing.audit import audit
from polycal.integrations.running import RunningCalibration

# The label that Trainer ignores.
_IGNORED = -100


class CalibrationCallback(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """The calibration of a classifier during training, for `transformers.Trainer`.

    Give its `compute_metrics` to the trainer, and itself as a callback if a report is wanted::

        calibration = CalibrationCallback("reports", class_names=names)
        trainer = Trainer(..., compute_metrics=calibration.compute_metrics, callbacks=[calibration])

    Parameters
    ----------
    folder : str or path, optional
        Where an audit is written after every evaluation, as ``calibration-<step>``. By default none is.
    class_names : list of str, optional
        For the reports.
    subset : list of class indices, optional
        The question whose error is logged. By default "is the most likely class right?".
    alpha : float, default 0.05
        The bounds of each evaluation hold with probability 1 - alpha.
    form : {"markdown", "html"}, default "markdown"
        Of the reports; pages need the extra ``polycal[report]``.

    Notes
    -----
    The trainer logs ``eval_smooth_calibration_error``, ``eval_at_least``, ``eval_at_most``, ``eval_brier_score``,
    ``eval_log_loss`` and ``eval_accuracy``. With ``batch_eval_metrics=True`` the numbers come from sums over batches,
    and nothing is gathered; a report then has no rows to be made from. Choose checkpoints by ``eval_log_loss``: a
    calibration error alone is no proper score.

    Examples
    --------
    >>> import numpy as np
    >>> import transformers
    >>> from polycal.integrations.transformers import CalibrationCallback
    >>> calibration = CalibrationCallback()
    >>> logits = np.log([[0.7, 0.2, 0.1]] * 10)
    >>> evaluation = transformers.EvalPrediction(predictions=logits, label_ids=np.array([0] * 7 + [1, 1, 2]))
    >>> round(calibration.compute_metrics(evaluation)["smooth_calibration_error"], 4)
    0.0
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        class_names: Any = None,
        subset: Any = None,
        alpha: float = 0.05,
        form: str = "markdown",
    ) -> None:
        self.folder = None if folder is None else FilePath(folder)
        self.class_names = class_names
        self.subset = subset
        self.alpha = alpha
        self.form = check_choice(form, "form", ("markdown", "html"))
        self._running = RunningCalibration(subset, alpha=alpha)
        self._rows: tuple[Any, Any] | None = None

    def compute_metrics(self, evaluation: Any, compute_result: bool | None = None) -> dict[str, float]:
        """Numbers from what a trainer predicted, whole or batch by batch.

        Parameters
        ----------
        evaluation : transformers.EvalPrediction
            Logits, or a tuple that starts with them, and labels; rows with the label -100 are left out.
        compute_result : bool, optional
            Given by a trainer with ``batch_eval_metrics``: whether this batch is the last.

        Returns
        -------
        dict of str to float
            Empty before the last batch.
        """
        logits, labels = _rows(evaluation)
        self._running.update(labels, logits, from_logits=True)
        if compute_result is False:
            return {}
        numbers = self._running.numbers()
        self._running = RunningCalibration(self.subset, alpha=self.alpha)
        self._rows = (labels, logits) if compute_result is None else None
        return numbers

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - Trainer's
        """Write the report of the last evaluation."""
        if self.folder is None or self._rows is None or not state.is_world_process_zero:
            return
        labels, logits = self._rows
        result = audit(labels, logits, class_names=self.class_names, from_logits=True, alpha=self.alpha)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"calibration-{state.global_step}"
        title = f"Step {state.global_step}"
        if self.form == "html":
            result.to_html(self.folder / f"{name}.html", title=title)
        else:
            result.to_markdown(self.folder / f"{name}.md", title=title)


def _rows(evaluation: Any) -> tuple[Any, Any]:
    """Logits and labels as arrays, without ignored rows."""
    logits, labels = evaluation.predictions, evaluation.label_ids
    if isinstance(logits, tuple):
        logits = logits[0]
    # Tensors of a batch may be on a device, and in bfloat16, which NumPy does not know.
    logits, labels = (x.detach().cpu() if hasattr(x, "detach") else x for x in (logits, labels))
    logits = np.asarray(logits.double() if hasattr(logits, "double") else logits)
    labels = np.asarray(labels)
    if logits.ndim != 2:
        raise ValueError(
            f"predictions must be logits of shape (n, n_classes); got {logits.shape}. Token classification needs "
            "its tokens as rows."
        )
    kept = labels != _IGNORED
    return logits[kept], labels[kept]
