"""One call that measures a classifier's probabilities, searches for the worst question, and proves what it found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from polycal._threads import thread_budget
from polycal._typing import Path, Seed
from polycal._validation import (
    check_auditors,
    check_groups,
    check_kernel,
    check_level,
    check_notions,
    check_sample,
    check_seed,
)
from polycal.auditing.findings import corrected, half_rows, path_source, shortened
from polycal.auditing.naming import named_finding
from polycal.auditing.nodes import asked_nodes
from polycal.auditing.passes import calibrated_rows
from polycal.auditing.questions import rank_name
from polycal.auditing.result import Audit
from polycal.auditing.rows import HeldRows, Measured, Plan, Rows
from polycal.auditing.slicing import NO_SLICES, SlicePlan, asked_slices, column_plan
from polycal.auditing.source import FileSource, MemorySource, Source
from polycal.auditing.streamed import StreamedRows
from polycal.calibrators.base import Calibrator
from polycal.families.defaults import DEFAULT_NOTIONS, default_auditors
from polycal.families.kernel import KernelAuditor
from polycal.families.questions import SubsetWitness, TopWitness
from polycal.families.top_set import TopSetWitness
from polycal.families.witness import Witness
from polycal.io.chunks import PredictionFiles, opened_predictions
from polycal.io.layout import Layout
from polycal.io.memory import DEFAULT_MEMORY
from polycal.io.reader import Part
from polycal.kernels.kernels import Kernel
from polycal.measures.costs import make_losses
from polycal.sample import Remainder, Sample
from polycal.taxonomy import make_taxonomy


def audit(
    y_true: Any,
    y_proba: Any,
    *,
    notions: Any = None,
    auditors: Any = None,
    groups: Any = None,
    losses: Any = None,
    taxonomy: Any = None,
    calibrator: Any = None,
    kernel: Kernel | None = None,
    features: Any = None,
    slices: Any = None,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    remainder: Remainder = "unknown",
    feature_names: Any = None,
    random_state: Seed = 0,
    n_jobs: int | None = -1,
) -> Audit:
    """Find the questions about the label that the predicted probabilities cannot be trusted for, and prove it.

    Half of the rows, chosen at random, are searched for witnesses of miscalibration; the other half, which the
    search never sees, judges them. Everything named (classes, groups) is measured on all rows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Class indices, or class names when these are known.
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities. String columns of a data frame are the class names. A SciPy sparse matrix is lists of
        classes: see Notes.
    notions : sequence of Notion, optional
        What to measure on all rows, and to search for witnesses of with each notion's default auditor; names, as
        ``--notion`` takes them (``["confidence:smooth", "sigmoid:8"]``), will do. By default
        ``Confidence(smooth=True)``, ``Classwise(smooth=True)`` and ``SubsetSmooth()``.
    auditors : mapping of str to Auditor, optional
        Searches to run instead of the notions' default ones; the names appear in the findings. A list will do, and
        instead of an auditor the name of the notion that it searches, or ``"kernel"``.
    groups : mapping of str to list of classes, optional
        Sets of classes whose summed probability matters, such as ``{"animal": ["cat", "dog"]}``.
    losses : mapping of str to loss, optional
        What actions cost, by the name of what they are about: for each a matrix of shape (n_actions, n_classes), a
        mapping from action to costs, or a data frame (see `make_loss`), such as ``{"triage": {"treat": {"sick": 0,
        "default": 1}, "wait": {"sick": 20, "default": 0}, "ask": 2}}``. See `Audit.costs`.
    taxonomy : Taxonomy, mapping or list, optional
        A tree of the classes, as for `make_taxonomy`: every node becomes a question (`Audit.nodes`).
    calibrator : Calibrator, optional
        A fitted calibrator: the same rows are audited before and after it (`Audit.after`). They must not be rows it
        was fitted on, where any calibrator looks good.
    kernel : Kernel, optional
        Of the kernel search that every audit makes unless `auditors` are given. By default ``Gaussian(0.2)``.
    features : data frame, mapping, or array of shape (n_samples, n_features), optional
        What else is known of each row: numbers, text, truth values, dates, with gaps. Rows that are off are searched
        for by them (`Audit.slices`). A row's values stand where its prediction stands.
    slices : mapping of str to mask, or list of columns of `features`, optional
        Slices to measure: rows by name, such as ``{"new users": is_new}``, or every value of the columns
        (`Audit.named_slices`).
    alpha : float, default 0.05
        Level of all tests together, and of all bounds together.
    sample_weight, class_names, from_logits, remainder
        As for `smooth_calibration_error`.
    feature_names : sequence of str, optional
        Names of the columns of `features`, if it is an array.
    random_state : int, Generator or None, default 0
        Seed of the halves and of every random step.
    n_jobs : int or None, default -1
        Number of threads; the result does not depend on it beyond rounding.

    Returns
    -------
    Audit

    See Also
    --------
    audit_stream : The same audit of files.
    polycal.distributed.audit : The same audit on a Dask cluster.

    Notes
    -----
    All bounds hold together with probability at least 1 - `alpha`, whatever the distribution of the data: the lower
    bounds of the findings at a level of `alpha` / 2 over their number, and ``at_least`` and ``at_most`` of confidence,
    groups and classes with the other half (see `QuestionError`; these are not searched for, so that all rows judge
    them). With calibrated predictions the chance that any finding or group is called significant is at most `alpha`:
    what is searched for is tested on the other half by betting, with half of `alpha`; confidence, groups, the kernel
    (up to 20,000 rows) and all sets of few classes (n 2^k up to 2,097,152) on all rows by redrawing labels, with the
    other half. Holm's correction is over all tests of either kind. When nothing is significant, the audit says how
    large an error would have been found.

    The same rows, seed and options give the same audit, to rounding, whether the rows are in memory, in files or on a
    cluster. Up to 4,194,304 probabilities (n k, with k at least 20) everything is exact. Beyond, rows go by in three
    passes: errors are computed in cells of the predicted probability, searches see a random sample of the searched
    half, and `Audit.approximations` says so. What is found is judged on every row of the other half in either case.

    Of lists of classes, everything that lists hide is an interval: scores have a ``<name>_high``, classes and groups a
    ``smooth_error_high``, errors an ``upper``. The true value of the full predictions lies between, however the lists
    are completed. Findings are judged by the least that each row can be worth, so that a certificate never says more
    than one of the full predictions would. At most 1,000 classes are measured, those that matter most; groups have a
    p-value only where lists hide nothing of them. In `HELD_CELLS` lists count by their entries.

    Which half a row belongs to depends on the seed and, up to that size, on what the row holds, so that the order of
    rows does not matter; beyond, on its number.

    Examples
    --------
    >>> import polycal as pc
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> audit = pc.audit(
    ...     example.labels, example.proba, class_names=example.class_names,
    ...     groups={"footwear": ["Sandal", "Sneaker", "Ankle_boot"]},
    ... )
    >>> audit.groups[0].name, round(audit.groups[0].smooth_error, 4)
    ('footwear', 0.0005)
    >>> audit.worst.significant
    True
    """
    sample = check_sample(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        remainder=remainder,
        features=features,
        feature_names=feature_names,
    )
    sample, asked = asked_slices(sample, slices)
    source = MemorySource(sample)
    plan = make_plan(
        source,
        notions=notions,
        auditors=auditors,
        groups=groups,
        losses=losses,
        taxonomy=taxonomy,
        kernel=kernel,
        alpha=alpha,
        random_state=random_state,
        n_jobs=n_jobs,
        slices=asked,
    )
    with thread_budget(n_jobs):
        return audit_source(source, plan, calibrator)


def audit_stream(
    data: Path | Sequence[Path] | PredictionFiles,
    *,
    notions: Any = None,
    auditors: Any = None,
    groups: Any = None,
    losses: Any = None,
    taxonomy: Any = None,
    calibrator: Any = None,
    kernel: Kernel | None = None,
    alpha: float = 0.05,
    memory: int | str = DEFAULT_MEMORY,
    part: Part = "all",
    slice_by: Sequence[str] = (),
    label: str | None = None,
    weight: str | None = None,
    classes: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    from_logits: bool = False,
    normalize: bool = False,
    format: str | None = None,
    remainder: Remainder = "unknown",
    random_state: Seed = 0,
    n_jobs: int | None = -1,
) -> Audit:
    r"""Audit predictions in files, which need not fit into memory.

    The audit is that of `audit`, with the same numbers for the same rows.

    Parameters
    ----------
    data : str, path, list of them, or PredictionFiles
        Files, folders and patterns of files, as for `open_predictions`.
    notions, auditors, groups, losses, taxonomy, calibrator, kernel, alpha, random_state, n_jobs
        As for `audit`.
    memory : int or str, default "1GiB"
        What may be allocated in all, at least 512 MiB; more is used by the compiler in the first run, for weights that
        differ from row to row, of which 24 bytes are kept for each judging row and finding, and with thousands of
        classes, whose searches take memory quadratic in their number. The result does not depend on it.
    part : {"all", "calibration", "evaluation"}
        Which rows, for files that mark them.
    slice_by : list of str
        Columns of the files, which are no classes: rows that are off are searched for by them, and their values are
        measured as named slices (see `audit`).
    label, weight, classes, drop, from_logits, normalize, format
        What the columns of the files are and how to read them, as for `read_predictions`.
    remainder : {"unknown", "spread", "anywhere", "class"}, default "unknown"
        For files of lists of classes (see `open_lists`): what is said of the rest, see `smooth_calibration_error`.

    Returns
    -------
    Audit

    Notes
    -----
    Rows that are too many to be held (see `audit`) go by three times, in time linear in their number and in bounded
    memory:

    1. The first pass adds up scores, classes and groups over all rows, and draws a random sample, the sketch, from
       the searched half.
    2. Questions are searched on the sketch. The kernel search sees all of the searched half, in a second pass (see
       `KernelState`).
    3. The last pass judges what was found on all rows of the judging half. Only this proves anything, and it leaves
       no row out.

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
    ...     audit = pc.audit_stream(folder)
    >>> audit.n_samples, audit.worst.significant
    (10000, True)
    """
    layout = Layout(label, weight, classes, drop, slice_by, from_logits, normalize, format)
    source = FileSource(opened_predictions(data, memory, part, remainder, layout))
    plan = make_plan(
        source,
        notions=notions,
        auditors=auditors,
        groups=groups,
        losses=losses,
        taxonomy=taxonomy,
        kernel=kernel,
        alpha=alpha,
        random_state=random_state,
        n_jobs=n_jobs,
        slices=column_plan(source.files.sliced_by, is_listed=source.is_listed),
    )
    with thread_budget(n_jobs):
        return audit_source(source, plan, calibrator)


def make_plan(
    source: Source,
    *,
    notions: Any,
    auditors: Any,
    groups: Any,
    losses: Any = None,
    taxonomy: Any = None,
    kernel: Kernel | None,
    alpha: float,
    random_state: Seed,
    n_jobs: int | None,
    slices: SlicePlan = NO_SLICES,
) -> Plan:
    """Check the options of an audit."""
    check_level(alpha, high=0.5)
    seed = check_seed(random_state)
    notions = DEFAULT_NOTIONS if notions is None else check_notions(notions)
    searches = (
        default_auditors(notions, seed, source.n_classes)
        if auditors is None
        else check_auditors(auditors, seed)
    )
    if kernel is not None:
        check_kernel(kernel)
        if auditors is None:
            searches["kernel"] = KernelAuditor(kernel, random_state=seed)
    if losses is not None and source.is_listed:
        raise ValueError("losses need full predictions, and these are lists of classes: drop losses.")
    tree = None if taxonomy is None else make_taxonomy(taxonomy)
    nodes = None if tree is None else asked_nodes(tree, source.n_classes, source.class_names)
    costs = make_losses(losses, source.n_classes, source.class_names)
    classes = Sample(np.empty((0, source.n_classes)), np.empty(0, dtype=np.int64), None, source.class_names)
    return Plan(
        notions, searches, check_groups(groups, classes), float(alpha), seed, n_jobs, costs, nodes, slices
    )


def audit_source(source: Source, plan: Plan, calibrator: Any = None) -> Audit:
    """The audit of any source of rows; before and after a calibrator, if there is one."""
    if calibrator is not None:
        if source.is_listed:
            raise ValueError(
                "a calibrator needs full predictions, and these are lists of classes: drop calibrator."
            )
        check_calibrator(calibrator, source.class_names)
    held = source.gather()
    if held is None:
        before: Rows = StreamedRows(source, plan, tried=calibrator)
        after: Rows = StreamedRows(source, plan, calibrator)
    else:
        if held.sample_weight is not None and not held.sample_weight.any():
            raise ValueError("the weights of all rows are 0; at least one must be positive.")
        halves = half_rows(held, plan.seed)
        before = HeldRows(held, halves, plan, calibrator)
        after = before if calibrator is None else HeldRows(calibrated_rows(held, calibrator), halves, plan)
    first = _audit(before, source.n_classes, plan)
    if calibrator is None:
        return replace(first, pictures=before.pictures(first.findings))
    second = _audit(after, source.n_classes, plan)
    found = after.found_pictures(second.findings, before)
    return replace(
        first,
        pictures=after.pictures(first.findings, before),
        calibrator=repr(calibrator),
        after=replace(second, pictures=tuple(found)),
    )


def _audit(rows: Rows, n_classes: int, plan: Plan) -> Audit:
    """Measure, search and judge, without pictures."""
    measured = rows.measure()
    found, groups = corrected(rows.find(), measured.groups, plan.alpha, plan.core)
    named = {**(plan.nodes.named if plan.nodes else {}), **plan.groups}
    ranked = [
        named_finding(replace(finding, at_most=_at_most(finding.witness, measured)), named)
        for finding in found
    ]
    findings, path = shortened(ranked, path_source(plan.auditors))
    slices = rows.slices()
    return Audit(
        n_samples=measured.n_samples,
        n_classes=n_classes,
        n_fit=measured.n_searched,
        n_judge=measured.n_judging,
        alpha=plan.alpha,
        random_state=plan.seed,
        scores=measured.scores,
        errors=rows.errors(),
        findings=findings,
        path=path,
        classes=measured.classes,
        groups=groups,
        confidence=measured.confidence,
        ranks=measured.ranks,
        nodes=measured.nodes,
        slices=slices.found,
        named_slices=slices.named,
        costs=rows.costs(),
        weighted=measured.weighted,
        approximations=rows.approximations,
        default_notions=tuple(plan.notions) == DEFAULT_NOTIONS,
    )


def _at_most(witness: Witness, measured: Measured) -> float | None:
    """The upper bound of a question that was found, if it is one that nobody needed to search for."""
    if isinstance(witness, TopWitness):
        return measured.confidence.at_most if len(witness.phis) == 1 else None
    if isinstance(witness, TopSetWitness):
        return next((q.at_most for q in measured.ranks if q.name == rank_name(witness.m)), None)
    if not isinstance(witness, SubsetWitness):
        return None
    classes = tuple(witness.name(int(c)) for c in witness.members)
    return next((q.at_most for q in (*measured.groups, *measured.classes) if q.classes == classes), None)


def check_calibrator(calibrator: Any, class_names: tuple[str, ...] | None) -> None:
    """Refuse what is no fitted calibrator of these classes."""
    if not isinstance(calibrator, Calibrator):
        raise TypeError(f"calibrator must be a fitted polycal calibrator; got {type(calibrator).__name__}.")
    if not calibrator.__sklearn_is_fitted__():
        raise ValueError("calibrator is not fitted yet; call its fit on rows that are not audited here.")
    names = calibrator.class_names_
    if None not in {names, class_names} and names != class_names:
        raise ValueError("calibrator was fitted on classes of other names, or in another order.")
