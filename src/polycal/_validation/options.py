"""The gate for options: numbers, words, and objects of the library such as kernels and notions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np

_MOST_SEED = 2**31


class CalibrationWarning(UserWarning):
    """A result that is right but easily misread.

    Examples
    --------
    >>> import warnings
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", pc.CalibrationWarning)  # what is easily misread is an error now
    ...     pc.brier_score(made.labels, made.proba) > 0.5
    True
    """


def check_integer(value: Any, name: str, *, minimum: int, maximum: int | None = None) -> int:
    """Validate a whole number between limits."""
    if not is_whole(value) or int(value) < minimum or (maximum is not None and int(value) > maximum):
        limits = f", at least {minimum}" if maximum is None else f" from {minimum} to {maximum}"
        raise ValueError(f"{name} must be an integer{limits}; got {value!r}.")
    return int(value)


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are not."""
    return type(value) is not bool and isinstance(value, Integral)


def check_real(value: Any, name: str, *, low: float, high: float = np.inf) -> float:
    """Validate a number of the closed interval [low, high]."""
    if not _is_number(value) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}; got {value!r}.")
    return float(value)


def check_positive(value: Any, name: str, *, high: float = np.inf) -> float:
    """Validate a number above 0, at most ``high``."""
    if not _is_number(value) or not 0 < float(value) <= high:
        limit = "" if np.isinf(high) else f", at most {high:g}"
        raise ValueError(f"{name} must be a positive number{limit}; got {value!r}.")
    return float(value)


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real)


def check_level(alpha: Any, *, high: float = 1.0 - 1e-12, name: str = "alpha") -> float:
    """Validate an error probability: more than 0, less than 1."""
    return check_real(alpha, name, low=1e-12, high=high)


def check_seed(random_state: Any) -> int:
    """Validate a seed: the same one gives the same result. None is a new one; a generator draws one."""
    if random_state is None:
        return int(np.random.default_rng().integers(_MOST_SEED))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MOST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MOST_SEED))
    if not is_whole(random_state) or int(random_state) < 0:
        raise ValueError(
            f"random_state must be an integer, at least 0, or a NumPy Generator, or None; got {random_state!r}."
        )
    return int(random_state)


def keep_seed(holder: Any) -> None:
    """Settle the random state of an object, which may be frozen: asked twice, it does the same."""
    object.__setattr__(holder, "random_state", check_seed(holder.random_state))


def check_jobs(n_jobs: Any) -> int:
    """Validate a number of threads, as in scikit-learn: None is 1, and negative numbers count back from all cores."""
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or int(n_jobs) == 0:
        raise ValueError(f"n_jobs must be a number of threads, or -1 for one per core; got {n_jobs!r}.")
    return int(n_jobs)


def check_function(value: Any, name: str, arguments: str) -> Any:
    """Validate a function."""
    if not callable(value):
        raise TypeError(f"{name} must be a function of {arguments}; got {value!r}.")
    return value


def check_some(values: Any, name: str) -> None:
    """Validate that a collection is not empty."""
    if len(values) == 0:
        raise ValueError(f"{name} is empty; give at least one.")


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Validate one of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return str(value)


# Objects of the library are known by what they can do: the gate lies below the classes themselves.
def check_kernel(kernel: Any) -> Any:
    """Validate a kernel."""
    return _check_object(kernel, "kernel", "a kernel such as Gaussian(0.2)", "block", "resolve")


def check_witness(witness: Any) -> Any:
    """Validate a witness."""
    return _check_object(witness, "witness", "a witness, as an auditor finds it", "evaluate", "correlations")


def check_notion(notion: Any, name: str = "notion") -> Any:
    """Validate a notion, which may be given by its name."""
    notion = _by_name(notion, "parse_notion")
    return _check_object(notion, name, "a notion such as polycal.Confidence(), or its name", "estimate")


def check_notions(notions: Any) -> tuple[Any, ...]:
    """Validate several notions, or one."""
    if isinstance(notions, str) or hasattr(notions, "estimate"):
        notions = [notions]
    if not isinstance(notions, Iterable) or isinstance(notions, Mapping):
        raise TypeError(f"notions must be a list of notions such as [polycal.Confidence()]; got {notions!r}.")
    return tuple(check_notion(notion, f"notions[{i}]") for i, notion in enumerate(notions))


def check_statistic(notion: Any, times: int = 1) -> Callable[[Any], float]:
    """Validate a notion, or any function of a sample; returns a function of a sample to float, called `times` times."""
    if callable(notion) and not hasattr(notion, "estimate"):
        return lambda sample: float(notion(sample))
    words = "a notion such as polycal.Confidence(), its name, or a function of a Sample"
    notion = _by_name(notion, "parse_notion")
    _check_object(notion, "notion", words, "estimate")
    repeated = notion.repeated(times) if hasattr(notion, "repeated") else notion
    return lambda sample: float(repeated.estimate(sample).value)


def check_auditor(auditor: Any, name: str = "auditor", seed: int = 0) -> Any:
    """Validate an auditor, which may be given by the name of the notion that it searches, or as "kernel"."""
    auditor = _by_name(auditor, "parse_auditor", seed)
    words = "an auditor such as polycal.SubsetAuditor(), or the name of a notion"
    return _check_object(auditor, name, words, "find", "find_witness")


def check_auditors(auditors: Any, seed: int = 0) -> dict[str, Any]:
    """Validate auditors by name; without names of their own they have those of their classes."""
    if isinstance(auditors, str) or hasattr(auditors, "find_witness"):
        auditors = [auditors]
    if isinstance(auditors, Iterable) and not isinstance(auditors, Mapping):
        auditors = with_names(list(auditors))
    if not isinstance(auditors, Mapping):
        raise TypeError(
            f"auditors must map names to auditors, such as {{'subsets': polycal.SubsetAuditor()}}; got {auditors!r}."
        )
    return {
        str(name): check_auditor(auditor, f"auditors[{name!r}]", seed) for name, auditor in auditors.items()
    }


def with_names(objects: Sequence[Any]) -> dict[str, Any]:
    """Objects by names: what they were called by, or their class; with their options where two have the same."""
    short = [one if isinstance(one, str) else type(one).__name__ for one in objects]
    return {
        name if short.count(name) == 1 else repr(one): one for name, one in zip(short, objects, strict=True)
    }


def _by_name(value: Any, function: str, *args: Any) -> Any:
    """What a name stands for. Names are known where the classes are, above the gate."""
    if not isinstance(value, str):
        return value
    return getattr(import_module("polycal.families.defaults"), function)(value, *args)


def check_estimator(estimator: Any) -> Any:
    """Validate an estimator of scikit-learn."""
    words = "a scikit-learn regressor or classifier, not its class"
    return _check_object(estimator, "estimator", words, "get_params", "fit")


def _check_object(value: Any, name: str, words: str, *methods: str) -> Any:
    """Validate an object that has these methods; a class in its place is refused."""
    if isinstance(value, type) or not all(hasattr(value, method) for method in methods):
        raise TypeError(f"{name} must be {words}; got {value!r}.")
    return value
