"""CSV: a header, one column per class, ``label`` and the other special columns."""

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from polycal._text import printable
from polycal._typing import Float64s
from polycal.io.columns import (
    SPECIAL_COLUMNS,
    TEXT_COLUMNS,
    flags_from_codes,
    labels_from_codes,
    sort_columns,
    writable_names,
)
from polycal.io.reader import RawPredictions, Reader
from polycal.sample import row_blocks, row_sums
from polycal.storage.atomic import replacing
from polycal.storage.damage import check_claim, readable

_CSV = "CSV in UTF-8"
_BLOCK = 1 << 20
# What a cell takes while it is read, and what is looked at of a file elsewhere.
_CELL, _HEAD = 24, 1 << 20


class CsvReader(Reader):
    """A table of text, read whole."""

    def read(self) -> RawPredictions:
        """The columns by their role. Nothing is unpacked, so the file's size is what it claims."""
        with self._on_disk() as path:
            check_claim(path.stat().st_size, self.max_bytes)
            with path.open(encoding="utf-8-sig", newline="") as file:
                header = _read_header(file)
                columns = sort_columns(header)
                values: dict[str, dict[str, int]] = {name: {} for name in TEXT_COLUMNS if name in header}
                at = {name: i for i, name in enumerate(header)}
                body = _read_body(path, file, header, {at[name]: codes for name, codes in values.items()})
        texts = {name: (body[:, at[name]].astype(np.int64), list(codes)) for name, codes in values.items()}
        return RawPredictions(
            proba=_as_printed(np.take(body, [at[name] for name in columns.classes], axis=1)),
            labels=labels_from_codes(*texts["label"], columns.classes) if "label" in texts else None,
            sample_weight=None if columns.weight is None else body[:, at[columns.weight]],
            class_names=columns.class_names,
            evaluation=flags_from_codes(*texts["evaluation"]) if "evaluation" in texts else None,
        )

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write numbers with the fewest digits that read back as the same float."""
        names = writable_names(raw.class_names, raw.proba.shape[1])
        _refuse_unseen(names)
        # The label goes first: in a truncated last row it is then the probabilities that are seen to be wrong.
        extra = {"label": _label_texts(raw), "weight": raw.sample_weight, "evaluation": raw.evaluation}
        first = {name: column for name, column in extra.items() if column is not None}
        with replacing(path) as binary:
            file = io.TextIOWrapper(binary, encoding="utf-8", newline="")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*first, *names])
            for rows in row_blocks(*raw.proba.shape):
                cells = [column[rows].tolist() for column in first.values()]
                lists = _shortest(raw.proba[rows])
                writer.writerows([*start, *row] for *start, row in zip(*cells, lists, strict=True))
            # Detached, the wrapper does not close the file, which is still to be synchronised.
            file.detach()

    def check_memory(self, n_bytes: int) -> None:
        """Refuse a file of too many cells: in text, one may take as little as two bytes."""
        super().check_memory(n_bytes)
        cells = self._n_cells()
        if cells * _CELL > n_bytes // 2:
            raise self._too_large(f"{cells:,} cells", n_bytes)

    def _n_cells(self) -> int:
        """About how many cells there are: on this machine all are counted, elsewhere the first stand for all."""
        size = self._size()
        with self.path.open("rb") if isinstance(self.path, Path) else self.path.open() as file:
            most = size if isinstance(self.path, Path) else _HEAD
            seen = cells = 0
            while seen < most and (block := file.read(min(_BLOCK, most - seen))):
                seen += len(block)
                cells += block.count(b",") + block.count(b"\n")
        return cells * size // max(1, seen)


def _read_header(file: TextIO) -> list[str]:
    """Read the names of the columns."""
    with readable(_CSV):
        header = next(csv.reader(file), [])
    if not any(header):
        raise ValueError("the file is empty; the first line must name the columns: the classes and 'label'")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise ValueError("the columns are not separated by commas; save the file with ',' as separator")
    if "" in header:
        raise ValueError(
            f"column {header.index('') + 1} has no name; name it, or if it is an index write the file without it"
        )
    if not set(header).difference(SPECIAL_COLUMNS):
        raise ValueError(
            "there is no column of probabilities; add one column per class, its name the class name"
        )
    return header


def _read_body(path: Path, file: TextIO, header: list[str], values: dict[int, dict[str, int]]) -> Float64s:
    """Read the rows as numbers; the text columns get the numbers of their distinct values, gathered in ``values``."""
    with readable(_CSV):
        first = next((line for line in file if line.strip()), None)
    if first is None:
        raise ValueError("there is a header but no row")
    try:
        return _parse(chain([first], file), header, values)
    except ValueError as error:
        _explain(path, header)
        raise ValueError(f"cannot be read as {_CSV}: the file is truncated or corrupt ({error})") from error


def _parse(lines: Iterable[str], header: list[str], values: dict[int, dict[str, int]]) -> Float64s:
    """Parse rows as long as the header."""
    body = np.loadtxt(
        lines,
        delimiter=",",
        comments=None,
        quotechar='"',
        encoding="utf-8",
        converters={column: _coder(codes) for column, codes in values.items()},
        ndmin=2,
    )
    if body.shape[1] != len(header):
        raise ValueError(f"the rows have {body.shape[1]} cells, the header {len(header)}")
    return body


def _coder(codes: dict[str, int]) -> Any:
    """Number the distinct values of a column in order of appearance."""
    return lambda text: codes.setdefault(text, len(codes))


def _explain(path: Path, header: list[str]) -> None:
    """Find the first bad line, slowly, and say what is wrong with it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line, row in _rows(file):
            if len(row) != len(header):
                raise ValueError(
                    f"line {line} has {len(row)} cells but the header has {len(header)}; the line is damaged, "
                    "or a text with a comma in it needs quotes"
                )
            for name, cell in zip(header, row, strict=True):
                if name not in TEXT_COLUMNS and not _is_number(cell):
                    raise ValueError(_not_a_number(line, name, cell))


