"""A state of a slice is the same state on the rows of the slice, however they come."""

import numpy as np
import pytest

import polycal as pc
from polycal.families.slices import Condition, slice_rows
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.slices import SliceState
from polycal.states.sums import ScoreState

TABLET = (Condition("device", "category", "tablet"),)


@pytest.fixture(scope="module")
def data():
    sample = pc.datasets.make_slices(900, random_state=4)
    return pc.Sample(
        sample.proba, sample.labels, np.random.default_rng(0).random(900), features=sample.features
    )


def fed(state, sample, rows):
    part = sample.take(rows)
    return state.update(part.labels, part.proba, part.sample_weight, features=part.features)


def made(**options):
    return SliceState(TABLET, (ScoreState(), QuestionState([0, 1]), ClassesState()), **options)


@pytest.mark.parametrize("outside", [0, 1])
def test_it_sees_the_rows_of_the_slice_in_any_chunks(data, outside, tmp_path):
    inside = slice_rows(TABLET, data.features) != bool(outside)
    one, other = fed(made(outside=outside), data, slice(0, 500)), made(outside=outside)
    for start in range(500, 900, 100):
        fed(other, data, slice(start, start + 100))
    one.save(tmp_path / "one.polycal")
    whole = pc.load(tmp_path / "one.polycal").merge(other)
    scores, question, classes = whole.finish()
    assert scores == pytest.approx(fed(ScoreState(), data, inside).finish())
    assert question.value == pytest.approx(fed(QuestionState([0, 1]), data, inside).finish().value)
    assert [q.value for q in classes] == pytest.approx(
        [q.value for q in fed(ClassesState(), data, inside).finish()]
    )
    weight = data.sample_weight[inside]
    assert whole.weights == pytest.approx((inside.sum(), weight.sum(), weight @ weight, weight.max()))
    assert whole.n_samples == 900


def test_a_slice_without_rows_has_no_result(data):
    nowhere = SliceState((Condition("device", "category", "fridge"),), (ScoreState(),))
    assert fed(nowhere, data, slice(None)).finish() is None


def test_what_cannot_be_is_refused(data):
    with pytest.raises(ValueError, match="these rows have none"):
        made().update(data.labels, data.proba)
    with pytest.raises(ValueError, match="different parameters"):
        fed(made(), data, slice(0, 9)).merge(fed(made(outside=1), data, slice(9, 90)))
