"""Golden results: numbers that every public computation gives on small data, to be compared after the code moves.

Only public names are used, so that modules may move. ``python -m tests.golden.cases`` writes the present numbers.
"""

import hashlib
import json
import math
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from tests.reference_lists import ragged, truncated

import polycal as pc

FILE = Path(__file__).with_name("numbers.json")
# Longer arrays are written down as their size, their sum and one sum with unequal weights.
LONGEST = 6


class Rows(NamedTuple):
    """Predictions with labels, and weights if there are any."""

    labels: np.ndarray
    proba: np.ndarray
    weight: np.ndarray | None = None
    names: tuple[str, ...] | None = None

    @property
    def data(self):
        return self.labels, self.proba

    @property
    def options(self):
        return {"sample_weight": self.weight, "class_names": self.names}

    def part(self, rows):
        return Rows(
            self.labels[rows],
            self.proba[rows],
            None if self.weight is None else self.weight[rows],
            self.names,
        )


def flat(value, name=""):
    """Numbers and words of nested results, each under its path."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, np.ndarray) and value.size > LONGEST:
        items = _digest(value.astype(np.float64).ravel()).items()
    elif isinstance(value, list | tuple | np.ndarray):
        items = enumerate(value)
    else:
        return {name: _plain(value)}
    return {
        path: number
        for key, part in items
        for path, number in flat(part, f"{name}/{key}" if name else str(key)).items()
    }


def _digest(values):
    unequal = np.cos(np.arange(values.size))
    return {"size": values.size, "sum": values.sum(), "unequal": unequal @ values}


def _plain(value):
    if value is None or isinstance(value, str | bool):
        return value
    number = value.item() if isinstance(value, np.generic) else value
    # JSON has no word for them.
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def fields(result, *names):
    return {name: getattr(result, name) for name in names}


def _rows(made):
    return Rows(made.labels, made.proba, None, made.class_names)


def _fashion(part, n_rows):
    sample = pc.datasets.load_fashion(part)
    proba = sample.proba[:n_rows].astype(np.float64)
    return Rows(sample.labels[:n_rows], proba / proba.sum(axis=1, keepdims=True), None, sample.class_names)


@cache
def samples():
    """2, 4, 10 and 26 classes, without weights and with some (a part of them 0).

    The first two have ties, and one is in single precision, as shipped.
    """
    plain = {
        "two": _rows(pc.datasets.make_temperature(300, 2, n_distinct=40)),
        "four": _rows(pc.datasets.make_cat_and_dog(400)),
        "ten": _fashion("evaluation", 300),
        "many": _rows(pc.datasets.make_shifted_subset(300, 26)),
    }
    weighted = {f"{name} weighted": _weighted(rows) for name, rows in plain.items()}
    single = pc.datasets.load_fashion("evaluation").take(slice(300, 500))
    return plain | weighted | {"ten single": Rows(single.labels, single.proba, None, single.class_names)}


def _weighted(rows):
    rng = np.random.default_rng(7)
    return rows._replace(weight=rng.choice([0.0, 0.5, 1.0, 2.5], rows.labels.size))


@cache
def other_samples():
    """Rows of the same distributions, to fit on."""
    plain = {
        "two": _rows(pc.datasets.make_temperature(400, 2, n_distinct=40, random_state=1)),
        "four": _rows(pc.datasets.make_cat_and_dog(600, random_state=1)),
        "ten": _fashion("calibration", 500),
        "many": _rows(pc.datasets.make_shifted_subset(500, 26, random_state=1)),
    }
    return plain | {"ten weighted": _weighted(plain["ten"]), "many weighted": _weighted(plain["many"])}


def fresh_proba(n_classes, n_rows=4):
    """Predictions that belong to no sample."""
    return np.random.default_rng(n_classes).dirichlet(np.full(n_classes, 0.6), n_rows)


# --- measures -------------------------------------------------------------------------------------------------------


def datasets():
    """What the generators make, and the shipped example."""
    support, conditionals = [[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]], [[0.5, 0.5], [0.7, 0.3], [1.0, 0.0]]
    made = {
        "calibrated": pc.datasets.make_calibrated(50, 5, concentration=0.5, random_state=3),
        "cat and dog": pc.datasets.make_cat_and_dog(50, n_classes=6, error=0.1, random_state=3),
        "finite": pc.datasets.make_finite(support, conditionals, [1, 2, 1], 50, random_state=3),
        "shifted subset": pc.datasets.make_shifted_subset(50, 7, subset_size=2, error=0.2, random_state=3),
        "temperature": pc.datasets.make_temperature(50, 4, temperature=2.0, n_distinct=9, random_state=3),
    }
    fashion = pc.datasets.load_fashion()
    return {name: _generated(result) for name, result in made.items()} | {
        "fashion": {"labels": fashion.labels, "proba": fashion.proba},
        "groups": pc.datasets.load_fashion_groups(),
    }


def _generated(made):
    return {
        "labels": made.labels,
        "proba": made.proba,
        "truth": made.truth,
        "subset": made.subset,
        "population": list(made.population()),
    }


def scores():
    return {
        name: {
            "accuracy": pc.accuracy(*rows.data, **rows.options),
            "brier": pc.brier_score(*rows.data, **rows.options),
            "log loss": pc.log_loss(*rows.data, **rows.options),
            "log loss eps": pc.log_loss(*rows.data, eps=1e-3, **rows.options),
            "from logits": pc.log_loss(
                rows.labels, np.log(rows.proba + 1e-9), from_logits=True, **rows.options
            ),
        }
        for name, rows in samples().items()
    }


def smooth():
    found = {}
    for name, rows in samples().items():
        for subset in (None, [0], [0, 1]):
            curve = pc.smooth_calibration_curve(*rows.data, subset=subset, **rows.options)
            found[f"{name}/{subset}"] = {
                "error": pc.smooth_calibration_error(*rows.data, subset=subset, **rows.options),
                **fields(curve, "value", "predicted", "cumulative", "monotone", "mean_residual", "question"),
                "phi": curve.phi(np.linspace(0, 1, 5)),
            }
    return found


def reliability():
    found = {}
    for name, rows in samples().items():
        for strategy in ("uniform", "quantile"):
            for subset in (None, [0, 1]):
                curve = pc.reliability_curve(
                    *rows.data, subset=subset, n_bins=6, strategy=strategy, **rows.options
                )
                found[f"{name}/{strategy}/{subset}"] = {
                    **fields(curve, "predicted", "frequency", "mass", "count", "edges", "question"),
                    **{norm: curve.error(norm) for norm in ("l1", "l2", "max")},
                    "interval": np.concatenate(curve.interval()),
                }
    return found


PLAIN_NOTIONS = [
    pc.Confidence(),
    pc.Confidence(smooth=True),
    pc.Confidence(7, strategy="quantile", norm="l2"),
    pc.TopLabel(),
    pc.TopLabel(smooth=True),
    pc.TopLabel(norm="max"),
    pc.Classwise(),
    pc.Classwise(smooth=True, reduce="mean"),
    pc.Classwise(smooth=True),
    pc.Classwise(5, strategy="quantile", norm="l2", reduce="sum"),
    pc.Canonical(min_repeats=1),
    pc.LowDegree(1),
    pc.LowDegree(2),
    pc.LowDegree(2, bound="upper"),
]
SEARCHED_NOTIONS = [
    pc.SubsetSmooth(),
    pc.SubsetSmooth(max_size=2),
    pc.ProjectedSmooth(),
    pc.ProjectedSmooth(m=2.0),
    pc.Sigmoid(),
    pc.Sigmoid(2),
    pc.Halfspace(),
    pc.Decision(),
    pc.Decision(3),
    pc.FullSmooth(n_floor_draws=0),
]


def notions():
    return _estimates(PLAIN_NOTIONS, samples())


def searched_notions():
    return _estimates(SEARCHED_NOTIONS, samples())


def _estimates(chosen, data):
    found = {}
    for name, rows in data.items():
        for notion in chosen:
            estimate = pc.estimate_error(*rows.data, notion, **rows.options)
            found[f"{name}/{notion!r}"] = fields(estimate, "value", "kind", "n_samples")
    for notion in chosen:
        rows = data["many weighted"]
        found[f"calibration_error/{notion!r}"] = pc.calibration_error(*rows.data, notion, **rows.options)
    return found


def distance():
    found = {}
    for name in ("two", "two weighted", "four", "four weighted"):
        rows = samples()[name].part(slice(0, 60))
        for resolution in (None, 2):
            result = pc.distance_to_calibration(*rows.data, resolution=resolution, **rows.options)
            found[f"{name}/{resolution}"] = {
                **fields(result, "lower", "upper", "resolution"),
                "cost": result.coupling.cost,
                "mass": result.coupling.mass.sum(),
            }
    return found


# --- witnesses and inference ----------------------------------------------------------------------------------------

AUDITORS = {
    "auto": pc.AutoAuditor(),
    "decision": pc.DecisionAuditor(),
    "decision 3": pc.DecisionAuditor(3, n_starts=2, random_state=1),
    "kernel": pc.KernelAuditor(),
    "kernel few rows": pc.KernelAuditor(max_samples=100),
    "kernel multinomial": pc.KernelAuditor(pc.Multinomial(3), amplify=False),
    "kernel laplace": pc.KernelAuditor(pc.Laplace("median")),
    "kernel for projected smooth": pc.KernelAuditor.for_projected_smooth(0.3),
    "kernel for sigmoid": pc.KernelAuditor.for_sigmoid(2.0, 0.3),
    "learner kernel": pc.LearnerAuditor(pc.KernelLearner()),
    "learner ridge": pc.LearnerAuditor(Ridge(1e-2), amplify=False, combine=False),
    "projection": pc.ProjectionAuditor(),
    "sigmoid": pc.SigmoidAuditor(),
    "subset": pc.SubsetAuditor(),
    "subset of 2": pc.SubsetAuditor(2, n_starts=1, random_state=1),
    # An upper bound has no witness.
    **{f"notion {n!r}": pc.NotionAuditor(n) for n in PLAIN_NOTIONS if n != pc.LowDegree(2, bound="upper")},
}


def auditors():
    found = {}
    for name, rows in other_samples().items():
        judged = samples()[name]
        for source, auditor in AUDITORS.items():
            witness = auditor.find_witness(*rows.data, **rows.options)
            certificate = pc.certify(witness, *judged.data, **judged.options)
            found[f"{name}/{source}"] = _certificate(certificate)
            # Where predictions repeat, several witnesses are as good as one another.
            if name in ("ten", "many weighted"):
                found[f"{name}/{source}/values"] = witness.evaluate(fresh_proba(rows.proba.shape[1]))
    rows, judged = other_samples()["ten"], samples()["ten"]
    for notion in SEARCHED_NOTIONS:
        witness = pc.estimate_error(*rows.data, notion, **rows.options).witness
        found[f"ten/witness of {notion!r}"] = {
            **_certificate(pc.certify(witness, *judged.data, **judged.options)),
            "values": witness.evaluate(fresh_proba(10)),
        }
    return found


def _certificate(certificate):
    return fields(certificate, "estimate", "lower_bound", "p_value", "std_error", "n_samples")


def learners():
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.ones(4), 80)
    targets = np.sign(points[:, 0] - 0.3)
    made = {
        "kernel": pc.KernelLearner(),
        "kernel gaussian": pc.KernelLearner(pc.Gaussian(0.5)),
        "from auditor": pc.LearnerFromAuditor(pc.KernelAuditor()),
    }
    return {name: learner.fit(points, targets).predict(fresh_proba(4)) for name, learner in made.items()}


def kernels():
    here, there = fresh_proba(5), fresh_proba(5, 7)[4:]
    made = [
        pc.Gaussian(0.3),
        pc.Gaussian("median"),
        pc.Laplace(0.5),
        pc.Laplace("median"),
        pc.Multinomial(4),
        pc.CallableKernel(lambda a, b: (1 + a @ b.T) / 2, 1.0),
    ]
    return {
        f"{i} {type(kernel).__name__}": {"block": resolved.block(here, there), "bound": resolved.bound}
        for i, kernel in enumerate(made)
        for resolved in [kernel.resolve(here)]
    }


def tests():
    found = {}
    for name in ("two", "four weighted", "ten", "many"):
        rows = samples()[name]
        for notion in (pc.Confidence(), pc.Classwise(smooth=True), pc.Canonical(min_repeats=1)):
            result = pc.calibration_test(*rows.data, notion, n_draws=19, **rows.options)
            found[f"calibration_test/{name}/{notion!r}"] = _test(result)
        for kernel in (None, pc.Laplace(0.5), pc.Multinomial(3)):
            result = pc.kernel_test(*rows.data, kernel=kernel, n_draws=19, **rows.options)
            found[f"kernel_test/{name}/{kernel!r}"] = _test(result)
            for unbiased in (True, False):
                found[f"kernel_calibration_error/{name}/{kernel!r}/{unbiased}"] = pc.kernel_calibration_error(
                    *rows.data, kernel=kernel, unbiased=unbiased, **rows.options
                )
    return found


def _test(result):
    return {
        **fields(result, "statistic", "p_value", "null_mean", "null_std", "excess", "is_significant"),
        "quantiles": result.null_quantiles,
        "draws": result.draws,
    }


def intervals():
    found = {}
    for name in ("two", "four weighted", "ten", "many"):
        rows = samples()[name]
        for notion in (pc.Confidence(), pc.Classwise(smooth=True)):
            result = pc.bootstrap_interval(*rows.data, notion, n_draws=20, **rows.options)
            found[f"bootstrap/{name}/{notion!r}"] = fields(
                result, "estimate", "low", "high", "level", "bias", "std_error", "noise_floor"
            )
    rng = np.random.default_rng(5)
    for name, values in {"uniform": rng.uniform(-1, 1, 200), "few": rng.choice([0.0, 0.5, 1.0], 150)}.items():
        for weight in (None, rng.choice([0.0, 1.0, 3.0], values.size)):
            path = f"mean/{name}/{'plain' if weight is None else 'weighted'}"
            scale = {"low": -1.0, "high": 1.0, "weight": weight}
            found[path] = {
                "interval": pc.mean_interval(values, **scale),
                "lower": pc.mean_lower_bound(values, alpha=0.1, random_state=2, **scale),
                "p": pc.mean_p_value(values, **scale),
                "p of 0.4": pc.mean_p_value(values, null=0.4, **scale),
            }
    return found


# --- states and files -----------------------------------------------------------------------------------------------


def states():
    found = {}
    for name, rows in samples().items():
        for source, make in _state_makers(rows).items():
            found[f"{name}/{source}"] = _finished(_in_chunks(make, rows))
    return found


def _state_makers(rows):
    n_classes = rows.proba.shape[1]
    landmarks = fresh_proba(n_classes, 12)
    phi = pc.LipschitzFunction(np.array([0.0, 0.4, 1.0]), np.array([0.3, -0.1, 0.5]))
    witness = pc.SubsetWitness(np.array([0]), phi, n_classes)
    return {
        "scores": pc.ScoreState,
        "binned": lambda: pc.BinnedState(7),
        "confidence": pc.QuestionState,
        "question": lambda: pc.QuestionState([0]),
        "question in cells": lambda: pc.QuestionState([0], resolution=0.03),
        "classes": lambda: pc.ClassesState(resolution=0.01),
        "certificate": lambda: pc.CertificateState(witness),
        "certificate mixture": lambda: pc.CertificateState(witness, alpha=0.1, most_played=10),
        "sketch": lambda: pc.SketchState(20, random_state=3),
        "kernel": lambda: pc.KernelState(landmarks, n_held_back=30),
        "kernel multinomial": lambda: pc.KernelState(landmarks, pc.Multinomial(3), n_held_back=0),
    }


def _in_chunks(make, rows):
    """Two states with two chunks each, the first saved and loaded, merged."""
    starts, (first, second) = [0, 70, 150, 201], (make(), make())
    for state, start, stop in zip(
        (first, first, second, second), starts, [*starts[1:], rows.labels.size], strict=True
    ):
        part = rows.part(slice(start, stop))
        state.update(*part.data, part.weight, class_names=part.names, first_row=start)
    with tempfile.TemporaryDirectory() as folder:
        first.save(Path(folder, "first.polycal"))
        first = pc.load(Path(folder, "first.polycal"))
    return second.merge(first)


def _finished(state):
    result = state.finish()
    seen = fields(state, "n_samples", "total_weight")
    match result:
        case pc.BinnedErrors():
            return seen | {
                norm: np.array([result.confidence_error(norm), *result.class_errors(norm)])
                for norm in ("l1", "l2", "max")
            }
        case pc.QuestionSummary():
            return seen | _summary(result)
        case pc.Certificate():
            return seen | _certificate(result)
        case pc.Sample():
            return seen | fields(result, "labels", "proba", "mass")
        case pc.Witness():
            values = result.evaluate(fresh_proba(state.n_classes))
            return seen | {"values": values, "amplification": result.amplification}
        case tuple():
            return seen | {"classes": np.array([list(_summary(summary).values()) for summary in result])}
    return seen | result


def _summary(result):
    return fields(result, "value", "bound", "predicted", "frequency", "chance")


def lists():
    found = {}
    for name in ("four", "ten", "ten weighted", "many weighted"):
        rows, fit = samples()[name], other_samples()[name]
        top, top_fit = truncated(rows.proba, 3), truncated(fit.proba, 3)
        uneven = ragged(rows.proba, np.random.default_rng(1))
        for remainder in ("unknown", "spread", "anywhere", "class"):
            options = {"remainder": remainder, "sample_weight": rows.weight}
            for source, given in {"top": top, "ragged": uneven}.items():
                interval = pc.sparse.smooth_calibration_error(rows.labels, given, subset=[0, 2], **options)
                found[f"{name}/smooth/{source}/{remainder}"] = _interval(interval)
            witness = pc.sparse.find_subset(
                fit.labels, top_fit, remainder=remainder, sample_weight=fit.weight
            )
            certificate = pc.sparse.certify(witness, rows.labels, top, **options)
            found[f"{name}/subset/{remainder}"] = {
                "members": witness.members.tolist(),
                **_certificate(certificate),
            }
        sample = pc.sparse.sparse_sample(rows.labels, uneven, sample_weight=rows.weight)
        found[f"{name}/sample"] = {
            **fields(sample, "n_samples", "n_classes", "n_listed", "rest", "values"),
            "range": sample.subset_range(np.array([0, 2])),
        }
        found[f"{name}/states"] = _list_states(rows, fit, top, top_fit)
    return found


def _interval(interval):
    return fields(interval, "low", "high", "value", "unknown")


def _list_states(rows, fit, top, top_fit):
    question, kernel = _merged_lists(rows, top, top_fit)
    witness = kernel.finish().amplified(rows.labels, top, sample_weight=rows.weight)
    return {
        "question": _interval(question.finish()),
        "amplification": witness.amplification,
        "kernel": witness.evaluate(fresh_proba(rows.proba.shape[1])),
        "certificate": _certificate(
            pc.sparse.certify(witness, fit.labels, top_fit, sample_weight=fit.weight)
        ),
    }


def _merged_lists(rows, top, landmarks):
    made = []
    for make in (
        lambda: pc.TruncatedQuestionState([0, 2], resolution=2.0**-12),
        lambda: pc.TruncatedKernelState(landmarks[:20]),
    ):
        first, second = make(), make()
        for state, part in ((first, slice(0, 90)), (first, slice(90, 170)), (second, slice(170, None))):
            state.update(rows.labels[part], top[part], None if rows.weight is None else rows.weight[part])
        made.append(second.merge(first))
    return made


def files():
    """What is written and read back, whole and in chunks."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("two", "ten weighted", "many"):
            rows = samples()[name]
            for ending in ("npz", "csv", "parquet", "feather"):
                path = Path(folder, f"{name}.{ending}")
                pc.write_predictions(path, *rows.data, **rows.options)
                sample = pc.read_predictions(path)
                chunks = list(pc.open_predictions(path))
                found[f"{name}/{ending}"] = {
                    **fields(sample, "labels", "proba", "mass"),
                    "in chunks": np.concatenate([chunk.sample.proba for chunk in chunks]),
                }
            sample = pc.sparse.sparse_sample(
                rows.labels,
                ragged(rows.proba, np.random.default_rng(1)),
                sample_weight=rows.weight,
                class_names=rows.names,
            )
            path = Path(folder, f"{name}.lists.parquet")
            pc.write_lists(path, sample)
            read = pc.read_lists(path)
            found[f"{name}/lists"] = {
                **fields(read, "labels", "indptr", "indices", "values", "mass"),
                "in chunks": np.concatenate([chunk.sample.values for chunk in pc.open_lists(path)]),
            }
    return found


