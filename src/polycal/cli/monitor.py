"""``polycal monitor``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._text import printable
from polycal._threads import thread_budget
from polycal.cli.inputs import STDIN, read_calibrator, shown, usable_memory
from polycal.cli.layout import names_in, reads_columns
from polycal.cli.options import GroupsOption, JobsOption, JsonOption, PartOption, QuietOption, SeedOption
from polycal.cli.output import FOUND, print_json, say, working
from polycal.io.layout import Layout
from polycal.io.paths import FilePath
from polycal.monitoring.ledger import Ledger, files_of, read_monitor, with_columns
from polycal.report.assets import check_pages
from polycal.report.monitor import prometheus as prometheus_text
from polycal.storage.atomic import check_writable, replacing

StateArgument = Annotated[
    Path,
    typer.Argument(metavar="STATE", help="The monitor's file; made at first, and replaced after each file."),
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Predictions with labels, in the order in which they came; folders, patterns and URLs too. What was "
        "counted before, by its contents, is not counted again.",
    ),
]
AlphaOption = Annotated[
    float | None, typer.Option("--alpha", help="Probability of a false alarm, ever; at first 0.01.")
]
ToleranceOption = Annotated[
    float | None,
    typer.Option(
        "--tolerance", metavar="ERROR", help="Only an error above this of some question is an alarm."
    ),
]
AlarmsOption = Annotated[
    str | None, typer.Option("--alarms", help="once, or many: begin anew after each; at first once.")
]
ReferenceOption = Annotated[
    str | None,
    typer.Option(
        "--reference",
        metavar="MODEL",
        help="Watch for change since then: a saved calibrator, or predictions with labels to fit one on.",
    ),
]
SliceOption = Annotated[
    list[str] | None,
    typer.Option("--slice-by", metavar="A,B,...", help="Columns whose values are watched on their own."),
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", metavar="PAGE", help="Write what was seen as one HTML page that opens offline."),
]
PrometheusOption = Annotated[
    Path | None,
    typer.Option(
        "--prometheus", metavar="TEXT", help="Write numbers for Prometheus's collector of text files."
    ),
]
FollowOption = Annotated[
    bool, typer.Option("--follow", help="Wait for new files, until there is an alarm or Ctrl-C.")
]
EveryOption = Annotated[
    float, typer.Option("--every", metavar="SECONDS", min=0.01, help="How often to look for new files.")
]
# A file that was changed a moment ago may not be whole yet.
_SETTLED = 2.0


@reads_columns
def monitor(
    state: StateArgument,
    files: FilesArgument,
    *,
    alpha: AlphaOption = None,
    tolerance: ToleranceOption = None,
    alarms: AlarmsOption = None,
    reference: ReferenceOption = None,
    groups: GroupsOption = None,
    slice_by: SliceOption = None,
    part: PartOption = "all",
    layout: Layout,
    html: HtmlOption = None,
    prometheus: PrometheusOption = None,
    follow: FollowOption = False,
    every: EveryOption = 10.0,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Take in FILE, and raise an alarm (exit code 1) when the predictions have stopped being right.

    **Example:** polycal monitor state.polycal preds.npz --reference model.polycal --tolerance 0.1 --html monitor.html
    """
    del seed  # nothing here is random
    for page in filter(None, (state, html, prometheus)):
        check_writable(page)
    if html is not None:
        check_pages()
    if STDIN in files:
        raise ValueError("standard input has no contents to be known by; give monitor files.")
    given = {"alpha": alpha, "tolerance": tolerance, "alarms": alarms}
    with thread_budget(jobs), _alone(state):
        columns = with_columns(layout, names_in(slice_by) or [])
        watched = _opened(state, given, reference, groups)
        ledger = Ledger(state, watched, usable_memory(), part, columns)  # type: ignore[arg-type]
        told = _Told(ledger, html, prometheus, quiet=quiet or as_json)
        before = watched.alarm_row if watched.alarms == "many" else None
        if follow:
            with suppress(KeyboardInterrupt):
                _follow(files, every, told)
        else:
            with working(f"taking in {shown(files)}", quiet=quiet):
                for path in files_of(files):
                    told.count(path)
        told.write()
    if as_json:
        print_json({"state": str(state), "files": told.counted} | ledger.monitor.to_dict())
    elif not quiet:
        say(f"Files counted: {len(told.counted)}, known already: {told.known}.\n{ledger.monitor}")
    if ledger.monitor.alarm_row != before:
        raise typer.Exit(FOUND)


