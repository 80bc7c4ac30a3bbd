import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

mlflow = pytest.importorskip("mlflow", reason="in the environment of make test-integrations")
pd = pytest.importorskip("pandas")
from polycal.integrations.mlflow import CalibrationEvaluator  # noqa: E402

X, Y = load_iris(return_X_y=True, as_frame=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture
def run(tmp_path, monkeypatch):
    # Artifacts go to a folder under the current one unless an experiment says otherwise.
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    with mlflow.start_run() as run:
        yield run


def artifacts(run):
    return {file.path for file in mlflow.MlflowClient().list_artifacts(run.info.run_id, "polycal")}


def test_the_plug_in_is_registered():
    assert "polycal" in mlflow.models.list_evaluators()


def test_a_model_is_audited_and_logged(run):
    model = LogisticRegression(max_iter=1000).fit(X, NAMES[Y])
    info = mlflow.sklearn.log_model(
        model, name="model", input_example=X.head(2), serialization_format="pickle"
    )
    result = mlflow.models.evaluate(
        info.model_uri,
        X.assign(label=NAMES[Y]),
        targets="label",
        model_type="classifier",
        evaluators=["polycal"],
        evaluator_config={"polycal": {"groups": {"both": ["setosa", "virginica"]}, "at_most": 0.5}},
    )
    assert result.metrics["polycal_at_least"] <= result.metrics["polycal_smooth_calibration_error"]
    assert result.metrics["polycal_passed"] in {1.0, -1.0}
    logged = mlflow.MlflowClient().get_run(run.info.run_id).data.metrics
    assert logged["polycal_log_loss"] == pytest.approx(result.metrics["polycal_log_loss"])
    assert {"polycal/audit.json", "polycal/audit.md", "polycal/calibration.png"} <= artifacts(run)
    audit = json.loads(mlflow.artifacts.load_text(f"{run.info.artifact_uri}/polycal/audit.json"))
    assert audit["groups"][0]["name"] == "both"


def test_probabilities_may_be_columns(run):
    proba = LogisticRegression(max_iter=1000).fit(X, Y).predict_proba(X)
    data = pd.DataFrame(proba, columns=["a", "b", "c"]).assign(
        label=np.array(["a", "b", "c"])[Y], predicted="a"
    )
    result = mlflow.models.evaluate(
        data=data,
        targets="label",
        predictions="predicted",
        model_type="classifier",
        evaluators="polycal",
        evaluator_config={"proba_columns": ["a", "b", "c"]},
    )
    assert result.metrics["polycal_accuracy"] > 0.9


def test_without_probabilities_nothing_is_logged(run):
    data = pd.DataFrame({"label": Y, "predicted": Y})
    result = mlflow.models.evaluate(
        data=data, targets="label", predictions="predicted", model_type="classifier", evaluators="polycal"
    )
    assert result.metrics == {}


def test_only_classifiers_are_audited():
    assert not CalibrationEvaluator.can_evaluate(model_type="regressor", evaluator_config={})
