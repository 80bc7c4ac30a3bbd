"""The command as a process: it says where it is, ends on Ctrl-C, and says so when a port is taken."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from itertools import cycle

import pytest

import polycal as pc
from polycal.explorer.server import open_door


@pytest.fixture
def predictions(tmp_path, fashion):
    path = tmp_path / "preds.npz"
    pc.write_predictions(path, fashion.labels, fashion.proba, class_names=fashion.class_names)
    return path


@pytest.fixture
def start(predictions):
    """Start the command; end what a test leaves running."""
    started = []

    def explore(*args):
        command = [sys.executable, "-m", "polycal", "explore", predictions, "--no-browser", *args]
        started.append(
            subprocess.Popen(
                list(map(str, command)),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield explore
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def get(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def test_it_serves_on_this_machine_until_interrupted(start):
    process = start("--quiet")
    base, _, token = process.stdout.readline().strip().partition("/#token=")
    assert base.startswith("http://127.0.0.1:")
    assert len(token) >= 40
    assert get(f"{base}/api/sample", token)["n_rows"] == 3000
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(f"{base}/api/sample", "wrong")
    # The search's process is of the same group, as in a terminal.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_it_ends_at_once_while_searching(start):
    process = start("--json")
    lines = [process.stdout.readline() for _ in range(3)]
    assert json.loads("".join(lines))["url"].startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_busy_port_is_one_line_and_exit_code_two(start):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = start("--port", port)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    expected = f"polycal: port {port} is in use by another program; choose another with --port"
    assert err.startswith(expected)
    assert err.count("\n") == 1


def test_the_door_is_on_the_loopback_address_only():
    one, other = open_door(0), open_door(0)
    with one.listener, other.listener:
        assert one.listener.getsockname() == ("127.0.0.1", one.port)
        assert one.token != other.token
        assert one.url == f"http://127.0.0.1:{one.port}/#token={one.token}"


def test_answers_are_sent_without_delay():
    door = open_door(0)
    with (
        door.listener,
        socket.create_connection(("127.0.0.1", door.port)),
        door.listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_not_ours_to_have(monkeypatch):
    def refuse(address):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refuse)
    with pytest.raises(OSError, match=r"port 80 cannot be opened \(Permission denied\); choose another"):
        open_door(80)


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "polycal.explorer.server")
    with pytest.raises(ImportError, match=r"pip install 'polycal\[explore\]'"):
        import polycal.explorer.server  # noqa: F401, PLC0415


def test_idle_connections_do_not_stop_it(start):
    process = start("--quiet")
    base, _, token = process.stdout.readline().strip().partition("/#token=")
    # As many files as some systems allow.
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
    address = ("127.0.0.1", int(base.rpartition(":")[2]))
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(address, timeout=30)) for _ in range(300)]
        # Some begin to ask, some do not take the answer.
        host = f"Host: {base.removeprefix('http://')}\r\n"
        for connection, asked in zip(
            idle, cycle(["", "POST / HTTP/1.1\r\n", f"GET /assets/vega.js HTTP/1.1\r\n{host}\r\n"])
        ):
            with suppress(ConnectionError):
                connection.sendall(asked.encode())
        assert get(f"{base}/api/sample", token)["n_rows"] == 3000
        # All of them are closed after a while.
        for connection in idle:
            with suppress(ConnectionError):
                while connection.recv(1000):
                    pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert len(err) < 10_000
