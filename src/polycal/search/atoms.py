"""What a coupling with calibrated predictions moves: atoms, the rows of a sample merged, in clusters."""

from dataclasses import dataclass

import numpy as np

from polycal._typing import Float64s, Ints
from polycal.sample import Sample

_SMALLEST = 1e-6


@dataclass(frozen=True, eq=False)
class Atoms:
    """The distinct pairs of a prediction and a label, with their masses.

    A calibrated prediction gives no probability to classes that never occur, so targets and positions have
    one coordinate for each class that does, and what a prediction gives to the others is `outside`, a fixed
    part of every distance.

    Attributes
    ----------
    predictions : ndarray of shape (n_atoms, n_classes)
        The predictions.
    labels, mass : ndarray of shape (n_atoms,)
        The label and the mass of each; masses sum to 1.
    classes : ndarray of int64
        The labels that occur, increasing.
    position : ndarray of shape (n_atoms, n_occurring)
        The predictions' probabilities of these.
    outside : ndarray of shape (n_atoms,)
        The sum of their other probabilities.
    """

    predictions: Float64s
    labels: Ints
    mass: Float64s
    classes: Ints
    position: Float64s
    outside: Float64s

    def of_class(self, y: int) -> Ints:
        """The atoms labelled with the y-th class that occurs."""
        return np.flatnonzero(self.labels == self.classes[y])


@dataclass(frozen=True, eq=False)
class Clusters:
    """Atoms, one of each class, that may move to a common target, in the proportions the target says.

    Attributes
    ----------
    targets : ndarray of shape (n_clusters, n_occurring)
        Calibrated predictions u.
    members : ndarray of int64, shape (n_clusters, n_occurring)
        The atom of each class that moves; -1 where the target gives the class probability 0.
    cost : ndarray of shape (n_clusters,)
        The mean l1 distance moved, ``sum_y u_y ||u - v(member_y)||_1``.
    """

    targets: Float64s
    members: Ints
    cost: Float64s

    def take(self, rows: Ints) -> "Clusters":
        """Some of the clusters."""
        return Clusters(self.targets[rows], self.members[rows], self.cost[rows])

    def union(self, other: "Clusters") -> "Clusters":
        """Both, without repeats."""
        targets = np.vstack([self.targets, other.targets])
        members = np.vstack([self.members, other.members])
        _, first = np.unique(np.hstack([targets, members]), axis=0, return_index=True)
        return Clusters(targets[first], members[first], np.append(self.cost, other.cost)[first])

    def worth(self, price: Float64s) -> Float64s:
        """``sum_y u_y price(member_y)`` of each."""
        worth: Float64s = (self.targets * price[self.members]).sum(axis=1)
        return worth


def distinct_atoms(sample: Sample) -> Atoms:
    """Merge equal rows; rows of weight 0 are left out."""
    used = sample.mass > 0
    proba = sample.proba[used].astype(np.float64)
    # float32 rows sum to 1 only nearly.
    proba /= proba.sum(axis=1, keepdims=True)
    labels = sample.labels[used]
    distinct, row, atom = np.unique(
        np.column_stack([proba, labels]), axis=0, return_index=True, return_inverse=True
    )
    predictions, classes = distinct[:, :-1], np.unique(labels)
    return Atoms(
        predictions=predictions,
        labels=labels[row],
        mass=np.asarray(np.bincount(atom, weights=sample.mass[used]), dtype=np.float64),
        classes=classes,
        position=predictions[:, classes],
        outside=np.delete(predictions, classes, axis=1).sum(axis=1),
    )


def make_clusters(atoms: Atoms, targets: Float64s, members: Ints) -> Clusters:
    """Clusters with their costs."""
    members = np.where(targets > 0, members, -1)
    cost = np.zeros(targets.shape[0])
    for y in range(targets.shape[1]):
        moved = np.abs(targets - atoms.position[members[:, y]]).sum(axis=1) + atoms.outside[members[:, y]]
        cost += targets[:, y] * moved
    return Clusters(targets, members, cost)


def starting_clusters(atoms: Atoms) -> Clusters:
    """Each atom alone moves to its corner, or atoms of equal predictions together to their label frequencies."""
    n, k = atoms.position.shape
    label = np.searchsorted(atoms.classes, atoms.labels)
    _, group = np.unique(atoms.predictions, axis=0, return_inverse=True)
    frequency = np.zeros((int(group.max()) + 1, k))
    frequency[group, label] = atoms.mass
    together = np.full(frequency.shape, -1)
    together[group, label] = np.arange(n)
    alone = np.where(np.eye(k, dtype=np.bool_)[label], np.arange(n)[:, None], -1)
    corners = make_clusters(atoms, np.eye(k)[label], alone)
    return corners.union(make_clusters(atoms, well_scaled(frequency), together))


def well_scaled(targets: Float64s) -> Float64s:
    """The same proportions, without those so small that a linear program would lose them."""
    share = targets / targets.sum(axis=1, keepdims=True)
    share[share < _SMALLEST] = 0.0
    scaled: Float64s = share / share.sum(axis=1, keepdims=True)
    return scaled