# --- audits ---------------------------------------------------------------------------------------------------------

GROUPS = {"first": [0, 1], "last": [2]}


@cache
def _audits():
    """Audits in memory, by name."""
    plain = _fashion("evaluation", 1000)
    made = {"ten": plain, "ten weighted": _weighted(plain), "four": other_samples()["four"]}
    audits = {
        name: pc.audit(*rows.data, groups=GROUPS if rows.proba.shape[1] > 2 else None, **rows.options)
        for name, rows in made.items()
    }
    calibrator = pc.TemperatureScaling(prior=None).fit(
        other_samples()["ten"].proba, other_samples()["ten"].labels
    )
    audits["ten calibrated"] = pc.audit(
        *plain.data,
        notions=[pc.Confidence(smooth=True), pc.LowDegree(1)],
        auditors={"sigmoid": pc.SigmoidAuditor(2.0)},
        calibrator=calibrator,
        **plain.options,
    )
    return audits


def audits():
    """What an audit measures on all rows; where its rows part does not matter."""
    found = {}
    for name, audit in _audits().items():
        found[name] = _measured(audit)
        if audit.after is not None:
            found[f"{name}/after"] = _measured(audit.after)
    return found


def _measured(audit):
    questions = ("predicted", "frequency", "smooth_error", "chance", "noise_floor")
    return {
        "scores": audit.scores,
        "errors": {
            repr(error.estimate.notion): fields(error.estimate, "value", "kind")
            | fields(error, "noise_floor")
            for error in audit.errors
        },
        "classes": {question.name: fields(question, *questions) for question in audit.classes},
        "groups": {question.name: fields(question, *questions) for question in audit.groups},
    }


