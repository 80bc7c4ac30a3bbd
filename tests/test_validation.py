import numpy as np
import pytest

import polycal as pc
from polycal._validation import (
    check_auditor,
    check_auditors,
    check_choice,
    check_groups,
    check_integer,
    check_kernel,
    check_notion,
    check_notions,
    check_positive,
    check_proba,
    check_real,
    check_sample,
    check_statistic,
    check_subset,
    check_witness,
)

PROBA = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])


def sample_of(proba=PROBA, labels=(2, 1), **kwargs):
    return check_sample(labels, proba, **kwargs)


# --- what is accepted ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clean_predictions_are_not_copied(dtype):
    proba = np.ascontiguousarray(PROBA, dtype=dtype)
    assert np.shares_memory(sample_of(proba).proba, proba)


def test_float32_stays_float32_whatever_its_drift():
    proba = np.random.default_rng(0).dirichlet(np.ones(1000), 50).astype(np.float32) * np.float32(1 + 1e-5)
    out = sample_of(proba, np.zeros(50, int)).proba
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.sum(axis=1, dtype=np.float64), 1, atol=2e-7)


def test_float16_becomes_float32_and_is_renormalised():
    proba = np.random.default_rng(0).dirichlet(np.ones(20), 50).astype(np.float16)
    out = sample_of(proba, np.zeros(50, int)).proba
    assert out.dtype == np.float32
    np.testing.assert_allclose(out.sum(axis=1, dtype=np.float64), 1, atol=2e-7)


@pytest.mark.parametrize(
    "proba",
    [
        np.asfortranarray(PROBA),
        np.repeat(PROBA, 2, axis=1)[:, ::2],
        PROBA[::-1][::-1],
        PROBA.tolist(),
        tuple(map(tuple, PROBA)),
        PROBA.astype(object),
        PROBA.astype(np.longdouble),
        PROBA.astype(">f8"),
    ],
    ids=["fortran", "strided", "reversed", "list", "tuple", "object", "longdouble", "big-endian"],
)
def test_layouts(proba):
    out = sample_of(proba).proba
    assert out.flags.c_contiguous
    assert out.dtype.isnative
    np.testing.assert_array_equal(out, PROBA)


def test_read_only_predictions():
    proba = PROBA.copy()
    proba.flags.writeable = False
    assert np.shares_memory(sample_of(proba).proba, proba)


def test_one_hot_integers_are_predictions():
    np.testing.assert_array_equal(sample_of(np.eye(3, dtype=int), [0, 1, 2]).proba, np.eye(3))


def test_binary_vector_is_the_probability_of_class_one():
    np.testing.assert_array_equal(sample_of([0.25, 1.0], [0, 1]).proba, [[0.75, 0.25], [0.0, 1.0]])


