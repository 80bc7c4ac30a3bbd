"""What the columns of a file are: labels, weights, classes, marks, what is left out, and what may be asked for."""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from polycal._text import advice, listed_names
from polycal._validation import CalibrationWarning

EVALUATION = "evaluation"
# What a role is called where nobody says otherwise.
LABELS = ("label",)
WEIGHTS = ("weight", "sample_weight")
SPECIAL_COLUMNS = (*LABELS, *WEIGHTS, EVALUATION)
# A single column of probabilities under one of these names does not name its class.
_NAMELESS = frozenset(
    {
        "p",
        "prob",
        "proba",
        "probability",
        "score",
        "prediction",
        "pred",
        "y_prob",
        "y_proba",
        "y_score",
        "y_pred",
    }
)
INDEX_PREFIX = "__index_level_"  # what pandas calls the columns of an index it stores
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class Layout:
    """What is said of a file beside what it says itself. A column is an array in files of arrays.

    Attributes
    ----------
    label, weight : str, optional
        The columns of labels and of weights, if they have other names than usual.
    classes : tuple of str, optional
        The columns that are classes (patterns such as ``p_*``, too); of an array, the names of its columns.
    drop : tuple of str
        Columns that are left out.
    columns : tuple of str
        Columns that are neither and are read along, see `Chunk`.
    from_logits : bool
        Whether the numbers are logits, or log probabilities.
    normalize : bool
        Whether rows are divided by their sums, which rounding may have moved.
    format : str, optional
        The format, where the suffix does not tell it.
    """

    label: str | None = None
    weight: str | None = None
    classes: Sequence[str] | None = None
    drop: Sequence[str] = ()
    columns: Sequence[str] = ()
    from_logits: bool = False
    normalize: bool = False
    format: str | None = None

    def __post_init__(self) -> None:
        for name in ("label", "weight", "format"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{_option(name)} must be one name; got {value!r:.60}.")
        for name in ("from_logits", "normalize"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{_option(name)} must be True or False; got {getattr(self, name)!r:.60}.")
        if self.from_logits and self.normalize:
            raise ValueError(
                f"{_option('from_logits')} and {_option('normalize')} exclude each other: logits have no sum."
            )
        if self.format is not None:
            object.__setattr__(self, "format", "." + self.format.lower().lstrip("."))
        for name in ("classes", "drop", "columns"):
            object.__setattr__(self, name, _names(getattr(self, name), name))
        twice = next((name for name, count in Counter(self._asked()).items() if count > 1), None)
        if twice is not None:
            raise ValueError(f"column {twice!r} is given two roles; name it once.")

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes, as names."""
        return None if self.classes is None else tuple(self.classes)

    def _asked(self) -> list[str]:
        named = [name for name in (self.label, self.weight) if name is not None]
        return [*named, *(self.classes or ()), *self.drop, *self.columns]


def _names(value: Any, name: str) -> tuple[str, ...] | None:
    """A list of names, as they may be given."""
    if value is None:
        return None if name == "classes" else ()
    if not isinstance(value, Iterable):
        raise TypeError(f"{_option(name)} must be a list of names; got {value!r:.60}.")
    names = (value,) if isinstance(value, str) else tuple(value)
    wrong = next((one for one in names if not isinstance(one, str)), None)
    if wrong is not None:
        raise TypeError(f"{_option(name)} must hold names; got {wrong!r:.60}.")
    if name == "classes" and not names:
        raise ValueError(f"{_option(name)} is empty; name the classes.")
    return names


def _option(name: str) -> str:
    return advice(name, "--slice-by" if name == "columns" else "--" + name.replace("_", "-"))


@dataclass(frozen=True)
class Roles:
    """What a reader made of the names in a file: which it took for something unasked, and which have no role."""

    word: str = "column"
    taken: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    # What those taken are.
    role: str = "classes"

    @property
    def guess(self) -> str:
        """A sentence to put behind an error: what was taken for something, and may be something else."""
        said = str(replace(self, unused=()))
        return said and f" {said[:1].upper()}{said[1:]}."

    def __str__(self) -> str:
        """What is to be told, in one line; nothing where everything has the role that its name says."""
        said = []
        if self.taken:
            fix = advice("drop=[...] or classes=[...]", "--drop or --classes")
            hint = "one is no class" if self.role == "classes" else "that is wrong"
            said.append(
                f"{self.word}s taken for {self.role}: {listed_names(self.taken)} (if {hint}, use {fix})"
            )
        if self.unused:
            fix = advice("label=, weight=, columns= or drop=", "--label, --weight or --drop")
            said.append(f"{self.word}s not used: {listed_names(self.unused)} (say what they are by {fix})")
        return "; ".join(said)


@dataclass(frozen=True)
class Columns:
    """The columns of a table by their role.

    Attributes
    ----------
    data : tuple of str
        The columns of probabilities, one for each class; a single one is that of the second of two classes.
    classes : tuple of str
        What the classes are called.
    label, weight, evaluation : str, optional
        The columns of these, if there are any.
    others : tuple of str
        Columns that were asked for, read along.
    unused : tuple of str
        Columns without a role that nobody asked to drop.
    guessed : bool
        Whether columns were taken for classes because nothing else is known of them.
    word : str
        What a column is called in files of this format.
    """

    data: tuple[str, ...]
    classes: tuple[str, ...]
    label: str | None = None
    weight: str | None = None
    evaluation: str | None = None
    others: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    guessed: bool = False
    word: str = "column"

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """The classes' names; columns 0, 1, 2, ... are positions, which is to have no names."""
        return None if self.classes == numbered(len(self.classes)) else self.classes

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns whose cells need not be numbers."""
        return tuple(name for name in (self.label, self.evaluation, *self.others) if name is not None)

    @property
    def read(self) -> tuple[str, ...]:
        """All columns that are read."""
        return (*self.data, *(() if self.weight is None else (self.weight,)), *self.texts)

    @property
    def roles(self) -> Roles:
        """What is to be told of them."""
        if self.guessed and len(self.data) == 1:
            no, yes = map(repr, self.classes)
            return Roles(self.word, self.data, self.unused, f"the probability of {yes}, against {no}")
        return Roles(self.word, self.data if self.guessed else (), self.unused)


def not_a_class(name: str) -> str:
    """What to do about a column that was taken for a class and is none."""
    said = advice(f"label={name!r} or drop=[{name!r}]", f"--label {name} or --drop {name}")
    return f"Every column is taken for a class, except {', '.join(SPECIAL_COLUMNS)}. If {name!r} is none, use {said}"


def numbered(n_classes: int) -> tuple[str, ...]:
    """Name the columns of classes that have no names."""
    return tuple(map(str, range(n_classes)))


def sort_columns(
    names: Sequence[str], layout: Layout | None = None, classes: Sequence[str] | None = None
) -> Columns:
    """Find the role of each column.

    A class is what ``layout`` says is one, else one of ``classes``, which the file itself names; if neither says
    anything, every column whose name is no special one, and which is not dropped nor asked for by name.
    """
    layout = layout or Layout()
    there = Counter(names)
    twice = next((name for name, count in there.items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"two columns are called {twice!r}; rename one of them")
    label, weight = (_special(names, layout, role) for role in ("label", "weight"))
    dropped = set(expanded(layout.drop, names))
    _refuse_missing(layout.columns, names, "columns")
    _refuse_missing([name for name in layout.drop if not _is_pattern(name, names)], names, "drop")
    evaluation = EVALUATION if EVALUATION in there and EVALUATION not in dropped else None
    taken = {label, weight, evaluation, *dropped, *layout.columns}
    free = [n for n in names if n not in taken and n not in SPECIAL_COLUMNS]
    data, called = _class_columns(free, names, layout, classes)
    taken.update(data)
    unused = tuple(n for n in names if n not in taken and not n.startswith(INDEX_PREFIX))
    guessed = layout.classes is None and classes is None
    return Columns(data, called, label, weight, evaluation, tuple(layout.columns), unused, guessed)


def _class_columns(
    free: list[str], names: Sequence[str], layout: Layout, classes: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of probabilities, and the names of the classes: one column is enough for two classes."""
    if layout.classes is not None:
        chosen = layout.classes
        there = set(names)
        here = [name for name in chosen if name in there]
        single = here or ([free[0]] if len(free) == 1 else [])
        others = [name for name in free if name not in chosen]
        misspelt = any(get_close_matches(name, others, n=1) for name in chosen if here and name not in there)
        if (
            len(chosen) == 2
            and len(here) < 2
            and len(single) == 1
            and not (misspelt or _MAGIC.intersection(*chosen))
        ):
            # The column is that of one of the two, which comes second; if it is called otherwise, of the second.
            second = here[0] if here else chosen[1]
            return (single[0],), (next(name for name in chosen if name != second), second)
        found = expanded(chosen, names)
        _refuse_missing([name for name in chosen if not _is_pattern(name, there)], names, "classes")
        return found, found
    if classes is not None:
        missing = set(classes).difference(names)
        if missing:
            raise ValueError(f"there is no column {min(missing)!r}, which is said to be a class")
        return tuple(classes), tuple(classes)
    found = tuple(name for name in free if not name.startswith(INDEX_PREFIX))
    if len(found) == 1:
        return found, one_column_names(found[0])
    return found, found


def one_column_names(name: str) -> tuple[str, str]:
    """The names of two classes, of which a column has the probability of the second."""
    return ("0", "1") if name.lower() in _NAMELESS or name == "1" else (f"not {name}", name)


def expanded(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Names, and those that patterns stand for, each once."""
    found: dict[str, None] = {}
    there = set(names)
    for name in wanted:
        if _is_pattern(name, there):
            found.update(dict.fromkeys(other for other in names if fnmatchcase(other, name)))
        else:
            found[name] = None
    return tuple(found)


def _is_pattern(name: str, there: Collection[str]) -> bool:
    return name not in there and bool(_MAGIC.intersection(name))


def _special(names: Sequence[str], layout: Layout, role: str) -> str | None:
    """The column of a role: the one that is named, or one of the usual name."""
    named = getattr(layout, role)
    if named is not None:
        _refuse_missing([named], names, role)
        return str(named)
    found = [n for n in (LABELS if role == "label" else WEIGHTS) if n in names and n not in layout.drop]
    found = [n for n in found if n not in layout.columns and n not in (layout.classes or ())]
    if len(found) > 1:
        both = " and ".join(map(repr, found))
        raise ValueError(f"there are both {both}; keep one, or say which by {_option(role)}")
    return found[0] if found else None


def _refuse_missing(wanted: Iterable[str], names: Sequence[str], option: str) -> None:
    """Say which column is not there, and which has a similar name."""
    there = set(names)
    missing = next((name for name in wanted if name not in there), None)
    if missing is not None:
        similar = get_close_matches(missing, names, n=1)
        hint = f"did you mean {similar[0]!r}?" if similar else f"there are {listed_names(names)}"
        raise ValueError(f"there is no column {missing!r} for {_option(option)}; {hint}")


def writable_names(class_names: tuple[str, ...] | None, n_classes: int) -> tuple[str, ...]:
    """Name one column per class, refusing names that would be read back as something else."""
    if class_names is None:
        return numbered(n_classes)
    for name in class_names:
        if name in SPECIAL_COLUMNS or not name or name.startswith(INDEX_PREFIX):
            raise ValueError(
                f"a table cannot have a class column called {name!r}; rename the class or write .npz"
            )
    return class_names


def warn_unused(roles: Roles) -> None:
    """Name what is in a file and has no role, where nobody said that it has none."""
    if roles.unused and roles.word == "array":
        warnings.warn(str(replace(roles, taken=())), CalibrationWarning, stacklevel=3)


@contextmanager
def explained(roles: Roles) -> Iterator[None]:
    """What the gate refuses may come from a column that is no class."""
    try:
        yield
    except ValueError as error:
        if not roles.taken or not str(error).startswith("y_proba"):
            raise
        raise ValueError(f"{error}{roles.guess}") from error
