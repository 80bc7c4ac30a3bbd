import os
import signal
import stat
import subprocess
import sys

import pytest

from polycal.storage.atomic import check_writable, replacing

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


@posix
def test_pipes_and_devices_are_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/dev/null")
    for path in (pipe, link):
        with pytest.raises(ValueError, match=f"{path}: is a pipe or a device"):
            check_writable(path)
        with pytest.raises(ValueError, match="is a pipe or a device"), replacing(path):
            pass
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_what_cannot_be_written_is_known_before_the_work(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        check_writable(tmp_path / "folder")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_writable(tmp_path / "missing" / "a")
    check_writable(tmp_path / "new")
    (tmp_path / "old").touch()
    check_writable(tmp_path / "old")


ENDED = """
import os, signal, sys
from pathlib import Path
from polycal.storage.atomic import replacing, temporary_folder

with temporary_folder() as folder, replacing(Path(sys.argv[1])) as file:
    (folder / "copy").write_bytes(b"half")
    file.write(b"half")
    os.kill(os.getpid(), int(sys.argv[2]))
    file.write(b"whole")
"""


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_leave_no_temporary_files(tmp_path, name):
    path, number = tmp_path / "a.bin", getattr(signal, name)
    path.write_bytes(b"old")
    command = [sys.executable, "-c", ENDED, str(path), str(int(number))]
    done = subprocess.run(command, check=False, env=os.environ | {"TMPDIR": str(tmp_path)})
    assert done.returncode == -number
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


@posix
def test_handlers_are_as_before(tmp_path):
    def own(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, own)
    try:
        with replacing(tmp_path / "a"):
            assert signal.getsignal(signal.SIGTERM) is own
            assert signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is own
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
