"""``polycal apply``."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._threads import thread_budget
from polycal._typing import Floats
from polycal.cli.inputs import read_calibrator, readable_file, shown
from polycal.cli.layout import reads_columns
from polycal.cli.options import JobsOption, JsonOption, QuietOption, SeedOption
from polycal.cli.output import print_json, say, working
from polycal.io.layout import Layout
from polycal.io.predictions import map_predictions

ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="What polycal recalibrate wrote.")]
PredictionsArgument = Annotated[
    str, typer.Argument(metavar="PREDS", help="Predictions, with labels or without: .npz, .npy, .csv, ...")
]
OutOption = Annotated[
    str, typer.Option("--out", metavar="OUT", help="The file to write; its suffix is the format.")
]


@reads_columns
def apply(
    model: ModelArgument,
    predictions: PredictionsArgument,
    *,
    out: OutOption,
    layout: Layout,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Calibrate the predictions in PREDS by MODEL; labels, weights, names and parts stay as they are.

    **Example:** polycal apply model.polycal test.npz --out fixed.npz
    """
    del seed  # nothing here is random
    calibrator = read_calibrator(model)
    layout = replace(layout, columns=getattr(calibrator, "feature_names_", ()))
    with (
        working(f"calibrating {shown([predictions])}", quiet=quiet),
        thread_budget(jobs),
        readable_file(predictions, layout) as file,
    ):
        n_samples = map_predictions(file, out, _map(calibrator), layout=layout)
    summary = {"model": str(model), "n_samples": n_samples, "out": str(out)}
    if as_json:
        print_json(summary)
    elif not quiet:
        say(f"{n_samples:,} rows calibrated, written to {out}.")


def _map(
    calibrator: "pc.Calibrator",
) -> Callable[[Floats, tuple[str, ...] | None, Mapping[str, Any]], Floats]:
    """The calibrator as a function of probabilities, whatever it was fitted on, class names and features."""
    of_probabilities = calibrator._taking(from_logits=False)

    def function(proba: Floats, names: tuple[str, ...] | None, columns: Mapping[str, Any]) -> Floats:
        calibrator.check_class_names(names)
        given: dict[str, Any] = {"features": columns} if columns else {}
        calibrated: Floats = of_probabilities.predict_proba(proba, **given)
        return calibrated

    return function
