"""The subset auditor: the set of classes whose summed probability can be trusted least."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple

import numpy as np

from polycal._parallel import map_threads
from polycal._split import split_rows
from polycal._typing import Bools, Ints
from polycal._validation import check_integer
from polycal.auditors._base import Auditor
from polycal.auditors._expected import expected_labels
from polycal.auditors._rows import weighted_rows
from polycal.question import Question, ask_subset
from polycal.sample import Sample
from polycal.search._landscape import Landscape, plain_landscape
from polycal.search.subset import class_ranks, climb, search_part, start_sets
from polycal.search.subset_enumeration import size_limit, smaller_side
from polycal.smooth import smooth_curve, smooth_error
from polycal.witness.question import SubsetWitness

# How much of the labels themselves is kept; the rest is what they are expected to be.
_SHARES = (0.0, 0.25, 0.5, 1.0)
_N_FOLDS = 4
# With fewer rows a fold says nothing.
_MIN_ROWS = 40


class _Task(NamedTuple):
    """A search on the rows outside a fold (None: on all rows), in the landscape of a share of the labels."""

    share: int
    fold: int | None


@dataclass(frozen=True)
class SubsetAuditor(Auditor):
    """Doc."""

    max_size: int | None = None
    _: KW_ONLY
    n_starts: int = 1
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.max_size is not None:
            check_integer(self.max_size, "max_size", minimum=1)
        check_integer(self.n_starts, "n_starts", minimum=0)
        check_integer(self.random_state, "random_state", minimum=0)

    def find(self, sample: Sample) -> SubsetWitness:
        """Look for a witness in a validated sample."""
        sample = weighted_rows(sample)
        limit = size_limit(sample.n_classes, self.max_size)
        members = np.flatnonzero(self._choose(search_part(sample, self.random_state), limit))
        if limit == sample.n_classes - 1:
            members = smaller_side(sample, members)
        phi = smooth_curve(ask_subset(sample, members)).phi.simplified()
        return SubsetWitness(members, phi, sample.n_classes, sample.class_names)

    def _choose(self, part: Sample, limit: int) -> Bools:
        """Search with several shares of the labels; take the share whose sets do best on rows they have not seen."""
        landscapes = _landscapes(part)
        if part.n_samples < _MIN_ROWS:
            return self._search(landscapes[-1], part, limit)
        folds = split_rows(part, (1,) * _N_FOLDS, self.random_state)
        tasks = [_Task(share, fold) for share in range(len(_SHARES)) for fold in (None, *range(_N_FOLDS))]

        def run(task: _Task) -> Bools:
            landscape = landscapes[task.share]
            if task.fold is not None:
                landscape = landscape.without(folds[task.fold])
            return self._search(landscape, part, limit)

        found = dict(zip(tasks, map_threads(run, tasks), strict=True))
        scores = [
            _unseen_error(part, folds, found[_Task(share, None)], [found[_Task(share, f)] for f in range(_N_FOLDS)])
            for share in range(len(_SHARES))
        ]
        return found[_Task(int(np.argmax(scores)), None)]

    def _search(self, landscape: Landscape, part: Sample, limit: int) -> Bools:
        starts = start_sets(landscape, class_ranks(part), limit, self.n_starts, self.random_state)
        points = [climb(landscape, start, limit).point for start in starts]
        return max(points, key=lambda point: point.value).member


def _landscapes(part: Sample) -> list[Landscape]:
    """Landscapes of residuals whose labels are shrunk, less and less, towards what they are expected to be."""
    plain = plain_landscape(part)
    mass = part.mass
    expected = expected_labels(plain.proba, part.labels, mass)
    modelled = mass.astype(np.float32)[:, None] * (expected - plain.proba)
    return [
        Landscape(plain.proba, np.float32(1 - share) * modelled + np.float32(share) * plain.residual) for share in _SHARES
    ]


def _unseen_error(part: Sample, folds: Sequence[Ints], whole: Bools, found: Sequence[Bools]) -> float:
    """The smooth calibration error of each fold's rows put together, asked about the set found without them."""
    predicted, hits = np.empty(part.n_samples), np.empty(part.n_samples, dtype=np.bool_)
    for rows, member in zip(folds, found, strict=True):
        # A set and its complement are one question: ask all folds the same way round.
        aligned = member if (member == whole).mean() >= 0.5 else ~member
        question = ask_subset(part.take(rows), np.flatnonzero(aligned))
        predicted[rows], hits[rows] = question.predicted, question.hits
    return smooth_error(Question(predicted, hits, part.sample_weight, ""))
