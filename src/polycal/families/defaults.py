"""Notions by name, the auditor that searches each, and what an audit looks at by default."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from polycal._typing import Seed
from polycal._validation import check_auditor, check_some, keep_seed
from polycal.families.auditor import Auditor, NotionAuditor, weighted_rows
from polycal.families.canonical import Canonical
from polycal.families.decision import Decision, DecisionAuditor
from polycal.families.full_smooth import FullSmooth
from polycal.families.halfspace import Halfspace
from polycal.families.kernel import KernelAuditor
from polycal.families.low_degree import LowDegree
from polycal.families.notion import Notion
from polycal.families.projected import ProjectedSmooth, ProjectionAuditor
from polycal.families.questions import Classwise, Confidence, TopLabel
from polycal.families.sigmoid import Sigmoid, SigmoidAuditor
from polycal.families.subset import SubsetAuditor, SubsetSmooth
from polycal.families.top_set import TopSet
from polycal.families.witness import Witness
from polycal.inference.certificate import certify_sample
from polycal.kernels.kernels import Multinomial
from polycal.sample import Sample, split_rows

_QUESTIONS = (Confidence, TopLabel, Classwise)
NOTIONS: dict[str, type[Notion]] = {
    notion.name: notion
    for notion in (
        *_QUESTIONS,
        TopSet,
        Canonical,
        SubsetSmooth,
        ProjectedSmooth,
        Sigmoid,
        LowDegree,
        Decision,
        Halfspace,
        FullSmooth,
    )
}


def parse_notion(text: str) -> Notion:
    """Make a notion from its name, or from ``name:value`` with the value of its first parameter.

    ``confidence:smooth`` and the like, for the three notions made of questions, are their smooth forms.

    Examples
    --------
    >>> parse_notion("sigmoid:4"), parse_notion("classwise:smooth").smooth
    (Sigmoid(slope=4), True)
    """
    name, _, value = text.partition(":")
    if name not in NOTIONS:
        raise ValueError(f"notion {name!r} is not one of {', '.join(NOTIONS)}.")
    notion = NOTIONS[name]
    if not value:
        return notion()
    if value == "smooth" and issubclass(notion, _QUESTIONS):
        return notion(smooth=True)
    parameters = [f for f in fields(notion) if f.init]  # type: ignore[arg-type]  # notions are dataclasses
    if not parameters:
        raise ValueError(f"notion {name!r} has no parameter; leave out {value!r}.")
    return notion(**{parameters[0].name: _number(text, value)})


def _number(text: str, value: str) -> Any:
    """A whole number if it is one, else a float."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"notion {text!r}: {value!r} is not a number.") from None
    return int(number) if number.is_integer() and "." not in value else number


def parse_auditor(text: str, seed: int = 0) -> Auditor:
    """The auditor that searches a notion, by the notion's name; and the kernel auditor, as "kernel".

    Examples
    --------
    >>> type(parse_auditor("kernel")).__name__, parse_auditor("sigmoid:4").slope
    ('KernelAuditor', 4)
    """
    return KernelAuditor(random_state=seed) if text == "kernel" else default_auditor(parse_notion(text), seed)


# What an audit measures and searches unless told otherwise: seconds for 10,000 rows of 100 classes.
DEFAULT_NOTIONS: tuple[Notion, ...] = (Confidence(smooth=True), Classwise(smooth=True), SubsetSmooth())


def default_auditor(notion: Notion, seed: int) -> Auditor:
    """The auditor that searches a notion's weight family."""
    match notion:
        case SubsetSmooth():
            return SubsetAuditor(max_size=notion.max_size, random_state=seed)
        case ProjectedSmooth():
            return ProjectionAuditor(m=notion.m, random_state=seed)
        case Sigmoid():
            return SigmoidAuditor(slope=notion.slope, random_state=seed)
        case Decision():
            return DecisionAuditor(notion.actions, temperature=notion.temperature, random_state=seed)
        case LowDegree():
            return KernelAuditor(Multinomial(notion.degree), random_state=seed)
        case _:
            return NotionAuditor(notion)


def default_auditors(
    notions: Sequence[Notion], seed: int, n_classes: int | None = None
) -> dict[str, Auditor]:
    """The auditors of an audit: one for each notion, and the kernel auditor, which no notion limits.

    Of two classes there is one question, up to its opposite: it is not searched for again as a set of classes.
    """
    searched = [
        notion
        for notion in notions
        if n_classes != 2 or not isinstance(notion, SubsetSmooth) or Classwise(smooth=True) not in notions
    ]
    auditors = {_label(notion, notions): default_auditor(notion, seed) for notion in searched}
    return auditors | {"kernel": KernelAuditor(random_state=seed)}


def _label(notion: Notion, notions: Sequence[Notion]) -> str:
    """The notion's name, with its parameters where another one has the same name."""
    return notion.name if sum(n.name == notion.name for n in notions) == 1 else repr(notion)


# The level of the bounds that candidates are compared by, before dividing by their number.
_ALPHA = 0.05


@dataclass(frozen=True)
class AutoAuditor(Auditor):
    """Run several auditors on two thirds of the rows and return the witness that holds up best on the rest.

    Parameters
    ----------
    auditors : sequence of Auditor, optional
        What to run. By default those of an audit: confidence, class-wise, subsets and the kernel.
    random_state : int, Generator or None, default 0
        Seed of the parts and of the default auditors.

    Notes
    -----
    Candidates are compared by their lower confidence bounds on the held-out rows, at a level divided by the number
    of candidates (Bonferroni), so that a lucky one among many does not win over a solid one. The winner's
    bound has been used to choose it: judge it on new rows with `certify`.

    Examples
    --------
    >>> import polycal as pc
    >>> fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    >>> witness = pc.AutoAuditor().find_witness(fit.labels, fit.proba, class_names=fit.class_names)
    >>> pc.certify(witness, fresh.labels, fresh.proba).is_significant
    True
    """

    auditors: Sequence[Auditor] | None = None
    random_state: Seed = 0
    reads_lists: ClassVar[bool] = True

    def __post_init__(self) -> None:
        keep_seed(self)
        if self.auditors is not None:
            check_some(self.auditors, "auditors")
            checked = [
                check_auditor(one, f"auditors[{i}]", self.random_state) for i, one in enumerate(self.auditors)
            ]
            object.__setattr__(self, "auditors", checked)

    def find(self, sample: Sample) -> Witness:
        """Look for a witness in a validated sample."""
        auditors = self.auditors
        if auditors is None:
            auditors = list(default_auditors(DEFAULT_NOTIONS, self.random_state).values())
        sample = weighted_rows(sample)
        parts = [sample.take(rows) for rows in split_rows(sample, (2, 1), self.random_state)]
        # One row cannot be parted; what it shows proves nothing, and a witness does not claim to.
        fit, held_back = parts if all(part.n_samples for part in parts) else (sample, sample)
        witnesses = [auditor.look(fit) for auditor in auditors]
        level = _ALPHA / len(witnesses)
        bounds = [certify_sample(w, held_back, level, self.random_state).lower_bound for w in witnesses]
        return witnesses[max(range(len(bounds)), key=bounds.__getitem__)]
