"""Every node of a tree of classes as a question: is it some kind of this? Nobody searched, so all rows judge."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from polycal._threads import map_threads
from polycal._typing import Ints
from polycal.auditing.parts import QuestionError
from polycal.auditing.questions import Measure, bounded, measured
from polycal.auditing.shares import NODE_SHARES
from polycal.sample import Sample, ask_subset
from polycal.states.questions import QuestionState
from polycal.taxonomy import Taxonomy

# Cells of all nodes together in a stream, and of each at least.
_ALL_CELLS, _FEWEST_CELLS, _MOST_CELLS = 1 << 21, 1 << 10, 1 << 16


@dataclass(frozen=True)
class NodeError(QuestionError):
    """A node of a tree of classes as a question: is the label one of the classes below it?

    Attributes
    ----------
    name : str
        The node's name.
    path : str
        The names from the top of the tree to the node, with slashes between.
    depth : int
        1 at the top.
    parent : str or None
        The path of the node above.

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_calibrated(500, 3, random_state=0)
    >>> tree = pc.make_taxonomy({"animal": ["cat", "dog"], "car": None})
    >>> names = ["cat", "dog", "car"]
    >>> audit = pc.audit(made.labels, made.proba, class_names=names, taxonomy=tree, auditors={})
    >>> [(node.path, node.depth) for node in audit.nodes]
    [('animal', 1), ('animal/cat', 2), ('animal/dog', 2), ('car', 1)]
    """

    path: str = field(default="")
    depth: int = field(default=1)
    parent: str | None = field(default=None)


@dataclass(frozen=True, eq=False)
class Nodes:
    """The nodes that are questions: those with some of the classes below, but not all.

    Attributes
    ----------
    taxonomy : Taxonomy
    numbers : tuple of int
        Which nodes they are.
    members : mapping of str to ndarray
        The classes below each, by its path.
    """

    taxonomy: Taxonomy
    numbers: tuple[int, ...]
    members: Mapping[str, Ints]

    def __bool__(self) -> bool:
        return bool(self.numbers)

    @property
    def named(self) -> dict[str, Ints]:
        """The classes below each node, by its name, or by its path where others have the same name."""
        names = [self.taxonomy.names[node] for node in self.numbers]
        times = Counter(names)
        return {
            name if times[name] == 1 else path: members
            for name, (path, members) in zip(names, self.members.items(), strict=True)
        }


def asked_nodes(taxonomy: Taxonomy, n_classes: int, class_names: tuple[str, ...] | None) -> Nodes:
    """The questions of a tree about these classes."""
    members = taxonomy.members(n_classes, class_names)
    numbers = tuple(node for node in range(taxonomy.n_nodes) if members[node].size < n_classes)
    return Nodes(taxonomy, numbers, {taxonomy.paths[node]: members[node] for node in numbers})


def node_errors(nodes: Nodes, sample: Sample, alpha: float, n_jobs: int | None) -> tuple[NodeError, ...]:
    """All nodes, by rows that are held."""

    def measure(item: tuple[str, Ints]) -> Measure:
        path, members = item
        return measured(ask_subset(sample, members), path, [sample.name(int(c)) for c in members])

    return judged_nodes(nodes, map_threads(measure, list(nodes.members.items()), n_jobs), alpha)


def node_states(nodes: Nodes | None) -> dict[str, QuestionState]:
    """What adds up over chunks, for each node."""
    if not nodes:
        return {}
    room = np.clip(_ALL_CELLS // len(nodes.numbers), _FEWEST_CELLS, _MOST_CELLS)
    resolution = 1 / 2 ** int(np.log2(room))
    return {
        path: QuestionState(members.tolist(), resolution=resolution)
        for path, members in nodes.members.items()
    }


def judged_nodes(nodes: Nodes, measures: Sequence[Measure], alpha: float) -> tuple[NodeError, ...]:
    """The nodes with bounds that hold together, and what e-BH finds among all of them; in the order of the tree."""
    tree = nodes.taxonomy
    found = bounded(measures, alpha, NODE_SHARES)
    kept = [one.name for one in fields(QuestionError) if one.name != "name"]
    return tuple(
        NodeError(
            name=tree.names[node],
            **{name: getattr(error, name) for name in kept},
            path=error.name,
            depth=int(tree.depths[node]),
            parent=None if tree.parents[node] < 0 else tree.paths[tree.parents[node]],
        )
        for node, error in zip(nodes.numbers, found, strict=True)
    )
