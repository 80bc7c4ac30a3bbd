"""CSV and TSV: a header, one column per class, ``label`` and the other special columns."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
from numpy.typing import NDArray

from polycal._text import advice, printable
from polycal._typing import Float64s
from polycal.io.columns import flags_from_codes, labels_from_codes, values_from_codes
from polycal.io.gzipped import packed, unpacked
from polycal.io.layout import INDEX_PREFIX, Columns, not_a_class, sort_columns, writable_names
from polycal.io.reader import Classes, RawPredictions, Reader
from polycal.sample import row_blocks, row_sums
from polycal.storage.atomic import replacing
from polycal.storage.damage import readable

_CSV = "CSV in UTF-8"
_SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon"}
_BLOCK = 1 << 20
# What a cell takes while it is read, and what is looked at of a file elsewhere.
_CELL, _HEAD = 24, 1 << 20


class CsvReader(Reader):
    """A table of text, read whole. It may be compressed by gzip, whatever it is called."""

    separator: ClassVar[str] = ","

    def read(self) -> RawPredictions:
        """The columns by their role."""
        with self._on_disk() as path, self._text(path) as file:
            header = _read_header(file, self.separator)
            columns = self._columns(header)
            # What has no role stays text that nobody looks at.
            values: dict[str, dict[str, int]] = {name: {} for name in columns.texts}
            at = {name: i for i, name in enumerate(header)}
            coders = {at[name]: codes for name, codes in values.items()}
            body = self._read_body(path, file, header, columns, coders)
        texts = {name: (body[:, at[name]].astype(np.int64), list(codes)) for name, codes in values.items()}
        return RawPredictions(
            proba=self._proba(body, [at[name] for name in columns.data]),
            from_logits=self.layout.from_logits,
            labels=None
            if columns.label is None
            else labels_from_codes(*texts[columns.label], columns.classes),
            sample_weight=None if columns.weight is None else body[:, at[columns.weight]],
            class_names=columns.class_names,
            evaluation=None if columns.evaluation is None else flags_from_codes(*texts[columns.evaluation]),
            columns={name: values_from_codes(*texts[name]) for name in columns.others},
            roles=columns.roles,
        )

    def classes(self) -> Classes | None:
        """Those of the header; None if there is no row below it."""
        with self._on_disk() as path, self._text(path) as file:
            columns = self._columns(_read_header(file, self.separator))
            with readable(_CSV):
                some = any(line.strip() for line in file)
        return Classes(len(columns.classes), columns.class_names, columns.roles) if some else None

    @classmethod
    def write(cls, path: Path, raw: RawPredictions) -> None:
        """Write numbers with the fewest digits that read back as the same float."""
        names = writable_names(raw.class_names, raw.proba.shape[1])
        _refuse_unseen(names)
        # The label goes first: in a truncated last row it is then the probabilities that are seen to be wrong.
        extra = {"label": _label_texts(raw), "weight": raw.sample_weight, "evaluation": raw.evaluation}
        first = {name: column for name, column in extra.items() if column is not None}
        with replacing(path) as binary, packed(binary, path) as stream:
            file = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            writer = csv.writer(file, delimiter=cls.separator, lineterminator="\n")
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
        separator = self.separator.encode()
        size, is_here = self._size(), isinstance(self.path, Path)
        with self.path.open("rb") if isinstance(self.path, Path) else self.path.open() as raw:
            seen = cells = 0
            with unpacked(raw, self.max_bytes) as file:
                while (is_here or seen < _HEAD) and (block := file.read(_BLOCK)):
                    seen += len(block)
                    cells += block.count(separator) + block.count(b"\n")
            return cells if is_here else cells * size // max(1, raw.tell())

    def _columns(self, header: list[str]) -> Columns:
        """The roles of the columns; without any of probabilities, an error."""
        columns = sort_columns(header, self.layout)
        if not columns.data:
            raise ValueError(
                "there is no column of probabilities; add one column per class, its name the class name"
            )
        return columns

    @contextmanager
    def _text(self, path: Path) -> Iterator[TextIO]:
        """The file as text."""
        with path.open("rb") as packed_file, unpacked(packed_file, self.max_bytes) as file:
            yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")

    def _read_body(
        self, path: Path, file: TextIO, header: list[str], columns: Columns, values: dict[int, dict[str, int]]
    ) -> Float64s:
        """Read the rows as numbers; columns of text get the numbers of their distinct values, kept in ``values``."""
        with readable(_CSV):
            first = next((line for line in file if line.strip()), None)
        if first is None:
            raise ValueError("there is a header but no row")
        converters: dict[int | str, Any] = {at: _coder(codes) for at, codes in values.items()}
        known = set(columns.read)
        # All cells of a row are read, so that rows of another length are seen; what has no role may hold anything.
        converters |= {at: _nothing for at, name in enumerate(header) if name not in known}
        try:
            return self._parse(chain([first], file), len(header), converters)
        except ValueError as error:
            self._explain(path, header, columns)
            raise ValueError(
                f"cannot be read as {_CSV}: the file is truncated or corrupt ({error})"
            ) from error

    def _parse(self, lines: Iterable[str], n_cells: int, converters: dict[int | str, Any]) -> Float64s:
        """Parse rows as long as the header."""
        body = np.loadtxt(
            lines,
            delimiter=self.separator,
            comments=None,
            quotechar='"',
            encoding="utf-8",
            converters=converters,
            ndmin=2,
        )
        if body.shape[1] != n_cells:
            raise ValueError(f"the rows have {body.shape[1]} cells, the header {n_cells}")
        return body

    def _explain(self, path: Path, header: list[str], columns: Columns) -> None:
        """Find the first bad line, slowly, and say what is wrong with it."""
        with self._text(path) as file:
            for line, row in _rows(file, self.separator):
                if len(row) != len(header):
                    raise ValueError(
                        f"line {line} has {len(row)} cells but the header has {len(header)}; the line is damaged, "
                        f"or a text with a {_SEPARATORS[self.separator]} in it needs quotes"
                    )
                for name, cell in zip(header, row, strict=True):
                    if (name in columns.data or name == columns.weight) and not _is_number(cell):
                        raise ValueError(_not_a_number(line, name, cell))

    def _proba(self, body: Float64s, at: list[int]) -> NDArray[Any]:
        """The probabilities, or logits; a single column has those of the second of two classes."""
        if len(at) == 1:
            return body[:, at[0]]
        proba = np.take(body, at, axis=1)
        return proba if self.layout.from_logits else _as_printed(proba)


class TsvReader(CsvReader):
    """A table of text whose cells are separated by tabs."""

    separator: ClassVar[str] = "\t"


def _read_header(file: TextIO, separator: str) -> list[str]:
    """Read the names of the columns."""
    with readable(_CSV):
        header = next(csv.reader(file, delimiter=separator), [])
    if not any(header):
        raise ValueError("the file is empty; the first line must name the columns: the classes and 'label'")
    other = next((mark for mark in ",;\t" if mark in header[0]), None)
    if len(header) == 1 and other is not None:
        said = {",": "csv", "\t": "tsv"}.get(other)
        fix = "save the file with ',' as separator" if said is None else f"say so by {_format_advice(said)}"
        raise ValueError(f"the columns are not separated by {_SEPARATORS[separator]}s; {fix}")
    if "" in header[1:]:
        raise ValueError(f"column {header.index('', 1) + 1} has no name; name it")
    # What pandas writes first, without a name, is the index.
    return [header[0] or f"{INDEX_PREFIX}0__", *header[1:]]


def _format_advice(name: str) -> str:
    return advice(f"format={name!r}", f"--format {name}")


def _nothing(_: str) -> float:
    return 0.0


def _coder(codes: dict[str, int]) -> Any:
    """Number the distinct values of a column in order of appearance."""
    return lambda text: codes.setdefault(text, len(codes))


def _rows(file: TextIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty rows below the header with their line numbers."""
    with readable(_CSV):
        reader = csv.reader(file, delimiter=separator)
        next(reader)
        yield from ((reader.line_num, row) for row in reader if row)


def _not_a_number(line: int, name: str, cell: str) -> str:
    """Say what a cell is instead of a number, and the likely cause."""
    if not cell.strip():
        return f"line {line}, column {name!r} is empty; give a number or drop the row"
    return f"line {line}, column {name!r} is {cell[:40]!r}, which is not a number. {not_a_class(name)}"


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
