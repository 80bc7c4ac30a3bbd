import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests import reference_costs

import polycal as pc

NAMES = ("sick", "tired", "well")
TRIAGE = {"treat": {"sick": 0, "default": 1}, "wait": {"sick": 20, "default": 0}, "ask": 2}
MATRIX = np.array([[0.0, 1.0, 1.0], [20.0, 0.0, 0.0], [2.0, 2.0, 2.0]])


def made(loss, names=NAMES):
    return pc.make_loss(loss, n_classes=3, class_names=names)


def some_rows(seed, n=60, k=4, n_actions=5):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.5), n)
    matrix = np.round(rng.normal(size=(n_actions, k)), 1)
    return rng.integers(0, k, n), proba, matrix, rng.integers(1, 4, n).astype(float)


def test_all_ways_to_give_a_loss_agree():
    frame = pd.DataFrame(MATRIX, index=["treat", "wait", "ask"], columns=NAMES)
    ways = [
        TRIAGE,
        frame,
        frame[["well", "sick", "tired"]],
        frame.rename_axis("action").reset_index(),
        pl.DataFrame(frame.rename_axis("action").reset_index()),
        {"treat": [0, 1, 1], "wait": {0: 20, 1: 0, 2: 0}, "ask": 2.0},
        made(TRIAGE),
    ]
    for way in ways:
        loss = made(way)
        assert loss.actions == ("treat", "wait", "ask")
        np.testing.assert_array_equal(loss.matrix, MATRIX)
    assert made(MATRIX.tolist()).actions == ("0", "1", "2")
    keyed = pc.make_loss({"a": {"0": 1, "default": 0}}, n_classes=2)
    np.testing.assert_array_equal(keyed.matrix, [[1, 0]])


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ([[0, np.nan, 1]], "the cost of action 0 for class 1 is nan"),
        ([[0, np.inf, 1]], "costs must be finite"),
        ([[0, 1e13, 1]], "at most 1e\\+12"),
        ([[0, 1]], "has 2 columns for 3 classes"),
        (np.zeros((3, 4)), "Is it the other way round"),
        (np.zeros((0, 3)), "got shape"),
        (np.zeros(3), "a row for each action"),
        (np.zeros((1001, 3)), "1,001 actions"),
        ([["a", "b", "c"]], "must hold numbers"),
        ({}, "is empty"),
        ({"a": {"sick": 1}}, "no cost for class 'tired' and 1 more"),
        ({"a": {"ill": 1, "default": 0}}, "'ill', which is not one of the class names"),
        ({"a": {"sick": 1, 0: 2, "default": 0}}, "more than once"),
        ({"a": {"sick": "much", "default": 0}}, "must be a number"),
        ({"a": {"sick": True, "default": 0}}, "must be a number"),
        ({"a": [1, 2]}, "a cost for each of 3 classes"),
        ({"a": None}, "must be a cost"),
        ({"a": {True: 1, "default": 0}}, "got True. Put quotes around a name such as yes or no"),
        (pd.DataFrame(np.zeros((2, 3)), index=["a", "a"], columns=NAMES), "two actions named 'a'"),
        (pd.DataFrame(np.zeros((1, 2)), columns=["sick", "well"]), "no column for class 'tired'"),
        (pd.DataFrame(np.zeros((1, 4)), columns=[*NAMES, "dead"]), "'dead', which is not"),
    ],
)
def test_a_bad_loss_gets_one_clear_line(loss, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        made(loss)
    assert "\n" not in str(caught.value)


def test_lists_are_refused_in_words():
    with pytest.raises(TypeError, match="y_proba is a sparse matrix, but full predictions are needed here"):
        pc.decide(csr_array([[0.5, 0.0, 0.2]]), MATRIX)


def test_names_need_named_classes():
    with pytest.raises(ValueError, match="pass class_names"):
        made(TRIAGE, names=None)


def test_deciding_by_hand():
    proba = pd.DataFrame([[0.5, 0.3, 0.2], [0.02, 0.5, 0.48], [0.05, 0.0, 0.95]], columns=NAMES)
    assert pc.decide(proba, TRIAGE).tolist() == ["treat", "wait", "treat"]
    assert pc.decide(proba.to_numpy(), MATRIX).tolist() == [0, 1, 0]
    assert pc.decision_cost(["sick", "well", "tired"], proba, TRIAGE) == pytest.approx(1 / 3)
    assert pc.decision_cost([1, 1], [0.9, 0.2], [[0, 1], [1, 0]]) == 0.5


def test_of_equals_the_first_is_taken():
    rows = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    assert pc.decide(rows, [[0, 1], [1, 0], [0.1, 0.1], [0.1, 0.1]]).tolist() == [0, 2, 1]


@given(st.integers(0, 10_000))
def test_costs_are_those_of_the_oracle(seed):
    labels, proba, matrix, weight = some_rows(seed)
    assert pc.decide(proba, matrix).tolist() == reference_costs.actions(proba, matrix)
    paid = reference_costs.costs(labels, proba, matrix, weight)[1]
    assert pc.decision_cost(labels, proba, matrix, sample_weight=weight) == pytest.approx(paid)
    order = np.random.default_rng(seed).permutation(4)
    relabelled = pc.decision_cost(np.argsort(order)[labels], proba[:, order], matrix[:, order])
    assert relabelled == pytest.approx(pc.decision_cost(labels, proba, matrix))


def test_adding_a_constant_and_scaling_change_no_action():
    labels, proba, matrix, _ = some_rows(1)
    np.testing.assert_array_equal(pc.decide(proba, matrix), pc.decide(proba, 7.0 * matrix - 3.0))
    cost = pc.decision_cost(labels, proba, 7.0 * matrix - 3.0)
    assert cost == pytest.approx(7.0 * pc.decision_cost(labels, proba, matrix) - 3.0)


def test_single_precision_is_taken_as_it_is():
    labels, proba, matrix, _ = some_rows(2)
    single = pc.decision_cost(labels, proba.astype(np.float32), matrix)
    assert single == pytest.approx(pc.decision_cost(labels, proba, matrix), abs=0.1)
