"""A contract for import-linter: a module with a leading underscore is imported by its own package only."""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application import contract_utils


class PrivateModules(Contract):
    """No import of ``package._module`` from outside of ``package``."""

    type_name = "private"

    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    unmatched_ignore_imports_alerting = fields.EnumField(
        contract_utils.AlertLevel, default=contract_utils.AlertLevel.ERROR
    )

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        warnings = contract_utils.remove_ignored_imports(
            graph, self.ignore_imports, self.unmatched_ignore_imports_alerting
        )
        found = sorted(
            (importer, imported)
            for imported in graph.modules
            for importer in graph.find_modules_that_directly_import(imported)
            if not may_import(importer, imported)
        )
        return ContractCheck(kept=not found, warnings=warnings, metadata={"found": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for importer, imported in check.metadata["found"]:
            output.print_error(f"{importer} imports {imported}, which is private to its package.")


def may_import(importer: str, imported: str) -> bool:
    """Whether the importer lies within the package of every private part of the path."""
    parts = imported.split(".")
    owners = [".".join(parts[:i]) for i in range(1, len(parts)) if parts[i].startswith("_")]
    return all(importer == owner or importer.startswith(f"{owner}.") for owner in owners)
