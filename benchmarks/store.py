"""Results as lines of JSON: appended as they come, so that an interrupted run goes on where it stopped."""

import json
import math
import os
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
DIGITS = 6


def results_folder(quick, *, own=False):
    """Where results are kept: those of quick runs, and of predictions that are not those of the page, apart."""
    return FOLDER / ("own" if own else "") / ("quick" if quick else "")


def keep_out_of_git(folder):
    """Make a folder that version control does not look at."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")


class Store:
    """Rows of one section, each found by the values of its key fields.

    Parameters
    ----------
    path : path
        The file, made when the first row is added.
    key : sequence of str
        The fields that tell rows apart. Of rows with the same key the last one counts.
    """

    def __init__(self, path, key):
        self.path, self.key = Path(path), tuple(key)
        self._rows = self._read()

    @property
    def rows(self):
        """All rows, sorted by key."""
        return [self._rows[key] for key in sorted(self._rows, key=lambda key: tuple(map(_sortable, key)))]

    def find(self, **key):
        """The row with this key, or None."""
        return self._rows.get(self._key_of(key))

    def add(self, row):
        """Enter a row, and write it at once."""
        row = {name: _rounded(value) for name, value in row.items()}
        self._rows[self._key_of(row)] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            # A line that an interruption cut short must not take the next one with it.
            is_cut = file.tell() and not _ends_with_newline(file)
            file.write(b"\n" * is_cut + _line(row).encode())

    def discard(self, rows):
        """Forget some rows."""
        for row in rows:
            del self._rows[self._key_of(row)]
        self._write()

    def clear(self):
        """Forget all rows."""
        self._rows = {}
        self.path.unlink(missing_ok=True)

    def compact(self):
        """Write the file anew: sorted, one line for each key, with what other runs have added since."""
        self._rows = self._read()
        if self._rows:
            self._write()

    def _write(self):
        """The file anew, in one piece."""
        whole = self.path.with_suffix(".whole")
        whole.write_text("".join(map(_line, self.rows)))
        whole.replace(self.path)

    def _read(self):
        """The rows of the file, by key."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        rows = [row for row in map(_parse, lines) if row is not None]
        return {self._key_of(row): row for row in rows}

    def _key_of(self, row):
        return tuple(row[field] for field in self.key)


def _ends_with_newline(file):
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _parse(line):
    """A row, or None for a line that an interruption cut short."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _line(row):
    return json.dumps(row, separators=(",", ":")) + "\n"


def _rounded(value):
    """Floats to a few digits; those that JSON lacks as None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _sortable(value):
    """Numbers before text, so that any two keys compare."""
    return (0, value, "") if isinstance(value, int | float) else (1, 0, str(value))
