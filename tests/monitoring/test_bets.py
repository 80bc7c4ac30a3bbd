"""Bettors, fortunes, questions and bounds agree with loops, and no bet is worth more than its stake."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_monitor as reference
from tests.strategies import samples

from polycal._compiled.monitor import invest, shifted, tempered
from polycal.monitoring.bets import FLOOR, LargeBets, SmallBets, Window, families, log_gains, log_weights
from polycal.monitoring.findings import _LAMBDAS, _lower_bounds
from polycal.monitoring.fortune import kept, stakes
from polycal.monitoring.game import Game, Rules, Stream
from polycal.monitoring.questions import _SHARES, FOR_SLICES, Questions
from polycal.monitoring.search import find_short_set, next_search


def draw(n, k, seed, sharpness=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.7), n)
    true = proba**sharpness / (proba**sharpness).sum(axis=1, keepdims=True)
    return proba, (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


@settings(max_examples=30, deadline=None)
@given(data=samples(weighted=False))
def test_small_bets_are_those_of_the_oracle(data):
    labels, proba, _ = data
    proba = np.maximum(proba, FLOOR)
    inverse, backgrounds = np.array([0.5, 2.0]), np.array([0.0, 0.03])
    out = np.empty((labels.size, 4))
    tempered(np.log(proba), labels, inverse, backgrounds, out)
    for i, row in enumerate(proba):
        expected = [reference.tempered(row, b, e)[labels[i]] for b in inverse for e in backgrounds]
        np.testing.assert_allclose(np.exp(out[i]), expected, rtol=1e-9)
    for decay in (1.0, 0.9):
        one, sums = np.empty(labels.size), np.zeros((1, 2, proba.shape[1]))
        shifted(proba, np.zeros(labels.size, dtype=np.int64), labels, 5.0, decay, sums, one)
        for i, row in enumerate(proba):
            expected = reference.shifted(proba[:i], labels[:i], row, 5.0, decay)[labels[i]]
            assert np.exp(one[i]) == pytest.approx(expected)


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(0, 1000))
def test_fortunes_are_sums_over_all_rows_at_which_money_was_given(n, seed):
    rng = np.random.default_rng(seed)
    gains, weight = rng.uniform(0.2, 2.5, (n, 3)), np.array([0.5, 0.3, 0.2])
    given_money = stakes(np.arange(n), many=False)
    log_fortune, log_won, start = np.full(3, -1e30), np.full(3, -1e30), np.zeros(3, dtype=np.int64)
    out = np.empty(n)
    invest(np.log(gains), np.log(given_money), np.log(weight), np.arange(n), log_fortune, log_won, start, out)
    expected = [w * reference.fortune(gains[:, j], given_money) for j, w in enumerate(weight)]
    np.testing.assert_allclose(np.exp(log_fortune), expected)
    assert out[-1] == pytest.approx(np.log(sum(expected)))
    assert list(start) == [reference.best_start(gains[:, j]) for j in range(3)]


def test_money_given_and_money_kept_add_up_to_at_most_one():
    rows = np.arange(200_000)
    given_money, left = stakes(rows, many=False), kept(rows, many=False)
    assert given_money[0] + left[0] <= 1.0
    # What is kept falls by at least what is given.
    assert (left[:-1] - left[1:] >= given_money[1:] - 1e-15).all()
    assert given_money.sum() + left[-1] <= 1.0 + 1e-9
    assert (stakes(rows[:5], many=True) == 1.0).all()


def labels_tried(n_classes, act):
    """What a function of a label gives for each of them."""
    return np.array([act(np.array([y])) for y in range(n_classes)])


@pytest.mark.parametrize("k", [2, 4])
def test_no_bet_is_worth_more_than_one_coin_if_labels_follow_the_predictions(k):
    proba, labels = draw(60, k, 1, sharpness=2.0)
    proba[3:5] = np.eye(k)[:2]
    labels[3:5] = [0, 1]
    small, large, window = SmallBets.fresh(k), LargeBets.fresh(k), Window.fresh(k)
    for i in range(60):
        row = proba[i : i + 1]
        gains = labels_tried(k, lambda y, row=row: np.exp(log_gains(deepcopy(small), large, row, y))[0])
        assert ((row[0] @ gains) <= 1.0 + 1e-9).all()
        log_gains(small, large, row, labels[i : i + 1])
        window.add(row, labels[i : i + 1])
        large.fit_due(window)
    assert {type(model).__name__ for model in large.models} > {"KernelCalibrator", "VectorScaling"}
    assert len(families(k)) == log_weights(k).size == gains.shape[1]
    assert np.exp(log_weights(k)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("rules", [Rules(0.01, 0.0, False), Rules(1e-6, 0.0, True)])
def test_all_money_together_is_a_supermartingale(rules):
    proba, labels = draw(70, 3, 2, sharpness=3.0)
    game, money = Game.fresh(3, {"pair": np.array([0, 2])}, rules), 1.0 - rules.many
    for i in range(70):
        row = proba[i : i + 1]
        if i % 6 == 0 or i > 62:

            def after(y, game=game, row=row):
                trial = deepcopy(game)
                trial.absorb(Stream(row, y, {}), rules)
                return np.exp(trial.log_evidence)

            assert row[0] @ labels_tried(3, after) <= money + rules.many + 1e-9
        game.absorb(Stream(row, labels[i : i + 1], {}), rules)
        money = np.exp(game.log_evidence)
    assert money != 1.0


def test_slices_get_no_more_than_is_meant_for_them():
    questions, rows = Questions.fresh(3, {}), np.arange(5000)
    for i in range(4):
        questions.add_slice("country", f"c{i}", 7 * i)
    given_money = [
        questions.money_given(rows[rows >= 7 * i], 0, many=False)[:, -4 + i].sum() for i in range(4)
    ]
    assert sum(given_money) * questions.fortune[0].size <= FOR_SLICES


@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_bets_on_questions_are_those_of_the_oracle(tolerance):
    proba, labels = draw(25, 3, 3)
    questions = Questions.fresh(3, {"pair": np.array([0, 1])})
    asked = questions.ask(proba, labels, {})
    rows = np.arange(25)
    money = questions.money_given(rows, 0, many=False)
    total = questions.bet(asked, tolerance, money, rows)
    expected = np.zeros(questions.fortune.shape)
    for q, shape, sign, b in np.ndindex(expected.shape):
        if asked[1][0, q] >= 0:
            gains = [
                reference.question_gain(
                    shape,
                    (1, -1)[sign],
                    _SHARES[b] / (1 + tolerance),
                    tolerance,
                    asked[0][i, q],
                    asked[1][i, q],
                )
                for i in range(25)
            ]
            expected[q, shape, sign, b] = reference.fortune(gains, money[:, q])
        else:
            expected[q, shape, sign, b] = money[:, q].sum()
    np.testing.assert_allclose(questions.fortune, expected)
    assert total[-1] == pytest.approx(expected.sum())
    assert questions.weights().sum() * expected[0].size <= 1.0


def test_questions_ask_what_they_say():
    proba, labels = draw(40, 4, 4)
    questions = Questions.fresh(4, {"pair": np.array([1, 3])})
    questions.replace_found(np.array([0, 2]), 0)
    questions.add_slice("side", "left", 0)
    side = np.where(np.arange(40) % 2, "left", "right")
    predicted, hits = questions.ask(proba, labels, {"side": side})
    assert questions.describe(0, str).kind == "confidence"
    np.testing.assert_allclose(predicted[:, 0], proba.max(axis=1))
    np.testing.assert_array_equal(hits[:, 0], proba.argmax(axis=1) == labels)
    for q in (1, 3, 4, 7):
        members = questions.describe(q, str).members
        np.testing.assert_allclose(predicted[:, q], proba[:, members].sum(axis=1))
        np.testing.assert_array_equal(hits[:, q], np.isin(labels, members))
    assert (hits[:, 2] == -1).all()
    np.testing.assert_array_equal(hits[:, 8], np.where(np.arange(40) % 2, hits[:, 0], -1))
    assert questions.describe(3, str).text == "is it pair?"
    assert questions.describe(8, str).text.endswith("where side is left?")


def test_bounds_are_those_of_the_oracle():
    proba, labels = draw(150, 3, 5, sharpness=4.0)
    game, rules = Game.fresh(3, {}, Rules(0.05, 0.1, False)), Rules(0.05, 0.1, False)
    game.absorb(Stream(proba, labels, {}), rules)
    questions = game.questions
    bounds = _lower_bounds(questions, 0.05)
    predicted, hits = proba.max(axis=1), proba.argmax(axis=1) == labels
    best = -np.inf
    weight = questions.weights()[0] * 3
    for first in (0, 64, 128):
        step = first / 64
        log_odds = np.log((step + 1) * (step + 2) * len(_LAMBDAS) / (0.05 * weight))
        for shape in (np.ones(150), predicted, 1 - predicted):
            for sign in (1, -1):
                tried = [
                    reference.mean_bound(sign, shape, predicted, hits, first, size, log_odds)
                    for size in _LAMBDAS
                ]
                best = max(best, *tried)
    assert bounds.value[0] == pytest.approx(best)


def test_a_planted_set_is_found():
    rng = np.random.default_rng(6)
    proba = rng.dirichlet(np.full(8, 0.8), 2000)
    inside = proba[:, [1, 4, 6]].sum(axis=1)
    tilt = np.where(
        np.isin(np.arange(8), [1, 4, 6]), np.where(inside > np.median(inside), 2.5, 0.4)[:, None], 1.0
    )
    true = proba * tilt / (proba * tilt).sum(axis=1, keepdims=True)
    labels = (true.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    assert set(find_short_set(proba, labels)) >= {1, 4, 6} or set(find_short_set(proba, labels)) <= {
        0,
        2,
        3,
        5,
        7,
    }


def test_times_of_searches_depend_on_the_number_of_rows_alone():
    times = [next_search(0)]
    while times[-1] < 30_000:
        times.append(next_search(times[-1]))
    assert [next_search(n) for n in range(0, 30_000, 997)] == [
        min(time for time in times if time > n) for n in range(0, 30_000, 997)
    ]
