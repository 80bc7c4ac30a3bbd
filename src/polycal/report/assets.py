"""What a page is made of beside its words: templates, styles and scripts of ours, and the Vega bundle."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from jinja2 import Environment, PackageLoader


@cache
def environment() -> Environment:
    """The templates; everything put into them is escaped."""
    return Environment(
        loader=PackageLoader("polycal.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )


@cache
def static(name: str) -> str:
    """A style sheet or script of ours."""
    return files("polycal.report").joinpath("static", name).read_text(encoding="utf-8")


def check_pages() -> None:
    """Refuse to begin what would end in a page that cannot be drawn."""
    if find_spec("vl_convert") is None:
        raise ImportError(
            "HTML pages need vl-convert-python, which is not installed: pip install 'polycal[report]'."
        )


@cache
def vega_bundle() -> str:
    """The libraries that draw Vega-Lite specifications, as one script that defines ``vegaEmbed``.

    They come out of the installed package vl-convert; nothing is downloaded.
    """
    check_pages()
    import vl_convert  # noqa: PLC0415 - large, and needed for pages only

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return inline_script(bundle)


def inline_script(source: str) -> str:
    """JavaScript that a page can hold: nothing in its strings ends the script element, or hides its end."""
    return re.sub(r"<(?=/script|!--|script)", r"\\x3c", source, flags=re.IGNORECASE)


def script_hash(script: str) -> str:
    """The hash by which a page's policy lets this script run, and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def policy(scripts: list[str]) -> str:
    """The page's Content-Security-Policy: only these scripts run, and nothing is loaded from anywhere."""
    hashes = " ".join(script_hash(script) for script in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def json_block(value: Any) -> str:
    """JSON for a script element of data: no character in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
