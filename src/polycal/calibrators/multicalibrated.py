"""Calibrated for rows that differ: the flagship calibrator first, then small trees of features and predictions."""

import json
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polycal._typing import Float64s, Ints, Path
from polycal._validation import check_features, check_integer, check_sample, to_numpy
from polycal.calibrators.base import Calibrator
from polycal.calibrators.boosting import Booster, Rows, Tree
from polycal.calibrators.kernel import KernelCalibrator
from polycal.calibrators.rows import FitRows, check_row_groups
from polycal.families.learner import learnt_columns
from polycal.features import Column, Features, read_columns
from polycal.sample import Sample, split_rows
from polycal.steps import Boosted, Program, Softmax, run

# Depths that are tried: single columns, pairs, and more; trees at most, after how many they are judged, and how often
# in a row without a gain.
_DEPTHS, _MOST_ROUNDS, _EVERY, _PATIENCE = (1, 2, 4), 120, 4, 3
# Fewer rows have no trees; above so many, one third is held out once, and not each third in turn.
_FEWEST_ROWS, _MANY_ROWS = 300, 30_000
_N_FOLDS = 3
# Standard errors that the best number of trees must gain: it is the best of many.
_BEYOND = 2.0


class _Choice(NamedTuple):
    """How deep, how many trees, and the mean held-out log loss without and with them."""

    depth: int
    n_rounds: int
    losses: tuple[float, float]


