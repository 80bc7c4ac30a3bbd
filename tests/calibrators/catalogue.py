"""Every calibrator, for the tests that hold for all of them."""

from sklearn.linear_model import LogisticRegression

import polycal as pc

# Made of polycal's own steps: these are saved and exported.
OWN = [
    pc.AuditedCalibrator(max_rounds=2),
    pc.BetaCalibrator(),
    pc.DirichletCalibrator(),
    pc.EnsembleTemperatureScaling(),
    pc.HistogramCalibrator(n_bins=5),
    pc.HistogramCalibrator(n_bins=5, strategy="quantile"),
    pc.IdentityCalibrator(),
    pc.IsotonicCalibrator(),
    pc.KernelCalibrator(n_folds=3),
    pc.MatrixScaling(),
    pc.MulticalibratedCalibrator(n_folds=3),
    pc.TemperatureScaling(),
    pc.VectorScaling(),
]
FOREIGN = [
    pc.SklearnCalibrator("isotonic"),
    pc.SklearnCalibrator(LogisticRegression(tol=1e-8, max_iter=1000)),
]
EVERY = OWN + FOREIGN