def split():
    """What depends on how an audit parts its rows: its findings and tests, and all of a streamed audit."""
    found = {}
    for name, audit in _audits().items():
        found[f"memory/{name}"] = _proven(audit)
        if audit.after is not None:
            found[f"memory/{name}/after"] = _proven(audit.after)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("four", "ten weighted"):
            rows = other_samples()[name]
            for place, part in enumerate((slice(0, 230), slice(230, None))):
                path = Path(folder, name, f"{place}.parquet")
                path.parent.mkdir(exist_ok=True)
                piece = rows.part(part)
                pc.write_predictions(path, *piece.data, **piece.options)
            audit = pc.audit_stream(Path(folder, name), groups=GROUPS)
            found[f"stream/{name}"] = _measured(audit) | _proven(audit)
    return found


def _proven(audit):
    return {
        **fields(audit, "n_fit", "n_judge"),
        "worst": None if audit.worst is None else audit.worst.source,
        "findings": {
            finding.source: {
                **_certificate(finding.certificate),
                **fields(finding, "adjusted_p_value", "significant", "question", "detectable"),
                "reading": fields(finding.reading, "low", "high", "predicted", "observed", "share"),
            }
            for finding in audit.findings
        },
        "groups p": {q.name: fields(q, "p_value", "smallest_p_value") for q in audit.groups},
    }


