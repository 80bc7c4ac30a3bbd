"""What holds for every state: chunks, merging, saving, refusing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference_lists import truncated
from tests.states.catalogue import LISTED, MAKERS, everything
from tests.strategies import samples

import polycal as pc
from polycal.states.base import State
from polycal.states.questions import ClassesState, QuestionState
from polycal.storage.model import save_object

EVERY = MAKERS | LISTED
every_state = pytest.mark.parametrize("name", EVERY)


def given_as(name, proba):
    """The rows in full, or as lists of their two most likely classes."""
    return truncated(proba, 2) if name in LISTED else proba


def in_form(name, data):
    labels, proba, weight = data
    return labels, given_as(name, proba), weight


def feed(state, data, start, stop):
    labels, proba, weight = data
    part = slice(start, stop)
    return state.update(labels[part], proba[part], None if weight is None else weight[part], first_row=start)


def small_sample(n=30, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.dirichlet(np.ones(k), n), None


@every_state
@settings(max_examples=40, deadline=None)
@given(data=samples(), cuts=st.lists(st.integers(0, 40), max_size=5), into=st.randoms())
def test_any_chunks_in_any_order_of_merging_give_the_whole(name, data, cuts, into):
    data = in_form(name, data)
    n, k = data[1].shape
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    states = [EVERY[name](k) for _ in range(3)]
    for start, stop in pairwise(edges):
        feed(into.choice(states), data, start, stop)
    into.shuffle(states)
    merged = states[0].merge(states[1].merge(states[2]))
    whole = feed(EVERY[name](k), data, 0, n)
    assert merged.n_samples == whole.n_samples == n
    assert merged.total_weight == pytest.approx(whole.total_weight)
    np.testing.assert_allclose(everything(merged), everything(whole), rtol=1e-7, atol=1e-9)


@every_state
def test_save_and_load_in_the_middle(name, tmp_path):
    data = in_form(name, small_sample())
    state = feed(EVERY[name](3), data, 0, 17)
    state.save(tmp_path / "state.polycal")
    again = pc.load(tmp_path / "state.polycal")
    assert isinstance(again, State)
    assert type(again) is type(state)
    assert again.parameters() == state.parameters()
    expected = everything(feed(state, data, 17, 30))
    np.testing.assert_array_equal(everything(feed(again, data, 17, 30)), expected)
    np.testing.assert_allclose(everything(again.copy().merge(EVERY[name](3))), expected)


@every_state
def test_a_fresh_state_is_saved_and_merged_as_nothing(name, tmp_path):
    data = in_form(name, small_sample())
    EVERY[name](3).save(tmp_path / "fresh.polycal")
    fresh = pc.load(tmp_path / "fresh.polycal")
    full = feed(EVERY[name](3), data, 0, 30)
    np.testing.assert_allclose(everything(fresh.merge(full)), everything(full))
    np.testing.assert_allclose(everything(full.copy().merge(EVERY[name](3))), everything(full))


@every_state
def test_finish_leaves_the_state_as_it_is(name):
    data = in_form(name, small_sample())
    state = feed(EVERY[name](3), data, 0, 12)
    state.finish()
    np.testing.assert_allclose(
        everything(feed(state, data, 12, 30)), everything(feed(EVERY[name](3), data, 0, 30)), atol=1e-12
    )


@every_state
def test_empty_chunks_and_rows_without_weight_change_nothing(name):
    data = labels, proba, _ = in_form(name, small_sample())
    state = feed(EVERY[name](3), data, 0, 30)
    expected = everything(state)
    state.update([], proba[:0])
    state.update(labels[:4], proba[:4], np.zeros(4))
    np.testing.assert_allclose(everything(state), expected, atol=1e-12)
    assert state.n_samples == 34


@every_state
def test_nothing_seen_cannot_be_finished(name):
    state = EVERY[name](3)
    with pytest.raises(ValueError, match="no row of positive weight"):
        state.finish()
    state.update([0], given_as(name, np.array([[0.2, 0.3, 0.5]])), [0.0])
    with pytest.raises(ValueError, match="no row of positive weight"):
        state.finish()


@pytest.mark.parametrize("name", [name for name in EVERY if "depth" not in name])  # its tree has names
def test_other_classes_are_refused(name):
    names, row = ["cat", "dog", "bus"], given_as(name, np.array([[0.2, 0.3, 0.5]]))
    state = EVERY[name](3).update([0], row, class_names=names)
    with pytest.raises(ValueError, match="classes"):
        state.update([0], given_as(name, np.array([[0.2, 0.8]])))
    with pytest.raises(ValueError, match="class 1 of the chunk is 'bus' but was 'dog' before"):
        state.update([0], row, class_names=["cat", "bus", "dog"])
    other = EVERY[name](3).update([0], row, class_names=names[::-1])
    with pytest.raises(ValueError, match="class 0 of the chunk is 'bus'"):
        state.merge(other)
    assert state.n_samples == 1


@every_state
def test_other_states_are_refused(name):
    data = in_form(name, small_sample())
    state = feed(EVERY[name](3), data, 0, 30)
    other = MAKERS["binned" if "scores" in name else "scores"](3)
    with pytest.raises(TypeError, match="cannot be merged"):
        state.merge(other)


@pytest.mark.parametrize(
    ("one", "other"), [("subset", "confidence"), ("subset", "compacted"), ("kernel", "multinomial")]
)
def test_other_parameters_are_refused(one, other):
    data = small_sample()
    with pytest.raises(ValueError, match="different parameters"):
        feed(MAKERS[one](3), data, 0, 9).merge(feed(MAKERS[other](3), data, 9, 30))


def test_bad_rows_are_refused_by_the_gate():
    with pytest.raises(ValueError, match="does not sum to 1"):
        MAKERS["scores"](2).update([0], [[0.2, 0.2]])
    with pytest.raises(ValueError, match="first_row"):
        MAKERS["scores"](2).update([0], [[0.2, 0.8]], first_row=-1)


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "a.polycal"
    save_object(path, {"is": "state/no such"}, {})
    with pytest.raises(ValueError, match="cannot be read as a state"):
        pc.load(path)


def test_states_print():
    assert repr(MAKERS["scores"](2).update([0], [0.5])) == "ScoreState(n_samples=1, n_classes=2)"


def test_what_refuses_to_merge_stays_as_it_was():
    empty = ClassesState(resolution=0.1)
    with pytest.raises(ValueError, match="different parameters"):
        empty.merge(ClassesState(resolution=0.2).update([0], [[0.2, 0.3, 0.5]]))
    assert empty.n_classes is None
    assert empty.update([0], [[0.2, 0.8]]).n_classes == 2


def test_names_are_remembered_before_the_first_row(tmp_path):
    QuestionState(["dog"], class_names=["cat", "dog"]).save(tmp_path / "a.polycal")
    loaded = pc.load(tmp_path / "a.polycal").update([1, 0], [[0.2, 0.8], [0.6, 0.4]])
    assert loaded.finish().predicted == pytest.approx(0.6)
