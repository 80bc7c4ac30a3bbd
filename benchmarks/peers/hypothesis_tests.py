"""Tests of perfect calibration, by us and by the peers: ``call(proba, labels)`` returns a p-value."""

# ruff: noqa: PLC0415 - a missing peer shall fail alone

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.peers.measures import confidence

DRAWS = 99
ALPHA = 0.05


@dataclass(frozen=True)
class Test:
    """A test.

    Attributes
    ----------
    package, environment : str
        Where it comes from.
    call : callable
        From predictions and labels to a p-value.
    looks_at : str
        What its statistic depends on.
    """

    package: str
    environment: str
    call: Callable
    looks_at: str


TESTS = {}


def register(name, package, looks_at, environment="main"):
    """Enter a call into the table."""

    def enter(call):
        TESTS[name] = Test(package, environment, call, looks_at)
        return call

    return enter


# polycal


@register(
    "polycal audit", "polycal", "everything: fixed questions by all rows, searches by two halves", "polycal"
)
def _(proba, labels):
    from polycal import audit

    findings = audit(labels, proba, alpha=ALPHA).findings
    return min((finding.adjusted_p_value for finding in findings), default=1.0)


@register("polycal kernel test", "polycal", "the whole vector", "polycal")
def _(proba, labels):
    from polycal.inference.kernel_error import kernel_test

    return kernel_test(labels, proba, n_draws=DRAWS).p_value


def _redrawn_notion(name, **options):
    def call(proba, labels):
        import polycal
        from polycal.inference.redraw import calibration_test

        notion = getattr(polycal, name)(**options)
        return calibration_test(labels, proba, notion, n_draws=DRAWS, progress=False).p_value

    return call


for _name, _looks_at in {"Confidence": "the most likely class", "Classwise": "each class"}.items():
    register(f"polycal {_name} redraw", "polycal", _looks_at, "polycal")(_redrawn_notion(_name, smooth=True))
register("polycal SubsetSmooth redraw", "polycal", "every subset of the classes", "polycal")(
    _redrawn_notion("SubsetSmooth")
)


# Kernel tests of all pairs, restated in NumPy: the package that has them is written in Julia


@register("SKCE redraw", "numpy", "the whole vector")
def _(proba, labels):
    """The unbiased statistic of Widmann et al., its null distribution by redrawing labels."""
    weights = _laplace(proba)
    np.fill_diagonal(weights, 0)

    def statistic(drawn):
        residual = np.eye(proba.shape[1])[drawn] - proba
        return np.vdot(weights @ residual, residual)

    return _redraw(statistic, proba, labels)


@register("SKCE block", "numpy", "the whole vector")
def _(proba, labels):
    """The statistic over disjoint pairs, which is asymptotically normal: linear time."""
    from scipy.stats import norm

    first, second = proba[0::2], proba[1::2]
    half = min(len(first), len(second))
    first, second = first[:half], second[:half]
    y, other = labels[0::2][:half], labels[1::2][:half]
    rows = np.arange(half)
    inner = (y == other) - second[rows, y] - first[rows, other] + np.einsum("ij,ij->i", first, second)
    terms = np.exp(-np.linalg.norm(first - second, axis=1)) * inner
    return float(norm.sf(np.sqrt(half) * terms.mean() / max(terms.std(ddof=1), 1e-300)))


def _laplace(proba):
    squares = np.einsum("ij,ij->i", proba, proba)
    return np.exp(-np.sqrt(np.maximum(squares[:, None] + squares - 2 * proba @ proba.T, 0)))


def _redraw(statistic, proba, labels):
    """The p-value of a statistic among those of labels drawn from the predictions."""
    rng = np.random.default_rng(0)
    cumulative = proba.cumsum(axis=1)
    cumulative /= cumulative[:, -1:]
    value = statistic(labels)
    drawn = [statistic((cumulative > rng.random((labels.size, 1))).argmax(axis=1)) for _ in range(DRAWS)]
    return (1 + np.count_nonzero(np.array(drawn) >= value)) / (1 + DRAWS)


# Binned errors with redrawn labels


@register("netcal ECE redraw", "netcal", "the most likely class")
def _(proba, labels):
    from netcal.metrics import ECE

    return _redraw(lambda drawn: ECE(bins=15).measure(proba, drawn), proba, labels)


@register("pycalib class-wise ECE redraw", "pycalib", "each class")
def _(proba, labels):
    from pycalib.metrics import classwise_ECE, pECE

    return pECE(np.eye(proba.shape[1])[labels], proba, samples=DRAWS, ece_function=classwise_ECE)


@register("pycalib full ECE redraw", "pycalib", "the whole vector, in cells")
def _(proba, labels):
    from pycalib.metrics import full_ECE, pECE

    return pECE(np.eye(proba.shape[1])[labels], proba, samples=DRAWS, ece_function=full_ECE)


# Tests of the confidence as a binary prediction


def _mapie(name):
    def call(proba, labels):
        from mapie.metrics import calibration

        predicted, correct = confidence(proba, labels)
        return getattr(calibration, name)(correct, predicted)

    return call


for _title in ("Spiegelhalter", "Kuiper", "Kolmogorov-Smirnov"):
    _function = f"{_title.lower().replace('-', '_')}_p_value"
    register(f"MAPIE {_title}", "MAPIE", "the most likely class")(_mapie(_function))


@register("probcal SKCE", "probcal", "the most likely class")
def _(proba, labels):
    from probcal.metrics import skce_test

    predicted, correct = confidence(proba, labels)
    result = skce_test(correct, predicted)
    return getattr(result, "p_value", getattr(result, "pvalue", np.nan))


@register("mcgrad", "mcgrad", "the most likely class, by predicted class")
def _(proba, labels):
    import pandas as pd
    from mcgrad.metrics import MulticalibrationError

    predicted, correct = confidence(proba, labels)
    frame = pd.DataFrame({"label": correct, "score": predicted, "class": proba.argmax(axis=1).astype(str)})
    return MulticalibrationError(
        df=frame, label_column="label", score_column="score", categorical_segment_columns=["class"]
    ).mce_pvalue