class _Told:
    """What was done with files, and pages that are kept up to date."""

    def __init__(self, ledger: Ledger, html: Path | None, prometheus: Path | None, *, quiet: bool) -> None:
        self.ledger, self.html, self.prometheus, self.quiet = ledger, html, prometheus, quiet
        self.counted: list[str] = []
        self.known = 0

    def count(self, path: FilePath) -> bool:
        """Count a file, unless it was counted before."""
        is_new = self.ledger.count(path) == "counted"
        if is_new:
            self.counted.append(str(path))
        else:
            self.known += 1
        return is_new

    def write(self) -> None:
        """Write the pages anew."""
        if self.html is not None:
            self.ledger.monitor.to_html(self.html, title=self.ledger.path.name)
        if self.prometheus is not None:
            with replacing(self.prometheus) as file:
                file.write(prometheus_text(self.ledger.monitor.to_dict()).encode())


def _follow(given: list[str], every: float, told: _Told) -> None:
    """Count files as they come, until an alarm; what is not there yet, or cannot be counted, is told of once."""
    done: set[str] = set()
    while True:
        for name in given:
            with _telling_once(done):
                for path in files_of([name]):
                    with _telling_once(done):
                        if str(path) in done or not _is_settled(path, every):
                            continue
                        done.add(str(path))
                        if told.count(path) and not told.quiet:
                            say(repr(told.ledger.monitor))
        told.write()
        if told.ledger.monitor.alarm and told.ledger.monitor.alarms == "once":
            return
        time.sleep(every)


@contextmanager
def _telling_once(told: set[str]) -> Iterator[None]:
    """Go on after what goes wrong."""
    try:
        yield
    except (ValueError, TypeError, OSError) as error:
        text = f"polycal: {printable(str(error))}"
        if text not in told:
            told.add(text)
            say(text, err=True)


def _is_settled(path: FilePath, every: float) -> bool:
    """Whether a file was not changed just now."""
    return not isinstance(path, Path) or time.time() - path.stat().st_mtime >= min(_SETTLED, every)


def _opened(state: Path, given: dict[str, Any], reference: str | None, groups: Path | None) -> "pc.Monitor":
    """The monitor in its file, which was begun with the same options; or a new one."""
    if not state.exists():
        options = {name: value for name, value in given.items() if value is not None}
        named = None if groups is None else pc.read_groups(groups)
        return pc.Monitor(**options, reference=_reference(reference), groups=named)
    watched = read_monitor(state)
    for name, value in given.items():
        if value is not None and value != getattr(watched, name):
            raise ValueError(
                f"{state} was begun with --{name} {getattr(watched, name)}; leave --{name} out, or begin a new file."
            )
    for name, path in (("reference", reference), ("groups", groups)):
        if path is not None:
            raise ValueError(f"{state} was begun already; leave --{name} out, or begin a new file.")
    return watched


def _reference(path: str | None) -> Any:
    if path is None:
        return None
    return read_calibrator(Path(path)) if path.endswith(".polycal") else pc.read_predictions(path)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    """Refuse to work on a file that another process works on; where the system cannot tell, nothing is refused."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    lock = state.with_name(f".{state.name}.lock")
    with lock.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ValueError(f"{state}: another polycal monitor is at work on it.") from error
        yield
