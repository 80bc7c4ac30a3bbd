"""
Hugging Face
============

A text classifier of `transformers`: calibration is logged at every evaluation, and the logits of a validation set fit a
calibrator. The model here is a tiny one with random weights, so that it runs without a download; with
``AutoModelForSequenceClassification.from_pretrained`` all else stays the same.
"""

import accelerate  # noqa: F401 - Trainer needs it
import numpy as np
import torch
import transformers

import polycal as pc
from polycal.integrations.transformers import CalibrationCallback

transformers.set_seed(0)
config = transformers.BertConfig(
    vocab_size=20,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    num_labels=3,
)
model = transformers.BertForSequenceClassification(config)

# %%
# Rows whose label follows from the first token, most of the time.
tokens = torch.randint(0, 20, (1200, 6))
noise = np.random.default_rng(0).random(1200) < 0.3
labels = np.where(noise, np.random.default_rng(1).integers(0, 3, 1200), tokens[:, 0].numpy() % 3)
rows = [{"input_ids": row, "labels": int(label)} for row, label in zip(tokens, labels, strict=True)]

# %%
# The callback's ``compute_metrics`` adds ``eval_smooth_calibration_error`` and its bounds to the log.
calibration = CalibrationCallback(class_names=["red", "green", "blue"])
arguments = transformers.TrainingArguments(
    "run",
    eval_strategy="epoch",
    num_train_epochs=3,
    learning_rate=5e-3,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = transformers.Trainer(
    model,
    arguments,
    train_dataset=rows[:600],
    eval_dataset=rows[600:900],
    compute_metrics=calibration.compute_metrics,
)
trainer.train()
print(
    {name: round(value, 3) for name, value in trainer.evaluate().items() if "error" in name or "at_" in name}
)

# %%
# Repair with the validation rows, judge on others.
logits_cal, logits_new = (trainer.predict(part).predictions for part in (rows[600:900], rows[900:]))
calibrator = pc.KernelCalibrator(from_logits=True).fit(logits_cal, labels[600:900])
before = pc.log_loss(labels[900:], logits_new, from_logits=True)
after = pc.log_loss(labels[900:], calibrator.predict_proba(logits_new))
print(f"log loss {before:.3f} -> {after:.3f}")
