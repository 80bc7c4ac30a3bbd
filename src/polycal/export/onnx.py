"""Steps as an ONNX graph."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Path as AnyPath
from polycal._validation import check_choice
from polycal._version import __version__
from polycal.sample import GRID, drift_allowed
from polycal.steps import (
    FLOOR,
    LOWEST,
    Affine,
    Boosted,
    Clip,
    Distances,
    Exp,
    InBlocks,
    Interpolate,
    LargestOf,
    Linear,
    Log,
    Lookup,
    Normalise,
    Others,
    Polynomial,
    Product,
    Program,
    Project,
    Sigmoid,
    Softmax,
    Step,
    Sum,
    Top,
)
from polycal.storage.atomic import replacing

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise ImportError("to_onnx needs the onnx library: pip install 'polycal[onnx]'.") from error

# Old enough for the runtimes in use, new enough for every operator below.
_OPSET, _IR_VERSION = 18, 9
_DTYPES = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}


def write_onnx(
    path: AnyPath,
    steps: Program,
    n_classes: int,
    dtype: str,
    *,
    gated: bool = False,
    n_features: int = 0,
    notes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a model with input ``proba`` and output ``calibrated``, both ``(batch, n_classes)``.

    A gated model takes probabilities, and renormalises those that the gate does. With features there is a second input,
    ``features``, of float64 whatever the dtype: thresholds tell values apart that float32 does not.
    """
    outside = _DTYPES[check_choice(dtype, "dtype", list(_DTYPES))]
    graph = _Graph()
    inside = graph.add("Cast", "proba", to=TensorProto.DOUBLE)
    inside = _gate(graph, inside, n_classes, dtype) if gated else inside
    shape: list[str | int | None] = ["batch", n_classes]
    inputs = [helper.make_tensor_value_info("proba", outside, shape)]
    if n_features:
        inputs.append(helper.make_tensor_value_info("features", TensorProto.DOUBLE, ["batch", n_features]))
        inside = graph.add("Concat", inside, "features", axis=1)
    graph.nodes.append(helper.make_node("Cast", [graph.apply(steps, inside)], ["calibrated"], to=outside))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "calibrator",
            inputs,
            [helper.make_tensor_value_info("calibrated", outside, shape)],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="polycal",
        producer_version=__version__,
    )
    helper.set_model_props(model, dict(notes))
    onnx.checker.check_model(model, full_check=True)
    with replacing(Path(path)) as file:
        file.write(model.SerializeToString())


class _Graph:
    """Nodes and constants, under names made on the way, which all start alike."""

    def __init__(self, start: str = "") -> None:
        self.start = start
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Append a node; inputs that are not names become constants. Returns the output's name."""
        names = [value if isinstance(value, str) else self.constant(np.asarray(value)) for value in inputs]
        output = f"{self.start}{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def constant(self, value: NDArray[Any]) -> str:
        """Store an array."""
        name = f"{self.start}constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def apply(self, steps: Program, rows: str) -> str:
        """Append the steps, starting from the tensor ``rows``."""
        for step in steps:
            if type(step) not in _WRITERS:
                raise TypeError(f"a {step.title} cannot be written as ONNX.")
            rows = _WRITERS[type(step)](self, step, rows)
        return rows


def _gate(graph: _Graph, rows: str, n_classes: int, dtype: str) -> str:
    """What the gate makes of probabilities: rows whose sum is off by more than rounding are renormalised.

    Sums are taken in two parts, without rounding, as `polycal.sample.exact_row_sums` does: steep maps tell rows apart
    that differ in their last digit.
    """
    positive = graph.add("Max", rows, 0.0)
    coarse = graph.add("Div", graph.add("Round", graph.add("Mul", positive, GRID)), GRID)
    parts = [
        graph.add("ReduceSum", part, [1], keepdims=1) for part in (coarse, graph.add("Sub", positive, coarse))
    ]
    total = graph.add("Add", *parts)
    drift = graph.add("Abs", graph.add("Sub", total, 1.0))
    is_negative = graph.add("Less", graph.add("ReduceMin", rows, [1], keepdims=1), 0.0)
    off = graph.add("Or", graph.add("Greater", drift, drift_allowed(dtype, n_classes)), is_negative)
    divided = graph.add("Cast", graph.add("Div", positive, total), to=_DTYPES[dtype])
    return graph.add("Where", off, graph.add("Cast", divided, to=TensorProto.DOUBLE), rows)


def _others(graph: _Graph, _: Others, rows: str) -> str:
    before, after = (graph.add("CumSum", rows, 1, exclusive=1, reverse=reverse) for reverse in (0, 1))
    return graph.add("Add", before, after)


def _log(graph: _Graph, step: Log, rows: str) -> str:
    return graph.add("Log", graph.add("Max", rows, step.floor))


def _affine(graph: _Graph, step: Affine, rows: str) -> str:
    return graph.add("Add", graph.add("Mul", rows, step.scale), step.shift)