def test_tiny_negatives_are_rounding():
    out = sample_of([[1.0 + 1e-17, -1e-17]], [0]).proba
    np.testing.assert_array_equal(out, [[1.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_only_when_said_so(dtype):
    logits = np.array([[0.0, -1.0, -60.0], [2.0, 2.0, -np.inf]], dtype=dtype)
    proba = sample_of(logits, from_logits=True).proba
    expected = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(proba, expected, atol=1e-6)
    assert proba.dtype == np.promote_types(dtype, np.float32)
    assert proba[1, 2] == 0
    np.testing.assert_allclose(sample_of([0.0, 100.0], [0, 1], from_logits=True).proba[:, 1], [0.5, 1.0])


@pytest.mark.parametrize(
    "labels",
    [
        [2, 1],
        np.array([2, 1], dtype=np.uint8),
        np.array([2.0, 1.0]),
        np.array([2, 1], dtype=object),
        np.array(["c", "b"]),
        np.array(["c", "b"], dtype=object),
        np.array([b"c", b"b"]),
    ],
)
def test_labels(labels):
    sample = sample_of(labels=labels, class_names=["a", "b", "c"])
    np.testing.assert_array_equal(sample.labels, [2, 1])
    assert sample.labels.dtype == np.int64
    assert sample.class_names == ("a", "b", "c")


def test_boolean_labels_are_zero_and_one():
    np.testing.assert_array_equal(sample_of([0.2, 0.9], [False, True]).labels, [0, 1])


def test_names_that_are_no_strings_are_read_as_text():
    assert sample_of(class_names=[10, 20, 30]).class_names == ("10", "20", "30")


def test_weights_are_float64():
    sample = sample_of(sample_weight=[1, 3])
    np.testing.assert_array_equal(sample.sample_weight, [1.0, 3.0])
    np.testing.assert_array_equal(sample.mass, [0.25, 0.75])


# --- what is refused: the whole table of bad input goes through every public function in
# --- test_public_api.py; here are the messages -----------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"proba": [[0.5, np.nan], [0.5, 0.5]]}, r"y_proba\[0\] holds a NaN or an infinity"),
        ({"proba": [[0.5, 0.5], [np.inf, 0.5]]}, r"y_proba\[1\] holds a NaN or an infinity"),
        ({"proba": [[0.5, 0.5], [-0.5, 1.5]]}, r"y_proba\[1\] holds a negative probability: -0.5"),
        ({"proba": [[0.5, 0.5], [1.6, 1.6]]}, r"y_proba\[1\] does not sum to 1; its sum is 3.2. .*logits"),
        ({"proba": [0.2, 1.2]}, r"y_proba\[1\] is not a probability: 1.2"),
        ({"proba": [[[0.5]]]}, "must have shape"),
        ({"proba": [[0.5], [0.5]]}, "has 1 column.*ravel"),
        ({"proba": np.empty((0, 3)), "labels": []}, "y_proba is empty"),
        ({"proba": [[0.5, 0.5], [1.0]]}, "rows of equal length"),
        ({"labels": [2]}, "y_true has 1 entries but y_proba has 2 rows"),
        ({"labels": []}, "y_true is empty"),
        ({"labels": [[2], [1]]}, r"shape \(2, 1\). Use y_true.ravel\(\)"),
        ({"labels": [[0, 1, 0], [1, 0, 0]]}, r"argmax\(axis=1\)"),
        ({"labels": [[[0]]]}, "one-dimensional"),
        ({"labels": [2, 3]}, r"y_true\[1\] is outside 0..2: 3"),
        ({"labels": [-1, 0]}, r"y_true\[0\] is outside 0..2: -1"),
        ({"labels": [0.5, 1]}, r"y_true\[0\] is not a whole number: 0.5"),
        ({"labels": [np.nan, 1]}, r"y_true\[0\] is missing"),
        (
            {"labels": np.array(["a", None], dtype=object), "class_names": ["a", "b", "c"]},
            r"y_true\[1\] is missing",
        ),
        ({"labels": ["a", "b"]}, "pass class_names"),
        ({"labels": ["a", "z"], "class_names": ["a", "b", "c"]}, r"y_true\[1\] is 'z', which is not one of"),
        ({"class_names": ["a", "b"]}, "class_names has 2 names but y_proba has 3 columns"),
        ({"class_names": ["a", "b", "a"]}, "class_names holds 'a' twice"),
        ({"sample_weight": [1.0]}, "sample_weight has 1 entries but"),
        ({"sample_weight": [1.0, -1.0]}, r"sample_weight\[1\] is negative: -1"),
        ({"sample_weight": [np.nan, 1.0]}, r"sample_weight\[0\] is not finite"),
        ({"sample_weight": [0.0, 0.0]}, "sample_weight sums to 0"),
        ({"sample_weight": [1e308, 1e308]}, "sample_weight sums to inf"),
        ({"labels": np.array([2**63, 1], dtype=np.uint64)}, r"y_true\[0\] is outside 0..2: 9.22337204e\+18"),
        ({"sample_weight": [[1.0], [1.0]]}, "sample_weight must be of shape"),
        (
            {"proba": [[np.nan, 0.0], [0.0, 0.0]], "from_logits": True},
            r"y_proba\[0\] has no finite largest logit",
        ),
        ({"proba": [[-np.inf, -np.inf], [0.0, 0.0]], "from_logits": True}, "no finite largest logit"),
    ],
)
def test_values_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        sample_of(**kwargs)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"proba": [["a", "b"], ["c", "d"]]}, "y_proba must hold real numbers"),
        ({"proba": np.array([[0.5, "x"], [0.5, 0.5]], dtype=object)}, "y_proba must hold real numbers"),
        ({"proba": np.ones((2, 2), dtype=complex)}, "y_proba must hold real numbers"),
        ({"labels": np.array([1 + 1j, 1])}, "class indices or class names"),
        ({"sample_weight": ["a", "b"]}, "sample_weight must be numbers"),
        ({"class_names": "abc"}, "not one string"),
    ],
)
def test_types_refused(kwargs, message):
    with pytest.raises(TypeError, match=message):
        sample_of(**kwargs)


