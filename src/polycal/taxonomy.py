"""Trees of classes: every node is a question, and the answer may stop at any of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._card import card
from polycal._text import printable
from polycal._typing import Bools, Float64s, Floats, Ints
from polycal._validation import taxonomy_nodes
from polycal.sample import row_blocks
from polycal.storage.rules import Array, Names, expect
from polycal.storage.saved import Checked


@dataclass(frozen=True, eq=False, repr=False)
class Taxonomy(Checked):
    """A tree whose leaves are the classes. Made by `read_taxonomy`, or by `make_taxonomy` from a nested mapping.

    Attributes
    ----------
    names : tuple of str
        The name of each node; each parent stands before its children, and all below it follow at once.
    parents : ndarray of int64
        The number of each node's parent; -1 for those at the top.

    Examples
    --------
    >>> import polycal as pc
    >>> tree = pc.make_taxonomy({"animal": ["cat", "dog"], "car": None})
    >>> tree.paths
    ('animal', 'animal/cat', 'animal/dog', 'car')
    """

    role: ClassVar[str] = "taxonomy"
    family: ClassVar[str] = "tree"
    homes: ClassVar[dict[str, str]] = {"tree": "polycal.taxonomy"}

    names: Annotated[tuple[str, ...], Names("n_nodes")]
    parents: Annotated[Ints, Array("int64", "n_nodes", low=-1)]

    def _check(self) -> None:
        super()._check()
        expect(self.names, "a taxonomy must have a node")
        # In this order a parent is the node before, or one above it.
        way: list[int] = []
        for node, parent in enumerate(self.parents.tolist()):
            while way and way[-1] != parent:
                way.pop()
            expect(
                parent == -1 or way, "each parent must stand before its children, and what is below it follow"
            )
            way.append(node)
        leaves = [self.names[node] for node in self.leaves]
        expect(len(set(leaves)) == len(leaves), "a class may be a leaf once only")
        expect(len(set(self.paths)) == self.n_nodes, "two nodes may not have the same path")

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without others below."""
        return np.setdiff1d(np.arange(self.n_nodes), self.parents)

    @cached_property
    def depths(self) -> Ints:
        """How deep each node is; those at the top are 1 deep."""
        depths = np.ones(self.n_nodes, dtype=np.int64)
        for node, parent in enumerate(self.parents.tolist()):
            if parent >= 0:
                depths[node] = depths[parent] + 1
        return depths

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The names from the top to each node, with slashes between."""
        paths: list[str] = []
        for name, parent in zip(self.names, self.parents.tolist(), strict=True):
            paths.append(name if parent < 0 else f"{paths[parent]}/{name}")
        return tuple(paths)

    @cached_property
    def ends(self) -> Ints:
        """The number after the last node below each, itself included."""
        ends = np.arange(1, self.n_nodes + 1)
        for node in range(self.n_nodes - 1, -1, -1):
            parent = self.parents[node]
            if parent >= 0:
                ends[parent] = max(ends[parent], ends[node])
        return ends

    def children(self, node: int) -> Ints:
        """The nodes right below one; below -1, those at the top."""
        return np.flatnonzero(self.parents == node)

    def classes(self, n_classes: int, class_names: Sequence[str] | None) -> Ints:
        """The class of each leaf, in the order of `leaves`; classes without names are named by their numbers."""
        names = tuple(map(str, range(n_classes))) if class_names is None else tuple(class_names)
        place = {name: number for number, name in enumerate(names)}
        leaves = [self.names[node] for node in self.leaves]
        foreign = next((leaf for leaf in leaves if leaf not in place), None)
        if foreign is not None:
            fix = "drop it, or name it like its class"
            if class_names is None:
                fix = (
                    f"classes have no names here, so that they are '0' to '{n_classes - 1}': give class_names"
                )
            raise ValueError(f"taxonomy: the leaf {foreign!r:.60} is no class; {fix}.")
        missing = next((name for name in names if name not in set(leaves)), None)
        if missing is not None:
            inner = " It is a node with others below: give it a leaf of its own." * (missing in self.names)
            raise ValueError(f"taxonomy: the class {missing!r:.60} is no leaf; add it.{inner}")
        return np.array([place[leaf] for leaf in leaves], dtype=np.int64)

    @cached_property
    def spans(self) -> tuple[Ints, Ints]:
        """The classes below each node: the first place among the leaves, and the place after the last."""
        return np.searchsorted(self.leaves, np.arange(self.n_nodes)), np.searchsorted(self.leaves, self.ends)

    def members(self, n_classes: int, class_names: Sequence[str] | None) -> list[Ints]:
        """The classes below each node, increasing."""
        classes = self.classes(n_classes, class_names)
        return [np.sort(classes[start:stop]) for start, stop in zip(*self.spans, strict=True)]

    def sums(self, proba: Floats, classes: Ints) -> Float64s:
        """The probability of each node, of shape (n_samples, n_nodes); ``classes`` are those of the leaves."""
        starts, stops = self.spans
        out = np.empty((proba.shape[0], self.n_nodes))
        for rows in row_blocks(*out.shape):
            block = proba[rows]
            full = block if isinstance(block, np.ndarray) else block.toarray()
            total = np.zeros((full.shape[0], classes.size + 1))
            np.cumsum(full[:, classes], axis=1, dtype=np.float64, out=total[:, 1:])
            out[rows] = np.clip(total[:, stops] - total[:, starts], 0.0, 1.0)
        return out

    def likeliest(self, proba: Floats, classes: Ints) -> tuple[Ints, Float64s]:
        """The way down the tree from the likeliest top, always on to the likeliest node below.

        Returns the nodes of each row, of shape (n_samples, depth) with -1 beyond the leaf, and their probabilities,
        which do not increase.
        """
        nodes = np.full((proba.shape[0], int(self.depths.max())), -1)
        chances = np.zeros(nodes.shape)
        for rows in row_blocks(proba.shape[0], self.n_nodes):
            sums = self.sums(proba[rows], classes)
            here = self._below(np.full(sums.shape[0], -1), sums)
            for depth in range(nodes.shape[1]):
                nodes[rows, depth] = here
                chances[rows, depth] = np.where(here < 0, 0.0, sums[np.arange(here.size), here])
                here = np.where(here < 0, -1, self._below(here, sums))
        return nodes, np.minimum.accumulate(chances, axis=1)

    def holds(self, nodes: Ints, labels: Ints, classes: Ints) -> Bools:
        """Whether labels are among the classes below nodes, of any shape; all are below -1."""
        starts, stops = self.spans
        place = np.argsort(classes)[labels]
        inside: Bools = (nodes < 0) | ((starts[nodes] <= place) & (place < stops[nodes]))
        return inside

    def _below(self, nodes: Ints, sums: Float64s) -> Ints:
        """The likeliest node below that of each row; -1 below a leaf."""
        found = np.full(nodes.size, -1)
        for node in np.unique(nodes):
            below, rows = self.children(int(node)), np.flatnonzero(nodes == node)
            if below.size:
                found[rows] = below[sums[np.ix_(rows, below)].argmax(axis=1)]
        return found

    def __repr__(self) -> str:
        return f"Taxonomy({self.n_nodes} nodes, {self.leaves.size} leaves, {self.depths.max()} deep)"

    def _repr_html_(self) -> str:
        top = ", ".join(self.names[node] for node in self.children(-1)[:8])
        lines = [
            ("nodes", f"{self.n_nodes:,}"),
            ("classes", f"{self.leaves.size:,}"),
            ("at the top", printable(top)),
        ]
        return card("Taxonomy", lines)


def make_taxonomy(tree: Any) -> Taxonomy:
    """A tree of classes from a nested mapping, a list of paths, or a mapping from children to parents.

    Parameters
    ----------
    tree : Taxonomy, mapping or list
        A nested mapping whose innermost lists are classes; a list of paths ``a/b/c``, which end in classes; or a
        mapping from each node to its parent, None at the top.

    Returns
    -------
    Taxonomy

    See Also
    --------
    polycal.read_taxonomy : The same from a file.

    Examples
    --------
    >>> import polycal as pc
    >>> tree = pc.make_taxonomy({"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car"]})
    >>> tree
    Taxonomy(8 nodes, 4 leaves, 3 deep)
    >>> tree.paths[2]
    'animal/pet/cat'
    """
    if isinstance(tree, Taxonomy):
        return tree
    names, parents = taxonomy_nodes(tree)
    return Taxonomy(names, np.array(parents, dtype=np.int64))