def _linear(graph: _Graph, step: Linear, rows: str) -> str:
    return graph.add("Add", graph.add("MatMul", rows, step.weight), step.bias)


def _sum(graph: _Graph, step: Sum, rows: str) -> str:
    return _fold(graph, "Add", step.branches, rows)


def _product(graph: _Graph, step: Product, rows: str) -> str:
    return _fold(graph, "Mul", step.branches, rows)


def _fold(graph: _Graph, operator: str, branches: tuple[Program, ...], rows: str) -> str:
    total, *others = [graph.apply(branch, rows) for branch in branches]
    for other in others:
        total = graph.add(operator, total, other)
    return total


def _in_blocks(graph: _Graph, step: InBlocks, rows: str) -> str:
    return graph.apply(step.branches[0], rows)


def _exp(graph: _Graph, _: Exp, rows: str) -> str:
    return graph.add("Exp", rows)


def _clip(graph: _Graph, step: Clip, rows: str) -> str:
    return graph.add("Clip", rows, step.low, step.high)


def _polynomial(graph: _Graph, step: Polynomial, rows: str) -> str:
    *lower, highest = step.coefficients
    total = graph.add("Add", graph.add("Mul", rows, 0.0), highest)
    for coefficient in reversed(lower):
        total = graph.add("Add", graph.add("Mul", total, rows), coefficient)
    return total


def _softmax(graph: _Graph, _: Softmax, rows: str) -> str:
    return graph.add("Softmax", rows, axis=1)


def _sigmoid(graph: _Graph, _: Sigmoid, rows: str) -> str:
    return graph.add("Sigmoid", rows)


def _normalise(graph: _Graph, step: Normalise, rows: str) -> str:
    total = graph.add("ReduceSum", rows, [1], keepdims=1)
    empty = graph.add("LessOrEqual", total, 0.0)
    scaled = graph.add("Div", rows, graph.add("Where", empty, 1.0, total))
    return graph.add("Where", empty, step.fallback, scaled)


def _interpolate(graph: _Graph, step: Interpolate, rows: str) -> str:
    knots, heights, last = graph.constant(step.knots), graph.constant(step.heights), step.starts[1:] - 1
    left = _search(graph, knots, step.starts, rows, "LessOrEqual")
    right = graph.add("Min", graph.add("Add", left, [1]), last)
    left_knot, left_height = graph.add("Gather", knots, left), graph.add("Gather", heights, left)
    width = graph.add("Sub", graph.add("Gather", knots, right), left_knot)
    # A column's last knot is its own right neighbour.
    width = graph.add("Where", graph.add("Equal", left, right), 1.0, width)
    part = graph.add("Clip", graph.add("Div", graph.add("Sub", rows, left_knot), width), 0.0, 1.0)
    rise = graph.add("Sub", graph.add("Gather", heights, right), left_height)
    return graph.add("Add", left_height, graph.add("Mul", part, rise))


def _lookup(graph: _Graph, step: Lookup, rows: str) -> str:
    found = _search(graph, graph.constant(step.knots), step.starts, rows, "Less")
    return graph.add("Gather", graph.constant(step.heights), found)


def _search(graph: _Graph, knots: str, starts: NDArray[np.int64], rows: str, below: str) -> str:
    """The last knot of the column that is below each value, else the first: a binary search on all at once."""
    last = graph.constant(starts[1:] - 1)
    found = graph.constant(starts[None, :-1])
    for power in range(math.ceil(math.log2(np.diff(starts).max())) - 1, -1, -1):
        further = graph.add("Min", graph.add("Add", found, [1 << power]), last)
        is_below = graph.add(below, graph.add("Gather", knots, further), rows)
        found = graph.add("Where", is_below, further, found)
    return found


def _top(graph: _Graph, _: Top, rows: str) -> str:
    width = graph.add("Squeeze", _width(graph, rows))
    places = graph.add("Range", np.int64(0), width, np.int64(1))
    is_top = graph.add("Equal", graph.add("ArgMax", rows, axis=1), places)
    return graph.add("Cast", is_top, to=TensorProto.DOUBLE)


def _distances(graph: _Graph, step: Distances, rows: str) -> str:
    steps_away = graph.add("Sub", graph.add("Unsqueeze", rows, [1]), step.points)
    return graph.add("ReduceSum", graph.add("Abs", steps_away), [2], keepdims=0)


def _largest_of(graph: _Graph, step: LargestOf, rows: str) -> str:
    runs = zip(step.starts[:-1], step.starts[1:], strict=True)
    parts = [graph.add("Slice", rows, [start], [stop], [1]) for start, stop in runs]
    return graph.add("Concat", *[graph.add("ReduceMax", part, [1]) for part in parts], axis=1)


def _width(graph: _Graph, rows: str) -> str:
    """The number of columns."""
    return graph.add("Slice", graph.add("Shape", rows), [1], [2])


