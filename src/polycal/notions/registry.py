"""Notions by name, as the command line and files give them."""

from dataclasses import fields
from typing import Any

from polycal.notions._base import Notion
from polycal.notions.canonical import Canonical
from polycal.notions.classwise import Classwise
from polycal.notions.confidence import Confidence
from polycal.notions.decision import Decision
from polycal.notions.full_smooth import FullSmooth
from polycal.notions.halfspace import Halfspace
from polycal.notions.low_degree import LowDegree
from polycal.notions.projected_smooth import ProjectedSmooth
from polycal.notions.sigmoid import Sigmoid
from polycal.notions.subset_smooth import SubsetSmooth
from polycal.notions.top_label import TopLabel

_QUESTIONS = (Confidence, TopLabel, Classwise)
NOTIONS: dict[str, type[Notion]] = {
    notion.name: notion
    for notion in (
        *_QUESTIONS,
        Canonical,
        SubsetSmooth,
        ProjectedSmooth,
        Sigmoid,
        LowDegree,
        Decision,
        Halfspace,
        FullSmooth,
    )
}


def parse_notion(text: str) -> Notion:
    """Make a notion from its name, or from ``name:value`` with the value of its first parameter.

    ``confidence:smooth`` and the like, for the three notions made of questions, are their smooth forms.

    Examples
    --------
    >>> parse_notion("sigmoid:4"), parse_notion("classwise:smooth").smooth
    (Sigmoid(slope=4), True)
    """
    name, _, value = text.partition(":")
    if name not in NOTIONS:
        raise ValueError(f"notion {name!r} is not one of {', '.join(NOTIONS)}.")
    notion = NOTIONS[name]
    if not value:
        return notion()
    if value == "smooth" and issubclass(notion, _QUESTIONS):
        return notion(smooth=True)
    parameters = [f for f in fields(notion) if f.init]  # type: ignore[arg-type]  # notions are dataclasses
    if not parameters:
        raise ValueError(f"notion {name!r} has no parameter; leave out {value!r}.")
    return notion(**{parameters[0].name: _number(text, value)})


def _number(text: str, value: str) -> Any:
    """A whole number if it is one, else a float."""
    try:
        number = float(value)
    except ValueError:
        raise ValueError(f"notion {text!r}: {value!r} is not a number.") from None
    return int(number) if number.is_integer() and "." not in value else number
