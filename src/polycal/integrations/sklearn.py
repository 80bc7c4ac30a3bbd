"""scikit-learn: calibration errors as scorers, and displays of any question about the label."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polycal import plots
from polycal._validation import check_choice
from polycal.families.defaults import parse_notion
from polycal.families.notion import Notion, calibration_error
from polycal.measures.binned import ReliabilityCurve, Strategy, reliability_curve
from polycal.measures.smooth import SmoothCurve, smooth_calibration_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Kind = Literal["reliability", "cumulative"]


def class_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, list[str]]:
    """Labels as positions, probabilities and names of the classes of a fitted classifier."""
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"estimator must have predict_proba; {type(estimator).__name__} has none.")
    classes = np.asarray(estimator.classes_)
    labels = np.asarray(y)
    if labels.ndim != 1 or not np.isin(labels, classes).all():
        raise ValueError("y must be one column of labels that the estimator was fitted on.")
    order = np.argsort(classes)
    positions = order[np.searchsorted(classes, labels, sorter=order)]
    return positions, estimator.predict_proba(X), [str(name) for name in classes]


@dataclass(frozen=True)
class CalibrationScorer:
    """A scorer for `cross_val_score`, `GridSearchCV` and the like: the negative calibration error.

    Parameters
    ----------
    notion : Notion or str, optional
        What being calibrated means, or its name as the command takes it, such as "confidence" or "classwise:smooth". By
        default the smooth error of the question below.
    subset : list of classes, optional
        Without a notion: the classes, by label or position, whose summed probability is judged. By default "is the most
        likely class right?", or class 1 of two.

    Notes
    -----
    Greater is better, so that the error has a minus sign. A calibration error is no proper score: a model that always
    predicts the frequencies of classes has none. Choose models by log loss or Brier score, and look at this beside.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from polycal.integrations import CalibrationScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=1000)
    >>> scores = cross_val_score(model, X, y, scoring=CalibrationScorer("confidence"), cv=3)
    >>> bool((scores <= 0).all())
    True
    """

    notion: Notion | str | None = None
    subset: Any = None

    def __post_init__(self) -> None:
        if self.notion is not None and self.subset is not None:
            raise ValueError("subset is a question of its own; give either notion or subset.")
        if isinstance(self.notion, str):
            object.__setattr__(self, "notion", parse_notion(self.notion))

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The negative error of a fitted classifier on some rows."""
        labels, proba, names = class_rows(estimator, X, y)
        if isinstance(self.notion, Notion):
            return -calibration_error(
                labels, proba, self.notion, sample_weight=sample_weight, class_names=names
            )
        subset = _positions(self.subset, estimator.classes_)
        return -smooth_calibration_curve(labels, proba, subset=subset, sample_weight=sample_weight).value


@dataclass(eq=False)
class CalibrationDisplay:
    """A question's reliability diagram or cumulative curve, made as scikit-learn makes its displays.

    Make it with `from_estimator` or `from_predictions`. scikit-learn's class of the same name is for two classes; here
    the question is any set of classes, or confidence.

    Attributes
    ----------
    curve : ReliabilityCurve or SmoothCurve
        What is drawn.
    name : str or None
        The model's name, in the title.
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import polycal as pc
    >>> from polycal.integrations import CalibrationDisplay
    >>> example = pc.datasets.load_fashion("evaluation")
    >>> display = CalibrationDisplay.from_predictions(
    ...     example.labels, example.proba, subset=["Shirt", "Coat"], class_names=example.class_names,
    ...     name="network", ax=Figure().subplots(),
    ... )
    >>> display.ax_.get_title()
    'network: is it Coat or Shirt?'
    """

    curve: ReliabilityCurve | SmoothCurve
    name: str | None = None
    ax_: "Axes | None" = field(default=None, repr=False)
    figure_: "Figure | SubFigure | None" = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        subset: Any = None,
        kind: Kind = "reliability",
        n_bins: int = 15,
        strategy: Strategy = "uniform",
        sample_weight: Any = None,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> "CalibrationDisplay":
        """Predict with a fitted classifier, and draw.

        Parameters
        ----------
        estimator : fitted classifier
            With `predict_proba` and `classes_`.
        X, y
            Rows that it was not fitted on.
        subset : list of classes, optional
            The labels that count as "yes". By default the question of confidence, or class 1 of two.
        kind : {"reliability", "cumulative"}
            In bins, or without.
        n_bins, strategy
            Of the reliability diagram, as for `reliability_curve`.
        sample_weight, name, ax
            Weights of rows; the model's name, by default its class; where to draw.

        Returns
        -------
        CalibrationDisplay
        """
        labels, proba, names = class_rows(estimator, X, y)
        return cls.from_predictions(
            labels,
            proba,
            subset=_positions(subset, estimator.classes_),
            kind=kind,
            n_bins=n_bins,
            strategy=strategy,
            sample_weight=sample_weight,
            class_names=names,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_proba: Any,
        *,
        subset: Any = None,
        kind: Kind = "reliability",
        n_bins: int = 15,
        strategy: Strategy = "uniform",
        sample_weight: Any = None,
        class_names: Any = None,
        name: str | None = None,
        ax: "Axes | None" = None,
    ) -> "CalibrationDisplay":
        """Draw predictions that are there already.

        Parameters
        ----------
        y_true, y_proba, sample_weight, class_names
            As for `reliability_curve`.
        subset, kind, n_bins, strategy, name, ax
            As for `from_estimator`; the name is empty by default.

        Returns
        -------
        CalibrationDisplay
        """
        check_choice(kind, "kind", ("reliability", "cumulative"))
        rows = {"subset": subset, "sample_weight": sample_weight, "class_names": class_names}
        if kind == "cumulative":
            return cls(smooth_calibration_curve(y_true, y_proba, **rows), name).plot(ax=ax)
        curve = reliability_curve(y_true, y_proba, n_bins=n_bins, strategy=strategy, **rows)
        return cls(curve, name).plot(ax=ax)

    def plot(self, *, ax: "Axes | None" = None, name: str | None = None) -> "CalibrationDisplay":
        """Draw the curve again.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default a new figure is made.
        name : str, optional
            By default the display's.

        Returns
        -------
        CalibrationDisplay
        """
        shown = self.name if name is None else name
        title = None if not shown else f"{shown}: {self.curve.question}"
        if isinstance(self.curve, SmoothCurve):
            self.ax_ = plots.plot_cumulative(self.curve, ax=ax, title=title)
        else:
            self.ax_ = plots.plot_reliability(self.curve, ax=ax, title=title)
        self.figure_ = self.ax_.figure
        return self


def _positions(subset: Any, classes: Any) -> Any:
    """Labels of a classifier as positions of its classes."""
    if subset is None:
        return None
    known = {label: i for i, label in enumerate(np.asarray(classes).tolist())}
    unknown = [label for label in subset if label not in known]
    if unknown:
        raise ValueError(f"subset has {unknown[0]!r}, which is none of the classifier's classes.")
    return [known[label] for label in subset]
