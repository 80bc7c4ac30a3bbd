"""Features in a file of their own, joined with predictions row by row or by a key."""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polycal import _typing
from polycal._text import advice
from polycal._typing import Ints
from polycal._validation import check_features
from polycal.features import Column, Features, some_names
from polycal.io.arrow import pyarrow
from polycal.io.columns import values_from_codes
from polycal.io.gzipped import unpacked
from polycal.io.layout import INDEX_PREFIX
from polycal.sample import Sample
from polycal.storage.archive import read_arrays
from polycal.storage.damage import DEFAULT_MAX_BYTES, check_claim, check_file, named, readable

FEATURES, FEATURE_NAMES = "features", "feature_names"


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Features of rows that predictions may have.

    Attributes
    ----------
    features : Features
        The columns, without the key.
    key : str or None
        The column of the predictions that names a row here; None: both have the same rows in the same order.
    places : mapping of str to int
        The row of each key.
    """

    features: Features
    key: str | None
    places: Mapping[str, int]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.features.names

    def of(self, rows: Ints, keys: NDArray[Any] | None) -> Features:
        """The features of rows of predictions, by their numbers or by their keys; missing where a key is not here."""
        if self.key is None:
            if rows.size and rows[-1] >= self.features.n_rows:
                raise ValueError(f"features has {self.features.n_rows} rows, fewer than the predictions.")
            return self.features.take(rows)
        if keys is None:
            raise ValueError(f"the predictions have no column {self.key!r}, by which features are joined.")
        column, codes = _only(self.key, keys)
        texts = [None if np.isnan(code) else column.words(code) for code in codes.tolist()]
        found = np.array(
            [-1 if text is None else self.places.get(text, -1) for text in texts], dtype=np.int64
        )
        if found.size and (found < 0).all():
            raise ValueError(f"none of the values of {self.key!r} is in the features, such as {texts[0]!r}.")
        values = self.features.values[found]
        values[found < 0] = np.nan
        return Features(values, self.features.columns)

    def joined(self, sample: Sample, first_row: int, columns: Mapping[str, NDArray[Any]]) -> Sample:
        """Rows of predictions, the first of this number, with their features."""
        keys = None if self.key is None else columns.get(self.key)
        found = self.of(np.arange(first_row, first_row + sample.n_samples), keys)
        return replace(
            sample, features=found if sample.features is None else sample.features.with_columns(found)
        )


def feature_table(data: Any, key: str | None = None, columns: Sequence[str] | None = None) -> FeatureTable:
    """Features to join, from a file (CSV, TSV, Parquet, Feather, ``.npz``) or any container.

    Parameters
    ----------
    data : path, data frame or mapping
    key : str, optional
        The column that names rows, here and in the predictions.
    columns : list of str, optional
        Those to keep; all by default.
    """
    table = read_columns(Path(data)) if isinstance(data, str | Path) else data
    features = _checked(table)
    places: dict[str, int] = {}
    if key is not None:
        column, codes = features.column(key)
        for row, code in enumerate(codes.tolist()):
            if np.isnan(code):
                raise ValueError(f"features has no {key!r} in row {row}; every row needs one.")
            if places.setdefault(column.words(code), row) != row:
                raise ValueError(
                    f"features has {key!r} {column.words(code)!r} in two rows; keep one of them."
                )
    kept = [name for name in features.names if name != key]
    if columns is not None:
        kept = [name for name in kept if name in set(columns)]
    if not kept:
        raise ValueError(
            f"features has none of the columns asked for; there are {some_names(features.names)}."
        )
    at = [features.place(name) for name in kept]
    return FeatureTable(Features(features.values[:, at], tuple(features.columns[i] for i in at)), key, places)


def _checked(table: Any) -> Features:
    first = next(iter(table.values())) if isinstance(table, Mapping) else table
    n_rows = first.shape[0] if hasattr(first, "shape") else len(first)
    return check_features(table, n_rows)


def _only(name: str, values: NDArray[Any]) -> tuple[Column, NDArray[Any]]:
    return check_features({name: values}, values.shape[0]).column(name)


def read_columns(path: _typing.Path, max_bytes: int = DEFAULT_MAX_BYTES) -> Any:
    """All columns of a file that holds no predictions."""
    file = Path(path)
    check_file(file)
    suffix = "".join(file.suffixes[-2:]) if file.suffix == ".gz" else file.suffix
    read = _READERS.get(suffix.lower())
    if read is None:
        raise ValueError(f"{file}: features are read from {', '.join(_READERS)}; got {suffix!r}.")
    with named(file):
        check_claim(file.stat().st_size, max_bytes)
        return read(file, max_bytes)


def archive_columns(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The columns of the array ``features`` of an archive, by ``feature_names``; none if it has none."""
    if FEATURES not in arrays or FEATURE_NAMES not in arrays:
        return {}
    table, names = arrays[FEATURES], arrays[FEATURE_NAMES]
    if table.ndim != 2 or names.shape != table.shape[1:]:
        fix = f"give {FEATURES!r} of shape (n, d) and d {FEATURE_NAMES!r}"
        raise ValueError(f"{FEATURES!r} has shape {table.shape} and {FEATURE_NAMES!r} {names.shape}; {fix}.")
    return {str(name): table[:, place] for place, name in enumerate(names.tolist())}


