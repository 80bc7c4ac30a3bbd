"""Files of the first format: their flat headers and arrays as the tree of today (see `polycal.storage.saved`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Tree = dict[str, Any]

# Arrays that became the fields of a part.
_CELLS = {"is": "part/cells", "cells": {"array": "cells"}, "totals": {"array": "totals"}}
_LISTS = {"is": "part/lists", "columns": {"array": "columns"}, "points": {"array": "points"}}
_SUMS = {"is": "part/landmark-sums", "matrix": {"array": "matrix"}, "absolute": {"array": "absolute"}}
_RUNS = {"is": "part/runs", "n_keys": 1, "run": {"array": "run"}}
_DOUBT = {"is": "part/doubt", "sums": {"array": "doubt"}}
# By family: the part's name, and what it is made of.
_PARTS: dict[str, dict[str, Tree]] = {
    "state/question": {"cells": _CELLS, "runs": _RUNS, "doubt": _DOUBT},
    "state/classes": {"cells": _CELLS, "doubt": _DOUBT},
    "state/truncated": {"cells": _CELLS, "runs": _RUNS, "doubt": _DOUBT},
    "state/certificate": {"tally": {"is": "part/runs", "n_keys": 2, "run": {"array": "tally"}}},
    "state/kernel": {
        "sums": _SUMS,
        "landmarks": {"is": "part/landmarks", "points": {"array": "landmarks"}},
    },
    "state/truncated-kernel": {"landmarks": _LISTS, "sums": _SUMS},
    "witness/list-kernel": {"landmarks": _LISTS},
}
# What a state without rows had made room for.
_ROOM = ("cells", "totals", "run", "runs", "tally", "sums", "matrix", "absolute", "text", "table")
_FUNCTION = ("n_knots", "n_heights", "is_step", "knots", "heights")
_KEYED = ("proba", "labels", "weight", "keys")


def upgraded(role: str, meta: Tree, arrays: Arrays) -> Tree:
    """The tree of an object of the first format."""
    if role == "calibrator":
        return _calibrator(meta, arrays)
    name = f"{role}/{meta['family']}"
    _extend(name, meta, arrays)
    fields = {key: value for key, value in meta.items() if key not in {"family", "parameters"}}
    fields |= meta.get("parameters", {}) | {key: _value(arrays, key) for key in arrays}
    for part, node in _PARTS.get(name, {}).items():
        _drop(fields, *(value["array"] for value in node.values() if isinstance(value, dict)))
        fields[part] = dict(node)
    if role == "state" and fields["n_classes"] is None:
        _drop(fields, *_ROOM)
    _kernel(fields)
    _functions(fields, arrays)
    match name:
        case "state/certificate":
            _witness(fields, arrays)
        case "witness/list-kernel":
            fields["landmarks"]["n_classes"] = fields["n_classes"]
        case "state/truncated-kernel":
            fields["landmarks"]["n_classes"] = int(arrays["absolute"].size) - 1
            held_back = {"is": "part/keyed-lists", "size": 0, "rows": None}
            fields |= {"n_held_back": 0, "random_state": 0, "held_back": held_back}
        case "state/classes":
            fields["classes"] = None
        case "state/sketch":
            fields["kept"] = _rows(fields, fields["size"])
        case "state/kernel":
            fields["held_back"] = _rows(fields, fields["n_held_back"])
    return {"is": name, **fields}


def _extend(name: str, meta: Tree, arrays: Arrays) -> None:
    """Give sums the room that lists need: what was saved was exact, or had seen lists only."""
    match name:
        case "state/scores":
            arrays["sums"] = np.stack([arrays["sums"], arrays["sums"]])
        case "state/reading":
            arrays["sums"] = np.append(arrays["sums"], 0.0)
        case "state/question" | "state/classes":
            arrays["doubt"] = np.zeros((6, arrays["cells"].shape[0]))
        case "state/truncated":
            arrays["doubt"] = np.append(arrays.pop("sums"), meta["total_weight"])[:, None]
            arrays["run"] = np.zeros((4, 0))


def _value(arrays: Arrays, name: str) -> Any:
    """A number or a text that was an array without dimensions, or the array's name."""
    array = arrays[name]
    return {"array": name} if array.ndim else array.item()


def _drop(fields: Tree, *names: str) -> None:
    for name in names:
        fields.pop(name, None)


def _kernel(fields: Tree) -> None:
    if "kernel_parameter" in fields:
        parameter = fields.pop("kernel_parameter")
        degree = {"degree": int(parameter)} if fields["kernel"] == "multinomial" else {"scale": parameter}
        fields["kernel"] = {"is": f"kernel/{fields['kernel']}", **degree}


def _functions(fields: Tree, arrays: Arrays) -> None:
    """Functions of one number: one of a subset, else one or several."""
    if "is_step" not in fields:
        return
    names = [f"function/{'step' if step else 'lipschitz'}" for step in arrays["is_step"]]
    node = {
        "are": names,
        "knots": {"array": "knots", "sizes": "n_knots"},
        "heights": {"array": "heights", "sizes": "n_heights"},
    }
    _drop(fields, *_FUNCTION)
    if "members" not in fields:
        fields["phis"] = node
    else:
        (name,) = names
        fields["phi"] = {"is": name, "knots": {"array": "knots"}, "heights": {"array": "heights"}}


def _witness(fields: Tree, arrays: Arrays) -> None:
    """The witness of a certificate, whose arrays had a prefix."""
    own = {key.removeprefix("witness_"): key for key in arrays if key.startswith("witness_")}
    _drop(fields, *own.values())
    meta = {key: value for key, value in fields["witness"].items() if key != "sha256"}
    # The arrays keep their prefix in the file, and get their own names beside it.
    arrays.update({name: arrays[key] for name, key in own.items() if name not in arrays})
    fields["witness"] = upgraded("witness", meta, {name: arrays[key] for name, key in own.items()})


def _rows(fields: Tree, size: Any) -> Tree:
    """Rows kept at random, if there were any."""
    rows = [fields.pop(f"rows_{name}", None) for name in _KEYED]
    return {"is": "part/keyed-rows", "size": size, "rows": None if rows[3] is None else rows}


def _calibrator(meta: Tree, arrays: Arrays) -> Tree:
    return {
        "is": f"calibrator/{meta['family']}",
        "n_classes": meta["n_classes"],
        "class_names": meta["class_names"],
        "params": {"of": meta["params"]},
        "steps": [_step(entry) for entry in meta["steps"]],
        "attributes": {
            "of": {
                name.removeprefix("attribute_"): _value(arrays, name)
                for name in arrays
                if name.startswith("attribute_")
            }
        },
    }


def _step(entry: Tree) -> Tree:
    fields = {name: _step_field(value) for name, value in entry.items() if name != "kind"}
    return {"is": f"step/{entry['kind']}", **fields}


def _step_field(value: Any) -> Any:
    if isinstance(value, list):
        return [[_step(entry) for entry in branch] for branch in value]
    return {"array": value} if isinstance(value, str) else float(value)
