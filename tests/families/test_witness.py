import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.families.questions import SubsetWitness
from polycal.families.witness import Witness
from polycal.measures.functions import StepFunction

WITNESS = SubsetWitness(
    np.array([0, 2]), StepFunction(np.array([0.5]), np.array([-1.0, 1.0])), 3, ("a", "b", "c")
)


def test_calling_validates():
    with pytest.raises(ValueError, match="does not sum to 1"):
        WITNESS([[0.5, 0.5, 0.5]])
    with pytest.raises(ValueError, match="y_proba has 2 classes but the witness was found on 3"):
        WITNESS([[0.5, 0.5]])


def test_blocks_equal_the_whole():
    proba = np.random.default_rng(0).dirichlet(np.ones(3), 500_000)
    np.testing.assert_array_equal(WITNESS(proba)[400_000:], WITNESS.evaluate(proba[400_000:]))


def test_the_generic_correlation_is_the_definition():
    rng = np.random.default_rng(0)
    proba, labels, weight = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40), rng.random(40)
    sample = check_sample(labels, proba, sample_weight=weight)
    by_hand = ((np.eye(3)[labels] - proba) * WITNESS(proba)).sum(axis=1)
    np.testing.assert_allclose(Witness.correlations(WITNESS, sample), by_hand, atol=1e-15)
    np.testing.assert_allclose(WITNESS.correlations(sample), by_hand, atol=1e-15)
    assert WITNESS.correlation(sample) == pytest.approx(np.average(by_hand, weights=weight))


def test_names_appear_in_the_description():
    assert repr(WITNESS) == "SubsetWitness(is it a or c?)"
    assert isinstance(WITNESS, pc.Witness)
