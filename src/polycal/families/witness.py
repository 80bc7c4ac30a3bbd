"""What a search hands over: a function from predictions to [-1, 1]^k that anybody can evaluate, describe and save."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from polycal._card import card, some
from polycal._text import printable
from polycal._typing import Float64s, Floats, Ints, Path
from polycal._validation import check_features, check_proba, check_same_classes
from polycal.kernels.kernels import Gaussian, Kernel, Laplace, Multinomial
from polycal.measures.functions import LipschitzFunction, ScalarFunction, StepFunction
from polycal.sample import Sample, refuse_lists, row_blocks
from polycal.steps import (
    Affine,
    Exp,
    Interpolate,
    Linear,
    Log,
    Lookup,
    Polynomial,
    Program,
    Step,
    Sum,
    gaussian_exponents,
)
from polycal.storage.rules import Array, ClassNames, Part, Rule, Whole
from polycal.storage.saved import Checked, save


class Witness(Checked, ABC):
    """A function w from predictions to [-1, 1]^k whose correlation with the residual, E <y - v, w(v)>, is evidence.

    Call it on ``(m, k)`` probabilities to get its ``(m, k)`` values. Anybody can evaluate a witness on data
    it was not found on: that is what makes a finding checkable.

    Attributes
    ----------
    n_classes : int
        k, the number of classes.
    class_names : tuple of str, or None
        Names used by `describe`.

    Examples
    --------
    >>> import numpy as np
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> witness = pc.SubsetAuditor().find_witness(made.labels, made.proba)
    >>> witness.describe()
    'is it 1 or 2?'
    >>> values = witness(made.proba)
    >>> values.shape, bool(np.abs(values).max() <= 1)
    ((800, 4), True)
    """

    role: ClassVar[str] = "witness"
    homes: ClassVar[dict[str, str]] = {
        "decision": "polycal.families.decision",
        "full-smooth": "polycal.families.full_smooth",
        "halfspace": "polycal.families.halfspace",
        "kernel": "polycal.families.kernel",
        "list-kernel": "polycal.families.kernel_lists",
        "monomial": "polycal.families.low_degree",
        "projected": "polycal.families.projected",
        "sigmoid": "polycal.families.sigmoid",
        "slice": "polycal.families.slices",
        "subset": "polycal.families.questions",
        "swap": "polycal.families.swap",
        "table": "polycal.families.canonical",
        "top": "polycal.families.questions",
        "top-set": "polycal.families.top_set",
    }

    n_classes: Annotated[int, Whole(low=2)]
    class_names: Annotated[tuple[str, ...] | None, ClassNames()]

    @abstractmethod
    def evaluate(self, proba: Floats) -> Float64s:
        """Values at trusted ``(m, k)`` predictions: ``(m, k)``, in [-1, 1]."""

    @abstractmethod
    def describe(self) -> str:
        """What the witness looks at, in words and class names."""

    def to_steps(self) -> Program:
        """The same function as a program of elementary steps (see `polycal.steps`), to be put into calibrators.

        A witness that only Python can evaluate is one step, which can be neither saved nor exported.
        """
        return (Evaluate(self),)

    def __call__(self, y_proba: Any, *, features: Any = None) -> Float64s:
        """Evaluate at ``(m, k)`` predictions, and at the features of their rows if it looks at them, in blocks."""
        proba, _ = check_proba(y_proba)
        self._check_width(proba)
        table = None if features is None else check_features(features, proba.shape[0])
        whole = Sample(proba, np.zeros(proba.shape[0], dtype=np.int64), features=table)
        out = np.empty(proba.shape)
        for rows in row_blocks(*proba.shape):
            out[rows] = self.evaluate_rows(whole.take(rows))
        return out

    def part(self, sample: Sample) -> Sample:
        """The rows that a certificate of the witness is about: all, unless it is one of a slice."""
        return sample

    def evaluate_rows(self, sample: Sample) -> Float64s:
        """Values at the rows of a sample, by their predictions and by their features if it looks at them."""
        return self.evaluate(sample.proba)

    def correlations(self, sample: Sample) -> Float64s:
        """``<y - v, w(v)>`` of each row: in [-2, 2], with mean 0 for calibrated predictions."""
        self._check_classes(sample)
        refuse_lists(sample, f"a {type(self).__name__}")
        out = np.empty(sample.n_samples)
        for rows in row_blocks(sample.n_samples, sample.n_classes):
            weight = self.evaluate_rows(sample.take(rows))
            hit = np.take_along_axis(weight, sample.labels[rows, None], axis=1)[:, 0]
            out[rows] = hit - np.einsum("ij,ij->i", weight, sample.proba[rows])
        return out

    def correlation(self, sample: Sample) -> float:
        """The weighted mean of `correlations`."""
        return float(np.average(self.correlations(sample), weights=sample.sample_weight))

    def save(self, path: Path) -> None:
        """Write the witness to one file, to be read back by `polycal.load`; no pickle is involved."""
        save(self, path)

    def name(self, class_index: int) -> str:
        """The class's name, or its index as text."""
        return str(class_index) if self.class_names is None else self.class_names[class_index]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({printable(self.describe())})"

    def _repr_html_(self) -> str:
        lines = [("looks at", self.describe()), ("family", self.family), ("classes", f"{self.n_classes:,}")]
        if self.class_names is not None:
            lines.append(("names", some(self.class_names)))
        return card(type(self).__name__, lines)

    def _check_classes(self, sample: Sample) -> None:
        """Refuse another number of classes, and names that the witness knows in another place; others may be new."""
        self._check_width(sample.proba)
        place = {name: i for i, name in enumerate(self.class_names or ())}
        for i, name in enumerate(sample.class_names or ()):
            if place.get(name, i) != i:
                raise ValueError(
                    f"class {i} of the predictions is {name!r}, which was class {place[name]} where the witness was "
                    "found; give the classes in the same order."
                )

    def _check_width(self, proba: Floats) -> None:
        check_same_classes(proba.shape[1], self.n_classes, "the witness was found on")


