from pathlib import Path

import pytest

from polycal.storage import damage as module
from polycal.storage.damage import check_claim, named, readable


def damage(error):
    with named(Path("a.x")), readable("an X"):
        raise error


@pytest.mark.parametrize("error", [KeyError("k"), OSError("o"), RuntimeError(""), ValueError("one\ntwo")])
def test_any_failure_of_a_decoder_is_a_damaged_file(error):
    with pytest.raises(
        ValueError, match=r"^a\.x: cannot be read as an X: the file is truncated or corrupt \(\w+"
    ):
        damage(error)


def test_want_of_memory_is_not_said_to_be_damage():
    with pytest.raises(MemoryError, match=r"^a\.x: not enough memory, or the sizes"):
        damage(MemoryError("malloc failed"))


def test_a_claim_may_reach_the_limit():
    check_claim(10, 10)
    with pytest.raises(
        ValueError, match=r"\(11 bytes\), more than the limit of .* \(10 bytes\).* max_bytes=11"
    ):
        check_claim(11, 10)


def test_the_default_limit_looks_at_the_memory(tmp_path, monkeypatch):
    most = 16 << 30
    monkeypatch.setattr(module.os, "sysconf", lambda name: 1 << 32 if name == "SC_PHYS_PAGES" else 4096)
    monkeypatch.setattr(module, "_CONTAINER_LIMITS", (str(tmp_path / "max"), str(tmp_path / "none")))
    for said, limit in (("max\n", most), (f"{8 << 30}\n", 6 << 30), (f"{1 << 62}\n", most)):
        (tmp_path / "max").write_text(said)
        assert module.default_max_bytes() == limit
    monkeypatch.setattr(module.os, "sysconf", lambda name: 1 << 20 if name == "SC_PHYS_PAGES" else 4096)
    assert module.default_max_bytes() == 3 << 30
    assert most >= module.DEFAULT_MAX_BYTES
