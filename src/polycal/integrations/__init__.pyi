from .gate import Judgement as Judgement
from .gate import NotEnoughRows as NotEnoughRows
from .gate import assert_calibrated as assert_calibrated
from .gate import judge as judge
from .sklearn import CalibrationDisplay as CalibrationDisplay
from .sklearn import CalibrationScorer as CalibrationScorer
