"""``polycal recalibrate``."""

import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._threads import the_only_bar, thread_budget
from polycal.calibrators.registry import CALIBRATORS, make_calibrator
from polycal.cli.inputs import read_sample
from polycal.cli.layout import names_in, reads_columns
from polycal.cli.options import FileArgument, JobsOption, JsonOption, PartOption, QuietOption, SeedOption
from polycal.cli.output import print_json, say
from polycal.io.layout import Layout
from polycal.storage.atomic import check_writable

OutOption = Annotated[
    Path, typer.Option("--out", metavar="MODEL", help="The file to write the calibrator to.")
]
MethodOption = Annotated[
    str, typer.Option("--method", metavar="NAME", help=f"One of {', '.join(CALIBRATORS)}.")
]
SliceOption = Annotated[
    str | None,
    typer.Option(
        "--slice-by",
        metavar="COLUMNS",
        help="Columns that are no classes, such as sex,age: calibrate for rows that differ in them.",
    ),
]
OnnxOption = Annotated[
    Path | None, typer.Option("--onnx", metavar="FILE", help="Write the map as an ONNX model, too.")
]


@reads_columns
def recalibrate(
    file: FileArgument,
    *,
    out: OutOption,
    method: MethodOption = "kernel",
    part: PartOption = "all",
    layout: Layout,
    slice_by: SliceOption = None,
    onnx: OnnxOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a calibrator on the predictions in FILE, which the classifier must not have been trained on, and save it.

    **Example:** polycal recalibrate cal.npz --out model.polycal
    """
    columns = tuple(names_in([slice_by]) or ()) if slice_by else ()
    calibrator = _with_features(method, seed) if columns else make_calibrator(method, seed)
    layout = replace(layout, columns=columns)
    # Before the fit, not after it.
    for path in (out, onnx):
        if path is not None:
            check_writable(path)
    sample = read_sample(file, part, layout, quiet=quiet or as_json)
    start = time.perf_counter()
    # A fit that takes long draws a bar of its own.
    with the_only_bar() if quiet else nullcontext(), thread_budget(jobs):
        calibrator._fit_sample(sample)
    seconds = time.perf_counter() - start
    calibrator.save(out)
    if onnx is not None:
        calibrator.to_onnx(onnx)
    summary = {
        "method": calibrator.family if columns else method,
        "used": getattr(calibrator, "used_", method),
        "n_samples": sample.n_samples,
        "n_classes": sample.n_classes,
        "fit_seconds": seconds,
        "model": str(out),
        "onnx": None if onnx is None else str(onnx),
        "summary": calibrator.summary().splitlines(),
    }
    if as_json:
        print_json(summary)
    elif not quiet:
        say(_words(summary))


def _with_features(method: str, seed: int) -> "pc.Calibrator":
    if method != "kernel":
        raise ValueError(f"--slice-by is for --method kernel, which features are added to; got {method!r}.")
    return pc.MulticalibratedCalibrator(random_state=seed)


def _words(summary: dict[str, Any]) -> str:
    size = f"{summary['n_samples']:,} rows of {summary['n_classes']} classes"
    lines = [
        f"{summary['method']}: fitted on {size} in {summary['fit_seconds']:.1f} s, written to {summary['model']}.",
        *summary["summary"],
        f"To use it: polycal apply {summary['model']} PREDICTIONS --out FIXED",
        "To see what it is worth, on rows it has not seen: polycal compare",
    ]
    return "\n".join(lines)
