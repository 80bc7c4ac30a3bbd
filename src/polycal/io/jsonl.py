"""JSON lines: answers of language models, whose options differ from question to question, and plain tables."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polycal._typing import Float64s
from polycal.io.answers import ANSWER_KEYS, Answer, letters, nested, read_answer
from polycal.io.columns import flags_from_codes, labels_from_codes
from polycal.io.gzipped import packed, unpacked
from polycal.io.layout import EVALUATION, WEIGHTS, Columns, Layout, not_a_class, sort_columns, writable_names
from polycal.io.reader import Classes, RawPredictions, Reader, UnreadChunk
from polycal.storage.atomic import replacing
from polycal.storage.damage import named, readable

# The class of tokens that are none of the options.
OTHER = "another answer"
# A line holds a question with its examples; more than that is no line.
_MOST_LINE = 1 << 24
# What lines may take that are read together, prompts and all.
_MOST_CHUNK = 1 << 26
# Keys of objects that are answers; objects without any of them are rows of a table.
_ANSWERS = ("filtered_resps", "resps", "proba", "logprobs", "top_logprobs", "choices", "response", "outputs")


@dataclass(frozen=True)
class Form:
    """What all lines of files of answers have in common: enough to lay their rows out alike.

    Attributes
    ----------
    n_rows : int
        Lines.
    n_options : int
        The most options of a question.
    options : tuple of str or None
        The options, if all questions have the same.
    has_other : bool
        Whether something is left to other answers than the options.
    is_cut : bool
        Whether some row does not list all its options.
    columns : Columns or None
        For a table, what its columns are; its labels, by their values.
    """

    n_rows: int = 0
    n_options: int = 0
    options: tuple[str, ...] | None = None
    has_other: bool = False
    is_cut: bool = False
    columns: Columns | None = None
    labels: Mapping[Any, int] = field(default_factory=dict, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What the options are called: their own names where all questions have the same, else letters."""
        same = self.options is not None and len(self.options) == self.n_options
        return self.options if same and self.options else letters(self.n_options)

    def merged(self, other: "Form") -> "Form":
        """That of two files together."""
        if not self.n_rows or not other.n_rows:
            return self if self.n_rows else other
        if (self.columns is None) != (other.columns is None):
            raise ValueError(
                "holds a table, but other files hold answers" if other.columns else "holds answers"
            )
        return Form(
            self.n_rows + other.n_rows,
            max(self.n_options, other.n_options),
            self.options if self.options == other.options else None,
            self.has_other or other.has_other,
            self.is_cut or other.is_cut,
            self.columns,
        )


class JsonlReader(Reader):
    """A file with one JSON object in each line, which may be compressed by gzip."""

    in_chunks: ClassVar[bool] = True
    labels: ClassVar[str] = f"a key such as {ANSWER_KEYS[0]!r} in each line"
    # How rows are laid out, where other files are read beside this one.
    form: Form | None = None

    def read(self) -> RawPredictions:
        """All lines."""
        parts = [read() for _, read in self.unread_chunks(1 << 16)]
        if not parts:
            raise ValueError("the file has no line")
        return parts[0] if len(parts) == 1 else _joined(parts)

    def classes(self) -> Classes | None:
        """The options, or the columns of a table."""
        form = self.own_form()
        if not form.n_rows:
            return None
        if form.columns is not None:
            return Classes(len(form.columns.classes), form.columns.class_names, form.columns.roles)
        if form.is_cut:
            raise ValueError("lists of tokens leave out some options; open them as a file, not as an array")
        return Classes(form.n_options + form.has_other, class_names(form))

    def n_rows(self) -> int:
        """Lines that are not empty."""
        return self.own_form().n_rows

    def own_form(self) -> Form:
        """What the lines of this file have in common; it takes a pass over them."""
        if isinstance(self.path, Path):
            about = self.path.stat()
            return _scanned(self.path, about.st_size, about.st_mtime_ns, self.max_bytes, self.layout)
        with self._on_disk() as path:
            return scan(path, self.max_bytes, self.layout)

    def unread_chunks(self, n_rows: int) -> Iterator[UnreadChunk]:
        """Rows of at most so many lines, parsed as they are read: of a line, little is kept."""
        form = self.form or self.own_form()
        for start, items in self.line_chunks(n_rows):
            if form.columns is not None:
                yield start, partial(_table_rows, items, form, self.layout, start)
            else:
                answers = [item for item in items if isinstance(item, Answer)]
                yield start, partial(_dense_rows, answers, form, self.layout)

    def line_chunks(self, n_rows: int) -> Iterator[tuple[int, list[Any]]]:
        """Objects or answers of at most so many lines, with the number of the first."""
        is_table = (self.form or self.own_form()).columns is not None
        kept: list[Any] = []
        size = start = 0
        with self._on_disk() as path:
            for number, line in _lines(path, self.max_bytes):
                kept.append(_slim(_parsed(number, line, self.layout, is_table=is_table), self.layout))
                size += len(line)
                if len(kept) >= n_rows or size > _MOST_CHUNK:
                    yield start, kept
                    start += len(kept)
                    kept, size = [], 0
        if kept:
            yield start, kept

    def _extent(self, *, marked: bool) -> tuple[int, NDArray[Any] | None]:
        if not marked:
            return self.n_rows(), None
        marks = [read().evaluation for _, read in self.unread_chunks(1 << 16)]
        known = [mark for mark in marks if mark is not None]
        return self.n_rows(), np.concatenate(known) if known and len(known) == len(marks) else None

    @staticmethod
    def write(path: Path, raw: RawPredictions) -> None:
        """Write a table, one object for each row."""
        names = writable_names(raw.class_names, raw.proba.shape[1])
        with replacing(path) as binary, packed(binary, path) as file:
            for i, row in enumerate(raw.proba.tolist()):
                item: dict[str, Any] = {}
                if raw.labels is not None:
                    label = int(raw.labels[i])
                    item["label"] = label if raw.class_names is None else raw.class_names[label]
                if raw.sample_weight is not None:
                    item["weight"] = float(raw.sample_weight[i])
                if raw.evaluation is not None:
                    item[EVALUATION] = bool(raw.evaluation[i])
                line = item | dict(zip(names, row, strict=True))
                file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())


