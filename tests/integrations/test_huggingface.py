import numpy as np
import pytest

import polycal as pc

MADE = pc.datasets.make_temperature(600, 4, temperature=0.5, random_state=1)


def test_numbers_of_batches_are_those_of_all_rows():
    from polycal.integrations.running import RunningCalibration  # noqa: PLC0415

    whole = RunningCalibration().update(MADE.labels, MADE.proba).numbers()
    parts = RunningCalibration().update(MADE.labels[:50], MADE.proba[:50])
    parts.update(MADE.labels[50:], MADE.proba[50:])
    assert parts.numbers() == pytest.approx(whole)
    assert whole["smooth_calibration_error"] == pytest.approx(
        pc.smooth_calibration_error(MADE.labels, MADE.proba), abs=1e-4
    )
    assert whole["at_least"] <= whole["smooth_calibration_error"] <= whole["at_most"]


def test_the_evaluate_module_agrees_with_polycal():
    evaluate = pytest.importorskip("evaluate", reason="in the environment of make test-integrations")
    from polycal.integrations import evaluate as module  # noqa: PLC0415

    given = {"predictions": MADE.proba.tolist(), "references": MADE.labels.tolist()}
    numbers = module.Calibration().compute(**given)
    error = pc.smooth_calibration_error(MADE.labels, MADE.proba)
    assert numbers["smooth_calibration_error"] == pytest.approx(error, abs=1e-4)
    assert numbers["log_loss"] == pytest.approx(pc.log_loss(MADE.labels, MADE.proba))
    logits = module.Calibration().compute(
        predictions=np.log(MADE.proba).tolist(), references=given["references"], from_logits=True
    )
    assert logits == pytest.approx(numbers, abs=1e-5)
    subset = module.Calibration().compute(**given, subset=[0, 1])
    assert subset["smooth_calibration_error"] != numbers["smooth_calibration_error"]
    loaded = evaluate.load(module.__file__)
    loaded.add_batch(predictions=given["predictions"][:100], references=given["references"][:100])
    loaded.add_batch(predictions=given["predictions"][100:], references=given["references"][100:])
    assert loaded.compute() == pytest.approx(numbers)


@pytest.mark.parametrize("by_batch", [False, True])
def test_a_trainer_logs_calibration(tmp_path, by_batch):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers", reason="in the environment of make test-integrations")
    pytest.importorskip("accelerate")
    from polycal.integrations.transformers import CalibrationCallback  # noqa: PLC0415

    config = transformers.BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
    )
    tokens = torch.randint(0, 20, (64, 6), generator=torch.Generator().manual_seed(0))
    rows = [{"input_ids": row, "labels": int(row[0]) % 3} for row in tokens]
    calibration = CalibrationCallback(tmp_path / "reports", class_names=["a", "b", "c"])
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        eval_strategy="epoch",
        num_train_epochs=2,
        report_to=[],
        use_cpu=True,
        batch_eval_metrics=by_batch,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=transformers.BertForSequenceClassification(config),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows,
        compute_metrics=calibration.compute_metrics,
        callbacks=[calibration],
    )
    trainer.train()
    logged = [line for line in trainer.state.log_history if "eval_smooth_calibration_error" in line]
    assert len(logged) == 2
    assert (
        logged[-1]["eval_at_least"]
        <= logged[-1]["eval_smooth_calibration_error"]
        <= logged[-1]["eval_at_most"]
    )
    assert logged[-1]["eval_log_loss"] == pytest.approx(logged[-1]["eval_loss"], abs=1e-3)
    assert len(list((tmp_path / "reports").glob("calibration-*.md"))) == (0 if by_batch else 2)


def test_what_is_no_table_of_logits_is_refused():
    transformers = pytest.importorskip("transformers", reason="in the environment of make test-integrations")
    from polycal.integrations.transformers import CalibrationCallback  # noqa: PLC0415

    tokens = transformers.EvalPrediction(
        predictions=np.zeros((2, 5, 3)), label_ids=np.zeros((2, 5), dtype=int)
    )
    with pytest.raises(ValueError, match="shape"):
        CalibrationCallback().compute_metrics(tokens)
    with pytest.raises(ValueError, match="form must be one of"):
        CalibrationCallback(form="pdf")
