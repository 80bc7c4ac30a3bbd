from .binned import ReliabilityCurve as ReliabilityCurve
from .binned import reliability_curve as reliability_curve
from .scores import accuracy as accuracy
from .scores import brier_score as brier_score
from .scores import log_loss as log_loss
from .smooth import SmoothCurve as SmoothCurve
from .smooth import smooth_calibration_curve as smooth_calibration_curve
from .smooth import smooth_calibration_error as smooth_calibration_error