def class_names(form: Form) -> tuple[str, ...]:
    """The classes of answers: the options and, if anything is left to them, other answers."""
    return (*form.names, OTHER) if form.has_other else form.names


def scan(path: Path, max_bytes: int, layout: Layout) -> Form:
    """Go over a file once, to learn what its lines have in common."""
    form = Form()
    is_table: bool | None = None
    labels: dict[Any, int] = {}
    for number, line in _lines(path, max_bytes):
        if is_table is None:
            is_table = _is_row(number, line)
        item = _parsed(number, line, layout, is_table=is_table)
        if isinstance(item, Answer):
            form = form.merged(_form_of(item))
            continue
        with named(f"line {number}"):
            columns = form.columns or sort_columns(list(item), layout)
            if columns.label is not None:
                labels.setdefault(_label_of(item, columns.label), number - 1)
            form = replace(form, n_rows=form.n_rows + 1, columns=columns)
    if form.columns is not None and labels:
        values = list(labels)
        codes = labels_from_codes(np.arange(len(values)), values, form.columns.classes, list(labels.values()))
        form = replace(form, labels=dict(zip(values, codes.tolist(), strict=True)))
    return form


@lru_cache(maxsize=256)
def _scanned(path: Path, size: int, changed: int, max_bytes: int, layout: Layout) -> Form:
    """`scan`, once for each state of a file."""
    del size, changed
    return scan(path, max_bytes, layout)


def _form_of(answer: Answer) -> Form:
    left = answer.other + answer.hidden
    is_cut = bool(np.isnan(answer.proba).any())
    options = None if answer.options is None else answer.options
    return Form(1, answer.proba.size, options, left > 0.0, is_cut)


