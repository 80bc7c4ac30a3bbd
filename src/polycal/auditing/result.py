"""What an audit returns: frozen results that print, and turn into plain data."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path as FilePath
from platform import python_version
from typing import TYPE_CHECKING, Any

from polycal._typing import Path
from polycal._version import __version__
from polycal.auditing.costs import Cost
from polycal.auditing.nodes import NodeError
from polycal.auditing.parts import Finding, MeasuredError, QuestionError
from polycal.auditing.pictures import Picture
from polycal.report.fragment import render_fragment
from polycal.report.markdown import render_markdown
from polycal.report.model_card import put_into, render_model_card
from polycal.report.page import render_page
from polycal.report.terminal import render_text
from polycal.storage.atomic import replacing

if TYPE_CHECKING:
    from polycal.auditing.slices import NamedSlice, SliceFinding

# Of what `Audit.to_dict` returns. Keys may be added within a version, never renamed or removed.
SCHEMA_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What an audit measured, found and proved. Print it, or turn it into plain data with `to_dict`.

    All bounds hold together with probability at least 1 - alpha: the lower bounds of the findings, `at_least` and
    `at_most` of confidence, groups and classes, and the intervals and savings of costs. All tests together call
    calibrated predictions significant with probability at most alpha. What e-BH discovers among many classes may be
    wrong for a share alpha of them.

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
        Witnesses judged on held-out rows, one for each search, the significant ones first, and of these the largest
        proven error. Of sets of classes it is one of `path`: the shortest whose lower bound reaches 80 % of the
        largest, in the place of the largest.
    path : tuple of Finding
        The worst sets of at most 1, 2, 3, 5, 8, 13, ... classes and of any number that were found, shortest first. All
        are different, and all certified together.
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
    slices : tuple of SliceFinding
        Rows that are shown to be off, by their features, if these were given: first the slice with the shortest
        description whose bound is within 80 % of the largest, then what a learner found, then the others.
    named_slices : tuple of NamedSlice
        The slices that were asked for, with all named questions.
    weighted : bool
        Whether rows had weights.
    approximations : tuple of str
        What was not computed exactly because there were more than `HELD_CELLS` probabilities, in sentences; empty where
        everything is exact. Of lists, also what they hide.
    default_notions : bool
        Whether the notions were those that an audit measures unless told otherwise.
    nodes : tuple of NodeError
        Every node of the tree of classes that was given, in its order, as a question.
    costs : tuple of Cost
        What acting on the predictions costs, for each loss that was given.
    calibrator : str or None
        The calibrator whose effect was audited, in words.
    after : Audit or None
        The audit of the same rows after the calibrator; both search on the same half, and judge on the other.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> audit = pc.audit(made.labels, made.proba, auditors={})
    >>> audit
    Audit(n_samples=800, n_classes=4, findings=0, proven=0)
    >>> audit.proven_above(0.1)[0][0]
    'confidence'
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
    path: tuple[Finding, ...] = ()
    confidence: QuestionError | None = None
    ranks: tuple[QuestionError, ...] = ()
    pictures: tuple[Picture, ...] = ()
    slices: "tuple[SliceFinding, ...]" = ()
    named_slices: "tuple[NamedSlice, ...]" = ()
    weighted: bool = False
    approximations: tuple[str, ...] = ()
    default_notions: bool = True
    nodes: tuple[NodeError, ...] = ()
    costs: tuple[Cost, ...] = ()
    calibrator: str | None = None
    after: "Audit | None" = None

    @property
    def worst(self) -> Finding | None:
        """The yes/no question to show first; None if there were too few rows to search.

        It is the one with the largest proven error; of sets of classes the shortest whose lower bound reaches 80 % of
        the largest, since a set of few classes is a question that somebody may ask.

        Findings about the whole prediction (a kernel's, say) are on another scale, up to 2, and no question to act
        on: they stand here only if no question was searched.
        """
        questions = [f for f in self.findings if f.is_question]
        return next(iter(questions or self.findings), None)

    def proven_above(self, threshold: float) -> tuple[tuple[str, float], ...]:
        """The questions whose error is proven to be above a threshold, the largest first, with their lower bounds.

        Parameters
        ----------
        threshold : float

        Returns
        -------
        tuple of (str, float)
            Of everything that has a bound but slices: what was found, each set of `path`, confidence, ranks, groups,
            classes and nodes.
        """
        bounds = [(f.question, f.at_least) for f in (*self.findings, *self.path) if f.is_question]
        named = (self.confidence, *self.ranks, *self.groups, *self.classes, *self.nodes)
        bounds += [(q.name, q.at_least or 0.0) for q in named if q is not None]
        largest: dict[str, float] = {}
        for question, bound in bounds:
            largest[question] = max(bound, largest.get(question, 0.0))
        above = [(question, bound) for question, bound in largest.items() if bound > threshold]
        return tuple(sorted(above, key=lambda one: -one[1]))

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
            "path": [f.to_dict() for f in self.path],
            "classes": [q.to_dict() for q in self.classes],
            "groups": [q.to_dict() for q in self.groups],
            "confidence": None if self.confidence is None else self.confidence.to_dict(),
            "ranks": [q.to_dict() for q in self.ranks],
            "slices": [one.to_dict() for one in self.slices],
            "named_slices": [one.to_dict() for one in self.named_slices],
            "pictures": [picture.to_dict() for picture in self.pictures],
            "nodes": [q.to_dict() for q in self.nodes],
            "costs": [cost.to_dict() for cost in self.costs],
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

    def to_model_card(self, path: Path | None = None, *, data: str | None = None) -> str:
        """Write what readers of a model's card should know of its probabilities, as a section in Markdown.

        Parameters
        ----------
        path : str or path, optional
            A card, such as ``README.md``. The section takes the place of an earlier one, or is put at its end; all else
            in the file stays. By default nothing is written.
        data : str, optional
            What the rows are, such as "the test split of 2026".

        Returns
        -------
        str
            The section.
        """
        section = render_model_card(self.to_dict(), data=data)
        if path is not None:
            card = FilePath(path)
            _written(put_into(card.read_text("utf-8") if card.exists() else "", section), card)
        return section

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