def test_the_row_is_right_in_later_blocks():
    proba = np.full((400_000, 4), 0.25)
    proba[390_001, 2] = 0.7
    with pytest.raises(ValueError, match=r"y_proba\[390001\] does not sum to 1; its sum is 1.45"):
        check_proba(proba)


def test_numbers_made_in_single_precision_are_judged_by_it():
    proba = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]], dtype=np.float32) * np.float32(1 + 1e-6)
    stored = proba.astype(np.float64)
    assert np.abs(stored.sum(axis=1) - 1).max() > 1e-7
    np.testing.assert_allclose(check_proba(stored)[0].sum(axis=1), 1, atol=1e-15)
    with pytest.raises(ValueError, match=r"y_proba\[0\] does not sum to 1"):
        check_proba(stored + 1e-9)


@pytest.mark.parametrize(("dtype", "drift"), [(np.float16, 0.02), (np.float32, 3e-4), (np.float64, 1e-8)])
def test_the_tolerance_is_that_of_the_dtype(dtype, drift):
    proba = np.array([[0.5, 0.5]], dtype=dtype)
    check_proba(proba * dtype(1 + drift))
    with pytest.raises(ValueError, match="does not sum to 1"):
        check_proba(proba * dtype(1 + 4 * drift))


# --- subsets, groups and scalars ------------------------------------------------------------------


def test_subsets_by_index_name_or_single_member():
    sample = sample_of(class_names=["a", "b", "c"])
    for subset in ([2, 0], ["c", "a"], np.array([0, 2]), {"a", "c"}):
        np.testing.assert_array_equal(check_subset(subset, sample), [0, 2])
    np.testing.assert_array_equal(check_subset("b", sample), [1])
    np.testing.assert_array_equal(check_subset(1, sample), [1])
    assert check_subset(None, sample) is None


@pytest.mark.parametrize(
    ("subset", "error", "message"),
    [
        ([], ValueError, "subset is empty"),
        ([3], ValueError, r"subset holds class 3, outside 0..2"),
        ([0, 0], ValueError, "names class 0 more than once"),
        (["z"], ValueError, "'z', which is not one of"),
        ([0.5], TypeError, "class indices or names; got 0.5"),
        ([True], TypeError, "class indices or names; got True"),
        (3.0, TypeError, "must be a list"),
        ({"a": 1}, TypeError, "must be a list"),
    ],
)
def test_subsets_refused(subset, error, message):
    with pytest.raises(error, match=message):
        check_subset(subset, sample_of(class_names=["a", "b", "c"]))


def test_names_need_class_names():
    with pytest.raises(ValueError, match="pass class_names"):
        check_subset(["a"], sample_of())


def test_groups():
    sample = sample_of(class_names=["a", "b", "c"])
    assert check_groups(None, sample) == {}
    np.testing.assert_array_equal(check_groups({"ab": ["b", 0]}, sample)["ab"], [0, 1])
    with pytest.raises(ValueError, match=r"groups\['x'\] holds 'z'"):
        check_groups({"x": ["z"]}, sample)
    with pytest.raises(TypeError, match="groups must map"):
        check_groups([["a"]], sample)


@pytest.mark.parametrize("wrong", [0, 1.5, True, "3", None])
def test_integers_refused(wrong):
    with pytest.raises(ValueError, match="n_bins must be an integer, at least 1"):
        check_integer(wrong, "n_bins", minimum=1)