# --- calibrators ----------------------------------------------------------------------------------------------------

CALIBRATORS = {
    "beta": pc.BetaCalibrator(),
    "dirichlet": pc.DirichletCalibrator(),
    "dirichlet fixed": pc.DirichletCalibrator(off_diagonal=0.1, intercept=0.1),
    "ensemble": pc.EnsembleTemperatureScaling(),
    "histogram": pc.HistogramCalibrator(),
    "histogram quantile": pc.HistogramCalibrator(n_bins=5, strategy="quantile"),
    "identity": pc.IdentityCalibrator(),
    "isotonic": pc.IsotonicCalibrator(),
    "kernel": pc.KernelCalibrator(),
    "kernel 3 folds": pc.KernelCalibrator(n_folds=3, random_state=1),
    "matrix": pc.MatrixScaling(),
    "matrix fixed": pc.MatrixScaling(off_diagonal=0.1, diagonal=0.1),
    "sklearn sigmoid": pc.SklearnCalibrator(),
    "sklearn logistic": pc.SklearnCalibrator(LogisticRegression(C=0.1, tol=1e-8, solver="newton-cg")),
    "temperature": pc.TemperatureScaling(),
    "vector": pc.VectorScaling(),
}
AUDITED = {
    "default": pc.AuditedCalibrator(max_rounds=4),
    "additive": pc.AuditedCalibrator(update="additive", start=pc.IdentityCalibrator(), max_rounds=4),
    "subset": pc.AuditedCalibrator(
        pc.SubsetAuditor(), start=pc.TemperatureScaling(), max_rounds=3, holdout=0.4
    ),
}


