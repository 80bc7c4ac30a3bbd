"""Installs built files in empty environments and uses them: ``python -m tests.installing dist/*`` (`make package`)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

# Everything optional must stay outside of a plain installation.
OPTIONAL = (
    "vl_convert",
    "matplotlib",
    "pyarrow",
    "ot",
    "cvxpy",
    "onnx",
    "starlette",
    "dask",
    "pandas",
    "torch",
)
# What a newcomer does first, in Python.
AUDIT = """
import importlib.util, json
import polycal as pc
example = pc.datasets.load_fashion("evaluation").take(slice(4000))
audit = pc.audit(example.labels, example.proba, class_names=example.class_names)
fixed = pc.TemperatureScaling().fit(example.proba, example.labels).predict_proba(example.proba)
print(json.dumps({
    "version": pc.__version__, "rows": audit.n_samples, "text": len(str(audit)), "fixed": fixed.shape[0],
    "optional": [name for name in %r if importlib.util.find_spec(name)],
}))
"""


def run(*command: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that must end with an exit code."""
    made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    if made.returncode != code:
        sys.exit(f"{' '.join(map(str, command))} ended with {made.returncode}:\n{made.stdout}{made.stderr}")
    return made


def check(file: Path, folder: Path) -> str:
    """Install one file in a new environment; what was seen, in a line."""
    run(sys.executable, "-m", "venv", folder)
    python, command = folder / "bin" / "python", folder / "bin" / "polycal"
    run(python, "-m", "pip", "install", "--quiet", file.resolve())
    seen = json.loads(run(python, "-W", "error", "-c", AUDIT % (OPTIONAL,)).stdout.splitlines()[-1])
    assert (seen["rows"], seen["fixed"]) == (4000, 4000)
    assert seen["text"] > 200
    assert seen["optional"] == [], f"a plain installation brings {seen['optional']}"
    assert "Not calibrated" in run(command, "demo").stdout
    example = (
        folder / "lib" / f"python3.{sys.version_info.minor}" / "site-packages/polycal/data/fashion_mlp.npz"
    )
    missing = run(command, "audit", example, "--html", folder / "page.html", code=2).stderr
    assert missing.strip().endswith("pip install 'polycal[report]'.")
    assert len(missing.splitlines()) == 1
    run(python, "-m", "pip", "install", "--quiet", f"{file.resolve()}[report]")
    run(command, "audit", example, "--html", folder / "page.html", "--quiet")
    assert (folder / "page.html").stat().st_size > 100_000
    return f"{file.name}: polycal {seen['version']} audits, repairs, and writes a page with its extra"


def main(files: list[str]) -> None:
    """Check each file given."""
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(check(Path(file), Path(folder) / "env") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
