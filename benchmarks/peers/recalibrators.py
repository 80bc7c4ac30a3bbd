"""How each peer recalibrates: ``fit(proba, labels)`` returns the function from predictions to predictions.

Peers are imported inside the calls, so that a missing one fails alone and the names can be listed anywhere. Where a
peer's answer is not a probability vector, what is done about it is written down in its note.
"""

# ruff: noqa: PLC0415 - a missing peer shall fail alone

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# Logarithms of exact zeros, in calls where the peer leaves taking them to its user.
SMALLEST = 1e-12


@dataclass(frozen=True)
class Recalibrator:
    """A peer's method.

    Attributes
    ----------
    package : str
        The distribution it comes from.
    environment : str
        The environment that has it.
    fit : callable
        From predictions and labels to the fitted map.
    note : str
        What a reader should know of the call.
    """

    package: str
    environment: str
    fit: Callable
    note: str = ""


RECALIBRATORS = {}


def register(name, package, environment="main", note=""):
    """Enter a ``fit`` into the table."""

    def enter(fit):
        RECALIBRATORS[name] = Recalibrator(package, environment, fit, note)
        return fit

    return enter


def fitted(model, proba, labels):
    """Fit a model with scikit-learn's methods; classes it has not seen get probability 0."""
    model.fit(proba, labels)
    # Some models name all classes, and predict those they have seen.
    classes = [
        np.asarray(getattr(model, "classes_", ()), dtype=int),
        np.unique(labels),
        np.arange(proba.shape[1]),
    ]

    def predict(new):
        out = np.asarray(model.predict_proba(new))
        seen = next(found for found in classes if found.size == out.shape[1])
        return for_all_classes(out, seen, proba.shape[1])

    return predict


def for_all_classes(out, seen, k):
    """Predictions of some classes, with 0 for all others."""
    full = np.zeros((out.shape[0], k))
    full[:, seen] = out
    return full


def among(proba, seen):
    """Predictions given that the class is one of some; equal shares where these have no probability."""
    part = proba[:, seen]
    total = part.sum(axis=1, keepdims=True)
    return np.where(total > 0, part, 1.0) / np.where(total > 0, total, seen.size)


def logs(proba):
    """Logarithms of probabilities, exact zeros taken as a tiny number."""
    return np.log(np.maximum(proba, SMALLEST))


