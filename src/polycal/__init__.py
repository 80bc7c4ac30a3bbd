"""Multi-class calibration: find the question the probabilities cannot be trusted for, prove it, fix it."""

from importlib import import_module as _import_module
from typing import Any as _Any

import lazy_loader as _lazy

# Names are listed in __init__.pyi and imported when first used: no compilation, no heavy import here.
_listed, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

# Names that live in a module of their own kind, and are found here too: results, states, witnesses.
_ELSEWHERE = {
    name: module
    for module, names in {
        "states": (
            "BinnedErrors",
            "BinnedState",
            "CertificateState",
            "ClassesState",
            "KernelState",
            "QuestionState",
            "QuestionSummary",
            "ScoreState",
            "SketchState",
            "State",
            "TruncatedKernelState",
            "TruncatedQuestionState",
        ),
        "witnesses": (
            "DecisionWitness",
            "FullSmoothWitness",
            "HalfspaceWitness",
            "KernelWitness",
            "LearnerWitness",
            "LipschitzFunction",
            "MonomialWitness",
            "ProjectedWitness",
            "SigmoidWitness",
            "StepFunction",
            "SubsetWitness",
            "TableWitness",
            "TopSetWitness",
            "TopWitness",
        ),
        "kernels": ("CallableKernel", "Kernel"),
        "inference": (
            "CalibrationTest",
            "ErrorInterval",
            "Reading",
            "mean_interval",
            "mean_lower_bound",
            "mean_p_value",
        ),
        "measures": ("ReliabilityCurve", "SmoothCurve"),
        "auditing": ("MeasuredError", "QuestionError"),
        "compare": ("ComparedMethod",),
        "monitoring": ("Change",),
        "datasets": ("Generated",),
        "hardness": ("SampleRequirement", "required_degree", "required_samples"),
        "families": ("Coupling", "DistanceToCalibration", "KernelLearner", "LearnerFromAuditor"),
        "io": ("PredictionFiles", "open_lists", "read_lists", "write_lists"),
        "plots": ("plot_cumulative", "plot_reliability"),
        "sparse": ("SparseSample",),
    }.items()
    for name in names
}


# Packages of results and files, which the API page names.
_PACKAGES = ("auditing", "io", "measures", "monitoring")


def __getattr__(name: str) -> _Any:
    if name in _PACKAGES:
        return _import_module(f"{__name__}.{name}")
    if name in _ELSEWHERE:
        return getattr(_import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    return _listed(name)
