"""
Repair the probabilities, and deploy the repair
===============================================

Fit a calibrator on rows that the classifier was not trained on, compare it with others, audit before and after, and run
it without polycal: as a file, in ONNX and in PyTorch.
"""

import tempfile
from pathlib import Path

import numpy as np

import polycal as pc

known, new = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")

# %%
# Which calibrator is best here? Each is fitted on one set and judged on the other.

comparison = pc.compare_calibrators(
    known.labels,
    known.proba,
    new.labels,
    new.proba,
    calibrators={
        "temperature": pc.TemperatureScaling(),
        "vector": pc.VectorScaling(),
        "isotonic": pc.IsotonicCalibrator(),
        "kernel": pc.KernelCalibrator(),
    },
)
print(comparison)

# %%
# ``KernelCalibrator`` is the default choice. It is a scikit-learn estimator of probabilities:

calibrator = pc.KernelCalibrator().fit(known.proba, known.labels, class_names=known.class_names)
fixed = calibrator.predict_proba(new.proba)
print(calibrator)
print(f"log loss {pc.log_loss(new.labels, new.proba):.3f} -> {pc.log_loss(new.labels, fixed):.3f}")

# %%
# An audit with ``calibrator=`` looks at the same rows before and after it.

audit = pc.audit(new.labels, new.proba, class_names=new.class_names, calibrator=calibrator)
for name, result in (("before", audit), ("after", audit.after)):
    print(f"{name:7} worst question at least {result.worst.at_least:.4f} off")

# %%
# **Keep it.** The file holds plain arrays and a checksum, never a pickle.

folder = Path(tempfile.mkdtemp())
calibrator.save(folder / "model.polycal")
again = pc.load(folder / "model.polycal")
print("same predictions:", np.array_equal(again.predict_proba(new.proba), fixed))

# %%
# **ONNX** (with the extra ``onnx``): runs wherever ONNX does, for batches of any size.

calibrator.to_onnx(folder / "model.onnx")
print(f"model.onnx: {(folder / 'model.onnx').stat().st_size / 1024:.0f} KiB")
try:
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    (served,) = session.run(None, {session.get_inputs()[0].name: new.proba[:5].astype(np.float32)})
    print("largest difference:", f"{np.abs(served - fixed[:5]).max():.1e}")
except ImportError:
    print("onnxruntime is not installed here")

# %%
# **PyTorch**: a module to be put behind the network.

try:
    import torch

    module = calibrator.to_torch().eval()
    with torch.no_grad():
        served = module(torch.from_numpy(new.proba[:5])).numpy()
    print("largest difference:", f"{np.abs(served - fixed[:5]).max():.1e}")
except ImportError:
    print("PyTorch is not installed here")

# %%
# On the command line: ``polycal recalibrate cal.npz --out model.polycal``, then
# ``polycal apply model.polycal test.npz --out fixed.npz``.
