"""Read and write predictions: the format is chosen by the file's suffix."""

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from polycal import _typing
from polycal._typing import Floats
from polycal._validation import check_choice, check_integer, check_proba, check_sample, check_weight, to_numpy
from polycal.io.arrow import FeatherReader
from polycal.io.csv_table import CsvReader
from polycal.io.npz import NpyReader, NpzReader
from polycal.io.parquet import ParquetReader
from polycal.io.paths import FilePath, check_path, file_path, local_path
from polycal.io.reader import PARTS, Part, RawPredictions, Reader, check_evaluation, rows_of_part
from polycal.sample import Remainder, Sample
from polycal.storage.archive import open_npy
from polycal.storage.atomic import check_writable
from polycal.storage.damage import DEFAULT_MAX_BYTES, check_file, named

FORMATS: dict[str, type[Reader]] = {
    ".npz": NpzReader,
    ".npy": NpyReader,
    ".csv": CsvReader,
    ".parquet": ParquetReader,
    ".feather": FeatherReader,
}


def read_predictions(
    path: _typing.Path,
    *,
    labels: Any = None,
    part: Part = "all",
    max_bytes: int = DEFAULT_MAX_BYTES,
    remainder: Remainder = "unknown",
) -> Sample:
    r"""Read predictions with their labels from a file, and validate them.

    Parameters
    ----------
    path : str or path
        The file, or a URL of one, see `open_predictions`; its suffix tells the format.

        - ``.npz``: arrays ``proba`` or ``logits``, of shape (n, k), and ``labels``; optionally ``weight``,
          ``class_names`` (text) and ``evaluation`` (boolean). Other arrays are not looked at.
        - ``.npy``: the probabilities alone; labels, weights and class names come from
          ``<name>.labels.npy``, ``<name>.weight.npy`` and ``<name>.class_names.json`` beside it.
        - ``.csv``, ``.parquet``, ``.feather``: a column ``label``; optionally ``weight`` and ``evaluation``; every
          other column is a class, its name the class name. Columns called 0, 1, 2, ... are classes without names.
          Where the schema's metadata of Parquet and Feather name the classes, as a JSON list under ``class_names``,
          only these columns are classes. Instead of columns, the two may hold one column ``proba`` of lists, with the
          class names in the same metadata.

        The labels of a table are class names if all of them are, otherwise positions counted from 0.
    labels : array-like or path to an ``.npy`` file, optional
        The labels, for a file that has none.
    part : {"all", "calibration", "evaluation"}
        Which rows to return, for a file that marks the rows of its evaluation part.
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
    from polycal.io.lists import holds_lists, read_lists  # noqa: PLC0415 - they are read as predictions too

    check_choice(part, "part", PARTS)
    check_path(file_path(path))
    if labels is None and holds_lists(file_path(path)):
        return read_lists(path, part=part, remainder=remainder)
    file, reader, raw = _read(path, max_bytes)
    with named(file):
        sample = check_sample(
            _labels(raw, labels, reader),
            raw.proba,
            sample_weight=raw.sample_weight,
            class_names=raw.class_names,
            from_logits=raw.from_logits,
        )
        return sample if part == "all" else _select(sample, raw.evaluation, part)


def read_probabilities(
    path: _typing.Path, *, max_bytes: int = DEFAULT_MAX_BYTES
) -> tuple[Floats, tuple[str, ...] | None]:
    r"""Read probabilities from a file that need not have labels, and validate them.

    Parameters
    ----------
    path : str or path
        The file, as for `read_predictions`.
    max_bytes : int
        Refuse a file that claims to unpack to more than this. By default 16 GiB, or three quarters of the memory where
        that is less.

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
    file, _, raw = _read(path, max_bytes)
    with named(file):
        return check_proba(raw.proba, class_names=raw.class_names, from_logits=raw.from_logits)


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
    function: Callable[[Floats, tuple[str, ...] | None], Any],
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> int:
    """Write a copy of a file whose probabilities went through a function of them and of the class names.

    Labels, weights, class names and the mark of the evaluation part stay, where the file has them. Returns the number
    of rows.
    """
    # Before the work, not after it.
    target, _ = _writable(out, "out")
    file, _, raw = _read(path, max_bytes)
    with named(file):
        proba, names = check_proba(raw.proba, class_names=raw.class_names, from_logits=raw.from_logits)
    write_predictions(
        target,
        raw.labels,
        function(proba, names),
        sample_weight=raw.sample_weight,
        class_names=names,
        evaluation=raw.evaluation,
    )
    return int(proba.shape[0])


def format_of(path: FilePath) -> type[Reader]:
    """Look up the format of a file's suffix."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"the suffix {path.suffix!r} is not one of {', '.join(FORMATS)}")
    return FORMATS[suffix]


def _writable(path: _typing.Path, name: str) -> tuple[Path, type[Reader]]:
    """The path of a file to write, and its format."""
    target = local_path(path, name)
    with named(target):
        file_format = format_of(target)
    check_writable(target)
    return target, file_format


def _read(path: _typing.Path, max_bytes: int) -> tuple[FilePath, Reader, RawPredictions]:
    """Read a file by its suffix."""
    check_integer(max_bytes, "max_bytes", minimum=1)
    file = file_path(path)
    check_path(file)
    with named(file):
        reader = format_of(file)(file, max_bytes)
        return file, reader, reader.read()


def _labels(raw: RawPredictions, given: Any, reader: Reader) -> Any:
    """Take the labels from the file or from the argument, whichever has them."""
    if raw.labels is not None:
        if given is not None:
            raise ValueError("the file has labels of its own; leave out labels=")
        return raw.labels
    if given is None:
        raise ValueError(f"the file has no labels; give it {reader.labels}, or pass labels=")
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