def _rows(file: TextIO) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows below the header with their line numbers."""
    with readable(_CSV):
        reader = csv.reader(file)
        next(reader)
        yield from ((reader.line_num, row) for row in reader if row)


def _not_a_number(line: int, name: str, cell: str) -> str:
    """Say what a cell is instead of a number, and the likely cause."""
    if not cell.strip():
        return f"line {line}, column {name!r} is empty; give a number or drop the row"
    return (
        f"line {line}, column {name!r} is {cell[:40]!r}, which is not a number. Every column but "
        f"{', '.join(SPECIAL_COLUMNS)} is taken for a class: call the labels 'label', and drop other columns"
    )


def _is_number(cell: str) -> bool:
    """Tell whether a cell is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _as_printed(proba: Float64s) -> NDArray[Any]:
    """Give numbers printed from float32, or rounded, the dtype whose tolerance for row sums is theirs."""
    drift = np.abs(row_sums(proba) - 1.0)
    # Without the last row, if there are others: the file may have been cut in the middle of a number.
    largest = drift[: max(1, drift.size - 1)].max()
    return proba.astype(np.float32) if np.finfo(np.float64).eps ** 0.5 < largest < 1 else proba


def _refuse_unseen(names: Iterable[str]) -> None:
    """Refuse names that a terminal or an editor would act on instead of showing: a CSV is looked at."""
    for name in names:
        if printable(name, lines=True) != name:
            raise ValueError(
                f"a CSV cannot have a class column called {name!r}: it holds control characters; rename the class or "
                "write .npz"
            )


def _label_texts(raw: RawPredictions) -> NDArray[Any] | None:
    """Give each label as its class name, or as its position when there are no names."""
    if raw.labels is None or raw.class_names is None:
        return raw.labels
    texts: NDArray[Any] = np.array(raw.class_names, dtype=object)[raw.labels]
    return texts


def _shortest(block: NDArray[Any]) -> list[list[Any]]:
    """Prepare rows for the writer: it prints Python's floats shortest, float32 must be text by then."""
    rows: list[list[Any]] = (block if block.dtype == np.float64 else block.astype(np.str_)).tolist()
    return rows
