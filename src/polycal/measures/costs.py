"""What acting on predictions costs: a loss, the action of least expected cost, and what it cost in the end."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s, Floats, Ints
from polycal._validation import LossTable, check_loss, check_losses, check_proba, check_sample
from polycal.sample import Sample, row_blocks
from polycal.storage.rules import Array, ClassNames, Text, Whole, expect
from polycal.storage.saved import Checked

# Later actions count as dearer by this part of the largest difference of costs: the first of equals wins, whatever the
# rounding of a product.
TILT = 1e-9


@dataclass(frozen=True, eq=False)
class Loss(Checked):
    """What each action costs for each class; made from an array, a mapping or a data frame by `make_loss`.

    Attributes
    ----------
    name : str
        What it is about.
    matrix : ndarray of shape (n_actions, n_classes)
        The cost of each action if the label is that class, in any unit.
    n_classes : int
        k, the number of classes.
    class_names : tuple of str, or None
        Names of the classes, in the order of the columns.
    action_names : tuple of str, or None
        Names of the actions, if they have any.

    Examples
    --------
    >>> import polycal as pc
    >>> loss = pc.make_loss({"send": [0, 5], "hold": [1, 1]}, n_classes=2)
    >>> loss.actions, loss.matrix.tolist()
    (('send', 'hold'), [[0.0, 5.0], [1.0, 1.0]])
    """

    role: ClassVar[str] = "loss"
    family: ClassVar[str] = "matrix"
    homes: ClassVar[dict[str, str]] = {"matrix": "polycal.measures.costs"}

    name: Annotated[str, Text()]
    matrix: Annotated[Float64s, Array("float64", "n_actions n_classes")]
    n_classes: Annotated[int, Whole(low=2)]
    class_names: Annotated[tuple[str, ...] | None, ClassNames()] = None
    action_names: Annotated[tuple[str, ...] | None, ClassNames("n_actions")] = None

    def _check(self) -> None:
        super()._check()
        expect(self.n_actions, "there must be an action")

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return int(self.matrix.shape[0])

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions by name; those without one by their index."""
        return self.action_names or tuple(map(str, range(self.n_actions)))

    @cached_property
    def width(self) -> float:
        """The largest difference between two costs."""
        return float(self.matrix.max() - self.matrix.min())

    @cached_property
    def tilts(self) -> Float64s:
        """What is added to the costs of each action in choosing, so that the first of equals wins."""
        return np.arange(self.n_actions, dtype=np.float64) * (TILT * self.width)

    def act(self, proba: Floats) -> tuple[Ints, Float64s]:
        """The action of least expected cost at each of trusted ``(m, k)`` predictions, and that cost."""
        actions, promised = np.empty(proba.shape[0], dtype=np.int64), np.empty(proba.shape[0])
        costs, tilts = np.ascontiguousarray(self.matrix.T), self.tilts
        for rows in row_blocks(*proba.shape):
            expected = proba[rows].astype(np.float64, copy=False) @ costs
            expected += tilts
            np.argmin(expected, axis=1, out=actions[rows])
            chosen = np.take_along_axis(expected, actions[rows, None], axis=1)[:, 0]
            promised[rows] = chosen - tilts[actions[rows]]
        return actions, promised

    def paid(self, actions: Ints, labels: Ints) -> Float64s:
        """What the actions cost once the labels are known."""
        return self.matrix[actions, labels]

    def __repr__(self) -> str:
        return f"Loss({self.name!r}, {self.n_actions} actions, {self.n_classes} classes)"


def make_loss(loss: Any, *, n_classes: int, class_names: Any = None, name: str = "loss") -> Loss:
    """Make a checked loss of known classes.

    Parameters
    ----------
    loss : array-like of shape (n_actions, n_classes), mapping, data frame, or Loss
        Rows are actions, columns are classes. A mapping from action to costs has for each action a number (the same for
        all classes), a list, or a mapping from class to cost, in which ``default`` stands for all classes not named. A
        data frame has a column for each class; its actions are named by a column ``action`` or by its index.
    n_classes : int
        Number of classes.
    class_names : sequence of str, optional
        Names of the classes in order; columns and mappings are matched by name.
    name : str, default "loss"
        What the loss is about.

    Returns
    -------
    Loss

    Examples
    --------
    >>> loss = make_loss({"treat": {"sick": 0, "default": 1}, "wait": {"sick": 20, "default": 0}, "ask": 2},
    ...                  n_classes=3, class_names=["sick", "tired", "well"])
    >>> loss.actions
    ('treat', 'wait', 'ask')
    >>> loss.matrix
    array([[ 0.,  1.,  1.],
           [20.,  0.,  0.],
           [ 2.,  2.,  2.]])
    """
    names = None if class_names is None else tuple(class_names)
    return _made(name, check_loss(loss, n_classes, names), n_classes, names)


