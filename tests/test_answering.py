"""Answers at the right depth: the risk is kept, and answers are more specific than at the leaves."""

import numpy as np
import pytest
from benchmarks.trees import drawn, true_risk
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import polycal as pc
from tests.reference_answers import answer_of, certified, holds

TREE = {"a": {"b": ["0", "1"], "c": ["2", "3"]}, "d": ["4", "5"]}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), weighted=st.booleans(), risk=st.sampled_from([0.1, 0.3, 0.6]))
def test_it_is_what_a_walk_row_by_row_finds(seed, weighted, risk):
    rng = np.random.default_rng(seed)
    labels, proba, _ = drawn(int(rng.integers(1, 60)), seed)
    weight = rng.integers(0, 3, labels.size) + np.eye(1, labels.size)[0] if weighted else None
    model = pc.AnswerDepth(TREE, risk=risk, n_thresholds=9, random_state=3).fit(proba, labels, weight)
    threshold, wrong, specificity = certified(TREE, proba, labels, weight, risk, 0.05, 9, 3)
    assert (model.certificate_ is None) == (threshold is None)
    assert model.specificity_ == pytest.approx(specificity)
    if threshold is not None:
        assert model.certificate_.threshold == pytest.approx(threshold)
        assert model.certificate_.risk == pytest.approx(wrong)
        assert model.certificate_.risk <= model.certificate_.at_most <= risk
    walked = [answer_of(TREE, row, np.inf if threshold is None else threshold) for row in proba]
    assert model.predict(proba).tolist() == ["/".join(path) or "anything" for path, _ in walked]
    assert model.answer(proba).proba == pytest.approx([chance for _, chance in walked])
    right = model.is_right(model.answer(proba).nodes, labels)
    assert right.tolist() == [holds(TREE, path, y) for (path, _), y in zip(walked, labels, strict=True)]


def test_the_risk_is_kept():
    broken = 0
    population = drawn(20_000, 1000)
    for seed in range(40):
        labels, proba, _ = drawn(400, seed)
        model = pc.AnswerDepth(TREE, risk=0.15, alpha=0.1, n_thresholds=25).fit(proba, labels)
        broken += true_risk(model, population[1], population[2]) > 0.15
    # Of 40, with a chance of at most 0.1 each.
    assert broken <= 9


def test_answers_are_more_specific_than_at_the_leaves():
    labels, proba, _ = drawn(3000, 0)
    leaves = [str(c) for c in range(6)]
    deep, flat = (pc.AnswerDepth(tree, risk=0.15).fit(proba, labels) for tree in (TREE, leaves))
    assert deep.certificate_.at_most <= 0.15
    assert deep.specificity_ > flat.specificity_
    answers = deep.predict(proba[:50])
    assert {*answers} <= {*deep.taxonomy_.paths, "anything"}


def test_files_and_chunks_give_the_same_model(tmp_path):
    labels, proba, _ = drawn(500, 3)
    for number, rows in enumerate((slice(0, 120), slice(120, 500))):
        pc.write_predictions(tmp_path / f"{number}.npz", labels[rows], proba[rows])
    model = pc.AnswerDepth(TREE, risk=0.2)
    held = pc.AnswerDepth(TREE, risk=0.2).fit(proba, labels)
    assert model.fit_files(tmp_path).certificate_ == held.certificate_
    assert model.specificity_ == pytest.approx(held.specificity_)
    states = [model.state().update(labels[rows], proba[rows]) for rows in (slice(0, 50), slice(50, 500))]
    assert model.fit_state(states[0].merge(states[1])).certificate_ == held.certificate_


def test_a_fitted_model_is_saved(tmp_path):
    labels, proba, _ = drawn(300, 4)
    model = pc.AnswerDepth(TREE, risk=0.2).fit(proba, labels)
    with pytest.raises(ValueError, match="not fitted"):
        pc.AnswerDepth(TREE).save(tmp_path / "no.polycal")
    model.save(tmp_path / "depth.polycal")
    again = pc.load(tmp_path / "depth.polycal")
    assert again.predict(proba).tolist() == model.predict(proba).tolist()
    assert (again.certificate_, again.risk, again.specificity_) == (
        model.certificate_,
        0.2,
        model.specificity_,
    )
    assert "certified" in pc.AnswerDepth(TREE, risk=1e-9).fit(proba, labels)._repr_html_()
    assert "at most" in again._repr_html_()
    assert "no" in pc.AnswerDepth(TREE)._repr_html_()


def test_lists_count_what_is_listed():
    labels, proba, _ = drawn(400, 5)
    top = np.where(proba >= np.sort(proba, axis=1)[:, [3]], proba, 0.0)
    listed = pc.AnswerDepth(TREE, risk=0.2).fit(csr_array(top), labels)
    assert listed.certificate_.at_most <= 0.2
    filled = proba * (top > 0)
    walked = [answer_of(TREE, row, listed.certificate_.threshold) for row in filled]
    assert listed.predict(csr_array(top)).tolist() == ["/".join(path) or "anything" for path, _ in walked]


def test_where_nothing_is_certified_the_answer_is_anything():
    labels, proba, _ = drawn(5, 1)
    model = pc.AnswerDepth(TREE, risk=0.01).fit(proba, labels)
    assert model.certificate_ is None
    assert model.specificity_ == 0
    assert {*model.predict(proba)} == {"anything"}


def test_bad_input_is_refused():
    labels, proba, _ = drawn(50, 2)
    with pytest.raises(ValueError, match="not fitted"):
        pc.AnswerDepth(TREE).predict(proba)
    with pytest.raises(ValueError, match=r"'x' is no class; .* give class_names"):
        pc.AnswerDepth({"a": ["x"]}).fit(proba, labels)
    with pytest.raises(ValueError, match="classes"):
        pc.AnswerDepth(TREE).fit(proba, labels).predict(
            proba[:, :3] / proba[:, :3].sum(axis=1, keepdims=True)
        )
