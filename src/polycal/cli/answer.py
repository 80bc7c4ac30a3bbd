"""``polycal answer``."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import polycal as pc
from polycal._threads import thread_budget
from polycal.answering import ANYTHING, Answers
from polycal.cli.inputs import readable_file, readable_files, shown, usable_memory
from polycal.cli.layout import reads_columns
from polycal.cli.options import AlphaOption, JobsOption, JsonOption, PartOption, QuietOption, SeedOption
from polycal.cli.output import print_json, say, working
from polycal.io.layout import Layout
from polycal.io.predictions import read_rows
from polycal.storage.atomic import check_writable, replacing

# The usual risk and alpha of a fit.
_LEVEL = 0.05

ModelArgument = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="The model that answers; with --taxonomy it is fitted on FILE and written."
    ),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Predictions: .npz, .npy, .csv, .tsv, .jsonl, .parquet, .feather; - for standard input. To fit, with "
        "labels, and several files, folders and patterns will do; to answer, one file, with labels or without.",
    ),
]
TreeOption = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy",
        metavar="T",
        help="Fit MODEL for this tree of the classes, .yaml, .json or .csv, on the labels in FILE.",
    ),
]
RiskOption = Annotated[
    float, typer.Option("--risk", help="The share of answers that may be wrong; when MODEL is fitted.")
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="OUT", help="Write the answers as CSV: row, answer, probability, and right."
    ),
]


@reads_columns
def answer(
    model: ModelArgument,
    files: FilesArgument,
    *,
    taxonomy: TreeOption = None,
    risk: RiskOption = _LEVEL,
    alpha: AlphaOption = _LEVEL,
    part: PartOption = "all",
    layout: Layout,
    out: OutOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Answer each row with the deepest node of a tree of classes such that few answers are wrong, which is certified.

    First fit with --taxonomy on rows with labels, then answer others.

    **Example:** polycal answer depth.polycal cal.npz --taxonomy tree.yaml --risk 0.3
    """
    fitting = {"--part": part != "all", "--risk": risk != _LEVEL, "--alpha": alpha != _LEVEL}
    unused = next((option for option, is_given in fitting.items() if is_given and taxonomy is None), None)
    if unused is not None:
        raise ValueError(f"{unused} is for fitting: give --taxonomy too, or drop {unused}.")
    for path in filter(None, (out, model if taxonomy is not None else None)):
        check_writable(path)
    with thread_budget(jobs), working(f"answering {shown(files)}", quiet=quiet):
        if taxonomy is None:
            summary = _answered(model, files, layout, out)
        else:
            fitted = pc.AnswerDepth(pc.read_taxonomy(taxonomy), risk=risk, alpha=alpha, random_state=seed)
            with readable_files(files, layout) as there:
                fitted.fit_files(there, memory=usable_memory(), part=part, layout=layout)  # type: ignore[arg-type]
            fitted.save(model)
            summary = {"model": str(model), **certified(fitted)}
    if as_json:
        print_json(summary)
    elif not quiet:
        say(_answer_words(summary) if taxonomy is None else _fit_words(summary))


def certified(model: "pc.AnswerDepth") -> dict[str, Any]:
    """What a model promises, as plain data."""
    made = model.certificate_
    return {
        "risk": model.risk,
        "alpha": model.alpha,
        "n_classes": model.n_classes_,
        "n_nodes": model.taxonomy_.n_nodes,
        "specificity": model.specificity_,
        "certificate": None
        if made is None
        else {
            "threshold": made.threshold,
            "risk": made.risk,
            "at_most": made.at_most,
            "n_samples": made.n_samples,
        },
    }


def _answered(path: Path, files: list[str], layout: Layout, out: Path | None) -> dict[str, Any]:
    """Answer the rows of a file, and count the answers."""
    model = pc.load(path)
    if not isinstance(model, pc.AnswerDepth):
        raise TypeError(
            f"{path} holds a {type(model).__name__}, not a model that answers; fit one with --taxonomy"
        )
    if len(files) != 1:
        raise ValueError(
            f"{len(files)} files are given; answer one at a time, or give --taxonomy to fit on all."
        )
    with readable_file(files[0], layout) as file:
        proba, names, labels = read_rows(file, layout=layout)
    model.check_class_names(names)
    answers = model.answer(proba)
    right = None if labels is None else model.is_right(answers.nodes, labels)
    if out is not None:
        _write(out, model.paths(answers.nodes), answers, right)
    depths = np.append(model.taxonomy_.depths, 0)[answers.nodes]
    is_class = np.isin(answers.nodes, model.taxonomy_.leaves)
    return {
        "model": str(path),
        "n_samples": int(answers.nodes.size),
        "share_of_classes": float(is_class.mean()),
        "share_of_anything": float((answers.nodes < 0).mean()),
        "by_depth": {str(d): int(n) for d, n in enumerate(np.bincount(depths)) if n},
        "wrong": None if right is None else float((~right).mean()),
        "out": None if out is None else str(out),
        **certified(model),
    }


def _write(out: Path, paths: Any, answers: Answers, right: Any) -> None:
    """A line for each row; whether it is right, where that is known."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["row", "answer", "probability", *(() if right is None else ("right",))])
    known = [[]] * len(paths) if right is None else [[int(one)] for one in right]
    for row, (path, chance, more) in enumerate(zip(paths, answers.proba, known, strict=True)):
        lines.writerow([row, path, f"{chance:.6g}", *more])
    with replacing(out) as file:
        file.write(text.getvalue().encode())


def _fit_words(summary: dict[str, Any]) -> str:
    made, written = summary["certificate"], f"written to {summary['model']}"
    sure = 100 * (1 - summary["alpha"])
    if made is None:
        return (
            f"Not even the most careful answers are certified to be wrong in at most {summary['risk']:.3g} of rows, so "
            f"every answer is {ANYTHING!r}: give more rows, or a larger --risk. The model is {written}."
        )
    lines = [
        f"Fitted on {made['n_samples']:,} rows of {summary['n_classes']:,} classes, {written}.",
        f"Answers are nodes of probability {made['threshold']:.3g} or more.",
        f"Wrong: {made['risk']:.2%} of these rows, at most {made['at_most']:.2%} of others ({sure:.4g}% confidence).",
        f"On average an answer rules out {summary['specificity']:.1%} of the classes.",
        f"To use it: polycal answer {summary['model']} PREDICTIONS --out ANSWERS.csv",
    ]
    return "\n".join(lines)


def _answer_words(summary: dict[str, Any]) -> str:
    n, made = summary["n_samples"], summary["certificate"]
    written = "" if summary["out"] is None else f", written to {summary['out']}"
    classes, anything = summary["share_of_classes"], summary["share_of_anything"]
    between = 1.0 - classes - anything
    lines = [
        f"{n:,} rows answered{written}.",
        f"{classes:.1%} with a class, {between:.1%} with a node above, {anything:.1%} with {ANYTHING!r}.",
        *(f"  depth {depth}: {count:,} ({count / n:.1%})" for depth, count in summary["by_depth"].items()),
    ]
    if summary["wrong"] is not None:
        bound = "" if made is None else f" (certified when it was fitted: at most {made['at_most']:.2%})"
        lines.append(f"By the labels in the file {summary['wrong']:.2%} are wrong{bound}.")
    return "\n".join(lines)
