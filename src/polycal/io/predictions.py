"""Read and write predictions: the format is chosen by the file's suffix."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from polycal import _typing
from polycal._text import advice
from polycal._typing import Floats, Ints
from polycal._validation import (
    check_choice,
    check_integer,
    check_labels,
    check_proba,
    check_sample,
    check_weight,
    to_numpy,
)
from polycal.io.arrow import FeatherReader
from polycal.io.csv_table import CsvReader, TsvReader
from polycal.io.jsonl import JsonlReader
from polycal.io.layout import Layout, Roles, explained, warn_unused
from polycal.io.npz import NpyReader, NpzReader
from polycal.io.parquet import ParquetReader
from polycal.io.paths import FilePath, check_path, file_path, local_path, suffix_of
from polycal.io.reader import PARTS, Part, RawPredictions, Reader, check_evaluation, rows_of_part
from polycal.sample import Remainder, Sample
from polycal.storage.archive import open_npy
from polycal.storage.atomic import check_writable
from polycal.storage.damage import DEFAULT_MAX_BYTES, check_file, named

FORMATS: dict[str, type[Reader]] = {
    ".npz": NpzReader,
    ".npy": NpyReader,
    ".csv": CsvReader,
    ".csv.gz": CsvReader,
    ".tsv": TsvReader,
    ".tsv.gz": TsvReader,
    ".jsonl": JsonlReader,
    ".jsonl.gz": JsonlReader,
    ".parquet": ParquetReader,
    ".feather": FeatherReader,
}


def read_predictions(
    path: _typing.Path,
    *,
    labels: Any = None,
    part: Part = "all",
    label: str | None = None,
    weight: str | None = None,
    classes: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    from_logits: bool = False,
    normalize: bool = False,
    format: str | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    remainder: Remainder = "unknown",
) -> Sample:
    r"""Read predictions with their labels from a file, and validate them.

    Parameters
    ----------
    path : str or path
        The file, or a URL of one, see `open_predictions`; its suffix tells the format.

        - ``.npz``: arrays ``proba`` or ``logits``, of shape (n, k), and ``labels``; optionally ``weight``,
          ``class_names`` (text) and ``evaluation`` (boolean). Other arrays are not read, and a warning names them.
        - ``.npy``: the probabilities alone; labels, weights and class names come from
          ``<name>.labels.npy``, ``<name>.weight.npy`` and ``<name>.class_names.json`` beside it.
        - ``.csv`` and ``.tsv``, also with ``.gz``, ``.parquet``, ``.feather``: a column ``label``; optionally
          ``weight`` and ``evaluation``; every other column is a class, its name the class name. Columns called 0, 1,
          2, ... are classes without names. A single column is the probability of the second of two classes.
          Where the schema's metadata of Parquet and Feather name the classes, as a JSON list under ``class_names``,
          only these columns are classes. Instead of columns, the two may hold one column ``proba`` of lists, with the
          class names in the same metadata.

        The labels of a table are class names if all of them are, otherwise positions counted from 0.
    labels : array-like or path to an ``.npy`` file, optional
        The labels, for a file that has none.
    part : {"all", "calibration", "evaluation"}
        Which rows to return, for a file that marks the rows of its evaluation part.
    label, weight : str, optional
        The columns, or arrays, of labels and of weights, if they are called otherwise. (Beside an ``.npy`` file
        ``<name>.<label>.npy`` is looked for.)
    classes : list of str, optional
        The columns that are classes, in this order; ``*`` stands for any text, as in ``["p_*"]``. Other columns are
        not read. For an array, the names of its columns.
    drop : list of str
        Columns, or arrays, that are left out.
    from_logits : bool, default False
        Whether the numbers are logits or log probabilities.
    normalize : bool, default False
        Divide each row by its sum, for probabilities that were rounded. Sums that rounding to one decimal cannot give
        are refused.
    format : str, optional
        The format, such as ``"csv"``, for a file whose suffix does not tell it.
    max_bytes : int
        Refuse a file that claims to unpack to more than this. By default 16 GiB, or three quarters of the memory where
        that is less.
    remainder : {"unknown", "spread", "anywhere", "class"}
        For a Parquet file of lists of classes, see `open_lists`: what is said of the rest, see
        `smooth_calibration_error`.

    Returns
    -------
    Sample
        The validated predictions.

    Notes
    -----
    No pickle is ever loaded and nothing in a file is evaluated. A damaged file is a ``ValueError`` that names it;
    what no format but ``.npz`` and checksummed Parquet can show is a changed digit, and CSV cannot show that whole
    rows are missing at its end. Numbers in a CSV file are float64, or float32 if their rows sum to 1 to that
    precision only, as those printed from float32 do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     _ = path.write_text("cat,dog,label\n0.9,0.1,cat\n0.25,0.75,dog\n")
    ...     sample = pc.read_predictions(path)
    >>> sample
    Sample(n_samples=2, n_classes=2, float64)
    >>> sample.class_names, sample.labels
    (('cat', 'dog'), array([0, 1]))
    """
    layout = Layout(label, weight, classes, drop, (), from_logits, normalize, format)
    return read_with_roles(path, part, layout, labels, max_bytes, remainder)[0]


def read_with_roles(
    path: _typing.Path,
    part: Part,
    layout: Layout,
    labels: Any = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
    remainder: Remainder = "unknown",
) -> tuple[Sample, Roles]:
    """`read_predictions`, and what was made of the columns."""
    from polycal.io.lists import holds_lists, read_lists  # noqa: PLC0415 - they are read as predictions too

    check_choice(part, "part", PARTS)
    check_path(file_path(path))
    if labels is None and holds_lists(file_path(path)):
        return read_lists(path, part=part, remainder=remainder, layout=layout), Roles()
    if labels is None and is_cut(file_path(path), layout, max_bytes):
        return read_lists(path, part=part, remainder=remainder, layout=layout), Roles()
    file, reader, raw = _read(path, max_bytes, layout)
    with named(file):
        warn_unused(raw.roles)
        with explained(raw.roles):
            sample = check_sample(
                _labels(raw, labels, reader),
                raw.proba,
                sample_weight=raw.sample_weight,
                class_names=raw.class_names,
                from_logits=raw.from_logits,
                normalize=layout.normalize,
                features=dict(raw.columns) or None,
            )
        return (sample if part == "all" else _select(sample, raw.evaluation, part)), raw.roles


def read_probabilities(
    path: _typing.Path, *, max_bytes: int = DEFAULT_MAX_BYTES, layout: Layout | None = None
) -> tuple[Floats, tuple[str, ...] | None]:
    r"""Read probabilities from a file that need not have labels, and validate them.

    Parameters
    ----------
    path : str or path
        The file, as for `read_predictions`.
    max_bytes : int
        Refuse a file that claims to unpack to more than this. By default 16 GiB, or three quarters of the memory where
        that is less.
    layout : Layout, optional
        What the columns are, as far as the file does not say so.

    Returns
    -------
    proba : ndarray of shape (n_samples, n_classes)
        The probabilities.
    class_names : tuple of str, or None
        The class names, if the file has any.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     _ = path.write_text("cat,dog\n0.9,0.1\n")
    ...     pc.read_probabilities(path)
    (array([[0.9, 0.1]]), ('cat', 'dog'))
    """
    return read_rows(path, max_bytes, layout)[:2]


def read_rows(
    path: _typing.Path, max_bytes: int = DEFAULT_MAX_BYTES, layout: Layout | None = None
) -> tuple[Floats, tuple[str, ...] | None, Ints | None]:
    """Probabilities, the class names, and the labels where the file has them."""
    file, _, raw = _read(path, max_bytes, layout or Layout())
    with named(file):
        proba, names = _proba_of(raw, layout or Layout())
        return proba, names, None if raw.labels is None else check_labels(raw.labels, proba.shape[1], names)


def write_predictions(
    path: _typing.Path,
    y_true: Any,
    y_proba: Any,
    *,
    sample_weight: Any = None,
    class_names: Any = None,
    evaluation: Any = None,
) -> None:
    """Validate predictions and write them to a file, in one piece.

    The file appears under its name only when it is complete; an old one is there until then. (An ``.npy`` array
    and the files beside it are each written in one piece, the array last.)

    Parameters
    ----------
    path : str or path
        The file to write, on this machine; its suffix tells the format, see `read_predictions`.
    y_true : array-like of shape (n_samples,), or None
        Labels: class indices or names. None writes probabilities alone.
    y_proba : array-like of shape (n_samples, n_classes)
        Predicted probabilities.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.
    class_names : list of str, optional
        Class names, in column order.
    evaluation : array-like of bool, shape (n_samples,), optional
        Which rows are of the evaluation part; the others are of the calibration part.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polycal as pc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.npz")
    ...     pc.write_predictions(path, ["dog", "cat"], [[0.3, 0.7], [0.8, 0.2]], class_names=["cat", "dog"])
    ...     pc.read_predictions(path).labels
    array([1, 0])
    """
    target, file_format = _writable(path, "path")
    raw = _checked(y_true, y_proba, sample_weight, class_names, evaluation)
    with named(target):
        file_format.write(target, raw)


def map_predictions(
    path: _typing.Path,
    out: _typing.Path,
    function: Callable[[Floats, tuple[str, ...] | None, Mapping[str, NDArray[Any]]], Any],
    *,
    layout: Layout | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> int:
    """Write a copy of a file whose probabilities went through a function of them, of the class names and of columns.

    The columns are those that the layout names to be read along. Labels, weights, class names and the mark of the
    evaluation part stay, where the file has them. Returns the number of rows.
    """
    # Before the work, not after it.
    target, _ = _writable(out, "out")
    layout = layout or Layout()
    file, _, raw = _read(path, max_bytes, layout)
    with named(file):
        proba, names = _proba_of(raw, layout)
    write_predictions(
        target,
        raw.labels,
        function(proba, names, raw.columns),
        sample_weight=raw.sample_weight,
        class_names=names,
        evaluation=raw.evaluation,
    )
    return int(proba.shape[0])


def format_of(path: FilePath, layout: Layout | None = None) -> type[Reader]:
    """The format of a file: what is said to be it, or that of the suffix."""
    said = None if layout is None else layout.format
    if said is not None:
        if said not in FORMATS:
            known = ", ".join(suffix.removeprefix(".") for suffix in FORMATS)
            raise ValueError(f"format={said.removeprefix('.')!r} is not one of {known}")
        return FORMATS[said]
    suffix = suffix_of(path.name, FORMATS)
    if suffix is None:
        fix = advice("pass format=", "name the format by --format")
        raise ValueError(
            f"the suffix {path.suffix!r} is not one of {', '.join(FORMATS)}; rename it, or {fix}"
        )
    return FORMATS[suffix]


def is_cut(path: FilePath, layout: Layout, max_bytes: int) -> bool:
    """Whether a file holds answers that do not list all options."""
    with named(path):
        if format_of(path, layout) is not JsonlReader:
            return False
        return JsonlReader(path, max_bytes, None, layout).own_form().is_cut


def _proba_of(raw: RawPredictions, layout: Layout) -> tuple[Floats, tuple[str, ...] | None]:
    with explained(raw.roles):
        return check_proba(
            raw.proba,
            class_names=raw.class_names,
            from_logits=raw.from_logits,
            normalize=layout.normalize,
        )


def _writable(path: _typing.Path, name: str) -> tuple[Path, type[Reader]]:
    """The path of a file to write, and its format."""
    target = local_path(path, name)
    with named(target):
        file_format = format_of(target)
    check_writable(target)
    return target, file_format


def _read(path: _typing.Path, max_bytes: int, layout: Layout) -> tuple[FilePath, Reader, RawPredictions]:
    """Read a file by its suffix."""
    check_integer(max_bytes, "max_bytes", minimum=1)
    file = file_path(path)
    check_path(file)
    with named(file):
        reader = format_of(file, layout)(file, max_bytes, None, layout)
        return file, reader, reader.read()


def _labels(raw: RawPredictions, given: Any, reader: Reader) -> Any:
    """Take the labels from the file or from the argument, whichever has them."""
    if raw.labels is not None:
        if given is not None:
            raise ValueError("the file has labels of its own; leave out labels=")
        return raw.labels
    if given is None:
        fix = advice("pass labels=, or label= to name them", "name them by --label")
        raise ValueError(f"the file has no labels; give it {reader.labels}, or {fix}")
    if not isinstance(given, str | PathLike):
        return given
    path = local_path(given, "labels")
    check_file(path)
    if path.suffix.lower() != ".npy":
        raise ValueError(f"labels={str(given)!r} must be an .npy file, or an array")
    with named(path):
        return open_npy(path).read()


def _select(sample: Sample, evaluation: NDArray[Any] | None, part: Part) -> Sample:
    """Take the rows of one part."""
    rows = rows_of_part(evaluation, part, sample.n_samples)
    if not rows.any():
        raise ValueError(f"the file marks no row of the {part} part")
    chosen = sample.take(rows)
    if chosen.sample_weight is not None:
        # All the weight may lie in the other part.
        check_weight(chosen.sample_weight)
    return chosen


def _checked(
    y_true: Any, y_proba: Any, sample_weight: Any, class_names: Any, evaluation: Any
) -> RawPredictions:
    """Pass what is to be written through the gate."""
    raw = _checked_rows(y_true, y_proba, sample_weight, class_names)
    if evaluation is None:
        return raw
    flags = to_numpy(evaluation, "evaluation")
    check_evaluation(flags, raw.proba.shape[0])
    return replace(raw, evaluation=flags)


def _checked_rows(y_true: Any, y_proba: Any, sample_weight: Any, class_names: Any) -> RawPredictions:
    """Pass everything but the parts through the gate."""
    if y_true is not None:
        sample = check_sample(y_true, y_proba, sample_weight=sample_weight, class_names=class_names)
        return RawPredictions(
            sample.proba,
            labels=sample.labels,
            sample_weight=sample.sample_weight,
            class_names=sample.class_names,
        )
    proba, names = check_proba(y_proba, class_names=class_names)
    weight = None if sample_weight is None else check_weight(sample_weight)
    if weight is not None and weight.size != proba.shape[0]:
        raise ValueError(f"sample_weight has {weight.size} entries but y_proba has {proba.shape[0]} rows")
    return RawPredictions(proba, sample_weight=weight, class_names=names)
