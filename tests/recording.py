"""Which functions of polycal each test calls: a plugin of pytest, loaded by ``-p tests.recording --recorded=FILE``.

Tests are run briefly, one case of each with few examples: for what they call, not for what they show.
"""

import cProfile
import json
from pathlib import Path

import pytest
from hypothesis import settings

import polycal

PACKAGE = str(Path(polycal.__file__).parent)
CALLS = {}


def function_name(item):
    """The test's name without its parameters."""
    return item.nodeid.partition("[")[0]


def pytest_addoption(parser):
    parser.addoption(
        "--recorded", type=Path, help="where the calls are written, as {test: [[file, line], ...]}"
    )


def pytest_collection_modifyitems(items):
    items[:] = {function_name(item): item for item in reversed(items)}.values()
    for item in items:
        # Where hypothesis keeps them; if it stops to, tests take longer.
        given = getattr(item.obj, "_hypothesis_internal_use_settings", None)
        if given is not None:
            item.obj._hypothesis_internal_use_settings = settings(given, max_examples=5)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    # Calls, not lines: modules are imported when first used, and that runs lines of every function there.
    with cProfile.Profile(builtins=False) as profile:
        result = yield
    codes = {entry.code for entry in profile.getstats() if not isinstance(entry.code, str)}
    CALLS[function_name(item)] = [
        (code.co_filename, code.co_firstlineno) for code in codes if code.co_filename.startswith(PACKAGE)
    ]
    return result


def pytest_sessionfinish(session):
    session.config.getoption("recorded").write_text(json.dumps(CALLS), encoding="utf-8")
