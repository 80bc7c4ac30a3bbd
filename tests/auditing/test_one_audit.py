"""The same rows give the same audit, wherever they are and however they are cut."""

from itertools import pairwise

import numpy as np
import pytest

import polycal as pc
from polycal.auditing import source
from polycal.auditing.passes import is_searched
from polycal.io.chunks import PredictionFiles

GROUPS = {"footwear": [5, 7, 9], "tops": [0, 2, 4, 6]}
NOTIONS = [pc.Confidence(), pc.Classwise(smooth=True), pc.SubsetSmooth(2), pc.LowDegree(1), pc.Sigmoid(2)]
LOSSES = {"guess": {"yes": {"6": 0, "default": 1}, "no": {"6": 5, "default": 0}, "ask": 0.5}}
# Rows are held, or go by: 1,000 rows of ten classes are the most that are held then.
REGIMES = {"held": 1 << 22, "streamed": 20_000}
AUDITORS = {"pairs": pc.SubsetAuditor(max_size=2), "kernel": pc.KernelAuditor(pc.Gaussian(0.4))}


@pytest.fixture(scope="module")
def example():
    return pc.datasets.load_fashion("evaluation").take(slice(0, 3000))


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(0).integers(0, 3, 3000).astype(float)


@pytest.fixture(scope="module")
def calibrator():
    fit = pc.datasets.load_fashion("calibration")
    return pc.TemperatureScaling().fit(fit.proba, fit.labels)


@pytest.fixture(params=REGIMES)
def regime(request, monkeypatch):
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES[request.param])
    return request.param


def write(folder, example, weight, cuts, suffix=".parquet"):
    """The rows in several files."""
    folder.mkdir()
    for number, (start, stop) in enumerate(pairwise(cuts)):
        rows = slice(start, stop)
        pc.write_predictions(
            folder / f"{number}{suffix}",
            example.labels[rows],
            example.proba[rows],
            sample_weight=None if weight is None else weight[rows],
        )
    return folder


