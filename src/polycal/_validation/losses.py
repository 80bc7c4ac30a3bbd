"""The gate for losses: what each action costs for each class, as an array, a mapping or a data frame."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polycal._text import check_text
from polycal._typing import Float64s
from polycal._validation.classes import class_index, first_repeated, some_names
from polycal._validation.containers import column_names, to_numpy

# What the classes that are not named cost, in a mapping from class to cost; and the column of a frame with the actions.
DEFAULT, ACTION = "default", "action"
MOST_ACTIONS, MOST_LOSSES = 1000, 100
# Larger numbers would leave no digit for the others.
LARGEST_COST = 1e12


class LossTable(NamedTuple):
    """A checked loss: finite costs of shape (n_actions, n_classes), and the names of the actions, if they have any."""

    actions: tuple[str, ...] | None
    matrix: Float64s


def check_losses(losses: Any, n_classes: int, class_names: tuple[str, ...] | None) -> dict[str, LossTable]:
    """Validate losses by name: a mapping of them, or a single one."""
    named = named_losses(losses)
    if len(named) > MOST_LOSSES:
        raise ValueError(f"losses holds {len(named):,} losses; at most {MOST_LOSSES} can be told apart.")
    # One that is given by itself is told by no name.
    words = {name: "losses" if loss is losses else f"losses[{name!r}]" for name, loss in named.items()}
    return {
        check_text(name, "name of a loss"): check_loss(loss, n_classes, class_names, words[name])
        for name, loss in named.items()
    }


def named_losses(losses: Any, single: str = "loss") -> dict[str, Any]:
    """Losses by name, each still as it was given; one that has no name is called ``single``."""
    if losses is None:
        return {}
    if _is_loss(losses):
        return {str(losses.name): losses}
    if isinstance(losses, Sequence) and losses and all(_is_loss(loss) for loss in losses):
        names = [str(loss.name) for loss in losses]
        if len(set(names)) < len(names):
            raise ValueError(f"losses holds two losses named {first_repeated(names)!r}; rename one.")
        return dict(zip(names, losses, strict=True))
    if not isinstance(losses, Mapping):
        return {single: losses}
    if not losses:
        raise ValueError(
            "losses is empty; give at least one, such as {'triage': {'treat': {...}, 'wait': {...}}}."
        )
    tables = [_holds_actions(entry) for entry in losses.values()]
    if any(tables) and not all(tables):
        raise ValueError(
            f"losses mixes losses and actions: {list(losses)[tables.index(True)]!r} holds actions, "
            f"{list(losses)[tables.index(False)]!r} holds costs. Put the actions of a loss under its name."
        )
    return {str(name): loss for name, loss in losses.items()} if all(tables) else {single: losses}


def check_loss(
    loss: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str = "losses"
) -> LossTable:
    """Validate one loss of known classes."""
    if _is_loss(loss):
        table = _from_columns(loss.matrix, loss.class_names, loss.action_names, n_classes, class_names, name)
    elif isinstance(loss, Mapping):
        table = _from_mapping(loss, n_classes, class_names, name)
    elif column_names(loss) is not None:
        table = _from_frame(loss, n_classes, class_names, name)
    else:
        table = LossTable(None, _costs(to_numpy(loss, name), name))
    return _checked(table, n_classes, name)


def _is_loss(loss: Any) -> bool:
    """Whether this has been through the gate: it is known by what it holds, its class lies above."""
    return hasattr(loss, "matrix") and hasattr(loss, "action_names")


def _holds_actions(entry: Any) -> bool:
    """Whether an entry of a mapping is a whole loss, and not one action's costs."""
    if isinstance(entry, Mapping):
        return any(not isinstance(cost, Real) and cost is not None for cost in entry.values())
    if _is_loss(entry) or column_names(entry) is not None:
        return True
    return np.ndim(entry) == 2 if isinstance(entry, np.ndarray) else _is_nested(entry)


def _is_nested(entry: Any) -> bool:
    return isinstance(entry, Sequence) and any(isinstance(row, Sequence | np.ndarray) for row in entry)


def _from_mapping(
    loss: Mapping[Any, Any], n_classes: int, class_names: tuple[str, ...] | None, name: str
) -> LossTable:
    """Action -> costs: a number for all classes, a list, or a mapping from class to cost with a default."""
    if not loss:
        raise ValueError(f"{name} is empty; give at least one action.")
    _refuse_many(len(loss), name)
    actions = tuple(check_text(str(action), "name of an action") for action in loss)
    rows = [_costs_of(costs, n_classes, class_names, f"{name}[{action!r}]") for action, costs in loss.items()]
    return LossTable(actions, np.stack(rows))


def _costs_of(costs: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str) -> Float64s:
    """What one action costs for each class."""
    if isinstance(costs, Mapping):
        return _named_costs(costs, n_classes, class_names, name)
    if costs is None or isinstance(costs, str):
        raise TypeError(
            f"{name} must be a cost, a list of costs, or a mapping from class to cost; got {costs!r}."
        )
    row = _costs(to_numpy(costs, name), name)
    if row.ndim == 0:
        return np.full(n_classes, float(row))
    if row.shape != (n_classes,):
        raise ValueError(f"{name} must hold a cost for each of {n_classes} classes; got shape {row.shape}.")
    return row


