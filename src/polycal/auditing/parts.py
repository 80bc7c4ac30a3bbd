"""What an audit says of one question, one notion, one witness: the parts of its result."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from polycal.families.notion import ErrorEstimate
from polycal.families.questions import SubsetWitness, TopWitness
from polycal.families.top_set import TopSetWitness
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading
from polycal.report.words import TOLERANCE, rows_needed

Verdict = Literal["off", "right", "not enough rows"]


@dataclass(frozen=True)
class QuestionError:
    """One named yes/no question and its exact smooth calibration error.

    Attributes
    ----------
    name : str
        The class's or group's name.
    classes : tuple of str
        Names of the classes that count as "yes".
    predicted, frequency : float
        Mean predicted probability and observed share of "yes".
    smooth_error : float
        Exact smooth calibration error (plug-in, biased upwards); of lists the least that it can be.
    chance : float
        Standard deviation that ``frequency - predicted`` would have if the predictions were calibrated.
    noise_floor : float or None
        What calibrated predictions would read: the mean of `smooth_error` over redrawn labels. None for
        classes, of which there may be thousands.
    at_least, at_most : float or None
        Bounds of the true error, of which `smooth_error` is an estimate: from all rows, and valid together with all
        others of the audit (see `Audit`). None where lists hide something.
    e_value : float or None
        Evidence against the hypothesis that the question's predictions are right: how many times a stake of 1 has
        grown in bets that gain nothing if they are.
    discovered : bool or None
        Whether e-BH rejects that hypothesis, among the classes or among confidence and groups: of those discovered, a
        share of at most alpha is expected to be right.
    p_value : float or None
        Of the hypothesis that the predictions are calibrated, by redrawing labels; Holm-adjusted over all tests of
        the audit.
    smallest_p_value : float or None
        The smallest p-value that so many redraws could have given. If it is above the audit's alpha, no error of the
        group could have been shown.
    smooth_error_high : float or None
        The most that the error can be, where lists hide it. Such a group has no noise floor and no p-value, since what
        would be redrawn is not known; `predicted` and `frequency` are then the middles of what they can be.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> confidence = pc.audit(made.labels, made.proba, auditors={}).confidence
    >>> confidence.verdict(), confidence.at_least < confidence.smooth_error < confidence.at_most
    ('off', True)
    """

    name: str
    classes: tuple[str, ...]
    predicted: float
    frequency: float
    smooth_error: float
    chance: float
    noise_floor: float | None = None
    p_value: float | None = None
    smallest_p_value: float | None = None
    smooth_error_high: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    e_value: float | None = None
    discovered: bool | None = None

    def verdict(self, tolerance: float = TOLERANCE) -> Verdict:
        """Whether the question is shown to be "off", shown to be "right" to within a tolerance, or "not enough rows".

        Parameters
        ----------
        tolerance : float, default 0.02
            The error that would not matter.

        Returns
        -------
        {"off", "right", "not enough rows"}
        """
        if self.at_most is not None and self.at_most <= tolerance:
            return "right"
        return "off" if (self.at_least or 0.0) > 0.0 else "not enough rows"

    def rows_needed(self, n_samples: int, tolerance: float = TOLERANCE) -> int | None:
        """About how many rows would show that a question is right to within a tolerance, if it is exactly right.

        Parameters
        ----------
        n_samples : int
            The rows there are.
        tolerance : float, default 0.02

        Returns
        -------
        int or None
            None if nothing is known of the bound.
        """
        return None if self.at_most is None else math.ceil(rows_needed(n_samples, self.at_most, tolerance))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        return asdict(self) | {"classes": list(self.classes)}


@dataclass(frozen=True, eq=False)
class MeasuredError:
    """A notion's plug-in error with the noise floor it must be read against.

    Attributes
    ----------
    estimate : ErrorEstimate
        The error on all rows.
    noise_floor : float or None
        Its mean over redrawn labels: what calibrated predictions would read. None where that costs too much.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> error = pc.audit(made.labels, made.proba, notions="confidence", auditors={}).errors[0]
    >>> error.estimate.value > error.noise_floor
    True
    """

    estimate: ErrorEstimate
    noise_floor: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        return {
            "notion": self.estimate.notion.name,
            "definition": repr(self.estimate.notion),
            "value": self.estimate.value,
            "upper": self.estimate.upper,
            "kind": self.estimate.kind,
            "method": self.estimate.method,
            "noise_floor": self.noise_floor,
        }


@dataclass(frozen=True, eq=False)
class Finding:
    """A witness found on one part of the rows and judged on the other.

    Attributes
    ----------
    source : str
        The notion or auditor that led to it.
    witness : Witness
        The weight function.
    certificate : Certificate
        Its correlation with the residual on rows that the search never saw.
    whole_p_value : float or None
        Of the hypothesis that predictions are calibrated, by all rows: for confidence and the kernel, which look at
        something that nobody needs to search for. 1 if the certificate needs no help; None if there is no such test.
    adjusted_p_value : float
        The smaller one of the certificate's and of `whole_p_value`, after correction for all tests of the audit.
    significant : bool
        Whether the adjusted p-value is at most the audit's alpha.
    reading : Reading
        Where the predictions say one thing and the outcomes another, in numbers.
    detectable : float
        The correlation along this witness that would have been found significant with probability about 0.8.
    at_most : float or None
        An upper bound of the question's error, from all rows; None for questions that were searched for, unless they
        turned out to be a class, a group, a rank or confidence.
    words : str or None
        The question by named groups, where it is about more classes than can be listed.
    whole_weight : float
        What the test by all rows counts as in the correction, where a group counts as one; 0 if there is none.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> finding = pc.audit(made.labels, made.proba, notions="confidence").worst
    >>> finding.question, finding.significant, 0 < finding.at_least < finding.certificate.estimate
    ('is the most likely class right?', True, True)
    """

    source: str
    witness: Witness
    certificate: Certificate
    whole_p_value: float | None
    adjusted_p_value: float
    significant: bool
    reading: Reading
    detectable: float
    at_most: float | None = None
    words: str | None = None
    whole_weight: float = 0.0

    @property
    def at_least(self) -> float:
        """The lower bound, or 0."""
        return max(self.certificate.lower_bound, 0.0)

    @property
    def question(self) -> str:
        """What the witness looks at, in words."""
        return self.witness.describe() if self.words is None else self.words

    @property
    def is_question(self) -> bool:
        """Whether the witness weighs one yes/no question, and not the whole prediction."""
        return isinstance(self.witness, SubsetWitness | TopWitness | TopSetWitness)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
        reading = asdict(self.reading)
        for name in ("predicted", "observed"):
            # NaN is not JSON.
            reading[name] = None if math.isnan(reading[name]) else reading[name]
        return {
            "source": self.source,
            "question": self.question,
            "is_question": self.is_question,
            "subset": list(self.witness.subset) if isinstance(self.witness, SubsetWitness) else None,
            "estimate": self.certificate.estimate,
            "lower_bound": self.certificate.lower_bound,
            "p_value": self.certificate.p_value,
            "whole_p_value": self.whole_p_value,
            "adjusted_p_value": self.adjusted_p_value,
            "significant": self.significant,
            "detectable": self.detectable,
            "at_least": self.at_least,
            "at_most": self.at_most,
            "reading": reading,
        }
