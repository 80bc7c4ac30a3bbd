import stat
import sys

import pytest

from polycal.storage.atomic import replacing

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")


def test_the_file_appears_complete_and_alone(tmp_path):
    path = tmp_path / "a.bin"
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_no_other(tmp_path, failure):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(failure), replacing(path) as file:  # noqa: PT012
        file.write(b"half")
        raise failure
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_to_replace_removes_the_temporary_file(tmp_path):
    path = tmp_path / "a.bin"
    path.mkdir()
    with pytest.raises(OSError, match=r"a\.bin"), replacing(path) as file:
        file.write(b"new")
    assert list(tmp_path.iterdir()) == [path]


@posix
def test_permissions_are_the_usual_ones_or_those_of_the_old_file(tmp_path):
    ordinary, private = tmp_path / "ordinary", tmp_path / "private"
    ordinary.touch()
    usual = stat.S_IMODE(ordinary.stat().st_mode)
    private.touch(mode=0o600)
    for path in (tmp_path / "new", private):
        with replacing(path) as file:
            file.write(b"new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == usual
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


@posix
def test_a_link_is_written_through(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
