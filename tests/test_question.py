import numpy as np

from polycal._validation import check_sample
from polycal.sample import ask, ask_confidence, ask_subset, subset_words

SAMPLE = check_sample([0, 2], [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], class_names=["a", "b", "c"])


def test_the_first_of_equals_is_the_top_class():
    top, confidence = SAMPLE.top_class()
    np.testing.assert_array_equal(top, [0, 2])
    np.testing.assert_array_equal(confidence, [0.5, 0.5])


def test_confidence_asks_whether_the_top_class_is_right():
    np.testing.assert_array_equal(ask_confidence(SAMPLE).hits, [True, True])


def test_subset_question():
    question = ask_subset(SAMPLE, np.array([1, 2]))
    np.testing.assert_array_equal(question.predicted, [0.5, 0.75])
    np.testing.assert_array_equal(question.hits, [False, True])


def test_default_question():
    assert ask(SAMPLE).text == "is the most likely class right?"
    binary = check_sample([1], [0.25])
    np.testing.assert_array_equal(ask(binary).predicted, [0.25])


def test_words():
    big = check_sample([0], [np.full(8, 1 / 8)])
    assert subset_words(np.array([0]), SAMPLE.name) == "is it a?"
    assert subset_words(np.array([0, 1, 2]), SAMPLE.name) == "is it a, b or c?"
    assert subset_words(np.arange(13), big.name) == "is it 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or 12?"
    assert subset_words(np.arange(14), big.name) == "is it one of 14 classes (0, 1, 2, ...)?"
