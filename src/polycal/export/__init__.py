"""A calibrator's map for other runtimes: ONNX and torch."""
