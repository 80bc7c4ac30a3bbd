"""What every calibrator can do: fit, predict, be saved, be exported; and the one that changes nothing."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from polycal._card import card, some, value_words
from polycal._threads import late_bar, map_threads, one_blas_thread
from polycal._typing import Float64s, Floats, Path
from polycal._validation import check_proba, check_sample, column_names, like_frame, to_numpy
from polycal.calibrators.priors import warn_if_few
from polycal.calibrators.rows import FitRows, check_row_groups
from polycal.sample import Sample, row_blocks, row_sums
from polycal.steps import Program, Softmax, run
from polycal.storage.saved import Saved, plain_items, save

# Blocks are so much smaller than elsewhere: several threads work on one each.
_SHARE = 8


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

    Examples
    --------
    >>> import polycal as pc
    >>> made = pc.datasets.make_temperature(800, 4, random_state=0)
    >>> calibrator = pc.TemperatureScaling()
    >>> isinstance(calibrator, pc.Calibrator)
    True
    >>> calibrator.fit(made.proba, made.labels).predict_proba(made.proba).shape
    (800, 4)
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
        "multicalibrated": "polycal.calibrators.multicalibrated",
        "temperature": "polycal.calibrators.temperature",
        "vector": "polycal.calibrators.vector",
    }
    # Fitted attributes, beside the steps, that are written to the file: numbers or arrays.
    saved_attributes: ClassVar[tuple[str, ...]] = ()
    # Whether `_fit` takes the groups of rows that are held out together.
    takes_groups: ClassVar[bool] = False
    # Whether it looks at features beside the predictions.
    takes_features: ClassVar[bool] = False
    # What `partial_fit` goes on from; neither copied nor saved.
    transient: ClassVar[tuple[str, ...]] = ("_rows",)
    _rows: FitRows | None = None

    from_logits: bool
    n_classes_: int
    n_features_in_: int
    class_names_: tuple[str, ...] | None
    feature_names_in_: NDArray[Any]
    steps_: Program

    @abstractmethod
    def _fit(self, sample: Sample) -> Program:
        """Learn the map from a validated sample; its rows must end on the simplex, up to rounding."""

    def fit(
        self,
        proba: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        groups: Any = None,
        from_logits: bool | None = None,
    ) -> Self:
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
        groups : array-like of shape (n_samples,), optional
            A label for each row, the same for rows that belong together (frames of a film, visits of a patient): these
            are held out together. Refused by calibrators that hold no rows out.
        from_logits : bool, optional
            Whether ``proba`` are logits, where that differs from the calibrator's own ``from_logits``.

        Returns
        -------
        Calibrator
            Itself.
        """
        return self._fit_rows(self._check_rows(proba, y, sample_weight, class_names, groups, from_logits))

    def partial_fit(
        self,
        proba: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        class_names: Any = None,
        groups: Any = None,
        from_logits: bool | None = None,
    ) -> Self:
        """Learn from more rows, beside those of all calls before.

        The first call is that of `fit`; parameters are the same. A calibrator refers to the rows of its last fit for
        this, but copies, pickles and files of it do not have them: such a one is fitted anew with all rows. `fit`
        forgets what was before.

        Returns
        -------
        Calibrator
            Itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(
                proba, y, sample_weight, class_names=class_names, groups=groups, from_logits=from_logits
            )
        if self._rows is None:
            raise ValueError(
                "partial_fit needs the rows of the first fit, which files and copies do not have; fit anew on all rows."
            )
        if class_names is None and column_names(proba) is None:
            class_names = self.class_names_
        more = self._check_rows(proba, y, sample_weight, class_names, groups, from_logits)
        return self._fit_rows(self._rows.joined(more), go_on=True)

    def _check_rows(self, proba: Any, y: Any, weight: Any, names: Any, groups: Any, logits: Any) -> FitRows:
        """The rows past the gate."""
        logits = self.from_logits if logits is None else logits
        sample = check_sample(y, proba, sample_weight=weight, class_names=names, from_logits=logits, name="y")
        if groups is not None and not self.takes_groups:
            raise ValueError(f"{type(self).__name__} does not hold groups of rows out; leave out groups.")
        return FitRows(sample, check_row_groups(groups, sample.n_samples))

    def _n_numbers(self, n_classes: int) -> int:  # noqa: ARG002 - for subclasses
        """How many numbers are fitted whatever the rows; fewer rows than that are worth a warning."""
        return 0

    def _fit_sample(self, sample: Sample) -> Self:
        """Fit on a validated sample."""
        return self._fit_rows(FitRows(sample))

    def _fit_rows(self, rows: FitRows, *, go_on: bool = False) -> Self:
        """Fit on validated rows; ``go_on`` where they are those of the last fit, and more below."""
        sample = rows.sample
        warn_if_few(sample, self._n_numbers(sample.n_classes), type(self).__name__)
        options = {"groups": rows.group_numbers()} if self.takes_groups else {}
        name = f"fitting {type(self).__name__}"
        with late_bar(name), one_blas_thread(sample.n_samples * sample.n_classes**2):
            self.steps_ = (self._refit if go_on else self._fit)(sample, **options)
        self._set_classes(sample.n_classes, sample.class_names)
        self._rows = rows
        return self

    def _refit(self, sample: Sample, **options: Any) -> Program:
        """Learn anew from the rows of the last fit and more below them; subclasses may go on from what they have."""
        return self._fit(sample, **options)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in self.transient}

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

    def predict_proba(self, proba: Any, *, n_jobs: int | None = -1, from_logits: bool | None = None) -> Any:
        """Calibrated probabilities.

        Parameters
        ----------
        proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predictions of the kind the calibrator was fitted on.
        n_jobs : int, optional
            Threads over blocks of rows: -1 is one per core, None is one.
        from_logits : bool, optional
            Whether ``proba`` are logits, where that differs from the calibrator's own ``from_logits``.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_classes)
            A frame of the same library for a frame, with the class names as columns; float32 for float32 and
            float16, else float64.
        """
        check_is_fitted(self)
        if from_logits is not None and from_logits != self.from_logits:
            return self._taking(from_logits=from_logits).predict_proba(proba, n_jobs=n_jobs)
        columns = column_names(proba)
        self.check_class_names(columns)
        array = np.atleast_1d(to_numpy(proba, "y_proba"))
        # The gate refuses no rows and other classes before room is made for the classes that a file claims.
        self._check_block(array[:1], 0)
        out = np.empty((array.shape[0], self.n_classes_), dtype=_output_dtype(array))
        blocks = list(row_blocks(array.shape[0], _SHARE * self.n_classes_))

        def fill(rows: slice) -> None:
            out[rows] = self._map(self._check_block(array[rows], rows.start))

        map_threads(fill, blocks, n_jobs)
        return out if columns is None else like_frame(proba, out, self.class_names_ or columns)

    @property
    def _n_inputs(self) -> int:
        """Columns of the rows that the steps take."""
        return self.n_classes_

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

    def summary(self) -> str:
        """What was fitted, in words, a line for each thing: what the card of a notebook shows."""
        lines = self._told()
        width = max(len(label) for label, _ in lines)
        return "\n".join([repr(self), *(f"  {label:<{width}}  {value}" for label, value in lines)])

    def _told(self) -> list[tuple[str, str]]:
        """Label and value of each line of the summary."""
        if not self.__sklearn_is_fitted__():
            return [("fitted", "not yet")]
        names = [] if self.class_names_ is None else [("names", some(self.class_names_))]
        steps = " → ".join(type(step).__name__ for step in self.steps_) or "nothing is changed"
        return [("classes", f"{self.n_classes_:,}"), *names, *self._learnt(), ("steps", steps)]

    def _learnt(self) -> list[tuple[str, str]]:
        """Those of what was learnt."""
        return [(name, value_words(getattr(self, name))) for name in self.saved_attributes]

    def _repr_html_(self) -> str:
        return card(repr(self), self._told())

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
            "params": plain_items(self.get_params(deep=False)),
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


def _output_dtype(array: NDArray[Any]) -> np.dtype[Any]:
    """Float32 for half and single precision, else float64."""
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.dtype(np.float32 if small else np.float64)