def calibrators():
    return _predictions(CALIBRATORS, other_samples()) | _from_logits() | {"classifier": _classifier()}


def _predictions(chosen, data):
    found = {}
    for name, rows in data.items():
        for source, calibrator in chosen.items():
            fitted = calibrator.fit(rows.proba, rows.labels, sample_weight=rows.weight)
            found[f"{name}/{source}"] = fitted.predict_proba(fresh_proba(rows.proba.shape[1]))
            if isinstance(calibrator, pc.AuditedCalibrator):
                found[f"{name}/{source}/rounds"] = len(fitted.rounds_)
    return found


def _from_logits():
    rows = other_samples()["ten"]
    logits = 1.5 * np.log(rows.proba + 1e-6)
    fresh = 1.5 * np.log(fresh_proba(10) + 1e-6)
    return {
        f"logits/{calibrator!r}": calibrator.fit(logits, rows.labels).predict_proba(fresh)
        for calibrator in (pc.TemperatureScaling(from_logits=True), pc.KernelCalibrator(from_logits=True))
    }


def _classifier():
    rng = np.random.default_rng(2)
    points, labels = rng.normal(size=(150, 3)), rng.integers(0, 3, 150)
    points[:, 0] += labels
    estimator = LogisticRegression(tol=1e-8, solver="newton-cg")
    return {
        name: pc.CalibratedClassifier(estimator, calibrator, cv=3)
        .fit(points, labels)
        .predict_proba(points[:4])
        for name, calibrator in {"default": None, "vector": pc.VectorScaling()}.items()
    }


