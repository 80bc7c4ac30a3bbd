"""Changed files, one entry at a time, with a mended checksum: refused in one line, or an object that keeps its word.

``python -m tests.storage.mutations FOLDER PREFIX FROM TO`` tries the changes of the files of that name whose lots, from
0 to 1 and the same in every run, lie between the two, and prints each before it is tried, so that the last line tells
what brought the process down.
"""

import copy
import json
import random
import resource
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from tests.storage.catalogue import FRESH, behaviour

import polycal as pc
from polycal.storage import model

CORNERS = np.concatenate([np.eye(3), FRESH, np.full((1, 3), 1 / 3)])
LEAVES = [None, True, -1, 0, 1, 2, 10**9, 1e308, float("nan"), float("inf"), "x", [], {}, ["a", "b"]]


def array_changes(array):
    """Other arrays in the place of one, by what was done to it."""
    yield "gone", None
    yield "empty", array[:0] if array.ndim else np.zeros(0)
    yield "no dimension", np.zeros(())
    yield "one more dimension", array[None]
    yield "flat", np.append(array, array.ravel()[:1])
    yield "text", np.full(array.shape, "x")
    yield "big-endian", array.astype(array.dtype.newbyteorder(">"))
    if array.ndim and array.size:
        yield "one less", array[:-1]
        yield "one more", np.concatenate([array, array[-1:]])
        yield "one column less", array[..., :-1]
        yield "one column more", np.concatenate([array, array[..., -1:]], axis=-1)
        yield "backwards", array[::-1].copy()
        yield "twisted", np.asfortranarray(array[..., ::-1])
    if array.dtype.kind in "biuf":
        for dtype in (np.float32, np.float64, np.int64, np.int8, np.uint64, np.bool_):
            with np.errstate(all="ignore"):
                yield np.dtype(dtype).name, array.astype(dtype)
        yield "shifted", (array + 1).astype(array.dtype)
        for value in (-1, 1e9, -1e9, 1e300, np.nan, np.inf, 0):
            yield from _filled(array, value)
    if array.dtype.kind in "if":
        yield "negated", -array


def _filled(array, value):
    if array.dtype.kind != "f" and not abs(value) <= 1e9:
        return
    with np.errstate(all="ignore"):
        number = np.array(value).astype(array.dtype)
        yield f"all {value}", np.full_like(array, number)
        if array.size > 1:
            one = array.copy()
            one.flat[array.size // 2] = number
            yield f"one {value}", one


def header_changes(tree, path=()):
    """Trees that differ in one place, by what was done."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in list(children):
        here = (*path, key)
        yield (*here, "gone"), lambda t, here=here: _delete(t, here)
        for leaf in LEAVES:
            yield (*here, repr(leaf)), lambda t, here=here, leaf=leaf: _put(t, here, leaf)
        if isinstance(child, int | float) and not isinstance(child, bool):
            yield (*here, "one more"), lambda t, here=here, child=child: _put(t, here, child + 1)
            yield (*here, "one less"), lambda t, here=here, child=child: _put(t, here, child - 1)
            yield (*here, "as text"), lambda t, here=here, child=child: _put(t, here, str(child))
        if isinstance(child, list):
            yield (*here, "twice"), lambda t, here=here, child=child: _put(t, here, child * 2)
            yield (*here, "cut"), lambda t, here=here, child=child: _put(t, here, child[:-1])
        yield from header_changes(child, here)


def _put(tree, path, value):
    for key in path[:-1]:
        tree = tree[key]
    tree[path[-1]] = value


def _delete(tree, path):
    for key in path[:-1]:
        tree = tree[key]
    del tree[path[-1]]


def changes(contents):
    """Everything that is tried on a file: from its arrays to (what was done, a function that gives its arrays now)."""
    header = json.loads(contents["polycal_header"].tobytes())
    inner = header["meta" if header["format"] == 1 else "object"]
    for name, array in contents.items():
        if not name.startswith("polycal_"):
            for what, changed in array_changes(array):
                yield f"{name}: {what}", partial(_with_array, contents, header, name, changed)
    for what, change in header_changes(inner):
        yield f"header {what}", partial(_with_header, contents, header, change)


def _with_array(contents, header, name, changed):
    others = {key: value for key, value in contents.items() if key != name}
    return mended(header, others | ({} if changed is None else {name: changed}))


def _with_header(contents, header, change):
    new = copy.deepcopy(header)
    change(new["meta" if header["format"] == 1 else "object"])
    return mended(new, contents)


def mended(header, contents):
    """The contents with this header and a checksum that fits."""
    arrays = {name: array for name, array in contents.items() if not name.startswith("polycal_")}
    if header["format"] == 1:
        return {"polycal_header": _bytes(header | {"sha256": model.digest(arrays)}), **arrays}
    arrays = {"polycal_header": _bytes(header), **arrays}
    return {"polycal_sha256": np.frombuffer(model.digest(arrays).encode(), dtype=np.uint8), **arrays}


def _bytes(header):
    return np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)


def try_out(path, contents):
    """What is wrong with how a changed file was met; None if nothing."""
    model.read_arrays = lambda *_: copy.deepcopy(contents)
    try:
        thing = pc.load(path)
    except ValueError as error:
        return None if "\n" not in str(error) else f"refused in several lines: {error}"
    except Exception as error:
        return f"loading raised {error!r}"
    try:
        return _broken_word(thing)
    except ValueError as error:
        return None if "\n" not in str(error) else f"use refused in several lines: {error}"
    except Exception as error:
        return f"use raised {error!r}"


def _broken_word(thing):
    """What an object that was loaded does against its contract."""
    repr(thing)
    numbers = behaviour(thing)
    if thing.role == "witness":
        values = thing(CORNERS)
        if not (np.abs(values) <= 1.0 + 1e-9).all():
            return f"values up to {np.abs(values).max()}"
        thing.describe()
        thing.to_steps()
    if thing.role == "calibrator":
        predicted = thing.predict_proba(CORNERS)
        if not (predicted >= 0).all() or not np.allclose(predicted.sum(axis=1), 1.0):
            return f"predicts {predicted.min()} to {predicted.max()}"
        thing._repr_html_()
    if thing.role == "state":
        behaviour(thing.copy().merge(thing))
    return None if np.isfinite(numbers).all() else "numbers that are not finite"


def say(*words):
    """Print a line at once: the process may end with the next one."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(folder, prefix, first, last):
    """Try the files whose names start so; prints what went wrong, and at last how many changes were tried."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    read = model.read_arrays
    tried = 0
    for path in sorted(Path(folder).glob(f"{prefix}*.polycal")):
        rng = random.Random(path.name)
        for what, make in changes(read(path, None, 1 << 30)):
            # Only what is tried is made: most of a small share's time would go into changes that are not.
            if first <= rng.random() < last:
                say("try", path.name, what)
                tried += 1
                if wrong := try_out(path, make()):
                    say("WRONG", path.name, what, "->", wrong)
    say("tried", tried)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
