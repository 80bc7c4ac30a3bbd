import numpy as np
import pytest

from polycal._validation import check_sample
from polycal.families.auditor import coordinate_contributions
from polycal.families.decision import DecisionWitness
from polycal.families.halfspace import HalfspaceWitness
from polycal.families.projected import ProjectedWitness
from polycal.families.sigmoid import SigmoidWitness
from polycal.families.witness import leading_classes
from polycal.measures.functions import LipschitzFunction

NAMES = ("cat", "dog", "emu")
DIRECTIONS = np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [-0.5, 0.5, 1.0]])
LEADING = np.array([[0, 1, 2], [0, 1, 2], [2, 0, 1]])
CONTRIBUTIONS = np.array([0.1, 0.3, 0.2])
PROBA = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0]])
IDENTITY = LipschitzFunction(np.array([-1.0, 1.0]), np.array([-1.0, 1.0]))

PROJECTED = ProjectedWitness(DIRECTIONS, (IDENTITY,) * 3, LEADING, CONTRIBUTIONS, 3, NAMES)
SIGMOID = SigmoidWitness(4.0, DIRECTIONS, np.array([0.1, 2.0, 0.0]), LEADING, CONTRIBUTIONS, 3, NAMES)
HALFSPACE = HalfspaceWitness(
    DIRECTIONS, np.array([0.0, -1.0, 0.4]), np.array([1.0, -1.0, 1.0]), LEADING, CONTRIBUTIONS, 3, NAMES
)
DECISION = DecisionWitness(
    np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.6]]),
    np.array([[0.6, -0.8, 0.0], [-1.0, 0.0, 0.0]]),
    np.array([0.1, 0.2]),
    3,
    NAMES,
)


def test_values_by_hand():
    np.testing.assert_allclose(PROJECTED(PROBA), PROBA @ DIRECTIONS.T)
    np.testing.assert_allclose(SIGMOID(PROBA)[0], np.tanh([4 * -0.1 + 0.1, 2.0, 4 * 0.55]))
    np.testing.assert_array_equal(HALFSPACE(PROBA), [[-1, -1, 1], [1, -1, -1], [-1, -1, 1]])
    np.testing.assert_array_equal(DECISION.actions(PROBA), [0, 1, 0])
    np.testing.assert_array_equal(DECISION(PROBA), DECISION.weights[[0, 1, 0]])


def test_descriptions_name_the_strongest_first():
    expected = "weighs dog by a constant; emu by +emu -cat; cat by +cat -dog"
    assert [w.describe() for w in (PROJECTED, SIGMOID, HALFSPACE)] == [expected] * 3
    assert DECISION.describe() == "where action 1 is best -cat; where action 0 is best -dog +cat"
    assert repr(PROJECTED) == f"ProjectedWitness({expected})"


def test_a_long_description_is_cut():
    k = 5
    witness = SigmoidWitness(
        1.0, np.eye(k), np.zeros(k), np.tile(np.arange(3), (k, 1)), np.ones(k), k, tuple("abcde")
    )
    assert witness.describe() == "weighs a by +a; b by +b; c by +c; 2 more classes"
    losses = np.eye(5)
    decision = DecisionWitness(losses, losses, np.ones(5), 5, tuple("abcde"))
    assert decision.describe().endswith("where action 2 is best +c; 2 more actions")


@pytest.mark.parametrize("witness", [PROJECTED, SIGMOID, DECISION], ids=lambda w: w.family)
def test_restricted_to_some_classes(witness):
    kept = witness.restricted(np.array([0]))
    values = kept(PROBA)
    np.testing.assert_array_equal(values[:, 1:], 0)
    assert np.abs(values).max() <= 1
    assert kept.describe() != witness.describe()
    nothing = witness.restricted(np.array([], dtype=np.int64))
    np.testing.assert_array_equal(nothing(PROBA), 0)
    assert nothing.describe() == "nothing found"


def test_a_restricted_sigmoid_or_projection_is_unchanged_where_it_is_kept():
    for witness in (PROJECTED, SIGMOID):
        np.testing.assert_array_equal(witness.restricted(np.array([0, 2]))(PROBA)[:, 2], witness(PROBA)[:, 2])


def test_a_restricted_decision_keeps_its_lengths():
    kept = DECISION.restricted(np.array([0, 2]))
    np.testing.assert_allclose(kept.weights, [[1, 0, 0], [-1, 0, 0]])
    np.testing.assert_allclose(kept.contributions, [0.06, 0.2])


def test_contributions_of_coordinates_and_their_errors():
    rng = np.random.default_rng(0)
    n = 400
    proba, labels = rng.dirichlet(np.ones(3), n), rng.integers(0, 3, n)
    sample = check_sample(labels, proba, sample_weight=rng.integers(1, 3, n))
    gains, errors = coordinate_contributions(SIGMOID, sample)
    assert gains.sum() == pytest.approx(SIGMOID.correlation(sample))
    each = sample.mass[:, None] * (np.eye(3)[labels] - proba) * SIGMOID(proba)
    np.testing.assert_allclose(gains, each.sum(axis=0))
    np.testing.assert_allclose(errors, each.std(axis=0) * np.sqrt(n), rtol=0.02)


def test_leading_classes_are_those_that_move_the_sum_where_the_class_is_likely():
    # Classes 0 and 1 are likely together, and classes 2 and 3.
    sample = check_sample([0, 2], np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]))
    directions = np.array(
        [[0.0, 1.0, 0.3, 0.9], [1.0, 0.0, 0.3, 0.9], [0.9, 0.3, 0.0, 1.0], [0.9, 0.3, 1.0, 0.0]]
    )
    leading = leading_classes(sample, directions)
    assert [set(row[:2]) for row in leading.tolist()] == [{0, 1}, {0, 1}, {2, 3}, {2, 3}]
    likelier = check_sample([0, 2], np.array([[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.7, 0.3]]))
    assert leading_classes(likelier, directions)[:, 0].tolist() == [1, 1, 2, 2]