def _named_costs(
    costs: Mapping[Any, Any], n_classes: int, class_names: tuple[str, ...] | None, name: str
) -> Float64s:
    row = np.full(n_classes, np.nan)
    has_default = DEFAULT in costs and DEFAULT not in (class_names or ())
    if has_default:
        row[:] = _cost(costs[DEFAULT], f"{name}['{DEFAULT}']")
    given: set[int] = set()
    for key, cost in costs.items():
        if has_default and key == DEFAULT:
            continue
        index = class_index(_position(key, class_names), n_classes, class_names, name)
        if index in given:
            raise ValueError(f"{name} names class {key!r} more than once; give its cost once.")
        given.add(index)
        row[index] = _cost(cost, f"{name}[{key!r}]")
    if not has_default and len(given) < n_classes:
        missing = [i for i in range(n_classes) if i not in given]
        first = missing[0] if class_names is None else class_names[missing[0]]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"{name} has no cost for class {first!r}{more}; add it, or a '{DEFAULT}'.")
    return row


def _position(key: Any, class_names: tuple[str, ...] | None) -> Any:
    """A class as it was meant: keys of JSON and columns of CSV are text even where classes have no names."""
    return int(key) if class_names is None and isinstance(key, str) and key.isdecimal() else key


def _from_frame(loss: Any, n_classes: int, class_names: tuple[str, ...] | None, name: str) -> LossTable:
    """Rows are actions, columns are classes; actions are named by a column "action" or by a frame's index."""
    columns, values = column_names(loss) or [], to_numpy(loss, name)
    index = list(getattr(loss, "index", ()))
    actions = [str(label) for label in index] if any(isinstance(label, str) for label in index) else None
    if ACTION in columns and ACTION not in (class_names or ()):
        place = columns.index(ACTION)
        actions = [str(action) for action in values[:, place]]
        columns, values = columns[:place] + columns[place + 1 :], np.delete(values, place, axis=1)
    names = None if actions is None else tuple(actions)
    return _from_columns(values, columns, names, n_classes, class_names, name)


def _from_columns(
    values: NDArray[Any],
    columns: Sequence[Any] | None,
    actions: tuple[str, ...] | None,
    n_classes: int,
    class_names: tuple[str, ...] | None,
    name: str,
) -> LossTable:
    """Costs whose columns may have names: these are put into the order of the classes."""
    matrix = _costs(values, name)
    if columns is not None and matrix.ndim == 2:
        # A loss without class names is in order; so is one whose classes the predictions do not name.
        indices = [class_index(_position(c, class_names), n_classes, class_names, name) for c in columns]
        if len(set(indices)) < len(indices):
            twice = columns[indices.index(first_repeated(indices))]
            raise ValueError(f"{name} has two columns for class {twice!r}; drop one.")
        missing = sorted(set(range(n_classes)) - set(indices))
        if missing:
            first = missing[0] if class_names is None else class_names[missing[0]]
            raise ValueError(f"{name} has no column for class {first!r}; there must be one for each class.")
        matrix = matrix[:, np.argsort(indices)]
    return LossTable(actions, matrix)


def _costs(values: NDArray[Any], name: str) -> Float64s:
    """Numbers in double precision."""
    if values.dtype.kind not in "iufO":
        raise TypeError(
            f"{name} must hold numbers, the cost of each action for each class; got {values.dtype}."
        )
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} holds something that is not a number: {error}.") from None


def _cost(value: Any, name: str) -> float:
    """One cost."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r}.")
    return float(value)


def _checked(table: LossTable, n_classes: int, name: str) -> LossTable:
    """Refuse a table that is no loss of these classes."""
    actions, matrix = table
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise ValueError(
            f"{name} must be of shape (n_actions, {n_classes}): a row for each action, a column for each class; got "
            f"shape {matrix.shape}."
        )
    if matrix.shape[1] != n_classes:
        hint = " Is it the other way round?" if matrix.shape[0] == n_classes else ""
        raise ValueError(
            f"{name} has {matrix.shape[1]} columns for {n_classes} classes; rows are actions, columns classes.{hint}"
        )
    _refuse_many(matrix.shape[0], name)
    bad = ~(np.abs(matrix) <= LARGEST_COST)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        action = row if actions is None else repr(actions[row])
        raise ValueError(
            f"{name}: the cost of action {action} for class {column} is {matrix[row, column]:g}; costs must be finite "
            f"and at most {LARGEST_COST:g} in size."
        )
    if actions is not None and len(set(actions)) < len(actions):
        raise ValueError(
            f"{name} has two actions named {first_repeated(actions)!r} ({some_names(actions)}); rename or drop one."
        )
    return table


def _refuse_many(n_actions: int, name: str) -> None:
    if n_actions > MOST_ACTIONS:
        raise ValueError(f"{name} has {n_actions:,} actions; there may be {MOST_ACTIONS:,}.")
