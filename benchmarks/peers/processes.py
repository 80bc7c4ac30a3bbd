"""Run a job in a process of its own, within a time limit, and bring back its result."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

WORKER = Path(__file__).with_name("worker.py")
GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class Limits:
    """What one job may use.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds of the whole process, imports included.
    memory : int
        Bytes beyond what the imports took.
    """

    seconds: float = 300.0
    memory: int = 8 * GIBIBYTE


DEFAULT_LIMITS = Limits()


def run_job(python, job, arrays, limits=DEFAULT_LIMITS, *, worker=WORKER):
    """Do a job with another interpreter.

    Parameters
    ----------
    python : str
        The interpreter.
    job : dict
        Task, method and package; see ``worker.py``.
    arrays : dict of str to ndarray, or path
        The input, or the ``.npz`` file that has it already.
    limits : Limits
        Time and memory.
    worker : path
        The script that does the job.

    Returns
    -------
    dict
        The result, with ``status`` "ok", "failed" or "time limit", ``error`` unless ok, and ``output``, the array
        the job wrote, if any.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "memory_limit": limits.memory,
            **job,
            "input": str(arrays if isinstance(arrays, Path) else save_input(folder / "input.npz", arrays)),
            "output": str(folder / "output.npy"),
            "result": str(folder / "result.json"),
        }
        (folder / "job.json").write_text(json.dumps(job))
        said = _run([python, str(worker), str(folder / "job.json")], folder, limits.seconds)
        if said is None:
            return {"status": "time limit", "error": f"not finished after {limits.seconds:g} s"}
        return _read_result(Path(job["result"]), Path(job["output"]), said)


def save_input(path, arrays):
    """Write the input arrays of a job."""
    np.savez(path, **arrays)
    return path


def _run(command, folder, seconds):
    """Exit code and last words of a command; None if it had to be stopped."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TMPDIR": str(folder)}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # The whole session: peers start processes of their own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        return process.returncode, errors.strip().splitlines()[-1:] or [""]


def _read_result(result, output, said):
    code, words = said
    if not result.exists():
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return {"status": "failed", "error": f"the process ended with {how} {words[0]}".strip()[:400]}
    found = json.loads(result.read_text())
    if output.exists() and found["status"] == "ok":
        found["output"] = np.load(output, allow_pickle=False)
    return found
