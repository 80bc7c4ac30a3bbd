"""MLflow: an evaluator that logs numbers, the report and figures of an audit."""

import json
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

try:
    from mlflow.models.evaluation import EvaluationResult, ModelEvaluator
    from mlflow.tracking import MlflowClient
except ImportError as error:
    raise ImportError("this module needs MLflow: pip install 'polycal[mlflow]'.") from error

from polycal.auditing.audit import audit
from polycal.auditing.result import Audit
from polycal.integrations.gate import judge
from polycal.integrations.sklearn import CalibrationDisplay
from polycal.report.words import TOLERANCE

_LOG = logging.getLogger(__name__)
_FOLDER = "polycal"


class CalibrationEvaluator(ModelEvaluator):  # type: ignore[misc,unused-ignore]
    """An audit in `mlflow.models.evaluate`, under the name "polycal"::

        mlflow.models.evaluate(
            model_uri, data, targets="label", model_type="classifier",
            evaluators=["default", "polycal"],
            evaluator_config={"polycal": {"groups": {"animal": ["cat", "dog"]}, "at_most": 0.02}},
        )

    Installing polycal registers it; where no evaluators are named, MLflow runs all that it knows.

    Probabilities are those of the model's ``predict_proba``, or what its ``predict`` returns, if that is a table with
    one column for each class. Without a model, ``proba_columns`` names the columns of the data that hold them.

    Its configuration may have ``class_names``, ``groups``, ``alpha``, ``random_state`` (as for `polycal.audit`),
    ``at_most`` (the error that would not matter, by default 0.02) and ``proba_columns``.

    Logged are the metrics ``polycal_smooth_calibration_error``, ``polycal_at_least``, ``polycal_at_most``,
    ``polycal_worst_at_least``, ``polycal_brier_score``, ``polycal_log_loss``, ``polycal_accuracy`` and
    ``polycal_passed`` (1 pass, 0 fail, -1 not enough rows), and the artifacts ``polycal/audit.json``,
    ``polycal/audit.md``, ``polycal/audit.html`` and ``polycal/calibration.png``; the last two where their
    extras are installed.

    Examples
    --------
    >>> from polycal.integrations.mlflow import CalibrationEvaluator
    >>> CalibrationEvaluator.can_evaluate(model_type="classifier", evaluator_config={})
    True
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any, **kwargs: Any) -> bool:  # noqa: ARG003
        """Whether the model is a classifier."""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        model_type: str,  # noqa: ARG002
        dataset: Any,
        run_id: str,
        evaluator_config: dict[str, Any] | None = None,
        model: Any = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> Any:
        """Audit the model's probabilities, and log what was found to the run."""
        config = evaluator_config or {}
        found = _probabilities(model, dataset, config)
        if found is None:
            _LOG.warning(
                "polycal found no probabilities: the model has no predict_proba, and no proba_columns."
            )
            return EvaluationResult(metrics={}, artifacts={}, run_id=run_id)
        labels, proba, names = found
        options = {key: config[key] for key in ("groups", "alpha", "random_state") if key in config}
        names = config.get("class_names", names)
        result = audit(labels, proba, class_names=names, **options)
        metrics = _metrics(result, config.get("at_most", TOLERANCE))
        client = MlflowClient()
        for name, value in metrics.items():
            client.log_metric(run_id, name, value)
        with TemporaryDirectory() as folder:
            _write(result, Path(folder))
            _draw(labels, proba, names, Path(folder))
            client.log_artifacts(run_id, folder, _FOLDER)
        return EvaluationResult(metrics=metrics, artifacts={}, run_id=run_id)


def _probabilities(model: Any, dataset: Any, config: dict[str, Any]) -> tuple[Any, Any, Any] | None:
    """Labels as positions or names, probabilities, and the names of classes where a model knows them."""
    labels, features = np.asarray(dataset.labels_data), dataset.features_data
    columns = config.get("proba_columns")
    if columns is not None:
        return labels, features[list(columns)].to_numpy(dtype=np.float64), [str(name) for name in columns]
    if model is None:
        return None
    try:
        raw = model.get_raw_model()
    except (NotImplementedError, AttributeError):
        raw = None
    if hasattr(raw, "predict_proba") and hasattr(raw, "classes_"):
        classes = np.asarray(raw.classes_)
        if not np.isin(labels, classes).all():
            raise ValueError("the targets must be classes that the model was fitted on.")
        return np.searchsorted(classes, labels), raw.predict_proba(features), [str(name) for name in classes]
    predicted = np.asarray(model.predict(features))
    return (labels, predicted, None) if predicted.ndim == 2 and predicted.dtype.kind == "f" else None


def _metrics(result: Audit, at_most: float) -> dict[str, float]:
    passed = {"pass": 1.0, "fail": 0.0, "not enough rows": -1.0}[judge(result, at_most=at_most).outcome]
    named: dict[str, float | None] = {**result.scores, "passed": passed}
    if result.confidence is not None:
        named["smooth_calibration_error"] = result.confidence.smooth_error
        named["at_least"] = result.confidence.at_least
        named["at_most"] = result.confidence.at_most
    if result.worst is not None:
        named["worst_at_least"] = result.worst.at_least
    return {f"{_FOLDER}_{name}": value for name, value in named.items() if value is not None}


def _write(result: Audit, folder: Path) -> None:
    """The audit in every form that can be written here."""
    (folder / "audit.json").write_text(json.dumps(result.to_dict()), encoding="utf-8")
    result.to_markdown(folder / "audit.md")
    try:
        result.to_html(folder / "audit.html")
    except ImportError as error:
        _LOG.info("no page: %s", error)


def _draw(labels: Any, proba: Any, names: Any, folder: Path) -> None:
    """The question of confidence, in bins and without."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        return
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    CalibrationDisplay.from_predictions(labels, proba, class_names=names, ax=left)
    CalibrationDisplay.from_predictions(labels, proba, class_names=names, kind="cumulative", ax=right)
    figure.savefig(folder / "calibration.png", dpi=110)