@dataclass(frozen=True, eq=False)
class Evaluate(Step):
    """A step that asks a witness; it has no ``family``, so it is neither saved nor exported."""

    witness: Witness

    def __call__(self, rows: Float64s) -> Float64s:
        """Apply the step."""
        return self.witness.evaluate(rows)

    @property
    def title(self) -> str:
        """The family of the witness."""
        return type(self.witness).__name__


class DirectionsWitness(Witness):
    """w_l(v) = a function of ``<a_l, v>``, with a direction a_l for each class l.

    Attributes
    ----------
    directions : ndarray of shape (k, k)
        a_l in row l.
    leading : ndarray of int64, shape (k, few)
        For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first.
    contributions : ndarray of shape (k,)
        ``E (y_l - v_l) w_l(v)`` on the sample the witness was found on.
    """

    directions: Annotated[Float64s, Array("float64", "n_classes n_classes")]
    leading: Annotated[Ints, Array("int64", "n_classes few", low=0, below="n_classes")]
    contributions: Annotated[Float64s, Array("float64", "n_classes")]

    @abstractmethod
    def _weights(self, values: Float64s) -> Float64s:
        """The weights (m, k) from the projected values (m, k)."""

    @abstractmethod
    def _weight_steps(self) -> Program:
        """`_weights` as steps."""

    def to_steps(self) -> Program:
        """The weighted sums, and the function of each class at its own."""
        return linear(self.directions.T), *self._weight_steps()

    def evaluate(self, proba: Floats) -> Float64s:
        """The function of each class at its own weighted sum."""
        return self._weights(proba.astype(np.float64, copy=False) @ self.directions.T)

    def describe(self) -> str:
        """The classes that contribute most, each with the classes that its weight looks at."""
        order = np.argsort(-self.contributions, kind="stable")
        order = order[self.contributions[order] > 0]
        if order.size == 0:
            return "nothing found"
        parts = [f"{self.name(int(c))} by {self._direction_words(c)}" for c in order[:3]]
        more = [f"{order.size - 3} more classes"] if order.size > 3 else []
        return "weighs " + "; ".join(parts + more)

    def _direction_words(self, label: int) -> str:
        excess = excesses(self.directions[label][None])[0]
        return signed_names(excess, self.leading[label], self.name) or "a constant"


