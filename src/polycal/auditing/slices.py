"""What an audit says of slices: those that a search found, and those that have names."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polycal._text import printable
from polycal.auditing.costs import Cost
from polycal.auditing.parts import QuestionError
from polycal.families.slices import Condition, Interval, SliceWitness
from polycal.families.witness import Witness
from polycal.inference.certificate import Certificate, Reading


@dataclass(frozen=True)
class SliceRows(Mapping[str, Any]):
    """The rows of a slice: a mapping from columns to what they are there, and how many rows that is.

    Attributes
    ----------
    conditions : tuple of Condition
        What the rows have in common; none if the finding is about all rows.
    n_rows : int
        How many rows of those that judged are in the slice.
    share : float
        Their share of the weight.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(2000, 3, random_state=0)
    >>> site = np.repeat(["north", "south"], 1000)
    >>> labels = np.where(site == "north", (made.labels + 1) % 3, made.labels)
    >>> audit = pc.audit(labels, made.proba, features={"site": site}, notions="confidence")
    >>> dict(audit.slices[0].rows), round(audit.slices[0].rows.share, 1)
    ({'site': 'north'}, 0.5)
    """

    conditions: tuple[Condition, ...]
    n_rows: int
    share: float

    def __getitem__(self, column: str) -> str | int | Interval | None:
        values = [condition.value for condition in self.conditions if condition.column == column]
        if not values:
            raise KeyError(column)
        return values[0]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(condition.column for condition in self.conditions))

    def __len__(self) -> int:
        return len(dict.fromkeys(condition.column for condition in self.conditions))

    def __str__(self) -> str:
        return f"{printable(self.where)} ({percent(self.share)} of rows)"

    @property
    def where(self) -> str:
        """The slice in words."""
        if not self.conditions:
            return "in all rows"
        return "where " + " and ".join(condition.words() for condition in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists."""
        columns = {
            c.column: list(c.value) if isinstance(c.value, Interval) else c.value for c in self.conditions
        }
        return {"where": self.where, "columns": columns, "n_rows": self.n_rows, "share": self.share}


@dataclass(frozen=True)
class SliceReading(Reading):
    """What a question says in a slice and what is so; printed as a sentence.

    Attributes
    ----------
    where : str
        The slice, with its share of the rows.
    at_least : float
        The proven error of the question in the slice.
    all_predictions : bool
        Whether the range that is read off holds all predictions of the slice.
    """

    where: str = ""
    at_least: float = 0.0
    all_predictions: bool = True

    def __str__(self) -> str:
        if np.isnan(self.predicted):
            return f"{self.where}: {printable(self.question)} at least {short(self.at_least)} off"
        start = "" if self.all_predictions else f"between {short(self.low)} and {short(self.high)} it "
        numbers = f"{start}says {short(self.predicted)}, is {short(self.observed)}"
        return f"{self.where}: {printable(self.question)} {numbers}; at least {short(self.at_least)} off"


