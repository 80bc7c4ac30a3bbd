"""What a reader should know of the calls of some methods."""

from benchmarks.methods import own_methods
from benchmarks.peers.recalibrators import RECALIBRATORS
from benchmarks.rendering import markdown


def calls_part(rows):
    """The notes on those of the methods that have one."""
    notes = {method.name: method.note for method in own_methods()[0]}
    notes.update({name: entry.note for name, entry in RECALIBRATORS.items()})
    lines = [
        f"- {markdown.escape(name)}: {markdown.escape(notes[name])}."
        for name in sorted({row["method"] for row in rows})
        if notes.get(name)
    ]
    return "## Notes on the calls\n\n" + "\n".join(lines) if lines else ""
