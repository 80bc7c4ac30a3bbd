"""How subcommands print: a table for people, JSON for machines."""

import json

import typer
from rich.console import Console

import polycal as pc
from polycal.report.terminal import render


def print_audit(result: pc.Audit, *, as_json: bool) -> None:
    """An audit on standard output."""
    data = result.to_dict()
    if as_json:
        typer.echo(json.dumps(data, indent=2))
    else:
        Console(highlight=False).print(render(data))
