import numpy as np
import pytest

import polycal as pc

torch = pytest.importorskip("torch")
pytest.importorskip("torchmetrics", reason="in the environment of make test-integrations")
from torch import multiprocessing  # noqa: E402

from polycal.integrations.torchmetrics import SmoothCalibrationError  # noqa: E402

MADE = pc.datasets.make_temperature(3000, 5, temperature=0.5, random_state=0)
PREDS, TARGET = torch.from_numpy(MADE.proba), torch.from_numpy(MADE.labels)


def filled(chunks, **options):
    metric = SmoothCalibrationError(**options)
    for chunk in np.array_split(np.arange(3000), chunks):
        metric.update(PREDS[chunk], TARGET[chunk])
    return metric


@pytest.mark.parametrize("options", [{}, {"subset": [0, 3]}, {"top": 2}])
def test_batches_give_the_error_of_all_rows(options):
    whole = filled(1, **options)
    question = pc.QuestionState(options.get("subset"), top=options.get("top", 1)).update(
        MADE.labels, MADE.proba
    )
    assert abs(whole.compute().item() - question.finish().value) <= whole.summary().bound + 1e-12
    assert filled(7, **options).compute().item() == pytest.approx(whole.compute().item(), abs=1e-12)


def test_memory_does_not_grow():
    sizes = [sum(state.numel() for state in filled(n).metric_state.values()) for n in (1, 30)]
    assert sizes[0] == sizes[1] == 2 * 1024 + 4 + 1


def test_bounds_hold_what_an_audit_would_say():
    low, high = filled(3).interval()
    assert 0 < low < filled(3).compute().item() < high < 0.5


def test_logits_are_taken_when_said():
    logits = SmoothCalibrationError(from_logits=True)
    logits.update(PREDS.log(), TARGET)
    assert logits.compute().item() == pytest.approx(filled(1).compute().item(), abs=1e-6)
    with pytest.raises(ValueError, match="y_proba"):
        SmoothCalibrationError().update(PREDS.log(), TARGET)
    with pytest.raises(ValueError, match="has seen no row"):
        SmoothCalibrationError().compute()


def test_forward_reset_clone_and_collections_work():
    from torchmetrics import MetricCollection  # noqa: PLC0415

    metric = SmoothCalibrationError()
    batch = metric(PREDS[:100], TARGET[:100])
    metric(PREDS[100:], TARGET[100:])
    assert batch.item() == pytest.approx(
        SmoothCalibrationError().to("cpu")(PREDS[:100], TARGET[:100]).item(), abs=1e-12
    )
    assert metric.compute().item() == pytest.approx(filled(1).compute().item(), abs=1e-12)
    clone = metric.clone()
    clone.reset()
    assert clone.n_rows == 0
    both = MetricCollection({"confidence": SmoothCalibrationError(), "two": SmoothCalibrationError(top=2)})
    both.update(PREDS, TARGET)
    assert set(both.compute()) == {"confidence", "two"}


def _sync(rank, folder):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    metric = SmoothCalibrationError()
    metric.update(PREDS[rank::2], TARGET[rank::2])
    np.save(f"{folder}/{rank}.npy", metric.compute().item())
    torch.distributed.destroy_process_group()


def test_two_processes_agree_with_one(tmp_path):
    multiprocessing.spawn(_sync, args=(str(tmp_path),), nprocs=2)
    values = [float(np.load(tmp_path / f"{rank}.npy")) for rank in (0, 1)]
    np.testing.assert_allclose(values, filled(1).compute().item(), atol=1e-12)
