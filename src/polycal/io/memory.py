"""How much memory may be used, and what of it is left for data."""

import re

DEFAULT_MEMORY = 1 << 30
# What the interpreter, NumPy, SciPy, the compiler and PyArrow take by themselves.
_BASE_MEMORY = 404 << 20
# The share of the rest that is held of a file elsewhere.
_REMOTE_SHARE = 8
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SIZE = re.compile(r"\s*([0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", flags=re.IGNORECASE)


def free_memory(memory: int) -> int:
    """Bytes left for data and results."""
    return memory - _BASE_MEMORY


def remote_room(memory: int) -> int:
    """Bytes that may be held of a file that is not on this machine."""
    return free_memory(memory) // _REMOTE_SHARE


def parse_memory(memory: int | str) -> int:
    """Bytes, from a number or a text such as "1GiB"; at least 512 MiB."""
    if isinstance(memory, str):
        match = _SIZE.fullmatch(memory)
        if match is None:
            raise ValueError(f"memory must be a size such as '1GiB' or '512MiB'; got {memory!r}.")
        memory = int(float(match[1]) * 2 ** _UNITS[match[2].upper()])
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 512 << 20:
        raise ValueError(f"memory must be at least '512MiB'; got {memory!r}.")
    return memory
