"""``polycal compare``."""

from typing import Annotated

import typer
from rich.console import Console

from polycal._threads import thread_budget
from polycal.calibrators.registry import CALIBRATORS, make_calibrator
from polycal.cli.inputs import read_sample
from polycal.cli.layout import reads_columns
from polycal.cli.options import AlphaOption, JobsOption, JsonOption, QuietOption, SeedOption
from polycal.cli.output import print_json
from polycal.io.layout import Layout
from polycal.report.comparison import render_comparison

CalibrationArgument = Annotated[
    str, typer.Argument(metavar="CAL", help="Predictions with labels to fit on: .npz, .npy, .csv, ...")
]
EvaluationArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[EVAL]", help="Predictions with labels to judge on; left out, the two parts that CAL marks."
    ),
]
MethodsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="NAME", help=f"Of {', '.join(CALIBRATORS)}; all by default; may be repeated."
    ),
]


@reads_columns
def compare(
    calibration: CalibrationArgument,
    evaluation: EvaluationArgument = None,
    *,
    layout: Layout,
    method: MethodsOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit every calibrator on CAL and judge it on EVAL: scores, calibration errors, the worst subset, time.

    **Example:** polycal compare cal.npz test.npz --method kernel --method temperature
    """
    from polycal.compare import compare_samples  # noqa: PLC0415 - slow to import

    methods = {name: make_calibrator(name, seed) for name in (method or CALIBRATORS)}
    if evaluation is None:
        fit = read_sample(calibration, "calibration", layout, quiet=quiet or as_json)
        rest = read_sample(calibration, "evaluation", layout, quiet=True)
    else:
        fit = read_sample(calibration, "all", layout, quiet=quiet or as_json)
        rest = read_sample(evaluation, "all", layout, quiet=True)
    with thread_budget(jobs):
        result = compare_samples(fit, rest, methods, alpha, seed, False if quiet else None)
    if as_json:
        print_json(result.to_dict())
    else:
        Console(highlight=False).print(render_comparison(result.to_dict()))