def audited_calibrators():
    return _predictions(AUDITED, {name: other_samples()[name] for name in ("four", "ten weighted", "many")})


def comparison():
    fit, rows = other_samples()["ten"], samples()["ten"]
    chosen = {name: CALIBRATORS[name] for name in ("identity", "temperature", "vector", "isotonic")}
    result = pc.compare_calibrators(
        *fit.data, *rows.data, calibrators=chosen, class_names=rows.names, progress=False
    )
    scores_of = ("brier_score", "log_loss", "accuracy", "confidence_error", "classwise_error", "question")
    return {
        "order": [method.name for method in result.methods],
        **{
            method.name: fields(method, *scores_of, "log_loss_gap", "log_loss_gap_error")
            | {"worst subset": _certificate(method.worst_subset)}
            for method in result.methods
        },
    }


# --- hardness -------------------------------------------------------------------------------------------------------


def requirements():
    asked = [
        pc.LowDegree(2),
        pc.Sigmoid(2),
        pc.ProjectedSmooth(),
        pc.SubsetSmooth(),
        pc.Classwise(smooth=True),
    ]
    found = {}
    for alpha in (0.05, 0.3):
        for notion in [*asked, pc.FullSmooth()]:
            for n_classes in (4, 26):
                needed = pc.required_samples(notion, alpha, n_classes)
                # Beyond 2**53 the number is one of floating point all the same.
                found[f"samples/{notion!r}/{alpha}/{n_classes}"] = {
                    "log n": math.log(needed.n_samples),
                    **fields(needed, "kind", "degree", "correlation"),
                }
        for notion in asked:
            found[f"degree/{notion!r}/{alpha}"] = pc.required_degree(notion, alpha)
    return found