@dataclass(frozen=True, eq=False)
class SliceFinding:
    """Rows whose predictions are shown to be off: found on one half of the rows, judged on the other.

    Attributes
    ----------
    rows : SliceRows
        Columns and what they are in the slice, and how many rows that is.
    witness : Witness
        The function of features and predictions that was judged.
    certificate : Certificate
        The error of the question among the rows of the slice, on rows that the search never saw. Its bound holds
        together with all other bounds of the audit.
    reading : SliceReading
        What is said and what is so, in numbers and as a sentence.
    elsewhere : Reading or None
        The same question outside the slice, for comparison.
    usual_error : float
        What the error of the same question outside the slice is at most, at the level of the certificate; 0 if
        negative. A slice is told if it is shown to be worse than that.
    e_value : float
        Evidence against the hypothesis that the error in the slice is at most the usual one.
    discovered : bool
        Whether e-BH rejects that hypothesis: of the slices discovered, a share of at most alpha is expected to be
        right.
    looks_at : mapping of str to float
        Of a learner's finding: what the correlation loses if a column is shuffled among held-out rows, for the columns
        that matter most (permutation importance, an estimate). Empty for other findings.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(2000, 3, random_state=0)
    >>> site = np.repeat(["north", "south"], 1000)
    >>> labels = np.where(site == "north", (made.labels + 1) % 3, made.labels)
    >>> audit = pc.audit(labels, made.proba, features={"site": site}, notions="confidence")
    >>> audit.slices[0].rows.where
    'where site is north'
    """

    rows: SliceRows
    witness: Witness
    certificate: Certificate
    reading: SliceReading
    elsewhere: Reading | None
    usual_error: float
    e_value: float
    discovered: bool
    looks_at: Mapping[str, float]

    @property
    def question(self) -> str:
        """The question that is off in the slice."""
        return self.reading.question

    @property
    def at_least(self) -> float:
        """The proven error in the slice, or 0."""
        return max(self.certificate.lower_bound, 0.0)

    @property
    def worse_by(self) -> float:
        """How much the proven error exceeds the usual one; not above 0 for what e-BH alone discovers."""
        return self.certificate.lower_bound - self.usual_error

    @property
    def significant(self) -> bool:
        """Whether the error is proven together with all other bounds."""
        return self.certificate.lower_bound > 0.0

    @property
    def is_learnt(self) -> bool:
        """Whether a learner's function of all columns was judged, and no slice that can be named."""
        return not self.rows.conditions

    def __str__(self) -> str:
        return str(self.reading)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
        subset = self.witness.subset if isinstance(self.witness, SliceWitness) else None
        return {
            "rows": self.rows.to_dict(),
            "question": self.question,
            "subset": subset,
            "estimate": self.certificate.estimate,
            "lower_bound": self.certificate.lower_bound,
            "p_value": self.certificate.p_value,
            "at_least": self.at_least,
            "usual_error": self.usual_error,
            "significant": self.significant,
            "discovered": self.discovered,
            "e_value": self.e_value,
            "is_learnt": self.is_learnt,
            "looks_at": dict(self.looks_at),
            "reading": json_number(asdict(self.reading)),
            "elsewhere": None if self.elsewhere is None else json_number(asdict(self.elsewhere)),
            "words": str(self),
        }


@dataclass(frozen=True)
class NamedSlice:
    """A slice that was asked for, with the errors of all named questions among its rows.

    Attributes
    ----------
    name : str
    rows : SliceRows
        Its conditions, and how many rows of all it has.
    confidence : QuestionError
    ranks, groups, classes : tuple of QuestionError
        As of the whole audit; all bounds hold together with its other ones.
    costs : tuple of Cost
        What acting costs in the slice, for each loss, without swaps and calibrators.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> slices = {"first half": [True] * 400 + [False] * 400}
    >>> named = pc.audit(made.labels, made.proba, slices=slices, auditors={}).named_slices[0]
    >>> named.name, named.rows.n_rows, named.confidence.verdict()
    ('first half', 400, 'off')
    """

    name: str
    rows: SliceRows
    confidence: QuestionError
    ranks: tuple[QuestionError, ...]
    groups: tuple[QuestionError, ...]
    classes: tuple[QuestionError, ...]
    costs: tuple[Cost, ...] = ()

    @property
    def questions(self) -> tuple[QuestionError, ...]:
        """All of them: confidence, ranks, groups, classes."""
        return (self.confidence, *self.ranks, *self.groups, *self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dictionaries."""
        return {
            "name": self.name,
            "rows": self.rows.to_dict(),
            "confidence": self.confidence.to_dict(),
            "ranks": [q.to_dict() for q in self.ranks],
            "groups": [q.to_dict() for q in self.groups],
            "classes": [q.to_dict() for q in self.classes],
            "costs": [cost.to_dict() for cost in self.costs],
        }


def json_number(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with None for NaN, which is not JSON."""
    return {
        name: None if isinstance(value, float) and np.isnan(value) else value
        for name, value in fields.items()
    }


def short(value: float) -> str:
    """A probability in two digits, without the 0 before the point; a small one with its first digit."""
    text = f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.1g}"
    return text[1:] if text.startswith("0.") else text


def percent(share: float) -> str:
    """A share of rows in words."""
    return f"{100 * share:.0f} %" if share >= 0.01 else f"{100 * share:.2g} %"
