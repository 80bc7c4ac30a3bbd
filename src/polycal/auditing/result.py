"""What an audit returns: frozen results that print, and turn into plain data."""

import math
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path as FilePath
from platform import python_version
from typing import Any, Literal

from polycal._typing import Path
from polycal._version import __version__
from polycal.auditing.pictures import Picture
from polycal.families.notion import ErrorEstimate
from polycal.families.questions import SubsetWitness, TopWitness
from polycal.families.top_set import TopSetWitness
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading
from polycal.report.fragment import render_fragment
from polycal.report.markdown import render_markdown
from polycal.report.page import render_page
from polycal.report.terminal import render_text
from polycal.report.words import TOLERANCE, rows_needed
from polycal.storage.atomic import replacing

# Of what `Audit.to_dict` returns. Keys may be added within a version, never renamed or removed.
SCHEMA_VERSION = 1

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
        would be redrawn is not known; `predicted` is then the middle of what it can be.
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

    @property
    def at_least(self) -> float:
        """The lower bound, or 0."""
        return max(self.certificate.lower_bound, 0.0)

    @property
    def question(self) -> str:
        """What the witness looks at, in words."""
        return self.witness.describe()

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


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit measured, found and proved. Print it, or turn it into plain data with `to_dict`.

    All bounds hold together with probability at least 1 - alpha: the lower bounds of the findings, and `at_least` and
    `at_most` of confidence, groups and classes. All tests together call calibrated predictions significant with
    probability at most alpha. What e-BH discovers among many classes may be wrong for a share alpha of them.

    Attributes
    ----------
    n_samples, n_classes : int
        Size of the audited predictions.
    n_fit, n_judge : int
        Rows on which witnesses were searched, and rows on which they were judged; 0 if there were too few.
    alpha : float
        Level of tests and bounds.
    random_state : int
        Seed of everything random.
    scores : dict of str to float
        Accuracy, Brier score and log loss; of those that lists hide the least, with the most under ``<name>_high``.
    errors : tuple of MeasuredError
        The notions measured, on all rows.
    findings : tuple of Finding
        Witnesses judged on held-out rows, the significant ones first, and of these the largest proven error.
    classes : tuple of QuestionError
        Every class as a question, worst first; of lists with more than 1,000 classes those that matter most.
    groups : tuple of QuestionError
        Every named group as a question, in the order given.
    confidence : QuestionError or None
        "Is the most likely class right?"
    ranks : tuple of QuestionError
        "Is it among the m most likely?", for m = 2, 3, 5 and 10 below the number of classes; not of lists.
    pictures : tuple of Picture
        What to draw: confidence, the worst questions found, and every group.
    weighted : bool
        Whether rows had weights.
    approximations : tuple of str
        What was not computed exactly because there were more than `HELD_CELLS` probabilities, in sentences; empty where
        everything is exact. Of lists, also what they hide.
    default_notions : bool
        Whether the notions were those that an audit measures unless told otherwise.
    calibrator : str or None
        The calibrator whose effect was audited, in words.
    after : Audit or None
        The audit of the same rows after the calibrator; both search on the same half, and judge on the other.
    """

    n_samples: int
    n_classes: int
    n_fit: int
    n_judge: int
    alpha: float
    random_state: int
    scores: dict[str, float]
    errors: tuple[MeasuredError, ...]
    findings: tuple[Finding, ...]
    classes: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]
    confidence: QuestionError | None = None
    ranks: tuple[QuestionError, ...] = ()
    pictures: tuple[Picture, ...] = ()
    weighted: bool = False
    approximations: tuple[str, ...] = ()
    default_notions: bool = True
    calibrator: str | None = None
    after: "Audit | None" = None

    @property
    def worst(self) -> Finding | None:
        """The yes/no question with the largest proven error; None if there were too few rows to search.

        Findings about the whole prediction (a kernel's, say) are on another scale, up to 2, and no question to act
        on: they stand here only if no question was searched.
        """
        questions = [f for f in self.findings if f.is_question]
        return next(iter(questions or self.findings), None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dictionaries: ready for JSON, and for every report."""
        return {
            "schema_version": SCHEMA_VERSION,
            "n_samples": self.n_samples,
            "n_classes": self.n_classes,
            "n_fit": self.n_fit,
            "n_judge": self.n_judge,
            "alpha": self.alpha,
            "random_state": self.random_state,
            "weighted": self.weighted,
            "approximations": list(self.approximations),
            "default_notions": self.default_notions,
            "scores": dict(self.scores),
            "errors": [e.to_dict() for e in self.errors],
            "findings": [f.to_dict() for f in self.findings],
            "classes": [q.to_dict() for q in self.classes],
            "groups": [q.to_dict() for q in self.groups],
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "ranks": [q.to_dict() for q in self.ranks],
            "pictures": [picture.to_dict() for picture in self.pictures],
            "calibrator": self.calibrator,
            "after": None if self.after is None else self.after.to_dict(),
            "versions": _versions(),
        }

    def to_html(
        self, path: Path | None = None, *, title: str | None = None, command: str | None = None
    ) -> str:
        """Write the report as one HTML page that needs nothing else: it opens offline, in any browser.

        Parameters
        ----------
        path : str or path, optional
            The file, which is replaced as a whole or not at all. By default nothing is written.
        title : str, optional
            What was audited, such as the model's name.
        command : str, optional
            The command that made the audit, to be shown under "how to reproduce". By default a call in Python.

        Returns
        -------
        str
            The page.
        """
        return _written(render_page(self.to_dict(), title=title, command=command), path)

    def to_markdown(
        self, path: Path | None = None, *, title: str | None = None, command: str | None = None
    ) -> str:
        """Write the report as Markdown, without pictures. Parameters and result are those of `to_html`.

        Parameters
        ----------
        path, title, command
            As for `to_html`.

        Returns
        -------
        str
            The text.
        """
        return _written(render_markdown(self.to_dict(), title=title, command=command), path)

    def to_frame(self) -> Any:
        """The findings as a pandas data frame, one row each."""
        import pandas as pd  # noqa: PLC0415 - an optional dependency

        return pd.DataFrame([_flat(f.to_dict()) for f in self.findings])

    def __str__(self) -> str:
        return render_text(self.to_dict())

    def __repr__(self) -> str:
        proven = sum(f.significant for f in self.findings)
        size = f"n_samples={self.n_samples}, n_classes={self.n_classes}"
        return f"Audit({size}, findings={len(self.findings)}, proven={proven})"

    def _repr_html_(self) -> str:
        return render_fragment(self.to_dict())


def _written(text: str, path: Path | None) -> str:
    if path is not None:
        with replacing(FilePath(path)) as file:
            file.write(text.encode())
    return text


def _flat(finding: dict[str, Any]) -> dict[str, Any]:
    """A finding's dictionary without nested ones, for a data frame."""
    reading = finding.pop("reading")
    return finding | {"says": reading["predicted"], "is": reading["observed"], "share": reading["share"]}


def _versions() -> dict[str, str]:
    """What the numbers were made with."""
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {"polycal": __version__, "python": python_version()} | others
