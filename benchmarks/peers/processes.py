"""Run jobs in another interpreter, each within a time limit, and bring back their results."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import numpy as np

WORKER = Path(__file__).with_name("worker.py")
GIBIBYTE = 1 << 30
# Seconds between looks for a result.
_PATIENCE = 0.02


@dataclass(frozen=True)
class Limits:
    """What one job may use.

    Attributes
    ----------
    seconds : float
        Wall-clock seconds of a job, from the end of its warm-up.
    memory : int
        Bytes beyond what the imports took.
    warm_up : float
        Wall-clock seconds of what comes before: imports, compilation, and a first call on a tiny problem.
    """

    seconds: float = 300.0
    memory: int = 8 * GIBIBYTE
    warm_up: float = 600.0


DEFAULT_LIMITS = Limits()


def run_job(python, job, arrays, limits=DEFAULT_LIMITS, *, worker=WORKER):
    """Do one job with another interpreter; see `Worker.run`."""
    with Worker(python, script=worker) as process:
        return process.run(job, arrays, limits)


def save_input(path, arrays):
    """Write the input arrays of a job."""
    np.savez(path, **arrays)
    return path


class Worker:
    """Another interpreter that does jobs one after another, so that its imports and warm-up are paid once.

    It is started by the first job, and again by the next one after it died or had to be stopped.

    Parameters
    ----------
    python : str
        The interpreter.
    script : path
        The script that does the jobs, given as lines of its standard input.
    """

    def __init__(self, python, *, script=WORKER):
        self._command = [python, str(script)]
        self._process = None
        self._folder = tempfile.TemporaryDirectory()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._stop()
        self._folder.cleanup()

    def run(self, job, arrays, limits=DEFAULT_LIMITS):
        """Do a job.

        Parameters
        ----------
        job : dict
            Task, method and package; see ``worker.py``.
        arrays : dict of str to ndarray, or path
            The input, or the ``.npz`` file that has it already.
        limits : Limits
            Time and memory.

        Returns
        -------
        dict
            The result, with ``status`` "ok", "failed" or "time limit", ``error`` unless ok, and ``output``, the array
            the job wrote, if any.
        """
        with tempfile.TemporaryDirectory(dir=self._folder.name) as name:
            folder = Path(name)
            job = {
                "memory_limit": limits.memory,
                **job,
                "input": str(
                    arrays if isinstance(arrays, Path) else save_input(folder / "input.npz", arrays)
                ),
                "output": str(folder / "output.npy"),
                "result": str(folder / "result.json"),
            }
            file = folder / "job.json"
            file.write_text(json.dumps(job))
            return self._wait(file, Path(job["result"]), Path(job["output"]), limits)

    def _wait(self, file, result, output, limits):
        """Hand a job over and wait for its result, no longer than the limits allow."""
        end, is_warm = monotonic() + limits.warm_up, False
        self._hand_over(file)
        while not result.exists():
            if self._process.poll() is not None:
                # It may have written the result since.
                return _read(result, output) if result.exists() else self._last_words()
            if not is_warm and result.with_suffix(".warm").exists():
                end, is_warm = monotonic() + limits.seconds, True
            if monotonic() > end:
                self._stop()
                return _too_late(limits, is_warm=is_warm)
            sleep(_PATIENCE)
        return _read(result, output)

    def _hand_over(self, file):
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._start()
        # A process that has died is reported by whoever waits for the result.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{file}\n")
            self._process.stdin.flush()

    def _start(self):
        folder = Path(self._folder.name)
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "TMPDIR": str(folder)}
        with (folder / "errors.txt").open("w") as errors:
            self._process = subprocess.Popen(
                self._command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def _stop(self):
        """End the process and all that it started."""
        if self._process is None:
            return
        # The whole session: peers start processes of their own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process = None

    def _last_words(self):
        """The failure of a process that ended without a result."""
        code = self._process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        said = Path(self._folder.name, "errors.txt").read_text(errors="replace").strip().splitlines()
        return {
            "status": "failed",
            "error": f"the process ended with {how} {''.join(said[-1:])}".strip()[:400],
        }


def _too_late(limits, *, is_warm):
    """The result of a job that had to be stopped; what a warm-up takes says nothing of larger problems."""
    if is_warm:
        return {"status": "time limit", "error": f"not finished after {limits.seconds:g} s"}
    return {"status": "failed", "error": f"imports and a first call took more than {limits.warm_up:g} s"}


def _read(result, output):
    found = json.loads(result.read_text())
    if output.exists() and found["status"] == "ok":
        found["output"] = np.load(output, allow_pickle=False)
    return found