def _project(graph: _Graph, _: Project, rows: str) -> str:
    width = _width(graph, rows)
    ordered = f"sorted_{len(graph.nodes)}"
    graph.nodes.append(helper.make_node("TopK", [rows, width], [ordered, f"{ordered}_index"], axis=1))
    excess = graph.add("Sub", graph.add("CumSum", ordered, 1), 1.0)
    ones = graph.add("Add", graph.add("Mul", ordered, 0.0), 1.0)
    positive = graph.add("Greater", graph.add("Mul", ordered, graph.add("CumSum", ones, 1)), excess)
    kept = graph.add("ReduceSum", graph.add("Cast", positive, to=TensorProto.DOUBLE), [1], keepdims=1)
    at = graph.add("Cast", graph.add("Sub", kept, 1.0), to=TensorProto.INT64)
    shift = graph.add("Div", graph.add("GatherElements", excess, at, axis=1), kept)
    return graph.add("Max", graph.add("Sub", rows, shift), 0.0)


def _boosted(graph: _Graph, step: Boosted, rows: str) -> str:
    k, n_values = step.n_classes, step.values.shape[2]
    proba = graph.apply(step.branches[0], graph.add("Slice", rows, [0], [k], [1]))
    log_proba = graph.add("Log", graph.add("Max", proba, FLOOR))
    stretched = graph.add("Max", log_proba, LOWEST)
    features = graph.add("Slice", rows, [k], [k + step.n_features], [1])
    seen = graph.add("Concat", features, graph.add("Gather", stretched, step.seen, axis=1), axis=1)
    height = graph.add("Slice", graph.add("Shape", rows), [0], [1])
    nothing = graph.add("Expand", 0.0, graph.add("Concat", height, [n_values], axis=0))
    total = _tree_sums(graph, step, seen, nothing)
    # What the trees add to each class, and how much they stretch.
    shifts = np.zeros((n_values, k))
    shifts[np.arange(n_values - 1), step.shifted] = 1.0
    stretch = graph.add("Slice", total, [n_values - 1], [n_values], [1])
    shifted = graph.add("Add", log_proba, graph.add("MatMul", total, shifts))
    return graph.add("Softmax", graph.add("Add", shifted, graph.add("Mul", stretch, stretched)), axis=1)


def _tree_sums(graph: _Graph, step: Boosted, seen: str, nothing: str) -> str:
    """The values of the leaves that each row falls into, added up tree by tree, so that memory is that of one."""
    n_nodes, none = step.feature.shape[1], step.feature < 0
    # A node without a feature hands all its rows to the first child.
    trees = {
        "tree_feature": np.maximum(step.feature, 0),
        "tree_threshold": np.where(none, np.inf, step.threshold),
        "tree_equal": step.equal & ~none,
        "tree_missing_left": step.missing_left | none,
        "tree_values": step.values,
    }
    body = _Graph("tree_")
    x = body.add("Gather", seen, "tree_feature", axis=1)
    tests = [
        body.add("And", body.add("Equal", x, "tree_threshold"), "tree_equal"),
        body.add("And", body.add("Less", x, "tree_threshold"), body.add("Not", "tree_equal")),
        body.add("And", body.add("IsNaN", x), "tree_missing_left"),
    ]
    # No comparison holds for NaN.
    left = body.add("Or", body.add("Or", tests[0], tests[1]), tests[2])
    node = body.add("Where", body.add("Slice", left, [0], [1], [1]), np.int64(1), np.int64(2))
    for _ in range((n_nodes + 1).bit_length() - 2):
        here = body.add("GatherElements", left, node, axis=1)
        node = body.add("Add", body.add("Mul", node, [2]), body.add("Where", here, np.int64(1), np.int64(2)))
    leaf = body.add("Squeeze", body.add("Sub", node, [n_nodes]), [1])
    after = body.add("Add", "tree_total", body.add("Gather", "tree_values", leaf, axis=0))
    kinds = {"b": TensorProto.BOOL, "i": TensorProto.INT64, "f": TensorProto.DOUBLE}
    ends = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["batch", step.values.shape[2]])
        for name in ("tree_total", after)
    ]
    given = [
        helper.make_tensor_value_info(name, kinds[part.dtype.kind], part.shape[1:])
        for name, part in trees.items()
    ]
    inner = helper.make_graph(body.nodes, "tree", [ends[0], *given], [ends[1]], body.constants)
    return graph.add("Scan", nothing, *trees.values(), body=inner, num_scan_inputs=len(trees))


_WRITERS: dict[type[Step], Callable[[_Graph, Any, str], str]] = {
    Log: _log,
    Affine: _affine,
    Boosted: _boosted,
    Linear: _linear,
    Sum: _sum,
    Product: _product,
    InBlocks: _in_blocks,
    Exp: _exp,
    Clip: _clip,
    Polynomial: _polynomial,
    Softmax: _softmax,
    Sigmoid: _sigmoid,
    Normalise: _normalise,
    Others: _others,
    Interpolate: _interpolate,
    Lookup: _lookup,
    Project: _project,
    Top: _top,
    Distances: _distances,
    LargestOf: _largest_of,
}
