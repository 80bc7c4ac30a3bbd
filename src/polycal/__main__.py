"""``python -m polycal``."""

from polycal.cli import main

main()
