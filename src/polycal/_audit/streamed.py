"""The audit of predictions that are larger than the memory: three passes over chunks of rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from polycal._audit.bundle import Bundle, feed
from polycal._audit.curves import Picture
from polycal._audit.findings import MIN_ROWS
from polycal._audit.pictures import found_pictures, named_pictures
from polycal._audit.plan import StreamPlan, make_plan, pass_threads
from polycal._audit.result import Audit, Finding
from polycal._audit.streamed_results import (
    class_results,
    findings_of,
    group_results,
    measured_errors,
    reading_state,
)
from polycal._threads import thread_budget
from polycal._typing import Path
from polycal.families.auditor import Auditor
from polycal.families.questions import SubsetWitness
from polycal.families.witness import Witness
from polycal.io.chunks import DEFAULT_MEMORY, PredictionFiles, opened_predictions
from polycal.io.predictions import Part
from polycal.kernels.kernels import Gaussian, Kernel
from polycal.sample import Sample
from polycal.states.certificate import CertificateState
from polycal.states.kernel import KernelState, choose_landmarks
from polycal.states.questions import ClassesState, QuestionState
from polycal.states.rows import SketchState
from polycal.states.sums import ScoreState

KERNEL = Gaussian(0.2)
# Rows of the pictures: more could not be seen.
_DRAWN_ROWS = 20_000
_RESOLUTION = 2.0**-16
_CLASS_RESOLUTION = 2.0**-10

# From a bundle that has seen nothing to one that has seen all rows.
Pass = Callable[[Bundle], Bundle]


def audit_stream(
    data: Path | Sequence[Path] | PredictionFiles,
    *,
    auditors: Mapping[str, Auditor] | None = None,
    groups: Any = None,
    kernel: Kernel = KERNEL,
    alpha: float = 0.05,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    random_state: int = 0,
    n_jobs: int | None = -1,
) -> Audit:
    r"""Audit predictions that need not fit into memory, chunk by chunk.

    The same questions as `audit` asks, with the same kind of proof, in time linear in the number of rows and in
    bounded memory.

    Parameters
    ----------
    data : str, path, list of them, or PredictionFiles
        Files, folders and patterns of files, as for `open_predictions`.
    auditors : mapping of str to Auditor, optional
        Searches to run on the sketch, instead of the default ones and the kernel.
    groups : mapping of str to list of classes, optional
        As for `audit`.
    kernel : Kernel, default Gaussian(0.2)
        Of the kernel search, which uses all searched rows.
    alpha : float, default 0.05
        Level of every test and bound.
    memory : int or str, default "1GiB"
        What may be used in all, at least 512 MiB; more is used for weights that differ from row to row, of which
        24 bytes are kept for each judging row and finding, and with thousands of classes, whose searches take memory
        quadratic in their number.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files that mark them.
    random_state : int, default 0
        Seed of the halves and of every random step.
    n_jobs : int or None, default -1
        Number of threads; the result depends on it by rounding only.

    Returns
    -------
    Audit

    Notes
    -----
    Every row is searched or judges, by a coin that depends on its place and the seed.

    1. The first pass adds up scores, classes and groups over all rows, and draws a random sample, the sketch, from
       the searched half.
    2. Questions are searched on the sketch. The kernel search sees all of the searched half, in a second pass (see
       `KernelState`).
    3. The last pass judges what was found on all rows of the judging half. Only this proves anything, and it leaves
       no row out.

    Errors of confidence and of groups are computed in cells of width 2^-16 of the predicted probability, those of
    classes in cells of width 2^-10; what this can change (see `QuestionState`) is taken off the notions' errors,
    which are lower bounds therefore. Noise floors and the groups' p-values draw residuals as normal, which is accurate
    for the many rows that this function is for; groups are tested in cells of width 2^-10.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in range(2):
    ...         part = example.take(slice(5000 * day, 5000 * day + 5000))
    ...         pc.write_predictions(Path(folder, f"{day}.npz"), part.labels, part.proba)
    ...     audit = audit_stream(folder)
    >>> audit.n_samples, audit.worst.significant
    (10000, True)
    """
    files = opened_predictions(data, memory, part)
    plan = make_plan(files, auditors, groups, kernel, alpha, random_state, n_jobs)
    with thread_budget(n_jobs):
        n_threads = pass_threads(plan, files)
        return run_passes(plan, lambda bundle: feed(bundle, files, n_threads))


def run_passes(plan: StreamPlan, run: Pass) -> Audit:
    """Measure, search and judge; ``run`` shows all rows to a bundle of states."""
    measured = run(_measuring(plan))
    scores = measured.states["scores"]
    if scores.n_samples == 0:
        raise ValueError("there is no row to audit.")
    if scores.total_weight == 0:
        raise ValueError("the weights of all rows are 0; at least one must be positive.")
    found: dict[str, Witness] = {}
    judged = Bundle(plan.seed)
    if min(measured.n_fit, measured.n_judge) >= MIN_ROWS:
        sketch: Sample = measured.finish("sketch")
        found = _search(plan, sketch, run)
        judged = run(_judging(plan, found, sketch))
    findings = findings_of(plan, judged, found)
    return Audit(
        n_samples=scores.n_samples,
        n_classes=plan.n_classes,
        n_fit=measured.n_fit if found else 0,
        n_judge=measured.n_judge if found else 0,
        alpha=plan.alpha,
        random_state=plan.seed,
        scores=scores.finish(),
        errors=measured_errors(measured, judged, found, plan.class_names, plan.seed),
        findings=findings,
        classes=class_results(measured, plan.class_names),
        groups=group_results(measured, plan),
        weighted=scores.total_weight != scores.n_samples,
        pictures=_pictures(plan, measured, findings),
    )


def _pictures(plan: StreamPlan, measured: Bundle, findings: Sequence[Finding]) -> tuple[Picture, ...]:
    """All questions drawn on a random sample of the rows that judge."""
    if measured.n_judge == 0:
        return ()
    series = {"as given": measured.finish("drawn")}
    level = 1 - plan.alpha
    first, *groups = named_pictures(series, plan.groups, level, plan.n_jobs)
    found = found_pictures(series, findings, level)
    return tuple(replace(picture, rows="sampled") for picture in (first, *found, *groups))


def _measuring(plan: StreamPlan) -> Bundle:
    """What the first pass adds up."""
    bundle = Bundle(plan.seed)
    bundle.add("sketch", SketchState(plan.sketch_rows, random_state=plan.seed), "fit")
    drawn = min(_DRAWN_ROWS, max(1, plan.sketch_rows // 4))
    bundle.add("drawn", SketchState(drawn, random_state=plan.seed), "judge")
    bundle.add("scores", ScoreState(), "all")
    bundle.add("classes", ClassesState(resolution=_CLASS_RESOLUTION), "all")
    bundle.add("confidence", QuestionState(resolution=_RESOLUTION), "all")
    for name, members in plan.groups.items():
        bundle.add(f"group {name}", QuestionState(members.tolist(), resolution=_RESOLUTION), "all")
    return bundle


def _search(plan: StreamPlan, sketch: Sample, run: Pass) -> dict[str, Witness]:
    """The witnesses: of questions, from the sketch; of the kernel, from all searched rows."""
    witnesses = [auditor.find(sketch) for auditor in plan.searches.values()]
    found: dict[str, Witness] = dict(zip(plan.searches, witnesses, strict=True))
    if plan.kernel is not None:
        bundle = Bundle(plan.seed)
        state = KernelState(choose_landmarks(sketch), plan.kernel, random_state=plan.seed)
        bundle.add("kernel", state, "fit")
        found["kernel"] = run(bundle).finish("kernel")
    return found


def _judging(plan: StreamPlan, found: Mapping[str, Witness], sketch: Sample) -> Bundle:
    """What the last pass adds up."""
    bundle = Bundle(plan.seed)
    for source, witness in found.items():
        state = CertificateState(
            witness, alpha=plan.alpha, random_state=plan.seed, most_played=plan.most_played
        )
        bundle.add(f"certificate {source}", state, "judge")
        bundle.add(f"reading {source}", reading_state(witness, sketch), "judge")
        if isinstance(witness, SubsetWitness):
            question = QuestionState(witness.members.tolist(), resolution=_RESOLUTION)
            bundle.add(f"question {source}", question, "all")
    return bundle