def identity_classifier(k):
    """A scikit-learn classifier whose predictions are its input."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Identity(ClassifierMixin, BaseEstimator):
        def fit(self, _X, _y=None):
            self.classes_ = np.arange(k)
            return self

        def predict_proba(self, X):
            return np.asarray(X)

        def predict(self, X):
            return np.asarray(X).argmax(axis=1)

        def __sklearn_is_fitted__(self):
            return True

    return Identity().fit(None)


# probmetrics


def _probmetrics_named(method):
    def fit(proba, labels):
        from probmetrics.calibrators import get_calibrator

        return fitted(get_calibrator(method), proba, labels)

    return fit


def _probmetrics_class(name):
    def fit(proba, labels):
        from probmetrics import calibrators

        return fitted(getattr(calibrators, name)(), proba, labels)

    return fit


def _probmetrics_one_vs_rest(name):
    def fit(proba, labels):
        from probmetrics import calibrators

        binary = getattr(calibrators, name)()
        return fitted(calibrators.MulticlassOneVsRestCalibrator(binary), proba, labels)

    return fit


for _title, _method in {
    "temperature": "temp-scaling",
    "temperature mixture": "ts-mix",
    "SVS": "svs",
    "SMS": "sms",
    "logistic": "logistic",
    "isotonic": "isotonic",
    "centred isotonic": "cir",
    "Venn-Abers": "ivap",
}.items():
    register(f"probmetrics {_title}", "probmetrics")(_probmetrics_named(_method))
for _title, _name in {
    "ETS": "ETSCalibrator",
    "vector": "VectorScalingCalibrator",
    "matrix": "MatrixScalingCalibrator",
    "kernel": "KernelCalibrator",
    "LightGBM": "LightGBMCalibrator",
    "CatBoost": "CatBoostCalibrator",
}.items():
    register(f"probmetrics {_title}", "probmetrics")(_probmetrics_class(_name))
for _title, _name in {"spline": "MLISplineCalibrator", "beta": "BetacalCalibrator"}.items():
    register(f"probmetrics {_title}", "probmetrics", note="one-vs-rest")(_probmetrics_one_vs_rest(_name))


# netcal


def _netcal(module, name, **options):
    def fit(proba, labels):
        from importlib import import_module

        model = getattr(import_module(f"netcal.{module}"), name)(**options)
        model.fit(proba, labels)

        def predict(new):
            out = np.asarray(model.transform(new))
            # Of two classes it gives the second one's.
            return np.stack([1 - out, out], axis=1) if out.ndim == 1 else out

        return predict

    return fit


register("netcal temperature", "netcal")(_netcal("scaling", "TemperatureScaling"))
register("netcal vector", "netcal")(_netcal("scaling", "LogisticCalibration"))
register("netcal beta", "netcal")(_netcal("scaling", "BetaCalibration"))
register("netcal histogram", "netcal")(_netcal("binning", "HistogramBinning", bins=15))
register("netcal isotonic", "netcal")(_netcal("binning", "IsotonicRegression"))
register("netcal BBQ", "netcal")(_netcal("binning", "BBQ"))
register("netcal ENIR", "netcal")(_netcal("binning", "ENIR"))


# scikit-learn


def _scikit_learn(method):
    def fit(proba, labels):
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        seen, positions = np.unique(labels, return_inverse=True)
        frozen = FrozenEstimator(identity_classifier(seen.size))
        model = CalibratedClassifierCV(frozen, method=method).fit(among(proba, seen), positions)

        def predict(new):
            out = np.array(new, dtype=float)
            out[:, seen] = model.predict_proba(among(new, seen)) * out[:, seen].sum(axis=1, keepdims=True)
            return out

        return predict

    return fit


for _method in ("temperature", "isotonic", "sigmoid"):
    register(
        f"scikit-learn {_method}",
        "scikit-learn",
        note="classes without a row to fit on keep their probability",
    )(_scikit_learn(_method))


@register("scikit-learn logistic", "scikit-learn", note="LogisticRegression of the log-probabilities")
def _(proba, labels):
    from sklearn.linear_model import LogisticRegression

    predict = fitted(LogisticRegression(max_iter=500), logs(proba), labels)
    return lambda new: predict(logs(new))


# MAPIE and Venn-Abers


@register(
    "MAPIE top-label", "MAPIE", note="other classes share the rest in proportion, where MAPIE gives NaN"
)
def _(proba, labels):
    from mapie.calibration import TopLabelCalibrator

    model = TopLabelCalibrator(identity_classifier(proba.shape[1]), calibrator="isotonic", cv="prefit")
    model.fit(proba, labels)

    def predict(new):
        top = new.argmax(axis=1)
        rows = np.arange(top.size)
        confidence = np.clip(np.nan_to_num(np.asarray(model.predict_proba(new))[rows, top]), 0, 1)
        out = new.copy()
        out[rows, top] = 0
        rest = out.sum(axis=1, keepdims=True)
        out = np.where(rest > 0, out, 1.0) / np.where(rest > 0, rest, out.shape[1])
        out *= (1 - confidence)[:, None]
        out[rows, top] += confidence
        return out

    return predict


@register("MAPIE Venn-Abers", "MAPIE", note="one-vs-one")
def _(proba, labels):
    from mapie.calibration import VennAbersCalibrator

    model = VennAbersCalibrator(estimator=identity_classifier(proba.shape[1]), cv="prefit")
    return fitted(model, proba, labels)


@register("venn-abers", "venn-abers", note="one-vs-one; fits and predicts in one call, counted as predicting")
def _(proba, labels):
    from venn_abers import VennAbersCalibrator

    def predict(new):
        out = VennAbersCalibrator().predict_proba(p_cal=proba, y_cal=labels, p_test=new)
        return for_all_classes(np.asarray(out), np.unique(labels), proba.shape[1])

    return predict


# Others


@register("uncertainty-calibration", "uncertainty-calibration", note="scaling-binning; rows made to sum to 1")
def _(proba, labels):
    import calibration

    model = calibration.PlattBinnerMarginalCalibrator(len(labels), num_bins=10)
    model.train_calibration(proba, list(labels))
    return lambda new: np.asarray(model.calibrate(new))


@register("psrcal affine", "psrcal", note="temperature and bias vector; fits and predicts in one call")
def _(proba, labels):
    import torch
    from psrcal.calibration import AffineCalLogLoss, calibrate

    train, targets = torch.as_tensor(logs(proba)).float(), torch.as_tensor(labels).long()

    def predict(new):
        scores, _ = calibrate(train, targets, torch.as_tensor(logs(new)).float(), AffineCalLogLoss, bias=True)
        return torch.softmax(scores, dim=1).detach().numpy()

    return predict


@register("caliber Dirichlet", "caliber")
def _(proba, labels):
    from caliber.multiclass_classification.minimizing.linear_scaling.calibration import dirichlet

    model = dirichlet.DirichletMulticlassClassificationModel()
    proba, labels = np.maximum(proba, SMALLEST), np.asarray(labels)
    model.fit(proba, labels)
    return lambda new: np.asarray(model.predict_proba(np.maximum(new, SMALLEST)))


# torch-uncertainty


def _torch_uncertainty(name):
    def fit(proba, labels):
        import torch

        _declare_vision_operators(torch)
        from torch.utils.data import DataLoader, TensorDataset
        from torch_uncertainty import post_processing

        model = getattr(post_processing, name)(
            model=torch.nn.Identity(), device="cpu", num_classes=proba.shape[1]
        )
        data = TensorDataset(torch.as_tensor(logs(proba)).float(), torch.as_tensor(labels).long())
        model.fit(DataLoader(data, batch_size=512), progress=False)

        def predict(new):
            out = model(torch.as_tensor(logs(new)).float()).detach()
            sums_to_one = bool((out >= 0).all()) and bool((out.sum(dim=1) - 1).abs().max() < 1e-3)
            return (out if sums_to_one else torch.softmax(out, dim=1)).numpy()

        return predict

    return fit


def _declare_vision_operators(torch):
    """Declare two operators of torchvision, whose usual build does not load next to torch without a GPU."""
    for name in ("nms", "qnms"):
        try:
            torch.library.define(
                f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        except RuntimeError:
            continue


for _title in ("Vector", "Matrix", "Dirichlet"):
    register(f"torch-uncertainty {_title.lower()}", "torch-uncertainty", "torch-uncertainty")(
        _torch_uncertainty(f"{_title}Scaler")
    )


# dirichletcal


@register("dirichletcal ODIR", "dirichletcal", "dirichlet", note="both penalties 0.01")
def _(proba, labels):
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    return fitted(FullDirichletCalibrator(reg_lambda=1e-2, reg_mu=1e-2), proba, labels)
