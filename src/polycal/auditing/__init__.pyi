from .result import Audit as Audit
from .result import Finding as Finding
from .result import MeasuredError as MeasuredError
from .result import QuestionError as QuestionError
