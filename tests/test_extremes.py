"""Whatever is put into a public function: a finite result in range, or one clear line; never anything else."""

import dataclasses
import inspect
import math
import warnings
from collections.abc import Mapping

import numpy as np
import pytest

import polycal as pc
from tests.calibrators.catalogue import EVERY
from tests.test_public_api import AUDITORS, functions_of_predictions

TINY = 5e-324
TWO = np.array([[0.25, 0.75], [0.5, 0.5]])
ONE_HOT = np.tile(np.eye(3), (8, 1))
MIXED = np.vstack([ONE_HOT, np.full((12, 3), 1 / 3), np.tile([1e-300, 1e-17, 1.0], (12, 1))])
WIDE = np.random.default_rng(0).dirichlet(np.full(300, 0.01), 6)

# Predictions that are odd and right, and labels.
ODD = {
    "one row": ([1], TWO[:1]),
    "one row that is certain": ([0], [[1.0, 0.0]]),
    "one row, certain and wrong": ([1], [[1.0, 0.0]]),
    "two rows": ([0, 1], TWO),
    "the same row": (np.arange(30) % 2, np.tile(TWO[:1], (30, 1))),
    "one class": (np.zeros(30, int), np.tile(TWO[:1], (30, 1))),
    "certain": (np.arange(24) % 3, ONE_HOT),
    "certain and wrong": ((np.arange(24) + 1) % 3, ONE_HOT),
    "certain of the same class": (np.arange(30) % 3, np.tile([1.0, 0.0, 0.0], (30, 1))),
    "1e-300": (np.arange(30) % 2, np.tile([1e-300, 1.0], (30, 1))),
    "the least number": (np.arange(30) % 3, np.tile([TINY, TINY, 1.0], (30, 1))),
    "all kinds of rows": (np.arange(48) % 3, MIXED),
    "a little below zero": (np.arange(30) % 2, np.tile([-1e-17, 1.0], (30, 1))),
    "one column": (np.arange(30) % 2, np.linspace(0, 1, 30)),
    "whole numbers": (np.arange(24) % 3, ONE_HOT.astype(int)),
    "truth values": (np.arange(24) % 3, ONE_HOT.astype(bool)),
    "half precision": (np.arange(48) % 3, MIXED.astype(np.float16)),
    "long double": (np.arange(48) % 3, MIXED.astype(np.longdouble)),
    "objects": (np.arange(24).astype(object) % 3, ONE_HOT.astype(object)),
    "lists": ([0, 1] * 10, TWO.tolist() * 10),
    "labels of one byte": ((np.arange(24) % 3).astype(np.uint8), ONE_HOT),
    "more classes than rows": ([0, 1, 2, 3, 4, 299], WIDE),
    "backwards": (np.arange(48)[::-1] % 3, np.asfortranarray(MIXED)[::-1]),
}
# Nothing that could be predictions.
WRONG = {
    "nothing": (None, None),
    "no rows": ([], []),
    "no columns": ([0, 1], np.empty((2, 0))),
    "a number": (0, 0.5),
    "text": ("label", "proba"),
    "a dictionary": ({"a": 1}, {"a": 0.5}),
    "a set": ({0, 1}, {0.5}),
    "a generator": ((i for i in range(2)), (i for i in range(2))),
    "None among numbers": ([0, None], [[0.5, None], [0.5, 0.5]]),
    "huge whole numbers": ([2**70, 0], [[2**70, 0], [0, 1]]),
    "huge numbers": ([0, 1], [[1e308, 1e308], [0.5, 0.5]]),
    "infinities": ([0, 1], [[np.inf, -np.inf], [0.5, 0.5]]),
    "dates": ([0, 1], np.array([["2020", "2021"]] * 2, dtype="datetime64[D]")),
    "complex numbers": ([0j, 1j], TWO.astype(complex)),
    "bytes": ([b"\xff", b"a"], TWO),
    "records": ([0, 1], np.zeros(2, dtype=[("a", float)])),
    "arrays in arrays": ([[0], [1, 2]], np.array([np.ones(2), np.ones(3)], dtype=object)),
    "four dimensions": ([0, 1], np.ones((2, 1, 1, 2))),
    "zeros": ([0, 1], np.zeros((2, 2))),
    "rows too few": ([0, 1, 0], TWO),
    "labels that are not there": ([0, 7], TWO),
    "labels far away": ([0, 2**62], TWO),
    "masked": ([0, 1], np.ma.masked_array(TWO, mask=[[True, False]] * 2)),
}
WEIGHTS = {
    "tiny": lambda n: np.full(n, 1e-300),
    "huge": lambda n: np.full(n, 1e300),
    "of all sizes": lambda n: np.logspace(-200, 200, n),
    "one row": lambda n: np.eye(n)[0],
}

