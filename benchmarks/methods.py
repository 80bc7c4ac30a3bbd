"""The methods that are compared: every calibrator of polycal, and every peer's recalibration."""

import hashlib
import inspect
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import polycal
from benchmarks.peers.environments import environment
from benchmarks.peers.recalibrators import RECALIBRATORS

# Calibrators that polycal promises; one that is not there is listed as missing.
PROMISED = (
    "AuditedCalibrator",
    "IsotonicCalibrator",
    "KernelCalibrator",
    "TemperatureScaling",
    "VectorScaling",
)
BASELINE = "none"
# What a few minutes allow: the strongest peers by published comparisons, and temperature everywhere.
QUICK = (
    BASELINE,
    "polycal *",
    "probmetrics temperature",
    "probmetrics SVS",
    "probmetrics SMS",
    "probmetrics ETS",
    "probmetrics isotonic",
    "netcal temperature",
    "scikit-learn temperature",
)
# Known, and not run: each with the reason.
NOT_RUN = {
    "decision calibration (Zhao et al. 2021)": "research code without a licence, no package",
    "KCal (Lin et al. 2023)": "needs the network's embeddings, not only its predictions",
    "CalibrationErrors.jl, CalibrationTests.jl": "Julia; their statistic is run as a port to NumPy",
    "GPcalib (Wenger et al. 2020)": "no release on the package index",
    "rank-preserving-calibration": "transductive: looks at the evaluation part",
    "probmetrics Platt, one-vs-rest Venn-Abers": "the same as scikit-learn sigmoid and probmetrics Venn-Abers",
    "probmetrics XGBoost": "its dependency pulls GPU libraries; LightGBM and CatBoost stand for trees",
}


@dataclass(frozen=True)
class Method:
    """A recalibration method.

    Attributes
    ----------
    name : str
        As the tables show it.
    call : str
        What the worker looks up: a peer's name, or module:Class.
    package, environment : str
        Where it comes from.
    note : str
        What a reader should know of it.
    """

    name: str
    call: str
    package: str
    environment: str
    note: str = ""

    @property
    def is_ours(self):
        """Whether it comes from polycal."""
        return self.package == "polycal"


def own_methods():
    """Polycal's calibrators that work without arguments, and those that are missing, with the reason."""
    found, missing = {}, {}
    package = import_module("polycal.calibrators")
    base = import_module("polycal.calibrators.base").Calibrator
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        path = module.name
        try:
            members = inspect.getmembers(import_module(path), inspect.isclass)
        except Exception as error:
            missing[path.removeprefix(f"{package.__name__}.")] = f"{type(error).__name__}: {error}"
            continue
        for name, kind in members:
            if kind.__module__ == path and issubclass(kind, base) and not inspect.isabstract(kind):
                _sort_in(kind, f"{path}:{name}", found, missing)
    missing.update(
        {name: "not in polycal.calibrators" for name in PROMISED if name not in {*found, *missing}}
    )
    names = {name: BASELINE if name == "IdentityCalibrator" else f"polycal {name}" for name in found}
    own = [Method(names[name], call, "polycal", "polycal") for name, call in found.items()]
    return own, {f"polycal {name}": reason for name, reason in missing.items()}


def _sort_in(kind, call, found, missing):
    """Enter a calibrator among those that work without arguments, or among the others with the reason."""
    try:
        kind()
    except TypeError as error:
        missing[kind.__name__] = str(error)
    else:
        found[kind.__name__] = call


def peer_methods(*, create=True):
    """The peers' methods that can be run, and those that cannot, with the reason."""
    found, missing = [], dict(NOT_RUN)
    for name, entry in RECALIBRATORS.items():
        reason = environment(entry.environment, create=create).reason(entry.package)
        if reason is None:
            found.append(Method(name, name, entry.package, entry.environment, entry.note))
        else:
            missing[name] = reason
    return found, missing


def select(methods, patterns, missing=()):
    """The methods whose name matches one of the patterns (``*`` stands for anything).

    A pattern that matches neither one of them nor one of those that are missing is an error.
    """
    names = [*(method.name for method in methods), *missing]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in names):
            raise ValueError(f"no method is called {pattern!r}; there are {', '.join(sorted(names))}.")
    return [m for m in methods if any(matches(m.name, pattern) for pattern in patterns)]


def matches(name, pattern):
    """Whether a name is what a pattern stands for, in capitals or not."""
    return fnmatch(name.lower(), pattern.lower())


@cache
def source_fingerprint():
    """A short hash of polycal's sources: results of its methods are those of exactly this code."""
    folder = Path(polycal.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def own_version():
    """The version of polycal, and which sources these are."""
    return f"{polycal.__version__}+{source_fingerprint()}"
