"""The options that say what the columns of a file are: the same for every subcommand that reads predictions."""

import csv
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer

from polycal.io.layout import Layout

_OPTIONS: dict[str, Any] = {
    "label": Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="The column, or array, of labels.")
    ],
    "weight": Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="The column, or array, of weights.")
    ],
    "classes": Annotated[
        list[str] | None,
        typer.Option(
            "--classes",
            metavar="A,B,...",
            help="The columns that are classes, such as cat,dog or 'p_*'; of an array, the names of its columns.",
        ),
    ],
    "drop": Annotated[
        list[str] | None,
        typer.Option("--drop", metavar="A,B,...", help="Columns, or arrays, to leave out, such as id,fold."),
    ],
    "from_logits": Annotated[
        bool, typer.Option("--from-logits", help="The numbers are logits or log probabilities.")
    ],
    "normalize": Annotated[
        bool, typer.Option("--normalize", help="Divide rows by their sums: for rounded probabilities.")
    ],
    "format": Annotated[
        str | None,
        typer.Option(
            "--format", metavar="NAME", help="The format, such as csv, where the name does not tell."
        ),
    ],
}
_DEFAULTS = {"from_logits": False, "normalize": False}


def reads_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a subcommand the options of columns; it gets them as one argument, ``layout``.

    They stand where ``layout`` stands among its parameters.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name == "layout":
            parameters += [
                inspect.Parameter(
                    option, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(option), annotation=kind
                )
                for option, kind in _OPTIONS.items()
            ]
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def run(*args: Any, **given: Any) -> None:
        said = {name: given.pop(name) for name in _OPTIONS if name in given}
        for name in ("classes", "drop"):
            said[name] = names_in(said.get(name))
        command(*args, layout=Layout(**(said | {"drop": said["drop"] or ()})), **given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def names_in(texts: list[str] | None) -> list[str] | None:
    """Names separated by commas; a name with a comma in it stands in quotes."""
    if not texts:
        return None
    return [name.strip() for row in csv.reader(texts, skipinitialspace=True) for name in row if name.strip()]
