import base64
import hashlib
import json

import pytest
from tests.report.conftest import HOSTILE

from polycal.report import assets


def test_json_cannot_end_its_element():
    text = assets.json_block(HOSTILE)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == HOSTILE


def test_nan_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        assets.json_block(float("nan"))


def test_scripts_cannot_end_their_element():
    assert (
        assets.inline_script('"</script>" + "<!--" + "<SCRIPT"')
        == r'"\x3c/script>" + "\x3c!--" + "\x3cSCRIPT"'
    )


def test_the_policy_names_scripts_by_their_hash():
    digest = base64.b64encode(hashlib.sha256(b"f()").digest()).decode()
    policy = assets.policy(["f()"])
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")


def test_the_bundle_draws_and_is_made_once():
    bundle = assets.vega_bundle()
    assert "window.vegaEmbed" in bundle
    assert assets.vega_bundle() is bundle
    assert len(bundle) < 1_200_000


def test_a_missing_extra_is_one_line(monkeypatch):
    monkeypatch.setattr(assets, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'polycal\[report\]'"):
        assets.check_pages()
