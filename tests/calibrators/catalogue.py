"""Every calibrator, for the tests that hold for all of them."""

from sklearn.linear_model import LogisticRegression

from polycal.calibrators.beta import BetaCalibrator
from polycal.calibrators.dirichlet import DirichletCalibrator
from polycal.calibrators.ensemble import EnsembleTemperatureScaling
from polycal.calibrators.histogram import HistogramCalibrator
from polycal.calibrators.identity import IdentityCalibrator
from polycal.calibrators.isotonic import IsotonicCalibrator
from polycal.calibrators.matrix import MatrixScaling
from polycal.calibrators.sklearn_adapter import SklearnCalibrator
from polycal.calibrators.temperature import TemperatureScaling
from polycal.calibrators.vector import VectorScaling

# Made of polycal's own steps: these are saved and exported.
OWN = [
    BetaCalibrator(),
    DirichletCalibrator(),
    EnsembleTemperatureScaling(),
    HistogramCalibrator(n_bins=5),
    HistogramCalibrator(n_bins=5, strategy="quantile"),
    IdentityCalibrator(),
    IsotonicCalibrator(),
    MatrixScaling(),
    TemperatureScaling(),
    VectorScaling(),
]
FOREIGN = [
    SklearnCalibrator("isotonic"),
    SklearnCalibrator(LogisticRegression(tol=1e-8, max_iter=1000)),
]
EVERY = OWN + FOREIGN
