"""``polycal recalibrate``."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from polycal._threads import thread_budget
from polycal.calibrators.registry import CALIBRATORS, make_calibrator
from polycal.cli.inputs import read_sample
from polycal.cli.options import FileArgument, JobsOption, JsonOption, PartOption, QuietOption, SeedOption
from polycal.cli.output import print_json, say, working
from polycal.storage.atomic import check_writable

OutOption = Annotated[
    Path, typer.Option("--out", metavar="MODEL", help="The file to write the calibrator to.")
]
MethodOption = Annotated[
    str, typer.Option("--method", metavar="NAME", help=f"One of {', '.join(CALIBRATORS)}.")
]
OnnxOption = Annotated[
    Path | None, typer.Option("--onnx", metavar="FILE", help="Write the map as an ONNX model, too.")
]


def recalibrate(
    file: FileArgument,
    *,
    out: OutOption,
    method: MethodOption = "kernel",
    part: PartOption = "all",
    onnx: OnnxOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a calibrator on the predictions in FILE, which the classifier must not have been trained on, and save it.

    **Example:** polycal recalibrate cal.npz --out model.polycal
    """
    calibrator = make_calibrator(method, seed)
    # Before the fit, not after it.
    for path in (out, onnx):
        if path is not None:
            check_writable(path)
    sample = read_sample(file, part)
    start = time.perf_counter()
    with working(f"fitting {method} on {sample.n_samples:,} rows", quiet=quiet), thread_budget(jobs):
        calibrator._fit_sample(sample)
    seconds = time.perf_counter() - start
    calibrator.save(out)
    if onnx is not None:
        calibrator.to_onnx(onnx)
    summary = {
        "method": method,
        "used": getattr(calibrator, "used_", method),
        "n_samples": sample.n_samples,
        "n_classes": sample.n_classes,
        "fit_seconds": seconds,
        "model": str(out),
        "onnx": None if onnx is None else str(onnx),
    }
    if as_json:
        print_json(summary)
    elif not quiet:
        say(_words(summary))


def _words(summary: dict[str, Any]) -> str:
    used = {
        "identity": "The predictions could not be improved: the model leaves them as they are.",
        "temperature": "There is not enough data for more than a temperature, one curve and a little background.",
    }
    told = used.get(summary["used"]) if summary["method"] == "kernel" else None
    size = f"{summary['n_samples']:,} rows of {summary['n_classes']} classes"
    lines = [
        f"{summary['method']}: fitted on {size} in {summary['fit_seconds']:.1f} s, written to {summary['model']}.",
        told,
        f"To use it: polycal apply {summary['model']} PREDICTIONS --out FIXED",
        "To see what it is worth, on rows it has not seen: polycal compare",
    ]
    return "\n".join(line for line in lines if line)
