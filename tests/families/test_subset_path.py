"""The worst sets of few classes: found together, as good as if each size were searched alone."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests import reference_subset

import polycal as pc
from polycal._validation import check_sample
from polycal.families._landscape_lists import shrunken_landscape
from polycal.families._subset_climb import path_sizes
from polycal.families._subset_tree import _Branch
from polycal.families.subset import SubsetAuditor
from polycal.measures.smooth import smooth_error
from polycal.sample import ask_subset


def case(seed=0, n_classes=30, n_rows=1500, kind="confusion", weight=None):
    labels, proba = reference_subset.random_case(np.random.default_rng(seed), n_classes, n_rows, kind)
    return check_sample(labels, proba, sample_weight=weight)


def sizes_of(path):
    return [witness.members.size for witness in path.witnesses]


@pytest.mark.parametrize(
    ("limit", "n_classes", "sizes"),
    [
        (2, 3, []),
        (9, 10, [1, 2, 3]),
        (29, 30, [1, 2, 3, 5, 8, 13]),
        (3, 30, [1, 2]),
        (1, 30, []),
        (999, 1000, [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377]),
    ],
)
def test_sizes(limit, n_classes, sizes):
    assert path_sizes(limit, n_classes) == sizes


@pytest.mark.parametrize(("stop", "room"), [(5, 2), (6, 6), (4, 1), (3, 0)])
def test_the_sizes_of_a_branch_are_those_of_its_subsets(stop, room):
    branch = _Branch((7,), 0, stop, room)
    assert branch.sizes().tolist() == [branch.subset(number).size for number in range(branch.size())]


@pytest.mark.parametrize("n_classes", [3, 9, 30])
@pytest.mark.parametrize("max_size", [None, 2, 5])
def test_sets_grow_and_all_differ(n_classes, max_size):
    path = SubsetAuditor(max_size).find_path(case(1, n_classes))
    sizes = sizes_of(path)
    assert sizes == sorted(sizes)
    assert sizes[-1] <= (max_size or n_classes)
    assert len({tuple(witness.members) for witness in path.witnesses}) == len(sizes)
    assert 0 <= path.strongest < len(sizes)


def test_each_size_is_as_high_as_if_it_were_searched_alone():
    ratios = []
    for seed in range(6):
        sample = case(seed, 40, 2000, ["confusion", "confidence"][seed % 2])
        landscape = shrunken_landscape(sample)
        for witness in SubsetAuditor().find_path(sample).witnesses:
            alone = SubsetAuditor(witness.members.size).find(sample)
            value, reached = (landscape.at(np.isin(np.arange(40), w.members)).value for w in (witness, alone))
            ratios.append(value / reached)
    assert min(ratios) > 0.9
    assert np.mean(ratios) > 0.995


def test_among_few_classes_each_size_is_the_worst_of_all():
    sample = case(5, 7, 4000, "confidence")
    path = SubsetAuditor().find_path(sample)
    for size, witness in zip((1, 2), path.witnesses, strict=False):
        best = reference_subset.largest_error(sample, size)
        assert smooth_error(ask_subset(sample, witness.members)) >= 0.8 * best


def test_the_whole_of_a_planted_set_ends_the_path():
    made = pc.datasets.make_shifted_subset(6000, 40, error=0.2, random_state=0)
    path = SubsetAuditor().find_path(check_sample(made.labels, made.proba))
    assert set(path.witnesses[-1].subset) in ({*made.subset}, set(range(40)) - {*made.subset})


def test_order_names_and_rows_of_weight_0_do_not_matter():
    sample = case(7)
    path = [w.subset for w in SubsetAuditor().find_path(sample).witnesses]
    shuffled = sample.take(np.random.default_rng(0).permutation(sample.n_samples))
    assert [w.subset for w in SubsetAuditor().find_path(shuffled).witnesses] == path
    new = np.random.default_rng(1).permutation(sample.n_classes)
    renamed = check_sample(np.argsort(new)[sample.labels], np.ascontiguousarray(sample.proba[:, new]))
    assert [sorted(new[w.members]) for w in SubsetAuditor().find_path(renamed).witnesses] == path
    weight = (np.arange(sample.n_samples) % 3 > 0).astype(float)
    kept = [w.subset for w in SubsetAuditor().find_path(sample.take(weight > 0)).witnesses]
    weighted = check_sample(sample.labels, sample.proba, sample_weight=weight)
    assert [w.subset for w in SubsetAuditor().find_path(weighted).witnesses] == kept


def test_a_handful_of_rows_and_two_classes():
    for sample in (case(8, 5, 3, "noise"), case(9, 2, 50, "noise")):
        assert len(SubsetAuditor().find_path(sample).witnesses) >= 1


def test_lists_have_a_path_too():
    sample = case(10, 60, 800)
    top = np.argsort(-sample.proba, axis=1)[:, :5]
    rows = np.repeat(np.arange(800), 5)
    values = np.take_along_axis(sample.proba, top, axis=1).ravel()
    listed = csr_array((values, (rows, top.ravel())), shape=sample.proba.shape)
    for remainder in ("unknown", "spread"):
        path = SubsetAuditor().find_path(check_sample(sample.labels, listed, remainder=remainder))
        sizes = sizes_of(path)
        assert sizes[0] == 1
        assert len(sizes) > 2
