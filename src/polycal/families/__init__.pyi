from .distance import Coupling as Coupling
from .distance import DistanceToCalibration as DistanceToCalibration
from .reduction import KernelLearner as KernelLearner
from .reduction import LearnerFromAuditor as LearnerFromAuditor
from .reduction import lift as lift
