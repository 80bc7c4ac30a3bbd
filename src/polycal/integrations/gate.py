"""One of three outcomes for a test suite or a pipeline: pass, fail, or not enough rows to say."""

from dataclasses import dataclass
from typing import Any, Literal

from polycal._text import printable
from polycal._validation import check_choice, check_real
from polycal.auditing.audit import audit
from polycal.auditing.parts import QuestionError
from polycal.auditing.result import Audit
from polycal.report.words import TOLERANCE, rows_words

Outcome = Literal["pass", "fail", "not enough rows"]
# Of thousands of classes many may be off: so many questions are named.
_SHOWN = 5


class NotEnoughRows(AssertionError):  # noqa: N818 - an outcome, beside pass and fail
    """The rows neither show that predictions are calibrated well enough nor that they are not.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> try:
    ...     pc.integrations.assert_calibrated(made.labels[:100], made.proba[:100], at_most=0.2)
    ... except pc.integrations.NotEnoughRows as error:
    ...     print(str(error)[:56])
    not enough rows to say whether calibrated to within 0.2:
    """


@dataclass(frozen=True)
class Judgement:
    """What an audit says about a tolerance.

    Attributes
    ----------
    outcome : {"pass", "fail", "not enough rows"}
        "fail" if some question is proven to be off by more than the tolerance; "pass" if confidence and every group are
        proven to be right to within it; else "not enough rows".
    reasons : tuple of str
        Why it is no pass, a line for each question; of those that are off the five with the largest proven errors.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(1000, 3, random_state=0)
    >>> pc.integrations.judge(pc.audit(made.labels, made.proba), at_most=0.1)
    Judgement(outcome='pass', reasons=())
    """

    outcome: Outcome
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((self.outcome, *self.reasons))


def judge(result: Audit, *, at_most: float = TOLERANCE) -> Judgement:
    """Read an audit as one of three outcomes.

    Parameters
    ----------
    result : Audit
        What `audit`, `audit_stream` or `distributed.audit` returned; after its calibrator, if it has one.
    at_most : float, default 0.02
        The error that would not matter.

    Returns
    -------
    Judgement

    Notes
    -----
    All bounds of an audit hold together, so that a wrong "pass" or "fail" has a probability of at most its alpha.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(1000, 3, random_state=0)
    >>> print(pc.integrations.judge(pc.audit(made.labels, made.proba)))
    not enough rows
    The error of "confidence" is only known to be at most 0.0...
    """
    check_real(at_most, "at_most", low=0, high=1)
    last = result.after or result
    wrong = [_found_line(question, bound, at_most) for question, bound in last.proven_above(at_most)]
    if wrong:
        others = [f"{len(wrong) - _SHOWN} more questions are too."] if len(wrong) > _SHOWN else []
        return Judgement("fail", (*wrong[:_SHOWN], *others))
    asked = [question for question in (last.confidence, *last.groups) if question is not None]
    unsure = [
        _unsure_line(q, last.n_samples, at_most) for q in asked if q.at_most is None or q.at_most > at_most
    ]
    return Judgement("not enough rows" if unsure else "pass", tuple(unsure))


def assert_calibrated(
    y_true: Any,
    y_proba: Any,
    *,
    at_most: float = TOLERANCE,
    groups: Any = None,
    if_unsure: Literal["fail", "skip", "pass"] = "fail",
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
    alpha: float = 0.05,
    random_state: int = 0,
) -> Judgement:
    """Assert, in a test, that predicted probabilities are right to within a tolerance.

    Parameters
    ----------
    y_true, y_proba
        Labels and predictions, as for `audit`. They must be rows that the model was not fitted on.
    at_most : float, default 0.02
        The error that would not matter.
    groups : mapping of str to list of classes, optional
        Sets of classes whose summed probability matters; each must be right too.
    if_unsure : {"fail", "skip", "pass"}, default "fail"
        What to do when there are not enough rows to say: raise `NotEnoughRows`, skip the test (with pytest), or go on.
    sample_weight, class_names, from_logits, alpha, random_state
        As for `audit`.

    Returns
    -------
    Judgement

    Raises
    ------
    AssertionError
        If a question is proven to be off by more; the message names it. `NotEnoughRows`, which is one as well, says
        about how many rows would do.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(1000, 3, random_state=0)
    >>> pc.integrations.assert_calibrated(made.labels, made.proba, at_most=0.1).outcome
    'pass'
    """
    # Not in a traceback of pytest, which shows where the assertion was made.
    __tracebackhide__ = True
    check_choice(if_unsure, "if_unsure", ("fail", "skip", "pass"))
    check_real(at_most, "at_most", low=0, high=1)
    result = audit(
        y_true,
        y_proba,
        groups=groups,
        sample_weight=sample_weight,
        class_names=class_names,
        from_logits=from_logits,
        alpha=alpha,
        random_state=random_state,
    )
    judged = judge(result, at_most=at_most)
    if judged.outcome == "fail":
        raise AssertionError(f"not calibrated to within {at_most:g}: {' '.join(judged.reasons)}")
    if judged.outcome == "not enough rows" and if_unsure != "pass":
        said = f"not enough rows to say whether calibrated to within {at_most:g}: {' '.join(judged.reasons)}"
        if if_unsure == "skip":
            import pytest  # noqa: PLC0415 - only where tests are run

            pytest.skip(said)
        raise NotEnoughRows(said)
    return judged


def _found_line(question: str, at_least: float, at_most: float) -> str:
    return f'The error of "{printable(question)}" is at least {at_least:.4f}, above {at_most:g}.'


def _unsure_line(question: QuestionError, n_samples: int, at_most: float) -> str:
    name = printable(question.name)
    if question.at_most is None:
        return f'The error of "{name}" has no upper bound: lists hide some of it.'
    needed = rows_words(n_samples, question.at_most, at_most)
    return (
        f'The error of "{name}" is only known to be at most {question.at_most:.4f}; about {needed} rows would show '
        f"{at_most:g} if the predictions are right."
    )
