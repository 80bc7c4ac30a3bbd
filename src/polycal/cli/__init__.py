"""The command: one file per subcommand; each parses, calls and prints."""

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command. Ctrl-C ends it without a word, also while it is still being imported."""
    try:
        from polycal.cli.app import main as run  # noqa: PLC0415 - slow to import

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