def excesses(directions: Float64s) -> Float64s:
    """Each row less its median: predictions sum to 1, so only differences between entries matter."""
    return directions - np.median(directions, axis=1, keepdims=True)


def signed_names(amounts: Float64s, order: Ints, name: Callable[[int], str]) -> str:
    """The classes in this order with the signs of their amounts, without those of amount 0."""
    signs = {c: "+" if amounts[c] > 0 else "-" for c in order.tolist() if abs(amounts[c]) > 1e-9}
    return " ".join(f"{sign}{name(c)}" for c, sign in signs.items())


# A function of one number, or one for each class.
A_FUNCTION: Rule = Part((LipschitzFunction, StepFunction))
FUNCTIONS: Rule = Part((LipschitzFunction, StepFunction), many="n_classes")

# What a column has in the sum of two kinds of functions where its own function is of the other kind.
_ZERO = LipschitzFunction(np.zeros(1), np.zeros(1))
_NO_STEPS = StepFunction(np.empty(0), np.zeros(1))
# No distance between predictions exceeds the square root of 2.
_LARGEST = 3.0


def linear(weight: Float64s) -> Linear:
    """``x @ weight``."""
    return Linear(weight, np.zeros(weight.shape[1]))


def scaled(scale: float, shift: float = 0.0) -> Affine:
    """``scale * x + shift``."""
    return Affine(np.array([scale]), np.array([shift]))


def function_steps(functions: Sequence[ScalarFunction]) -> Program:
    """One function for each column."""
    functions = [_constant(f) if f.heights.size == 1 else f for f in functions]
    smooth = [f.simplified() if isinstance(f, LipschitzFunction) else _ZERO for f in functions]
    if not any(isinstance(f, StepFunction) for f in functions):
        return (_interpolate(smooth),)
    stepped = [f if isinstance(f, StepFunction) else _NO_STEPS for f in functions]
    if all(isinstance(f, StepFunction) for f in functions):
        return (_look_up(stepped),)
    return (Sum(((_interpolate(smooth),), (_look_up(stepped),))),)


def kernel_steps(kernel: Kernel, points: Floats) -> Program | None:
    """From a prediction to its kernel with each of the points; None for kernels that are code."""
    places: Float64s = points.astype(np.float64)
    match kernel:
        case Multinomial():
            return linear(places.T), Polynomial(np.ones(kernel.degree + 1))
        case Gaussian():
            return *gaussian_exponents(places, float(kernel.scale), _LARGEST), Exp()
        case Laplace():
            root = scaled(-2.0), Log(), scaled(0.5), Exp()
            return *gaussian_exponents(places, float(kernel.scale), _LARGEST), *root, scaled(-1.0), Exp()
        case _:
            return None


def _interpolate(functions: Sequence[LipschitzFunction]) -> Interpolate:
    return Interpolate(
        np.concatenate([f.knots for f in functions]),
        np.concatenate([f.heights for f in functions]),
        _starts(functions),
    )


def _look_up(functions: Sequence[StepFunction]) -> Lookup:
    return Lookup(
        np.concatenate([np.append(-np.inf, f.knots) for f in functions]),
        np.concatenate([f.heights for f in functions]),
        _starts(functions),
    )


def _starts(functions: Sequence[ScalarFunction]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where each function's heights begin, and the end of the last."""
    return np.concatenate([[0], np.cumsum([f.heights.size for f in functions])])


def _constant(function: ScalarFunction) -> LipschitzFunction:
    return LipschitzFunction(np.zeros(1), function.heights)


# Part of a large sample is enough to say which classes are likely together.
_MAX_CELLS = 1 << 22


def leading_classes(sample: Sample, directions: Float64s, n_leading: int = 3) -> Ints:
    """For each class l the classes that move ``<a_l, v>`` most where l is likely, most so first."""
    step = max(1, sample.proba.size // _MAX_CELLS)
    proba = sample.proba[::step].astype(np.float64)
    influence = np.abs(excesses(directions)) * (proba.T @ proba)
    leading: Ints = np.argsort(-influence, axis=1, kind="stable")[:, :n_leading]
    return leading
