import numpy as np
import pytest

import polycal as pc


def test_the_example_has_two_parts():
    parts = {part: pc.datasets.load_fashion(part) for part in ("calibration", "evaluation", "all")}
    assert [s.n_samples for s in parts.values()] == [10_000, 10_000, 20_000]
    assert parts["all"].proba.dtype == np.float32


def test_the_example_is_a_good_but_not_perfect_classifier():
    sample = pc.datasets.load_fashion("evaluation")
    assert pc.accuracy(sample.labels, sample.proba) == pytest.approx(0.88, abs=0.005)


def test_the_groups_name_classes_of_the_example():
    names = set(pc.datasets.load_fashion().class_names)
    for members in pc.datasets.load_fashion_groups().values():
        assert set(members) <= names
