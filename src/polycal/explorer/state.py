"""What the explorer holds: one or two sets of predictions for the same rows, groups, and the halves of a search."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polycal._typing import Bools, Float64s, Ints
from polycal._validation import check_groups, class_set
from polycal.auditing.audit import check_calibrator
from polycal.auditing.costs import Cost, held_costs
from polycal.auditing.findings import half_rows
from polycal.auditing.named_slices import named_slices
from polycal.auditing.nodes import Nodes, asked_nodes
from polycal.auditing.passes import calibrated_rows
from polycal.explorer.columns import Columns
from polycal.explorer.search import ALPHA, Search
from polycal.families.slices import column_slices, slice_rows
from polycal.measures.costs import make_losses
from polycal.report.slices import heat_map
from polycal.sample import Question, Sample, refuse_lists, subset_words
from polycal.taxonomy import make_taxonomy


@dataclass(frozen=True, eq=False, repr=False)
class Asked:
    """What somebody asks.

    Attributes
    ----------
    subset : ndarray of int64, or None
        The classes that count as "yes"; None asks whether the most likely class is right.
    unseen : bool
        Only the half of the rows that no search has seen, instead of all.
    where : str or None
        Only the rows of this slice.
    top : int
        Without a subset: whether it is among so many of the most likely classes.
    """

    subset: Ints | None
    unseen: bool
    where: str | None = None
    top: int = 1


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
    nodes : Nodes or None
        The nodes of a tree of classes.
    costs : tuple of Cost
        What acting on the first set of predictions costs, for each loss.
    search : Search
        Looks for the worst questions in the background.
    slices : dict of str to ndarray of bool
        Which rows are in each slice that has a name.
    heat : dict or None
        Slices against questions, of the first series: see `polycal.report.slices.heat_map`.
    """

    title: str
    class_names: tuple[str, ...] | None
    labels: Ints
    sample_weight: Float64s | None
    series: Mapping[str, Columns]
    groups: Mapping[str, Ints]
    nodes: Nodes | None
    costs: tuple[Cost, ...]
    unseen: Ints | None
    search: Search
    seed: int
    n_jobs: int | None
    slices: Mapping[str, Bools] = field(default_factory=dict)
    heat: dict[str, Any] | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes, k."""
        return int(next(iter(self.series.values())).values.shape[0])

    @property
    def ranks(self) -> list[int]:
        """How many of the most likely classes can be asked about, beside one."""
        return list(next(iter(self.series.values())).ranks)

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def rows(self, asked: Asked) -> Ints | slice:
        """The rows that the question is put to."""
        rows = self.unseen if asked.unseen and self.unseen is not None else slice(None)
        if asked.where is None:
            return rows
        return np.arange(self.labels.size)[rows][self.slices[asked.where][rows]]

    def check(self, asked: Any) -> Asked:
        """Validate what came over the network.

        ``{"classes": [indices], "rows": "all" or "unseen"}``, and where wanted ``"top": m`` or ``"slice": name``.
        """
        if not isinstance(asked, dict) or {*asked} - {"slice", "top"} != {"classes", "rows"}:
            raise ValueError('ask with {"classes": [...], "rows": "all"}')
        classes, rows, top, where = asked["classes"], asked["rows"], asked.get("top", 1), asked.get("slice")
        if type(top) is not int or top not in {1, *self.ranks} or (top != 1 and classes):
            raise ValueError(f"top must be 1 or one of {self.ranks}, without classes; got {top!r:.40}")
        if where is not None and (not isinstance(where, str) or where not in self.slices):
            raise ValueError(f"there is no slice {where!r:.60}")
        if rows not in {"all", "unseen"} or (rows == "unseen" and self.unseen is None):
            raise ValueError(f"rows must be 'all', or 'unseen' where there are enough rows; got {rows!r:.40}")
        if not isinstance(classes, list):
            raise TypeError("classes must be a list of class indices")
        subset = class_set(classes, self.n_classes, None, "classes") if classes else None
        found = Asked(subset, rows == "unseen", where, int(top))
        if where is not None and not np.arange(self.labels.size)[self.rows(found)].size:
            raise ValueError(f"no such row is in the slice {where!r:.60}")
        return found

    def questions(self, asked: Asked) -> dict[str, Question]:
        """The question as it is put to each set of predictions."""
        rows = self.rows(asked)
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        member = np.zeros(self.n_classes, dtype=np.bool_)
        if asked.subset is not None:
            member[asked.subset] = True
        questions = {}
        for name, columns in self.series.items():
            if asked.subset is None and asked.top > 1:
                predicted, hits = columns.ranks[asked.top]
                text = f"is it among the {asked.top} most likely?"
            elif asked.subset is None:
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
    taxonomy: Any = None,
    losses: Any = None,
    calibrator: Any = None,
    seed: int = 0,
    n_jobs: int | None = -1,
    slice_by: tuple[str, ...] = (),
) -> Explorer:
    """Prepare a sample for questions. It is not kept: the explorer has its predictions class by class."""
    refuse_lists(sample, "the explorer")
    named = check_groups(groups, sample)
    nodes = (
        None
        if taxonomy is None
        else asked_nodes(make_taxonomy(taxonomy), sample.n_classes, sample.class_names)
    )
    samples = {"as given": sample}
    if calibrator is not None:
        check_calibrator(calibrator, sample.class_names)
        samples = {"before": sample, "after": calibrated_rows(sample, calibrator)}
    halves = half_rows(sample, seed)
    slices = column_slices(sample.features, slice_by) if sample.features is not None else {}
    measured = named_slices(sample, slices, named, (), ALPHA, seed)
    made = make_losses(losses, sample.n_classes, sample.class_names)
    return Explorer(
        title=title,
        class_names=sample.class_names,
        labels=sample.labels,
        sample_weight=sample.sample_weight,
        series={name: Columns.of(one) for name, one in samples.items()},
        groups=named,
        nodes=nodes,
        costs=held_costs(sample, halves, made, calibrator, ALPHA, seed),
        unseen=None if halves is None else halves[1],
        search=Search(samples, halves, seed, n_jobs, {**(nodes.named if nodes else {}), **named}, nodes),
        seed=seed,
        n_jobs=n_jobs,
        slices={one.name: slice_rows(one.rows.conditions, sample.features) for one in measured},
        heat=heat_map([one.to_dict() for one in measured]),
    )
