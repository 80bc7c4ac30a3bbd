import numpy as np
import pytest

from polycal.families.auditor import Auditor
from polycal.families.questions import SubsetWitness
from polycal.measures.functions import LipschitzFunction

PROBA = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])


class MostFrequent(Auditor):
    """The question about the label of largest weight, with phi = 1."""

    def find(self, sample):
        top = np.argmax(np.bincount(sample.labels, weights=sample.mass, minlength=sample.n_classes))
        phi = LipschitzFunction(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
        return SubsetWitness(np.array([top]), phi, sample.n_classes, sample.class_names)


def test_the_sample_reaches_the_search_whole():
    witness = MostFrequent().find_witness(
        ["b", "c"], PROBA, sample_weight=[1, 3], class_names=["a", "b", "c"]
    )
    assert witness.subset == ["c"]
    assert witness.n_classes == 3


def test_logits_become_probabilities():
    logits = np.log(PROBA) + 5
    assert MostFrequent().find_witness([1, 1], logits, from_logits=True).subset == [1]


def test_bad_input_stops_at_the_gate():
    with pytest.raises(ValueError, match="y_true has 1 entries"):
        MostFrequent().find_witness([0], PROBA)


def test_an_auditor_must_say_how_it_finds():
    with pytest.raises(TypeError, match="abstract"):
        Auditor()
