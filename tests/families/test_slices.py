"""Slices: conditions, the search and the witness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference_slices as reference

import polycal as pc
from polycal._validation import check_features, check_sample
from polycal.families._slice_bins import Condition, Interval, column_bins
from polycal.families._slice_search import _asked, _statistics
from polycal.families.slices import SliceWitness, column_slices, slice_rows
from polycal.storage.saved import packed, unpacked


def table(seed, n=160):
    rng = np.random.default_rng(seed)
    day = np.datetime64("2024-01-01") + rng.integers(0, 400, n)
    text = rng.choice(["a", "b", "c"], n).astype(object)
    text[rng.random(n) < 0.1] = None
    number = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    return {
        "text": text,
        "number": number,
        "few": rng.integers(0, 4, n),
        "day": day,
        "truth": rng.random(n) < 0.4,
    }


FEW = settings(max_examples=5, deadline=None)


@FEW
@given(st.integers(0, 1000))
def test_every_bin_is_the_rows_that_its_condition_says(seed):
    columns = table(seed)
    features = check_sample(np.zeros(160, int), np.full((160, 2), 0.5), features=columns).features
    for name in columns:
        bins = column_bins(features, name, 5)
        for first, end in bins.spans().tolist():
            condition = bins.condition(first, end)
            inside = bins.inside(bins.codes, first, end)
            np.testing.assert_array_equal(condition.rows(features), inside)
            np.testing.assert_array_equal(reference.rows_of(columns, [condition]), inside)


def test_conditions_in_words_and_values():
    day = float(np.datetime64("2024-03-01", "s").astype(int))
    said = {
        Condition("sex", "category", "f"): ("sex is f", "f"),
        Condition("sex", "missing"): ("sex is missing", None),
        Condition("language", "whole", "", 2, 3): ("language is 2", 2),
        Condition("age", "whole", "", 18, 25): ("age is 18 to 24", Interval(18, 25)),
        Condition("age", "number", "", 18.5, 1e30): ("age is at least 18.5", Interval(18.5, None)),
        Condition("age", "number", "", -1e30, 3): ("age is below 3", Interval(None, 3)),
        Condition("age", "number", "", 1, 3): ("age is 1 to below 3", Interval(1, 3)),
        Condition("day", "date", "", day, 1e30): ("day is from 2024-03-01 on", Interval(day, None)),
        Condition("day", "date", "", -1e30, day): ("day is before 2024-03-01", Interval(None, day)),
    }
    for condition, (words, value) in said.items():
        assert condition.words() == words
        assert condition.value == value


@FEW
@given(st.integers(0, 1000))
def test_statistics_are_those_of_every_slice_by_itself(seed):
    columns = table(seed)
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(4), 160)
    labels = rng.integers(0, 4, 160)
    sample = check_sample(labels, proba, features=columns)
    questions = _asked(sample)
    statistics, kept = _statistics(sample, questions, 1 << 24, 0)
    assert kept is None
    sets = [[c] for c in range(4)] + [[a, b] for a in range(4) for b in range(a + 1, 4)]
    bins = column_bins(sample.features, "text", 5)
    sums = statistics.over(bins.codes, np.arange(160), bins.n_bins)
    for found, condition in zip(statistics.scores(sums), bins.conditions, strict=True):
        inside = slice_rows((condition,), sample.features)
        if inside.sum() >= 40:
            best = max(reference.statistic(proba, labels, members, inside) for members in sets)
            # Confidence is asked too, and may be worse.
            assert found >= best - 1e-3 * (1 + best)


def test_the_planted_slice_is_found_with_its_classes():
    data = pc.datasets.make_slices(6000, random_state=1)
    found = pc.SliceAuditor().find_witness(data.labels, data.proba, features=data.features)
    assert found.where() == "device is tablet"
    assert found.subset == [0, 1]


def test_a_planted_conjunction_is_found():
    data = pc.datasets.make_slices(12_000, pair=True, random_state=1)
    found = pc.SliceAuditor().find_witness(data.labels, data.proba, features=data.features)
    assert {condition.column for condition in found.conditions} == {"device", "region"}


def test_the_search_does_not_depend_on_order_and_names():
    data = pc.datasets.make_slices(4000, random_state=2)
    order = np.random.default_rng(0).permutation(4000)
    swap = np.array([3, 0, 1, 2, *range(4, 10)])
    first = pc.SliceAuditor().find_slices(data)
    shuffled = pc.SliceAuditor().find_slices(data.take(order))
    renamed = pc.SliceAuditor().find_slices(
        check_sample(np.argsort(swap)[data.labels], data.proba[:, swap], features=data.features)
    )
    assert (
        [w.where() for w in first[:3]]
        == [w.where() for w in shuffled[:3]]
        == [w.where() for w in renamed[:3]]
    )
    assert sorted(swap[renamed[0].inner.members]) == sorted(first[0].inner.members)


def test_weight_two_is_a_row_twice_for_the_search():
    data = pc.datasets.make_slices(3000, random_state=3)
    twice = data.take(np.repeat(np.arange(3000), 2))
    weighted = check_sample(data.labels, data.proba, sample_weight=np.full(3000, 2.0), features=data.features)
    one, other = (pc.SliceAuditor().find_slices(sample)[0] for sample in (twice, weighted))
    assert one.where() == other.where()


def test_thousands_of_categories_and_constant_columns_do_no_harm():
    rng = np.random.default_rng(0)
    data = pc.datasets.make_slices(3000)
    columns = {"key": rng.integers(0, 2500, 3000).astype(str), "same": np.ones(3000), "gone": [None] * 3000}
    found = pc.SliceAuditor().find_slices(check_sample(data.labels, data.proba, features=columns))
    assert all(c.column == "key" for w in found for c in w.conditions)
    with pytest.raises(ValueError, match="no column of features has two values"):
        pc.SliceAuditor().find_witness(data.labels, data.proba, features={"same": np.ones(3000)})


def test_a_witness_is_zero_outside_and_judged_inside():
    data = pc.datasets.make_slices(4000, random_state=1)
    fit, fresh = data.take(slice(0, 3000)), data.take(slice(3000, 4000))
    witness = pc.SliceAuditor().find(fit)
    inside = slice_rows(witness.conditions, fresh.features)
    values = witness(fresh.proba, features=fresh.features)
    assert not values[~inside].any()
    np.testing.assert_allclose(values[inside], witness.inner(fresh.proba[inside]))
    certificate = pc.certify(witness, fresh.labels, fresh.proba, features=fresh.features)
    other = pc.certify(witness.inner, fresh.labels[inside], fresh.proba[inside])
    assert certificate.lower_bound == other.lower_bound
    assert certificate.n_samples == inside.sum()
    with pytest.raises(ValueError, match="looks at features"):
        witness.evaluate(fresh.proba)
    with pytest.raises(ValueError, match="these rows have none"):
        witness.correlations(check_sample(fresh.labels, fresh.proba))
    with pytest.raises(ValueError, match="must hold categories"):
        witness(fresh.proba, features={"device": np.ones(1000)})


def test_a_witness_is_saved_without_pickle():
    data = pc.datasets.make_slices(3000, random_state=1)
    for witness in pc.SliceAuditor().find_slices(data)[:4]:
        again = unpacked(*packed(witness))
        assert isinstance(again, SliceWitness)
        assert again.describe() == witness.describe()
        np.testing.assert_array_equal(again.correlations(data), witness.correlations(data))


def test_columns_are_named_slices():
    data = pc.datasets.make_slices(2000)
    slices = column_slices(data.features, ("device", "age", "is_new"))
    assert list(slices)[:3] == ["device is phone", "device is laptop", "device is tablet"]
    masks = np.array([slice_rows(conditions, data.features) for conditions in slices.values()])
    # The slices of each column part its rows.
    np.testing.assert_array_equal(masks.sum(axis=0), 3)
    assert len([name for name in slices if name.startswith("age")]) == 5


def test_quarters_are_quarters():
    days = np.arange(np.datetime64("2024-01-01"), np.datetime64("2025-02-04"))
    when = np.random.default_rng(0).choice(days, 4000)
    features = check_features({"when": when}, 4000)
    shares = [
        slice_rows(conditions, features).mean() for conditions in column_slices(features, ("when",)).values()
    ]
    np.testing.assert_allclose(shares, 0.25, atol=0.04)
