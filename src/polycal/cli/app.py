"""The subcommands put together, and what bad input ends in."""

import sys
import warnings
from typing import Annotated, Any

import typer

import polycal as pc
from polycal._text import for_terminal, printable
from polycal.cli.answer import answer
from polycal.cli.apply import apply
from polycal.cli.audit import audit
from polycal.cli.compare import compare
from polycal.cli.demo import demo
from polycal.cli.explore import explore
from polycal.cli.monitor import monitor
from polycal.cli.output import BAD_INPUT
from polycal.cli.recalibrate import recalibrate

app = typer.Typer(
    help="Find the question about the label that a classifier's probabilities cannot be trusted for.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _command in (audit, monitor, recalibrate, apply, answer, compare, explore, demo):
    app.command()(_command)


@app.callback(invoke_without_command=True)
def _polycal(
    *, version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False
) -> None:
    if version:
        typer.echo(f"polycal {pc.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; bad input ends in one line on stderr and exit code 2, and a warning is one line, too."""
    with for_terminal(), warnings.catch_warnings():
        warnings.showwarning = _warn
        try:
            app()
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            # What runs out of memory may have none left for words.
            said = str(error) or "not enough memory"
            typer.echo(f"polycal: {printable(said)}", err=True)
            sys.exit(BAD_INPUT)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"polycal: {printable(str(message))}", err=True)
