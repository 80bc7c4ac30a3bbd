import pytest
from benchmarks.peers.processes import Limits
from benchmarks.store import Store

from benchmarks import measuring


def test_the_grid_of_a_quick_run_is_part_of_the_full_one():
    curves = {curve for curve, *_ in measuring.grid(quick=True)}
    assert curves == set(measuring.REFERENCE)
    assert {k for curve, _, _, k in measuring.grid(quick=False) if curve == "vectors, growing k"} > {10, 100}


@pytest.mark.parametrize(("kind", "shape"), [("binary", (50,)), ("kernel", (50, 7))])
def test_predictions_have_the_shape_asked_for(kind, shape):
    arrays = measuring.predictions(kind, 50, 7)
    assert arrays["proba"].shape == shape
    assert arrays["labels"].shape == (50,)


def test_slopes_are_of_what_grows():
    rows = [
        {"curve": curve, "method": "m", "n": n, "k": k, "status": "ok", "seconds": float(n * k**2)}
        for curve, sizes in {
            "binary, growing n": [(10, 2), (100, 2), (1000, 2)],
            "vectors, growing k": [(10, 5), (10, 50)],
        }.items()
        for n, k in sizes
    ]
    slopes = measuring.slopes(rows)
    assert slopes["binary, growing n", "m"] == pytest.approx(1)
    assert slopes["vectors, growing k", "m"] == pytest.approx(2)


def test_larger_inputs_of_what_was_too_slow_are_not_tried(tmp_path):
    store = Store(tmp_path / "rows.jsonl", measuring.KEY)
    store.add({"curve": "c", "method": "m", "n": 10, "k": 2, "status": "time limit"})
    row = {"curve": "c", "n": 100, "k": 2, "method": "m"}
    result = measuring.measured(None, "m", None, None, row, store, Limits())
    assert result["status"] == "time limit"
    assert "10 rows" in result["error"]
