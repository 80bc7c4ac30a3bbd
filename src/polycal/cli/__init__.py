"""The command: one file per subcommand; each parses, calls and prints."""

from polycal.cli.app import main

__all__ = ["main"]
