import pytest

from tests.contracts import may_import


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("polycal.io.chunks", "polycal.io._csv", True),
        ("polycal.cli.audit", "polycal.io._csv", False),
        ("polycal.cli.audit", "polycal.io.chunks", True),
        ("polycal.cli.audit", "polycal._threads", True),
        ("polycal.cli.audit", "polycal._validation.arrays", True),
        ("polycal.iota", "polycal.io._csv", False),
    ],
)
def test_private_modules_belong_to_their_package(importer, imported, allowed):
    assert may_import(importer, imported) == allowed