@pytest.mark.parametrize("wrong", [0, 5, 2.0])
def test_integers_within_limits(wrong):
    assert check_integer(4, "degree", minimum=1, maximum=4) == 4
    with pytest.raises(ValueError, match=f"degree must be an integer from 1 to 4; got {wrong}"):
        check_integer(wrong, "degree", minimum=1, maximum=4)


@pytest.mark.parametrize("wrong", [0, -1, 3, True, "1", None, np.nan])
def test_positive_numbers(wrong):
    assert check_positive(1e-300, "scale") == 1e-300
    with pytest.raises(ValueError, match="scale must be a positive number, at most 2; got"):
        check_positive(wrong, "scale", high=2)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, True, "3", None, np.nan])
def test_reals_refused(wrong):
    with pytest.raises(ValueError, match="alpha must be a number from 0 to 1"):
        check_real(wrong, "alpha", low=0, high=1)


def test_choices():
    assert check_choice("a", "letter", ("a", "b")) == "a"
    with pytest.raises(ValueError, match="letter must be one of 'a', 'b'; got 'c'"):
        check_choice("c", "letter", ("a", "b"))


OBJECTS = {
    check_kernel: (pc.Gaussian(0.2), "kernel must be a kernel such as"),
    check_notion: (pc.Confidence(), "notion must be a notion such as"),
    check_witness: (
        pc.SubsetAuditor().find_witness([0, 1, 1], [0.2, 0.6, 0.7]),
        "witness must be a witness, as an auditor finds it",
    ),
    check_auditor: (pc.SubsetAuditor(), "auditor must be an auditor such as"),
}


@pytest.mark.parametrize("check", OBJECTS)
def test_objects_are_known_by_what_they_can_do(check):
    right, message = OBJECTS[check]
    assert check(right) is right
    # A class is not an object of it, though it has the same methods.
    for wrong in (None, 3, type(right)):
        with pytest.raises(TypeError, match=message):
            check(wrong)


@pytest.mark.parametrize("check", [check_notion, check_auditor])
def test_names_that_are_not_known(check):
    with pytest.raises(ValueError, match="notion 'a name' is not one of confidence, top-label"):
        check("a name")


def test_several_notions_or_auditors():
    assert check_notions([pc.Confidence()]) == (pc.Confidence(),)
    assert check_auditors({"a": pc.SubsetAuditor()}) == {"a": pc.SubsetAuditor()}
    assert check_notions(pc.Confidence()) == check_notions("confidence") == (pc.Confidence(),)
    assert list(check_auditors([pc.SubsetAuditor(), "kernel"]).values()) == [
        pc.SubsetAuditor(),
        pc.KernelAuditor(),
    ]
    with pytest.raises(TypeError, match="notions must be a list of notions"):
        check_notions({"a": pc.Confidence()})
    with pytest.raises(TypeError, match=r"notions\[1\] must be a notion"):
        check_notions([pc.Confidence(), 3])
    with pytest.raises(TypeError, match=r"auditors\['a'\] must be an auditor"):
        check_auditors({"a": pc.Confidence()})


def test_statistics():
    sample = sample_of()
    assert check_statistic(lambda sample: sample.n_samples)(sample) == 2.0
    assert check_statistic(pc.Confidence())(sample) == pc.Confidence().estimate(sample).value
    for wrong in (pc.Confidence, 3):
        with pytest.raises(TypeError, match="or a function of a Sample"):
            check_statistic(wrong)


def test_each_row_is_judged_by_itself():
    proba = np.random.default_rng(0).dirichlet(np.ones(4), 60).astype(np.float32)
    proba[::7] *= np.float32(1 + 1e-5)
    whole = check_proba(proba)[0]
    parts = np.concatenate([check_proba(proba[i : i + 7])[0] for i in range(0, 60, 7)])
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("n_classes", [2, 100, 1000, 5000])
def test_a_softmax_is_not_copied_and_the_gate_changes_nothing_twice(n_classes):
    logits = np.random.default_rng(0).normal(size=(200, n_classes))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.shares_memory(check_proba(proba)[0], proba)
    once = check_proba(proba * (1 + 1e-10))[0]
    np.testing.assert_array_equal(check_proba(once)[0], once)