def hardness():
    hard = pc.hardness
    packing = hard.pack_simplex(4, 0.5, max_points=30, patience=100)
    planted = hard.make_planted_xor(5, 2, 12, noise=0.1)
    lift = hard.lift_clauses(planted, 2)
    sigmoid = hard.xor_sigmoid(lift, planted.assignment, 2)
    spread = hard.clause_spread(hard.make_random_xor(5, 2, 12), n_roundings=10)
    made = {
        "hidden halfspace": hard.make_hidden_halfspace(40, 5, n_points=32),
        "hidden subset": hard.make_hidden_subset(40, 4),
        "hidden xor": hard.make_hidden_xor(40, 4, 2),
        "fixed labels": hard.make_fixed_labels(packing, 40),
        "fresh labels": hard.make_fresh_labels(packing, 40),
    }
    return {name: _generated(result) for name, result in made.items()} | {
        "largest hidden error": [hard.largest_hidden_error(k) for k in (4, 6)],
        "packing": fields(packing, "points", "separation"),
        "repeat": hard.repeat_probability(packing, 10),
        "planted": {
            **fields(planted, "literals", "signs", "assignment"),
            "sums": planted.sums(planted.assignment),
        },
        "lift": {"points": lift.points, "monomials": [list(m) for m in lift.monomials]},
        "sigmoid": {**fields(sigmoid, "direction", "slope", "radius"), "values": sigmoid(lift.points)},
        "spread": fields(spread, "relaxed", "reached", "t"),
    }