def _lines(path: Path, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers counted from 1; a line may not be endless."""
    with path.open("rb") as raw, unpacked(raw, max_bytes) as file:
        number = 0
        while line := file.readline(_MOST_LINE + 1):
            number += 1
            if len(line) > _MOST_LINE:
                raise ValueError(f"line {number} is longer than {_MOST_LINE:,} bytes; give one object a line")
            if line.strip():
                yield number, line


def _parsed(number: int, line: bytes, layout: Layout, *, is_table: bool) -> Any:
    """The object, or answer, of a line."""
    with named(f"line {number}"):
        with readable("JSON"):
            item = json.loads(line, parse_constant=_refuse_constant)
        if is_table:
            if not isinstance(item, dict):
                raise ValueError("holds no object; give one in each line, such as {'cat': 0.9, 'dog': 0.1}")
            return item
        try:
            return read_answer(item, layout.label)
        except TypeError as error:
            raise ValueError(str(error)) from error


def _refuse_constant(text: str) -> float:
    if text == "-Infinity":
        return -np.inf
    raise ValueError(f"{text} is not a number")


def _is_row(number: int, line: bytes) -> bool:
    """Whether the first line is a row of a table: an object of numbers by class."""
    item = _parsed(number, line, Layout(), is_table=True)
    stated = "confidence" in item and "correct" in item
    return not stated and not any(key in item for key in _ANSWERS)


def _slim(item: Any, layout: Layout) -> Any:
    """An answer without what nobody asked for: prompts are long."""
    if not isinstance(item, Answer):
        return item
    kept = (*layout.columns, *((layout.weight,) if layout.weight else WEIGHTS), EVALUATION)
    return replace(item, fields={key: nested(item.fields, key) for key in kept})


# Rows


def _dense_rows(answers: list[Answer], form: Form, layout: Layout) -> RawPredictions:
    """Answers as full rows: questions with fewer options have 0 for those they do not have."""
    proba = np.zeros((len(answers), form.n_options + form.has_other))
    for row, answer in zip(proba, answers, strict=True):
        row[: answer.proba.size] = answer.proba
        if form.has_other:
            row[-1] = answer.other + answer.hidden
    return RawPredictions(proba, class_names=class_names(form), **beside(answers, layout))


def beside(answers: list[Answer], layout: Layout) -> dict[str, Any]:
    """Labels, weights, marks and columns of answers."""
    weight = layout.weight or next((key for key in WEIGHTS if answers[0].fields.get(key) is not None), None)
    marks = [answer.fields.get(EVALUATION) for answer in answers]
    return {
        "labels": _all_labels(answers),
        "sample_weight": None
        if weight is None
        else _float_column([a.fields.get(weight) for a in answers], weight),
        "evaluation": None if None in marks else _flags(marks),
        "columns": {key: _values([answer.fields.get(key) for answer in answers]) for key in layout.columns},
    }


def _all_labels(answers: list[Answer]) -> NDArray[Any] | None:
    labels = [answer.label for answer in answers]
    known = [label for label in labels if label is not None]
    if not known:
        return None
    if len(known) < len(labels):
        row = labels.index(None)
        raise ValueError(f"row {row} has no answer, and others have one; drop it or give it one")
    return np.array(known, dtype=np.int64)


def _table_rows(items: list[Any], form: Form, layout: Layout, start: int) -> RawPredictions:
    """Rows of a table."""
    columns = form.columns
    if columns is None:
        raise ValueError("holds no table")
    data = np.column_stack([_column(items, name, start, is_class=True) for name in columns.data])
    label = columns.label
    texts = [item.get(EVALUATION) for item in items] if columns.evaluation else []
    return RawPredictions(
        data if len(columns.data) > 1 else data[:, 0],
        from_logits=layout.from_logits,
        labels=None if label is None else np.array([form.labels[_label_of(item, label)] for item in items]),
        sample_weight=None if columns.weight is None else _column(items, columns.weight, start),
        class_names=columns.class_names,
        evaluation=_flags(texts) if columns.evaluation else None,
        columns={key: _values([item.get(key) for item in items]) for key in columns.others},
        roles=columns.roles,
    )


def _column(items: list[Any], name: str, start: int, *, is_class: bool = False) -> Float64s:
    values = [item.get(name) for item in items]
    if None in values:
        raise ValueError(
            f"row {start + values.index(None)} has no {name!r}; every object must have the same keys"
        )
    return _float_column(values, name, start, f". {not_a_class(name)}" if is_class else "")


def _float_column(values: list[Any], name: str, start: int = 0, fix: str = "") -> Float64s:
    wrong = (
        i for i, value in enumerate(values) if isinstance(value, bool) or not isinstance(value, int | float)
    )
    bad = next(wrong, None)
    if bad is not None:
        raise ValueError(f"{name!r} of row {start + bad} is {values[bad]!r:.40}, which is not a number{fix}")
    return np.array(values, dtype=np.float64)


def _flags(values: list[Any]) -> NDArray[Any]:
    texts = [str(value) for value in values]
    distinct = list(dict.fromkeys(texts))
    return flags_from_codes(np.array([distinct.index(text) for text in texts]), distinct)


def _label_of(item: Mapping[str, Any], name: str) -> Any:
    value = item.get(name)
    if value is None or isinstance(value, list | dict):
        raise ValueError(f"{name!r} is {value!r:.40}, which is not a label")
    return value


def _values(values: list[Any]) -> NDArray[Any]:
    """A column that is read along: float64 if it holds numbers, else text."""
    is_number = [
        value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values
    ]
    if all(is_number):
        return np.array([np.nan if value is None else float(value) for value in values])
    texts = [None if value is None else str(value) for value in values]
    return np.array([*texts, None], dtype=object)[:-1]


def _joined(parts: list[RawPredictions]) -> RawPredictions:
    """Several parts of the same file, one after the other."""

    def together(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    columns = {key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns}
    return replace(
        parts[0],
        proba=together("proba"),
        labels=together("labels"),
        sample_weight=together("sample_weight"),
        evaluation=together("evaluation"),
        columns=columns,
    )
