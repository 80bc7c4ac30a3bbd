"""Files of answers opened together: rows of the same options, in full or, where lists of tokens end early, as lists."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial, reduce

import numpy as np

from polycal._typing import Bools
from polycal._validation import check_chunk
from polycal.io.answers import Answer
from polycal.io.chunks import Chunk, PredictionFiles
from polycal.io.jsonl import OTHER, Form, JsonlReader, beside, class_names
from polycal.io.layout import Layout
from polycal.io.lists import ListFiles
from polycal.io.memory import remote_room
from polycal.io.paths import FilePath
from polycal.io.reader import Part, Reader
from polycal.listed import csr
from polycal.sample import Remainder
from polycal.storage.damage import named, rows_from

# Rows of a chunk: answers are few numbers, but parsing them takes Python objects.
_CHUNK_ROWS = 1 << 13
_HIDDEN = "(not listed {})"


@dataclass(frozen=True, eq=False, repr=False)
class AnswerFiles(PredictionFiles):
    """Files of answers that are complete. The attributes are those of `PredictionFiles`."""

    form: Form = field(default_factory=Form)

    def reader(self, path: FilePath) -> Reader:
        """What reads one of the files, laid out as all are."""
        return _reader(path, self.memory, self.layout, self.form)

    @property
    def chunk_rows(self) -> int:
        """Rows in a chunk, at most."""
        return min(super().chunk_rows, _CHUNK_ROWS)


@dataclass(frozen=True, eq=False, repr=False)
class AnswerLists(ListFiles):
    """Files of answers some of which do not list all options: chunks have a `ListedSample`.

    The classes are the options, other answers, and as many classes that are never listed, among which what is left over
    by a list of tokens and belongs to no option finds room. No class that is not listed has more than the least listed
    token, as lists of the most likely ones have it.
    """

    form: Form = field(default_factory=Form)

    def reader(self, path: FilePath) -> Reader:
        """What reads one of the files."""
        return _reader(path, self.memory, self.layout, self.form)

    def _unread(self, path: FilePath, first_row: int, n_threads: int) -> Iterator[Callable[[], Chunk | None]]:
        del n_threads
        reader = _reader(path, self.memory, self.layout, self.form)
        chosen = None if self.part == "all" else reader.chosen(self.part)
        number = first_row
        for start, answers in reader.line_chunks(_CHUNK_ROWS):
            marks = None if chosen is None else chosen[start : start + len(answers)]
            yield partial(self._made_answers, answers, marks, path, start, number)
            number += len(answers) if marks is None else int(np.count_nonzero(marks))

    def _made_answers(
        self, answers: list[Answer], marks: Bools | None, path: FilePath, start: int, number: int
    ) -> Chunk | None:
        """Answers, checked, with their rows' numbers; None if none of them is of the part asked for."""
        with named(path), rows_from(start):
            about = beside(answers, self.layout)
            if about["labels"] is None:
                raise ValueError("the file has no answers; audits need them")
            sample = check_chunk(
                about["labels"],
                listed_rows(answers, self.form.n_options),
                sample_weight=about["sample_weight"],
                class_names=self.class_names,
                remainder=self.remainder,
            )
        columns = about["columns"]
        if sample is not None and marks is not None:
            sample = sample.take(marks)
            columns = {key: column[marks] for key, column in columns.items()}
        if sample is None or sample.n_samples == 0:
            return None
        return Chunk(sample, np.arange(number, number + sample.n_samples), columns)


def open_answers(
    paths: tuple[FilePath, ...], memory: int, part: Part, remainder: Remainder, layout: Layout
) -> PredictionFiles | None:
    """Files of answers; None if they hold tables."""
    forms = []
    for path in paths:
        with named(path):
            forms.append(_reader(path, memory, layout, None).own_form())
    form = reduce(Form.merged, forms, Form())
    if form.columns is not None:
        return None
    if not form.n_rows:
        raise ValueError(f"{paths[0]}: there is no row in these files")
    if not form.is_cut:
        return AnswerFiles(
            paths, form.n_options + form.has_other, class_names(form), memory, part, layout, form=form
        )
    names = (*form.names, OTHER, *(_HIDDEN.format(i + 1) for i in range(form.n_options + 1)))
    return AnswerLists(paths, len(names), names, memory, part, layout, remainder=remainder, form=form)


def listed_rows(answers: list[Answer], n_options: int) -> object:
    """Answers as lists: options and other answers as far as they are known, the rest among what is not listed.

    A row that lists u options too few leaves r over, of which each of the u has at most the least listed token c. So
    other answers have at least what is listed of them and r - u c; the rest is not known.
    """
    indptr, indices, values = [0], [], []
    for answer in answers:
        missing = int(np.isnan(answer.proba).sum())
        free = min(answer.hidden, missing * answer.least)
        known = answer.other + answer.hidden - free
        entries = {i: float(p) for i, p in enumerate(answer.proba) if not np.isnan(p)}
        # Less than the least listed token would say too much of what is not listed.
        if known >= answer.least or not missing:
            entries[n_options] = known
        if not missing:
            # All is known: options that other questions have, and this one has not, are listed with 0.
            entries |= {i: 0.0 for i in range(2 * n_options + 2) if i not in entries}
        indices += sorted(entries)
        values += [entries[i] for i in sorted(entries)]
        indptr.append(len(indices))
    return csr(np.array(indptr), np.array(indices, dtype=np.int64), np.array(values), 2 * n_options + 2)


def _reader(path: FilePath, memory: int, layout: Layout, form: Form | None) -> JsonlReader:
    reader = JsonlReader(path, memory // 2, remote_room(memory), layout)
    reader.form = form
    return reader
