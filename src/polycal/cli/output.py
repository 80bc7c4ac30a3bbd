"""How subcommands print: tables for people, JSON for machines, progress on stderr where somebody looks."""

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

import polycal as pc
from polycal._text import printable
from polycal._threads import the_only_bar
from polycal.io.layout import Layout, Roles
from polycal.report.terminal import render

# Exit codes besides 0.
FOUND, BAD_INPUT = 1, 2


def print_audit(result: "pc.Audit", *, as_json: bool) -> None:
    """An audit on standard output."""
    data = result.to_dict()
    if as_json:
        print_json(data)
    else:
        Console(highlight=False).print(render(data))


def say(text: str, *, err: bool = False) -> None:
    """Words for people, on standard output or standard error; names of files in them are data."""
    typer.echo(printable(text, lines=True), err=err)


def tell_roles(roles: Roles, layout: Layout) -> None:
    """Say what was made of a file, where it leaves that open: which columns are classes."""
    # Of arrays that have no role a warning tells.
    told = str(roles if roles.word == "column" else replace(roles, unused=()))
    normal = "rows are divided by their sums, which rounding may have moved" if layout.normalize else ""
    said = "; ".join(filter(None, (told, normal)))
    if said:
        say(f"Note: {said}.")


def print_json(data: dict[str, Any]) -> None:
    """Plain data on standard output; JSON has no infinity, so what is not finite is null."""
    typer.echo(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


@contextmanager
def working(text: str, *, quiet: bool) -> Iterator[None]:
    """A spinner on stderr while something runs; nothing when stderr is not a terminal."""
    with the_only_bar():
        if quiet or not sys.stderr.isatty():
            yield
            return
        with Console(stderr=True).status(Text(printable(text))):
            yield
