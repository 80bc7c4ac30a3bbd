"""The monitor as a whole: alarms, batches, modes, saving, merging, refusals."""

import numpy as np
import pytest

import polycal as pc
from polycal.monitoring import bets

NAMES = ("cat", "dog", "bus", "car")


def stream(n, k=4, seed=0, sharpness=1.0, since=0):
    """Predictions, and labels that are sharper or flatter than predicted from some row on."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(k, 0.6), n)
    true = proba**sharpness
    true /= true.sum(axis=1, keepdims=True)
    true[:since] = proba[:since]
    return (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), proba


def followed(y, p, size, **options):
    monitor = pc.Monitor(**options)
    for start in range(0, len(y), size):
        monitor.update(y[start : start + size], p[start : start + size])
    return monitor


MODES = {
    "calibrated": {},
    "tolerant": {"tolerance": 0.02},
    "many": {"alarms": "many", "alpha": 1e-2},
    "groups": {"groups": {"animal": ["cat", "dog"]}, "class_names": NAMES},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("size", [1, 37])
def test_any_batches_give_the_same(mode, size):
    y, p = stream(130, seed=3, sharpness=0.3)
    whole, parts = followed(y, p, 130, **MODES[mode]), followed(y, p, size, **MODES[mode])
    assert parts.evidence == pytest.approx(whole.evidence, abs=1e-9)
    assert parts.alarm_rows == whole.alarm_rows
    assert parts.since == whole.since
    assert parts.bets == pytest.approx(whole.bets)
    assert [str(finding) for finding in parts.findings] == [str(finding) for finding in whole.findings]
    for mine, other in zip(parts.history.values(), whole.history.values(), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_an_over_confident_stream_is_found_and_named():
    y, p = stream(400, sharpness=0.4)
    monitor = pc.Monitor(class_names=NAMES).update(y, p)
    assert monitor.alarm
    assert monitor.alarm_row < 150
    assert monitor.since < 20
    first = monitor.findings[0]
    assert first.question == "is the most likely class right?"
    assert first.observed < first.predicted
    assert 0 < first.at_least < 0.3
    assert monitor.bets["temperature"] > 2
    assert "alarm at row" in str(monitor)
    assert monitor.to_dict()["findings"][0]["says"] == first.predicted


def test_a_calibrated_stream_is_left_in_peace():
    y, p = stream(3000, k=2, seed=1)
    monitor = pc.Monitor(alpha=0.05, tolerance=0.01).update(y, p)
    assert not monitor.alarm
    assert monitor.findings == ()
    assert monitor.alarm_row is None
    assert monitor.evidence < 1.3


def test_a_change_is_found_after_it_happened():
    y, p = stream(4000, seed=5, sharpness=0.4, since=3000)
    monitor = pc.Monitor(tolerance=0.01).update(y, p)
    assert 3000 < monitor.alarm_row < 3400
    assert 2900 < monitor.since < 3200
    first = monitor.findings[0]
    assert 2900 <= first.since <= 3200
    assert first.before.count.sum() == first.since
    assert first.after.count.sum() == first.n_rows == 4000 - first.since
    assert first.after.error() > 2 * first.before.error()


def test_bounds_are_below_the_truth():
    y, p = stream(3000, seed=7, sharpness=0.5)
    monitor = pc.Monitor(tolerance=0.05).update(y, p)
    exact = pc.smooth_calibration_error(y, p)
    assert 0.3 * exact < monitor.findings[0].at_least < exact


def test_a_tolerance_forgives_small_errors():
    y, p = stream(3000, seed=8, sharpness=0.85)
    assert not pc.Monitor(tolerance=0.1).update(y, p).alarm
    assert pc.Monitor(tolerance=0.001).update(y, p).alarm


def test_a_reference_forgives_what_was_wrong_from_the_start():
    y, p = stream(1300, seed=9, sharpness=0.4)
    calibrator = pc.TemperatureScaling().fit(p[:1000], y[:1000])
    assert not pc.Monitor(reference=calibrator).update(y[1000:], p[1000:]).alarm
    assert pc.Monitor().update(y[1000:], p[1000:]).alarm
    by_rows = pc.Monitor(reference=(y[:200], p[:200]), tolerance=0.1)
    assert not by_rows.update(y[1000:], p[1000:]).alarm


def test_many_alarms_begin_anew():
    y, p = stream(300, seed=10, sharpness=0.2)
    monitor = pc.Monitor(alpha=1e-4, alarms="many").update(y, p)
    assert len(monitor.alarm_rows) > 2
    assert monitor.alarm_row == monitor.alarm_rows[-1]
    assert all(np.diff(monitor.alarm_rows) > 5)
    assert monitor.evidence < 4
    assert "one coin for each row since the last alarm" in monitor.to_html()


def test_slices_are_watched():
    y, p = stream(900, seed=11)
    side = np.where(np.arange(900) % 3 == 0, "left", "right")
    wrong = np.random.default_rng(0).integers(0, 4, 900)
    y = np.where(side == "left", wrong, y)
    monitor = pc.Monitor(tolerance=0.02).update(y, p, features={"side": side})
    slices = [finding for finding in monitor.findings if finding.kind == "slice"]
    assert [finding.question for finding in slices] == ["is the most likely class right, where side is left?"]
    assert slices[0].at_least == monitor.findings[0].at_least
    parts = pc.Monitor(tolerance=0.02)
    for start in range(0, 900, 50):
        rows = slice(start, start + 50)
        parts.update(y[rows], p[rows], features={"side": side[rows]})
    assert parts.evidence == pytest.approx(monitor.evidence)


def test_no_more_than_200_values_are_watched():
    y, p = stream(600, k=2, seed=27)
    columns = {"customer": np.arange(600), "side": np.arange(600) % 2}
    parts = pc.Monitor(tolerance=0.02)
    for rows in (slice(0, 150), slice(150, 190), slice(190, 600)):
        parts.update(y[rows], p[rows], features={name: values[rows] for name, values in columns.items()})
    whole = pc.Monitor(tolerance=0.02).update(y, p, features=columns)
    watched = whole._game[0].questions.slices
    assert watched == parts._game[0].questions.slices
    assert watched[:3] == (("customer", "0"), ("side", "0"), ("customer", "1"))
    assert (len(watched), watched[-1]) == (200, ("customer", "197"))
    assert parts.evidence == pytest.approx(whole.evidence)


def test_labels_that_do_not_come_are_left_out():
    y, p = stream(60, seed=12)
    late = y.astype(float)
    late[::5] = np.nan
    monitor = pc.Monitor().update(late, p)
    there = np.arange(60) % 5 != 0
    assert monitor.evidence == pc.Monitor().update(y[there], p[there]).evidence
    assert (monitor.n_rows, monitor.n_unlabelled) == (48, 12)
    named = [None if i % 5 == 0 else NAMES[c] for i, c in enumerate(y)]
    assert pc.Monitor(class_names=NAMES).update(named, p).evidence == monitor.evidence
    assert pc.Monitor().update([None, None], p[:2]).n_unlabelled == 2


@pytest.mark.parametrize("gap", [None, float("nan"), "NA", "NaT", ""])
def test_frames_keep_their_names_where_labels_are_missing(gap):
    import pandas as pd  # noqa: PLC0415 - a slow import

    frame = pd.DataFrame({"cat": [0.5, 0.2, 0.7], "dog": [0.5, 0.8, 0.3]})
    labels = pd.Series(["cat", getattr(pd, str(gap), gap), "dog"], dtype=object)
    columns = {"side": pd.Series(["left", "left", getattr(pd, str(gap), gap)], dtype=object)}
    monitor = pc.Monitor(tolerance=0.1).update(labels, frame, features=columns)
    assert (monitor.n_rows, monitor.n_unlabelled, monitor.class_names) == (2, 1, ("cat", "dog"))
    assert monitor._game[0].questions.slices == (("side", "left"), ("side", "missing"))


@pytest.mark.parametrize("label", [0, None])
def test_series_in_another_order_are_refused(label):
    import pandas as pd  # noqa: PLC0415 - a slow import

    frame = pd.DataFrame({"cat": [0.5, 0.2], "dog": [0.5, 0.8]}, index=[7, 8])
    with pytest.raises(ValueError, match="y_true has the same index as y_proba, in another order"):
        pc.Monitor().update(pd.Series([1, label], index=[8, 7]), frame)
    with pytest.raises(ValueError, match="features has the same index as y_proba, in another order"):
        pc.Monitor().update([1, 0], frame, features=pd.DataFrame({"side": [1, 2]}, index=[8, 7]))


def merged_with_itself():
    monitor = pc.Monitor().update([0], [0.2])
    monitor.merge(monitor)


def test_zeros_that_happen_are_counted_and_bounded():
    proba = np.tile([1.0, 0.0, 0.0], (6, 1))
    monitor = pc.Monitor().update([0, 0, 0, 0, 0, 1], proba)
    assert monitor.n_impossible == 1
    assert np.isfinite(monitor.evidence)
    assert 0 < monitor.evidence < 6


def test_the_memory_and_the_file_do_not_grow(tmp_path):
    y, p = stream(40_000, k=2, seed=13)
    sizes = []
    monitor = pc.Monitor(tolerance=0.01)
    for start in (0, 20_000):
        monitor.update(y[start : start + 20_000], p[start : start + 20_000])
        monitor.save(tmp_path / "a.polycal")
        sizes.append((tmp_path / "a.polycal").stat().st_size)
    assert sizes[1] < 1.2 * sizes[0] < 1e6
    assert monitor.history["row"].size <= 512


@pytest.mark.parametrize("mode", MODES)
def test_a_monitor_goes_on_after_saving(mode, tmp_path):
    y, p = stream(120, seed=14, sharpness=0.5)
    options = (
        {"reference": pc.TemperatureScaling().fit(p, y)} | MODES[mode] if mode == "many" else MODES[mode]
    )
    whole, first = pc.Monitor(**options).update(y, p), pc.Monitor(**options).update(y[:70], p[:70])
    first.save(tmp_path / "a.polycal")
    again = pc.load(tmp_path / "a.polycal").update(y[70:], p[70:])
    assert again.to_dict() == whole.to_dict()


def test_an_interrupted_fit_is_made_up_for(tmp_path, monkeypatch):
    # At row 64 there is also a mark.
    recipes = [bets.Recipe(name, pc.VectorScaling, 100, 64) for name in ("vector", "recent vector", "kernel")]
    monkeypatch.setattr(bets, "recipes", lambda _: recipes)
    y, p = stream(130, seed=28)
    whole, monitor = pc.Monitor().update(y, p), pc.Monitor()
    with monkeypatch.context() as broken:
        broken.setattr(pc.VectorScaling, "fit", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            monitor.update(y, p)
    assert monitor.n_rows == 64
    monitor.update(y[64:], p[64:]).save(tmp_path / "a.polycal")
    assert pc.load(tmp_path / "a.polycal").to_dict() == whole.to_dict()


def _interrupted(*_):
    raise KeyboardInterrupt


def test_a_monitor_that_has_seen_nothing_is_saved(tmp_path):
    pc.Monitor(alpha=0.2, groups={"a": [0, 1]}).save(tmp_path / "a.polycal")
    again = pc.load(tmp_path / "a.polycal")
    assert (again.alpha, again.evidence, again.since, again.findings, again.bets) == (0.2, 0.0, None, (), {})
    assert again.update([], np.empty((0, 3))).n_rows == 0
    with pytest.raises(ValueError, match=r"groups\['a'\] holds class 5, outside"):
        pc.Monitor(groups={"a": [0, 5]}).update([0], [[0.5, 0.5]])


def test_evidence_of_shards_adds_up():
    shards = [stream(90, seed=seed, sharpness=0.6) for seed in (20, 21, 22)]
    monitors = [pc.Monitor().update(*shard) for shard in shards]
    alone = [monitor.evidence for monitor in monitors]
    merged = pc.Monitor()
    for monitor in monitors:
        merged.merge(monitor)
    assert merged.evidence == pytest.approx(sum(alone))
    assert merged.n_rows == 270
    assert merged.alarm == (sum(alone) >= 2 or monitors[0].alarm)
    assert [monitor.evidence for monitor in monitors] == alone
    assert merged.findings[:1] == () or merged.findings[0].n_rows in {270, 90, 26}


def test_no_file_is_merged_twice():
    shard, other = pc.Monitor(tolerance=0.1), pc.Monitor(tolerance=0.1)
    shard.counted, other.counted = {"ab": "day0.npz"}, {"ab": "copy.npz"}
    with pytest.raises(ValueError, match=r"both monitors have counted day0\.npz"):
        shard.merge(other)
    other.counted = {"cd": "day1.npz"}
    other.update([None], [0.2])
    assert len(shard.merge(other).counted) == 2
    assert shard.n_unlabelled == 1


def test_sums_of_shards_add_up():
    y, p = stream(200, seed=23, sharpness=0.3)
    halves = [pc.Monitor(tolerance=0.01).update(y[part], p[part]) for part in (slice(100), slice(100, 200))]
    merged = halves[0].merge(halves[1])
    assert merged.findings[0].n_rows == 200
    assert merged.findings[0].predicted > merged.findings[0].observed


def test_slices_of_shards_add_up():
    y, p = stream(600, seed=25)
    side = np.where(np.arange(600) % 3 == 0, "left", "right")
    y = np.where(side == "left", np.random.default_rng(1).integers(0, 4, 600), y)
    # The second shard meets sides in another order, and searches of more rows find other sets of classes.
    shards = [slice(0, 90), slice(91, 600)]
    merged, other = (
        pc.Monitor(tolerance=0.02).update(y[s], p[s], features={"side": side[s]}) for s in shards
    )
    alone = [merged.evidence, other.evidence]
    assert merged.merge(other).evidence == pytest.approx(sum(alone))
    found = {finding.question: finding.n_rows for finding in merged.findings}
    assert found["is the most likely class right, where side is left?"] == 30 + 169
    assert merged.update(y[:9], p[:9], features={"side": side[:9], "new": side[:9]}).n_rows == 608
    without = pc.Monitor(tolerance=0.02).update(y[:300], p[:300])
    assert without.merge(other).findings[0].question in found


def test_since_is_where_the_change_was():
    y, p = stream(2600, k=3, seed=26, sharpness=0.5, since=2000)
    monitor = pc.Monitor(0.05, tolerance=0.001).update(y, p)
    assert 1900 < monitor.since < monitor.alarm_row < 2300


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: pc.Monitor(alpha=0), "alpha must be a number from"),
        (lambda: pc.Monitor(tolerance=-1), "tolerance must be a number from 0 to 1"),
        (lambda: pc.Monitor(alarms="often"), "alarms must be one of 'once', 'many'"),
        (lambda: pc.Monitor(reference="rows"), "reference must be a fitted calibrator"),
        (lambda: pc.Monitor(reference=pc.VectorScaling()), "not fitted; fit it first"),
        (lambda: pc.Monitor().update([4], [[0.2, 0.8]]), "outside 0..1"),
        (lambda: pc.Monitor().update([0], [[0.2, 0.9]]), "does not sum to 1"),
        (
            lambda: pc.Monitor().update([0], [[0.2, 0.8]]).update([0], [[0.2, 0.3, 0.5]]),
            "the monitor watches 2",
        ),
        (
            lambda: pc.Monitor().update([0], [[0.2, 0.8]], features={"a": [1, 2]}),
            r"features\['a'\] must have shape",
        ),
        (lambda: pc.Monitor().update([0], [[0.2, 0.8]], features=[1]), "features must be a data frame"),
        (lambda: pc.Monitor().update(1, [0.2, 0.8]), r"one label per row, of shape \(n,\); got shape \(\)"),
        (
            lambda: pc.Monitor().update([0, None, 1], [0.2, 0.8]),
            "y_true has 3 entries but y_proba has 2 rows",
        ),
        (lambda: pc.Monitor().update([None], 0.2), r"y_proba must have shape .* got shape \(\)"),
        (lambda: pc.Monitor(reference=([[0.2, 0.8]], [1])), "metrics and audits take labels first"),
        (lambda: pc.Monitor().merge(3), "cannot be merged with a int"),
        (merged_with_itself, "every row would count twice"),
        (lambda: pc.Monitor().merge(pc.Monitor(alarms="many")), "begins anew"),
        (lambda: pc.Monitor().merge(pc.Monitor(alpha=0.2).update([0], [0.2])), "other parameters"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(act, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        act()
    assert "\n" not in str(error.value)


def test_a_frame_brings_names():
    import pandas as pd  # noqa: PLC0415 - a slow import

    y, p = stream(50, seed=24)
    monitor = pc.Monitor().update([NAMES[c] for c in y], pd.DataFrame(p, columns=NAMES))
    assert monitor.class_names == NAMES
    with pytest.raises(ValueError, match="class 0 of the chunk is 'car'"):
        monitor.update(y, pd.DataFrame(p, columns=NAMES[::-1]))