SMALL = {"n_draws": 3, "n_bootstrap": 3, "n_resamples": 3, "n_jobs": 1}


def everything():
    """Whatever takes labels and predictions, as a function of them."""
    for parameter in functions_of_predictions():
        function = getattr(pc, parameter.id)
        names = inspect.signature(function).parameters
        options = {name: value for name, value in SMALL.items() if name in names}
        (call,) = parameter.values
        yield parameter.id, lambda y, p, c=call, o=options, **kw: c(y, p, **o, **kw)
    for auditor in AUDITORS:
        yield type(auditor).__name__, lambda y, p, a=auditor, **kw: a.find_witness(y, p, **kw).describe()
    for notion in NOTIONS:
        yield repr(notion), lambda y, p, n=notion, **kw: pc.estimate_error(y, p, n, **kw)
    for calibrator in EVERY:
        yield repr(calibrator), lambda y, p, c=calibrator, **kw: c.fit(p, y, **kw).predict_proba(p)
    for state in STATES:
        yield state.__name__, lambda y, p, s=state, **kw: s().update(y, p, **kw).finish()


NOTIONS = [
    pc.Confidence(),
    pc.Confidence(smooth=True),
    pc.TopLabel(),
    pc.TopSet(2),
    pc.Classwise(),
    pc.Classwise(smooth=True),
    pc.Canonical(),
    pc.SubsetSmooth(),
    pc.ProjectedSmooth(),
    pc.Sigmoid(),
    pc.LowDegree(2),
    pc.Decision(),
    pc.Halfspace(),
    pc.FullSmooth(),
]
STATES = [pc.ScoreState, pc.BinnedState, pc.ClassesState]
EVERYTHING = dict(everything())


def numbers(result):
    """All floats in a result, however deep."""
    if isinstance(result, float | np.floating):
        yield float(result)
    elif isinstance(result, np.ndarray):
        if result.dtype.kind == "f":
            yield from result.ravel().tolist()
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from numbers(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from numbers(value)
    elif hasattr(result, "to_dict"):
        yield from numbers(result.to_dict())
    elif dataclasses.is_dataclass(result):
        yield from numbers([getattr(result, field.name) for field in dataclasses.fields(result)])


def in_range(result):
    """Finite numbers; errors from 0 to 2, and predictions on the simplex."""
    if isinstance(result, pc.ErrorEstimate):
        assert 0.0 <= result.value <= 2.0 + 1e-9
    if isinstance(result, np.ndarray):
        assert (result >= 0.0).all()
        np.testing.assert_allclose(result.sum(axis=1), 1.0, atol=1e-3)
    return all(math.isfinite(number) for number in numbers(result))


def outcome(call, labels, proba, **options):
    """The result, or None for a refusal in one clear line; all else is a failure."""
    with warnings.catch_warnings(category=pc.CalibrationWarning, action="ignore"):
        try:
            return call(labels, proba, **options)
        except (ValueError, TypeError) as error:
            message = str(error)
            assert message
            assert len(message.splitlines()) == 1, message
            assert len(message) < 500, message
    return None


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", EVERYTHING)
def test_odd_predictions_give_finite_numbers_or_one_line(name, odd):
    result = outcome(EVERYTHING[name], *ODD[odd])
    assert in_range(result)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", EVERYTHING)
def test_what_is_no_prediction_is_refused_in_one_line(name, wrong):
    assert outcome(EVERYTHING[name], *WRONG[wrong]) is None


@pytest.mark.slow
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_odd_weights_give_finite_numbers_or_one_line(name, weights):
    labels, proba = ODD["all kinds of rows"]
    result = outcome(EVERYTHING[name], labels, proba, sample_weight=WEIGHTS[weights](labels.size))
    assert in_range(result)
