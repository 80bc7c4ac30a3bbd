"""How to cite, how to reproduce, how to go on: the last lines of every report."""

from typing import Any

PAPER_URL = "https://arxiv.org/abs/2402.07821"
PAPER = (
    "Parikshit Gopalan, Lunjia Hu and Guy N. Rothblum (2024). On Computationally Efficient Multi-Class Calibration. "
    "Conference on Learning Theory (COLT)."
)

BIBTEX = """@inproceedings{gopalan2024multiclass,
  title     = {On Computationally Efficient Multi-Class Calibration},
  author    = {Gopalan, Parikshit and Hu, Lunjia and Rothblum, Guy N.},
  booktitle = {Conference on Learning Theory (COLT)},
  year      = {2024},
  note      = {arXiv:2402.07821}
}
@software{polycal,
  title   = {polycal: multi-class calibration},
  author  = {{The polycal developers}},
  version = {VERSION}
}"""

NEXT_COMMANDS = (
    "polycal recalibrate calibration_rows.npz --out model.polycal",
    "polycal audit other_rows.npz --calibrator model.polycal --html after.html",
)


def bibtex(audit: dict[str, Any]) -> str:
    """Entries for the paper and for the software in the version that was used."""
    return BIBTEX.replace("VERSION", audit["versions"]["polycal"])


def python_call(audit: dict[str, Any]) -> str:
    """The audit as a call in Python; the data and any auditors of one's own are for the reader to fill in."""
    definitions = [error["definition"] for error in audit["errors"]]
    arguments = [
        *(
            [f"notions=[{', '.join(f'pc.{notion}' for notion in definitions)}]"]
            if not audit["default_notions"]
            else []
        ),
        *(["groups=groups"] if audit["groups"] else []),
        *(["sample_weight=sample_weight"] if audit["weighted"] else []),
        *(["calibrator=calibrator"] if audit["calibrator"] else []),
        f"alpha={audit['alpha']:g}",
        f"random_state={audit['random_state']}",
    ]
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"import polycal as pc\n\naudit = pc.audit(\n    y_true, y_proba,\n{lines})\naudit.to_html('report.html')"


def version_words(audit: dict[str, Any]) -> str:
    """Versions in one line."""
    return ", ".join(f"{name} {number}" for name, number in audit["versions"].items())


def limits(audit: dict[str, Any]) -> list[str]:
    """What the audit could not have seen, in sentences."""
    said = [
        "Only the searches in the table were run: a model can be wrong in ways that none of them looks at.",
        "To rule out every way of being wrong would take more rows than anybody has.",
        "Rows stand for other rows like them. On data of another kind the same model may be wrong elsewhere.",
    ]
    said.extend(audit["approximations"])
    if audit["weighted"]:
        said.append(
            "Rows were weighted. A row of weight 2 counts double but is one observation: the intervals in bins take "
            "rows, not weights, as their number."
        )
    if audit["after"] is not None:
        said.append(
            "The calibrator must not have been fitted on these rows: on the rows of its fit, any calibrator looks good."
        )
    return said