def assert_same(one, other):
    """Equal to 1e-9, whatever the kind of thing."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, float):
        assert one == pytest.approx(other, abs=1e-9, nan_ok=True)
    else:
        assert one == other


def options(calibrator):
    return {
        "default": {"groups": GROUPS},
        "notions": {"notions": NOTIONS, "auditors": {}},
        "calibrator": {"groups": GROUPS, "losses": LOSSES, "calibrator": calibrator, "notions": ()},
        "auditors": {"auditors": AUDITORS, "notions": (), "alpha": 0.1, "random_state": 3},
    }


@pytest.mark.parametrize("choice", ["default", "notions", "calibrator", "auditors"])
@pytest.mark.parametrize("weighted", [False, True])
def test_memory_files_chunks_and_threads_give_one_audit(
    regime, choice, weighted, example, weight, calibrator, tmp_path, monkeypatch
):
    weight = weight if weighted else None
    chosen = options(calibrator)[choice]
    expected = pc.audit(example.labels, example.proba, sample_weight=weight, **chosen).to_dict()
    assert bool(expected["approximations"]) == (regime == "streamed")
    assert expected["weighted"] == weighted
    one = write(tmp_path / "one", example, weight, [0, 3000], ".npz")
    three = write(tmp_path / "three", example, weight, [0, 1200, 1201, 3000])
    assert_same(pc.audit_stream(one, n_jobs=1, **chosen).to_dict(), expected)
    monkeypatch.setattr(PredictionFiles, "chunk_rows", 577)
    assert_same(pc.audit_stream(three, n_jobs=3, memory="600MiB", **chosen).to_dict(), expected)


@pytest.mark.parametrize("choice", ["default", "calibrator"])
def test_dask_gives_the_same_audit(regime, choice, example, weight, calibrator, tmp_path):
    da = pytest.importorskip("dask.array")
    chosen = options(calibrator)[choice]
    expected = pc.audit(example.labels, example.proba, sample_weight=weight, **chosen).to_dict()
    files = write(tmp_path / "three", example, weight, [0, 1200, 1201, 3000])
    assert_same(pc.distributed.audit(files, **chosen).to_dict(), expected)
    arrays = tuple(
        da.from_array(a, chunks=(1034, *a.shape[1:])) for a in (example.labels, example.proba, weight)
    )
    assert_same(pc.distributed.audit(arrays, **chosen).to_dict(), expected)


def test_rows_that_go_by_are_measured_as_rows_that_are_held(example, monkeypatch):
    held = pc.audit(example.labels, example.proba, groups=GROUPS)
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES["streamed"])
    gone = pc.audit(example.labels, example.proba, groups=GROUPS)
    assert gone.scores == pytest.approx(held.scores)
    exact = {q.name: q for q in held.classes}
    for found in gone.classes:
        theirs = exact[found.name]
        assert found.smooth_error == pytest.approx(theirs.smooth_error, abs=2.0**-17)
        assert (found.predicted, found.frequency) == pytest.approx((theirs.predicted, theirs.frequency))
        assert found.chance == pytest.approx(theirs.chance)
    for found, theirs in zip(gone.groups, held.groups, strict=True):
        assert found.smooth_error == pytest.approx(theirs.smooth_error, abs=2.0**-17)
        assert found.noise_floor == pytest.approx(theirs.noise_floor, rel=0.4)
    for found, theirs in zip(gone.errors, held.errors, strict=True):
        assert found.estimate.notion == theirs.estimate.notion
        assert found.estimate.value <= theirs.estimate.value + 1e-12
        assert found.estimate.kind == "lower bound"
    assert gone.errors[0].estimate.value == pytest.approx(held.errors[0].estimate.value, abs=2e-5)
    assert gone.errors[0].noise_floor == pytest.approx(held.errors[0].noise_floor, rel=0.5)


def test_witnesses_of_searched_notions_are_measured_on_all_rows(example, monkeypatch):
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES["streamed"])
    notions = [pc.Sigmoid(4), pc.LowDegree(1)]
    found = pc.audit(example.labels, example.proba, notions=notions, auditors={})
    for error in found.errors:
        assert error.estimate.kind == "lower bound"
        assert error.estimate.n_samples == 3000
        on_all = error.estimate.witness.correlation(example)
        assert error.estimate.value == pytest.approx(on_all, abs=1e-6)


def test_the_result_says_from_which_size_on_it_is_approximate(example, monkeypatch):
    assert pc.audit(example.labels, example.proba, notions=(), auditors={}).approximations == ()
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES["streamed"])
    found = pc.audit(example.labels, example.proba, notions=(), auditors={})
    assert found.approximations[0].startswith("There are more than 1,000 rows of 10 classes")
    assert found.to_dict()["approximations"] == list(found.approximations)
    assert all(sentence in found.to_markdown() for sentence in found.approximations)


def test_the_most_rows_that_are_held():
    assert source.held_rows(100) == 41_943
    assert source.held_rows(1000) == 4_194
    assert source.held_rows(2) == source.held_rows(20) == 209_715


def test_parts_of_files_are_parts_of_the_audit(regime, example, tmp_path):
    evaluation = np.random.default_rng(1).random(3000) < 0.8
    np.savez(
        tmp_path / "a.npz",
        proba=example.proba,
        labels=example.labels,
        evaluation=evaluation,
        class_names=list("abcdefghij"),
    )
    found = pc.audit_stream(tmp_path / "a.npz", part="evaluation")
    part = pc.read_predictions(tmp_path / "a.npz", part="evaluation")
    expected = pc.audit(part.labels, part.proba, class_names=part.class_names)
    assert_same(found.to_dict(), expected.to_dict())


def test_rows_must_count(regime, tmp_path):
    np.savez(tmp_path / "a.npz", proba=[[0.5, 0.5]] * 4000, labels=[0, 1] * 2000, weight=np.zeros(4000))
    with pytest.raises(ValueError, match="the weights of all rows are 0"):
        pc.audit_stream(tmp_path)


def test_few_rows_are_measured_but_not_searched(tmp_path):
    pc.write_predictions(tmp_path / "a.parquet", [0, 1], [[0.5, 0.5], [0.2, 0.8]])
    few = pc.audit_stream(tmp_path)
    assert (few.n_samples, few.n_fit, few.findings) == (2, 0, ())
    assert few.worst is None


def test_files_that_were_opened_keep_what_was_chosen(example, tmp_path):
    files = pc.open_predictions(write(tmp_path / "a", example, None, [0, 3000]), memory="600MiB")
    for wrong in ({"part": "evaluation"}, {"memory": "512MiB"}):
        with pytest.raises(ValueError, match="the files were opened with"):
            pc.audit_stream(files, **wrong)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"alpha": 2}, ValueError, "alpha"),
        ({"kernel": "gaussian"}, TypeError, "kernel must be"),
        ({"groups": {"a": ["no such class"]}}, ValueError, "class"),
        ({"calibrator": "temperature"}, TypeError, "calibrator must be"),
    ],
)
def test_options_are_checked(wrong, error, message, example, tmp_path):
    files = write(tmp_path / "a", example, None, [0, 3000])
    with pytest.raises(error, match=message):
        pc.audit_stream(files, **wrong)
    with pytest.raises(error, match=message):
        pc.audit(example.labels, example.proba, **wrong)


def test_the_kernel_of_the_search_may_be_chosen(regime, example):
    found = pc.audit(example.labels, example.proba, notions=(), kernel=pc.Laplace(0.5))
    assert [f.source for f in found.findings] == ["kernel"]
    assert found.findings[0].witness.kernel == pc.Laplace(0.5)


def test_one_wrong_group_among_fifty_is_significant(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES["streamed"])
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(51), 4000)
    labels = (rng.random((4000, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 50)
    # Class 0 takes half of what belongs to class 50, which is in no group.
    labels[(labels == 50) & (rng.random(4000) < 0.5)] = 0
    found = pc.audit(labels, proba, groups={f"g{c}": [c] for c in range(50)}, notions=(), auditors={}).groups
    assert found[0].p_value < 0.05
    assert sum(g.p_value < 0.05 for g in found) == 1
    assert found[0].smallest_p_value < 0.05


def test_calibrated_predictions_are_left_alone(monkeypatch):
    monkeypatch.setattr(source, "HELD_CELLS", 4000)
    rng = np.random.default_rng(0)
    false_alarms = 0
    for seed in range(20):
        proba = rng.dirichlet(np.ones(4), 400)
        labels = (rng.random((400, 1)) > proba.cumsum(axis=1)).sum(axis=1).clip(0, 3)
        found = pc.audit(labels, proba, random_state=seed, alpha=0.1)
        assert found.approximations
        false_alarms += any(f.significant for f in found.findings)
    assert false_alarms <= 5


def test_what_goes_by_is_judged_on_every_row_of_the_other_half(example, monkeypatch):
    monkeypatch.setattr(source, "HELD_CELLS", REGIMES["streamed"])
    found = pc.audit(example.labels, example.proba)
    assert {f.source for f in found.findings} == {"confidence", "classwise", "subset-smooth", "kernel"}
    judging = example.take(~is_searched(np.arange(3000), 0))
    assert judging.n_samples == found.n_judge
    for finding in found.findings:
        level = finding.certificate.alpha
        expected = pc.certify(finding.witness, judging.labels, judging.proba, alpha=level)
        assert finding.certificate.estimate == pytest.approx(expected.estimate, abs=1e-6)
        assert finding.certificate.lower_bound == pytest.approx(expected.lower_bound, abs=1e-4)
        assert finding.certificate.n_samples == judging.n_samples
        assert 0 < finding.reading.share <= 1


def test_reports_of_any_regime(regime, example):
    found = pc.audit(example.labels, example.proba, groups=GROUPS)
    assert "3,000" in str(found)
    assert "<html" in found.to_html()
    rows = {picture.rows for picture in found.pictures}
    assert rows == ({"sampled"} if regime == "streamed" else {"all", "judged"})
