"""Write `docs/command.md` from the command itself: python docs/command.py."""

import re
from pathlib import Path

import typer

from polycal.cli.app import app

HEAD = """# The command

Every subcommand with its arguments and options, written by `python docs/command.py` from the command itself. Exit codes:
0 is success, 1 a gate that failed, 2 bad input. See also [files and their keys](files.md).
"""


def text() -> str:
    """The page."""
    root = typer.main.get_command(app)
    parts = [HEAD]
    for name, command in root.commands.items():
        said = re.sub(r"\s+", " ", (command.help or "").replace("**Example:**", "\n\nExample:").strip())
        said, _, example = said.partition(" Example: ")
        parts += [f"\n## polycal {name}\n", said + "\n"]
        if example:
            parts.append(f"```bash\n{example.strip()}\n```\n")
        parts.append("| option | meaning |\n|---|---|")
        parts += [row(parameter) for parameter in command.params if parameter.name != "help"]
        parts.append("")
    return "\n".join(parts)


def row(parameter) -> str:
    """One argument or option."""
    names = "`, `".join(parameter.opts + parameter.secondary_opts)
    if parameter.param_type_name == "argument":
        names = parameter.metavar or parameter.name
    elif parameter.metavar:
        names = f"{names} {parameter.metavar}"
    said = re.sub(r"\s+", " ", parameter.help or "").replace("|", "\\|")
    return f"| `{names}` | {said} |"


if __name__ == "__main__":
    Path(__file__).with_name("command.md").write_text(text(), encoding="utf-8")
