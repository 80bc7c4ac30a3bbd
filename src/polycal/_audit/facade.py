"""One call that measures a classifier's probabilities, searches for the worst question, and proves what it found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polycal._audit.calibrated import calibrated_sample
from polycal._audit.curves import Picture
from polycal._audit.findings import find_all, half_rows
from polycal._audit.pictures import found_pictures, named_pictures
from polycal._audit.questions import class_errors, group_errors
from polycal._audit.result import Audit, MeasuredError
from polycal._threads import one_blas_thread, thread_budget
from polycal._typing import Ints
from polycal._validation import (
    check_auditors,
    check_groups,
    check_level,
    check_notions,
    check_sample,
    check_seed,
)
from polycal.families.auditor import Auditor
from polycal.families.defaults import DEFAULT_NOTIONS, default_auditors
from polycal.families.notion import Notion
from polycal.inference.redraw import null_draws
from polycal.measures.scores import sample_scores
from polycal.sample import Sample

# Redraws of the labels for the noise floor of a notion, within a budget of cells n k.
_FLOOR_DRAWS, _FLOOR_BUDGET = 20, 40_000_000


def audit(
    y_true: Any,
    y_proba: Any,
    *,
    notions: Sequence[Notion] | None = None,
    auditors: Mapping[str, Auditor] | None = None,
    groups: Any = None,
    calibrator: Any = None,
    alpha: float = 0.05,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    random_state: int = 0,
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
        Predicted probabilities. String columns of a data frame are the class names.
    notions : sequence of Notion, optional
        What to measure on all rows, and to search for witnesses of with each notion's default auditor. By default
        ``Confidence(smooth=True)``, ``Classwise(smooth=True)`` and ``SubsetSmooth()``.
    auditors : mapping of str to Auditor, optional
        Searches to run instead of the notions' default ones; the names appear in the findings.
    groups : mapping of str to list of classes, optional
        Sets of classes whose summed probability matters, such as ``{"animal": ["cat", "dog"]}``.
    calibrator : Calibrator, optional
        A fitted calibrator: the same rows are audited before and after it (`Audit.after`). They must not be rows it
        was fitted on, where any calibrator looks good.
    alpha : float, default 0.05
        Level of every test (Holm over the findings, and over the groups) and of every bound.
    sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.
    random_state : int, default 0
        Seed of the halves and of every random step.
    n_jobs : int or None, default -1
        Number of threads; the result does not depend on it.

    Returns
    -------
    Audit

    Notes
    -----
    A certificate's lower bound holds for its finding with probability at least 1 - `alpha`, whatever the
    distribution of the data. With calibrated predictions the chance that any finding is called significant is
    at most `alpha`. When nothing is significant, the audit says how large an error would have been found.

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
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    named = check_groups(groups, sample)
    check_level(alpha, high=0.5)
    seed = check_seed(random_state)
    notions = DEFAULT_NOTIONS if notions is None else check_notions(notions)
    searches = default_auditors(notions, seed) if auditors is None else check_auditors(auditors)
    plan = _Plan(notions, searches, named, float(alpha), seed, n_jobs)
    with thread_budget(n_jobs), one_blas_thread(sample.n_samples * sample.n_classes**2):
        halves = half_rows(sample, seed)
        if calibrator is None:
            return _with_pictures(_audit(sample, halves, plan), {"as given": sample}, halves, plan)
        series = {"before": sample, "after": calibrated_sample(sample, calibrator)}
        before = _with_pictures(_audit(sample, halves, plan), series, halves, plan)
        after = _audit(series["after"], halves, plan)
        found = _found(after, series, halves, plan)
    return replace(before, calibrator=repr(calibrator), after=replace(after, pictures=tuple(found)))


@dataclass(frozen=True, eq=False)
class _Plan:
    """What to measure, search and draw, and how."""

    notions: Sequence[Notion]
    searches: Mapping[str, Auditor]
    groups: dict[str, Ints]
    alpha: float
    seed: int
    n_jobs: int | None


_Halves = tuple[Ints, Ints] | None


def _audit(sample: Sample, halves: _Halves, plan: _Plan) -> Audit:
    """Measure, search and judge one set of predictions."""
    parts = None if halves is None else (sample.take(halves[0]), sample.take(halves[1]))
    alpha, seed, n_jobs = plan.alpha, plan.seed, plan.n_jobs
    return Audit(
        n_samples=sample.n_samples,
        n_classes=sample.n_classes,
        n_fit=0 if parts is None else parts[0].n_samples,
        n_judge=0 if parts is None else parts[1].n_samples,
        alpha=alpha,
        random_state=seed,
        scores=sample_scores(sample),
        errors=tuple(_measure(sample, notion, seed) for notion in plan.notions),
        findings=() if parts is None else find_all(plan.searches, *parts, alpha, seed, n_jobs),
        classes=class_errors(sample, n_jobs),
        groups=group_errors(sample, plan.groups, seed, n_jobs, alpha),
        weighted=sample.sample_weight is not None,
    )


def _with_pictures(audit: Audit, series: Mapping[str, Sample], halves: _Halves, plan: _Plan) -> Audit:
    first, *groups = named_pictures(series, plan.groups, 1 - plan.alpha, plan.n_jobs)
    return replace(audit, pictures=(first, *_found(audit, series, halves, plan), *groups))


def _found(audit: Audit, series: Mapping[str, Sample], halves: _Halves, plan: _Plan) -> list[Picture]:
    """The questions found, drawn on the rows that judged them."""
    if halves is None:
        return []
    judged = {name: sample.take(halves[1]) for name, sample in series.items()}
    return found_pictures(judged, audit.findings, 1 - plan.alpha)


def _measure(sample: Sample, notion: Notion, seed: int) -> MeasuredError:
    """The notion's plug-in error, and its mean over redrawn labels where that is cheap."""
    estimate = notion.estimate(sample)
    cost = sample.n_samples * sample.n_classes * (1 if notion.name in _CHEAP else 100)
    n_draws = min(_FLOOR_DRAWS, _FLOOR_BUDGET // cost)
    if n_draws < 2:
        return MeasuredError(estimate, None)
    draws = null_draws(sample, lambda redrawn: notion.estimate(redrawn).value, n_draws, seed)
    return MeasuredError(estimate, float(draws.mean()))


# Notions whose estimate is a few sorts; the others are searches.
_CHEAP = frozenset({"confidence", "top-label", "classwise", "canonical"})
