"""
PyTorch
=======

A network gives logits. Fit a calibrator on those of a validation set, and deploy network and calibrator as one module.
"""

import numpy as np
import torch
from sklearn.datasets import make_classification

import polycal as pc

torch.manual_seed(0)
X, y = make_classification(6000, 20, n_informative=8, n_classes=4, flip_y=0.2, random_state=0)
X = torch.tensor(X, dtype=torch.float32)
fit, cal, new = slice(0, 2000), slice(2000, 4000), slice(4000, 6000)

# %%
# A small network, trained for too long.
network = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(network(X[fit]), torch.tensor(y[fit])).backward()
    optimizer.step()
with torch.no_grad():
    logits_cal, logits_new = network(X[cal]), network(X[new])

# %%
# Tensors on the CPU are taken as they are.
audit = pc.audit(y[new], logits_new, from_logits=True)
print(audit.worst.question, f"off by at least {audit.worst.at_least:.3f}")

# %%
# Repair, and run the repaired network without polycal: ``to_torch`` is a module that can be traced, saved and sent to a
# device. ``calibrator.to_onnx("model.onnx")`` does the same for ONNX.
calibrator = pc.KernelCalibrator(from_logits=True).fit(logits_cal, y[cal])
deployed = torch.nn.Sequential(network, calibrator.to_torch()).eval()
with torch.no_grad():
    fixed = deployed(X[new]).numpy()
np.testing.assert_allclose(fixed, calibrator.predict_proba(logits_new), atol=1e-4)
before, after = pc.log_loss(y[new], logits_new, from_logits=True), pc.log_loss(y[new], fixed)
print(f"log loss {before:.3f} -> {after:.3f}")
