"""What every calibrator can do: fit, predict, be saved, be exported; and the one that changes nothing."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polycal._card import card, some
from polycal._threads import map_threads, one_blas_thread
from polycal._typing import Float64s, Floats, Ints, Path
from polycal._validation import check_proba, check_sample, column_names, to_numpy
from polycal.calibrators.priors import warn_if_few
from polycal.families.auditor import weighted_rows
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Program, Softmax, run
from polycal.storage.saved import Saved, save

# Blocks are so much smaller than elsewhere: several threads work on one each.
_SHARE = 8
# Larger weights, on average, are not counts of rows.
_MOST_COPIES = 10


class Calibrator(Saved, TransformerMixin, BaseEstimator, ABC):
    """A map from predictions to predictions, fitted on labelled ones: a scikit-learn estimator.

    A subclass stores its parameters (``from_logits`` among them) in ``__init__``, and in `_fit` learns from a
    validated sample and returns its map as a program of elementary steps (see `polycal.steps`). Evaluation in
    blocks, data frames, saving, ONNX and torch then come from here.

    Attributes
    ----------
    n_classes_, n_features_in_ : int
        k, the number of classes, which is also the number of columns.
    classes_ : ndarray of shape (n_classes,)
        What `predict` returns: the class names where these are known, else 0 to k - 1.
    class_names_ : tuple of str, or None
        The classes' names.
    feature_names_in_ : ndarray of shape (n_classes,)
        The same as an array, only where names are known.
    steps_ : tuple of Step
        The fitted map.
    """

    role: ClassVar[str] = "calibrator"
    homes: ClassVar[dict[str, str]] = {
        "audited": "polycal.calibrators.audited.calibrator",
        "beta": "polycal.calibrators.one_vs_rest",
        "dirichlet": "polycal.calibrators.matrix",
        "ensemble_temperature": "polycal.calibrators.ensemble",
        "histogram": "polycal.calibrators.one_vs_rest",
        "identity": "polycal.calibrators.base",
        "isotonic": "polycal.calibrators.one_vs_rest",
        "kernel": "polycal.calibrators.kernel.calibrator",
        "matrix": "polycal.calibrators.matrix",
        "temperature": "polycal.calibrators.temperature",
        "vector": "polycal.calibrators.vector",
    }
    # Fitted attributes, beside the steps, that are written to the file: numbers or arrays.
    saved_attributes: ClassVar[tuple[str, ...]] = ()

    from_logits: bool
    n_classes_: int
    n_features_in_: int
    class_names_: tuple[str, ...] | None
    feature_names_in_: NDArray[Any]
    steps_: Program

    @abstractmethod
    def _fit(self, sample: Sample) -> Program:
        """Learn the map from a validated sample; its rows must end on the simplex, up to rounding."""

    def fit(self, proba: Any, y: Any, sample_weight: Any = None, *, class_names: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predicted probabilities (logits with ``from_logits=True``) of rows the classifier was not trained on.
            The names of a frame's columns become the class names.
        y : array-like of shape (n_samples,)
            Class indices, or class names when these are known.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; a row of weight 2 counts as two rows.
        class_names : sequence of str, optional
            Names of the classes, in the order of the columns.

        Returns
        -------
        Calibrator
            Itself.
        """
        sample = check_sample(
            y, proba, sample_weight=sample_weight, class_names=class_names, from_logits=self.from_logits
        )
        return self._fit_sample(sample)

    def _n_numbers(self, n_classes: int) -> int:  # noqa: ARG002 - for subclasses
        """How many numbers are fitted whatever the rows; fewer rows than that are worth a warning."""
        return 0

    def _fit_sample(self, sample: Sample, **options: Any) -> Self:
        """Fit on a validated sample."""
        warn_if_few(sample, self._n_numbers(sample.n_classes), type(self).__name__)
        with one_blas_thread(sample.n_samples * sample.n_classes**2):
            self.steps_ = self._fit(sample, **options)
        self._set_classes(sample.n_classes, sample.class_names)
        return self

    def _set_classes(self, n_classes: int, class_names: tuple[str, ...] | None) -> None:
        """Set what is known of the classes."""
        self.n_classes_ = self.n_features_in_ = n_classes
        self.class_names_ = class_names
        if class_names is not None:
            self.feature_names_in_ = np.array(class_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def classes_(self) -> NDArray[Any]:
        """What `predict` returns: the class names where these are known, else 0 to k - 1."""
        check_is_fitted(self)
        return np.arange(self.n_classes_) if self.class_names_ is None else np.array(self.class_names_)

    def predict_proba(self, proba: Any, *, n_jobs: int | None = -1) -> Any:
        """Calibrated probabilities.

        Parameters
        ----------
        proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predictions of the kind the calibrator was fitted on.
        n_jobs : int, optional
            Threads over blocks of rows: -1 is one per core, None is one.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_classes)
            A frame of the same library for a frame, with the class names as columns; float32 for float32 and
            float16, else float64.
        """
        check_is_fitted(self)
        columns = column_names(proba)
        self.check_class_names(columns)
        array = np.atleast_1d(to_numpy(proba, "y_proba"))
        out = np.empty((array.shape[0], self.n_classes_), dtype=_output_dtype(array))
        # An empty array has no blocks, and is for the gate to refuse.
        blocks = list(row_blocks(array.shape[0], _SHARE * self.n_classes_)) or [slice(0, 0)]

        def fill(rows: slice) -> None:
            out[rows] = self._map(self._check_block(array[rows], rows.start))

        map_threads(fill, blocks, n_jobs)
        return out if columns is None else _like_frame(proba, out, self.class_names_ or columns)

    def _taking(self, *, from_logits: bool) -> Self:
        """The same fitted map, of logits or of probabilities, whichever it was fitted on: files say what they hold."""
        other = copy(self)
        other.from_logits = from_logits
        return other

    def transform(self, proba: Any) -> Any:
        """Calibrated probabilities: the same as `predict_proba`, for pipelines."""
        return self.predict_proba(proba)

    def predict(self, proba: Any) -> NDArray[Any]:
        """The most likely class of each row after calibration: its name where names are known, else its index."""
        calibrated = to_numpy(self.predict_proba(proba), "y_proba")
        labels: NDArray[Any] = self.classes_[calibrated.argmax(axis=1)]
        return labels

    def _map(self, proba: Float64s) -> Float64s:
        """Calibrated rows of a block of trusted rows."""
        out = np.maximum(run(self.steps_, proba), 0.0)
        total = row_sums(out)
        # Steep maps overflow: what is not a probability is not given out as one.
        if not (np.isfinite(total) & (total > 0.0)).all():
            raise ValueError("the calibrator's steps do not lead from these rows to probabilities.")
        out /= total[:, None]
        return out

    def _check_block(self, block: NDArray[Any], start: int) -> Float64s:
        """A block of rows past the gate, as float64 probabilities."""
        if self.from_logits and block.dtype.kind in "biuf":
            # The softmax of float32 logits is not accurate enough for steep maps.
            block = block.astype(np.float64)
        name = f"y_proba[{start}:]" if start else "y_proba"
        proba: Floats
        proba, _ = check_proba(block, from_logits=self.from_logits, name=name)
        if proba.shape[1] != self.n_classes_:
            raise ValueError(
                f"y_proba has {proba.shape[1]} classes but the calibrator was fitted on {self.n_classes_}."
            )
        return proba.astype(np.float64, copy=False)

    def check_class_names(self, columns: Sequence[Any] | None) -> None:
        """Refuse columns that are not the classes of the fit, in its order; without names on either side, none are."""
        if columns is None or self.class_names_ is None or len(columns) != self.n_classes_:
            return
        if all(isinstance(column, str) for column in columns) and tuple(columns) != self.class_names_:
            i = next(i for i, column in enumerate(columns) if column != self.class_names_[i])
            raise ValueError(
                f"y_proba has column {columns[i]!r} where the calibrator was fitted on {self.class_names_[i]!r}; "
                "give the classes' columns in the same order."
            )

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has been called."""
        return hasattr(self, "steps_")

    def _repr_html_(self) -> str:
        if not self.__sklearn_is_fitted__():
            return card(repr(self), [("fitted", "not yet")])
        learnt = [(name, _in_words(getattr(self, name))) for name in self.saved_attributes]
        names = [] if self.class_names_ is None else [("names", some(self.class_names_))]
        steps = " → ".join(type(step).__name__ for step in self.steps_) or "nothing is changed"
        return card(repr(self), [("classes", f"{self.n_classes_:,}"), *names, *learnt, ("steps", steps)])

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def save(self, path: Path) -> None:
        """Write the fitted calibrator to one file, to be read back by `polycal.load`; no pickle is involved.

        The file holds the map, the classes and those parameters that JSON can hold; a parameter that is an
        object (an auditor, say) has its default value again after loading. Predictions are the same.
        """
        check_is_fitted(self)
        save(self, path)

    def _saved_values(self) -> dict[str, Any]:
        return {
            "n_classes": self.n_classes_,
            "class_names": self.class_names_,
            "params": _plain_items(self.get_params(deep=False)),
            "steps": self.steps_,
            "attributes": {name: getattr(self, name) for name in self.saved_attributes},
        }

    @classmethod
    def _rebuilt(cls, values: dict[str, Any]) -> Self:
        from polycal.calibrators.saved import set_fitted  # noqa: PLC0415 - it knows this class

        calibrator = cls(**values["params"])
        set_fitted(calibrator, values)
        return calibrator

    def to_onnx(self, path: Path, *, dtype: str = "float32") -> None:
        """Write the map as an ONNX model, for any batch size. Needs the extra ``polycal[onnx]``.

        Parameters
        ----------
        path : str or path
            The file.
        dtype : {"float32", "float64"}
            The type of the model's input, ``(batch, n_classes)`` predictions, and output. Inside, the model computes
            in float64: it agrees with `predict_proba` of the same rows, in this type, to rounding. Rows that the
            gate would refuse are not refused; nothing can be said of what comes of them.
        """
        from polycal.export.onnx import write_onnx  # noqa: PLC0415 - an extra

        check_is_fitted(self)
        write_onnx(path, self._full_program(), self.n_classes_, dtype, gated=not self.from_logits)

    def to_torch(self) -> Any:
        """The map as a differentiable ``torch.nn.Module`` of ``(batch, n_classes)`` predictions. Needs torch.

        The module computes in float64 whatever the dtype of its input, and answers in that dtype.
        """
        from polycal.export.torch import make_module  # noqa: PLC0415 - an extra

        check_is_fitted(self)
        return make_module(self._full_program(), gated=not self.from_logits)

    def _full_program(self) -> Program:
        """The steps from what the user gives, probabilities or logits."""
        return (Softmax(), *self.steps_) if self.from_logits else self.steps_


class IdentityCalibrator(Calibrator):
    """The predictions as they are.

    Useful as the reference in comparisons, and to pass logits through a softmax.

    Parameters
    ----------
    from_logits : bool
        The predictions are logits, which go through a softmax.

    Examples
    --------
    >>> import polycal as pc
    >>> pc.IdentityCalibrator().fit([[0.2, 0.8], [0.6, 0.4]], [1, 0]).predict_proba([[0.25, 0.75]])
    array([[0.25, 0.75]])
    """

    family: ClassVar[str] = "identity"

    def __init__(self, *, from_logits: bool = False) -> None:
        self.from_logits = from_logits

    def _fit(self, sample: Sample) -> Program:  # noqa: ARG002 - nothing to learn
        return ()


def counted_rows(sample: Sample) -> Sample:
    """The sample with each row as often as its weight says, if all weights are whole and not large.

    Such weights are counts: the copies are different observations, which may be in different folds. Other weights say
    how much a row matters; it is one observation, and must not be in two folds.
    """
    if _holds_counts(sample):
        return replace(sample.take(counted_index(sample)), sample_weight=None)
    return weighted_rows(sample)


def counted_index(sample: Sample) -> Ints:
    """Where the rows of `counted_rows` come from."""
    weight = np.ones(sample.n_samples) if sample.sample_weight is None else sample.sample_weight
    times = weight.astype(np.int64) if _holds_counts(sample) else (weight > 0).astype(np.int64)
    return np.repeat(np.arange(sample.n_samples), times)


def _holds_counts(sample: Sample) -> bool:
    """Whether the weights are counts of rows."""
    weight = sample.sample_weight
    if weight is None:
        return False
    return bool((weight == np.round(weight)).all() and weight.sum() <= _MOST_COPIES * sample.n_samples)


def _like_frame(frame: Any, values: Floats, columns: Sequence[Any]) -> Any:
    """``values`` as a frame of the same library as ``frame``, and with the same index where there is one."""
    import narwhals as nw  # noqa: PLC0415 - NumPy users should not pay for it

    library = nw.from_native(frame, eager_only=True).implementation
    names = [str(column) for column in columns]
    made = nw.from_numpy(values, schema=names, backend=library).to_native()
    if library.is_pandas_like():
        made.index = frame.index
        made.columns = list(columns)
    return made


def _output_dtype(array: NDArray[Any]) -> np.dtype[Any]:
    """Float32 for half and single precision, else float64."""
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)


def _in_words(value: Any) -> str:
    """A fitted number, or the shape of a fitted array."""
    array = np.asarray(value)
    if array.ndim:
        return f"array of shape {array.shape}"
    return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())


def _plain_items(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that JSON gives back as they are, with NumPy's numbers as Python's."""
    items = {name: value.item() if isinstance(value, np.generic) else value for name, value in params.items()}
    return {
        name: value
        for name, value in items.items()
        if value is None or type(value) in {bool, int, float, str}
    }