def _read_npz(path: Path, max_bytes: int) -> dict[str, NDArray[Any]]:
    arrays = read_arrays(path, None, max_bytes)
    columns = archive_columns(arrays)
    others = {name: array for name, array in arrays.items() if array.ndim == 1 and name != FEATURE_NAMES}
    return columns or others


def _read_arrow(path: Path, max_bytes: int) -> Any:
    with readable("Parquet or Feather"):
        if path.suffix == ".parquet":
            table = pyarrow("parquet").read_table(path)
        else:
            table = pyarrow("feather").read_table(path)
    check_claim(table.nbytes, max_bytes)
    # The number that pandas gave to a row is nothing that is known of it.
    return table.drop_columns([name for name in table.column_names if name.startswith(INDEX_PREFIX)])


def _read_text(separator: str) -> Callable[[Path, int], dict[str, NDArray[Any]]]:
    def read(path: Path, max_bytes: int) -> dict[str, NDArray[Any]]:
        with readable("CSV in UTF-8"), path.open("rb") as raw, unpacked(raw, max_bytes) as file:
            lines = (line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(file))
            header, *rows = csv.reader(lines, delimiter=separator)
        rows = [row for row in rows if row]
        wrong = next((number for number, row in enumerate(rows) if len(row) != len(header)), None)
        if wrong is not None:
            raise ValueError(f"row {wrong} has {len(rows[wrong])} cells for {len(header)} columns")
        return {name: _values([row[place] for row in rows]) for place, name in enumerate(header)}

    return read


def _values(cells: list[str]) -> NDArray[Any]:
    codes: dict[str, int] = {}
    numbers = np.array([codes.setdefault(cell, len(codes)) for cell in cells], dtype=np.int64)
    return values_from_codes(numbers, list(codes))


_READERS: dict[str, Callable[[Path, int], Any]] = {
    ".csv": _read_text(","),
    ".csv.gz": _read_text(","),
    ".tsv": _read_text("\t"),
    ".tsv.gz": _read_text("\t"),
    ".npz": _read_npz,
    ".parquet": _read_arrow,
    ".feather": _read_arrow,
}


def check_join(table: FeatureTable, n_files: int, part: str, n_rows: int) -> None:
    """Refuse a join by row that cannot be right: with several files, with a part, or with another number of rows."""
    if table.key is not None:
        return
    fix = advice("pass key=", "name a column of both by --key")
    if n_files != 1 or part != "all":
        raise ValueError(f"features are joined row by row with all rows of one file; for others, {fix}.")
    if n_rows != table.features.n_rows:
        raise ValueError(
            f"features has {table.features.n_rows} rows but the predictions have {n_rows}; give one for each, or {fix}."
        )