CASES = {
    function.__name__: function
    for function in (
        datasets,
        scores,
        smooth,
        reliability,
        notions,
        searched_notions,
        distance,
        auditors,
        learners,
        kernels,
        tests,
        intervals,
        states,
        lists,
        files,
        audits,
        split,
        calibrators,
        audited_calibrators,
        comparison,
        requirements,
        hardness,
    )
}


def compute(area) -> dict[str, Any]:
    """The numbers of one area, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pc.CalibrationWarning)
        return flat(CASES[area]())


def rounding():
    """What tells how sums and products are rounded here: another processor adds in another order."""
    rng, digest = np.random.default_rng(0), hashlib.sha256()
    for dtype in (np.float32, np.float64):
        wide, tall = rng.normal(size=(61, 300)).astype(dtype), rng.normal(size=(300, 47)).astype(dtype)
        for result in (wide @ tall, wide @ tall[:, 0], np.exp(wide), np.log(np.abs(tall)), wide.sum(axis=1)):
            digest.update(np.ascontiguousarray(result).tobytes())
    return digest.hexdigest()[:16]


def main():
    """Write down what the present code computes."""
    numbers = {"rounding": rounding()}
    for area in CASES:
        start = time.perf_counter()
        numbers[area] = compute(area)
        print(f"{area}: {len(numbers[area])} numbers, {time.perf_counter() - start:.1f} s")  # noqa: T201
    FILE.write_text(json.dumps(numbers, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
