"""Calibrators side by side: fitted on one part, judged on another."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._threads import progress_bar, thread_budget
from polycal._typing import Float64s, Ints, Seed
from polycal._validation import check_level, check_same_classes, check_sample, check_seed, check_some
from polycal.calibrators.base import Calibrator
from polycal.calibrators.registry import CALIBRATORS, check_calibrators
from polycal.families.questions import Classwise, Confidence
from polycal.families.subset import SubsetAuditor
from polycal.inference.certificate import Certificate, certify_sample
from polycal.measures.scores import log_losses, sample_scores
from polycal.report.comparison import render_comparison_html, render_comparison_text
from polycal.sample import Sample, split_rows


@dataclass(frozen=True, eq=False)
class ComparedMethod:
    """What one calibrator does to predictions it was not fitted on.

    Attributes
    ----------
    name : str
        The method.
    brier_score, log_loss, accuracy : float
        Proper scores, lower is better, and the part of the rows whose most likely class is right.
    confidence_error, classwise_error : float
        Binned errors, 15 bins: of the most likely class (ECE), and the mean over all classes.
    worst_subset : Certificate
        The worst subset question found on one half of the rows, judged on the other.
    question : str
        That question, in words.
    log_loss_gap, log_loss_gap_error : float
        How far its log loss is behind the best method's, and the standard error of that paired difference.
    fit_seconds, predict_seconds : float
        Time on this machine.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> halves = made.labels[:400], made.proba[:400], made.labels[400:], made.proba[400:]
    >>> comparison = pc.compare_calibrators(*halves, calibrators=["temperature", "identity"])
    >>> best, other = comparison.methods
    >>> best.name, best.log_loss < other.log_loss
    ('temperature', True)
    """

    name: str
    brier_score: float
    log_loss: float
    accuracy: float
    confidence_error: float
    classwise_error: float
    worst_subset: Certificate
    question: str
    log_loss_gap: float
    log_loss_gap_error: float
    fit_seconds: float
    predict_seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Calibrators compared on the same rows, best first. Print it, or turn it into plain data.

    Attributes
    ----------
    methods : tuple of ComparedMethod
        By the mean of their ranks in Brier score and log loss.
    n_fit, n_evaluated, n_classes : int
        Rows the calibrators were fitted on, rows they were judged on, and classes.
    alpha : float
        Level of each method's certificate.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> halves = made.labels[:400], made.proba[:400], made.labels[400:], made.proba[400:]
    >>> comparison = pc.compare_calibrators(*halves, calibrators=["temperature", "identity"])
    >>> comparison
    Comparison(n_methods=2, best='temperature')
    """

    methods: tuple[ComparedMethod, ...]
    n_fit: int
    n_evaluated: int
    n_classes: int
    alpha: float

    @property
    def best(self) -> ComparedMethod:
        """The first of the methods."""
        return self.methods[0]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        return {
            "n_fit": self.n_fit,
            "n_evaluated": self.n_evaluated,
            "n_classes": self.n_classes,
            "alpha": self.alpha,
            "methods": [_method_dict(method) for method in self.methods],
        }

    def to_frame(self) -> Any:
        """A pandas data frame, one row a method."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        return pd.DataFrame(self.to_dict()["methods"])

    def __str__(self) -> str:
        return render_comparison_text(self.to_dict())

    def __repr__(self) -> str:
        return f"Comparison(n_methods={len(self.methods)}, best={self.best.name!r})"

    def _repr_html_(self) -> str:
        return render_comparison_html(self.to_dict())


def compare_calibrators(
    y_fit: Any,
    proba_fit: Any,
    y_evaluated: Any,
    proba_evaluated: Any,
    *,
    calibrators: Mapping[str, Calibrator | str] | Sequence[Calibrator | str] | None = None,
    class_names: Any = None,
    from_logits: bool = False,
    alpha: float = 0.05,
    random_state: Seed = 0,
    n_jobs: int | None = -1,
    progress: bool | None = None,
) -> Comparison:
    """Fit calibrators on some rows and judge them on others, the rows as they are among them.

    Parameters
    ----------
    y_fit, proba_fit : array-like
        Labels and predictions to fit on.
    y_evaluated, proba_evaluated : array-like
        Labels and predictions to judge on, of the same classes.
    calibrators : mapping of str to Calibrator, or list of them, optional
        Which; copies are fitted. Names such as "temperature" will do. By default all that need no arguments.
    class_names, from_logits
        As for `smooth_calibration_error`.
    alpha : float
        Level of each certificate.
    random_state : int, Generator or None, default 0
        Seed.
    n_jobs : int or None, default -1
        Number of threads, -1 for one per core.
    progress : bool, optional
        Whether to draw a progress bar on stderr; by default where that is a terminal.

    Returns
    -------
    Comparison

    Notes
    -----
    Each certificate holds by itself with probability 1 - `alpha`; it is not corrected for the number of methods. To
    choose the best of many methods by a comparison and to quote its scores from the same comparison flatters it, the
    more so the fewer the rows.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, rest = (pc.datasets.load_fashion(part) for part in ("calibration", "evaluation"))
    >>> methods = {"none": pc.IdentityCalibrator(), "temperature": pc.TemperatureScaling()}
    >>> pc.compare_calibrators(fit.labels, fit.proba, rest.labels, rest.proba, calibrators=methods).best.name
    'temperature'
    """
    fit = check_sample(y_fit, proba_fit, class_names=class_names, from_logits=from_logits)
    rest = check_sample(y_evaluated, proba_evaluated, class_names=class_names, from_logits=from_logits)
    seed = check_seed(random_state)
    methods = check_calibrators(list(CALIBRATORS) if calibrators is None else calibrators, seed)
    with thread_budget(n_jobs):
        return compare_samples(fit, rest, methods, alpha, seed, progress)


def compare_samples(
    fit: Sample,
    rest: Sample,
    calibrators: Mapping[str, Calibrator],
    alpha: float,
    seed: int,
    progress: bool | None = None,
) -> Comparison:
    """`compare_calibrators` on validated samples."""
    check_level(alpha, high=0.5)
    check_some(calibrators, "calibrators")
    check_same_classes(rest.n_classes, fit.n_classes, "proba_fit has", "proba_evaluated")
    if fit.class_names is not None and rest.class_names is not None and fit.class_names != rest.class_names:
        raise ValueError(
            "proba_evaluated and proba_fit name their classes differently; give both in the same order."
        )
    if rest.n_samples < 2:
        raise ValueError("proba_evaluated has one row; at least two are needed, to search and to judge.")
    judged = list(_judge_all(fit, rest, calibrators, alpha, seed, progress))
    losses = {method["name"]: method.pop("losses") for method in judged}
    best = min(losses, key=lambda name: rest.mass @ losses[name])
    methods = [
        ComparedMethod(**(method | _gap(losses[method["name"]], losses[best], rest))) for method in judged
    ]
    ranks = np.add(_ranks([m.brier_score for m in methods]), _ranks([m.log_loss for m in methods]))
    ordered = tuple(methods[i] for i in np.argsort(ranks, kind="stable"))
    return Comparison(ordered, fit.n_samples, rest.n_samples, fit.n_classes, alpha)


def _judge_all(
    fit: Sample,
    rest: Sample,
    calibrators: Mapping[str, Calibrator],
    alpha: float,
    seed: int,
    progress: bool | None,
) -> Iterator[dict[str, Any]]:
    from sklearn.base import clone  # noqa: PLC0415 - slow to import

    # The same halves for all methods: parted by the predictions as they came.
    halves = split_rows(rest, (0.5, 0.5), seed)
    level = alpha / max(len(calibrators), 1)
    with progress_bar("comparing", len(calibrators), progress) as advance:
        for name, calibrator in calibrators.items():
            start = time.perf_counter()
            fitted = clone(calibrator).set_params(from_logits=False)._fit_sample(fit)
            middle = time.perf_counter()
            proba = fitted.predict_proba(rest.proba)
            times = {"fit_seconds": middle - start, "predict_seconds": time.perf_counter() - middle}
            after = check_sample(
                rest.labels, proba, sample_weight=rest.sample_weight, class_names=rest.class_names
            )
            yield {"name": name, **_judge(after, halves, level, seed), **times}
            advance()


def _judge(sample: Sample, halves: list[Ints], alpha: float, seed: int) -> dict[str, Any]:
    """Scores, errors, and the certificate of the worst subset."""
    searched, judged = (sample.take(rows) for rows in halves)
    witness = SubsetAuditor(random_state=seed).find(searched)
    return sample_scores(sample) | {
        "confidence_error": Confidence().estimate(sample).value,
        "classwise_error": Classwise(reduce="mean").estimate(sample).value,
        "worst_subset": certify_sample(witness, judged, alpha=alpha),
        "question": witness.describe(),
        "losses": log_losses(sample),
    }


def _gap(losses: Float64s, best: Float64s, sample: Sample) -> dict[str, float]:
    """Mean paired difference of log losses, and its standard error."""
    difference = losses - best
    mean = float(sample.mass @ difference)
    spread = sample.mass * (difference - mean)
    return {"log_loss_gap": mean, "log_loss_gap_error": float(np.sqrt(spread @ spread))}


def _ranks(values: list[float]) -> Float64s:
    from scipy.stats import rankdata  # noqa: PLC0415 - slow to import

    ranks: Float64s = rankdata(values)
    return ranks


def _method_dict(method: ComparedMethod) -> dict[str, Any]:
    plain = {name: value for name, value in vars(method).items() if name != "worst_subset"}
    judged = method.worst_subset
    plain |= {
        f"worst_subset_{name}": getattr(judged, name) for name in ("estimate", "lower_bound", "p_value")
    }
    return plain
