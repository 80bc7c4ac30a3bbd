from .distance import Coupling as Coupling
from .distance import DistanceToCalibration as DistanceToCalibration
from .distance import largest_change as largest_change
from .distance import question_distance as question_distance
from .reduction import KernelLearner as KernelLearner
from .reduction import LearnerFromAuditor as LearnerFromAuditor
from .reduction import lift as lift