class MulticalibratedCalibrator(Calibrator):
    r"""Calibration that holds for rows that differ in their features, not only on average over them.

    `KernelCalibrator` first; then small trees that look at the features x and at the log probabilities of its
    prediction q, boosted from log q as the starting score. How deep they are and how many, none included, is chosen by
    the log loss of held-out rows: trees are used only if they predict these better by more than two standard
    errors.

    Parameters
    ----------
    from_logits : bool, default False
        The predictions are logits.
    n_folds : int, default 5
        Folds of `KernelCalibrator`.
    random_state : int, default 0

    Attributes
    ----------
    used_ : {"kernel", "boosted"}
        Whether trees are used.
    n_rounds_, depth_ : int
        How many, and how deep; 0 if none.
    held_out_log_loss_ : ndarray of shape (2,)
        Of `KernelCalibrator` alone and with the trees chosen; NaN if nothing was held out.
    columns_ : str
        The columns of features, as JSON; empty if no features are used.

    Notes
    -----
    Definition: :math:`\kappa(x, v) = \mathrm{softmax}(\log q + b(x, \log q) + s(x, \log q) \log q)` with b and s sums
    of trees of depth 1, 2 or 4; a leaf has a shift for each of the 20 likeliest classes and one stretch, which is a
    temperature for its rows. Trees are grown by Newton steps of the log loss, 15 % of each, with 5 added to the second
    derivatives, and at least 25 rows in a leaf. Trees of depth 1 and 2 are patches on slices of one and two columns.
    Missing values go where they gain more; of each column, the 63 most frequent categories are told apart.
    Cost: four fits of `KernelCalibrator` (two above 30,000 rows), and some hundreds of trees of O(n (d + k) k) each.

    Predictions need the features where trees are used. Files hold thresholds and values of complete trees as checked
    arrays. ONNX models take features as a second input (see `to_onnx`); torch modules are made only without trees.

    Examples
    --------
    >>> import polycal as pc
    >>> data = pc.datasets.make_slices(3000, temperature=0.3)
    >>> fit, fresh = data.take(slice(0, 2000)), data.take(slice(2000, 3000))
    >>> calibrator = pc.MulticalibratedCalibrator().fit(fit.proba, fit.labels, features=fit.features)
    >>> proba = calibrator.predict_proba(fresh.proba, features=fresh.features)
    >>> pc.log_loss(fresh.labels, proba) < pc.log_loss(fresh.labels, fresh.proba)
    True
    """

    family: ClassVar[str] = "multicalibrated"
    takes_groups: ClassVar[bool] = True
    takes_features: ClassVar[bool] = True
    saved_attributes: ClassVar[tuple[str, ...]] = (
        "used_",
        "n_rounds_",
        "depth_",
        "held_out_log_loss_",
        "columns_",
    )
    # The features of the rows that are predicted, while they are.
    _predicted: Float64s | None = None

    used_: str
    n_rounds_: int
    depth_: int
    held_out_log_loss_: Float64s
    columns_: str

    def __init__(self, *, from_logits: bool = False, n_folds: int = 5, random_state: int = 0) -> None:
        self.from_logits = from_logits
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(
        self,
        proba: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        features: Any = None,
        class_names: Any = None,
        groups: Any = None,
        feature_names: Any = None,
        from_logits: bool | None = None,
    ) -> Self:
        """Learn the map.

        Parameters
        ----------
        proba, y, sample_weight, class_names, groups, from_logits
            As for `KernelCalibrator`.
        features : data frame, mapping, or array of shape (n_samples, n_features), optional
            What else is known of each row: numbers, text, truth values, dates, with gaps. Without any, the map is that
            of `KernelCalibrator`.
        feature_names : sequence of str, optional
            Names of the columns of `features`, if it is an array.

        Returns
        -------
        MulticalibratedCalibrator
            Itself.
        """
        sample = check_sample(
            y,
            proba,
            sample_weight=sample_weight,
            class_names=class_names,
            from_logits=self.from_logits if from_logits is None else from_logits,
            features=features,
            feature_names=feature_names,
        )
        return self._fit_rows(FitRows(sample, check_row_groups(groups, sample.n_samples)))

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """The columns of features that predictions need; none if no trees are used."""
        return tuple(column.name for column in _columns(self.columns_)) if self.columns_ else ()

    def _fit(self, sample: Sample, groups: Ints | None = None) -> Program:
        seed = check_integer(self.random_state, "random_state", minimum=0)
        program = self._first(sample, groups)
        self.used_, self.n_rounds_, self.depth_, self.columns_ = "kernel", 0, 0, ""
        self.held_out_log_loss_ = np.full(2, np.nan)
        if sample.features is None or sample.n_samples < _FEWEST_ROWS:
            return program
        columns = learnt_columns(sample.features)
        coded = sample.features.recoded(columns)
        choice = self._choose(sample, coded, groups, seed)
        self.held_out_log_loss_ = np.array(choice.losses)
        if choice.n_rounds == 0:
            return program
        self.used_, self.n_rounds_, self.depth_ = "boosted", choice.n_rounds, choice.depth
        self.columns_ = json.dumps([[c.name, c.kind, list(c.categories)] for c in columns])
        rows = Rows.of(sample, _applied(program, sample), coded.values)
        booster = Booster.of(rows, sample, coded, choice.depth)
        trees: list[Tree] = [tree for tree, _ in booster.boost(rows, None, choice.n_rounds)]
        return (booster.step(program, trees, sample.n_classes, len(columns)),)

    def _first(self, sample: Sample, groups: Ints | None) -> Program:
        """The flagship's map."""
        kernel = KernelCalibrator(n_folds=self.n_folds, random_state=self.random_state)
        return kernel._fit_rows(FitRows(sample, groups)).steps_

    def _choose(self, sample: Sample, coded: Features, groups: Ints | None, seed: int) -> _Choice:
        """The depth and number of trees with the least log loss on held-out rows."""
        parts = split_rows(sample, (1.0,) * _N_FOLDS, seed)
        if sample.n_samples > _MANY_ROWS:
            parts = parts[:1]
        gains: dict[tuple[int, int], list[Float64s]] = {}
        without, weights = [], []
        for held in parts:
            taught = np.setdiff1d(np.arange(sample.n_samples), held)
            program = self._first(sample.take(taught), None if groups is None else groups[taught])
            rows, others = (
                Rows.of(part, _applied(program, part), coded.values[place])
                for place in (taught, held)
                for part in [sample.take(place)]
            )
            before = others.losses(np.exp(others.log_proba))
            without.append(before)
            weights.append(others.weight)
            for depth in _DEPTHS:
                booster = Booster.of(rows, sample.take(taught), coded, depth)
                for number, gain in _path(booster, rows, others, before):
                    gains.setdefault((depth, number), []).append(gain)
        gains = {key: one for key, one in gains.items() if len(one) == len(parts)}
        weight = np.concatenate(weights)
        loss = float(np.average(np.concatenate(without), weights=weight))
        means = {key: float(np.average(np.concatenate(one), weights=weight)) for key, one in gains.items()}
        best = max(means, key=lambda key: means[key])
        values = np.concatenate(gains[best])
        error = float(np.sqrt(weight**2 @ (values - means[best]) ** 2)) / float(weight.sum())
        if means[best] <= _BEYOND * error:
            return _Choice(0, 0, (loss, loss))
        return _Choice(*best, (loss, loss - means[best]))

    def predict_proba(
        self,
        proba: Any,
        *,
        features: Any = None,
        n_jobs: int | None = -1,
        from_logits: bool | None = None,
    ) -> Any:
        """Calibrated probabilities.

        Parameters
        ----------
        proba : array-like or data frame of shape (n_samples, n_classes), or (n_samples,) for two classes
            Predictions of the kind the calibrator was fitted on.
        features : data frame, mapping, or array of shape (n_samples, n_features), optional
            Of the same rows, with the columns of the fit; needed if `used_` is "boosted".
        n_jobs : int, optional
            Threads over blocks of rows: -1 is one per core, None is one.
        from_logits : bool, optional
            Whether ``proba`` are logits, where that differs from the calibrator's own ``from_logits``.

        Returns
        -------
        ndarray or data frame of shape (n_samples, n_classes)
        """
        other = copy(self)
        if self.__sklearn_is_fitted__() and self.used_ == "boosted":
            other._predicted = self._coded(features, to_numpy(proba, "y_proba").shape[0])
        if from_logits is not None:
            other.from_logits = from_logits
        return Calibrator.predict_proba(other, proba, n_jobs=n_jobs)

    def transform(self, proba: Any, *, features: Any = None) -> Any:
        """Calibrated probabilities: the same as `predict_proba`, for pipelines."""
        return self.predict_proba(proba, features=features)

    def predict(self, proba: Any, *, features: Any = None) -> NDArray[Any]:
        """The most likely class of each row after calibration: its name where names are known, else its index."""
        calibrated = to_numpy(self.predict_proba(proba, features=features), "y_proba")
        labels: NDArray[Any] = self.classes_[calibrated.argmax(axis=1)]
        return labels

    def _coded(self, features: Any, n_rows: int) -> Float64s:
        """The features of rows to predict, in the columns of the fit."""
        columns = _columns(self.columns_)
        if features is None:
            raise ValueError(
                f"the calibrator looks at the features {', '.join(c.name for c in columns)}; give features."
            )
        names = [c.name for c in columns]
        own = features.shape[1] if isinstance(features, np.ndarray) and features.ndim == 2 else -1
        table = check_features(features, n_rows, names if own == len(names) else None)
        return table.recoded(columns).values

    def _check_block(self, block: NDArray[Any], start: int) -> Float64s:
        """A block of rows past the gate, with its features."""
        proba = super()._check_block(block, start)
        if self._predicted is None:
            return proba
        return np.hstack([proba, self._predicted[start : start + proba.shape[0]]])

    @property
    def _n_inputs(self) -> int:
        """Columns of the rows that the steps take."""
        return self.n_classes_ + (len(_columns(self.columns_)) if self.columns_ else 0)

    def encode_features(self, features: Any) -> Float64s:
        """Features as the ONNX model takes them: one float64 column for each of `feature_names_`.

        Numbers stand for themselves, dates for seconds since 1970, truth values for 0 and 1, and categories for their
        places in the list that ``columns_`` has of them; NaN where a value is missing or new.

        Parameters
        ----------
        features : data frame, mapping, or array of shape (n_samples, n_features)
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if not self.columns_:
            raise ValueError(
                "the calibrator looks at no features: it has no trees, and its ONNX model no such input."
            )
        first = next(iter(features.values()), ()) if isinstance(features, Mapping) else features
        n_rows = first.n_rows if isinstance(first, Features) else len(first)
        return self._coded(features, n_rows)

    def to_onnx(self, path: Path, *, dtype: str = "float32") -> None:
        """Write the map as an ONNX model; where trees are used, one with a second input.

        Parameters
        ----------
        path, dtype
            As for `KernelCalibrator`. Where trees are used, the model has the inputs ``proba`` and ``features``, the
            latter ``(batch, n_features)`` of float64 for both types, encoded as by `encode_features`. Its metadata
            ``polycal.features`` are ``columns_``: names, kinds and categories of the columns, in order.
        """
        from polycal.export.onnx import write_onnx  # noqa: PLC0415 - an extra

        check_is_fitted(self)
        write_onnx(
            path,
            self._full_program(),
            self.n_classes_,
            dtype,
            gated=not self.from_logits,
            n_features=len(self.feature_names_),
            notes={"polycal.features": self.columns_} if self.columns_ else {},
        )

    def _full_program(self) -> Program:
        if self.from_logits and self.used_ == "boosted":
            return tuple(
                replace(step, branches=((Softmax(), *step.branches[0]),))
                if isinstance(step, Boosted)
                else step
                for step in self.steps_
            )
        return super()._full_program()

    def to_torch(self) -> Any:
        """The map as a ``torch.nn.Module`` if no trees are used; see `KernelCalibrator`."""
        if getattr(self, "used_", "") == "boosted":
            raise TypeError("trees of features cannot be written as torch: use to_onnx, or save it.")
        return super().to_torch()


def _path(booster: Booster, rows: Rows, others: Rows, before: Float64s) -> Iterator[tuple[int, Float64s]]:
    """What other rows gain in log loss after some numbers of trees, until it has not grown for a while."""
    best, since = -np.inf, 0
    for number, (_, proba) in enumerate(booster.boost(rows, others, _MOST_ROUNDS), start=1):
        if number % _EVERY or proba is None:
            continue
        gain = before - others.losses(proba)
        yield number, gain
        mean = float(np.average(gain, weights=others.weight))
        best, since = (mean, 0) if mean > best else (best, since + 1)
        if since == _PATIENCE:
            return


def _applied(program: Program, sample: Sample) -> Float64s:
    """A program's predictions of a sample."""
    proba = run(program, sample.proba.astype(np.float64))
    calibrated: Float64s = proba / proba.sum(axis=1, keepdims=True)
    return calibrated


def _columns(text: str) -> tuple[Column, ...]:
    """The columns from JSON, which may come from a file."""
    return read_columns(json.loads(text))
