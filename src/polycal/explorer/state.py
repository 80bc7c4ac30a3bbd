"""What the explorer holds: one or two sets of predictions for the same rows, groups, and the halves of a search."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from polycal._typing import Float64s, Ints
from polycal._validation import check_groups, class_set
from polycal.auditing.audit import check_calibrator
from polycal.auditing.findings import half_rows
from polycal.auditing.passes import calibrated_rows
from polycal.explorer.columns import Columns
from polycal.explorer.search import Search
from polycal.sample import Question, Sample, subset_words


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """What somebody asks.

    Attributes
    ----------
    subset : ndarray of int64, or None
        The classes that count as "yes"; None asks whether the most likely class is right.
    unseen : bool
        Only the half of the rows that no search has seen, instead of all.
    """

    subset: Ints | None
    unseen: bool


@dataclass(frozen=True, eq=False, repr=False)
class Explorer:
    """Everything the page can ask about.

    Attributes
    ----------
    title : str
        Where the predictions come from.
    series : dict of str to Columns
        "as given", or "before" and "after" a calibrator.
    unseen : ndarray of int64, or None
        The rows that judge what was found; None if there are too few rows to search at all.
    search : Search
        Looks for the worst questions in the background.
    """

    title: str
    class_names: tuple[str, ...] | None
    labels: Ints
    sample_weight: Float64s | None
    series: Mapping[str, Columns]
    groups: Mapping[str, Ints]
    unseen: Ints | None
    search: Search
    seed: int
    n_jobs: int | None

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(next(iter(self.series.values())).values.shape[0])

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def rows(self, asked: Asked) -> Ints | slice:
        """The rows that the question is put to."""
        return self.unseen if asked.unseen and self.unseen is not None else slice(None)

    def check(self, asked: Any) -> Asked:
        """Validate what came over the network: ``{"classes": [indices], "rows": "all" or "unseen"}``."""
        if not isinstance(asked, dict) or set(asked) != {"classes", "rows"}:
            raise ValueError('ask with {"classes": [...], "rows": "all"}')
        classes, rows = asked["classes"], asked["rows"]
        if rows not in {"all", "unseen"} or (rows == "unseen" and self.unseen is None):
            raise ValueError(f"rows must be 'all', or 'unseen' where there are enough rows; got {rows!r:.40}")
        if not isinstance(classes, list):
            raise TypeError("classes must be a list of class indices")
        subset = class_set(classes, self.n_classes, None, "classes") if classes else None
        return Asked(subset, rows == "unseen")

    def questions(self, asked: Asked) -> dict[str, Question]:
        """The question as it is put to each set of predictions."""
        rows = self.rows(asked)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        member = np.zeros(self.n_classes, dtype=np.bool_)
        if asked.subset is not None:
            member[asked.subset] = True
        questions = {}
        for name, columns in self.series.items():
            if asked.subset is None:
                predicted, hits = columns.confidence, columns.top == self.labels
                text = "is the most likely class right?"
            else:
                predicted, hits = columns.subset_proba(asked.subset), member[self.labels]
                text = subset_words(asked.subset, self.name)
            questions[name] = Question(predicted[rows], hits[rows], weight, text)
        return questions


def make_explorer(
    sample: Sample,
    *,
    title: str,
    groups: Any = None,
    calibrator: Any = None,
    seed: int = 0,
    n_jobs: int | None = -1,
) -> Explorer:
    """Prepare a sample for questions. It is not kept: the explorer has its predictions class by class."""
    named = check_groups(groups, sample)
    samples = {"as given": sample}
    if calibrator is not None:
        check_calibrator(calibrator, sample.class_names)
        samples = {"before": sample, "after": calibrated_rows(sample, calibrator)}
    halves = half_rows(sample, seed)
    return Explorer(
        title=title,
        class_names=sample.class_names,
        labels=sample.labels,
        sample_weight=sample.sample_weight,
        series={name: Columns.of(one) for name, one in samples.items()},
        groups=named,
        unseen=None if halves is None else halves[1],
        search=Search(samples, halves, seed),
        seed=seed,
        n_jobs=n_jobs,
    )