def make_losses(losses: Any, n_classes: int, class_names: tuple[str, ...] | None) -> tuple[Loss, ...]:
    """Make the checked losses of a mapping from name to loss, or of a single one."""
    tables = check_losses(losses, n_classes, class_names)
    return tuple(_made(name, table, n_classes, class_names) for name, table in tables.items())


def _made(name: str, table: LossTable, n_classes: int, class_names: tuple[str, ...] | None) -> Loss:
    return Loss(name, table.matrix, n_classes, class_names, table.actions)


def decide(y_proba: Any, loss: Any, *, class_names: Any = None, from_logits: bool = False) -> NDArray[Any]:
    r"""Choose the action of least expected cost for each prediction.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples, n_classes), or (n_samples,) for two classes
        Predicted probabilities. String columns of a data frame are the class names.
    loss : array-like of shape (n_actions, n_classes), mapping, data frame, or Loss
        What each action costs for each class, as for `audit`. An action whose costs are all the same is one that
        abstains.
    class_names, from_logits
        As for `smooth_calibration_error`.

    Returns
    -------
    ndarray of shape (n_samples,)
        The actions: their names if the loss names them, else their indices.

    See Also
    --------
    decision_cost : What these actions cost once the labels are known.

    Notes
    -----
    Definition: :math:`a(v) = \arg\min_a \sum_j L_{aj} v_j`; of actions whose expected costs differ by less than about
    1e-9 of the largest difference of costs, the first. Cost: one product of O(n k) for each action. If predictions are
    calibrated, no other rule that looks at them alone costs less on average.

    Examples
    --------
    >>> import polycal as pc
    >>> loss = {"treat": [0, 1], "wait": [20, 0], "ask": 0.5}
    >>> pc.decide([[0.01, 0.99], [0.04, 0.96], [0.6, 0.4]], loss)
    array(['wait', 'ask', 'treat'], dtype='<U5')
    >>> pc.decide([[0.01, 0.99], [0.6, 0.4]], [[0, 1], [20, 0]])
    array([1, 0])
    """
    proba, names = check_proba(y_proba, class_names=class_names, from_logits=from_logits)
    made = make_loss(loss, n_classes=proba.shape[1], class_names=names)
    chosen = made.act(proba)[0]
    return chosen if made.action_names is None else np.array(made.action_names)[chosen]


def decision_cost(
    y_true: Any,
    y_proba: Any,
    loss: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    from_logits: bool = False,
) -> float:
    r"""Compute what acting on predictions cost, on average over the rows.

    Parameters
    ----------
    y_true, y_proba, sample_weight, class_names, from_logits
        As for `smooth_calibration_error`.
    loss
        As for `decide`.

    Returns
    -------
    float
        In the unit of the loss.

    See Also
    --------
    audit : With ``losses=``, what was promised, what was paid, and what can be saved for certain.

    Notes
    -----
    Definition: :math:`\mathbb{E}\, L_{a(v),\,y}` with a(v) as `decide` chooses. Estimator: the (weighted) sample mean,
    unbiased. Cost: that of `decide`.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.decision_cost([0, 1, 1], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [[0, 4], [4, 0], [1.5, 1.5]])
    0.5
    """
    sample = check_sample(
        y_true, y_proba, sample_weight=sample_weight, class_names=class_names, from_logits=from_logits
    )
    made = make_loss(loss, n_classes=sample.n_classes, class_names=sample.class_names)
    return sample_cost(sample, made)


def sample_cost(sample: Sample, loss: Loss) -> float:
    """What acting on the predictions of a validated sample cost."""
    paid = loss.paid(loss.act(sample.proba)[0], sample.labels)
    return float(np.average(paid, weights=sample.sample_weight))
