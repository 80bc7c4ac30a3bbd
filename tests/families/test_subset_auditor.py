import numpy as np
import pytest
from benchmarks.data import data_folder
from hypothesis import given, settings
from tests import reference_subset
from tests.strategies import samples

import polycal as pc
from benchmarks import subsets
from polycal._threads import thread_budget
from polycal._validation import check_sample
from polycal.families import subset
from polycal.families.questions import SubsetWitness
from polycal.families.subset import SubsetAuditor
from polycal.measures.smooth import smooth_curve, smooth_error
from polycal.sample import Sample, ask_subset


def planted(n_rows, seed, n_classes=60, strength=0.5, n_members=20):
    """Predictions that are too sure about "is the label one of the first `n_members` classes?", else right."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.1), n_rows)
    inside = np.arange(n_classes) < n_members
    share = proba[:, inside].sum(axis=1)
    wanted = share + strength * (0.5 - share) * 2 * np.minimum(share, 1 - share)
    factor = np.where(inside, (wanted / share)[:, None], ((1 - wanted) / (1 - share))[:, None])
    truth = proba * factor
    return check_sample(reference_subset.draw_labels(truth / truth.sum(axis=1, keepdims=True), rng), proba)


def fresh_error(auditor, sample, fresh):
    return smooth_error(ask_subset(fresh, auditor.find(sample).members))


def test_the_witness_holds_the_best_weight_function_of_its_set():
    sample = planted(2000, 0)
    witness = SubsetAuditor().find_witness(sample.labels, sample.proba)
    assert isinstance(witness, SubsetWitness)
    value = smooth_curve(ask_subset(sample, witness.members)).value
    assert witness.correlation(sample) == pytest.approx(value, abs=1e-9)


def test_a_subset_has_names_where_classes_do():
    sample = planted(500, 1, n_classes=5, n_members=2)
    names = [f"class {c}" for c in range(5)]
    witness = SubsetAuditor().find_witness(sample.labels, sample.proba, class_names=names)
    assert witness.subset == [names[c] for c in witness.members]
    assert SubsetAuditor().find_witness(sample.labels, sample.proba).subset == witness.members.tolist()


@settings(max_examples=60, deadline=None)
@given(samples())
def test_any_sample_gets_a_proper_set(data):
    labels, proba, weight = data
    witness = SubsetAuditor(max_size=2).find_witness(labels, proba, sample_weight=weight)
    assert 1 <= len(witness.subset) <= 2
    assert len(witness.subset) < proba.shape[1]


@pytest.mark.parametrize("max_size", [None, 5])
def test_row_order_does_not_matter(max_size):
    sample = planted(800, 2)
    shuffled = sample.take(np.random.default_rng(0).permutation(800))
    auditor = SubsetAuditor(max_size)
    assert auditor.find(shuffled).subset == auditor.find(sample).subset


@pytest.mark.parametrize("max_size", [None, 5])
def test_relabelling_classes_relabels_the_set(max_size):
    sample = planted(800, 3)
    new = np.random.default_rng(0).permutation(60)
    relabelled = check_sample(np.argsort(new)[sample.labels], np.ascontiguousarray(sample.proba[:, new]))
    auditor = SubsetAuditor(max_size)
    assert sorted(new[auditor.find(relabelled).members]) == auditor.find(sample).subset


def test_rows_of_weight_0_do_not_matter():
    sample = planted(600, 4)
    weight = (np.arange(600) % 3 > 0).astype(float)
    kept = sample.take(weight > 0)
    weighted = Sample(sample.proba, sample.labels, weight)
    assert SubsetAuditor().find(weighted).subset == SubsetAuditor().find(kept).subset


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_number_of_threads_does_not_matter(n_jobs):
    sample = planted(600, 5)
    expected = SubsetAuditor().find(sample).subset
    with thread_budget(n_jobs):
        assert SubsetAuditor().find(sample).subset == expected


def test_more_rows_find_more():
    fresh = planted(40_000, 100)
    truth = smooth_error(ask_subset(fresh, np.arange(20)))
    means = [
        np.mean([fresh_error(SubsetAuditor(), planted(n, seed), fresh) for seed in range(4)])
        for n in (500, 3000, 18_000)
    ]
    assert means[0] < means[1] < means[2]
    assert means[2] > 0.8 * truth


@pytest.mark.slow
def test_shrinking_finds_more_than_the_plain_search_where_rows_are_few():
    def biased(n_rows, seed):
        """Over-confident predictions with a taste for some classes."""
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet(np.full(80, 0.05), n_rows)
        taste = np.random.default_rng(0).normal(size=80)
        proba = truth * np.exp(0.3 * taste)
        return check_sample(
            reference_subset.draw_labels(truth, rng), proba / proba.sum(axis=1, keepdims=True)
        )

    fresh = biased(40_000, 100)
    pairs = [(biased(1000, seed), seed) for seed in range(8)]
    shrunken = [fresh_error(SubsetAuditor(), sample, fresh) for sample, _ in pairs]
    plain = [smooth_error(ask_subset(fresh, subset.search_subsets(sample).members)) for sample, _ in pairs]
    assert np.mean(shrunken) > 1.05 * np.mean(plain)


@pytest.mark.slow
@pytest.mark.skipif(data_folder() is None, reason="no folder of predictions (POLYCAL_DATA)")
def test_real_subsets_hold_on_unseen_rows():
    rows = list(subsets.unseen_rows(n_splits=1))
    # With few classes, 200 random subsets are nearly all; with few rows a class, there is little to find.
    fair = [row for row in rows if row["n_classes"] > 20 and row["rows_per_class"] >= 10]
    assert len(fair) >= 1
    assert np.mean([row["ratio"] for row in fair]) > 1.7
    assert all(row["correlation"] > 0 for row in rows)


def test_many_classes_and_few_rows():
    rng = np.random.default_rng(7)
    proba = rng.dirichlet(np.full(1000, 0.01), 400)
    witness = SubsetAuditor().find_witness(reference_subset.draw_labels(proba, rng), proba)
    assert 1 <= len(witness.subset) <= 500


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_size": 0}, "max_size must be an integer, at least 1"),
        ({"n_starts": -1}, "n_starts must be an integer, at least 0"),
        ({"random_state": 0.5}, "random_state must be an integer, at least 0"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        SubsetAuditor(**parameters)


def test_no_random_starts_are_needed():
    sample = planted(800, 8)
    assert len(SubsetAuditor(n_starts=0).find(sample).subset) >= 1


@pytest.mark.parametrize("n_classes", [8, 40])
@pytest.mark.parametrize("seed", range(3))
def test_finds_a_set_none_of_whose_classes_is_wrong_by_itself(n_classes, seed):
    made = pc.hardness.make_hidden_subset(6000, n_classes, random_state=seed)
    witness = pc.SubsetAuditor(random_state=seed).find_witness(made.labels, made.proba)
    found = pc.smooth_calibration_error(made.labels, made.proba, subset=witness.members)
    assert found > 0.9 * pc.hardness.largest_hidden_error(n_classes)
